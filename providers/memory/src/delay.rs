//! A pause that works under any executor: a thread that wakes the task.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

#[derive(Default)]
struct Alarm {
    rang: bool,
    waker: Option<Waker>,
}

pub(crate) async fn pause(milliseconds: u64) {
    if milliseconds == 0 {
        return;
    }
    let alarm = Arc::new(Mutex::new(Alarm::default()));
    let ringer = alarm.clone();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(milliseconds));
        let mut alarm = ringer.lock().unwrap_or_else(PoisonError::into_inner);
        alarm.rang = true;
        if let Some(waker) = alarm.waker.take() {
            waker.wake();
        }
    });
    poll_fn(|context| {
        let mut alarm = alarm.lock().unwrap_or_else(PoisonError::into_inner);
        if alarm.rang {
            return Poll::Ready(());
        }
        alarm.waker = Some(context.waker().clone());
        Poll::Pending
    })
    .await;
}
