//! Puts a file from a release on a host: from what the host kept, or sent to it, as little of it as can be.

use std::sync::Arc;
use std::time::Duration;

use karmaform_model::{Change, Diagnostic, Object};

use super::{KIND, changed, supply};
use crate::artifact::Ready;
use crate::client::{Act, Client};
use crate::failure;
use crate::host::Payload;
use crate::look::{Content, Look, Seen};
use crate::script::quote;
use crate::sum::sha256;
use crate::types::placed::{check_of, ownership};
use crate::values::{secrets, text};

/// What scripts of this type may use.
const FUNCTIONS: &str = include_str!("artifact.sh");

/// What a slow line does in a second: 32 KiB. What moves more slowly, as others share the line, is waited for, too; what stands still for as long as this
/// would take is not, and so long another run stays off the host.
const SLOWEST: u64 = 32 << 10;

/// How long a file may take from one place on a host to another.
const COPYING: Duration = Duration::from_secs(180);

/// Files smaller than this are sent in one go: to ask how much of one is there would cost as much.
const LARGE: u64 = 1 << 20;

/// Does one change. Gives what is there after it; `None` if the file is gone.
pub(super) async fn apply(client: &Client, change: &Change) -> Result<Option<Seen>, Diagnostic> {
    let Some(object) = change.after().or(change.before()) else { return Ok(None) };
    let path = text(object, "path").unwrap_or_default();
    let word = quote(path);
    let Some(after) = change.after() else {
        let (keep, drop) = match text(object, "previous") {
            // That nothing can be kept, for want of room, is no reason to keep everything.
            Some(kept) => {
                (format!("( keep_previous {word} {} ) >/dev/null 2>&1\n", quote(kept)), format!("\ndrop_previous {}", quote(kept)))
            }
            None => Default::default(),
        };
        let parts = format!("rm -f \"$kf_parts\"/*-{}", place_of(path));
        let remove = format!("refuse_links {word}\n{keep}rm -f {word} || fail write {word}\n{parts}");
        let body = format!("{FUNCTIONS}\n{remove}\nrelease {KIND} {word} {word}{drop}");
        client.act(Act::new(format!("Deleting {path}"), body).with_timeout(COPYING)).await?;
        return Ok(None);
    };
    let file = |path: &str| Look::File { path: path.to_owned(), content: Content::Never };
    let kept_in = |directory: &str| format!("{directory}/{}", path.rsplit('/').next().unwrap_or_default());
    let kept = text(after, "previous").map(kept_in);
    let kept_before = change.before().and_then(|b| text(b, "previous")).map(kept_in).filter(|before| Some(before) != kept.as_ref());
    let there = client.look(&[path, kept.as_deref().unwrap_or(path)].map(file)).await?;
    let is_create = matches!(change, Change::Create { .. });
    if is_create && there.path(path)?.is_some() && !there.owned.has(KIND, path) {
        return Err(failure::foreign(&format!("Installing on {}", client.place()), path));
    }
    let sum_at = |path: &str| there.paths.get(path).and_then(|p| p.as_ref().ok()?.sha256.as_deref());
    let planned = text(after, "content_sha256");
    let target = Target { path, after, kept_before };
    // what the host has already is not fetched: repairing a mode must not need the network, nor going back to what was there before
    let from_host = |sum: &str| match kept.as_deref().filter(|k| sum_at(k) == Some(sum)) {
        _ if sum_at(path) == Some(sum) => Some(target.permit()),
        kept => kept.map(|kept| target.take(kept, sum)),
    };
    let act = match planned.and_then(from_host) {
        Some(act) => act,
        None => {
            let ready = client.store.get(&supply(after)).await?;
            if let Some(planned) = planned.filter(|planned| *planned != ready.sha256) {
                return Err(changed(after, planned, &ready.sha256));
            }
            match from_host(&ready.sha256) {
                Some(act) => act,
                None => target.send(client, &ready).await?,
            }
        }
    };
    let act = act.with_secrets(secrets(after, &["check"])).then_look(vec![file(path)]);
    client.act(act).await.map(Some)
}

/// What is to be where.
struct Target<'a> {
    path: &'a str,
    after: &'a Object,
    /// What was kept where nothing is kept any more.
    kept_before: Option<String>,
}

/// Tells the parts of a file from those of others on the same host.
fn place_of(path: &str) -> String {
    sha256(path.as_bytes())[..8].to_owned()
}

impl Target<'_> {
    fn mode(&self) -> String {
        quote(text(self.after, "mode").unwrap_or("0755"))
    }

    /// A script that works on it once it is claimed.
    fn script(&self, body: &str) -> String {
        let word = quote(self.path);
        let drop = self.kept_before.as_ref().map(|kept| format!("\ndrop_kept {}", quote(kept))).unwrap_or_default();
        format!("{FUNCTIONS}\nrefuse_links {word}\nclaim {KIND} {word} {word}\n{body}{drop}")
    }

    /// The words that put standard input there.
    fn install(&self, sum: &str) -> String {
        let (previous, check) = (quote(text(self.after, "previous").unwrap_or_default()), quote(&check_of(self.after)));
        format!("install_release {} {sum} {} {} {previous} {check}", quote(self.path), ownership(self.after), self.mode())
    }

    /// It is the right file already.
    fn permit(&self) -> Act {
        let body = self.script(&format!("permit {} {} {}", quote(self.path), ownership(self.after), self.mode()));
        Act::new(format!("Setting owner and mode of {}", self.path), body)
    }

    /// From what was kept. It is opened before something else is kept in its place.
    fn take(&self, kept: &str, sum: &str) -> Act {
        let word = quote(kept);
        let body = self.script(&format!("[ -r {word} ] || fail write {word}\nexec 4<{word}\n{} <&4", self.install(sum)));
        Act::new(format!("Installing {} from what was kept", self.path), body).with_timeout(COPYING)
    }

    /// From here. What is large is compressed if the host can read that, and what has arrived of it before is not sent again.
    async fn send(&self, client: &Client, ready: &Arc<Ready>) -> Result<Act, Diagnostic> {
        let what = format!("Installing {}", self.path);
        if ready.size < LARGE {
            let body = self.script(&self.install(&ready.sha256));
            return Ok(Act::new(what, body).with_payload(Payload::File(Arc::clone(&ready.file), 0)));
        }
        let packed = client.store.packed(ready).await?;
        // The same file may be on its way to another place there.
        let place = place_of(self.path);
        let names = [&packed, ready].map(|sent| format!("{}-{place}", sent.sha256));
        let asked = Act::new(format!("Looking for parts of {}", self.path), format!("{FUNCTIONS}\nparts {}", names.join(" ")));
        let output = client.run(asked).await?;
        let said = String::from_utf8_lossy(output.section("parts").unwrap_or_default()).into_owned();
        let mut said = said.split_whitespace();
        let reads_packed = said.next() == Some("gzip") && packed.size < ready.size;
        let mut here = said.map(|n| n.parse::<u64>().unwrap_or(0));
        let here = [here.next(), here.next()].map(Option::unwrap_or_default);
        let [packed_name, plain_name] = &names;
        let (sent, reader, name, here) =
            if reads_packed { (&packed, "gzip -dc", packed_name, here[0]) } else { (ready, "cat", plain_name, here[1]) };
        // More than all of it is something else.
        let here = if here <= sent.size { here } else { 0 };
        let missing = sent.size - here;
        let received = format!("receive {name} {here} {} {}\nexec 4<\"$kf_part\"\nforget_part", sent.size, sent.sha256);
        let body = self.script(&format!("{received}\n{} '{reader}' <&4", self.install(&ready.sha256)));
        let act = Act::new(what, body).with_payload(Payload::File(Arc::clone(&sent.file), here));
        Ok(act.with_timeout(Duration::from_secs(120 + missing / SLOWEST)))
    }
}
