//! What became of tests as JUnit's XML: a suite for each file, a case for each run. Source of the format: <https://github.com/testmoapp/junitxml>.

use super::{FileReport, RunReport, Status};
use crate::ui::json::timestamp;
use crate::ui::markup::escaped;

/// The report.
pub(crate) fn junit(reports: &[FileReport]) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"karmaform test\">\n");
    for report in reports {
        let count = |status: Status| report.runs.iter().filter(|r| r.status == status).count();
        let errors = count(Status::Errored) + usize::from(!report.says.is_empty());
        out.push_str(&format!(
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{errors}\" skipped=\"{}\">\n",
            escaped(&report.path),
            report.runs.len() + usize::from(!report.says.is_empty()),
            count(Status::Failed),
            count(Status::Skipped),
        ));
        let ended = report.runs.iter().find(|run| run.status == Status::Errored).map(|run| run.name.as_str());
        report.runs.iter().for_each(|run| out.push_str(&case(&report.path, run, ended)));
        if !report.says.is_empty() {
            out.push_str(&format!(
                "    <testcase name=\"tearing down\" classname=\"{}\">\n      <error message=\"Something is left\">{}</error>\n    </testcase>\n",
                escaped(&report.path),
                escaped(report.says.trim())
            ));
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

/// `ended`: the run that could not be brought to its end, so that none behind it was begun.
fn case(path: &str, run: &RunReport, ended: Option<&str>) -> String {
    let mut head = format!("    <testcase name=\"{}\" classname=\"{}\"", escaped(&run.name), escaped(path));
    if run.status != Status::Skipped {
        let began = timestamp(i64::try_from(run.began / 1000).unwrap_or(i64::MAX));
        head.push_str(&format!(" time=\"{}.{:03}\" timestamp=\"{began}\"", run.elapsed / 1000, run.elapsed % 1000));
    }
    let says = escaped(run.says.trim());
    let body = match run.status {
        Status::Passed => return format!("{head}/>\n"),
        Status::Skipped => match ended {
            Some(name) => format!(
                "<skipped message=\"a run before it could not be brought to its end\">The run \"{}\" ended in an error, so what follows it in this file was skipped.</skipped>",
                escaped(name)
            ),
            None => "<skipped message=\"a signal came before it was begun\"/>".to_owned(),
        },
        Status::Failed => format!("<failure message=\"{}\">{says}</failure>", escaped(&run.summary)),
        Status::Errored => format!("<error message=\"The run could not be brought to its end\">{says}</error>"),
    };
    format!("{head}>\n      {body}\n    </testcase>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_is_a_case() {
        let run = |name: &str, status, says: &str| RunReport {
            name: name.into(),
            status,
            says: says.into(),
            summary: "1 of 2 assertions failed: 1 < 2".into(),
            began: 1_700_000_000_000,
            elapsed: 1_500,
        };
        let runs = vec![
            run("a", Status::Passed, ""),
            run("b", Status::Failed, "1 < 2\n"),
            run("c", Status::Errored, "no"),
            run("d", Status::Skipped, ""),
        ];
        let text = junit(&[FileReport { path: "x.kftest.hcl".into(), status: Status::Errored, runs, says: String::new() }]);
        assert!(text.contains("<testsuite name=\"x.kftest.hcl\" tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\">"), "{text}");
        assert!(
            text.contains("<testcase name=\"a\" classname=\"x.kftest.hcl\" time=\"1.500\" timestamp=\"2023-11-14T22:13:20Z\"/>"),
            "{text}"
        );
        assert!(
            text.contains("<failure message=\"1 of 2 assertions failed: 1 &lt; 2\">1 &lt; 2</failure>")
                && text.contains(">no</error>")
                && text.contains("<testcase name=\"d\" classname=\"x.kftest.hcl\">\n      <skipped ")
                && text.contains(">The run \"c\" ended in an error, "),
            "{text}"
        );
    }
}
