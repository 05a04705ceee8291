//! What every command has at hand: the wiring, the streams, how to draw, and how a run ends.

use std::path::PathBuf;

use karmaform_lang::Sources;
use karmaform_model::{Diagnostic, Diagnostics};

use crate::flags::ViewFlags;
use crate::lines::Lines;
use crate::output::Output;
use crate::profile::Profile;
use crate::runtime::{Executor, Interrupt, seconds};
use crate::ui::diagnostics::{errors_text, warnings_text};
use crate::ui::json::stream::Stream;
use crate::ui::style::{Theme, Tone};
use crate::wiring::Wiring;

/// The version of the tool.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The version of Terraform whose forms and lines are kept. Others compare it: below 0.12 they would take us for something else.
pub(crate) use karmaform_lang::TERRAFORM;
/// Prose is not set wider than this.
const WIDEST_PROSE: usize = 100;

/// A run.
pub(crate) struct App {
    /// Providers, backends, the machine.
    pub(crate) wiring: Wiring,
    /// The streams.
    pub(crate) output: Output,
    /// Where futures run.
    pub(crate) executor: Executor,
    /// Ctrl-C.
    pub(crate) interrupt: Interrupt,
    /// The directory of the configuration.
    pub(crate) directory: PathBuf,
    /// How standard output is drawn.
    pub(crate) theme: Theme,
    /// How standard error is drawn.
    pub(crate) error_theme: Theme,
    /// Lines of JSON.
    pub(crate) lines: Lines,
    /// What took how long.
    pub(crate) profile: Profile,
    /// The same for a collector that asked for it, when the run is over.
    pub(crate) trace: Option<String>,
    /// `-compact-warnings`
    pub(crate) compact_warnings: bool,
    /// The texts that diagnostics point into.
    pub(crate) sources: Sources,
}

/// Why a command ended early. What is inside is shown by whoever catches it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stop {
    /// These, with exit code 1.
    Because(Diagnostics),
    /// All is said; this exit code.
    Code(i32),
}

impl From<Diagnostic> for Stop {
    fn from(diagnostic: Diagnostic) -> Self {
        Self::Because(diagnostic.into())
    }
}

impl From<Diagnostics> for Stop {
    fn from(diagnostics: Diagnostics) -> Self {
        Self::Because(diagnostics)
    }
}

/// The end of a command: an exit code.
pub(crate) type Ended = Result<i32, Stop>;

impl App {
    /// A run in the wiring's directory. `Err`: the system gives no threads.
    ///
    /// # Errors
    /// See above.
    pub(crate) fn new(wiring: Wiring, output: Output) -> std::io::Result<Self> {
        let executor = Executor::new()?;
        let interrupt = Interrupt::default();
        if wiring.signals {
            executor.listen(&interrupt);
        }
        let in_automation =
            ["KF_IN_AUTOMATION", "TF_IN_AUTOMATION"].iter().any(|n| wiring.environment.get(*n).is_some_and(|v| !v.is_empty()));
        let product = if in_automation { "Terraform" } else { "karmaform" };
        let allowed =
            wiring.environment.get("NO_COLOR").is_none_or(String::is_empty) && wiring.environment.get("TERM").is_none_or(|t| t != "dumb");
        let theme = |is_terminal: bool| Theme {
            color: is_terminal && allowed,
            width: output.terminal.width.filter(|_| is_terminal).map(|w| w.min(WIDEST_PROSE)),
            product,
        };
        let (theme, error_theme) = (theme(output.terminal.stdout), theme(output.terminal.stderr));
        Ok(Self {
            directory: wiring.directory.clone(),
            wiring,
            output,
            executor,
            interrupt,
            theme,
            error_theme,
            lines: Lines::default(),
            profile: Profile::default(),
            trace: None,
            compact_warnings: false,
            sources: Sources::default(),
        })
    }

    /// `-no-color`
    pub(crate) fn without_color(&mut self) {
        self.theme.color = false;
        self.error_theme.color = false;
    }

    /// True in a pipeline: no hints about next steps.
    pub(crate) fn in_automation(&self) -> bool {
        self.theme.product != "karmaform"
    }

    /// True if a person can be asked: the flag, the environment, and a terminal.
    pub(crate) fn can_ask(&self, flag: bool) -> bool {
        self.wants_input(flag) && self.output.terminal.stdin
    }

    /// True unless the flag or the environment says that nobody is there.
    pub(crate) fn wants_input(&self, flag: bool) -> bool {
        let variable = ["KF_INPUT", "TF_INPUT"].iter().find_map(|n| self.wiring.environment.get(*n));
        flag && !variable.is_some_and(|v| matches!(v.to_lowercase().as_str(), "0" | "false"))
    }

    /// Asks whether something without a plan is to be done; only `yes` will do.
    ///
    /// # Errors
    /// If the answer is another one: that `what` was cancelled is said.
    pub(crate) fn confirm(&mut self, question: &str, what: &str) -> Result<(), Stop> {
        self.output.print(&format!("{question}\n\n  Enter a value: "));
        if self.output.read_line().as_deref() != Some("yes") {
            self.output.print(&format!("\n{what} cancelled.\n"));
            return Err(Stop::Code(1));
        }
        self.output.print("\n");
        Ok(())
    }

    /// What somebody answers to a question about a plan, with what is to be known of it below.
    pub(crate) fn answer(&mut self, question: &str, explanation: &str) -> Option<String> {
        let (question, value) = (self.theme.strong(Tone::Plain, question), self.theme.strong(Tone::Plain, "Enter a value: "));
        self.output.print(&format!("\n{question}\n{explanation}\n\n  {value}"));
        let answer = self.output.read_line();
        if !self.output.terminal.stdin {
            self.output.print("\n");
        }
        answer
    }

    /// Milliseconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        self.wiring.clock.now()
    }

    /// Seconds since 1970.
    pub(crate) fn now_seconds(&self) -> i64 {
        seconds(&*self.wiring.clock)
    }

    /// Lines of JSON, stamped now.
    pub(crate) fn stream(&self) -> Stream {
        Stream { now: self.now() }
    }

    /// Writes lines of JSON to whoever reads them.
    pub(crate) fn tell(&mut self, lines: impl FnOnce(Stream) -> String) {
        if self.lines.are_wanted() {
            let lines = lines(self.stream());
            self.lines.write(&mut self.output, &lines);
        }
    }

    /// How to show what comes, and the first line for programs.
    ///
    /// # Errors
    /// If the file for events can't be written.
    pub(crate) fn view(&mut self, flags: &ViewFlags) -> Result<(), Stop> {
        self.lines.only = flags.json;
        self.compact_warnings = flags.compact_warnings;
        if let Some(file) = &flags.json_into {
            self.lines.beside(&self.directory, file)?;
        }
        self.tell(|stream| stream.version(VERSION));
        Ok(())
    }

    /// Text to standard output; nothing in JSON mode, where only whole objects may stand.
    pub(crate) fn say(&mut self, text: &str) {
        if !self.lines.only {
            self.output.print(text);
        }
    }

    /// Errors to standard error and warnings to standard output; in JSON mode all of them as lines.
    pub(crate) fn show(&mut self, diagnostics: &Diagnostics) {
        self.show_warnings(diagnostics);
        self.show_errors(diagnostics);
    }

    /// Only the warnings.
    pub(crate) fn show_warnings(&mut self, diagnostics: &Diagnostics) {
        self.stream_all(diagnostics, false);
        if !self.lines.only {
            let text = warnings_text(diagnostics.iter(), &self.sources, &self.theme, self.compact_warnings);
            self.output.print(&text);
        }
    }

    /// Only the errors.
    pub(crate) fn show_errors(&mut self, diagnostics: &Diagnostics) {
        self.stream_all(diagnostics, true);
        if !self.lines.only {
            let text = errors_text(diagnostics.iter(), &self.sources, &self.error_theme);
            self.output.complain(&text);
        }
    }

    /// Warnings of what goes on beside the command: to standard error, as standard output may be one whole answer by now.
    pub(crate) fn remark(&mut self, warnings: &Diagnostics) {
        self.stream_all(warnings, false);
        if !self.lines.only {
            let text = warnings_text(warnings.iter(), &self.sources, &self.error_theme, self.compact_warnings);
            self.output.complain(&text);
        }
    }

    fn stream_all(&mut self, diagnostics: &Diagnostics, errors: bool) {
        if self.lines.are_wanted() {
            let stream = self.stream();
            let these = diagnostics.iter().filter(|d| d.is_error() == errors);
            let lines: String = these.map(|d| stream.diagnostic(d, &self.sources)).collect();
            self.lines.write(&mut self.output, &lines);
        }
    }

    /// Shows why a command ended and gives its exit code.
    pub(crate) fn end(&mut self, ended: Ended) -> i32 {
        match ended {
            Ok(code) | Err(Stop::Code(code)) => code,
            Err(Stop::Because(diagnostics)) => {
                self.show(&diagnostics);
                1
            }
        }
    }
}
