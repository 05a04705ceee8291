//! `format` and `formatlist`

use super::prelude::*;
use super::verbs;

pub(super) const FORMAT: Function = Function {
    name: "format",
    doc: "A text with %-verbs replaced by values: %s %q %d %x %f %g %t %v and their like.",
    parameters: &[Parameter::string("format")],
    rest: Some(Parameter::any("args").null().unknown()),
    body: Some(|a| verbs::format(a.text(0), &a.values()[1..])),
    #[cfg(test)]
    rows: &[
        ("format(\"%s\",[1])", "ERROR the verb \"%s\" at 0 needs a string, not a tuple"),
        ("format(\"%s %s\",\"a\")", "ERROR the verb \"%s\" at 3 needs argument 2, but there is only 1"),
        ("format(\"%s\",\"a\",\"b\")", "ERROR only 1 of the 2 arguments is used"),
        ("format(\"%v\",[1,\"a\"])", "\"[1,\\\"a\\\"]\""),
        ("format(\"%d\",\"12\")", "\"12\""),
        (
            "format(\"%05.2f|%-5s|%5s|%x|%q|%%|%t\",3.14159,\"ab\",\"ab\",255,\"q\\\"\",true)",
            "\"03.14|ab   |   ab|ff|\\\"q\\\\\\\"\\\"|%|true\"",
        ),
        ("format(\"%d\",1.5)", "ERROR the verb \"%d\" at 0 needs a whole number"),
        ("format(\"%[2]s %[1]s\",\"a\",\"b\")", "\"b a\""),
        ("format(\"%[1]d %d\",1,2)", "\"1 2\""),
        ("format(\"%[1]s %[1]s\",\"a\")", "\"a a\""),
        ("format(\"%[3]s\",\"a\")", "ERROR needs argument 3, but there is only 1"),
        ("format(\"%[0]s\",\"a\")", "ERROR at 0 is not complete"),
        ("format(\"%v %v %v\",\"a\",1.5,true)", "\"a 1.5 true\""),
        ("format(\"%v\",1000000)", "\"1e+06\""),
        ("format(\"%s\",1000000)", "\"1000000\""),
        ("format(\"%v\",0.000001)", "\"1e-06\""),
        ("format(\"%v\",123456789)", "\"1.23456789e+08\""),
        ("format(\"%v\",123456)", "\"123456\""),
        ("format(\"%10.3v\",3.14159)", "\"   3.14159\""),
        ("format(\"%v\",null)", "\"null\""),
        ("format(\"%#v\",\"a\")", "\"\\\"a\\\"\""),
        ("format(\"%#v\",{a=\"x\"})", "\"{\\\"a\\\":\\\"x\\\"}\""),
        ("format(\"%e\",1234.5)", "\"1.234500e+03\""),
        ("format(\"%e\",0)", "\"0.000000e+00\""),
        ("format(\"%.3g|%g|%G\",1234567,0.0000001,1e21)", "\"1.23e+06|1e-07|1E+21\""),
        ("format(\"%f\",1/3)", "\"0.333333\""),
        ("format(\"%f\",1e30)", "\"1000000000000000000000000000000.000000\""),
        ("format(\"%.3f\",\"2\")", "\"2.000\""),
        ("format(\"%.0f %.1f\",2.5,0.25)", "\"2 0.2\""),
        ("format(\"%6.2f|%-8.2f|%+.1f\",3.14159,3.14159,3.14159)", "\"  3.14|3.14    |+3.1\""),
        ("format(\"%010.2f\",3.14159)", "\"0000003.14\""),
        ("format(\"%5d|%-5d|%05d|%+d|% d\",1,1,1,1,1)", "\"    1|1    |00001|+1| 1\""),
        ("format(\"%05d %x\",-5,-255)", "\"-0005 -ff\""),
        ("format(\"%.2d|%5.3d|%-5.3d|%05.3d|%+.3d\",5,5,5,5,-5)", "\"05|  005|005  |  005|-005\""),
        ("format(\"%.3x|%#.3x|%#.5o|%#08x|%+08.3o\",10,10,10,10,0)", "\"00a|0x00a|000012|0x00000a|    +000\""),
        ("format(\"%5.x|%.0d|%+8.0d|%.0d\",0,0,0,5)", "\"|||5\""),
        ("format(\"%-05d|%-05x|%-06.2f|%-05s|%-05v|%-05q\",5,5,1.5,\"a\",5,\"a\")", "\"5    |5    |001.50|a0000|50000|\\\"a\\\"00\""),
        ("format(\"%.0s|%.s|%.1s|%5.0s|%.0q\",\"ab\",\"ab\",\"ab\",\"ab\",\"ab\")", "\"ab|ab|a|   ab|\\\"ab\\\"\""),
        ("format(\"% .0v|%+v|%-+8.3v|%.2v\",123456789.123,5,0,\"abc\")", "\"1.23456789123e+08|5|0       |abc\""),
        ("format(\"x\",u.id)", "UNKNOWN string"),
        ("format(\"x%s\",\"a\",u.id)", "UNKNOWN string"),
        ("format(\"%X %o %b\",255,8,5)", "\"FF 10 101\""),
        ("format(\"%#x %#o %#b\",255,8,5)", "\"0xff 010 0b101\""),
        ("format(\"%x\",12345678901234567890123)", "\"29d42b64e76714244cb\""),
        ("format(\"%x\",\"abc\")", "ERROR needs a number"),
        ("format(\"%.2s|%5s|%-5s|%05s\",\"abc\",\"é\",\"é\",\"a\")", "\"ab|    é|é    |0000a\""),
        ("format(\"%5t\",true)", "\"true\""),
        ("format(\"%t\",1)", "ERROR needs a bool, not a number"),
        ("format(\"%z\",1)", "ERROR there is no verb \"%z\", at 0"),
        ("format(\"%5%\")", "ERROR there is no verb \"%5%\", at 0"),
        ("format(\"%5[1]d|%5.2[2]f\",1,2.5)", "\"    1| 2.50\""),
        ("format(\"%[1]5d\",1)", "ERROR there is no verb \"%[1]5\", at 0"),
        ("format(\"%[01]d\",1)", "ERROR \"%[01]d\" at 0 is not complete; a percent sign itself is written %%"),
        ("format(\"100%\")", "ERROR \"%\" at 3 is not complete; a percent sign itself is written %%"),
        ("format(\"%s|%s\",\"a\",null)", "ERROR needs a string, not null"),
        ("format(\"%s-x\",u.id)", "UNKNOWN string"),
        ("format(\"a-%s\",u.id)", "UNKNOWN string"),
        ("startswith(format(\"a-%s\",u.id),\"a-\")", "true"),
        ("issensitive(format(\"%s\",sensitive(\"a\")))", "true"),
    ],
    ..Function::BASE
};

pub(super) const FORMATLIST: Function = Function {
    name: "formatlist",
    doc: "A list of texts: the format for each element of the lists among the arguments.",
    parameters: &[Parameter::string("format")],
    rest: Some(Parameter::any("args").null().unknown()),
    gives: Gives::Is(Shape::STRINGS),
    body: Some(|a| {
        let arguments = &a.values()[1..];
        if arguments.iter().any(|v| has_unknown_length(v)) {
            return Ok(a.unknown());
        }
        let text = |row: &[&Value]| match row.iter().all(|v| v.is_wholly_known()) {
            true => verbs::format(a.text(0), row),
            false => Ok(Value::unknown_not_null(Type::String)),
        };
        let Some(length) = length(arguments)? else { return Ok(Value::list(Type::String, vec![text(arguments)?])) };
        let texts = (0..length).map(|i| {
            let row: Vec<&Value> = arguments.iter().map(|v| v.as_items().and_then(|items| items.get(i)).unwrap_or(v)).collect();
            text(&row).map_err(|e| FunctionError { message: format!("for element {i}, {}", e.message), ..e })
        });
        Ok(Value::list(Type::String, texts.collect::<Result<_, _>>()?))
    }),
    #[cfg(test)]
    rows: &[
        ("formatlist(\"%s-%s\",\"a\",[\"x\",\"y\"])", "tolist([\"a-x\", \"a-y\"])"),
        ("formatlist(\"%s-%s\",[\"a\"],[\"x\",\"y\"])", "ERROR the lists among the arguments have different lengths: 1 and 2"),
        ("formatlist(\"%s %s\",[\"a\"],toset([\"x\"]))", "tolist([\"a x\"])"),
        ("formatlist(\"%s\",[])", "tolist([])"),
        ("formatlist(\"a\")", "tolist([\"a\"])"),
        ("formatlist(\"%v\",[[1],[2]])", "tolist([\"[1]\", \"[2]\"])"),
        ("formatlist(\"%d\",[1.5])", "ERROR for element 0, the verb \"%d\" at 0 needs a whole number"),
        ("formatlist(\"%s\",{a=1})", "ERROR needs a string, not an object"),
        ("formatlist(\"%s\",[\"a\",u.id])", "tolist([\"a\", UNKNOWN string])"),
        ("formatlist(\"%s\",u.list)", "UNKNOWN list(string)"),
        ("formatlist(\"%s\",u.any)", "UNKNOWN list(string)"),
        ("formatlist(\"%s-%s\",[\"a\"],u.any)", "UNKNOWN list(string)"),
        ("formatlist(\"%s-%s\",[],u.list)", "UNKNOWN list(string)"),
        ("formatlist(\"%s-%s\",[\"a\",\"b\"],u.id)", "tolist([UNKNOWN string, UNKNOWN string])"),
        ("formatlist(\"%s-%s\",u.id,[\"a\",u.id])", "tolist([UNKNOWN string, UNKNOWN string])"),
        ("formatlist(\"%s-%s\",[\"a\",u.id],\"x\")", "tolist([\"a-x\", UNKNOWN string])"),
        ("formatlist(\"%s-%s\",[],u.id)", "tolist([])"),
        ("formatlist(\"%s\",u.id)", "tolist([UNKNOWN string])"),
        ("formatlist(u.id,[\"a\"])", "UNKNOWN list(string)"),
        ("formatlist(\"%s\",toset([u.id]))", "tolist([UNKNOWN string])"),
        ("formatlist(\"%s-%s\",toset([u.id,\"a\"]),\"x\")", "UNKNOWN list(string)"),
    ],
    ..Function::BASE
};

/// True for a list or a set of which nobody knows how many elements it has, and for what may be one.
fn has_unknown_length(value: &Value) -> bool {
    match &value.kind {
        Kind::Unknown(u) => matches!(u.ty, Type::Any | Type::List(_) | Type::Set(_) | Type::Tuple(_)),
        // Of two that are not known one may be the other.
        Kind::Set(_, items) => items.len() > 1 && !value.is_wholly_known(),
        _ => false,
    }
}

/// The length that all lists among the arguments have; none if there is no list.
fn length(arguments: &[&Value]) -> Result<Option<usize>, FunctionError> {
    let mut found = None;
    for (i, items) in arguments.iter().enumerate().filter_map(|(i, v)| v.as_items().map(|items| (i, items))) {
        match found {
            Some(before) if before != items.len() => {
                let message = format!("the lists among the arguments have different lengths: {before} and {}", items.len());
                return Err(FunctionError::at(i + 1, message));
            }
            _ => found = Some(items.len()),
        }
    }
    Ok(found)
}
