//! A snapshot's own seal: the SHA-256 sum of the database in its last 32 bytes. Pure.
//!
//! A database is whole pages, so a file without the seal, or a cut one, has another length than 32 bytes more than a multiple of 512. Source:
//! etcd's `etcdutl/snapshot`. Its `snapshot status` does not compare the sum.

use sha2::{Digest as _, Sha256};

/// The length of the seal, in bytes.
const SEAL: usize = 32;
/// Databases are whole pages, and those are multiples of this, in bytes.
const PAGE: u64 = 512;

/// Sums of a snapshot that is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sums {
    /// Its length, in bytes.
    pub(super) size: u64,
    /// SHA-256 of the whole file, in hexadecimal digits.
    pub(super) sha256: String,
}

/// Reads a snapshot piece by piece.
#[derive(Default)]
pub(super) struct Reading {
    database: Sha256,
    /// The last bytes so far, which may be the seal.
    tail: Vec<u8>,
    size: u64,
}

impl Reading {
    /// Nothing was read yet.
    pub(super) fn is_new(&self) -> bool {
        self.size == 0
    }

    /// The next piece.
    pub(super) fn push(&mut self, piece: &[u8]) {
        self.size += piece.len() as u64;
        self.tail.extend_from_slice(piece);
        let settled = self.tail.len().saturating_sub(SEAL);
        self.database.update(&self.tail[..settled]);
        self.tail.drain(..settled);
    }

    /// There is no more.
    ///
    /// # Errors
    /// What is wrong with it, as a sentence without its full stop.
    pub(super) fn end(self) -> Result<Sums, String> {
        if self.size % PAGE != SEAL as u64 {
            return Err(format!("its length, {} bytes, is not that of a snapshot: it was cut, or is none", self.size));
        }
        // The whole file is the database and its seal: one sum is gone on with for the other, and a large file is summed once.
        let mut whole = self.database.clone();
        whole.update(&self.tail);
        if self.database.finalize()[..] != self.tail[..] {
            return Err("its SHA-256 sum is not the one at its end: bytes of it have changed".to_owned());
        }
        Ok(Sums { size: self.size, sha256: hexadecimal(&whole.finalize()) })
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], piece: usize) -> Result<Sums, String> {
        let mut reading = Reading::default();
        bytes.chunks(piece).for_each(|p| reading.push(p));
        reading.end()
    }

    #[test]
    fn damage_of_any_byte_is_found() {
        let database: Vec<u8> = (0..1024u32).map(|n| u8::try_from(n % 251).unwrap()).collect();
        let mut good = database.clone();
        good.extend_from_slice(&Sha256::digest(&database));
        for piece in [1, 7, 32, 33, 512, 5_000] {
            let sums = read(&good, piece).unwrap();
            assert_eq!((sums.size, sums.sha256), (1056, hexadecimal(&Sha256::digest(&good))));
        }
        for place in 0..good.len() {
            let mut bad = good.clone();
            bad[place] ^= 0x10;
            assert!(read(&bad, 100).is_err(), "byte {place}");
        }
        for length in [0, 31, 32, 512, 1023, 1055] {
            assert!(read(&good[..length], 100).is_err(), "{length} bytes");
        }
        // An empty database would be a snapshot of nothing: its sum alone has the right length.
        assert!(read(&database, 100).unwrap_err().contains("1024 bytes"));
    }
}
