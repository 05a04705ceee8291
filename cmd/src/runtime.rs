//! The async runtime, the clock, and what Ctrl-C does.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use karmaform_engine::Runtime;
use karmaform_model::BoxFuture;
use tokio::signal::unix::{SignalKind, signal};

/// The machine's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemClock;

impl Runtime for SystemClock {
    fn now(&self) -> u64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn monotonic(&self) -> u64 {
        static SINCE: LazyLock<Instant> = LazyLock::new(Instant::now);
        u64::try_from(SINCE.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn sleep(&self, milliseconds: u64) -> BoxFuture<'_, ()> {
        // Made inside: a timer needs the runtime around it from the start.
        Box::pin(async move { tokio::time::sleep(Duration::from_millis(milliseconds)).await })
    }
}

/// A clock by which a look is over when a signal comes: what is known by then is told.
pub(crate) struct UntilSignal {
    /// Time.
    pub(crate) clock: Arc<dyn Runtime>,
    /// The signal.
    pub(crate) interrupt: Interrupt,
}

impl Runtime for UntilSignal {
    fn now(&self) -> u64 {
        self.clock.now()
    }

    fn monotonic(&self) -> u64 {
        self.clock.monotonic()
    }

    fn sleep(&self, milliseconds: u64) -> BoxFuture<'_, ()> {
        self.clock.sleep(milliseconds)
    }

    fn enough(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.interrupt.wait())
    }
}

/// A clock's seconds since 1970.
pub(crate) fn seconds(clock: &dyn Runtime) -> i64 {
    i64::try_from(clock.now() / 1_000).unwrap_or(i64::MAX)
}

/// What a signal did and shall do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    flag: Arc<AtomicBool>,
    /// The first signal asks, and a Ctrl-C after it ends at once. Until then nothing is under way that would be left half done, and the first one does.
    asks_first: Arc<AtomicBool>,
    woken: Arc<tokio::sync::Notify>,
    /// What a test has made, or is about to make: no state tells of it.
    left: Arc<Mutex<BTreeSet<String>>>,
    held: Arc<Held>,
}

/// Gives back what a run holds; what there is to say of that is its result, with a space before.
pub(crate) type GiveBack = BoxFuture<'static, String>;

/// What is to be given back before everything ends at once.
#[derive(Default)]
struct Held {
    give_back: Mutex<BTreeMap<String, GiveBack>>,
    /// A signal gives it back, and ends everything then.
    ends: AtomicBool,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Held")
    }
}

impl Held {
    fn things(&self) -> MutexGuard<'_, BTreeMap<String, GiveBack>> {
        self.give_back.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a signal means.
pub(crate) enum Meaning {
    /// Nothing that was not said before.
    Nothing,
    /// What is under way shall come to its end.
    Ask,
    /// Everything ends once this was done.
    EndAfter(GiveBack),
    /// Everything ends now, with these words.
    EndNow(String),
}

impl Interrupt {
    /// True after a signal; the engine reads it too.
    pub(crate) fn is_set(&self) -> bool {
        self.flag.load(Ordering::SeqCst)
    }

    /// For the engine.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }

    /// As a signal does it.
    pub(crate) fn set(&self) {
        self.flag.store(true, Ordering::SeqCst);
        self.woken.notify_waiters();
    }

    /// Ends when a signal came.
    pub(crate) async fn wait(&self) {
        loop {
            let woken = self.woken.notified();
            if self.is_set() {
                return;
            }
            woken.await;
        }
    }

    /// While the result lives, the first signal only asks.
    pub(crate) fn ask_first(&self) -> Asking {
        let before = self.asks_first.swap(true, Ordering::SeqCst);
        Asking { of: self.clone(), before }
    }

    /// Remembers what is left, and known to no state, if everything ends at once.
    pub(crate) fn leaves(&self, addresses: impl IntoIterator<Item = String>) {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).extend(addresses);
    }

    /// Nothing is left any more, or it has been told.
    pub(crate) fn leaves_nothing(&self) {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// From now on a signal that ends everything at once waits until this was done, in the place of what was said of the same name before. It takes no
    /// longer than people wait. False if a signal ends everything already.
    pub(crate) fn hold(&self, name: &str, give_back: GiveBack) -> bool {
        let former = self.held.things().insert(name.to_owned(), give_back);
        drop(former);
        !self.held.ends.load(Ordering::SeqCst)
    }

    /// Whoever holds it gives it back by himself; false if a signal does so already, and ends everything then.
    pub(crate) fn let_go(&self, name: &str) -> bool {
        let mut things = self.held.things();
        things.remove(name).is_some() || !self.held.ends.load(Ordering::SeqCst)
    }

    /// What is said of an end in the middle.
    fn last_words(&self) -> String {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if left.is_empty() {
            return "\nEnded at once, in the middle of what was under way. What was done is in the journal; run plan to see what is left.\n".to_owned();
        }
        let listed: String = left.iter().map(|l| format!("\n  - {l}")).collect();
        format!("\nEnded at once, in the middle of a test. What it made is not undone, and no state knows of it. Left may be:{listed}\n")
    }

    /// Does what a signal means.
    pub(crate) fn on_signal(&self, kind: SignalKind) {
        match self.meaning(kind) {
            Meaning::Nothing => {}
            Meaning::Ask => self.set(),
            Meaning::EndAfter(give_back) => {
                tokio::spawn(async move {
                    let said = give_back.await;
                    end_at_once(&format!("\nInterrupted.{said}\n"));
                });
            }
            // The kernel releases the lock of a file; the journal is whole.
            Meaning::EndNow(words) => end_at_once(&words),
        }
    }

    /// Ctrl-C says twice that it is meant. Whoever manages processes repeats SIGTERM until they have ended (Argo Workflows every ten seconds), and
    /// means no more by the second one than by the first. So does a terminal that goes away: its shell and the kernel both tell.
    pub(crate) fn meaning(&self, kind: SignalKind) -> Meaning {
        let is_repeated = kind != SignalKind::interrupt();
        // As long as this is had, nobody lets go: whoever does says before that he is to be asked first.
        let mut things = self.held.things();
        let (is_first, asks) = (!self.is_set(), self.asks_first.load(Ordering::SeqCst));
        if asks {
            return match (is_first, is_repeated) {
                (true, _) => Meaning::Ask,
                (false, true) => Meaning::Nothing,
                (false, false) => Meaning::EndNow(self.last_words()),
            };
        }
        // What is held is being given back. Only a Ctrl-C does not wait for that.
        if self.held.ends.swap(true, Ordering::SeqCst) && is_repeated {
            return Meaning::Nothing;
        }
        let things = std::mem::take(&mut *things);
        if is_first && !things.is_empty() {
            // Nothing more is begun by then.
            self.set();
            return Meaning::EndAfter(Box::pin(all_of(things)));
        }
        Meaning::EndNow(if is_first { String::new() } else { self.last_words() })
    }
}

/// Gives all of it back at once; what there is to say of it.
async fn all_of(things: BTreeMap<String, GiveBack>) -> String {
    let tasks: Vec<_> = things.into_values().map(tokio::spawn).collect();
    let mut said = String::new();
    for task in tasks {
        match task.await {
            Ok(words) => said.push_str(&words),
            // All that runs is ended already, and whoever does that has the last word.
            Err(error) if error.is_cancelled() => std::future::pending().await,
            Err(_) => {}
        }
    }
    said
}

/// See [`Interrupt::ask_first`].
#[derive(Debug)]
pub(crate) struct Asking {
    of: Interrupt,
    before: bool,
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.of.asks_first.store(self.before, Ordering::SeqCst);
    }
}

/// Runs futures to their end.
pub(crate) struct Executor {
    tokio: tokio::runtime::Runtime,
}

impl Executor {
    /// # Errors
    /// If the system gives no threads.
    pub(crate) fn new() -> std::io::Result<Self> {
        // Providers block on hosts and files inside; a few more threads than cores keep the rest going.
        let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build()?;
        Ok(Self { tokio })
    }

    /// To the end.
    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.tokio.block_on(future)
    }

    /// Beside everything else, until it is aborted.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) -> tokio::task::AbortHandle {
        self.tokio.spawn(future).abort_handle()
    }

    /// Listens to Ctrl-C, SIGTERM and SIGHUP from now on; to the last not if it is ignored, as below `nohup`.
    pub(crate) fn listen(&self, interrupt: &Interrupt) {
        let status = std::fs::read_to_string("/proc/self/status");
        let hangup = status.is_ok_and(|status| !ignores_hangup(&status)).then(SignalKind::hangup);
        for kind in [SignalKind::interrupt(), SignalKind::terminate()].into_iter().chain(hangup) {
            let interrupt = interrupt.clone();
            self.tokio.spawn(async move {
                let Ok(mut signals) = signal(kind) else { return };
                while signals.recv().await.is_some() {
                    interrupt.on_signal(kind);
                }
            });
        }
    }

    /// Does not wait for what still hangs in a blocking call.
    pub(crate) fn close(self) {
        self.tokio.shutdown_background();
    }
}

/// True if SIGHUP, the first signal, is among those that a process ignores, by its `/proc/PID/status` (proc(5)).
fn ignores_hangup(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// Ends after so many milliseconds of real time.
pub(crate) async fn pause(milliseconds: u64) {
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
}

/// Ends the process with this exit code: what was printed is flushed, and nothing else is run.
///
/// The exit handlers of C libraries must not run: the SSH library's takes its cryptography apart while the threads of open
/// connections still use it, and then the process now and then dies of a segmentation fault after all its work was done.
pub fn leave(code: i32) -> ! {
    crate::hidden::restore();
    let _ = std::io::stdout().flush();
    let _ = std::io::stderr().flush();
    signal_hook::low_level::exit(code)
}

/// Ends the process in the middle, with these words. Not [`leave`]: whoever holds the output may be the one that hangs.
fn end_at_once(words: &str) -> ! {
    crate::hidden::restore();
    let _ = rustix::io::write(rustix::stdio::stderr(), words.as_bytes());
    signal_hook::low_level::exit(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_first_goes_on_asking_around_others() {
        let interrupt = Interrupt::default();
        let around = interrupt.ask_first();
        drop(interrupt.ask_first());
        interrupt.on_signal(SignalKind::interrupt());
        assert!(interrupt.is_set(), "the first signal only asks");
        // This process would end here, and with it the test.
        interrupt.on_signal(SignalKind::terminate());
        drop(around);
        assert!(!interrupt.asks_first.load(Ordering::SeqCst));
    }

    #[test]
    fn what_is_repeated_means_no_more_by_it() {
        let interrupt = Interrupt::default();
        let _asking = interrupt.ask_first();
        // This process would end here, and with it the test.
        for kind in [SignalKind::hangup(), SignalKind::hangup(), SignalKind::terminate(), SignalKind::terminate()] {
            interrupt.on_signal(kind);
        }
        assert!(interrupt.is_set());
    }

    #[test]
    fn what_is_repeated_waits_for_what_is_being_given_back() {
        let interrupt = Interrupt::default();
        Executor::new().unwrap().block_on(async {
            assert!(interrupt.hold("a", Box::pin(std::future::pending())));
            // This process would end here, and with it the test.
            for kind in [SignalKind::hangup(), SignalKind::hangup(), SignalKind::terminate()] {
                interrupt.on_signal(kind);
            }
        });
        assert!(interrupt.is_set() && !interrupt.let_go("a"));
    }

    #[test]
    fn what_is_held_is_given_back_by_who_took_it_unless_a_signal_does() {
        let interrupt = Interrupt::default();
        let says = |what: &'static str| -> GiveBack { Box::pin(async move { what.to_owned() }) };
        assert!(interrupt.let_go("a"), "nothing is held");
        assert!(interrupt.hold("a", says(" A.")));
        assert!(interrupt.let_go("a"));
        for (name, words) in [("a", " A."), ("b", " Old."), ("b", " B.")] {
            assert!(interrupt.hold(name, says(words)));
        }
        let Meaning::EndAfter(give_back) = interrupt.meaning(SignalKind::terminate()) else { panic!("it is held") };
        assert_eq!(Executor::new().unwrap().block_on(give_back), " A. B.");
        assert!(interrupt.is_set() && !interrupt.let_go("a") && !interrupt.hold("c", says(" C.")), "everything ends");
        assert!(matches!(interrupt.meaning(SignalKind::terminate()), Meaning::Nothing));
        assert!(matches!(interrupt.meaning(SignalKind::interrupt()), Meaning::EndNow(_)));
    }

    #[test]
    fn it_is_seen_whether_a_lost_terminal_ends_it() {
        assert!(ignores_hangup("SigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n"));
        assert!(!ignores_hangup("SigBlk:\t0000000000000001\nSigIgn:\t0000000000001000\n"));
        assert!(!ignores_hangup(""));
    }

    #[test]
    fn what_a_test_leaves_is_among_the_last_words() {
        let interrupt = Interrupt::default();
        assert!(interrupt.last_words().contains("journal"));
        interrupt.leaves(["a.b".to_owned()]);
        assert!(interrupt.last_words().ends_with("Left may be:\n  - a.b\n"), "{}", interrupt.last_words());
        interrupt.leaves_nothing();
        assert!(interrupt.last_words().contains("journal"));
    }
}
