//! The data source `ssh_files`.

use karmaform_model::{Object, Value};

use crate::lab::{Lab, lab, object};

fn read(lab: &Lab, path: &str, names: &[&str]) -> Result<Object, karmaform_model::Diagnostic> {
    let arguments = object([("host", lab.connection().into()), ("path", path.into()), ("read", Value::strings(names))]);
    lab.runtime.block_on(lab.driver.read(lab.client(), "ssh_files", &arguments))
}

#[test]
fn what_lies_in_a_directory_is_told() {
    let Some(lab) = lab("what_lies_in_a_directory_is_told") else { return };
    lab.shell("mkdir -p '/srv/a b/below' && cd '/srv/a b' && printf hi >text && printf '\\377' >bytes && ln -s text link && mkfifo pipe && touch .hidden below/x");
    let seen = read(&lab, "/srv/a b", &["text", "bytes", "link", "gone"]).unwrap();
    assert_eq!(seen["exists"], true.into());
    let sizes = [("text", 2i64), ("bytes", 1), (".hidden", 0)].map(|(name, size)| (name.to_owned(), Value::from(size)));
    assert_eq!(seen["sizes"].as_entries().unwrap(), &Object::from(sizes));
    assert_eq!(seen["contents"].as_entries().unwrap(), &Object::from([("text".to_owned(), "hi".into())]));
    assert!(seen["contents"].secret);
    // Through a link to it, an empty one, and none.
    lab.shell("ln -s 'a b' /srv/link; mkdir /srv/empty");
    assert_eq!(read(&lab, "/srv/link", &[]).unwrap()["sizes"].as_entries().unwrap().len(), 3);
    let empty = read(&lab, "/srv/empty", &["text"]).unwrap();
    assert!(empty["exists"] == true.into() && empty["sizes"].as_entries().unwrap().is_empty());
    for none in ["/srv/none", "/srv/a b/text", "/srv/a b/text/below"] {
        assert_eq!(read(&lab, none, &[]).unwrap()["exists"], false.into(), "{none}");
    }
    lab.shell("rm -r '/srv/a b' /srv/link /srv/empty");
    for (path, names, said) in [("srv", &[][..], "Bad path of a directory"), ("/srv", &["a/b"], "Bad name of a file")] {
        assert_eq!(read(&lab, path, names).unwrap_err().summary, said);
    }
    lab.assert_nothing_left();
}
