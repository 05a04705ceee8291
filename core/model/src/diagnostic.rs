//! The one diagnostic type: what happened, where, why, and what to do.
//!
//! Drawn elsewhere: nothing here knows a terminal.

use serde::{Deserialize, Serialize};

use crate::Address;

/// Error or warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The work can't go on, or part of it failed.
    Error,
    /// Worth knowing, stops nothing.
    Warning,
}

/// Which source file; an index into the loader's list of sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FileId(pub u32);

/// A byte range of a source file, end exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One behind the last byte.
    pub end: u32,
}

/// The longest that anybody is left alone for who asks for it, in seconds: a step has five tries, and a person waits for them.
const LONGEST_WAIT: u64 = 60;

/// One thing to tell the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// One line, no user data, no full stop.
    pub summary: String,
    /// Sentences: what happened and why.
    pub detail: String,
    /// The resource it is about.
    pub address: Option<Address>,
    /// Others that the same is true of, where it is told once for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Address>,
    /// Where in the configuration.
    pub span: Option<Span>,
    /// More places with a word on each.
    pub labels: Vec<(Span, String)>,
    /// What to do, one sentence each.
    pub hints: Vec<String>,
    /// The engine may try the same step again.
    pub retryable: bool,
    /// Not before so many seconds, as who was asked says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// All names of a configuration are what they are in spite of it: what is found beside it does not follow from it, but at its own place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaves_names: bool,
}

impl Diagnostic {
    /// An error.
    pub fn error(summary: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            summary: summary.into(),
            detail: detail.into(),
            address: None,
            also: Vec::new(),
            span: None,
            labels: Vec::new(),
            hints: Vec::new(),
            retryable: false,
            retry_after: None,
            leaves_names: false,
        }
    }

    /// An error of who wrote a configuration, which leaves all names in it what they are.
    pub fn slip(summary: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { leaves_names: true, ..Self::error(summary, detail) }
    }

    /// A warning.
    pub fn warning(summary: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(summary, detail) }
    }

    /// With the resource it is about.
    #[must_use]
    pub fn at(mut self, address: &Address) -> Self {
        self.address.get_or_insert_with(|| address.clone());
        self
    }

    /// With its place in the configuration, if it has none yet.
    #[must_use]
    pub fn with_span(mut self, span: Option<Span>) -> Self {
        self.span = self.span.or(span);
        self
    }

    /// With a second place.
    #[must_use]
    pub fn with_label(mut self, span: Span, word: impl Into<String>) -> Self {
        self.labels.push((span, word.into()));
        self
    }

    /// With advice.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Marked as worth another try.
    #[must_use]
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    /// Marked as worth another try, but not before so many seconds. Who asks for more than a minute is asked again after one.
    #[must_use]
    pub fn retryable_after(self, seconds: u64) -> Self {
        Self { retry_after: Some(seconds.min(LONGEST_WAIT)), ..self.retryable() }
    }

    /// True for an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// Many diagnostics; a stage returns its value *and* these.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.0.push(diagnostic);
    }

    /// True if one of them is an error.
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(Diagnostic::is_error)
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, in the order they came.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.0.iter()
    }
}

impl Extend<Diagnostic> for Diagnostics {
    fn extend<T: IntoIterator<Item = Diagnostic>>(&mut self, iter: T) {
        self.0.extend(iter);
    }
}

impl FromIterator<Diagnostic> for Diagnostics {
    fn from_iter<T: IntoIterator<Item = Diagnostic>>(iter: T) -> Self {
        Self(iter.into_iter().collect())
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        Self(vec![diagnostic])
    }
}
