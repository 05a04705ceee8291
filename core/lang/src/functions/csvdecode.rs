//! `csvdecode`

use karmaform_model::ObjectAttribute;

use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "csvdecode",
    doc: "A list of objects, one for each row of a CSV text, with attributes named by its first row.",
    parameters: &[Parameter::string("str")],
    gives: Gives::Is(Shape::Any),
    body: Some(csvdecode),
    #[cfg(test)]
    rows: &[
        ("csvdecode(\"a,b\\n1,2\\n\")", "tolist([{\"a\" = \"1\" \"b\" = \"2\"}])"),
        ("csvdecode(\"a,b\\r\\n1,2\\r\\n\\r\\n3,4\")", "tolist([{\"a\" = \"1\" \"b\" = \"2\"}, {\"a\" = \"3\" \"b\" = \"4\"}])"),
        ("csvdecode(\"a\\n\\\"x,\\ny \\\"\\\"z\\\"\\\"\\\"\\n\")", "tolist([{\"a\" = \"x,\\ny \\\"z\\\"\"}])"),
        ("csvdecode(\"a,b\\n1,2\\r\")", "tolist([{\"a\" = \"1\" \"b\" = \"2\"}])"),
        ("csvdecode(\"a,b\\n\")", "tolist([])"),
        ("csvdecode(\"\")", "ERROR the first row, which names the columns, is missing"),
        ("csvdecode(\"a,a\\n1,2\")", "ERROR two columns have the same name"),
        ("csvdecode(\"a,b\\n1\")", "ERROR line 2 has 1 column, but the first has 2"),
        ("csvdecode(\"a\\nx\\\"y\\n\")", "ERROR line 2: a quote inside of a value"),
        ("csvdecode(\"a\\n\\\"y\\n\")", "ERROR line 2: a quote is never closed"),
        ("csvdecode(u.id)", "UNKNOWN"),
    ],
    ..Function::BASE
};

fn csvdecode(a: &Arguments<'_>) -> Answer {
    let mut rows = rows(a.text(0)).map_err(|message| FunctionError::at(0, message))?.into_iter();
    let (_, names) = rows.next().ok_or_else(|| FunctionError::at(0, "the first row, which names the columns, is missing"))?;
    let types = names.iter().map(|n| (n.clone(), ObjectAttribute::required(Type::String))).collect::<std::collections::BTreeMap<_, _>>();
    if types.len() < names.len() {
        return Err(FunctionError::at(0, "two columns have the same name"));
    }
    let mut objects = Vec::new();
    for (line, row) in rows {
        if row.len() != names.len() {
            let columns = if row.len() == 1 { "1 column".to_owned() } else { format!("{} columns", row.len()) };
            return Err(FunctionError::at(0, format!("line {line} has {columns}, but the first has {}", names.len())));
        }
        objects.push(names.iter().cloned().zip(row.into_iter().map(string)).collect::<Object>().into());
    }
    Ok(Value::list(Type::Object(types), objects))
}

/// The rows with the lines they begin on. Empty lines are no rows.
fn rows(text: &str) -> Result<Vec<(usize, Vec<String>)>, String> {
    // One that ends the text counts as a part of a line break that is not there.
    let text = text.strip_suffix('\r').unwrap_or(text).replace("\r\n", "\n");
    let mut rows = Vec::new();
    let mut rest = text.as_str();
    let mut line = 1;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('\n') {
            rest = after;
            line += 1;
            continue;
        }
        let mut row = Vec::new();
        let first_line = line;
        loop {
            let value;
            (value, rest) = field(rest, &mut line)?;
            row.push(value);
            match rest.strip_prefix(',') {
                Some(after) => rest = after,
                None => break,
            }
        }
        rest = rest.strip_prefix('\n').unwrap_or(rest);
        line += 1;
        rows.push((first_line, row));
    }
    Ok(rows)
}

/// One value and what follows it: a comma, a line break or the end.
fn field<'a>(text: &'a str, line: &mut usize) -> Result<(String, &'a str), String> {
    let Some(mut rest) = text.strip_prefix('"') else {
        let end = text.find([',', '\n']).unwrap_or(text.len());
        if text[..end].contains('"') {
            return Err(format!("line {line}: a quote inside of a value that does not begin with one"));
        }
        return Ok((text[..end].to_owned(), &text[end..]));
    };
    let begin = *line;
    let mut value = String::new();
    loop {
        let Some(end) = rest.find('"') else { return Err(format!("line {begin}: a quote is never closed")) };
        value.push_str(&rest[..end]);
        *line += rest[..end].matches('\n').count();
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(after) => {
                value.push('"');
                rest = after;
            }
            None if rest.is_empty() || rest.starts_with([',', '\n']) => return Ok((value, rest)),
            None => return Err(format!("line {line}: text behind a closing quote")),
        }
    }
}
