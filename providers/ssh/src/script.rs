//! Scripts for a host: how text becomes safe shell words, how a script gets there unseen, and how its output is told from noise.
//!
//! A script is never an argument of a process: what runs is a few fixed words that read so many bytes from standard input and carry them
//! out. What follows on standard input is the payload. Knows nothing of resource types.

use std::hash::{BuildHasher, Hasher, RandomState};

use karmaform_model::Diagnostic;

use crate::failure;
use crate::host::Output;

/// Functions that every script may use.
const PRELUDE: &str = include_str!("script/prelude.sh");

/// A script, ready to be sent.
pub(crate) struct Script {
    text: String,
    mark: String,
}

impl Script {
    /// Of these lines. They run in a subshell with the prelude's functions; `$kf` is the mark of the script's own lines.
    pub(crate) fn new(body: &str) -> Self {
        let mark = random_mark();
        let text =
            format!("kf={mark}\n{PRELUDE}\nprintf '%s begin\\n' \"$kf\"\n(\nguard\n{body}\n)\nprintf '\\n%s end %s\\n' \"$kf\" \"$?\"\n");
        Self { text, mark }
    }

    /// What goes to standard input.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The fixed words that read the script and carry it out. They hold nothing but its length. What sudo says is read here, so it is to say it in English.
    pub(crate) fn bootstrap(&self, sudo: bool) -> String {
        let length = self.text.len();
        // Some take more off a pipe than they are asked for, and the payload would have lost its beginning: that of busybox, which has no version.
        let read =
            format!("if head --version </dev/null >/dev/null 2>&1; then head -c {length}; else dd bs=1 count={length} 2>/dev/null; fi");
        if sudo {
            format!(
                "sh -c 'if [ \"$(id -u)\" = 0 ]; then exec sh -c \"$1\"; else LC_ALL=C; export LC_ALL; exec sudo -n -- sh -c \"$1\"; fi' sh \
                 'eval \"$({read})\"'"
            )
        } else {
            format!("sh -c 'eval \"$({read})\"'")
        }
    }

    /// What the script gave, once it is at its end; whatever a login shell printed around it is dropped.
    pub(crate) fn output(&self, stdout: &[u8], stderr: &[u8], truncated: bool) -> Option<Result<Output, Diagnostic>> {
        const END: usize = 256;
        let end = format!("\n{} end ", self.mark);
        let tail = stdout.len().saturating_sub(END);
        let at = tail + find(&stdout[tail..], end.as_bytes())?;
        let status = std::str::from_utf8(&stdout[at + end.len()..]).ok()?;
        let status = status.split_once('\n')?.0.parse().ok()?;
        let begin = format!("{} begin\n", self.mark);
        let Some(begun) = find(stdout, begin.as_bytes()).map(|b| b + begin.len()) else { return Some(Err(failure::garbled())) };
        Some(Ok(Output {
            status,
            stdout: stdout[begun.min(at)..at].to_vec(),
            stderr: String::from_utf8_lossy(stderr).into_owned(),
            mark: self.mark.clone(),
            truncated,
        }))
    }

    /// True if the script was reached at all.
    pub(crate) fn has_begun(&self, stdout: &[u8]) -> bool {
        find(stdout, format!("{} begin\n", self.mark).as_bytes()).is_some()
    }
}

impl Output {
    /// Why the script gave up, if it said so: a word, and a text for the reader.
    pub(crate) fn reason(&self) -> Option<(String, String)> {
        let text = String::from_utf8_lossy(&self.stdout);
        let start = format!("{} fail ", self.mark);
        let said = text.lines().find_map(|l| l.strip_prefix(&start))?;
        let (word, rest) = said.split_once(' ').unwrap_or((said, ""));
        Some((word.to_owned(), rest.to_owned()))
    }

    /// The part of the output below the line `mark NAME`, up to the next marked line.
    pub(crate) fn section(&self, name: &str) -> Option<&[u8]> {
        let start = format!("\n{} {name}\n", self.mark);
        let begin = find(&self.stdout, start.as_bytes())? + start.len();
        let rest = &self.stdout[begin..];
        let end = find(rest, format!("\n{} ", self.mark).as_bytes()).unwrap_or(rest.len());
        Some(&rest[..end])
    }
}

/// Where `needle` begins.
fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|w| w == needle)
}

/// 128 bits nobody can guess, so that no output looks like a marked line by chance or on purpose.
pub(crate) fn random_mark() -> String {
    let half = || RandomState::new().build_hasher().finish();
    format!("kf{:016x}{:016x}", half(), half())
}

/// One word of shell, whatever is in the text.
pub(crate) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Many words.
pub(crate) fn words<S: AsRef<str>>(items: impl IntoIterator<Item = S>) -> String {
    items.into_iter().map(|i| quote(i.as_ref())).collect::<Vec<_>>().join(" ")
}

/// Feeds a text to a command on the given file descriptor, byte by byte as it is (with a newline at its end).
pub(crate) fn here(descriptor: u8, text: &str) -> String {
    let end = random_mark();
    let newline = if text.ends_with('\n') { "" } else { "\n" };
    format!("{descriptor}<<'{end}'\n{text}{newline}{end}")
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    /// Runs a script here as it would run there.
    fn run(script: &Script, payload: &[u8], noise: &str) -> Output {
        let command = format!("{noise}{}", script.bootstrap(false));
        let mut child =
            Command::new("sh").arg("-c").arg(command).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(script.text().as_bytes()).unwrap();
        stdin.write_all(payload).unwrap();
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        script.output(&output.stdout, &output.stderr, false).unwrap().unwrap()
    }

    #[test]
    fn any_text_is_one_word() {
        let check = |text: &str| {
            let output = run(&Script::new(&format!("printf %s {}", quote(text))), b"", "");
            assert_eq!(String::from_utf8_lossy(&output.stdout), text);
        };
        check("");
        check("it's");
        check("'; rm -rf /; '");
        check("$HOME `id` \\ \" * \n\n tab\t ü 💥");
        check("-n");
    }

    #[test]
    fn a_script_is_followed_by_its_payload_and_noise_is_dropped() {
        let payload: Vec<u8> = (0..200_000u32).map(|i| (i % 251) as u8).collect();
        let output = run(&Script::new("sleep 0.05; wc -c; exit 7"), &payload, "echo noise; echo more >&2;");
        assert_eq!((output.status, String::from_utf8_lossy(&output.stdout).trim()), (7, "200000"));
        assert_eq!(output.stderr, "more\n");
    }

    #[test]
    fn a_head_that_reads_too_far_is_not_asked() {
        let stand_in = "at=$(mktemp -d) && printf '#!/bin/sh\\n[ \"$1\" = -c ] && cat\\n' >\"$at/head\" && chmod 755 \"$at/head\" || exit\nPATH=$at:$PATH ";
        let output = run(&Script::new("wc -c; rm -r \"${PATH%%:*}\""), &[7; 20_000], stand_in);
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "20000");
    }

    #[test]
    fn a_flock_that_does_not_know_how_long_to_wait_locks() {
        let stand_in = "at=$(mktemp -d) && printf '#!/bin/sh\\ncase \" $* \" in *\" -w \"*) exit 1 ;; esac\\nPATH=${PATH#*:} exec flock \"$@\"\\n' >\"$at/flock\" \
                        && chmod 755 \"$at/flock\" || exit\nPATH=$at:$PATH ";
        let output = run(&Script::new("locked echo done; rm -r \"${PATH%%:*}\""), b"", stand_in);
        assert_eq!((output.status, output.stdout.as_slice()), (0, &b"done\n"[..]));
    }

    #[test]
    fn what_is_noted_starts_few_programs() {
        // Each costs a host about a millisecond, and a first install notes some hundred things.
        let count =
            r#"for name in cat chmod mkdir mv rm; do eval "$name() { echo $name >>\"\$at/started\"; command $name \"\$@\"; }"; done"#;
        let body = format!(
            "at=$(mktemp -d)\nkf_directory=$at/state kf_owned=$at/state/owned kf_locked=1\n{count}\n\
             own ssh_file /a\nown ssh_file /b\nown ssh_file /b\nown ssh_file /a note\n\
             section started\ncommand cat \"$at/started\"\n\
             section owned\ncommand cat \"$kf_owned\"\nstat -c %a \"$kf_directory\" \"$kf_owned\"\n\
             section lock\ntimeout() {{ echo waited; }}\nexec 7<\"$at\"\ntake_lock 1 7 && echo taken\ncommand rm -r \"$at\""
        );
        let output = run(&Script::new(&body), b"", "");
        let said = |section: &str| String::from_utf8_lossy(output.section(section).unwrap()).into_owned();
        assert_eq!(said("started"), "mkdir\ncat\nmv\ncat\nmv\ncat\nmv\n");
        assert_eq!(said("owned"), "ssh_file\t/b\t\nssh_file\t/a\tnote\n755\n644\n");
        assert_eq!(said("lock"), "taken\n");
    }

    #[test]
    fn a_long_script_arrives_whole() {
        let body = format!("x={}\nprintf %s \"${{#x}}\"", quote(&"y".repeat(300_000)));
        assert_eq!(run(&Script::new(&body), b"", "").stdout, b"300000");
    }

    #[test]
    fn sections_and_reasons_are_found() {
        let output = run(&Script::new("section one; echo a; echo b; section two; printf c; fail full 'no room'"), b"", "");
        assert_eq!(output.section("one").unwrap(), b"a\nb\n");
        assert_eq!(output.section("two").unwrap(), b"c");
        assert_eq!(output.section("three"), None);
        assert_eq!(output.reason(), Some(("full".to_owned(), "no room".to_owned())));
        assert_ne!(output.status, 0);
    }

    #[test]
    fn a_text_is_fed_as_it_is() {
        let text = "a $HOME `id`\\\n'\"";
        assert_eq!(
            run(&Script::new(&format!("feed() {{ cat <&3; }}\nfeed {}", here(3, text))), b"", "").stdout,
            format!("{text}\n").as_bytes()
        );
    }

    #[test]
    fn a_link_in_the_place_of_a_directory_of_ours_leads_nowhere() {
        let said = |owned: &str, path: &str| {
            let body = format!(
                "at=$(mktemp -d) && mkdir \"$at/real\" && ln -s real \"$at/link\"\nkf_owned=$at/owned\n\
                 printf '{owned}\\t%s\\t\\n' \"$at/link\" >\"$kf_owned\"\n\
                 ( refuse_links \"$at/{path}\" )\nended=$?\nrm -r \"$at\"\nexit $ended"
            );
            let output = run(&Script::new(&body), b"", "");
            (output.status, output.reason().map(|(word, _)| word))
        };
        let refused = (3, Some("link".to_owned()));
        assert_eq!(said("parent", "link/a/file"), refused);
        assert_eq!(said("ssh_directory", "link/file"), refused);
        // A link of somebody else, one in its own place, and what is beside it.
        assert_eq!(said("ssh_file", "link/file"), (0, None));
        assert_eq!(said("parent", "link"), (0, None));
        assert_eq!(said("parent", "real/file"), (0, None));
    }

    #[test]
    fn what_a_reader_can_not_read_did_not_arrive() {
        let whole = vec![7_u8; 100_000];
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&whole).unwrap();
        let packed = encoder.finish().unwrap();
        let said = |before: &str, payload: &[u8]| {
            let install = format!("install_file \"$at/file\" {} \"$(id -u):$(id -g)\" 0600 'gzip -dc'", crate::sum::sha256(&whole));
            let body = format!("at=$(mktemp -d)\n( guard\n{before}\n{install} )\nended=$?\nls -A \"$at\"\nrm -r \"$at\"\nexit $ended");
            let output = run(&Script::new(&body), payload, "");
            let left = String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or_default().to_owned();
            (output.reason().map(|(word, _)| word), left == "file")
        };
        let failed = |word: &str| (Some(word.to_owned()), false);
        assert_eq!(said("", &packed), (None, true));
        assert_eq!(said("", b"not at all"), failed("checksum"));
        assert_eq!(said("", &packed[..packed.len() / 2]), failed("checksum"));
        let mut spoiled = packed.clone();
        spoiled[20..40].fill(0x55);
        assert_eq!(said("", &spoiled), failed("checksum"));
        // A full disk is no less one for that.
        assert_eq!(said("ulimit -c 0; ulimit -f 1", &packed), failed("write"));
    }

    #[test]
    fn sudo_says_in_english_what_is_wrong() {
        let stand_ins = "at=$(mktemp -d) && printf '#!/bin/sh\\necho 1000\\n' >\"$at/id\" && \
             printf '#!/bin/sh\\necho \"sudo: $LC_ALL\" >&2\\n' >\"$at/sudo\" && chmod 755 \"$at/id\" \"$at/sudo\" || exit\n\
             LC_ALL=POSIX PATH=$at:$PATH ";
        let command = format!("{stand_ins}{}\nrm -r \"$at\"", Script::new("true").bootstrap(true));
        let output = Command::new("sh").arg("-c").arg(command).stdin(Stdio::null()).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "sudo: C\n");
    }

    #[test]
    fn nothing_of_a_script_is_an_argument() {
        let script = Script::new("echo hunter2");
        assert!(!script.bootstrap(true).contains("hunter2") && !script.bootstrap(false).contains("hunter2"));
        assert!(!script.has_begun(b"Last login: today\n"));
    }
}
