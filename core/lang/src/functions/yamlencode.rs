//! `yamlencode`

use super::prelude::*;
use super::yamlwriter::yaml;

pub(super) const FUNCTION: Function = Function {
    name: "yamlencode",
    doc: "The value as YAML text, in blocks.",
    parameters: &[Parameter::any("value").null().unknown()],
    body: Some(|a| {
        let value = a.value(0);
        if !value.is_wholly_known() {
            return Ok(a.unknown());
        }
        Ok(string(yaml(value)))
    }),
    #[cfg(test)]
    rows: &[
        (
            "yamlencode({a=[1,\"x\",true],b=\"l1\\nl2\",c={},d=[],e=null,f=\"yes\"})",
            "\"\\\"a\\\":\\n- 1\\n- \\\"x\\\"\\n- true\\n\\\"b\\\": |-\\n  l1\\n  l2\\n\\\"c\\\": {}\\n\\\"d\\\": []\\n\\\"e\\\": null\\n\\\"f\\\": \\\"yes\\\"\\n\"",
        ),
        ("yamlencode([[1,[2]],{a=1,b=[2]}])", "\"- - 1\\n  - - 2\\n- \\\"a\\\": 1\\n  \\\"b\\\":\\n  - 2\\n\""),
        ("yamlencode({a={b={c=1.5}}})", "\"\\\"a\\\":\\n  \\\"b\\\":\\n    \\\"c\\\": 1.5\\n\""),
        ("yamlencode({a=\"x\\n\",b=\"x\\n\\n\"})", "\"\\\"a\\\": |\\n  x\\n\\\"b\\\": |+\\n  x\\n\\n\""),
        ("yamlencode({b=\" x\\ny\"})", "\"\\\"b\\\": |2-\\n   x\\n  y\\n\""),
        ("yamlencode([\"a\\nb\"])", "\"- |-\\n  a\\n  b\\n\""),
        ("yamlencode(1)", "\"1\\n...\\n\""),
        ("yamlencode({a=\"\\nb\"})", "\"\\\"a\\\": |2-\\n\\n  b\\n\""),
        ("yamlencode(\"\\n\")", "\"|2+\\n\\n\""),
        ("yamlencode(zipmap([\"a\\nb\"],[[1,{c=2}]]))", "\"? |-\\n  a\\n  b\\n: - 1\\n  - \\\"c\\\": 2\\n\""),
        ("yamlencode(zipmap([\"a\\u2028b\"],[1]))", "\"? \\\"a\\\\Lb\\\"\\n: 1\\n\""),
        ("yamlencode(\"é😀\\u2028\\u001b\")", "\"\\\"é\\\\U0001F600\\\\L\\\\e\\\"\\n\""),
        (
            "yamlencode([format(\"%080d  b c\",1)])",
            "\"- \\\"00000000000000000000000000000000000000000000000000000000000000000000000000000001\\n  \\\\ b c\\\"\\n\"",
        ),
        ("yamlencode([])", "\"[]\\n\""),
        ("yamlencode(\"a\")", "\"\\\"a\\\"\\n\""),
        ("yamlencode(null)", "\"null\\n...\\n\""),
        ("yamlencode(\"a\\tb\\\\ \\\"\")", "\"\\\"a\\\\tb\\\\\\\\ \\\\\\\"\\\"\\n\""),
        ("yamlencode({a=u.id})", "UNKNOWN string"),
        ("issensitive(yamlencode([sensitive(1)]))", "true"),
    ],
    ..Function::BASE
};
