//! The operation `ssh_stop`: units of systemd do not run any more, and do not start with their host either: what starts and enables them again is their own
//! change.
//! And the gate `ssh_runs`: they run, and have done so for a while.

use std::sync::LazyLock;
use std::time::Duration;

use karmaform_model::{Attribute, BoxFuture, Diagnostic, Gate, GateAnswer, Object, Operation, Schema, Type, Value};

use crate::client::{Act, Client};
use crate::failure;
use crate::host::Output;
use crate::script::words;

/// How long all of them may take to end, in seconds.
const LIMIT: u64 = 120;
/// How long a unit has to have run, in seconds: what misses something at its start ends a moment later.
const STEADY: u64 = 5;
/// How long they are given to end by themselves, in seconds: nobody can do anything meanwhile, and API servers go on for 10 s and wait for watches then, which
/// others hold as long as they can.
const GRACE: u64 = 12;

fn schema(what: &'static str) -> Schema {
    Schema::new(
        what,
        vec![
            Attribute::required("host", Type::Any, "Connection to the host."),
            Attribute::required("units", Type::list(Type::String), "Their names: `etcd-main.service`. One that is not there does not run."),
        ],
    )
    .through("host")
}

static STOPS: LazyLock<Schema> =
    LazyLock::new(|| schema("Stops units of systemd on a host, keeps them from starting with it, and waits until they have ended."));
static RUNS: LazyLock<Schema> = LazyLock::new(|| schema("Waits until units of systemd run on a host."));

/// The scripts, behind `set -- UNIT...`: what is told is not as it is to be. What is not there can't be stopped, which is no failure.
const STOP: &str = "for unit; do systemctl disable -- \"$unit\" 2>/dev/null; done
timeout \"$grace\" systemctl stop -- \"$@\" 2>/dev/null
[ $? -ne 124 ] || systemctl kill --signal=KILL -- \"$@\" 2>/dev/null
systemctl stop -- \"$@\" 2>/dev/null
section left
for unit; do
    state=$(systemctl show -p ActiveState --value -- \"$unit\")
    case $state in inactive | failed) ;; *) echo \"$unit is $state\" ;; esac
    [ \"$(systemctl is-enabled -- \"$unit\" 2>/dev/null)\" != enabled ] || echo \"$unit is enabled\"
done";
// A container may have an uptime of its own, which is less than what systemd counts by: nothing can be told there.
const LOOK: &str = "section left
read -r now _ </proc/uptime
for unit; do
    state=$(systemctl show -p ActiveState --value -- \"$unit\")
    since=$(systemctl show -p ActiveEnterTimestampMonotonic --value -- \"$unit\")
    age=$((${now%.*} - ${since:-0} / 1000000))
    if [ \"$state\" != active ]; then echo \"$unit is $state\"
    elif [ \"$age\" -ge 0 ] && [ \"$age\" -lt \"$steady\" ]; then echo \"$unit runs for a moment only\"
    fi
done";

/// Units as a script has them that is about these.
fn script(arguments: &Object, script: &str) -> (Vec<String>, String) {
    let units = arguments.get("units").and_then(Value::as_items).into_iter().flatten().filter_map(Value::as_str);
    let units: Vec<String> = units.map(str::to_owned).collect();
    let body = format!("set -- {}\n{script}", words(&units));
    (units, body)
}

/// What is not as it is to be, or what it means that nothing is.
fn judged(client: &Client, what: &str, output: &Output, passed: &str) -> Result<GateAnswer, Diagnostic> {
    if output.status != 0 || output.reason().is_some() {
        return Err(failure::failed(&format!("{what} on {}", client.place()), output, &[]));
    }
    let left = String::from_utf8_lossy(output.section("left").unwrap_or_default()).into_owned();
    Ok(match left.trim() {
        "" => GateAnswer::Passed(passed.to_owned()),
        left => GateAnswer::Waiting(left.lines().collect::<Vec<_>>().join(", ")),
    })
}

/// The gate `ssh_runs`.
pub(crate) struct Runs;

impl Gate<Client> for Runs {
    fn name(&self) -> &'static str {
        "ssh_runs"
    }

    fn schema(&self) -> &Schema {
        &RUNS
    }

    fn check<'a>(&'a self, client: &'a Client, arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async move {
            let (units, body) = script(arguments, LOOK);
            let body = format!("steady={STEADY}\n{body}");
            let what = format!("Looking at {}", units.join(", "));
            let output = client.run(Act::new(what.as_str(), body)).await?;
            judged(client, &what, &output, "they run")
        })
    }
}

/// The operation `ssh_stop`.
pub(crate) struct Stop;

impl Operation<Client> for Stop {
    fn name(&self) -> &'static str {
        "ssh_stop"
    }

    fn schema(&self) -> &Schema {
        &STOPS
    }

    fn attempt<'a>(&'a self, client: &'a Client, arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async move {
            let (units, body) = script(arguments, STOP);
            let body = format!("grace={GRACE}\n{body}");
            let what = format!("Stopping {}", units.join(", "));
            let output = client.change(Act::new(what.as_str(), body).with_timeout(Duration::from_secs(LIMIT))).await?;
            judged(client, &what, &output, "none runs")
        })
    }
}
