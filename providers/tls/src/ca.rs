//! `tls_ca`: a certificate authority.
//!
//! A renewal keeps the key, so that everything the authority signed stays valid. Another subject or algorithm is another authority.

use karmaform_model::{
    Ask, Attribute, BoxFuture, Change, Diagnostic, Diagnostics, Object, PlanContext, ResourceSpec, ResourceType, Schema, Type, Value,
    default_plan,
};

use crate::authority::{self, read_key};
use crate::issue::{self, Request};
use crate::{found, lifetime, names, renewal};

/// What a new certificate changes; the key is not among it.
const REISSUED: [&str; 4] = ["certificate", "not_before", "not_after", "serial_number"];

pub(crate) struct Ca {
    schema: Schema,
}

impl Ca {
    pub(crate) fn new() -> Self {
        let mut attributes = vec![
            Attribute::required("common_name", Type::String, "The common name of its subject.").forces_replace(),
            Attribute::optional("organization", Type::String, "The organization of its subject.").forces_replace(),
            renewal::algorithm().forces_replace(),
        ];
        attributes.extend(lifetime::attributes(87_600, 8_760));
        attributes.extend(renewal::computed());
        let doc = "A certificate authority with its key. Its certificate is renewed in place before it ends, with the same key.";
        Self { schema: Schema::new(doc, attributes).state_only() }
    }
}

fn check(wanted: &Object) -> Result<(), Diagnostics> {
    let mut problems = Diagnostics::new();
    let text = |name: &str| wanted.get(name).and_then(Value::as_str);
    names::check_text("common_name", text("common_name"), &mut problems);
    names::check_text("organization", text("organization"), &mut problems);
    names::check_algorithm(wanted, &mut problems);
    lifetime::check(wanted, &mut problems);
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

fn issue(object: &mut Object) -> Result<(), Diagnostic> {
    let now = renewal::now();
    let text = |name: &str| object.get(name).and_then(Value::as_str).map(str::to_owned);
    let request = Request {
        common_name: text("common_name").unwrap_or_default(),
        organizations: text("organization").into_iter().collect(),
        not_before: now - lifetime::BACKDATED,
        not_after: now + lifetime::validity(object),
        ..Request::default()
    };
    let key = match text("private_key") {
        Some(key) => read_key("private_key", &key)?,
        None => issue::new_key(&text("algorithm").unwrap_or_default())?,
    };
    issue::authority(&request, &key)?.fill(object);
    Ok(())
}

impl ResourceSpec for Ca {
    fn name(&self) -> &'static str {
        "tls_ca"
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn plan(&self, context: &PlanContext, before: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostics> {
        let change = default_plan(&self.schema, before, wanted);
        let Some(wanted) = wanted else { return Ok(change) };
        check(wanted)?;
        let can_sign = change.before().is_none_or(|b| b.get("private_key").is_some_and(|key| !key.is_null()));
        let change = renewal::plan(&self.schema, &REISSUED, context.now, can_sign, change);
        if let Change::Update { before, after } = &change
            && before.get("private_key").is_none_or(Value::is_null)
            && before.get("certificate").is_some_and(|c| !c.is_null())
            && renewal::is_wanted(after)
        {
            return Err(authority::without_key("It has to be renewed").into());
        }
        Ok(change)
    }

    fn recovered(&self, wanted: &Object, found: &Object) -> Result<Option<Object>, Diagnostic> {
        let Some(certificate) = found::certificate(found, "certificate") else { return Ok(None) };
        let mut object = wanted.clone();
        object.insert("common_name".to_owned(), certificate.common_name.as_str().into());
        object.insert(
            "organization".to_owned(),
            certificate.organizations.first().map_or_else(|| Value::null(Type::String), |o| o.as_str().into()),
        );
        // A key that is not the certificate's is none of ours, and then there is none.
        let key = found::key_of(found, "private_key", &certificate);
        certificate.fill(key, &mut object);
        Ok(Some(object))
    }

    fn impact(&self, change: &Change) -> Vec<String> {
        match change {
            Change::Replace { .. } => vec!["replaces the authority: what trusts it must trust the new one".to_owned()],
            _ => renewal::impact(&self.schema, change).map(|i| format!("{i}, with the same key")).into_iter().collect(),
        }
    }
}

impl ResourceType<()> for Ca {
    fn observe<'a>(&'a self, (): &'a (), ask: &'a Ask) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move { Ok(ask.known.clone()) })
    }

    fn apply<'a>(&'a self, (): &'a (), change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move { renewal::apply(change, issue) })
    }
}

#[cfg(test)]
#[path = "ca_tests.rs"]
mod tests;
