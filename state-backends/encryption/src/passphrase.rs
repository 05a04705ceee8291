//! Keys from passphrases: Argon2id. <https://www.rfc-editor.org/rfc/rfc9106>

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use karmaform_model::SealError;

use crate::key::{Key, LENGTH, Origin};

/// The second of the two sets that RFC 9106 recommends (section 4): 64 MiB, 3 passes, 4 lanes. 0.16 s on one core.
const MEMORY: u32 = 64 * 1024;
const PASSES: u32 = 3;
const LANES: u32 = 4;
/// An envelope that asks for more is not from us; it would only keep the machine busy.
const MOST: (u32, u32, u32) = (1024 * 1024, 20, 16);
const SALT: usize = 16;

/// A way to a new key from a passphrase.
pub(crate) fn new_origin() -> Result<Origin, SealError> {
    let mut salt = [0; SALT];
    aws_lc_rs::rand::fill(&mut salt).map_err(|_| SealError::Failed("there are no random bytes".to_owned()))?;
    Ok(Origin::Passphrase { salt: STANDARD.encode(salt), memory: MEMORY, passes: PASSES, lanes: LANES })
}

/// The key.
pub(crate) fn derive(passphrase: &str, salt: &str, memory: u32, passes: u32, lanes: u32) -> Result<Key, SealError> {
    let salt = STANDARD.decode(salt).map_err(|_| SealError::Damaged)?;
    if memory > MOST.0 || passes > MOST.1 || lanes > MOST.2 {
        return Err(SealError::Damaged);
    }
    let parameters = Params::new(memory, passes, lanes, Some(LENGTH)).map_err(|_| SealError::Damaged)?;
    let mut key = [0; LENGTH];
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, parameters);
    argon.hash_password_into(passphrase.as_bytes(), &salt, &mut key).map_err(|_| SealError::Damaged)?;
    Key::new(&key).ok_or(SealError::Damaged)
}
