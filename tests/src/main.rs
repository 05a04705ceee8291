//! The command as a process, without a terminal: for tests that kill it, look at its arguments, or need its own environment.

use std::io::{BufReader, stderr, stdin, stdout};

use karmaform::{Output, Terminal, Wiring, run};

fn main() {
    let output = Output {
        stdout: Box::new(stdout()),
        stderr: Box::new(stderr()),
        stdin: Box::new(BufReader::new(stdin())),
        terminal: Terminal::default(),
    };
    let code = run(std::env::args_os().collect(), Wiring::real(), output);
    karmaform::leave(code)
}
