//! Gets the source itself: a local file as it is, a URL into the cache. Nothing is used before its sum is checked.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use karmaform_model::{Diagnostic, Shelves, Supply, without_credentials};
use ureq::config::ConfigBuilder;
use ureq::http::{HeaderMap, StatusCode, header};
use ureq::tls::TlsConfig;
use ureq::typestate::AgentScope;

use super::trust::{self, Trusted};
use super::{Ready, local, sums, unfinished, unnamed};
use crate::sum::sha256;

/// From the request to the last byte. Releases have some 100 MB; a line that needs longer for them needs a mirror.
pub(super) const LONGEST: Duration = Duration::from_secs(30 * 60);

const UNFETCHED: &str = "Source can't be fetched";

/// The source of a supply, checked.
pub(super) fn fetch(directory: &Path, supply: &Supply, trusted: &Trusted) -> Result<Ready, Diagnostic> {
    let source = supply.source.as_str();
    let sum = sums::expected(supply, trusted)?;
    if source.starts_with("http://") || source.starts_with("https://") {
        return download(directory, source, sum.as_deref(), trusted);
    }
    if let Some((scheme, _)) = source.split_once("://").filter(|(s, _)| *s != "file") {
        return Err(Diagnostic::error(
            UNFETCHED,
            format!("\"{scheme}\" is not supported; a source is a path, a file, http or https URL, or an image (oci://)."),
        ));
    }
    let path = local(&supply.source).unwrap_or(Path::new(source));
    let unreadable = |why: &str| Diagnostic::error("Source can't be read", format!("{} {why} on this machine.", path.display()));
    if !path.is_file() {
        return Err(unreadable(if path.exists() { "is not a file" } else { "does not exist" }));
    }
    let ready = Ready::of(File::open(path).map_err(|e| unreadable(&format!("can't be opened ({e})")))?, source)?;
    match_sum(&ready.sha256, source, sum.as_deref())?;
    Ok(ready)
}

/// A backup off its shelf, checked.
pub(super) fn taken(directory: &Path, supply: &Supply, shelves: &dyn Shelves) -> Result<Ready, Diagnostic> {
    let source = supply.source.as_str();
    let mut supplied = shelves.take(source)?;
    let mut file = unnamed(directory)?;
    io::copy(&mut supplied.content, &mut file).map_err(|e| unreadable(directory, &e))?;
    let ready = Ready::of(file, source)?;
    match_sum(&ready.sha256, source, supply.sha256.as_deref())?;
    Ok(ready)
}

fn match_sum(found: &str, source: &str, expected: Option<&str>) -> Result<(), Diagnostic> {
    match expected {
        Some(expected) if !expected.eq_ignore_ascii_case(found) => Err(Diagnostic::error(
            "Artifact has the wrong sum",
            format!("{} has the SHA-256 sum {found}, but \"sha256\" says {expected}. Nothing was installed.", without_credentials(source)),
        )
        .with_hint("Check the version in the source, and take the sum from whoever published it, not from this message.")),
        _ => Ok(()),
    }
}

/// A download with a known sum stays in the cache for later runs; one without can't be told from an outdated one, and is fetched anew.
fn download(directory: &Path, source: &str, sum: Option<&str>, trusted: &Trusted) -> Result<Ready, Diagnostic> {
    let kept = sum.map(|sum| directory.join(format!("{}-{}", &sha256(source.as_bytes())[..16], sum.to_lowercase())));
    if let Some(kept) = kept.as_ref().filter(|k| k.is_file()) {
        let ready = opened(kept, source)?;
        if match_sum(&ready.sha256, source, sum).is_ok() {
            return Ok(ready);
        }
        // damaged on disk
        let _ = fs::remove_file(kept);
    }
    let Some(kept) = kept else {
        let mut file = unnamed(directory)?;
        receive(source, &mut file, trusted)?;
        return Ready::of(file, source);
    };
    let mut file = unfinished(directory)?;
    receive(source, &mut file, trusted)?;
    let ready = opened(file.path(), source)?;
    match_sum(&ready.sha256, source, sum)?;
    // rename: another run that fetches the same at the same time sees the old or the new file, and both are right
    file.persist(&kept).map_err(|e| unreadable(&kept, &e.error))?;
    Ok(ready)
}

fn opened(path: &Path, source: &str) -> Result<Ready, Diagnostic> {
    Ready::of(File::open(path).map_err(|e| unreadable(path, &e))?, source)
}

fn unreadable(path: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::error("Cache can't be written", format!("{}: {error}.", path.display()))
}

/// How all servers are asked.
pub(super) fn client(tls: TlsConfig) -> ConfigBuilder<AgentScope> {
    ureq::Agent::config_builder()
        .tls_config(tls)
        .timeout_connect(Some(Duration::from_secs(15)))
        .timeout_recv_response(Some(Duration::from_secs(60)))
        .timeout_global(Some(LONGEST))
        .user_agent(concat!("karmaform/", env!("CARGO_PKG_VERSION")))
}

/// True for what a server says that may serve the same a moment later: it has too much to do (408, 429), or something behind it does not work.
fn may_pass(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429) || status.is_server_error()
}

/// What is told of an answer that is none: whether it is worth another try, and not before the server says.
pub(super) fn answered(failed: Diagnostic, status: StatusCode, headers: &HeaderMap) -> Diagnostic {
    if !may_pass(status) {
        return failed;
    }
    match wait_asked(headers) {
        Some(seconds @ 1..) => {
            failed.with_hint(format!("It wants to be asked again in {seconds} s, and not before.")).retryable_after(seconds)
        }
        _ => failed.retryable(),
    }
}

/// For how long a server wants to be left alone, in seconds (RFC 9110, 10.2.3). A date is meant by the server's own clock.
fn wait_asked(headers: &HeaderMap) -> Option<u64> {
    let text = |name: header::HeaderName| headers.get(name)?.to_str().ok().map(str::trim);
    let asked = text(header::RETRY_AFTER)?;
    let second = |date: &str| jiff::fmt::rfc2822::parse(date).ok().map(|d| d.timestamp().as_second());
    asked.parse().ok().or_else(|| u64::try_from(second(asked)? - second(text(header::DATE)?)?).ok())
}

pub(super) fn receive(url: &str, file: &mut impl Write, trusted: &Trusted) -> Result<(), Diagnostic> {
    let failed = |why: String| {
        Diagnostic::error(UNFETCHED, format!("{}: {why}.", without_credentials(url)))
            .with_hint("Check the URL and the network; a mirror or a local path can be given instead.")
    };
    // The headers of an answer that is none say when to ask again.
    let agent: ureq::Agent = client(trust::tls(trusted, Vec::new())?).http_status_as_error(false).build().into();
    let mut response = match agent.get(url).call() {
        Ok(response) if response.status().is_success() => response,
        Ok(response) => {
            let status = response.status();
            return Err(answered(failed(format!("the server answered with status {}", status.as_u16())), status, response.headers()));
        }
        Err(e) => {
            let problem = trust::problem(&e, UNFETCHED, &without_credentials(url));
            return Err(problem.unwrap_or_else(|| failed(e.to_string()).retryable()));
        }
    };
    let expected = response.headers().get("content-length").and_then(|v| v.to_str().ok()).and_then(|v| v.parse::<u64>().ok());
    let mut reader = response.body_mut().as_reader();
    let received = io::copy(&mut reader, file).map_err(|e| failed(e.to_string()).retryable())?;
    file.flush().map_err(|e| failed(e.to_string()))?;
    match expected {
        Some(expected) if expected != received => Err(failed(format!("{received} of {expected} bytes arrived")).retryable()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_say_when_they_want_to_be_asked_again() {
        let check = |asked: &str, date: &str, expected: Option<u64>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::RETRY_AFTER, asked.parse().unwrap());
            headers.insert(header::DATE, date.parse().unwrap());
            assert_eq!(wait_asked(&headers), expected, "{asked}");
        };
        const DATE: &str = "Wed, 21 Oct 2015 07:28:00 GMT";
        check("30", DATE, Some(30));
        check(" 0 ", DATE, Some(0));
        check("Wed, 21 Oct 2015 07:28:45 GMT", DATE, Some(45));
        check("Wed, 21 Oct 2015 07:27:00 GMT", DATE, None);
        check("Wed, 21 Oct 2015 07:28:45 GMT", "today", None);
        check("soon", DATE, None);
        assert_eq!(wait_asked(&HeaderMap::new()), None);
    }
}
