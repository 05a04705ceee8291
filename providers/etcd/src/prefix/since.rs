//! Whether anybody has written below a prefix since an etcd was opened.

use etcd_client::Error;

use super::ends::Opened;
use super::mark::{self, Mark};
use super::pages::Pages;
use crate::client::within;

/// A key that was written since then, if there is one. Where nothing at all was written nobody has to look for it. One that was deleted is not found: it is
/// one key less.
pub(crate) async fn written_since(of: &Opened, own: &Mark) -> Result<Option<String>, Error> {
    let now = within(of.connection.kv_client().get(mark::key(&own.prefix), None)).await?;
    // The mark itself may have been, by whoever asks.
    let ours = now.kvs().first().map_or(0, |kv| i64::from(kv.mod_revision() > of.revision));
    if now.header().is_some_and(|header| header.revision() <= of.revision + ours) {
        return Ok(None);
    }
    let mut keys = Pages::new(&of.connection, mark::range(&own.prefix), true);
    while let Some(kv) = keys.next().await? {
        if kv.mod_revision() > of.revision {
            return Ok(Some(String::from_utf8_lossy(kv.key()).into_owned()));
        }
    }
    Ok(None)
}
