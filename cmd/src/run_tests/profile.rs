//! `-profile`: what took how long.

use serde_json::Value as Json;

use super::{Place, TWO};

#[test]
fn a_run_is_written_in_every_form() {
    let mut place = Place::new(TWO);
    place.set("TRACEPARENT", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    place.check(&["apply", "-auto-approve", "-profile=html=p.html", "-profile=chrome=p.json", "-profile=otlp=spans.json"], 0);
    let read = |place: &Place, name: &str| -> Json { serde_json::from_str(&place.read(name)).unwrap() };
    let events = read(&place, "p.json")["traceEvents"].as_array().unwrap().clone();
    let names: Vec<&str> = events.iter().map(|e| e["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["look", "decide", "apply", "terraform_data.a", "terraform_data.b"]);
    // One needs the other, so all waited for both.
    assert!(events[3..].iter().all(|e| e["args"]["critical"] == true && e["args"]["do"] == "create"), "{events:#?}");
    let spans = &read(&place, "spans.json")["resourceSpans"][0]["scopeSpans"][0]["spans"];
    assert_eq!((spans.as_array().unwrap().len(), &spans[0]["parentSpanId"]), (6, &"00f067aa0ba902b7".into()));
    assert!(place.read("p.html").contains("in 2 steps one after the other"));
    // Of a plan, also of one with -detailed-exitcode, it is what looking and deciding took.
    place.write("main.kf.hcl", &format!("{TWO}resource \"terraform_data\" \"c\" {{}}\n"));
    place.check(&["plan", "-detailed-exitcode", "-profile=chrome=p.json"], 2);
    let names: Vec<Json> = read(&place, "p.json")["traceEvents"].as_array().unwrap().iter().map(|e| e["name"].clone()).collect();
    assert_eq!(names, ["look", "decide"]);
}

#[test]
fn a_run_that_fails_is_written_as_well() {
    let place = Place::new("resource \"local_file\" \"a\" {\n  filename = \"/dev/null/x\"\n  content = \"x\"\n}\n");
    let done = place.check(&["apply", "-auto-approve", "-profile=otlp=spans.json"], 1);
    let spans: Json = serde_json::from_str(&place.read("spans.json")).unwrap_or_else(|e| panic!("{e}: {done:#?}"));
    let spans = spans["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    assert_eq!((&spans[0]["status"]["code"], &spans.last().unwrap()["status"]["code"]), (&2.into(), &2.into()), "{spans:#?}");
    // A file that can't be written is said, and undoes nothing.
    let place = Place::new(TWO);
    let done = place.check(&["apply", "-auto-approve", "-profile=html=nowhere/x"], 1);
    assert!(done.stderr.contains("Report can't be written") && done.stdout.contains("Apply complete!"), "{done:#?}");
    place.check(&["plan", "-detailed-exitcode"], 0);
    let done = place.check(&["apply", "-auto-approve", "-profile=junit=x"], 1);
    assert!(done.stderr.contains("there are html, chrome, otlp"), "{done:#?}");
}
