//! What authorities and leaves have in common: their computed attributes, and when these change.

use std::time::{SystemTime, UNIX_EPOCH};

use karmaform_model::{Attribute, Change, Diagnostic, Object, Schema, Type, Value, same};

use crate::issue::ALGORITHMS;
use crate::lifetime;

/// The attribute that says which kind of key.
pub(crate) fn algorithm() -> Attribute {
    let doc = "The kind of its key: ECDSA-P256, ECDSA-P384, ED25519, RSA-2048 or RSA-4096.";
    Attribute::optional("algorithm", Type::String, doc).or(ALGORITHMS[0])
}

/// What comes out.
pub(crate) fn computed() -> [Attribute; 5] {
    [
        Attribute::computed("certificate", Type::String, "The certificate, as PEM."),
        Attribute::computed("private_key", Type::String, "Its private key, as PEM in PKCS#8 form.").secret(),
        Attribute::computed("not_before", Type::String, "When it starts to be valid (RFC 3339)."),
        Attribute::computed("not_after", Type::String, "When it ends (RFC 3339)."),
        Attribute::computed("serial_number", Type::String, "Its serial number, in hexadecimal."),
    ]
}

/// Turns a difference into a new certificate where one is needed: if anything that it is made of changes, or if it is due. `reissued`
/// are the computed attributes that a new certificate changes. Where nobody `can_sign`, what only time asks for is not planned as long as the
/// certificate lasts: else one lost key would keep everything else from being planned, also what takes another authority.
pub(crate) fn plan(schema: &Schema, reissued: &[&str], now: i64, can_sign: bool, change: Change) -> Change {
    if !can_sign && lasts(schema, now, &change) {
        return change;
    }
    let (before, mut after) = match change {
        Change::NoOp { object } if lifetime::is_due(now, &object, &object) => (object.clone(), object),
        Change::Update { before, after } => (before, after),
        mut other => {
            if let Change::Create { after } | Change::Replace { after, .. } = &mut other {
                forget(schema, &computed().map(|a| a.name), after);
            }
            return other;
        }
    };
    if lifetime::is_due(now, &before, &after) || !changed(schema, &before, &after).is_empty() {
        forget(schema, reissued, &mut after);
    }
    Change::Update { before, after }
}

/// The certificate has not ended, and nothing that it is made of changes.
fn lasts(schema: &Schema, now: i64, change: &Change) -> bool {
    let (Change::NoOp { object: before } | Change::Update { before, .. }, Some(after)) = (change, change.after()) else { return false };
    lifetime::end(before).is_some_and(|end| end > now) && changed(schema, before, after).is_empty()
}

/// Known after apply, and not null then.
fn forget(schema: &Schema, names: &[&str], object: &mut Object) {
    for name in names {
        object.insert((*name).to_owned(), Value::unknown_not_null(Type::String));
    }
    // What should be there and is not has to be made as well.
    for attribute in schema.attributes.iter().filter(|a| a.is_computed()) {
        let value = object.get_or_insert_with(attribute.name, || Value::null(Type::String));
        if value.is_null() {
            *value = Value::unknown_not_null(Type::String);
        }
    }
    schema.mark(object);
}

/// The attributes that a certificate is made of and that differ. When to renew is not part of a certificate.
fn changed(schema: &Schema, before: &Object, after: &Object) -> Vec<&'static str> {
    let made_of = schema.attributes.iter().filter(|a| !a.is_computed() && a.is_stored() && a.name != "renew_before_hours");
    made_of.map(|a| a.name).filter(|n| !same(before.get(n), after.get(n))).collect()
}

/// What an update means for the certificate, in words; `None` if it keeps it.
pub(crate) fn impact(schema: &Schema, change: &Change) -> Option<String> {
    let Change::Update { before, after } = change else { return None };
    if !is_wanted(after) {
        return None;
    }
    let Some(end) = lifetime::end(before) else { return Some("issues the certificate that is missing".to_owned()) };
    let day = lifetime::day(end);
    Some(if changed(schema, before, after).is_empty() {
        format!("renews the certificate that expires on {day}")
    } else {
        format!("issues a new certificate in place of the one that expires on {day}")
    })
}

/// True if the change is to give a new certificate.
pub(crate) fn is_wanted(after: &Object) -> bool {
    after.get("certificate").and_then(Value::as_str).is_none()
}

/// Applies a change with what makes the certificate.
pub(crate) fn apply(change: &Change, issue: impl FnOnce(&mut Object) -> Result<(), Diagnostic>) -> Result<Option<Object>, Diagnostic> {
    let Some(mut object) = change.after().cloned() else { return Ok(None) };
    if is_wanted(&object) {
        issue(&mut object)?;
    }
    Ok(Some(object))
}

/// The time of day, in seconds since 1970. Only for `apply`: a plan is given its time.
pub(crate) fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_secs()).unwrap_or(i64::MAX))
}
