//! Parts that many tests are put together from: a fake world under the real providers, a clock that nobody waits for, commands in-process.

use std::collections::BTreeMap;
use std::fs::File;
use std::future::Future;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use karmaform::{Output, Wiring, run};
use karmaform_engine::Runtime;
use karmaform_memory::{Memory, World};
use karmaform_model::{BoxFuture, Diagnostic, Driver, Object, Registry, Seal, Value};

/// The top of the repository.
pub(crate) fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().unwrap_or(root)
}

/// The command without what a debugger needs, which is most of it: for where it is sent to.
pub(crate) fn stripped() -> &'static Path {
    static MADE: LazyLock<(tempfile::TempDir, PathBuf)> = LazyLock::new(|| {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let file = folder.path().join("karmaform");
        let status = Command::new("strip").arg("-g").arg("-o").arg(&file).arg(env!("CARGO_BIN_EXE_karmaform-under-test")).status();
        assert!(status.is_ok_and(|s| s.success()), "strip");
        (folder, file)
    });
    &MADE.1
}

/// Where somebody listens, at an address of either family.
pub(crate) fn url(address: &str, port: u16) -> String {
    if address.contains(':') { format!("https://[{address}]:{port}") } else { format!("https://{address}:{port}") }
}

/// A key of age: whom to encrypt for, and what reads it, as `age-keygen` writes that.
pub(crate) fn identity() -> (String, String) {
    use age::secrecy::ExposeSecret as _;
    let identity = age::x25519::Identity::generate();
    (identity.to_public().to_string(), format!("# made by a test\n{}\n", identity.to_string().expose_secret()))
}

/// Words for whoever reads the log, also if the test passes: what a test prints by macros is only shown when it fails. Not an error.
pub(crate) fn tell(words: &str) {
    let _ = writeln!(std::io::stderr(), "{words}");
}

/// Waits until nobody else, of any test binary that runs now, has `what`; it is given up with the file. The file is beside one of the lab's own.
pub(crate) fn alone(of_the_lab: &Path, what: &str) -> File {
    let file = File::create(of_the_lab.with_file_name(format!("{what}.lock"))).expect("a file that is locked");
    file.lock().expect("its lock");
    file
}

/// How often to kill, and what is thrown to choose the moments: by `KARMAFORM_KILLS` and `KARMAFORM_SEED`, which are said.
pub(crate) fn kills(usual: usize) -> (usize, fastrand::Rng) {
    kills_from(usual, SystemTime::UNIX_EPOCH.elapsed().map_or(1, |d| d.as_secs()))
}

/// The same with moments that are the same each time, unless somebody asks for others.
pub(crate) fn kills_from(usual: usize, seed: u64) -> (usize, fastrand::Rng) {
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let kills = number("KARMAFORM_KILLS").and_then(|n| usize::try_from(n).ok()).unwrap_or(usual);
    let seed = number("KARMAFORM_SEED").unwrap_or(seed);
    tell(&format!("{kills} kills, KARMAFORM_SEED={seed}"));
    (kills, fastrand::Rng::with_seed(seed))
}

/// Encryption with a key file in this folder, the same for all who ask, also at the same time.
pub(crate) fn encryption(folder: &Path) -> Arc<dyn Seal> {
    static KEY: LazyLock<String> =
        LazyLock::new(|| STANDARD.encode(std::iter::repeat_with(|| fastrand::u8(..)).take(32).collect::<Vec<_>>()));
    let file = folder.join("test.key");
    let new = folder.join(format!("test.key.{:016x}", fastrand::u64(..)));
    std::fs::write(&new, KEY.as_str()).and_then(|()| std::fs::rename(&new, &file)).expect("written");
    let arguments = [("key_file".to_owned(), Value::from(file.display().to_string()))].into_iter().collect();
    let no_kms = |_: &Object| Err(Diagnostic::error("No KMS", "There is none here."));
    Arc::new(karmaform_encryption::Encryption::open(&arguments, folder, None, &no_kms).expect("encryption"))
}

/// Runs a future to its end.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("threads");
    runtime.block_on(future)
}

/// All that is linked into the binary.
pub(crate) fn real_registry() -> Arc<Registry> {
    Wiring::real().registry
}

/// The same providers and composites over a world in a map, and the provider `memory`. Only certificates are real ones: they need nothing
/// from outside, and who checks them would not take made-up ones.
pub(crate) fn memory_registry(world: &Arc<World>) -> Arc<Registry> {
    let real = real_registry();
    let over = |d: &Arc<dyn Driver>| if d.name() == "tls" { Arc::clone(d) } else { Memory::over(Arc::clone(d), Arc::clone(world)) };
    let mut drivers: Vec<_> = real.drivers().map(over).collect();
    drivers.extend(karmaform_memory::drivers(Arc::clone(world)));
    Arc::new(Registry::new(drivers, real.composites().cloned().collect()))
}

/// 2026-01-01 00:00:00 UTC.
pub(crate) const START_SECONDS: i64 = 1_767_225_600;

/// A clock that stands still but for sleeping, and on which short sleeps take no time.
#[derive(Default)]
pub(crate) struct TestClock {
    slept: AtomicU64,
}

/// Sleeps from here on are heartbeats and checkpoints: in a world that answers at once none of them is ever due.
const NEVER_DUE: u64 = 5_000;

impl Runtime for TestClock {
    fn now(&self) -> u64 {
        START_SECONDS.unsigned_abs() * 1000 + self.slept.load(Ordering::SeqCst)
    }

    fn sleep(&self, milliseconds: u64) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if milliseconds >= NEVER_DUE {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
            self.slept.fetch_add(milliseconds, Ordering::SeqCst);
        })
    }
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a command in-process, in `directory`, with these providers, no environment and no terminal.
pub(crate) fn command(directory: &Path, registry: &Arc<Registry>, arguments: &[&str], stdin: &str) -> Ran {
    let ids = AtomicU64::new(1);
    let wiring = Wiring {
        registry: Arc::clone(registry),
        directory: directory.to_owned(),
        environment: BTreeMap::new(),
        home: Some(PathBuf::from("/home/me")),
        who: "me@here".to_owned(),
        clock: Arc::new(TestClock::default()),
        ids: Arc::new(move || format!("00000000-0000-4000-8000-{:012}", ids.fetch_add(1, Ordering::SeqCst))),
        enter: |_| Ok(()),
        signals: false,
        ..Wiring::real()
    };
    let (output, captured) = Output::captured(stdin);
    let arguments = std::iter::once("karmaform").chain(arguments.iter().copied()).map(Into::into).collect();
    let code = run(arguments, wiring, output);
    Ran { code, stdout: captured.stdout(), stderr: captured.stderr() }
}
