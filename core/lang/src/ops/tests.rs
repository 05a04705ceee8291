//! Measured results of operators.

use crate::functions::testing::{evaluate, fits};

#[track_caller]
fn check(rows: &[(&str, &str)]) {
    for (text, expected) in rows {
        let result = evaluate(text);
        assert!(fits(&result, expected), "{text}\n expected {expected}\n got      {result}");
    }
}

#[test]
fn numbers_are_those_of_terraform() {
    check(&[
        ("0.1+0.2", "0.3"),
        ("9007199254740993*9007199254740993", "81129638414606699710187514626049"),
        ("9223372036854775807+1", "9223372036854775808"),
        ("-9223372036854775807-2", "-9223372036854775809"),
        ("1/0", "+Inf"),
        ("-1/0", "-Inf"),
        ("0/0", "ERROR zero by zero"),
        ("1/0-1/0", "ERROR opposite signs"),
        ("0*(1/0)", "ERROR zero by infinity"),
        ("1/(1/0)", "0"),
        ("5%0", "5"),
        ("-5%3", "-2"),
        ("5%-3", "2"),
        ("5.5%2", "1.5"),
        ("-2+3*4%5", "0"),
        ("6/3", "2"),
        ("1/4", "0.25"),
        ("-1/8", "-0.125"),
        ("10/3*3", "10"),
        ("1/3+1/3+1/3", "1"),
        ("1/7*7==1", "true"),
        ("2/3-1/3==1/3", "true"),
        ("1/3<1/3+0.1", "true"),
        ("1.50", "1.5"),
        ("1e3", "1000"),
        ("\"1\"+1", "2"),
        ("true+1", "ERROR the left operand must be a number, but is a bool"),
        ("1+\"x\"", "ERROR the right operand must be a number"),
        ("1+null", "ERROR the right operand must not be null"),
        ("-\"5\"", "-5"),
        ("-[]", "ERROR the operand must be a number, but is a tuple"),
        ("1+{}", "ERROR but is an object"),
    ]);
    // As Terraform 1.11 shows them: floats of 512 bits, with the fewest digits that tell them apart.
    for (expression, first, again, times, last) in [
        ("1/3", "0.", "3", 154, "5"),
        ("10/3", "3.", "3", 153, "2"),
        ("-2/3", "-0.", "6", 153, "7"),
        ("1e50/7", "14285714285714285714285714285714285714285714285714.", "285714", 17, "285"),
        ("0.1*0.1", "0.01", "0", 153, "1"),
        ("1.1-1", "0.1", "0", 153, "3"),
        ("3*1.1", "3.3", "0", 152, "2"),
        ("10%3.3", "0.1", "0", 152, "48"),
        ("7.5%0.2", "0.0", "9", 152, "88"),
    ] {
        let shown = format!("{first}{}{last}", again.repeat(times));
        assert_eq!(evaluate(expression), shown, "{expression}");
        assert_eq!(evaluate(&format!("{shown} == {expression}")), "true", "{expression}");
    }
    check(&[
        ("0.1+0.2 == 0.3", "true"),
        ("1.1*1.1 == 1.21", "false"),
        ("1-0.9 == 0.1", "false"),
        ("100*1.1", "110"),
        ("1/49*49", "1"),
        ("pow(1.1,10)*2", "5.18748492020000373514676539343781769275665283203125"),
    ]);
    let mut square = "1e2000".to_owned();
    square = format!("({square})*({square})*({square})");
    assert!(evaluate(&square).starts_with("ERROR the result has more than"));
}

#[test]
fn equality_never_converts() {
    check(&[
        ("1==1.0", "true"),
        ("\"a\"==1", "false"),
        ("1==\"1\"", "false"),
        ("1!=\"1\"", "true"),
        ("[]==tolist([])", "false"),
        ("[]==[]", "true"),
        ("{}=={}", "true"),
        ("{}==tomap({})", "false"),
        ("null==null", "true"),
        ("null==\"a\"", "false"),
        ("null==tostring(null)", "true"),
        ("[null]==[tostring(null)]", "false"),
        ("{a=null}=={a=null}", "true"),
        ("{a=null}=={a=tostring(null)}", "false"),
        ("[1]==[1.0]", "true"),
        ("[1,2]==[1]", "false"),
        ("{a=1}=={b=1}", "false"),
        ("tolist([1])==tolist([\"1\"])", "false"),
        ("toset([2,1])==toset([1,2])", "true"),
    ]);
}

#[test]
fn comparison_and_logic_convert() {
    check(&[
        ("1<\"2\"", "true"),
        ("\"b\">\"a\"", "ERROR the left operand must be a number"),
        ("1>=1", "true"),
        ("2<=1", "false"),
        ("null<1", "ERROR must not be null"),
        ("!\"true\"", "false"),
        ("!1", "ERROR the operand must be a bool, but is a number"),
        ("true&&\"false\"", "false"),
        ("true||null", "ERROR the right operand must not be null"),
    ]);
}

#[test]
fn what_is_known_of_the_unknown_decides() {
    check(&[
        ("u.id != null", "true"),
        ("u.id == null", "false"),
        ("u.output == null", "UNKNOWN bool"),
        ("u.id == \"x\"", "UNKNOWN bool"),
        ("u.id == u.id", "UNKNOWN bool"),
        ("u.id == 1", "false"),
        ("u.any == 1", "UNKNOWN bool"),
        ("[1,null] == u.id", "false"),
        ("\"pre-${u.id}\" == \"\"", "false"),
        ("\"pre-${u.id}\" == \"pre-x\"", "UNKNOWN bool"),
        ("[1,u.id] == [2,\"x\"]", "false"),
        ("[1,u.id] == [1,\"x\"]", "UNKNOWN bool"),
        ("toset([\"x\",u.id]) == toset([\"x\"])", "UNKNOWN bool"),
        ("toset([\"x\",u.id]) == toset([])", "false"),
        ("toset([]) != toset([u.id])", "true"),
        ("length(\"pre-${u.id}\") > 0", "true"),
        ("0 < length(\"pre-${u.id}\")", "true"),
        ("length(\"pre-${u.id}\") > 4", "UNKNOWN bool"),
        ("length(toset([1,u.id])) >= 1", "UNKNOWN bool"),
        ("length(toset([1,u.id])) > 5", "false"),
        ("length(toset([1,u.id])) < 1", "false"),
        ("length(toset([1,u.id])) == 0", "false"),
        ("length(toset([1,u.id])) == 2", "UNKNOWN bool"),
        ("3 == length(toset([1,u.id]))", "false"),
        ("tonumber(u.output)+1", "UNKNOWN number"),
        ("0*tonumber(u.output)", "UNKNOWN number"),
        ("-tonumber(u.output)", "UNKNOWN number"),
        ("!tobool(u.output)", "UNKNOWN bool"),
        ("true && tobool(u.output)", "UNKNOWN bool"),
        // Terraform 1.11 says unknown, 1.12 and later say as we do.
        ("false && tobool(u.output)", "false"),
        ("tobool(u.output) || true", "true"),
        ("u.list + 1", "ERROR the left operand must be a number, but is a list"),
    ]);
}

#[test]
fn secrets_make_the_result_secret() {
    check(&[
        ("issensitive(sensitive(1)==1)", "true"),
        ("issensitive(null == sensitive(1))", "true"),
        ("issensitive([sensitive(1)] == [1])", "true"),
        ("issensitive(1 + sensitive(2))", "true"),
        ("issensitive(-sensitive(2))", "true"),
        ("issensitive(false && sensitive(true))", "true"),
        ("1 + sensitive(\"hunter2\")", "ERROR the right operand must be a number, and this string does not read as one"),
    ]);
}
