//! Processes of members, by name. They end with whoever started them.

use std::process::Child;

/// Those that were started.
#[derive(Default)]
pub(crate) struct Processes(Vec<(String, Child)>);

impl Processes {
    pub(crate) fn add(&mut self, name: &str, child: Child) {
        self.0.push((name.to_owned(), child));
    }

    /// SIGKILL; it is gone when this returns.
    pub(crate) fn kill(&mut self, name: &str) {
        for (_, child) in self.0.iter_mut().filter(|(n, _)| n == name) {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for (_, child) in &mut self.0 {
            drop(child.kill());
            drop(child.wait());
        }
    }
}
