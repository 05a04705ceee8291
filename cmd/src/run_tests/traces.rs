//! Traces that are sent: to a collector on loopback, which is well, away, silent, or refuses.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use super::{Done, Place, TWO};

/// What came in one request.
struct Came {
    path: String,
    /// In lower case, but for what follows the name.
    headers: Vec<(String, String)>,
    body: String,
}

impl Came {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    fn spans(&self) -> Vec<Json> {
        let trace: Json = serde_json::from_str(&self.body).unwrap();
        trace["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()
    }

    fn names(&self) -> Vec<String> {
        self.spans().iter().map(|s| s["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Of the run: the command, the exit code, and the status.
    fn run(&self) -> (Json, Json, Json) {
        let run = &self.spans()[0];
        let attribute = |name: &str| run["attributes"].as_array().unwrap().iter().find(|a| a["key"] == name).unwrap()["value"].clone();
        (attribute("karmaform.command")["stringValue"].clone(), attribute("process.exit.code")["intValue"].clone(), run["status"].clone())
    }
}

/// A collector on loopback. It gives these answers one after the other, and then the last one for ever; without any it never answers.
struct Receiver {
    port: u16,
    came: Arc<Mutex<Vec<Came>>>,
}

impl Receiver {
    fn start(answers: &'static [(u16, &'static str)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let came: Arc<Mutex<Vec<Came>>> = Arc::default();
        let kept = Arc::clone(&came);
        std::thread::spawn(move || {
            let mut held = Vec::new();
            for stream in listener.incoming().flatten() {
                let mut reader = BufReader::new(stream);
                let Some(one) = request(&mut reader) else { continue };
                let count = {
                    let mut all = kept.lock().unwrap();
                    all.push(one);
                    all.len()
                };
                match answers.get(count - 1).or(answers.last()) {
                    Some((status, body)) => {
                        let length = body.len();
                        let head = format!(
                            "HTTP/1.1 {status} x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nRetry-After: 0\r\nLocation: /elsewhere\r\nConnection: close\r\n"
                        );
                        let _ = write!(reader.get_mut(), "{head}\r\n{body}");
                    }
                    None => held.push(reader),
                }
            }
        });
        Self { port, came }
    }

    fn came(&self) -> Vec<Came> {
        std::mem::take(&mut *self.came.lock().unwrap())
    }

    /// Asks for traces to be sent there.
    fn asked(&self, place: &mut Place) {
        place.set("OTEL_TRACES_EXPORTER", "otlp");
        place.set("OTEL_EXPORTER_OTLP_ENDPOINT", &format!("http://127.0.0.1:{}", self.port));
        place.set("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20hunter2,x-scope=a");
    }
}

fn request(reader: &mut BufReader<TcpStream>) -> Option<Came> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length")?.1.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Came { path, headers, body: String::from_utf8(body).ok()? })
}

/// There is one warning, it says this, and no secret is anywhere.
#[track_caller]
fn warned(done: &Done, says: &str) {
    assert!(done.stderr.matches("Warning:").count() == 1 && done.stderr.replace("\n", " ").contains(says), "{done:#?}");
    assert!(!done.stdout.contains("Warning:") && !format!("{done:?}").contains("hunter2"), "{done:#?}");
}

#[test]
fn what_is_sent_is_what_is_written() {
    let receiver = Receiver::start(&[(200, "{}")]);
    let mut place = Place::new(TWO);
    receiver.asked(&mut place);
    place.set("OTEL_SERVICE_NAME", "fleet");
    place.set("OTEL_RESOURCE_ATTRIBUTES", "service.name=x,deployment.environment.name=a%20b");
    place.set("TRACEPARENT", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    let done = place.check(&["apply", "-auto-approve", "-profile=otlp=spans.json"], 0);
    assert!(done.stderr.is_empty() && !done.stdout.contains("hunter2"), "{done:#?}");
    let came = receiver.came();
    let [one] = came.as_slice() else { panic!("{} requests", came.len()) };
    assert_eq!((one.path.as_str(), one.body.as_str()), ("/v1/traces", place.read("spans.json").as_str()));
    let headers = ["content-type", "authorization", "x-scope"].map(|name| one.header(name).unwrap());
    assert_eq!(headers, ["application/json", "Bearer hunter2", "a"]);
    assert_eq!(one.names(), ["karmaform", "look", "decide", "apply", "create terraform_data", "create terraform_data"]);
    let trace: Json = serde_json::from_str(&one.body).unwrap();
    let resource: Vec<String> = trace["resourceSpans"][0]["resource"]["attributes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| format!("{}={}", a["key"].as_str().unwrap(), a["value"]["stringValue"].as_str().unwrap()))
        .collect();
    let version = format!("service.version={}", crate::app::VERSION);
    assert_eq!(resource, ["deployment.environment.name=a b", "service.name=fleet", version.as_str()]);
    assert_eq!(one.spans()[0]["parentSpanId"], "00f067aa0ba902b7");

    place.set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &format!("http://127.0.0.1:{}/here?a=b", receiver.port));
    place.set("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "authorization=other");
    for (arguments, code, phases) in [
        (&["plan", "-detailed-exitcode"] as &[&str], 0, &["karmaform", "look", "decide"] as &[&str]),
        (&["refresh"], 0, &["karmaform", "look", "decide", "apply"]),
        (&["drift"], 0, &["karmaform", "look", "look for strays", "decide"]),
        (&["destroy", "-auto-approve"], 0, &["karmaform", "look", "decide", "apply", "delete terraform_data", "delete terraform_data"]),
        (&["drift"], 2, &["karmaform", "look", "look for strays", "decide"]),
        (&["plan", "-detailed-exitcode"], 2, &["karmaform", "look", "decide"]),
    ] {
        place.check(arguments, code);
        let came = receiver.came();
        assert!(came.len() == 1 && came[0].names() == phases, "{arguments:?}: {:?}", came.iter().map(Came::names).collect::<Vec<_>>());
        assert_eq!((came[0].path.as_str(), came[0].header("authorization"), came[0].header("x-scope")), ("/here?a=b", Some("other"), None));
        let (command, exit, status) = came[0].run();
        assert_eq!((command, exit, &status["code"]), (arguments[0].into(), code.to_string().into(), &1.into()));
    }
}

#[test]
fn drift_has_a_profile_in_a_file_too() {
    let place = Place::new(TWO);
    place.check(&["drift", "-profile=chrome=p.json", "-profile=html=p.html"], 2);
    let trace: Json = serde_json::from_str(&place.read("p.json")).unwrap();
    let names: Vec<&str> = trace["traceEvents"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["look", "look for strays", "decide"]);
    assert!(place.read("p.html").contains("look for strays"));
}

#[test]
fn who_fails_tells_it_as_well_and_no_secret() {
    let receiver = Receiver::start(&[(200, "")]);
    let mut place = Place::new("resource \"terraform_data\" \"a\" {\n  inptu = 1\n}\n");
    receiver.asked(&mut place);
    for command in [&["plan"] as &[&str], &["apply", "-auto-approve"], &["destroy", "-auto-approve"], &["drift"]] {
        let done = place.check(command, 1);
        assert!(done.stderr.contains("inptu") && !done.stderr.contains("Warning"), "{done:#?}");
        let came = receiver.came();
        assert_eq!(came.len(), 1, "{command:?}");
        let (told, exit, status) = came[0].run();
        assert_eq!((told, exit, &status["code"]), (command[0].into(), "1".into(), &2.into()));
        // From the moment that it began, though it came to no phase.
        let run = &came[0].spans()[0];
        assert!(status["message"].is_string() && run["startTimeUnixNano"].as_str().unwrap() > "1600000000000000000", "{run:#}");
    }
    let failing = "variable \"secret\" {\n  default   = \"hunter2\"\n  sensitive = true\n}\nresource \"local_file\" \"a\" {\n  \
                   filename = \"/dev/null/x\"\n  content  = var.secret\n}\n";
    place.write("main.kf.hcl", failing);
    place.check(&["apply", "-auto-approve"], 1);
    let came = receiver.came();
    assert_eq!((came.len(), &came[0].run().2["message"]), (1, &"a step failed".into()));
    assert!(!came[0].body.contains("hunter2"), "{}", came[0].body);
}

#[test]
fn nothing_is_sent_to_who_was_not_asked_to_be_told() {
    let receiver = Receiver::start(&[(200, "")]);
    let mut place = Place::new(TWO);
    receiver.asked(&mut place);
    let not_kept = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
    for (name, value) in
        [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none"), ("OTEL_TRACES_EXPORTER", ""), ("TRACEPARENT", not_kept)]
    {
        let before = place.environment.clone();
        place.set(name, value);
        let done = place.check(&["plan"], 0);
        assert!(done.stderr.is_empty() && receiver.came().is_empty(), "{name}: {done:#?}");
        // The file was asked for by name.
        place.check(&["plan", "-profile=otlp=spans.json"], 0);
        assert!(place.read("spans.json").contains("resourceSpans") && receiver.came().is_empty(), "{name}");
        std::fs::remove_file(place.path().join("spans.json")).unwrap();
        place.environment = before;
    }
    place.check(&["plan"], 0);
    assert_eq!(receiver.came().len(), 1);
    for command in [&["validate"] as &[&str], &["show"], &["state", "list"]] {
        place.run(command);
    }
    assert!(receiver.came().is_empty());
}

#[test]
fn a_collector_that_is_away_or_silent_is_a_warning_and_no_more() {
    let mut place = Place::new(TWO);
    let silent = Receiver::start(&[]);
    silent.asked(&mut place);
    place.set("OTEL_EXPORTER_OTLP_TIMEOUT", "400");
    let began = Instant::now();
    let done = place.check(&["plan", "-detailed-exitcode"], 2);
    warned(&done, &format!("The collector at http://127.0.0.1:{}/v1/traces did not take it within 400 ms.", silent.port));
    assert!(silent.came().len() == 1 && began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
    let away = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    place.set("OTEL_EXPORTER_OTLP_ENDPOINT", &format!("http://me:hunter2@{away}?token=hunter2"));
    let done = place.check(&["plan", "-detailed-exitcode"], 2);
    warned(&done, &format!("The collector at http://{away}/v1/traces can't be reached"));
    // Everything was done before, and stays.
    let done = place.check(&["apply", "-auto-approve"], 0);
    warned(&done, "can't be reached");
    assert!(done.stdout.contains("Apply complete!"), "{done:#?}");
    // An error is told before the trace is sent.
    place.write("main.kf.hcl", "output \"z\" {\n  value = nope.x.y\n}\n");
    let done = place.check(&["plan"], 1);
    warned(&done, "can't be reached");
    assert!(done.stderr.find("Error:") < done.stderr.find("Warning:"), "{done:#?}");
    // Answers for programs stay whole.
    place.write("main.kf.hcl", TWO);
    let done = place.check(&["drift", "-json"], 0);
    assert!(serde_json::from_str::<Json>(&done.stdout).is_ok() && done.stderr.contains("Trace not sent"), "{done:#?}");
    let done = place.check(&["plan", "-json"], 0);
    let lines: Vec<Json> = done.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = &lines.last().unwrap()["diagnostic"];
    assert!((&last["severity"], &last["summary"]) == (&"warning".into(), &"Trace not sent".into()) && done.stderr.is_empty(), "{done:#?}");
}

#[test]
fn what_a_collector_answers_is_said_without_its_words() {
    for (answers, says) in [
        (&[(401u16, "no hunter2 here")] as &'static [(u16, &'static str)], "answered 401.  Check OTEL_EXPORTER_OTLP_HEADERS"),
        (&[(404, "hunter2")], "answered 404.  Check OTEL_EXPORTER_OTLP_ENDPOINT"),
        (&[(308, "")], "answered 308.  It sends one on to another address"),
        (&[(500, "hunter2")], "answered 500.  Check that it is well"),
        (&[(200, "{\"partialSuccess\":{\"rejectedSpans\":\"2\",\"errorMessage\":\"hunter2\"}}")], "did not take 2 spans of it."),
    ] {
        let receiver = Receiver::start(answers);
        let mut place = Place::new(TWO);
        receiver.asked(&mut place);
        let done = place.check(&["plan", "-detailed-exitcode"], 2);
        let plain = done.stderr.replace("= help: ", "").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(plain.contains(&says.replace("  ", " ")), "{says}: {plain}");
        warned(&done, "The collector at");
        assert_eq!(done.stderr.contains("Warning: Trace sent in part"), says.contains("did not take"), "{says}: {done:#?}");
        assert_eq!(receiver.came().len(), 1, "{says}");
    }
    // Who has no time now may have it in a moment.
    let receiver = Receiver::start(&[(503, ""), (429, ""), (200, "")]);
    let mut place = Place::new(TWO);
    receiver.asked(&mut place);
    let done = place.check(&["plan", "-detailed-exitcode"], 2);
    let came = receiver.came();
    assert!(done.stderr.is_empty() && came.len() == 3 && came.iter().all(|c| c.body == came[0].body), "{done:#?}");
}

#[test]
fn who_is_elsewhere_is_asked_for_through_a_proxy() {
    let receiver = Receiver::start(&[(200, "")]);
    let mut place = Place::new(TWO);
    receiver.asked(&mut place);
    let proxy = format!("http://127.0.0.1:{}", receiver.port);
    place.set("HTTP_PROXY", &proxy);
    place.set("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector.invalid:4318");
    let done = place.check(&["plan"], 0);
    let came = receiver.came();
    assert!(came.len() == 1 && came[0].path == "http://collector.invalid:4318/v1/traces", "{done:#?}");
    // What is on this machine never is.
    place.set("HTTP_PROXY", "http://127.0.0.1:1");
    place.set("OTEL_EXPORTER_OTLP_ENDPOINT", &proxy);
    place.check(&["plan"], 0);
    assert_eq!(receiver.came()[0].path, "/v1/traces");
}

#[test]
fn what_can_not_be_used_is_said() {
    let receiver = Receiver::start(&[(200, "")]);
    for (name, value, says) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "asks for \"grpc\", and karmaform speaks \"http/json\" alone."),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector", "OTEL_EXPORTER_OTLP_ENDPOINT is no address"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "hunter2", "OTEL_EXPORTER_OTLP_HEADERS is no list of headers"),
        (
            "OTEL_EXPORTER_OTLP_CERTIFICATE",
            "nowhere.pem",
            "The file nowhere.pem, which OTEL_EXPORTER_OTLP_CERTIFICATE names, can't be read",
        ),
    ] {
        let mut place = Place::new(TWO);
        receiver.asked(&mut place);
        place.set(name, value);
        warned(&place.check(&["plan", "-detailed-exitcode"], 2), says);
        assert!(receiver.came().is_empty(), "{name}");
    }
    for (name, value, says) in [
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon", "must be a whole number of milliseconds"),
        ("OTEL_RESOURCE_ATTRIBUTES", "hunter2", "OTEL_RESOURCE_ATTRIBUTES is no list"),
    ] {
        let mut place = Place::new(TWO);
        receiver.asked(&mut place);
        place.set(name, value);
        let done = place.check(&["plan", "-detailed-exitcode"], 2);
        warned(&done, says);
        assert!(done.stderr.contains("Warning: Invalid environment variable"), "{done:#?}");
        assert_eq!(receiver.came().len(), 1, "{name}");
    }
}
