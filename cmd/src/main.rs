//! The binary: this machine and this terminal, handed to [`karmaform::run`].

use std::io::IsTerminal as _;

use karmaform::{Output, Terminal, Wiring, run};

fn main() {
    let terminal = Terminal {
        stdin: std::io::stdin().is_terminal(),
        stdout: std::io::stdout().is_terminal(),
        stderr: std::io::stderr().is_terminal(),
        width: width(),
    };
    let output = Output {
        stdout: Box::new(std::io::stdout()),
        stderr: Box::new(std::io::stderr()),
        stdin: Box::new(std::io::BufReader::new(std::io::stdin())),
        terminal,
    };
    let code = run(std::env::args_os().collect(), Wiring::real(), output);
    karmaform::leave(code)
}

/// The columns of the terminal: what the shell says, else what most have.
fn width() -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    let measured = || comfy_table::Table::new().width().map(usize::from);
    columns.or_else(measured).filter(|w| *w >= 20)
}
