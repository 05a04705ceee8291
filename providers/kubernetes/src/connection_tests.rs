use super::*;
use crate::values::object;

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn error(arguments: &Object) -> Diagnostic {
    match Options::new(arguments) {
        Err(error) => error,
        Ok(options) => run(options.config()).expect_err("an error"),
    }
}

const CONFIG: &str = "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: c, cluster: {server: 'https://h:1'}}]\n\
                      users: [{name: u, user: {token: hunter22}}]\ncontexts: [{name: a, context: {cluster: c, user: u}}, {name: b, context: {cluster: lost, user: u}}]\n";

#[test]
fn contradictions_are_refused() {
    let check = |parts: &[(&str, &str)], part: &str| {
        let arguments: Object = parts.iter().map(|(n, v)| ((*n).to_owned(), Value::from(*v))).collect();
        let error = error(&arguments);
        assert_eq!(error.summary, "Contradicting ways to the cluster");
        assert!(error.detail.contains(part), "{}", error.detail);
    };
    check(&[("kubeconfig", "x"), ("kubeconfig_file", "y")], "`kubeconfig` and `kubeconfig_file` are given together");
    check(&[("kubeconfig", "x"), ("token", "y")], "`token` is given together with `kubeconfig`");
    check(&[("context", "x")], "`context` is given without a way");
    check(&[("address", "https://a"), ("client_key", "y")], "belong together");
}

#[test]
fn what_is_wrong_with_a_kubeconfig_is_said_without_its_content() {
    let check = |content: &str, context: Option<&str>, summary: &str, part: &str| {
        let mut arguments = object([("kubeconfig", content.into())]);
        arguments.extend(context.map(|c| ("context".to_owned(), c.into())));
        let error = error(&arguments);
        assert_eq!(error.summary, summary, "{error:?}");
        assert!(error.detail.contains(part), "{}", error.detail);
        assert!(!format!("{error:?}").contains("hunter22"), "{error:?}");
    };
    check(CONFIG, Some("z"), "Context not found", "no context \"z\". It has \"a\", \"b\".");
    check(CONFIG, Some("b"), "Unusable kubeconfig", "the cluster \"lost\"");
    check("users: [hunter22", None, "Unusable kubeconfig", "no YAML");
    check("users: {name: hunter22}", None, "Unusable kubeconfig", "no YAML");
    check("{}", None, "Context not found", "no current context");
    check(&CONFIG.replace("server: 'https://h:1'", "x: 1"), None, "Unusable kubeconfig", "no `server`");
    check(
        &CONFIG.replace("}}]\nusers", ", certificate-authority-data: '%'}}]\nusers"),
        None,
        "Unusable kubeconfig",
        "certificate authority",
    );
    let missing = error(&object([("kubeconfig_file", "~/missing".into())]));
    assert!(missing.detail.contains("~/missing can't be read") && missing.hints[0].contains("pathexpand"), "{missing:?}");
}

#[test]
fn each_way_gives_a_configuration_and_its_value_opens_it_again() {
    let arguments = object([("address", "https://h:6443".into()), ("token", "hunter22".into()), ("context", Value::null(Type::String))]);
    let options = Options::new(&arguments).ok().unwrap();
    assert_eq!(run(options.config()).unwrap().cluster_url, "https://h:6443/");
    let value = Options::value(
        &arguments,
        "uid".into(),
        "1.20.2".into(),
        &Server { url: "https://s".to_owned(), ca: String::new(), is_verified: true },
    );
    assert_eq!(value.get("id").and_then(Value::as_str), Some("uid"));
    assert_eq!(value.get("version").and_then(Value::as_str), Some("1.20.2"));
    assert!(value.get("token").unwrap().secret && value.get("context").is_none());
    assert!(Options::new(value.as_entries().unwrap()).ok().unwrap() == options);
    assert_eq!(error(&object([("address", "h".into())])).summary, "Bad address of the cluster");
    assert_eq!(error(&object([("timeout", 0i64.into())])).summary, "Bad timeout");
}

#[test]
fn what_is_behind_another_connection_is_dialed_here_and_called_by_its_own_name() {
    let via = object([("provider", "kubernetes".into()), ("id", "host".into())]);
    let with = |parts: &[(&str, &str)]| {
        let mut arguments: Object = parts.iter().map(|(n, v)| ((*n).to_owned(), Value::from(*v))).collect();
        arguments.insert("via".to_owned(), via.clone().into());
        Options::new(&arguments)
    };
    let options =
        with(&[("address", "https://api.ns.svc:5443/"), ("proxy_url", "http://proxy:1"), ("id", "x"), ("later", "x")]).ok().unwrap();
    let beyond = options.beyond().unwrap().unwrap();
    assert_eq!(beyond, Beyond { via: via.clone(), host: "api.ns.svc".to_owned(), port: 5443, place: "https://api.ns.svc:5443".to_owned() });
    let config = run(options.config_at("127.0.0.1:1234".parse().unwrap(), "api.ns.svc")).unwrap();
    assert_eq!(config.cluster_url, "https://127.0.0.1:1234/");
    assert_eq!((config.tls_server_name.as_deref(), config.proxy_url), (Some("api.ns.svc"), None));
    assert_eq!(with(&[("address", "https://h")]).ok().unwrap().beyond().unwrap().unwrap().port, 443);
    assert_eq!(with(&[("kubeconfig", "x")]).err().unwrap().summary, "Contradicting ways to the cluster");
    let straight = object([("address", "https://h".into())]);
    assert!(Options::new(&straight).ok().unwrap().beyond().unwrap().is_none());
    assert!(Options::new(&straight).ok().unwrap() != with(&[("address", "https://h")]).ok().unwrap());
}

#[test]
fn how_fast_to_ask_is_a_whole_number() {
    for bad in [Value::from(0i64), 10_001i64.into(), (-1i64).into(), "many".into()] {
        let arguments = object([("address", "https://h".into()), ("requests_per_second", bad)]);
        assert_eq!(error(&arguments).summary, "Bad rate of requests");
    }
    let arguments = object([("address", "https://h".into()), ("requests_per_second", 10i64.into())]);
    assert_eq!(Options::new(&arguments).ok().unwrap().every, Duration::from_millis(100));
}

#[test]
fn nothing_given_is_a_way_inside_of_a_cluster_alone() {
    // A test that runs in a pod is in one.
    if std::env::var_os("KUBERNETES_SERVICE_HOST").is_none() {
        let error = error(&Object::new());
        assert_eq!(error.summary, "No way to a cluster");
        assert!(error.hints[0].contains("`kubeconfig_file`"), "{error:?}");
    }
}
