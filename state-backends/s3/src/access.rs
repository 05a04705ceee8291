//! How Amazon's services are reached, or those that stand in for them: a client, credentials and a region.

use karmaform_model::{Diagnostic, Object};

use crate::credentials::{Credentials, Tools};
use crate::http::Client;
use crate::limits::Limits;
use crate::place::domain;
use crate::settings::{Endpoints, Reach, Surroundings, is_region, string, wrong};
use crate::{source, sts};

/// What a request to a service takes.
pub(crate) struct Access {
    pub(crate) client: Client,
    pub(crate) credentials: Credentials,
    /// The region that is signed.
    pub(crate) region: String,
}

impl Access {
    /// For these arguments. `own`: the service is not Amazon's, so that the region may be left open. Nothing is asked yet.
    pub(crate) fn of(
        arguments: &Object,
        around: Surroundings<'_>,
        endpoints: &Endpoints,
        reach: &Reach,
        own: bool,
        limits: Limits,
    ) -> Result<Self, Diagnostic> {
        let chosen = source::choose(arguments, around)?;
        let region = string(arguments, "region").or_else(|| around.first(&["AWS_REGION", "AWS_DEFAULT_REGION"])).or(chosen.region);
        // Stores without regions take any; most are set up to be this one.
        let region = region.or_else(|| own.then(|| "us-east-1".to_owned())).ok_or_else(|| {
            wrong("region", "Nothing says which region.", "Set region, or AWS_REGION; or endpoints, for a store that is not Amazon's.")
        })?;
        let sts_region = string(arguments, "sts_region").unwrap_or_else(|| region.clone());
        for (name, region) in [("region", &region), ("sts_region", &sts_region)] {
            if !is_region(region) {
                return Err(wrong(name, "A region is one word of letters, digits and hyphens.", "Write it like \"eu-west-1\"."));
            }
        }
        let client = Client::new(reach, limits).map_err(|why| {
            Diagnostic::error("No connection to the s3 backend possible", format!("{why}."))
                .with_hint("Check custom_ca_bundle and the proxies.")
        })?;
        let sts_url = match &endpoints.sts {
            Some(url) => url.clone(),
            // A store of its own region name that asks Amazon for roles must say where.
            None => format!("https://sts.{sts_region}.{}", domain(&sts_region).unwrap_or("amazonaws.com")),
        };
        let tools = Tools {
            client: client.clone(),
            sts: sts::Place { url: sts_url, region: sts_region },
            sso: endpoints.sso.clone(),
            environment: around.environment.clone(),
        };
        Ok(Self { client, credentials: Credentials::new(chosen.source, tools), region })
    }
}
