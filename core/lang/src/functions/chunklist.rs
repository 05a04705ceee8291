//! `chunklist`

use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "chunklist",
    doc: "The list cut into lists of a size; all in one if the size is 0.",
    parameters: &[Parameter::new("list", Shape::LIST).marked(), Parameter::number("size").marked()],
    gives: Gives::Depends(|values| Type::list(values.first().map_or(Type::Any, |v| v.ty()))),
    body: Some(|a| {
        let (list, size) = (a.value(0), a.count(1)?);
        let element = element_type(&list.ty());
        let marks = list.marks() | a.value(1).marks();
        let size = if size == 0 { a.items(0).len().max(1) } else { size };
        let chunks = a.items(0).chunks(size).map(|c| Value::list(element.clone(), c.to_vec())).collect();
        Ok(Value::list(Type::list(element), chunks).marked(marks))
    }),
    #[cfg(test)]
    rows: &[
        ("chunklist([1,2,3],2)", "tolist([tolist([1, 2]), tolist([3])])"),
        ("chunklist([1,2,3],0)", "tolist([tolist([1, 2, 3])])"),
        ("chunklist([],2)", "tolist([])"),
        ("chunklist([1],-1)", "ERROR must not be negative"),
        ("chunklist([1,sensitive(2)],1)", "tolist([tolist([1]), tolist([(sensitive value)])])"),
        ("chunklist(u.list,1)", "UNKNOWN list(list(string))"),
    ],
    ..Function::BASE
};
