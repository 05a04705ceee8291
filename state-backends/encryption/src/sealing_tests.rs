use std::collections::BTreeSet;

use age::secrecy::ExposeSecret as _;
use karmaform_model::{Type, Value};

use super::*;

const STATE: &[u8] = b"{\"version\":4,\"serial\":7,\"lineage\":\"l\"}\n";

fn content() -> Content {
    Content::State { lineage: "l".to_owned(), serial: 7 }
}

fn object(pairs: &[(&str, Value)]) -> Object {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

fn no_kms(_: &Object) -> Result<Arc<dyn KeyService>, Diagnostic> {
    Err(Diagnostic::error("none", "here"))
}

fn opened(arguments: &Object) -> Result<Encryption, Diagnostic> {
    Encryption::open(arguments, Path::new("/"), None, &no_kms)
}

fn passphrase(text: &str) -> Object {
    object(&[("passphrase", Value::from(text))])
}

fn with_fallback(mut first: Object, fallback: Object) -> Object {
    first.insert("fallback".to_owned(), Value::from(fallback));
    first
}

const OLD: &str = "an old passphrase that is long";
const NEW: &str = "a new passphrase that is long";

/// A folder with a key file and age identities, and each kind of block over it.
fn every_kind() -> (tempfile::TempDir, Vec<Object>) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| Value::from(folder.path().join(name).display().to_string());
    std::fs::write(folder.path().join("key"), "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n").unwrap();
    let identity = age::x25519::Identity::generate();
    std::fs::write(folder.path().join("age"), format!("# mine\n{}\n", identity.to_string().expose_secret())).unwrap();
    let other = age::x25519::Identity::generate().to_public().to_string();
    let recipients = Value::list(Type::String, vec![Value::from(other), Value::from(identity.to_public().to_string())]);
    // Rot13, as it were: what is wrapped is the key backwards.
    let script = "read x; echo \"$x\" | rev";
    let command = Value::list(Type::String, ["sh", "-c", script].map(Value::from).to_vec());
    let kinds = vec![
        passphrase(OLD),
        object(&[("key_file", at("key"))]),
        object(&[("age_recipients", recipients), ("age_identity_file", at("age"))]),
        object(&[("command", command)]),
    ];
    (folder, kinds)
}

#[test]
fn what_was_sealed_is_opened_by_another_run_and_tells_nothing() {
    let (_folder, kinds) = every_kind();
    for arguments in kinds {
        let sealed = opened(&arguments).unwrap().seal(&content(), STATE.to_vec()).unwrap();
        let text = String::from_utf8(sealed.clone()).unwrap();
        assert!(text.starts_with("{\"karmaform_encrypted\":1,\"content\":\"state\",\"lineage\":\"l\",\"serial\":7,"), "{text}");
        assert!(!text.contains("version") && text.lines().count() == 1 && !text.contains(OLD), "{text}");
        let other = opened(&arguments).unwrap();
        assert_eq!(other.open(&content(), &sealed).unwrap(), STATE);
        // Never the same twice, so that equal states can't be told.
        let again: BTreeSet<_> = (0..3).map(|_| other.seal(&content(), STATE.to_vec()).unwrap()).collect();
        assert_eq!(again.len(), 3);
        assert_eq!(other.open(&Content::Plan, &sealed), Err(SealError::Damaged));
    }
}

#[test]
fn a_flipped_bit_anywhere_is_found() {
    let (_folder, kinds) = every_kind();
    for arguments in &kinds[1..3] {
        let encryption = opened(arguments).unwrap();
        let sealed = encryption.seal(&content(), STATE.to_vec()).unwrap();
        for at in 0..sealed.len() {
            for bit in 0..8 {
                let mut damaged = sealed.clone();
                damaged[at] ^= 1 << bit;
                let found = encryption.open(&content(), &damaged);
                assert!(found.is_err(), "byte {at}, bit {bit} of {}: {found:?}", String::from_utf8_lossy(&sealed));
            }
        }
        for cut in [0, 1, 20, sealed.len() - 2] {
            assert!(encryption.open(&content(), &sealed[..cut]).is_err(), "{cut}");
        }
    }
}

#[test]
fn another_key_is_said_in_a_sentence() {
    let (_folder, kinds) = every_kind();
    let sealed = opened(&passphrase(OLD)).unwrap().seal(&content(), STATE.to_vec()).unwrap();
    let said = |arguments: &Object| opened(arguments).unwrap().open(&content(), &sealed).unwrap_err().to_string();
    assert_eq!(said(&passphrase(NEW)), "it was encrypted with a passphrase, and the passphrase that is given is another one");
    assert_eq!(said(&kinds[1]), "it was encrypted with a passphrase, and the key file that is given does not fit that");
    assert_eq!(
        said(&with_fallback(passphrase(NEW), kinds[2].clone())),
        "it was encrypted with a passphrase, and the passphrase that is given is another one, and what the age identities open does not fit that"
    );
    let clear = karmaform_model::Clear;
    assert_eq!(clear.open(&content(), &sealed), Err(SealError::NoKey));
    assert_eq!(opened(&passphrase(OLD)).unwrap().open(&content(), STATE), Err(SealError::Plain));
}

#[test]
fn keys_are_changed_with_both_at_work_and_everything_is_written_with_the_new_one() {
    let old = opened(&passphrase(OLD)).unwrap();
    let (_folder, kinds) = every_kind();
    for first in [passphrase(NEW), kinds[1].clone()] {
        let both = opened(&with_fallback(first.clone(), passphrase(OLD))).unwrap();
        let sealed = old.seal(&content(), STATE.to_vec()).unwrap();
        assert_eq!(both.open(&content(), &sealed).unwrap(), STATE);
        let renewed = both.seal(&content(), STATE.to_vec()).unwrap();
        assert_eq!(both.open(&content(), &renewed).unwrap(), STATE);
        assert_eq!(opened(&first).unwrap().open(&content(), &renewed).unwrap(), STATE);
        assert!(matches!(old.open(&content(), &renewed), Err(SealError::OtherKey { .. })));
    }
}

#[test]
fn from_clear_and_back() {
    let unencrypted = || object(&[("unencrypted", Value::from(true))]);
    let taking_in = opened(&with_fallback(passphrase(NEW), unencrypted())).unwrap();
    assert_eq!(taking_in.open(&content(), STATE).unwrap(), STATE);
    let sealed = taking_in.seal(&content(), STATE.to_vec()).unwrap();
    assert!(is_sealed(&sealed) && taking_in.encrypts());
    let leaving = opened(&with_fallback(unencrypted(), passphrase(NEW))).unwrap();
    assert_eq!(leaving.open(&content(), &sealed).unwrap(), STATE);
    assert_eq!(leaving.seal(&content(), STATE.to_vec()).unwrap(), STATE);
    assert!(!leaving.encrypts());
}

#[test]
fn a_command_that_fails_is_told_of() {
    for (script, words) in [
        ("echo no vault here >&2; exit 3", "(wrap) failed: no vault here"),
        ("true", "(wrap) prints nothing"),
        ("[ \"$1\" = wrap ] && echo x || echo not a key", ""),
    ] {
        let command = Value::list(Type::String, ["sh", "-c", script, "key"].map(Value::from).to_vec());
        let arguments = object(&[("command", command)]);
        let sealed = opened(&arguments).unwrap().seal(&content(), STATE.to_vec());
        match sealed {
            Err(error) => assert!(!words.is_empty() && error.to_string().ends_with(words), "{error}"),
            Ok(sealed) => {
                let error = opened(&arguments).unwrap().open(&content(), &sealed).unwrap_err();
                assert_eq!(error.to_string(), "the command of the encryption block (unwrap) prints no key");
            }
        }
    }
    let nowhere = Value::list(Type::String, vec![Value::from("/nowhere/at/all")]);
    let error = opened(&object(&[("command", nowhere)])).unwrap().seal(&content(), STATE.to_vec()).unwrap_err();
    assert!(error.to_string().contains("can't be started: entity not found"), "{error}");
}

#[test]
fn wrong_blocks_are_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("no-key");
    std::fs::write(&file, "hello\n").unwrap();
    let file = Value::from(file.display().to_string());
    let list = |items: &[&str]| Value::list(Type::String, items.iter().map(|i| Value::from(*i)).collect());
    for (arguments, words) in [
        (object(&[]), "no way to a key"),
        (object(&[("passphrase", Value::from(OLD)), ("key_file", file.clone())]), "several ways to a key: \"passphrase\", \"key_file\""),
        (passphrase("short"), "fewer than 16 characters"),
        (object(&[("key_file", Value::from("/nowhere"))]), "can't be read: entity not found"),
        (object(&[("key_file", file.clone())]), "holds no key"),
        (object(&[("age_recipients", list(&[]))]), "names nobody"),
        (object(&[("age_recipients", list(&["age1nonsense"]))]), "is no recipient"),
        (object(&[("age_recipients", list(&[])), ("age_identity_file", file)]), "names nobody"),
        (object(&[("command", list(&[]))]), "a list with a program"),
        (object(&[("unencrypted", Value::from(false))]), "no way to a key"),
        (with_fallback(passphrase(OLD), object(&[("passphrse", Value::from(NEW))])), "A fallback has no argument \"passphrse\""),
        (with_fallback(passphrase(OLD), with_fallback(passphrase(NEW), passphrase(OLD))), "no argument \"fallback\""),
        (object(&[("passphrase", Value::unknown(Type::String))]), "is not known here"),
    ] {
        let wrong = opened(&arguments).err().expect(words);
        assert_eq!(wrong.summary, "Invalid encryption configuration", "{words}");
        assert!(wrong.detail.contains(words), "{}", wrong.detail);
    }
}
