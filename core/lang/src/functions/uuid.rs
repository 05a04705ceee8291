//! `uuid` and `uuidv5`

use ::uuid::Uuid;

use super::prelude::*;

pub(super) const UUID: Function = Function {
    name: "uuid",
    doc: "A random identifier. It is known after apply only, as it is another one each time.",
    body: Some(|a| Ok(a.unknown())),
    #[cfg(test)]
    rows: &[("uuid()", "UNKNOWN string")],
    ..Function::BASE
};

pub(super) const V5: Function = Function {
    name: "uuidv5",
    doc: "The identifier of a name in a namespace (dns, url, oid, x500 or a UUID): always the same for the same name.",
    parameters: &[Parameter::string("namespace"), Parameter::string("name")],
    body: Some(|a| {
        let namespace = match a.text(0) {
            "dns" => Uuid::NAMESPACE_DNS,
            "url" => Uuid::NAMESPACE_URL,
            "oid" => Uuid::NAMESPACE_OID,
            "x500" => Uuid::NAMESPACE_X500,
            text => Uuid::try_parse(text)
                .map_err(|_| FunctionError::at(0, format!("{} is neither dns, url, oid or x500 nor a UUID", a.quote(0))))?,
        };
        Ok(string(Uuid::new_v5(&namespace, a.text(1).as_bytes()).to_string()))
    }),
    #[cfg(test)]
    rows: &[
        ("uuidv5(\"dns\",\"www.terraform.io\")", "\"a5008fae-b28c-5ba5-96cd-82b4c53552d6\""),
        ("uuidv5(\"url\",\"https://x/\")", "\"27360227-8cf6-564c-922a-1537aede82c8\""),
        ("uuidv5(\"6ba7b810-9dad-11d1-80b4-00c04fd430c8\",\"www.terraform.io\")", "\"a5008fae-b28c-5ba5-96cd-82b4c53552d6\""),
        ("uuidv5(\"nope\",\"x\")", "ERROR \"nope\" is neither"),
    ],
    ..Function::BASE
};
