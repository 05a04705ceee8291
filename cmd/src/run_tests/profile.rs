//! `-profile`: what took how long.

use std::collections::BTreeSet;

use karmaform_memory::World;
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

#[test]
fn who_was_asked_is_there_with_the_time_it_took() {
    let world = World::new();
    let hosts: String = ["a", "b"].iter().map(|h| format!("data ssh_host {{\"address\":\"{h}\"}} = {{\"connection\":{{\"provider\":\"ssh\",\"id\":\"{h}:22\"}},\"hostname\":\"{h}\"}}\n")).collect();
    world.preset(&hosts).unwrap();
    let config = r#"
data "ssh_host" "h" {
  for_each = toset(["a", "b"])
  address  = each.value
}
resource "ssh_file" "f" {
  for_each = { one = "a", two = "b", three = "a" }
  host     = data.ssh_host.h[each.value].connection
  path     = "/${each.key}"
  content  = "1"
}
"#;
    let place = Place::new(config).over(&world);
    place.check(&["apply", "-auto-approve"], 0);
    world.fail_host("b:22");
    world.set_delay(20);
    place.check(&["drift", "-profile=otlp=s.json", "-profile=chrome=c.json", "-profile=html=p.html"], 1);
    let spans: Json = serde_json::from_str(&place.read("s.json")).unwrap();
    let spans = spans["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone();
    let asked: BTreeSet<String> = spans
        .iter()
        .filter(|s| s["name"] == "look ssh")
        .map(|s| {
            let of = |place: usize, kind: &str| s["attributes"][place]["value"][kind].as_str().unwrap().to_owned();
            let time = |name: &str| s[name].as_str().unwrap().parse::<u64>().unwrap();
            assert!(s["parentSpanId"] == spans[0]["spanId"] && time("startTimeUnixNano") <= time("endTimeUnixNano"), "{s:#}");
            format!("{} {} {}", of(0, "stringValue"), of(1, "intValue"), s["status"]["code"])
        })
        .collect();
    assert_eq!(
        asked.iter().map(String::as_str).collect::<Vec<_>>(),
        ["a:22 2 1", "b:22 1 2", "data.ssh_host.h[\"a\"] 1 1", "data.ssh_host.h[\"b\"] 1 1"]
    );
    let trace: Json = serde_json::from_str(&place.read("c.json")).unwrap();
    let looks = trace["traceEvents"].as_array().unwrap().iter().filter(|e| e["cat"] == "look").count();
    assert_eq!(looks, 4);
    let page = place.read("p.html");
    assert!(page.contains("ssh a:22, 2 things") && page.contains("ssh b:22, 1 thing, no answer"), "{page}");
    // Of a plan as well, with what was asked to tell how often things stand, once.
    world.heal();
    place.check(&["plan", "-profile=chrome=c.json"], 0);
    let trace: Json = serde_json::from_str(&place.read("c.json")).unwrap();
    assert_eq!(trace["traceEvents"].as_array().unwrap().iter().filter(|e| e["cat"] == "look").count(), 4);
}
