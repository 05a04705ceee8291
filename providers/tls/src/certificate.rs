//! `tls_certificate`: a certificate with its key, signed by an authority.
//!
//! A new certificate always has a new key.

use karmaform_model::{
    Ask, Attribute, BoxFuture, Change, Diagnostic, Diagnostics, Object, PlanContext, ResourceSpec, ResourceType, Schema, Type, Value,
    default_plan,
};

use crate::authority::{self, Authority};
use crate::issue::{self, Request};
use crate::names::{USAGES, strings};
use crate::{found, lifetime, names, renewal};

/// What a new certificate changes.
const REISSUED: [&str; 5] = ["certificate", "private_key", "not_before", "not_after", "serial_number"];
const LISTS: [&str; 5] = ["organizations", "dns_names", "ip_addresses", "names", "usages"];

/// A leaf ends with its authority at the latest. What goes beyond it by less than this is cut off: it is the time between making the
/// authority and the leaf, or between plan and apply, and not what anybody wrote. More than this is a mistake, and is refused.
const TOLERATED: i64 = 24 * 3600;

pub(crate) struct Certificate {
    schema: Schema,
}

impl Certificate {
    pub(crate) fn new() -> Self {
        let strings = || Type::list(Type::String);
        let mut attributes = vec![
            Attribute::required("ca_certificate", Type::String, "The certificate of the authority, as PEM; of a bundle the first."),
            Attribute::required("ca_private_key", Type::String, "The key of the authority, as PEM.").secret().write_only(),
            Attribute::required("common_name", Type::String, "The common name of its subject."),
            Attribute::optional("organizations", strings(), "The organizations of its subject; to Kubernetes they are groups."),
            Attribute::optional("dns_names", strings(), "The DNS names it is valid for; \"*.\" may come first."),
            Attribute::optional("ip_addresses", strings(), "The IP addresses it is valid for."),
            Attribute::optional(
                "names",
                strings(),
                "More of both, DNS names and IP addresses in one list: what is only told apart once it is known, as the addresses of a load \
                 balancer are.",
            ),
            Attribute::optional("usages", strings(), "What it may be used for: server_auth, client_auth.").or(Value::strings(USAGES)),
            renewal::algorithm(),
        ];
        attributes.extend(lifetime::attributes(8_760, 2_880));
        attributes.extend(renewal::computed());
        let doc = "A certificate with its key, signed by an authority. It is renewed before it ends, and issued anew if anything in it \
                   changes, its authority included.";
        Self { schema: Schema::new(doc, attributes).state_only() }
    }
}

fn check(wanted: &Object) -> Diagnostics {
    let mut problems = Diagnostics::new();
    let text = |name: &str| wanted.get(name).and_then(Value::as_str);
    names::check_text("common_name", text("common_name"), &mut problems);
    for organization in strings(wanted, "organizations") {
        names::check_text("organizations", Some(&organization), &mut problems);
    }
    names::check_alternative_names(wanted, &mut problems);
    names::check_usages(wanted, &mut problems);
    names::check_algorithm(wanted, &mut problems);
    lifetime::check(wanted, &mut problems);
    problems
}

/// The end of a leaf made now.
fn end(now: i64, object: &Object, authority: &Authority) -> Result<i64, Diagnostic> {
    let wanted = now.saturating_add(lifetime::validity(object));
    let last = authority.not_after;
    if last <= now {
        let detail = format!("The authority's certificate expired on {}, so nothing that it signs is valid.", lifetime::day(last));
        return Err(Diagnostic::error("Expired certificate authority", detail).with_hint("Renew the authority first."));
    }
    if wanted > last + TOLERATED {
        let detail = format!(
            "The certificate would be valid until {}, but its authority ends on {}; from then on nobody would accept it.",
            lifetime::day(wanted),
            lifetime::day(last)
        );
        return Err(Diagnostic::error("Certificate outlives its authority", detail)
            .with_hint("Lower \"validity_hours\" of the certificate.")
            .with_hint("Or renew the authority earlier: raise its \"renew_before_hours\" above the lifetime of what it signs."));
    }
    Ok(wanted.min(last))
}

/// An authority in a state that was made anew may be without its key.
fn check_key(wanted: &Object) -> Option<Diagnostic> {
    wanted.get("ca_private_key").filter(|key| key.is_null()).map(|_| authority::without_key("The certificate has to be issued"))
}

/// Checks the authority as far as it is known yet.
fn check_authority(now: i64, after: &Object) -> Result<(), Diagnostic> {
    let text = |name: &str| after.get(name).and_then(Value::as_str);
    let Some(certificate) = text("ca_certificate") else { return Ok(()) };
    let authority = Authority::read(certificate)?;
    if let Some(key) = text("ca_private_key") {
        authority.key(key)?;
    }
    if after.get("validity_hours").is_some_and(Value::is_unknown) { Ok(()) } else { end(now, after, &authority).map(drop) }
}

fn issue(object: &mut Object) -> Result<(), Diagnostic> {
    let now = renewal::now();
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let authority = Authority::read(text("ca_certificate"))?;
    let signer = authority.key(text("ca_private_key"))?;
    let [organizations, mut dns_names, mut ip_addresses, names, usages] = LISTS.map(|name| strings(object, name));
    names::sort_in(names, &mut dns_names, &mut ip_addresses);
    let request = Request {
        common_name: text("common_name").to_owned(),
        organizations,
        dns_names,
        ip_addresses,
        usages,
        not_before: now - lifetime::BACKDATED,
        not_after: end(now, object, &authority)?,
    };
    let key = issue::new_key(text("algorithm"))?;
    issue::leaf(&request, &key, &authority, &signer)?.fill(object);
    Ok(())
}

/// What is, with lists as they are wanted where they stand for the same.
fn in_wanted_order(before: &Object, wanted: &Object) -> Object {
    let mut before = before.clone();
    for name in LISTS {
        if let (Some(is), Some(should)) = (before.get(name), wanted.get(name))
            && names::same_set(is, should)
        {
            before.insert(name.into(), should.clone());
        }
    }
    before
}

impl ResourceSpec for Certificate {
    fn name(&self) -> &'static str {
        "tls_certificate"
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn plan(&self, context: &PlanContext, before: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostics> {
        let Some(wanted) = wanted else { return Ok(default_plan(&self.schema, before, None)) };
        let mut problems = check(wanted);
        let before = before.map(|b| in_wanted_order(b, wanted));
        let change = default_plan(&self.schema, before.as_ref(), Some(wanted));
        let change = renewal::plan(&self.schema, &REISSUED, context.now, check_key(wanted).is_none(), change);
        if let Some(after) = change.after().filter(|a| renewal::is_wanted(a)) {
            problems.extend(check_key(wanted));
            problems.extend(check_authority(context.now, after).err());
        }
        if problems.is_empty() { Ok(change) } else { Err(problems) }
    }

    /// As the certificate says, where the configuration does not say the same in other words.
    fn recovered(&self, wanted: &Object, found: &Object) -> Result<Option<Object>, Diagnostic> {
        let Some(certificate) = found::certificate(found, "certificate") else { return Ok(None) };
        let Some(key) = found::key_of(found, "private_key", &certificate) else { return Ok(None) };
        let Some(authority) = wanted.get("ca_certificate").and_then(Value::as_str) else { return Ok(None) };
        let mut object = wanted.clone();
        if !Authority::read(authority).is_ok_and(|a| certificate.is_of(&a)) {
            // Of an authority that nobody knows any more: the next plan has it issued anew.
            object.insert("ca_certificate".to_owned(), "".into());
        }
        let [mut dns_names, mut ip_addresses, names] = ["dns_names", "ip_addresses", "names"].map(|name| strings(wanted, name));
        names::sort_in(names, &mut dns_names, &mut ip_addresses);
        let is_same = |a: &[String], b: &[String]| names::same_set(&Value::strings(a), &Value::strings(b));
        if !is_same(&dns_names, &certificate.dns_names) || !is_same(&ip_addresses, &certificate.ip_addresses) {
            object.insert("dns_names".to_owned(), Value::strings(&certificate.dns_names));
            object.insert("ip_addresses".to_owned(), Value::strings(&certificate.ip_addresses));
            object.insert("names".to_owned(), Value::null(Type::list(Type::String)));
        }
        for (name, is) in [("organizations", &certificate.organizations), ("usages", &certificate.usages)] {
            if !is_same(&strings(wanted, name), is) {
                object.insert(name.to_owned(), Value::strings(is));
            }
        }
        object.insert("common_name".to_owned(), certificate.common_name.as_str().into());
        certificate.fill(Some(key), &mut object);
        Ok(Some(object))
    }

    fn impact(&self, change: &Change) -> Vec<String> {
        renewal::impact(&self.schema, change).into_iter().collect()
    }
}

impl ResourceType<()> for Certificate {
    fn observe<'a>(&'a self, (): &'a (), ask: &'a Ask) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move { Ok(ask.known.clone()) })
    }

    fn apply<'a>(&'a self, (): &'a (), change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move { renewal::apply(change, issue) })
    }
}

#[cfg(test)]
#[path = "certificate_tests.rs"]
mod tests;
