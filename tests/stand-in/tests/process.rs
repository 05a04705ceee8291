//! The stand-in as a process: by its name it is one of Karmada's programs, and it says in one line what is wrong. (That there is this test
//! makes `cargo test` build the program, too.)

use std::os::unix::process::CommandExt;
use std::process::Command;

fn run(name: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_karmada-stand-in")).arg0(name).args(arguments).output().expect("the stand-in");
    assert!(output.stdout.is_empty());
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    for (name, arguments, words) in [
        ("/bin/karmada-scheduler", &["--secure-port=1"][..], "karmada-scheduler: unknown flag: --secure-port"),
        ("karmada-webhook", &["--kubeconfig=/none"], "karmada-webhook: --cert-dir is missing"),
        ("karmada-descheduler", &["--kubeconfig=/none"], "karmada-descheduler: --kubeconfig: /none can't be read: No such file"),
        ("karmada-descheduler", &["--kubeconfig=/dev/null"], "--kubeconfig: /dev/null is empty"),
        ("karmada-agent", &[], "its name says for which"),
    ] {
        let (code, text) = run(name, arguments);
        assert_eq!(code, Some(1), "{name}: {text}");
        assert!(text.contains(words) && text.lines().count() == 1, "{name}: {text}");
    }
}
