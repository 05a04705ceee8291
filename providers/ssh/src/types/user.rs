//! `ssh_user`: a user of the host, with a group of the same name.

use karmaform_model::{
    Attribute, BoxFuture, Change, Diagnostic, Diagnostics, Object, PlanContext, ResourceSpec, Schema, Type, Value, default_plan,
};

use super::forgotten::{FORGOTTEN, care_of_forgotten, forgotten, is_forgotten, told_again};
use super::placed::{foreign, host, refuse};
use crate::checks::Checks;
use crate::client::{Act, Client};
use crate::look::{Look, Seen};
use crate::script::quote;
use crate::typed::{SshType, comparable, finished, is_foreign};
use crate::values::{boolean, object, text};

const KIND: &str = "ssh_user";

/// The comment of accounts that we made.
const MARK: &str = "made by karmaform";

/// Groups whose members can become root, or read what root alone should: of Debian's and Red Hat's families, of docker and lxd.
const MIGHTY: &[&str] = &["root", "sudo", "wheel", "adm", "docker", "lxd", "incus-admin", "disk", "shadow"];

/// One change of users at a time: the tools lock /etc/passwd and give up at once if they can't.
const CREATE: &str = r#"
make_user() {
  # Somebody who wants the same one may have made it while this one waited for the lock.
  if getent passwd "$name" >/dev/null; then return 0; fi
  own ssh_user "$name"
  set -- --no-create-home --comment "$mark" --shell "$shell"
  if [ "$system" = true ]; then set -- "$@" --system; fi
  if [ -n "$home" ]; then set -- "$@" --home-dir "$home"; fi
  if getent group "$name" >/dev/null; then set -- "$@" --gid "$name"; else set -- "$@" --user-group; fi
  useradd "$@" -- "$name" || { disown ssh_user "$name"; fail useradd; }
}
if ! getent passwd "$name" >/dev/null; then
  locked make_user
elif ! has_group "$name" && is_owned ssh_user "$name"; then
  locked groupadd --gid "$(id -g -- "$name")" -- "$name" || fail useradd
fi
"#;

/// One that the host has forgotten and that says itself whose it is, it is told of again.
const CHANGE: &str = r#"
if [ "$(getent passwd "$name" | cut -d: -f5)" = "$mark" ]; then own ssh_user "$name"; fi
set -- --shell "$shell"
if [ -n "$home" ]; then set -- "$@" --home "$home"; fi
locked usermod "$@" -- "$name" || fail usermod
"#;

/// A user that is not ours stays. If nothing on the host says any more what is ours, the comment in the account does: it can't be the
/// state, which also knows users that were there before. One that others still need stays, too, with its line: whoever deletes it last
/// does it. 6: there is no such user any more.
const DELETE: &str = r#"
entry=$(getent passwd "$name")
is_marked() { case $entry in "$name":*:*:*:"$mark":*) return 0 ;; esac; return 1; }
is_needed() {
  uid=$(id -u -- "$name") || return 1
  grep -qsE "^Uid:.*[[:space:]]$uid([[:space:]]|\$)" /proc/[0-9]*/status && return 0
  [ -f "$kf_owned" ] || return 1
  set --
  while IFS=$kf_tab read -r kind identity rest; do
    case $identity in /*) set -- "$@" "$identity" ;; esac
  done <"$kf_owned"
  [ $# -gt 0 ] && stat -c %u -- "$@" 2>/dev/null | grep -qx "$uid"
}
if is_owned ssh_user "$name" || { [ ! -e "$kf_owned" ] && is_marked; }; then
  if [ -n "$entry" ]; then
    if is_needed; then exit 0; fi
    locked userdel -- "$name" >&2
    status=$?
    if [ "$status" != 0 ] && [ "$status" != 6 ]; then fail userdel; fi
  fi
  disown ssh_user "$name"
fi
"#;

/// The type.
pub(crate) struct User {
    schema: Schema,
}

impl User {
    /// With its schema.
    pub(crate) fn new() -> Self {
        let attributes = vec![
            host(),
            Attribute::required("name", Type::String, "Name of the user, and of its group.").identity(),
            Attribute::optional_computed("home", Type::String, "Home directory. It is not made; use an ssh_directory for that."),
            Attribute::optional("shell", Type::String, "Login shell.").or("/usr/sbin/nologin"),
            Attribute::optional("system", Type::Bool, "Whether its number is taken from those for system users.").or(true).forces_replace(),
            Attribute::computed(
                "care",
                Type::list(Type::String),
                "Of a user that karmaform made: what somebody gave it that is root's (its number, a group whose members can become root or read what it alone \
                 should), that its group is another one, and that the host does not remember any more whose it is.",
            )
            .volatile(),
            forgotten(),
            Attribute::computed("uid", Type::Number, "Number of the user."),
            Attribute::computed("gid", Type::Number, "Number of its group."),
            foreign(),
        ];
        let doc =
            "A user of a host. A user that exists already is used as it is if it fits, and is then left alone when this is destroyed.";
        Self { schema: Schema::new(doc, attributes).through("host").leaves_note().for_several() }
    }
}

impl ResourceSpec for User {
    fn name(&self) -> &'static str {
        KIND
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn plan(&self, _: &PlanContext, before: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostics> {
        let Some(wanted) = wanted else { return Ok(default_plan(&self.schema, before, None)) };
        let name_problem = |n: &str| {
            let good = n.len() <= 31
                && n.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
                && n.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c));
            (!good).then(|| "is no name of a user: small letters, digits, \"_\" and \"-\", not beginning with a digit".to_owned())
        };
        let no_colon = |p: &str| p.contains(':').then(|| "holds a colon, which /etc/passwd can't hold".to_owned());
        Checks::of(wanted).check("name", "Bad name", name_problem).path("home").path("shell").check("home", "Bad path", no_colon).done()?;
        let compared = before.map(|b| comparable(&self.schema, b, wanted));
        let change = default_plan(&self.schema, compared.as_ref(), Some(wanted));
        match before {
            Some(before) if is_foreign(before) && !change.is_no_op() => {
                let name = text(before, "name").unwrap_or("it");
                Err(refuse(
                    wanted,
                    &format!("the user \"{name}\" (with another home or shell)"),
                    Some("Or write its home and shell as they are, to use it."),
                ))
            }
            _ => Ok(match (change, compared.filter(is_forgotten)) {
                (Change::NoOp { object: after }, Some(before)) => Change::Update { before, after },
                (change, _) => change,
            }),
        }
    }

    fn impact(&self, change: &Change) -> Vec<String> {
        told_again(change).into_iter().collect()
    }
}

impl SshType for User {
    fn looks(&self, identity: &Object, _: Option<&Object>) -> Vec<Look> {
        text(identity, "name").map(|n| Look::User { name: n.to_owned() }).into_iter().collect()
    }

    fn answer(&self, seen: &Seen, identity: &Object, known: Option<&Object>) -> Result<Option<Object>, Diagnostic> {
        let name = text(identity, "name").unwrap_or_default();
        let Some(found) = seen.user(name)? else { return Ok(None) };
        let is_ours = seen.owned.has(KIND, name);
        let mighty = found.groups.iter().filter(|g| is_ours && MIGHTY.contains(&g.as_str()));
        let mut care: Vec<String> =
            mighty.map(|g| format!("somebody put it into the group {g}, and so gave it rights that are root's")).collect();
        if is_ours && found.uid == 0 {
            care.push("somebody gave it the number of root".to_owned());
        }
        if is_ours && found.is_elsewhere {
            care.push(format!("its group is not {name} any more: `usermod --gid {name} {name}` makes it that again"));
        }
        // The state knows users, too, that were there before.
        let is_forgotten = known.is_some() && !is_ours && seen.is_all_owned && found.comment == MARK;
        care.extend(is_forgotten.then(care_of_forgotten));
        Ok(Some(object([
            ("name", name.into()),
            ("home", found.home.as_str().into()),
            ("shell", found.shell.as_str().into()),
            ("care", Value::strings(&care)),
            (FORGOTTEN, is_forgotten.into()),
            ("uid", found.uid.into()),
            ("gid", found.gid.into()),
            ("foreign", (known.is_none() && !seen.owned.has(KIND, name)).into()),
        ])))
    }

    fn apply<'a>(&'a self, client: &'a Client, change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            let Some(object) = change.after().or(change.before()) else { return Ok(None) };
            let name = text(object, "name").unwrap_or_default();
            let variables = format!(
                "name={}\nmark={}\nshell={}\nhome={}\nsystem={}\n",
                quote(name),
                quote(MARK),
                quote(text(object, "shell").unwrap_or("/usr/sbin/nologin")),
                quote(text(object, "home").unwrap_or_default()),
                boolean(object, "system").unwrap_or(true)
            );
            let (what, body) = match change {
                Change::Delete { .. } => ("Deleting", DELETE),
                Change::Update { .. } => ("Changing", CHANGE),
                _ => ("Creating", CREATE),
            };
            let act = Act::new(format!("{what} the user {name}"), variables + body);
            let seen = client.act(act.then_look(vec![Look::User { name: name.to_owned() }])).await?;
            match change.after() {
                Some(after) => finished(self, &seen, after),
                None => Ok(None),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use karmaform_model::{Action, Type as T};

    fn plan(name: &str, shell: &str, foreign: bool) -> Result<Action, usize> {
        let wanted = object([("name", name.into()), ("shell", shell.into()), ("home", Value::null(T::String)), ("system", true.into())]);
        let before = object([
            ("name", name.into()),
            ("shell", "/bin/sh".into()),
            ("home", "/h".into()),
            ("uid", 9i64.into()),
            ("gid", 9i64.into()),
            ("foreign", foreign.into()),
        ]);
        User::new().plan(&PlanContext { now: 0 }, Some(&before), Some(&wanted)).map(|c| c.action()).map_err(|d| d.len())
    }

    #[test]
    fn a_foreign_user_is_used_if_it_fits_and_never_changed() {
        assert_eq!(plan("etcd", "/bin/sh", true), Ok(Action::NoOp));
        assert_eq!(plan("etcd", "/bin/bash", true), Err(1));
        assert_eq!(plan("etcd", "/bin/bash", false), Ok(Action::Update));
        assert_eq!(plan("9x", "bash", false), Err(2));
    }

    #[test]
    fn one_that_says_itself_whose_it_is_the_host_is_told_of_again() {
        use crate::look::UserSeen;
        let action = |comment: &str, is_all_owned: bool| {
            let (comment, home, shell) = (comment.into(), "/h".into(), "/s".into());
            let found = UserSeen { uid: 9, gid: 9, comment, home, shell, groups: Vec::new(), is_elsewhere: false };
            let seen = Seen { is_all_owned, users: [("etcd".to_owned(), found)].into(), ..Seen::default() };
            let known = object([("name", "etcd".into()), ("shell", "/s".into()), ("home", "/h".into()), ("system", true.into())]);
            let answer = User::new().answer(&seen, &known, Some(&known)).unwrap().unwrap();
            let change = User::new().plan(&PlanContext { now: 0 }, Some(&answer), Some(&known)).unwrap();
            (change.action(), answer["care"].as_items().map_or(0, <[Value]>::len), User::new().impact(&change).len())
        };
        assert_eq!(action(MARK, true), (Action::Update, 1, 1));
        assert_eq!(action("somebody", true), (Action::NoOp, 0, 0), "it was there before");
        assert_eq!(action(MARK, false), (Action::NoOp, 0, 0), "who is not root does not see what root keeps");
    }

    #[test]
    fn groups_that_make_root_of_it_are_told_of_users_that_are_ours() {
        use crate::look::UserSeen;
        use crate::owned::Owned;
        let of = |uid: i64, groups: &[&str], owned: &str, is_elsewhere: bool| {
            let groups = groups.iter().map(|g| (*g).to_owned()).collect();
            let found = UserSeen { uid, gid: 9, comment: String::new(), home: "/h".into(), shell: "/s".into(), groups, is_elsewhere };
            let seen = Seen { owned: Owned::parse(owned), users: [("etcd".to_owned(), found)].into(), ..Seen::default() };
            let answer = User::new().answer(&seen, &object([("name", "etcd".into())]), None).unwrap().unwrap();
            answer["care"].as_items().map_or(0, <[Value]>::len)
        };
        let care = |uid: i64, groups: &[&str], owned: &str| of(uid, groups, owned, false);
        let ours = "ssh_user\tetcd\t\n";
        assert_eq!((of(9, &["users"], ours, true), of(9, &["users"], "", true)), (1, 0), "its own group is another one");
        assert_eq!((care(9, &["sudo", "users"], ours), care(9, &["users"], ours), care(9, &["sudo"], "")), (1, 0, 0));
        assert_eq!((care(0, &[], ours), care(0, &[], "")), (1, 0));
    }
}
