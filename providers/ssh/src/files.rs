//! `data "ssh_files"`: what lies in a directory of a host.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use karmaform_model::{Attribute, BoxFuture, DataSource, Diagnostic, Object, Schema, Type, Value};

use crate::checks::path_problem;
use crate::client::{Act, Client};
use crate::failure;
use crate::host::Output;
use crate::look::{LARGEST_CONTENT, is_absence};
use crate::script::quote;
use crate::values::text;

/// The data source.
pub(crate) struct Files {
    schema: Schema,
}

impl Files {
    /// With its schema.
    pub(crate) fn new() -> Self {
        let attributes = vec![
            Attribute::required("host", Type::Any, "The connection to the host: `data.ssh_host.NAME.connection`."),
            Attribute::required("path", Type::String, "The directory, absolute."),
            Attribute::optional("read", Type::list(Type::String), "Names of files in it whose text is wanted, of 64 KiB at most each."),
            Attribute::computed("exists", Type::Bool, "Whether there is such a directory."),
            Attribute::computed(
                "sizes",
                Type::map(Type::Number),
                "The regular files in it, without those of directories in it: lengths in bytes by name.",
            ),
            Attribute::computed("contents", Type::map(Type::String), "The texts that are wanted, of files that are there and are text.")
                .secret(),
        ];
        Self { schema: Schema::new("The files in a directory of a host. Looks only.", attributes).through("host") }
    }
}

impl DataSource<Client> for Files {
    fn name(&self) -> &'static str {
        "ssh_files"
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read<'a>(&'a self, client: &'a Client, arguments: &'a Object) -> BoxFuture<'a, Result<Object, Diagnostic>> {
        Box::pin(async move {
            let path = text(arguments, "path").unwrap_or_default();
            if let Some(problem) = path_problem(path) {
                return Err(Diagnostic::error("Bad path of a directory", format!("The path {path:?} {problem}.")));
            }
            let names: Vec<&str> =
                arguments.get("read").and_then(Value::as_items).unwrap_or_default().iter().filter_map(Value::as_str).collect();
            if let Some(name) = names.iter().find(|name| name.contains('/') || name.is_empty() || name.contains('\0')) {
                let detail = format!("`read` has {name:?}, which is no name of a file in a directory.");
                return Err(Diagnostic::error("Bad name of a file", detail));
            }
            let what = format!("Looking into {path}");
            let output = client.run(Act::new(what.clone(), script(path, &names))).await?;
            let what = format!("{what} on {}", client.place());
            if output.status != 0 || output.truncated || output.section("end").is_none() {
                return Err(failure::failed(&what, &output, &[]));
            }
            let exists = exists(&what, &output)?;
            let mut object = arguments.clone();
            object.insert("exists".to_owned(), exists.into());
            object.insert("sizes".to_owned(), Value::map(Type::Number, sizes(&output)));
            object.insert("contents".to_owned(), Value::map(Type::String, contents(&output, &names)).secret());
            Ok(object)
        })
    }
}

fn script(path: &str, names: &[&str]) -> String {
    let reads = names.iter().enumerate().map(|(number, name)| {
        let file = quote(&format!("{path}/{name}"));
        format!(
            "section 'content {number}'\nif [ -f {file} ] && [ ! -h {file} ]; then head -c {} <{file} | base64; fi\n",
            LARGEST_CONTENT + 1
        )
    });
    let reads: String = reads.collect();
    let path = quote(path);
    format!(
        "section kind\nstat -L -c %F -- {path} 2>&1\nif [ -d {path} ]; then\nsection files\n\
         if [ ! -r {path} ] || [ ! -x {path} ]; then echo 'Permission denied' >&2; exit 1; fi\n\
         find {path}/ -maxdepth 1 -type f ! -name \"*$kf_line*\" -exec stat -c '%s %n' -- {{}} + 2>/dev/null\n{reads}fi\nsection end\n"
    )
}

/// Whether there is such a directory. What nobody could look at is neither there nor not.
fn exists(what: &str, output: &Output) -> Result<bool, Diagnostic> {
    let kind = String::from_utf8_lossy(output.section("kind").unwrap_or_default()).trim().to_owned();
    match kind.as_str() {
        "directory" => Ok(true),
        said if is_absence(said) || !said.starts_with("stat:") => Ok(false),
        said => Err(Diagnostic::error("A directory can't be looked into", format!("{what}: {}.", said.trim_start_matches("stat: ")))
            .with_hint("Let the user that logs in enter what is above it (\"namei -l\" on the host shows it), or log in as root.")),
    }
}

fn sizes(output: &Output) -> Object {
    let lines = String::from_utf8_lossy(output.section("files").unwrap_or_default()).into_owned();
    let of = |line: &str| {
        let (size, path) = line.split_once(' ')?;
        Some((path.rsplit('/').next()?.to_owned(), size.parse::<i64>().ok()?.into()))
    };
    lines.lines().filter_map(of).collect()
}

fn contents(output: &Output, names: &[&str]) -> Object {
    let of = |(number, name): (usize, &&str)| {
        let encoded: Vec<u8> = output.section(&format!("content {number}"))?.iter().copied().filter(|b| !b.is_ascii_whitespace()).collect();
        let bytes = STANDARD.decode(&encoded).ok().filter(|b| !encoded.is_empty() && b.len() as u64 <= LARGEST_CONTENT)?;
        Some(((*name).to_owned(), String::from_utf8(bytes).ok()?.into()))
    };
    names.iter().enumerate().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str) -> Output {
        let lines = text.lines().map(|l| l.strip_prefix('#').map_or_else(|| format!("{l}\n"), |n| format!("\nkfx {n}\n")));
        Output { stdout: lines.collect::<String>().into_bytes(), mark: "kfx".to_owned(), ..Output::default() }
    }

    #[test]
    fn what_nobody_could_look_at_is_neither_there_nor_not() {
        let exists = |output: &Output| exists("Looking into /d on h", output);
        assert_eq!(exists(&seen("#kind\ndirectory\n#files\n#end\n")), Ok(true));
        for gone in ["stat: cannot statx '/d': No such file or directory", "stat: cannot statx '/f/d': Not a directory", "regular file"] {
            assert_eq!(exists(&seen(&format!("#kind\n{gone}\n#end\n"))), Ok(false), "{gone}");
        }
        let why = exists(&seen("#kind\nstat: cannot statx '/d': Permission denied\n#end\n")).unwrap_err();
        assert_eq!(why.summary, "A directory can't be looked into");
        assert_eq!(why.detail, "Looking into /d on h: cannot statx '/d': Permission denied.");
        assert!(why.hints[0].contains("namei -l"), "{:?}", why.hints);
    }

    #[test]
    fn texts_that_are_too_long_or_none_are_left_out() {
        let long = STANDARD.encode(vec![b'x'; usize::try_from(LARGEST_CONTENT).unwrap() + 1]);
        let output = seen(&format!("#content 0\naGkK\n#content 1\n{long}\n#content 2\n/w==\n#content 3\n#end\n"));
        let found = contents(&output, &["a", "long", "bytes", "gone"]);
        assert_eq!(found, Object::from([("a".to_owned(), "hi\n".into())]));
    }
}
