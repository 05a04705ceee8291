//! A file on the standard input of a program in a pod, when it asks for it. Who has all that it needs asks for nothing; what is sent to a program that reads
//! no more holds up the way to it, and not every API server can end a standard input alone (version 5 of its protocol, from Kubernetes 1.30 on).

use std::convert::Infallible;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use karmaform_model::Diagnostic;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, channel};
use tokio::time::timeout;

use crate::archive_source::Downloads;

/// So much of a file is sent at once, in bytes, and so many pieces are read ahead.
pub(crate) const PIECE: usize = 256 << 10;
const AHEAD: usize = 4;

/// What a program asks for, by a line on its standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// `length?`
    Length,
    /// `content?`
    Content,
}

impl Asked {
    /// What a line asks for.
    pub(crate) fn read(line: &[u8]) -> Option<Self> {
        match line.trim_ascii() {
            b"length?" => Some(Self::Length),
            b"content?" => Some(Self::Content),
            _ => None,
        }
    }
}

/// Why what was asked for is not given.
#[derive(Debug)]
pub(crate) enum Ungiven {
    /// It does not go through.
    Stalled(String),
    /// It can't be read.
    Unread(Box<Diagnostic>),
}

/// Gives what is asked for, and never ends by itself. A way that is lost is no error here: it ends what is heard as well. `stalled_after`: so long nothing
/// may go through.
///
/// # Errors
/// What is to be given ends early or can't be read, or nothing goes through.
pub(crate) async fn give(
    downloads: &Arc<Downloads>,
    (source, sum): (&str, &str),
    mut asked: UnboundedReceiver<Asked>,
    mut to: impl AsyncWrite + Unpin,
    stalled_after: Duration,
) -> Result<Infallible, Ungiven> {
    let stalled = |_| Ungiven::Stalled(format!("nothing of what it is given went through for {} s", stalled_after.as_secs()));
    let unread = |why: String| {
        let shown = crate::archive_source::shown(source);
        Ungiven::Unread(Box::new(
            Diagnostic::error("File can't be read", format!("{shown}: {why}."))
                .with_hint("Let nothing write to it meanwhile, see that what it is on answers, and run again."),
        ))
    };
    let mut open = None;
    while let Some(asked) = asked.recv().await {
        let (length, pieces) = match open.take() {
            Some(opened) => opened,
            None => {
                opened(downloads, source, sum).await.map_err(|why| Ungiven::Unread(Box::new(Diagnostic { retryable: false, ..why })))?
            }
        };
        if asked == Asked::Length {
            drop(timeout(stalled_after, to.write_all(&length.to_be_bytes())).await.map_err(stalled)?);
            open = Some((length, pieces));
            continue;
        }
        let (mut pieces, mut sent, mut is_lost) = (pieces, 0, false);
        let silent = |_| unread(format!("nothing came of it for {} s", stalled_after.as_secs()));
        while let Some(piece) = timeout(stalled_after, pieces.recv()).await.map_err(silent)?.filter(|_| !is_lost) {
            let piece = piece.map_err(unread)?;
            sent += piece.len() as u64;
            is_lost = timeout(stalled_after, to.write_all(&piece)).await.map_err(stalled)?.is_err();
        }
        if sent != length && !is_lost {
            return Err(unread(format!("it has {sent} bytes instead of {length}")));
        }
        drop(to.flush().await);
    }
    std::future::pending().await
}

/// Gets what is far away, which takes its time, before there is a way that would be silent meanwhile. That it can't be got is told to who asks for it: a program
/// that has it already does not.
pub(crate) async fn get_ready(downloads: &Arc<Downloads>, source: &str) {
    let (downloads, source) = (Arc::clone(downloads), source.to_owned());
    drop(waited(move || downloads.get_ready(&source)).await);
}

/// Does what waits where waiting is allowed.
async fn waited<T: Send + 'static>(work: impl FnOnce() -> Result<T, Diagnostic> + Send + 'static) -> Result<T, Diagnostic> {
    let ended = tokio::task::spawn_blocking(work).await;
    ended.map_err(|_| Diagnostic::error("File can't be read", "The work on it ended early. This is a bug."))?
}

/// A file's length, and its pieces, which somebody else reads: files may be slow.
async fn opened(downloads: &Arc<Downloads>, source: &str, sum: &str) -> Result<(u64, Receiver<Result<Vec<u8>, String>>), Diagnostic> {
    let (downloads, source, sum) = (Arc::clone(downloads), source.to_owned(), sum.to_owned());
    let (length, mut file) = waited(move || downloads.open(&source, &sum)).await?;
    let (sender, pieces) = channel(AHEAD);
    tokio::task::spawn_blocking(move || {
        loop {
            let mut piece = Vec::with_capacity(PIECE);
            let read = file.by_ref().take(PIECE as u64).read_to_end(&mut piece);
            let is_last = !matches!(read, Ok(1..));
            let piece = read.map(|_| piece).map_err(|e| e.to_string());
            if sender.blocking_send(piece).is_err() || is_last {
                break;
            }
        }
    });
    Ok((length, pieces))
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;
    use tokio::sync::mpsc::unbounded_channel;

    use karmaform_model::{Stock, Supplied, Supply};

    use super::*;

    /// A bundle that says that a file has nine bytes.
    struct Cut;

    impl Stock for Cut {
        fn name(&self) -> String {
            "the bundle x".to_owned()
        }

        fn has(&self, _: &Supply) -> bool {
            true
        }

        fn find(&self, _: &Supply) -> Result<Option<Supplied>, Diagnostic> {
            Ok(Some(Supplied { size: 9, sha256: String::new(), content: Box::new(&b"four"[..]) }))
        }
    }

    #[tokio::test]
    async fn a_file_that_ends_early_is_told_and_not_taken_for_whole() {
        let downloads: Arc<Downloads> = Arc::default();
        downloads.use_stock(Arc::new(Cut));
        let (asks, asked) = unbounded_channel();
        asks.send(Asked::Content).unwrap();
        let (to, _kept) = tokio::io::duplex(PIECE);
        let told = give(&downloads, ("etcd.db", ""), asked, to, Duration::from_secs(60)).await.unwrap_err();
        let Ungiven::Unread(why) = told else { panic!("{told:?}") };
        assert_eq!((why.summary.as_str(), why.detail.as_str()), ("File can't be read", "etcd.db: it has 4 bytes instead of 9."));
        assert!(why.hints[0].contains("run again"), "{why:?}");
    }

    #[tokio::test]
    async fn nothing_is_given_that_is_not_asked_for() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let content = vec![7; 2 * PIECE + 5];
        std::fs::write(file.path(), &content).unwrap();
        let (asks, asked) = unbounded_channel();
        let (to, mut from) = tokio::io::duplex(PIECE);
        let path = file.path().to_str().unwrap().to_owned();
        let giving = tokio::spawn(async move { give(&Arc::default(), (&path, ""), asked, to, Duration::from_secs(60)).await });
        asks.send(Asked::Length).unwrap();
        assert_eq!(from.read_u64().await.unwrap(), content.len() as u64);
        let nothing = timeout(Duration::from_millis(50), from.read_u8()).await;
        assert!(nothing.is_err());
        asks.send(Asked::Content).unwrap();
        let mut read = vec![0; content.len()];
        from.read_exact(&mut read).await.unwrap();
        assert!(read == content && !giving.is_finished());
        giving.abort();
    }

    #[tokio::test]
    async fn what_does_not_go_through_or_is_not_there_is_told() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![7; PIECE]).unwrap();
        let give = async |path: &str, asked: &[Asked]| {
            let (asks, receiver) = unbounded_channel();
            asked.iter().for_each(|a| asks.send(*a).unwrap());
            let (to, _kept) = tokio::io::duplex(16);
            give(&Arc::default(), (path, ""), receiver, to, Duration::from_millis(20)).await.unwrap_err()
        };
        assert!(matches!(give(file.path().to_str().unwrap(), &[Asked::Content]).await, Ungiven::Stalled(_)));
        let Ungiven::Unread(why) = give("/does/not/exist.db", &[Asked::Length]).await else { panic!() };
        assert_eq!(why.summary, "File can't be read");
        assert!(why.detail.contains("/does/not/exist.db") && why.hints[0].contains("put the file there"), "{why:?}");
        assert_eq!(Asked::read(b"length?\r"), Some(Asked::Length));
    }
}
