//! What a call came back with, and what a user is told.

use super::*;
use kube::core::Status;

fn told(status: Json) -> Diagnostic {
    let status: Status = serde_json::from_value(status).unwrap();
    let call = Call { verb: "patch", resource: "secrets".into(), namespace: Some("ns".into()), name: "s".into() };
    Failure::Kube(Box::new(kube::Error::Api(Box::new(status)))).diagnostic("https://h:1", &call, &["hunter22".to_owned()])
}

use serde_json::{Value as Json, json};

#[test]
fn a_conflict_names_managers_and_fields() {
    let cause = |who: &str, field: &str| json!({ "reason": "FieldManagerConflict", "message": format!("conflict with \"{who}\" using v1"), "field": field });
    let error = told(
        json!({ "code": 409, "reason": "Conflict", "details": { "causes": [cause("kubectl", ".data.a"), cause("helm", ".data.b"), cause("kubectl", ".data.c")] } }),
    );
    assert_eq!(error.summary, "Field belongs to another manager");
    assert!(error.detail.contains("\"helm\" owns .data.b; \"kubectl\" owns .data.a, .data.c"), "{}", error.detail);
    assert!(!error.retryable && error.hints[0].contains("force = true"));
}

#[test]
fn refusals_hide_secrets_and_say_what_is_missing() {
    let error = told(json!({ "code": 422, "message": "Secret \"s\" is invalid: data: Invalid value: \"hunter22\"" }));
    assert!(error.detail.contains("(sensitive)") && !error.detail.contains("hunter22"), "{}", error.detail);
    let forbidden = "secrets \"s\" is forbidden: User \"u\" cannot create resource \"secrets\" in API group \"\" in the namespace \"ns\"";
    let error = told(json!({ "code": 403, "message": forbidden }));
    assert_eq!(error.summary, "Right missing in the cluster");
    // To apply takes two rights, and the server knows which one is missing; the object's name is left out.
    assert_eq!(error.detail, "The right to create secrets in the namespace \"ns\" is not given to \"u\".");
    let error = told(json!({ "code": 403, "message": "secrets \"s\" is forbidden: " }));
    assert_eq!(error.detail, "The right to create secrets in the namespace \"ns\" is not given.");
    assert!(told(json!({ "code": 503, "message": "x" })).retryable && told(json!({ "code": 409, "message": "x" })).retryable);
}

#[test]
fn failed_connections_say_why() {
    let summary = |words: &str| transport(words, "https://h:1").summary;
    assert_eq!(summary("x: invalid peer certificate: UnknownIssuer"), "Certificate of the cluster is not trusted");
    assert_eq!(summary("received fatal alert: CertificateRequired"), "Not logged in to the cluster");
    assert_eq!(summary("tcp connect error: Connection refused"), "Cluster is unreachable");
}

#[test]
fn admission_says_who_and_why() {
    let quota = "secrets \"s\" is forbidden: exceeded quota: few, requested: secrets=1, used: secrets=3, limited: secrets=3";
    let error = told(json!({ "code": 403, "message": quota }));
    assert_eq!(error.summary, "Quota is exceeded");
    assert!(error.detail.contains("the ResourceQuota \"few\" of the namespace \"ns\": few, requested: secrets=1"), "{}", error.detail);
    let denied = "admission webhook \"strict.example.com\" denied the request: no label owner";
    let error = told(json!({ "code": 403, "message": denied }));
    assert_eq!(error.summary, "Refused by an admission webhook");
    assert!(error.detail.contains("\"strict.example.com\"") && error.detail.ends_with("pass: no label owner."), "{}", error.detail);
    let gone = "Internal error occurred: failed calling webhook \"strict.example.com\": Post \"https://x.y.svc:443/?timeout=10s\": service \"x\" not found";
    let error = told(json!({ "code": 500, "message": gone }));
    assert_eq!(error.summary, WEBHOOK);
    assert!(error.detail.contains("\"strict.example.com\"") && error.detail.contains("service \"x\" not found"), "{}", error.detail);
    assert!(error.retryable && !error.detail.contains("secrets \"s\""), "it is told once for all");
    let leaving = "secrets \"s\" is forbidden: unable to create new content in namespace ns because it is being terminated";
    assert_eq!(told(json!({ "code": 403, "message": leaving })).summary, TERMINATING);
    let page = format!("<html>\n<body>{}</body>", "x ".repeat(2000));
    assert!(told(json!({ "code": 502, "message": page })).detail.len() < 800, "a proxy's page");
}

#[test]
fn answers_that_are_no_fault_of_what_was_asked_for() {
    let summary = |code: u16| told(json!({ "code": code, "message": "x" })).summary;
    assert_eq!(summary(404), "Not there");
    assert_eq!(summary(409), "Changed at the same time");
    assert_eq!(summary(413), "Object is too large");
    let told = |error: kube::Error| Failure::Kube(Box::new(error)).diagnostic("https://h:1", &Call::none(), &[]).summary;
    assert_eq!(told(kube::Error::SerdeError(serde_json::from_str::<Json>("<html>").unwrap_err())), "Not a Kubernetes API server");
    let unnamed = kube::core::Request::new("/api/v1/pods").get("", &kube::api::GetParams::default()).unwrap_err();
    assert_eq!(told(kube::Error::BuildRequest(unnamed)), "Unusable name");
}

#[test]
fn what_does_not_change_in_place_is_told_from_what_is_wrong() {
    let immutable = |code: u16, message: &str| {
        let status: Status = serde_json::from_value(json!({ "code": code, "message": message })).unwrap();
        Failure::Kube(Box::new(kube::Error::Api(Box::new(status)))).immutable(&["hunter22".to_owned()])
    };
    for message in [
        "spec.selector: Invalid value: {}: field is immutable",
        "spec: Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden",
        "spec.clusterIPs[0]: Invalid value: [\"10.0.0.1\"]: may not change once set",
        "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`",
        "spec.containers: Forbidden: pod updates may not add or remove containers",
        "parameters: Forbidden: updates to parameters are forbidden.",
        "provisioner: Forbidden: updates to provisioner are forbidden.",
        "reclaimPolicy: Forbidden: updates to reclaimPolicy are forbidden.",
    ] {
        assert_eq!(immutable(422, message).as_deref(), Some(message));
        assert_eq!(immutable(403, message), None, "{message}");
    }
    assert_eq!(immutable(422, "spec.replicas: Invalid value: -1: must be greater than or equal to 0"), None);
    let redacted = immutable(422, "data.a: Invalid value: hunter22: field is immutable");
    assert_eq!(redacted.as_deref(), Some("data.a: Invalid value: (sensitive): field is immutable"));
}

#[test]
fn what_etcd_does_not_take_is_not_tried_again() {
    for message in
        ["etcdserver: request is too large", "rpc error: code = ResourceExhausted desc = trying to send message larger than max (3 vs. 2)"]
    {
        let error = told(json!({ "code": 500, "message": message }));
        assert_eq!(error.summary, "Object is too large");
        assert!(error.detail.contains(message) && error.hints[0].contains("`max-request-bytes`") && !error.retryable, "{error:?}");
        let status: Status = serde_json::from_value(json!({ "code": 500, "message": message })).unwrap();
        assert!(!Failure::Kube(Box::new(kube::Error::Api(Box::new(status)))).is_trouble());
    }
}

#[test]
fn a_conversion_that_nobody_answers_for_names_where_that_is_written() {
    let message =
        "conversion webhook for work.karmada.io/v1alpha2, Kind=ResourceBinding failed: Post \"https://x.y.svc:443/convert\": dial tcp";
    let error = told(json!({ "code": 500, "message": message }));
    assert_eq!((error.summary.as_str(), error.retryable), (UNABLE, true));
    assert!(error.detail.contains("Kind=ResourceBinding") && error.hints[0].contains("`spec.conversion`"), "{error:?}");
}

#[test]
fn an_api_of_another_server_is_told_as_that() {
    for message in ["service unavailable\n", "error trying to reach service: dial tcp 10.0.0.1:443: connect: connection refused"] {
        let error = told(json!({ "code": 503, "message": message }));
        assert_eq!((error.summary.as_str(), error.retryable), (UNABLE, true));
        assert!(error.detail.contains("another server's") && error.hints[0].contains("`kubectl get apiservices`"), "{error:?}");
    }
    assert!(told(json!({ "code": 503, "message": "etcd is away" })).hints[0].contains("/readyz"));
}
