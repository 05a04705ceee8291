//! `ssh_directory`: a directory, deleted with its contents only if the configuration says so.

use karmaform_model::{
    Ask, Attribute, BoxFuture, Change, Diagnostic, Diagnostics, Object, PlanContext, ResourceSpec, Schema, Type, Value, default_plan,
};

mod essential;
mod moving;

use super::forgotten::{FORGOTTEN, care_of_forgotten, forgotten, is_forgotten, told_again};
use super::placed::{at_path, foreign, host, other_kind, ownership, permissions, permissions_seen, refuse, sealed, word};
use crate::checks::{Checks, is_protected};
use crate::client::{Act, Client};
use crate::connection::place_of;
use crate::look::{Look, PathKind, PathSeen, Seen};
use crate::owned::{ADOPTED, MOVING, PARENT};
use crate::script::quote;
use crate::typed::{SshType, comparable, finished, is_foreign};
use crate::values::{boolean, text};

const KIND: &str = "ssh_directory";

/// Deletes a directory that must be empty; else names a few of the things in it.
const REMOVE: &str = r#"
if [ -d "$path" ] && [ ! -h "$path" ]; then
  if ! rmdir "$path" 2>/dev/null; then
    inside= count=0
    for entry in "$path"/* "$path"/.[!.]* "$path"/..?*; do
      if [ -e "$entry" ] || [ -h "$entry" ]; then
        count=$((count + 1))
        if [ "$count" -le 5 ]; then inside="$inside${inside:+, }${entry##*/}"; fi
      fi
    done
    if [ "$count" -gt 5 ]; then inside="$inside and $((count - 5)) more"; fi
    if [ "$count" -gt 0 ]; then fail occupied "$inside"; fi
    rmdir "$path" || fail write "$path"
  fi
elif [ -e "$path" ] || [ -h "$path" ]; then
  fail kind "$path"
fi
"#;

/// Whether it was there before us. What is mounted there was, whatever the host has forgotten (say, since this was done already).
const FOUND: &str = r#"
found() {
  is_owned adopted "$path" && return 0
  if is_owned ssh_directory "$path" || [ ! -d "$path" ] || [ -h "$path" ]; then return 1; fi
  set -- $(stat -c %d -- "$path" "$path/..")
  [ "$1" != "$2" ]
}
"#;

/// Empties a directory that was there before us, if it may, and leaves it with what its file system began with. Never crosses into
/// what is mounted inside.
const EMPTY: &str = r#"
if [ -d "$path" ] && [ ! -h "$path" ] && ! is_empty "$path"; then
  device=$(stat -c %d -- "$path") || fail write "$path"
  inside= count=0
  for entry in "$path"/* "$path"/.[!.]* "$path"/..?*; do
    case $entry in "$path/lost+found") continue ;; esac
    if [ -e "$entry" ] || [ -h "$entry" ]; then
      if $purge && [ "$(stat -c %d -- "$entry")" = "$device" ]; then
        rm -rf --one-file-system -- "$entry" || fail write "$entry"
      else
        count=$((count + 1))
        if [ "$count" -le 5 ]; then inside="$inside${inside:+, }${entry##*/}"; fi
      fi
    fi
  done
  if [ "$count" -gt 5 ]; then inside="$inside and $((count - 5)) more"; fi
  if [ "$count" -gt 0 ]; then fail occupied "$inside"; fi
fi
"#;

/// Makes it, or takes it over; with `adopt` also one that is there and empty, which then is not ours to remove.
const MAKE: &str = r#"
if [ -h "$path" ] || { [ -e "$path" ] && [ ! -d "$path" ]; }; then fail kind "$path"; fi
if $adopt && [ -d "$path" ] && ! is_owned ssh_directory "$path" && ! is_owned parent "$path"; then
  is_owned adopted "$path" || is_empty "$path" || fail exists "$path"
  own adopted "$path"
elif [ -d "$path" ] && found; then
  own adopted "$path"
elif ! is_owned adopted "$path" || [ ! -d "$path" ]; then
  claim ssh_directory "$path" "$path"
  disown adopted "$path"
fi
disown parent "$path"
disown moved "$path"
[ -d "$path" ] || mkdir "$path" || fail write "$path"
chown "$owner" "$path" || fail owner
chmod "$mode" "$path" || fail write "$path"
"#;

/// Deletes it with everything in it, but nothing that is mounted there.
const PURGE: &str = r#"
if [ -e "$path" ] || [ -h "$path" ]; then rm -rf --one-file-system "$path" || fail write "$path"; fi
"#;

/// The type.
pub(crate) struct Directory {
    schema: Schema,
}

impl Directory {
    /// With its schema.
    pub(crate) fn new() -> Self {
        let mut attributes = vec![
            host(),
            Attribute::required("path", Type::String, "Absolute path on the host. Directories above it that are missing are made.")
                .identity(),
            Attribute::optional(
                "purge",
                Type::Bool,
                "Whether to delete everything in it when the directory is deleted. Without it, only an empty directory is deleted.",
            )
            .or(false),
            Attribute::computed("empty", Type::Bool, "Whether nothing is in it.").volatile(),
            Attribute::computed("instead", Type::String, "What somebody put into its place, in the host's words: \"symbolic link\".")
                .volatile(),
            Attribute::computed("care", Type::list(Type::String), "What it or the directory above it is in need of, a sentence each.")
                .volatile(),
            forgotten(),
            foreign(),
        ];
        attributes.extend(permissions("0755"));
        attributes.extend(moving::attributes());
        attributes.extend(essential::attributes());
        Self { schema: Schema::new("A directory on a host.", attributes).through("host").leaves_note() }
    }
}

impl ResourceSpec for Directory {
    fn name(&self) -> &'static str {
        KIND
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn plan(&self, _: &PlanContext, before: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostics> {
        // Whether what a link leads to is what was here, nobody can tell: it may be all that there is of it.
        if let Some((before, instead)) = before.and_then(|b| Some((b, text(b, "instead")?))) {
            let path = text(before, "path").unwrap_or("the directory");
            return Err(other_kind(path, &place_of(before), instead, "directory").into());
        }
        if !wanted.is_some_and(moving::moves) {
            before.map_or(Ok(()), moving::may_go)?;
        }
        let Some(wanted) = wanted else {
            return Ok(default_plan(&self.schema, before, None));
        };
        let checks = Checks::of(wanted).path("path").mode().names(&["owner", "group"]);
        if boolean(wanted, "purge") == Some(true) { checks.deletable("path") } else { checks }.done()?;
        moving::check(wanted)?;
        essential::check(wanted)?;
        essential::may_begin(before, wanted)?;
        if let Some(moved) = before.and_then(|before| moving::plan(&self.schema, before, wanted)) {
            return moved;
        }
        let foreign = before.filter(|b| is_foreign(b));
        if let Some(before) = foreign.filter(|b| boolean(b, "empty") != Some(true)) {
            let hint = "Or empty it: an empty one, as of a disk that was mounted there, is used as it is.";
            return Err(refuse(wanted, text(before, "path").unwrap_or("the directory"), Some(hint)));
        }
        let before = before.map(|b| comparable(&self.schema, b, wanted));
        match (default_plan(&self.schema, before.as_ref(), Some(wanted)), before) {
            // it must be written down on the host that it was there before; or something was begun there
            (Change::NoOp { object: after }, Some(before))
                if foreign.is_some() || boolean(&before, "moving") == Some(true) || is_forgotten(&before) =>
            {
                Ok(Change::Update { before, after })
            }
            (change, _) => Ok(change),
        }
    }

    fn impact(&self, change: &Change) -> Vec<String> {
        if let Some(line) = moving::impact(change) {
            return vec![line];
        }
        if let Some(line) = told_again(change) {
            return vec![line];
        }
        let (Change::Delete { before } | Change::Replace { before, .. }) = change else { return Vec::new() };
        let loses = boolean(before, "purge") == Some(true) && boolean(before, "empty") != Some(true);
        let path = text(before, "path").unwrap_or("the directory");
        if loses { vec![format!("data in {path} on {} will be deleted", place_of(before))] } else { Vec::new() }
    }
}

impl SshType for Directory {
    fn looks(&self, identity: &Object, known: Option<&Object>) -> Vec<Look> {
        let Some(path) = text(identity, "path") else { return Vec::new() };
        let above = path.rsplit_once('/').map(|(above, _)| above).filter(|above| known.is_some() && !above.is_empty());
        [Some(path), above].into_iter().flatten().map(|path| Look::Directory { path: path.to_owned() }).collect()
    }

    fn looks_for(&self, ask: &Ask) -> Vec<Look> {
        self.looks(&ask.identity, ask.known.as_ref()).into_iter().chain(moving::looks(ask)).chain(essential::look(ask)).collect()
    }

    fn answer_for(&self, seen: &Seen, ask: &Ask) -> Result<Option<Object>, Diagnostic> {
        let there = self.answer(seen, &ask.identity, ask.known.as_ref())?;
        Ok(essential::answer(seen, ask, moving::answer(seen, ask, there)?))
    }

    fn answer(&self, seen: &Seen, identity: &Object, known: Option<&Object>) -> Result<Option<Object>, Diagnostic> {
        let path = text(identity, "path").unwrap_or_default();
        if let (Some(_), Some(found)) = (known, seen.path(path)?.filter(|found| found.kind != PathKind::Directory)) {
            return Ok(Some(replaced(found, path, known)));
        }
        let Some(found) = at_path(seen, path, &PathKind::Directory)? else { return Ok(moving::under_way(seen, path)) };
        let mut object = moving::seen_now(seen, found, path, known);
        let ours = [KIND, PARENT, ADOPTED, MOVING].iter().any(|kind| seen.owned.has(kind, path));
        object.insert("foreign".to_owned(), (known.is_none() && !ours).into());
        let is_forgotten = known.is_some() && !ours && seen.is_all_owned;
        let mut care: Vec<String> = is_forgotten.then(care_of_forgotten).into_iter().collect();
        if let (Some(_), Some((above, _))) = (known, path.rsplit_once('/'))
            && let Ok(Some(parent)) = seen.path(above)
            && parent.kind == PathKind::Directory
        {
            care.extend(above_it(above, parent, found));
        }
        care.extend(known.and_then(|_| sealed(seen, path)));
        object.insert(FORGOTTEN.to_owned(), is_forgotten.into());
        object.insert("care".to_owned(), Value::strings(care));
        Ok(Some(object))
    }

    fn apply<'a>(&'a self, client: &'a Client, change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            let path = |object| text(object, "path").unwrap_or_default();
            let Some(after) = change.after() else {
                let Some(before) = change.before() else { return Ok(None) };
                client.act(deletion(before)?).await?;
                return Ok(None);
            };
            // what the state knows was made by us, whatever the host has forgotten
            let adopt = matches!(change, Change::Create { .. }) || change.before().is_some_and(is_foreign);
            let body = format!(
                "path={}\nmode={}\nowner={}\nadopt={adopt}\n{}{FOUND}{MAKE}",
                quote(path(after)),
                quote(text(after, "mode").unwrap_or("0755")),
                ownership(after),
                moving::script(change),
            );
            let looks = vec![Look::Directory { path: path(after).to_owned() }];
            let what = match moving::sources(change).first() {
                Some(from) => format!("Moving the directory {from} to {}", path(after)),
                None => format!("Making the directory {}", path(after)),
            };
            let mut act = Act::new(what, body).then_look(looks);
            if let Some(limit) = moving::limit(change) {
                act = act.with_timeout(limit);
            }
            let seen = client.act(act).await?;
            finished(self, &seen, after)
        })
    }
}

/// What is wrong with the directory above one.
fn above_it(path: &str, parent: &PathSeen, below: &PathSeen) -> Option<String> {
    let is_open = parent.mode & 0o002 != 0 && parent.mode & 0o1000 == 0;
    // Root gets everywhere.
    let needs_way = |bits: u32, own: &String, above: &String| below.mode & bits != 0 && own != above && own != "root";
    let is_for_others = needs_way(0o700, &below.owner, &parent.owner) || needs_way(0o070, &below.group, &parent.group);
    if is_open {
        return Some(format!("anybody may put something else into its place: {path} has the mode {:04o}", parent.mode));
    }
    (is_for_others && parent.mode & 0o011 == 0)
        .then(|| format!("only {} gets to it: {path} has the mode {:04o}", parent.owner, parent.mode))
}

/// What was seen of it at a path.
fn seen_there(found: &PathSeen, path: &str, known: Option<&Object>) -> Object {
    let mut object = permissions_seen(found, known);
    object.insert("path".to_owned(), path.into());
    object.insert("empty".to_owned(), found.empty.into());
    object
}

/// What was seen in the place of one that is known: it is there, and not as it was made.
fn replaced(found: &PathSeen, path: &str, known: Option<&Object>) -> Object {
    let mut object = seen_there(found, path, known);
    object.insert("empty".to_owned(), false.into());
    object.insert("instead".to_owned(), word(&found.kind).into());
    object.insert("foreign".to_owned(), false.into());
    object
}

fn deletion(before: &Object) -> Result<Act, Diagnostic> {
    let path = text(before, "path").unwrap_or_default();
    let purge = boolean(before, "purge") == Some(true);
    // Checked when planning, and here again: the one command that can destroy a host must not depend on one check.
    if purge && is_protected(path) {
        return Err(Diagnostic::error("Protected path", format!("{path} is part of the system and is not deleted with its contents.")));
    }
    let remove = if purge { PURGE } else { REMOVE };
    let body = format!(
        "path={}\npurge={purge}\n{}{FOUND}if found; then\n{EMPTY}\ndisown {ADOPTED} \"$path\"\nelse\n{remove}\n\
         release {KIND} \"$path\" \"$path\"\nfi\n{}",
        quote(path),
        moving::STAYS,
        moving::FORGET,
    );
    let act = Act::new(format!("Deleting the directory {path}"), body);
    Ok(if purge { act.with_timeout(std::time::Duration::from_secs(600)) } else { act })
}

#[cfg(test)]
mod tests;
