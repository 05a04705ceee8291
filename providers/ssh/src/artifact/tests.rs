use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};

use flate2::Compression;
use flate2::write::GzEncoder;
use karmaform_model::{Shelved, Supplied};

use super::*;
use crate::sum::sha256;

fn archive(compressed: bool) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content) in [("e-v1/etcd", "the server"), ("e-v1/README.md", "read me")] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o755);
        header.set_cksum();
        builder.append_data(&mut header, name, content.as_bytes()).unwrap();
    }
    let plain = builder.into_inner().unwrap();
    if !compressed {
        return plain;
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&plain).unwrap();
    encoder.finish().unwrap()
}

fn supply(source: &str, sha256: Option<&str>, member: Option<&str>) -> Supply {
    Supply { source: source.to_owned(), sha256: sha256.map(str::to_owned), member: member.map(str::to_owned), platform: None }
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap().block_on(future)
}

/// A server on loopback that answers every request with the same bytes, and counts.
fn serve(body: Vec<u8>, head: &'static str) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            counter.fetch_add(1, Ordering::SeqCst);
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(format!("{head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len()).as_bytes());
            let _ = stream.write_all(&body);
        }
    });
    (format!("http://{address}/e.tar.gz?token=hunter2"), count)
}

#[test]
fn members_come_out_of_plain_and_compressed_archives() {
    let directory = tempfile::tempdir().unwrap();
    for compressed in [true, false] {
        let path = directory.path().join("a.tar");
        fs::write(&path, archive(compressed)).unwrap();
        let store = Store::new(directory.path().join("cache"));
        let ready = wait(store.get(&supply(&format!("file://{}", path.display()), None, Some("etcd")))).ok().unwrap();
        for _ in 0..2 {
            let mut text = String::new();
            ready.read().read_to_string(&mut text).unwrap();
            assert_eq!((text.as_str(), ready.size), ("the server", 10), "many read it");
        }
        assert_eq!(ready.sha256, sha256(b"the server"));
        let left = fs::read_dir(directory.path().join("cache")).unwrap().count();
        assert_eq!(left, 0, "what was taken out has no name, so nothing is left of it even if we are killed");
    }
}

#[test]
fn a_download_is_made_once_and_kept_if_its_sum_is_known() {
    let directory = tempfile::tempdir().unwrap();
    let body = archive(true);
    let sum = sha256(&body);
    let (url, count) = serve(body, "HTTP/1.1 200 OK");
    let wanted = supply(&url, Some(&sum), Some("etcd"));
    let store = Store::new(directory.path().to_owned());
    let other = supply(&url, Some(&sum), Some("README.md"));
    let (a, b, c) = wait(async { tokio::join!(store.get(&wanted), store.get(&wanted), store.get(&other)) });
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
    assert_eq!(count.load(Ordering::SeqCst), 1);
    assert!(wait(Store::new(directory.path().to_owned()).get(&wanted)).is_ok());
    assert_eq!(count.load(Ordering::SeqCst), 1, "a later run finds it in the cache");
    let kept = fs::read_dir(directory.path()).unwrap().map(|e| e.unwrap().path()).find(|p| p.to_string_lossy().ends_with(&sum)).unwrap();
    fs::write(&kept, "damaged").unwrap();
    assert!(wait(Store::new(directory.path().to_owned()).get(&wanted)).is_ok());
    assert_eq!(count.load(Ordering::SeqCst), 2, "a damaged one is fetched again");
}

#[test]
fn a_sum_is_read_where_it_is_published() {
    let directory = tempfile::tempdir().unwrap();
    let body = archive(true);
    let (right, wrong) = (sha256(&body), "0".repeat(64));
    let (url, _) = serve(body, "HTTP/1.1 200 OK");
    let cache = directory.path().join("cache");
    let get =
        |place: &str| wait(Store::new(cache.clone()).get(&supply(&url, Some(place), Some("etcd")))).err().map(|e| (e.summary, e.detail));
    let published = |text: &str| {
        let (place, _) = serve(text.as_bytes().to_vec(), "HTTP/1.1 200 OK");
        get(&place)
    };
    assert_eq!(published(&format!("{wrong}  other.tar.gz\n{right}  e.tar.gz\n")), None);
    let kept = fs::read_dir(&cache).unwrap().any(|e| e.unwrap().file_name().to_string_lossy().ends_with(&right));
    assert!(kept, "with its sum known it is kept");
    let (summary, _) = published(&format!("{wrong}\n")).unwrap();
    assert_eq!(summary, "Artifact has the wrong sum");
    let (summary, detail) = published(&format!("{right}  other.tar.gz\n")).unwrap();
    assert!(summary == "Source has no published sum" && detail.contains("e.tar.gz") && !detail.contains("hunter2"), "{detail}");
    assert_eq!(published(&"x".repeat(2 << 20)).unwrap().0, "Source can't be fetched");
    let file = directory.path().join("SHA256SUMS");
    assert_eq!(get(&file.display().to_string()).unwrap().0, "Sum can't be read");
    fs::write(&file, format!("{right} *e.tar.gz\n")).unwrap();
    assert_eq!(get(&file.display().to_string()), None);
    assert_eq!(get("ftp://x/SHA256SUMS").unwrap().0, "Sum can't be read");
}

#[test]
fn what_runs_that_were_killed_left_is_swept() {
    let directory = tempfile::tempdir().unwrap();
    let old = std::time::SystemTime::now() - 2 * STALE;
    let make = |name: &str, is_old: bool| {
        let file = File::create(directory.path().join(name)).unwrap();
        if is_old {
            file.set_modified(old).unwrap();
        }
        file
    };
    drop((make(".karmaform-stale", true), make(".karmaform-new", false), make("0123-kept", true)));
    let busy = make(".karmaform-busy", true);
    busy.lock().unwrap();
    drop(unnamed(directory.path()).unwrap());
    let mut left: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    left.sort();
    assert_eq!(left, [".karmaform-busy", ".karmaform-new", "0123-kept"]);
}

#[test]
fn a_source_is_judged_once_per_run() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.tar.gz");
    let store = Store::new(directory.path().join("cache"));
    let wanted = supply(&path.display().to_string(), None, Some("etcd"));
    let verdict = |store: &Store, wanted: &Supply| wait(store.check(wanted)).err().map(|e| e.summary);
    assert_eq!(verdict(&store, &wanted).as_deref(), Some("Source can't be read"));
    let mut body = archive(true);
    fs::write(&path, &body).unwrap();
    assert_eq!(verdict(&store, &wanted).as_deref(), Some("Source can't be read"), "as said before");
    assert!(wait(store.get(&wanted)).is_ok(), "an apply looks for itself");
    body.truncate(body.len() / 2);
    fs::write(&path, &body).unwrap();
    let check = |sha256: Option<&str>, member: &str, expected: &str| {
        let store = Store::new(directory.path().join("cache"));
        assert_eq!(
            verdict(&store, &Supply { member: Some(member.to_owned()), sha256: sha256.map(str::to_owned), ..wanted.clone() }).as_deref(),
            Some(expected)
        );
    };
    check(None, "etcd", "Archive can't be read");
    check(Some(&"0".repeat(64)), "etcd", "Artifact has the wrong sum");
    fs::write(&path, archive(true)).unwrap();
    check(None, "kube", "Member is not in the archive");
}

#[test]
fn failures_say_what_is_wrong_and_no_token() {
    let directory = tempfile::tempdir().unwrap();
    let (url, _) = serve(b"other".to_vec(), "HTTP/1.1 200 OK");
    let (missing, _) = serve(Vec::new(), "HTTP/1.1 404 Not Found");
    let path = directory.path().join("a.tar.gz");
    fs::write(&path, archive(true)).unwrap();
    let local = path.display().to_string();
    let check = |wanted: Supply, summary: &str, words: &[&str]| {
        let error = wait(Store::new(directory.path().join("cache")).get(&wanted)).err().unwrap();
        assert_eq!(error.summary, summary, "{}", error.detail);
        for word in words {
            assert!(error.detail.contains(word), "{}", error.detail);
        }
        assert!(!error.detail.contains("hunter2"));
    };
    let zeros = "0".repeat(64);
    check(supply(&url, Some(&zeros), None), "Artifact has the wrong sum", &[&zeros, &sha256(b"other")]);
    check(supply(&local, Some(&zeros), None), "Artifact has the wrong sum", &[&zeros]);
    check(supply(&missing, None, None), "Source can't be fetched", &["404"]);
    check(supply("http://127.0.0.1:1/x", None, None), "Source can't be fetched", &[]);
    check(supply("ftp://h/x", None, None), "Source can't be fetched", &["ftp"]);
    check(supply("/no/such", None, None), "Source can't be read", &["does not exist"]);
    check(supply(&local, None, Some("kube")), "Member is not in the archive", &["e-v1/etcd", "e-v1/README.md"]);
    check(supply(&url, None, Some("etcd")), "Archive can't be read", &[]);
}

#[test]
fn a_server_that_has_too_much_to_do_is_asked_again() {
    let directory = tempfile::tempdir().unwrap();
    let get = |head: &'static str| {
        let (url, _) = serve(Vec::new(), head);
        let why = wait(Store::new(directory.path().join("cache")).get(&supply(&url, None, None))).err().unwrap();
        assert_eq!(why.summary, "Source can't be fetched");
        why.retryable
    };
    for head in ["HTTP/1.1 429 Too Many Requests", "HTTP/1.1 503 Service Unavailable", "HTTP/1.1 408 Request Timeout"] {
        assert!(get(head), "{head}");
    }
    for head in ["HTTP/1.1 404 Not Found", "HTTP/1.1 403 Forbidden"] {
        assert!(!get(head), "{head}");
    }
}

#[test]
fn a_server_that_wants_to_be_left_alone_is() {
    let directory = tempfile::tempdir().unwrap();
    let get = |store: &Store, url: &str| wait(store.get(&supply(url, None, None))).err().unwrap();
    let (url, count) = serve(Vec::new(), "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 40");
    let store = Store::new(directory.path().join("cache"));
    let why = get(&store, &url);
    assert!(why.retryable && why.retry_after == Some(40) && why.hints.iter().any(|h| h.contains("again in 40 s")), "{why:?}");
    // Another host wants the same: nobody is asked, and it waits for the same moment.
    let other = get(&store, &url);
    assert!(other.summary == why.summary && other.retry_after.is_some_and(|s| (30..=40).contains(&s)), "{other:?}");
    assert_eq!(count.load(Ordering::SeqCst), 1);
    // Nobody is left alone for longer than a minute, nor where it does not help to ask again.
    let (url, _) = serve(Vec::new(), "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7200");
    assert_eq!(get(&store, &url).retry_after, Some(60));
    let (url, _) = serve(Vec::new(), "HTTP/1.1 404 Not Found\r\nRetry-After: 40");
    let why = get(&store, &url);
    assert!(!why.retryable && why.retry_after.is_none(), "{why:?}");
    // One that may be asked at once is.
    let (url, count) = serve(Vec::new(), "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 0");
    get(&store, &url);
    get(&store, &url);
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

/// What was brought along, in memory.
struct Brought(Supply, &'static [u8], String);

impl Stock for Brought {
    fn name(&self) -> String {
        "the bundle x".to_owned()
    }

    fn has(&self, supply: &Supply) -> bool {
        *supply == self.0
    }

    fn find(&self, supply: &Supply) -> Result<Option<Supplied>, Diagnostic> {
        let supplied = || Supplied { content: Box::new(self.1), size: self.1.len() as u64, sha256: self.2.clone() };
        Ok(self.has(supply).then(supplied))
    }
}

#[test]
fn with_a_bundle_nothing_is_fetched() {
    let directory = tempfile::tempdir().unwrap();
    // Nobody listens there: whoever asks fails.
    let wanted = supply("https://u:hunter2@127.0.0.1:1/etcd.tar.gz", Some("https://127.0.0.1:1/SHA256SUMS"), Some("etcd"));
    let store = |sum: &str| {
        let stock = Stocked::default();
        let _ = stock.set(Arc::new(Brought(wanted.clone(), b"etcd itself", sum.to_owned())));
        Store::new(directory.path().join("cache")).with_stock(stock)
    };
    let right = sha256(b"etcd itself");
    let ready = wait(store(&right).get(&wanted)).unwrap();
    assert_eq!((ready.sha256.as_str(), ready.size), (right.as_str(), 11));
    let error = wait(store(&"0".repeat(64)).get(&wanted)).err().unwrap();
    assert!(error.summary == "Bundle is damaged" && !error.detail.contains("hunter2"), "{error:?}");
    let another = supply("https://127.0.0.1:1/other", None, None);
    let error = wait(store(&right).get(&another)).err().unwrap();
    assert!(error.summary == "Not in the bundle" && error.detail.contains("127.0.0.1:1/other is not in the bundle x"), "{error:?}");
    assert_eq!(wait(store(&right).check(&wanted)), Ok(()), "a plan finds it");
    assert_eq!(wait(store(&right).check(&another)).unwrap_err().summary, "Not in the bundle", "a plan misses it");
    // A sum that was published is from elsewhere, too.
    let published = supply("/none", Some("https://127.0.0.1:1/SHA256SUMS"), None);
    assert_eq!(wait(store(&right).get(&published)).err().unwrap().summary, "Not in the bundle");
    // Without a bundle a plan asks nobody elsewhere.
    assert_eq!(wait(Store::new(directory.path().join("cache")).check(&another)), Ok(()));
    // What is on this machine is there anyway.
    let file = directory.path().join("tool");
    fs::write(&file, "tool").unwrap();
    assert_eq!(wait(store(&right).get(&supply(file.to_str().unwrap(), None, None))).unwrap().size, 4);
}

#[test]
fn a_cache_that_can_not_be_written_says_where_another_is_set() {
    let file = NamedTempFile::new().unwrap();
    // A file is no directory, for root neither.
    for why in [unnamed(&file.path().join("cache")).err().unwrap(), unfinished(&file.path().join("cache")).err().unwrap()] {
        assert_eq!(why.summary, "Cache can't be written");
        assert!(why.hints[0].contains("\"cache\" in the provider block"), "{why:?}");
    }
}

#[test]
fn a_file_that_can_not_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    // Open for writing alone.
    let file = File::create(folder.path().join("a")).unwrap();
    let why = Ready::of(file, "https://me:secret@h/a.tar.gz").err().unwrap();
    assert_eq!(why.summary, "Artifact can't be read");
    assert!(why.detail.contains("h/a.tar.gz") && !why.detail.contains("secret"), "{}", why.detail);
}

/// On which one backup lies.
struct Shelf;

impl Shelves for Shelf {
    fn choose<'a>(&'a self, _: &'a str, _: Option<&'a str>) -> BoxFuture<'a, Result<Shelved, Diagnostic>> {
        Box::pin(async { Ok(Shelved::default()) })
    }

    fn take(&self, place: &str) -> Result<Supplied, Diagnostic> {
        assert_eq!(place, "s3://b/p/main-20260102T030405Z.db.age");
        Ok(Supplied { content: Box::new(&b"snapshot"[..]), size: 8, sha256: sha256(b"snapshot") })
    }
}

#[test]
fn backups_are_taken_off_shelves() {
    let directory = tempfile::tempdir().unwrap();
    let lent = Lent::default();
    assert!(lent.set(Arc::new(Shelf)).is_ok());
    let store = Store::new(directory.path().join("cache")).with_shelves(lent);
    let get = |sum: &str| wait(store.get(&supply("s3://b/p/main-20260102T030405Z.db.age", Some(sum), None)));
    let ready = get(&sha256(b"snapshot")).ok().unwrap();
    let mut text = String::new();
    ready.read().read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), ready.size), ("snapshot", 8));
    assert_eq!(get(&"ab".repeat(32)).err().unwrap().summary, "Artifact has the wrong sum");
    let why = wait(store.get(&supply("s3://b/p/main", None, None))).err().unwrap();
    assert!(why.detail.starts_with("\"s3\" is not supported; a source is a path"), "{why:?}");
}
