//! `drift` and its reports.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::Place;

/// One thing that is to be changed, one to be made, and one whose drift does not matter. The last has a secret.
const BEFORE: &str = r#"
variable "secret" {
  default   = "hunter2"
  sensitive = true
}
resource "terraform_data" "a" {
  input = "<one> & \"two\" | *three*"
}
resource "terraform_data" "b" {
  input = "b"
  lifecycle {
    ignore_drift = all
  }
}
resource "terraform_data" "c" {
  input = var.secret
}
"#;

fn after() -> String {
    BEFORE.replace("<one>", "<four>").replace("input = \"b\"", "input = \"bb\"").replace("hunter2", "hunter3")
        + "resource \"terraform_data\" \"d\" {\n}\n"
}

/// A place with drift, and all reports of it.
fn drifted() -> Place {
    let place = Place::new(BEFORE);
    place.check(&["apply", "-auto-approve"], 0);
    place.write("main.kf.hcl", &after());
    let reports = ["human", "json", "junit", "sarif", "markdown", "prometheus", "html", "slack", "alertmanager"]
        .map(|f| format!("-report={f}={f}.out"));
    let arguments: Vec<&str> = ["drift"].into_iter().chain(reports.iter().map(String::as_str)).collect();
    place.check(&arguments, 2);
    place
}

#[test]
fn nothing_is_written_and_nothing_is_locked() {
    let place = Place::new(BEFORE);
    place.check(&["apply", "-auto-approve"], 0);
    place.write("main.kf.hcl", &after());
    let files = || -> BTreeSet<_> {
        let walk =
            |path: &std::path::Path| -> Vec<_> { std::fs::read_dir(path).into_iter().flatten().flatten().map(|e| e.path()).collect() };
        let all = walk(place.path()).into_iter().flat_map(|p| if p.is_dir() { walk(&p) } else { vec![p] });
        all.map(|p| (p.clone(), std::fs::read(&p).unwrap_or_default())).collect()
    };
    let before = files();
    let done = place.check(&["drift"], 2);
    assert!(done.stdout.contains("\nDrift: 3 unapplied; 4 resources in all.\n"), "{}", done.stdout);
    assert!(done.stdout.contains("ignored by lifecycle.ignore_drift"), "{}", done.stdout);
    assert_eq!(files(), before);
    place.check(&["apply", "-auto-approve"], 0);
    let done = place.check(&["drift"], 0);
    assert_eq!(done.stdout, "\nNo drift: 4 resources are as they should be.\n");
}

#[test]
fn no_report_has_a_secret() {
    let place = drifted();
    for format in ["human", "json", "junit", "sarif", "markdown", "prometheus", "html", "slack", "alertmanager"] {
        let text = place.read(&format!("{format}.out")).replace('\\', "");
        assert!(text.contains("terraform_data.c") && !text.contains("hunter"), "{format}:\n{text}");
    }
}

#[test]
fn programs_get_what_the_schema_says() {
    let place = drifted();
    let report: Json = serde_json::from_str(&place.read("json.out")).unwrap();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/schemas/drift.schema.json");
    let schema: Json = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    fits(&report, &schema, "report");
    let found: Vec<String> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| format!("{} {} {}", f["kind"].as_str().unwrap(), f["address"].as_str().unwrap(), f["ignored_by"]))
        .collect();
    let expected = ["a null", "b \"lifecycle.ignore_drift\"", "c null", "d null"].map(|rest| format!("unapplied terraform_data.{rest}"));
    assert_eq!(found, expected);
    assert_eq!(report["findings"][0]["place"]["line"], 6);
    assert_eq!(report["findings"][0]["differences"][0]["path"], "input");
    let printed: Json = serde_json::from_str(&place.check(&["drift", "-json"], 2).stdout).unwrap();
    assert_eq!(printed["findings"], report["findings"]);
}

/// What a JSON Schema of these few words asks for: `required`, `additionalProperties`, `properties`, `items`, `type`, `enum`, `const`.
fn fits(value: &Json, schema: &Json, at: &str) {
    let is = |ty: &str| match ty {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("{at}: {other}"),
    };
    match &schema["type"] {
        Json::String(ty) => assert!(is(ty), "{at}: {value} is no {ty}"),
        Json::Array(all) => assert!(all.iter().any(|ty| is(ty.as_str().unwrap())), "{at}: {value}"),
        _ => {}
    }
    assert!(schema["enum"].as_array().is_none_or(|all| all.contains(value)), "{at}: {value}");
    assert!(schema["const"].is_null() || schema["const"] == *value, "{at}: {value}");
    for name in schema["required"].as_array().into_iter().flatten().filter(|_| value.is_object()) {
        assert!(value.get(name.as_str().unwrap()).is_some(), "{at}: {name} is missing");
    }
    for (name, part) in value.as_object().into_iter().flatten() {
        match schema["properties"].get(name) {
            Some(schema) => fits(part, schema, &format!("{at}.{name}")),
            None => assert_ne!(schema["additionalProperties"], false, "{at}: {name} is not in the schema"),
        }
    }
    for (number, item) in value.as_array().into_iter().flatten().enumerate() {
        fits(item, &schema["items"], &format!("{at}[{number}]"));
    }
}

#[test]
fn code_scanning_gets_places_and_suppressions() {
    let sarif: Json = serde_json::from_str(&drifted().read("sarif.out")).unwrap();
    assert_eq!((&sarif["version"], &sarif["runs"][0]["invocations"][0]["exitCode"]), (&"2.1.0".into(), &2.into()));
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let of = |name: &str| results.iter().find(|r| r["message"]["text"].as_str().unwrap().starts_with(name)).unwrap();
    let place = &of("terraform_data.a")["locations"][0]["physicalLocation"];
    assert_eq!((&place["artifactLocation"]["uri"], &place["region"]["startLine"]), (&"main.kf.hcl".into(), &6.into()));
    assert_eq!(of("terraform_data.b")["suppressions"][0]["kind"], "external");
    assert!(of("terraform_data.d").get("suppressions").is_none());
}

#[test]
fn code_scanning_gets_a_file_for_what_no_block_names_any_more() {
    let place = Place::new(BEFORE);
    place.check(&["apply", "-auto-approve"], 0);
    place.write("main.kf.hcl", "resource \"terraform_data\" \"a\" {\n  input = \"<one> & \\\"two\\\" | *three*\"\n}\n");
    place.check(&["drift", "-report=sarif=s.out", "-report=json=j.out"], 2);
    let sarif: Json = serde_json::from_str(&place.read("s.out")).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), 2, "{sarif:#}");
    for result in results {
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!((&place["artifactLocation"]["uri"], &place["region"]["startLine"]), (&"main.kf.hcl".into(), &1.into()));
    }
    // Others are not told of a line that says nothing of it.
    let json: Json = serde_json::from_str(&place.read("j.out")).unwrap();
    assert!(json["findings"][0]["place"].is_null(), "{json:#}");
}

#[test]
fn code_scanning_gets_files_from_the_top_of_the_work_tree() {
    let place = Place::new("");
    std::fs::create_dir_all(place.path().join("fleets/eu 1")).unwrap();
    place.write("fleets/eu 1/main.kf.hcl", BEFORE);
    let uri = || {
        place.check(&["-chdir=fleets/eu 1", "drift", "-report=sarif=s.out", "-report=json=j.out"], 2);
        let sarif: Json = serde_json::from_str(&place.read("fleets/eu 1/s.out")).unwrap();
        // Nobody else counts from there.
        let json: Json = serde_json::from_str(&place.read("fleets/eu 1/j.out")).unwrap();
        assert_eq!(json["findings"][0]["place"]["file"], "main.kf.hcl");
        sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].clone()
    };
    assert_eq!(uri(), "main.kf.hcl");
    std::fs::create_dir(place.path().join(".git")).unwrap();
    assert_eq!(uri(), "fleets/eu%201/main.kf.hcl");
    // A work tree in the work tree: the nearest is the one.
    place.write("fleets/.git", "gitdir: elsewhere");
    assert_eq!(uri(), "eu%201/main.kf.hcl");
}

#[test]
fn test_results_are_whole_and_escaped() {
    let junit = drifted().read("junit.out");
    assert!(junit.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"karmaform drift\" tests=\"5\" failures=\"3\" errors=\"0\" skipped=\"1\">"), "{junit}");
    assert!(junit.contains("input: is &quot;&lt;one&gt; &amp; \\&quot;two\\&quot;"), "{junit}");
    for tag in ["testsuites", "testsuite", "failure"] {
        assert_eq!(junit.matches(&format!("<{tag} ")).count(), junit.matches(&format!("</{tag}>")).count(), "{tag}\n{junit}");
    }
}

#[test]
fn a_table_in_markdown_stays_one() {
    let text = drifted().read("markdown.out");
    assert!(text.starts_with("## Drift: 3 unapplied\n"), "{text}");
    for row in text.lines().filter(|l| l.starts_with("| ")) {
        assert_eq!(row.replace("\\|", "").matches('|').count(), 4, "{row}");
    }
    assert!(text.contains("&lt;one&gt; &amp; ") && text.contains("\\*three\\*"), "{text}");
}

#[test]
fn markdown_of_thousands_of_findings_fits_into_a_summary() {
    let place = Place::new(&format!("resource \"terraform_data\" \"many\" {{\n  count = 3000\n  input = \"{}\"\n}}\n", "x".repeat(110)));
    place.check(&["apply", "-auto-approve"], 0);
    let text = place.read("main.kf.hcl").replace("\"xx", "\"<<");
    place.write("main.kf.hcl", &text);
    place.check(&["drift", "-report=markdown=m.out"], 2);
    let text = place.read("m.out");
    assert!(text.len() > 890_000 && text.len() < 901_000, "{}", text.len());
    assert!(text.starts_with("## Drift: 3000 unapplied\n") && text.ends_with(" more, for which there is no room here.\n\n</details>\n"));
}

#[test]
fn metrics_are_there_once_each() {
    let text = drifted().read("prometheus.out");
    let mut seen = BTreeSet::new();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let (series, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<i64>().is_ok() && seen.insert(series.to_owned()), "{line}");
    }
    assert!(seen.contains("karmaform_drift{address=\"terraform_data.a\",kind=\"unapplied\"}"), "{text}");
    assert!(text.contains("karmaform_drift_findings{kind=\"unapplied\"} 3\n") && text.contains("karmaform_drift_ignored 1\n"), "{text}");
}

#[test]
fn a_wrong_report_is_refused_before_anything_is_looked_at() {
    let place = Place::new(BEFORE);
    for (flag, says) in [("-report=pdf=x", "there is no format \"pdf\""), ("-report=json", "FORMAT=FILE"), ("-report=json=", "FORMAT=FILE")]
    {
        let done = place.check(&["drift", flag], 1);
        assert!(done.stderr.contains(says), "{done:#?}");
    }
    let done = place.check(&["drift", "-report=json=nowhere/x"], 1);
    assert!(done.stderr.contains("Report can't be written") && done.stderr.contains("nowhere/x"), "{done:#?}");
}

#[test]
fn only_what_is_new_is_told_again() {
    let place = drifted();
    let flags = [
        "drift",
        "-previous=last.json",
        "-report=json=last.json",
        "-report=slack=slack.json",
        "-report=alertmanager=alerts.json",
        "-report=markdown=last.md",
        "-report=html=last.html",
    ];
    let read = || -> Json { serde_json::from_str(&place.read("last.json")).unwrap() };
    let new = || read()["findings"].as_array().unwrap().iter().filter(|f| f["new"] == true).count();
    let done = place.check(&flags, 2);
    assert!(new() == 3 && done.stdout.contains("terraform_data.a new main.kf.hcl:6"), "{done:#?}");
    let message: Json = serde_json::from_str(&place.read("slack.json")).unwrap();
    assert!(message["text"].as_str().unwrap().starts_with("*Drift*: 3 new, 0 gone\n\u{2022} unapplied `terraform_data.a`: "), "{message}");

    place.check(&flags, 2);
    assert_eq!((new(), place.read("slack.json").as_str()), (0, ""));
    let alerts: Json = serde_json::from_str(&place.read("alerts.json")).unwrap();
    let ends = |alerts: &Json| -> Vec<i64> {
        let all = alerts.as_array().unwrap().iter().map(|a| a["endsAt"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap());
        all.map(|t| t.as_second() - jiff::Timestamp::now().as_second()).collect()
    };
    assert!(ends(&alerts).len() == 3 && ends(&alerts).iter().all(|s| *s > 3600), "{alerts}");

    place.check(&["apply", "-auto-approve"], 0);
    let done = place.check(&flags, 0);
    assert!(done.stdout.contains("Gone: told before, and well now\n  terraform_data.a\n      it was unapplied: "), "{done:#?}");
    assert!(place.read("slack.json").contains("0 new, 3 gone"), "{}", place.read("slack.json"));
    assert!(place.read("last.md").contains("### 3 gone") && place.read("last.html").contains("3 gone</label>"));
    let alerts: Json = serde_json::from_str(&place.read("alerts.json")).unwrap();
    assert!(ends(&alerts).len() == 3 && ends(&alerts).iter().all(|s| *s <= 0), "{alerts}");
    place.check(&flags, 0);
    assert_eq!((place.read("slack.json").as_str(), place.read("alerts.json").as_str()), ("", "[]\n"));

    place.write("last.json", "no report");
    let done = place.check(&flags, 1);
    assert!(done.stderr.contains("Previous report can't be read") && place.read("last.json") == "no report", "{done:#?}");
}

/// All forms, to files with the name of each.
fn all_reports() -> Vec<String> {
    let forms = ["human", "json", "junit", "sarif", "markdown", "prometheus", "html", "slack", "alertmanager"];
    forms.map(|f| format!("-report={f}={f}.out")).into()
}

#[test]
fn a_look_that_could_not_begin_is_told_in_every_report() {
    let place = drifted();
    let broken = [
        ("main.kf.hcl", "resource \"terraform_data\" \"a\" {\n  inptu = 1\n}\n", "inptu"),
        ("karmaform.tfstate", "no state", "karmaform.tfstate"),
        ("last.json", "no report", "Previous report"),
    ];
    let reports = all_reports();
    let arguments: Vec<&str> = ["drift", "-previous=last.json"].into_iter().chain(reports.iter().map(String::as_str)).collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/schemas/drift.schema.json");
    let schema: Json = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for (file, text, says) in broken {
        let before = place.read(file);
        place.write(file, text);
        let done = place.check(&arguments, 1);
        assert!(done.stderr.contains(says) && done.stdout.is_empty(), "{done:#?}");
        for form in ["human", "json", "junit", "sarif", "markdown", "html", "slack", "alertmanager"] {
            let report = place.read(&format!("{form}.out")).replace('\\', "");
            assert!(report.contains(says), "{file}, {form}:\n{report}");
            assert!(!report.contains("terraform_data.d") && !report.contains("hunter"), "{file}, {form}:\n{report}");
        }
        let json: Json = serde_json::from_str(&place.read("json.out")).unwrap();
        fits(&json, &schema, "report");
        assert_eq!((&json["looked"], &json["exit_code"], json["findings"].as_array().unwrap().len()), (&false.into(), &1.into(), 0));
        assert_eq!(json["diagnostics"][0]["severity"], "error");
        let junit = place.read("junit.out");
        assert!(
            junit.contains("tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\"")
                && junit.contains("<error message=\"nothing could be looked at\">"),
            "{junit}"
        );
        let sarif: Json = serde_json::from_str(&place.read("sarif.out")).unwrap();
        let invocation = &sarif["runs"][0]["invocations"][0];
        assert_eq!((&invocation["executionSuccessful"], &invocation["exitCode"]), (&false.into(), &1.into()));
        assert_eq!(
            (&invocation["toolExecutionNotifications"][0]["level"], &sarif["runs"][0]["results"]),
            (&"error".into(), &serde_json::json!([]))
        );
        assert!(
            place.read("markdown.out").starts_with("## Nothing could be looked at\n\nNothing seen, tried 2"),
            "{}",
            place.read("markdown.out")
        );
        assert!(
            place.read("html.out").contains("Nothing could be looked at")
                && place.read("human.out").ends_with("\nNothing could be looked at.\n")
        );
        let slack: Json = serde_json::from_str(&place.read("slack.out")).unwrap();
        assert!(slack["text"].as_str().unwrap().starts_with("*Nothing could be looked at*\n• "), "{slack}");
        let alerts: Json = serde_json::from_str(&place.read("alertmanager.out")).unwrap();
        assert_eq!((alerts.as_array().unwrap().len(), &alerts[0]["labels"]["alertname"]), (1, &"KarmaformDriftFailed".into()));
        // No count that looks as if all were well, and none of before.
        let metrics = place.read("prometheus.out");
        let series: Vec<&str> = metrics.lines().filter(|l| !l.starts_with('#')).map(|l| l.split(' ').next().unwrap()).collect();
        assert_eq!(series, ["karmaform_drift_failed", "karmaform_drift_exit_code", "karmaform_drift_timestamp_seconds"]);
        assert!(
            metrics.contains("karmaform_drift_failed 1\nkarmaform_drift") || metrics.contains("karmaform_drift_failed 1\n#"),
            "{metrics}"
        );
        let done = place.check(&["drift", "-json"], if file == "last.json" { 2 } else { 1 });
        let printed: Json = serde_json::from_str(&done.stdout).unwrap();
        assert_eq!(printed["looked"], file == "last.json");
        place.write(file, &before);
        let _ = std::fs::remove_file(place.path().join("last.json"));
    }
    place.check(&arguments, 2);
    assert!(place.read("prometheus.out").contains("karmaform_drift_failed 0\n"));
    let json: Json = serde_json::from_str(&place.read("json.out")).unwrap();
    assert_eq!(json["looked"], true);
}

#[test]
fn what_was_told_outlives_a_look_that_could_not_begin() {
    let place = drifted();
    let flags = ["drift", "-previous=last.json", "-report=json=last.json", "-report=slack=slack.json", "-report=alertmanager=alerts.json"];
    let read = |name: &str| -> Json { serde_json::from_str(&place.read(name)).unwrap() };
    place.check(&flags, 2);
    let good = place.read("main.kf.hcl");
    // As often as it may be: what was told is handed on, and its alerts stand.
    for _ in 0..2 {
        place.write("main.kf.hcl", "resource {");
        place.check(&flags, 1);
        let (report, alerts) = (read("last.json"), read("alerts.json"));
        assert_eq!((report["carried"].as_array().unwrap().len(), report["gone"].as_array().unwrap().len()), (3, 0));
        let names: Vec<&str> = alerts.as_array().unwrap().iter().map(|a| a["labels"]["alertname"].as_str().unwrap()).collect();
        assert_eq!(names, ["KarmaformDriftFailed", "KarmaformDrift", "KarmaformDrift", "KarmaformDrift"]);
        assert!(
            alerts
                .as_array()
                .unwrap()
                .iter()
                .all(|a| a["endsAt"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap() > jiff::Timestamp::now())
        );
        assert!(place.read("slack.json").contains("Nothing could be looked at"));
    }
    place.write("main.kf.hcl", &good);
    place.check(&flags, 2);
    let report = read("last.json");
    assert!(
        report["findings"].as_array().unwrap().iter().all(|f| f["new"] != true) && report["gone"].as_array().unwrap().is_empty(),
        "{report:#}"
    );
    assert_eq!(place.read("slack.json"), "");
    // A file that is no report may be what was told last all the same: it stays, and everything else is written.
    place.write("last.json", "no report");
    place.check(&flags, 1);
    assert!(place.read("last.json") == "no report" && place.read("slack.json").contains("Previous report can't be read"));
}
