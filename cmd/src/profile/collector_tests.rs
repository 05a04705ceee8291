//! What the environment says of a collector, and what is said of an environment that can't be as it is.

use super::*;

fn environment(all: &[(&str, &str)]) -> Environment {
    all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn read(all: &[(&str, &str)]) -> Result<Collector, Diagnostic> {
    Collector::read(&environment(all), Path::new("/"), &mut Diagnostics::new())
}

#[test]
fn nothing_is_sent_unless_it_is_asked_for() {
    let wants = |all: &[(&str, &str)]| wants_traces(&environment(all));
    assert!(wants(&[("OTEL_TRACES_EXPORTER", "otlp")]) && wants(&[("OTEL_TRACES_EXPORTER", "console, otlp")]));
    assert!(!wants(&[]) && !wants(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")]));
    assert!(!wants(&[("OTEL_TRACES_EXPORTER", "none")]) && !wants(&[("OTEL_TRACES_EXPORTER", "console")]));
    assert!(!wants(&[("OTEL_TRACES_EXPORTER", "otlp"), ("OTEL_SDK_DISABLED", "True")]));
    assert!(wants(&[("OTEL_TRACES_EXPORTER", "otlp"), ("OTEL_SDK_DISABLED", "1")]));
}

#[test]
fn an_address_for_everything_gets_a_path_and_one_for_traces_does_not() {
    let url = |all: &[(&str, &str)]| read(all).unwrap().url.to_string();
    assert_eq!(url(&[]), "http://localhost:4318/v1/traces");
    assert_eq!(url(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c:1")]), "https://c:1/v1/traces");
    assert_eq!(url(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c/a/")]), "https://c/a/v1/traces");
    let both = [("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c"), ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t/x?y=1")];
    assert_eq!(url(&both), "http://t/x?y=1");
    for wrong in ["collector:4318", "localhost", "ftp://c", "http://"] {
        let said = read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", wrong)]).unwrap_err();
        assert!(said.detail.contains("OTEL_EXPORTER_OTLP_ENDPOINT is no address") && !said.is_error(), "{said:?}");
    }
}

#[test]
fn what_is_said_holds_no_secret() {
    let collector = read(&[
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://me:hunter2@c/v1/traces?token=hunter2#hunter2"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20hunter2,x-team=a"),
    ])
    .unwrap();
    assert_eq!(collector.place(), "http://c/v1/traces");
    assert_eq!(
        (&collector.headers["authorization"], &collector.headers["x-team"]),
        (&"Bearer hunter2".parse().unwrap(), &"a".parse().unwrap())
    );
    assert!(!format!("{:?}", collector.headers).contains("hunter2"));
    for wrong in ["hunter2", "a b=hunter2", "a=hunter2%0D%0Ax"] {
        let said = read(&[("OTEL_EXPORTER_OTLP_HEADERS", wrong)]).unwrap_err();
        assert!(said.detail.starts_with("OTEL_EXPORTER_OTLP_HEADERS is no list") && !format!("{said:?}").contains("hunter2"), "{said:?}");
    }
}

#[test]
fn another_protocol_is_said_with_what_to_set() {
    assert!(read(&[("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")]).is_ok());
    assert!(read(&[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json")]).is_ok());
    for (value, asked) in [("grpc", "\"grpc\""), ("http/protobuf", "\"http/protobuf\""), ("hunter2", "something else")] {
        let said = read(&[("OTEL_EXPORTER_OTLP_PROTOCOL", value)]).unwrap_err();
        assert!(said.detail.contains(&format!("OTEL_EXPORTER_OTLP_PROTOCOL asks for {asked}")), "{said:?}");
        assert!(said.hints[0].contains("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json"), "{said:?}");
    }
}

#[test]
fn a_limit_that_is_none_is_not_used() {
    let patience = |value: &str| {
        let mut said = Diagnostics::new();
        let found = Collector::read(&environment(&[("OTEL_EXPORTER_OTLP_TIMEOUT", value)]), Path::new("/"), &mut said).unwrap();
        (found.patience, said.len())
    };
    assert_eq!((patience("250"), patience("0"), patience("-1"), patience("10s")), ((250, 0), (LONGEST, 0), (PATIENCE, 1), (PATIENCE, 1)));
}

#[test]
fn files_that_are_named_have_to_be_there() {
    let said = read(&[("OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere/ca.pem")]).unwrap_err();
    assert!(said.detail.contains("/nowhere/ca.pem, which OTEL_EXPORTER_OTLP_CERTIFICATE names, can't be read"), "{said:?}");
    let here = tempfile::NamedTempFile::new().unwrap();
    let path = here.path().to_str().unwrap();
    let said = read(&[("OTEL_EXPORTER_OTLP_CERTIFICATE", path)]).unwrap_err();
    assert!(said.detail.contains("has not what it should have"), "{said:?}");
    let said = read(&[("OTEL_EXPORTER_OTLP_CLIENT_KEY", path)]).unwrap_err();
    assert!(said.detail.contains("go together"), "{said:?}");
}
