//! What stands in `backend "s3" { ... }`: the arguments of Terraform's, with their names.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use karmaform_model::{Attribute, ObjectAttribute, Schema, Type};

/// Which arguments there are. The names are Terraform's
/// (<https://developer.hashicorp.com/terraform/language/backend/s3>).
pub fn schema() -> &'static Schema {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(build);
    &SCHEMA
}

/// True for arguments that say how Amazon is reached and as whom, whatever is asked for.
pub(crate) fn is_of_access(name: &str) -> bool {
    let others = ["region", "max_retries", "retry_mode", "skip_metadata_api_check"];
    others.contains(&name) || reaching().iter().chain(&credentials()).any(|a| a.name == name)
}

fn text(name: &'static str, doc: &'static str) -> Attribute {
    Attribute::optional(name, Type::String, doc)
}

fn flag(name: &'static str, doc: &'static str) -> Attribute {
    Attribute::optional(name, Type::Bool, doc)
}

fn build() -> Schema {
    let groups = [place(), reaching(), credentials(), encryption(), behaviour(), skips()];
    Schema::new(
        "Keeps the state in a bucket of Amazon S3 or of any store that speaks its protocol and honours conditional writes. The arguments are those of Terraform's s3 backend.",
        groups.into_iter().flatten().collect(),
    )
}

fn place() -> Vec<Attribute> {
    vec![
        Attribute::required("bucket", Type::String, "Name of the bucket. It must be there already."),
        Attribute::required(
            "key",
            Type::String,
            "Path of the state in the bucket, without a slash at either end. The lock is `<key>.tflock` beside it, and earlier generations are below `<key>.generations/`.",
        ),
        text(
            "region",
            "Region of the bucket. Unless given: `AWS_REGION`, `AWS_DEFAULT_REGION`, the profile's; with an endpoint of one's own it is not needed, and `us-east-1` is signed.",
        ),
        text(
            "workspace_key_prefix",
            "Where the states of workspaces other than `default` are: `<workspace_key_prefix>/<workspace>/<key>`. `env:` by default.",
        )
        .or("env:"),
    ]
}

fn reaching() -> Vec<Attribute> {
    vec![
        Attribute::optional(
            "endpoints",
            options(&["s3", "sts", "sso", "iam", "dynamodb"]),
            "Addresses of services that are not Amazon's, with scheme: `{ s3 = \"https://store.example:9000\" }`. `sts` is asked for roles, `sso` for credentials of IAM Identity Center; `iam` and `dynamodb` are accepted and never asked. Environment: `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL_STS`, `AWS_ENDPOINT_URL_SSO`, `AWS_ENDPOINT_URL`.",
        ),
        text("endpoint", "The older way to write `endpoints = { s3 = ... }`."),
        text("sts_endpoint", "The older way to write `endpoints = { sts = ... }`."),
        text("iam_endpoint", "Accepted and never asked."),
        text("dynamodb_endpoint", "Accepted and never asked."),
        flag(
            "use_path_style",
            "The bucket is part of the path (`https://store.example/bucket/key`) and not of the host name. Most stores other than Amazon's want that. It is always so where the endpoint is an IP address.",
        ),
        flag("force_path_style", "The older name of `use_path_style`."),
        flag("use_dualstack_endpoint", "Use Amazon's endpoint that has IPv6 too."),
        flag("use_fips_endpoint", "Use Amazon's endpoint with FIPS-validated cryptography."),
        text("sts_region", "Region of the STS that is asked for roles; the bucket's unless given."),
        flag("insecure", "Do not check the server's certificate. Whoever is in between can then read and change the state."),
        text(
            "custom_ca_bundle",
            "File with the certificates (PEM) to trust for this store instead of the system's. Environment: `AWS_CA_BUNDLE`.",
        ),
        text("http_proxy", "Proxy for `http://` addresses. Environment: `HTTP_PROXY`."),
        text("https_proxy", "Proxy for `https://` addresses. Environment: `HTTPS_PROXY`."),
        text("no_proxy", "Hosts, domains and networks that are reached without a proxy, separated by commas. Environment: `NO_PROXY`."),
    ]
}

fn credentials() -> Vec<Attribute> {
    vec![
        text("access_key", "Access key. Better left out: what stands here is in files. Unless given, credentials are looked for as Amazon's tools do: environment, profile, container, instance.").secret(),
        text("secret_key", "Secret key that belongs to `access_key`.").secret(),
        text("token", "Session token of temporary credentials.").secret(),
        text("profile", "Profile in the files of Amazon's tools. Wins over credentials in the environment. Environment: `AWS_PROFILE`."),
        Attribute::optional("shared_config_files", Type::list(Type::String), "Files to read profiles from instead of `~/.aws/config`; what stands in a later one wins."),
        Attribute::optional("shared_credentials_files", Type::list(Type::String), "Files to read keys from instead of `~/.aws/credentials`; what stands in a later one wins."),
        Attribute::optional("assume_role", role(&["external_id", "source_identity"], &["transitive_tag_keys"], true), "Role to take on with the credentials that were found. `duration` is like `1h30m`; `session_name` is `karmaform` unless given."),
        Attribute::optional("assume_role_with_web_identity", role(&["web_identity_token", "web_identity_token_file"], &[], false), "Role to take on with a token of an identity provider. Environment: `AWS_ROLE_ARN`, `AWS_WEB_IDENTITY_TOKEN_FILE`, `AWS_ROLE_SESSION_NAME`.").secret(),
        text("ec2_metadata_service_endpoint", "Address of the instance metadata service. Environment: `AWS_EC2_METADATA_SERVICE_ENDPOINT`."),
        text("ec2_metadata_service_endpoint_mode", "`IPv4` or `IPv6`. Environment: `AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE`."),
    ]
}

fn encryption() -> Vec<Attribute> {
    vec![
        flag("encrypt", "The store encrypts what it keeps: with keys of its own (AES256), or with the KMS key in `kms_key_id`."),
        text("kms_key_id", "ARN or id of the KMS key that the store encrypts with."),
        text("sse_customer_key", "Key of one's own that the store encrypts with and does not keep: 32 bytes in base64. Without it nobody reads the state again. Environment: `AWS_SSE_CUSTOMER_KEY`.").secret(),
        text("acl", "Canned ACL of what is written, like `bucket-owner-full-control`."),
    ]
}

fn behaviour() -> Vec<Attribute> {
    vec![
        flag(
            "use_lockfile",
            "Accepted for Terraform's sake. karmaform always locks with `<key>.tflock`, as Terraform does when this is true.",
        )
        .or(true),
        text("dynamodb_table", "Refused: karmaform locks with `<key>.tflock` in the bucket itself."),
        Attribute::optional(
            "max_retries",
            Type::Number,
            "How often a request is repeated that the store did not answer or answered with an error of its own. 5 by default.",
        )
        .or(5i64),
        text(
            "retry_mode",
            "`standard` or `adaptive`; both do the same here: repeat after a growing pause, or after the time that the store asks for.",
        ),
    ]
}

fn skips() -> Vec<Attribute> {
    vec![
        flag(
            "skip_metadata_api_check",
            "Do not look for credentials in the instance metadata service. Environment: `AWS_EC2_METADATA_DISABLED`.",
        ),
        flag("skip_s3_checksum", "Send no SHA-256 checksum with what is written, for stores that don't know them."),
        flag("skip_credentials_validation", "Accepted: karmaform asks no other service whether credentials are valid."),
        flag("skip_region_validation", "Accepted: karmaform takes any region."),
        flag("skip_requesting_account_id", "Accepted: karmaform does not ask for the account."),
    ]
}

fn object(attributes: impl IntoIterator<Item = (&'static str, ObjectAttribute)>) -> Type {
    Type::Object(attributes.into_iter().map(|(name, attribute)| (name.to_owned(), attribute)).collect::<BTreeMap<_, _>>())
}

fn options(names: &[&'static str]) -> Type {
    object(names.iter().map(|name| (*name, ObjectAttribute::optional(Type::String))))
}

/// A role with what both ways of taking it on have, these strings and lists, and tags where they can be.
fn role(strings: &[&'static str], lists: &[&'static str], tags: bool) -> Type {
    let optional = |name: &&'static str, ty: Type| (*name, ObjectAttribute::optional(ty));
    let mut attributes = vec![("role_arn", ObjectAttribute::required(Type::String))];
    attributes.extend(["duration", "policy", "session_name"].iter().chain(strings).map(|n| optional(n, Type::String)));
    attributes.extend(["policy_arns"].iter().chain(lists).map(|n| optional(n, Type::set(Type::String))));
    attributes.extend(tags.then(|| optional(&"tags", Type::map(Type::String))));
    object(attributes)
}
