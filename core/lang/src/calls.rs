//! Calls checked without evaluating: is there such a function, and does it take so many arguments?

use std::collections::BTreeMap;
use std::sync::OnceLock;

use karmaform_model::Diagnostic;

use crate::functions;
use crate::special::FORMS;
use crate::suggest;
use crate::syntax::Call;

/// The fewest and the most arguments of every function. Built once: a configuration may hold many calls.
fn arities() -> &'static BTreeMap<&'static str, (usize, Option<usize>)> {
    static ARITIES: OnceLock<BTreeMap<&'static str, (usize, Option<usize>)>> = OnceLock::new();
    ARITIES.get_or_init(|| {
        let arity = |f: &functions::Signature| {
            let fewest = f.parameters.iter().filter(|p| !p.optional && !p.repeated).count();
            let open = f.parameters.iter().any(|p| p.repeated);
            (fewest, (!open).then_some(f.parameters.len()))
        };
        let forms = FORMS.into_iter().map(|name| match name {
            "can" => (name, (1, Some(1))),
            "try" => (name, (1, None)),
            _ => (name, (2, Some(2))),
        });
        functions::all().iter().map(|f| (f.name, arity(f))).chain(forms).collect()
    })
}

/// What is wrong with a call.
pub(crate) fn check(call: &Call) -> Option<Diagnostic> {
    let name = call.name.as_str();
    let Some((fewest, most)) = arities().get(name) else { return Some(unknown(call)) };
    let given = call.args.len();
    // With "..." the last argument stands for any number.
    let (low, high) = if call.expand { (usize::MAX, given - 1) } else { (given, given) };
    let plural = |n: usize| if n == 1 { "1 argument".to_owned() } else { format!("{n} arguments") };
    let wanted = match most {
        Some(most) if high > *most => format!("takes {}{}", if fewest == most { "" } else { "at most " }, plural(*most)),
        _ if low < *fewest => format!("takes {}{}", if Some(*fewest) == *most { "" } else { "at least " }, plural(*fewest)),
        _ => return None,
    };
    let detail = format!("{name}() {wanted}, but {given} {} given.", if given == 1 { "is" } else { "are" });
    Some(Diagnostic::error("Wrong number of arguments", detail).with_span(Some(call.name_span)))
}

fn unknown(call: &Call) -> Diagnostic {
    if let Some(elsewhere) = functions::elsewhere(&call.name) {
        return Diagnostic::slip("Function not supported", format!("{}() is not here: {}.", call.name, elsewhere.why))
            .with_span(Some(call.name_span))
            .with_hint(elsewhere.instead);
    }
    let error = Diagnostic::slip("Unknown function", format!("There is no function \"{}\".", call.name)).with_span(Some(call.name_span));
    // Functions of old times, and names of types that people take for such.
    match call.name.as_str() {
        "list" => return error.with_hint("Write tolist([...])."),
        "map" => return error.with_hint("Write tomap({ KEY = VALUE, ... })."),
        _ => {}
    }
    match suggest::hint(&call.name, functions::names()) {
        Some(hint) => error.with_hint(hint),
        None if call.name.contains("::") => {
            error.with_hint("Of the functions of providers only those of provider::terraform exist here; built-in ones need no prefix.")
        }
        None => error,
    }
}
