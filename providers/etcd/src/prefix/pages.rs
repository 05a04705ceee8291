//! The keys of a range, page by page and in order.

use std::collections::VecDeque;
use std::time::Duration;

use etcd_client::{Client as Connection, Error, GetOptions, KeyValue, KvClient};

/// Keys on the first page.
const FIRST: i64 = 50;
/// Bytes that a page is to have, more or less: enough that a page costs more than asking for it, and little enough to be held.
const PAGE: usize = 1 << 20;
/// Keys on a page.
const MOST: i64 = 1000;
/// How long a page may take: at 1 Mbit/s it is 8 s for as much as it is to have, and there may be more on it.
pub(super) const PAGE_LIMIT: Duration = Duration::from_secs(60);

/// A place in a range. Each page is as it is when it is read: a revision of before may be dropped at any time.
pub(super) struct Pages {
    kv: KvClient,
    next: Vec<u8>,
    end: Vec<u8>,
    limit: i64,
    keys_only: bool,
    held: VecDeque<KeyValue>,
    is_last: bool,
}

impl Pages {
    /// At the beginning of a range; without values, if only keys are asked for.
    pub(super) fn new(connection: &Connection, (first, end): (String, String), keys_only: bool) -> Self {
        // A server sends what there is, and the library would take 4 MiB at most.
        let kv = connection.kv_client().max_decoding_message_size(usize::MAX);
        let (next, end) = (first.into_bytes(), end.into_bytes());
        Self { kv, next, end, limit: FIRST, keys_only, held: VecDeque::new(), is_last: false }
    }

    /// The next key.
    pub(super) async fn next(&mut self) -> Result<Option<KeyValue>, Error> {
        while self.held.is_empty() && !self.is_last {
            match self.page().await {
                // It may be that what comes next is much larger than what came before.
                Err(_) if self.limit > 1 => self.limit = (self.limit / 8).max(1),
                page => page?,
            }
        }
        Ok(self.held.pop_front())
    }

    async fn page(&mut self) -> Result<(), Error> {
        let options = GetOptions::new().with_range(self.end.clone()).with_limit(self.limit);
        let options = if self.keys_only { options.with_keys_only() } else { options };
        let asked = tokio::time::timeout(PAGE_LIMIT, self.kv.get(self.next.clone(), Some(options))).await;
        let mut answer = asked.unwrap_or_else(|_| Err(Error::Internal(format!("no page of keys within {} s", PAGE_LIMIT.as_secs()))))?;
        self.is_last = !answer.more();
        self.held = answer.take_kvs().into();
        let bytes = self.held.iter().map(|kv| kv.key().len() + kv.value().len()).sum();
        self.limit = fitting(bytes, self.held.len()).min(self.limit * 2);
        if let Some(last) = self.held.back() {
            self.next = [last.key(), &[0]].concat();
        }
        Ok(())
    }
}

/// How many keys make a page, by what the last one had.
fn fitting(bytes: usize, keys: usize) -> i64 {
    let each = bytes.checked_div(keys).unwrap_or(1).max(1);
    i64::try_from(PAGE / each).unwrap_or(MOST).clamp(1, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_as_many_bytes_as_is_good() {
        assert_eq!(fitting(0, 0), MOST);
        assert_eq!(fitting(100, 50), MOST);
        assert_eq!(fitting(50 * 10_240, 50), 102);
        assert_eq!(fitting(50 << 20, 50), 1);
        assert_eq!(fitting(200 << 20, 50), 1);
    }
}
