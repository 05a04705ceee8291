//! The gate `ssh_unused`: nobody on a host's network has an address that is to be put on it.

use std::sync::LazyLock;

use karmaform_model::{Attribute, BoxFuture, Diagnostic, Gate, GateAnswer, Object, Schema, Type, Value};

use crate::client::{Act, Client};
use crate::failure;
use crate::script::{quote, words};
use crate::values::text;

/// The script, behind `address=`, `device=` and `set -- OWNER...`.
const SCRIPT: &str = include_str!("script/unused.sh");

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "Asks whether somebody on a host's network has an address, and fails if so. It writes nothing: it sends a packet, and looks at what the kernel finds out \
         for it, which forgets what it knew of that address before.",
        vec![
            Attribute::required("host", Type::Any, "Connection to the host that asks."),
            Attribute::required("address", Type::String, "The IP address."),
            Attribute::required("interface", Type::String, "The host's interface that leads to that network."),
            Attribute::optional("owners", Type::list(Type::String), "Addresses of those who may have it already."),
            Attribute::optional("advice", Type::String, "What to do if somebody has it."),
        ],
    )
    .through("host")
});

/// The gate `ssh_unused`.
pub(crate) struct Unused;

impl Gate<Client> for Unused {
    fn name(&self) -> &'static str {
        "ssh_unused"
    }

    fn schema(&self) -> &Schema {
        &SCHEMA
    }

    fn check<'a>(&'a self, client: &'a Client, arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async move {
            let (address, device) = (text(arguments, "address").unwrap_or_default(), text(arguments, "interface").unwrap_or_default());
            let what = format!("Asking who has {address}");
            let output = client.run(Act::new(what.as_str(), script(arguments))).await?;
            if output.status != 0 || output.reason().is_some() {
                return Err(failure::failed(&format!("{what} on {}", client.place()), &output, &[]));
            }
            let said = String::from_utf8_lossy(output.section("unused").unwrap_or_default()).into_owned();
            judge(said.trim(), address, &format!("{device} of {}", client.place())).map_err(|taken| match text(arguments, "advice") {
                Some(advice) => taken.with_hint(advice),
                None => taken,
            })
        })
    }
}

fn script(arguments: &Object) -> String {
    let word = |name: &str| quote(text(arguments, name).unwrap_or_default());
    let owners = arguments.get("owners").and_then(Value::as_items).into_iter().flatten().filter_map(Value::as_str);
    format!("address={}\ndevice={}\nset -- {}\n{SCRIPT}", word("address"), word("interface"), words(owners))
}

/// What the script said, in the words of a gate. `place` is where it asked.
fn judge(said: &str, address: &str, place: &str) -> Result<GateAnswer, Diagnostic> {
    let passed = |text: String| Ok(GateAnswer::Passed(text));
    let (word, more) = said.split_once(' ').unwrap_or((said, ""));
    match word {
        "nobody" => passed(format!("nobody has {address}")),
        "own" => passed(format!("{address} is on the host that was asked")),
        "ours" => passed(format!("{address} is on {more}")),
        "taken" => {
            let whose = if more.is_empty() { String::new() } else { format!(", with the hardware address {more}") };
            let detail =
                format!("Asked for at {place}, {address} answers{whose}. Two who have one address at once take it from each other.");
            let found = Diagnostic::error("An address that somebody has", detail);
            Err(found.with_hint(format!("`ip neigh show {address}` on that host, and the switches or the DHCP server, say who it is.")))
        }
        // Where a host has no tools for it, or a router answers for everybody, that is no reason to stop.
        _ => passed(format!("whether somebody has {address} can't be told")),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::values::object;

    /// What the script says where the kernel knows this of the address, and pings are answered or not.
    fn said(known: &str, is_answered: bool) -> String {
        said_anew(known, known, is_answered)
    }

    /// The same, where it finds out something else once it has forgotten that.
    fn said_anew(known: &str, anew: &str, is_answered: bool) -> String {
        let ip = "case $* in
            '-o addr show') echo '2: eth0    inet 10.0.0.1/24 brd 10.0.0.255 scope global eth0' ;;
            'neigh show to 10.0.0.9 dev eth0') echo \"$KNOWN\" ;;
            'neigh show to 10.0.0.2 dev eth0') echo '10.0.0.2 lladdr 02:00:00:00:00:02 REACHABLE' ;;
            'neigh show to 10.0.0.254 dev eth0') echo '10.0.0.254 lladdr 02:00:00:00:00:fe router STALE' ;;
            'neigh del 10.0.0.9 dev eth0') KNOWN=$ANEW ;;
            'route show default dev eth0') echo 'default via 10.0.0.254 proto dhcp' ;;
        esac";
        let arguments =
            object([("address", "10.0.0.9".into()), ("interface", "eth0".into()), ("owners", Value::strings(["10.0.0.1", "10.0.0.2"]))]);
        let text = format!("section() {{ :; }}\nip() {{ {ip}; }}\nping() {{ {is_answered}; }}\n{}", script(&arguments));
        let output = Command::new("sh").args(["-c", &text]).env("KNOWN", known).env("ANEW", anew).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    #[test]
    fn the_kernel_says_who_has_an_address() {
        assert_eq!(said("", false), "nobody");
        assert_eq!(said("10.0.0.9 FAILED", false), "nobody");
        assert_eq!(said("10.0.0.9 lladdr 02:00:00:00:00:77 REACHABLE", false), "taken 02:00:00:00:00:77");
        assert_eq!(said("10.0.0.9 lladdr 02:00:00:00:00:77 DELAY ", true), "taken 02:00:00:00:00:77");
        assert_eq!(said("", true), "taken", "behind a router");
        // What an apply that was cut off has put on one of the hosts.
        assert_eq!(said("10.0.0.9 lladdr 02:00:00:00:00:02 REACHABLE", true), "ours 10.0.0.2");
        // A router that answers for everybody; it can have the address itself.
        assert_eq!(said("10.0.0.9 lladdr 02:00:00:00:00:fe REACHABLE", false), "router");
        assert_eq!(said("10.0.0.9 lladdr 02:00:00:00:00:fe REACHABLE", true), "taken 02:00:00:00:00:fe");
    }

    #[test]
    fn who_has_left_an_address_does_not_have_it() {
        for word in ["REACHABLE", "STALE", "DELAY", "PROBE"] {
            let before = format!("10.0.0.9 lladdr 02:00:00:00:00:77 {word}");
            assert_eq!(said_anew(&before, "10.0.0.9 FAILED", false), "nobody", "{word}");
            let another = "10.0.0.9 lladdr 02:00:00:00:00:88 REACHABLE";
            assert_eq!(said_anew(&before, another, false), "taken 02:00:00:00:00:88", "{word}");
        }
    }

    #[test]
    fn who_has_it_is_named() {
        let check = |said: &str| match judge(said, "10.0.0.9", "eth0 of 10.0.0.1") {
            Ok(GateAnswer::Passed(seen) | GateAnswer::Waiting(seen)) => seen,
            Err(error) => format!("{}: {}", error.summary, error.detail),
        };
        assert_eq!(check("nobody"), "nobody has 10.0.0.9");
        assert_eq!(check("own"), "10.0.0.9 is on the host that was asked");
        assert_eq!(check("ours 10.0.0.2"), "10.0.0.9 is on 10.0.0.2");
        for word in ["router", "unknown", ""] {
            assert_eq!(check(word), "whether somebody has 10.0.0.9 can't be told");
        }
        let expected = "An address that somebody has: Asked for at eth0 of 10.0.0.1, 10.0.0.9 answers, with the hardware address \
                        02:00:00:00:00:77. Two who have";
        assert!(check("taken 02:00:00:00:00:77").starts_with(expected), "{}", check("taken 02:00:00:00:00:77"));
        assert!(check("taken").contains("10.0.0.9 answers. Two who have"), "{}", check("taken"));
    }
}
