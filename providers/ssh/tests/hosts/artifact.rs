//! `ssh_artifact`.

use std::io::Write;

use karmaform_model::{Action, Change};

use crate::images::{Image, Item, Registry, image, index, layer};
use crate::lab::{Lab, lab, object, say};
use crate::losing::noise;

const KIND: &str = "ssh_artifact";

fn archive(lab: &Lab, name: &str, size: usize) -> String {
    let content: Vec<u8> = (0..size).map(|i| (i * 31 % 253) as u8).collect();
    let mut builder = tar::Builder::new(Vec::new());
    for member in ["release/tool", "release/other"] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_cksum();
        builder.append_data(&mut header, member, content.as_slice()).unwrap();
    }
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&builder.into_inner().unwrap()).unwrap();
    lab.local(name, &encoder.finish().unwrap())
}

#[test]
fn the_life_of_an_artifact() {
    let Some(lab) = lab("the_life_of_an_artifact") else { return };
    let first = archive(&lab, "one.tar.gz", 3_000_000);
    let second = archive(&lab, "two.tar.gz", 10);
    let wanted = |source: &str, mode: &str| {
        lab.arguments(
            KIND,
            [("path", "/opt/kf-bin/tool".into()), ("source", source.into()), ("member", "tool".into()), ("mode", mode.into())],
        )
    };
    let state = lab.create(KIND, &wanted(&first, "0755"));
    assert_eq!(
        lab.shell("sha256sum /opt/kf-bin/tool | cut -c1-64; stat -c '%a %s' /opt/kf-bin/tool"),
        format!("{}\n755 3000000", state["content_sha256"].as_str().unwrap())
    );

    // a mode is repaired without fetching anything: the source is not there any more
    let state = {
        std::fs::rename(&first, format!("{first}.away")).unwrap();
        let state = lab.step(KIND, Some(&state), Some(&wanted(&first, "0700")), Action::Update).unwrap();
        std::fs::rename(format!("{first}.away"), &first).unwrap();
        state
    };
    let inode = lab.shell("stat -c %i /opt/kf-bin/tool");
    lab.shell("echo drift >> /opt/kf-bin/tool");
    let state = lab.step(KIND, Some(&state), Some(&wanted(&first, "0700")), Action::Update).unwrap();
    assert_ne!(lab.shell("stat -c %i /opt/kf-bin/tool"), inode);
    let state = lab.step(KIND, Some(&state), Some(&wanted(&second, "0700")), Action::Update).unwrap();
    assert_eq!(lab.shell("stat -c %s /opt/kf-bin/tool"), "10");
    lab.shell("rm /opt/kf-bin/tool");
    let state = lab.step(KIND, Some(&state), Some(&wanted(&second, "0700")), Action::Create).unwrap();
    lab.delete(KIND, &state);
}

#[test]
fn what_is_wrong_is_not_installed() {
    let Some(lab) = lab("what_is_wrong_is_not_installed") else { return };
    let source = archive(&lab, "one.tar.gz", 100);
    let check = |parts: [(&str, &str); 2], summary: &str| {
        let wanted = lab.arguments(
            KIND,
            [
                ("path", "/opt/kf-bin/tool".into()),
                ("source", source.as_str().into()),
                (parts[0].0, parts[0].1.into()),
                (parts[1].0, parts[1].1.into()),
            ],
        );
        let error = lab.plan(KIND, None, Some(&wanted)).unwrap_err();
        assert_eq!(error.summary, summary, "found when planning: {}", error.detail);
        let error = lab.apply(KIND, &Change::Create { after: wanted }).unwrap_err();
        assert_eq!(error.summary, summary, "{}", error.detail);
        assert_eq!(lab.shell("ls -d /opt/kf-bin 2>/dev/null || echo none"), "none");
        lab.assert_nothing_left();
    };
    check([("sha256", &"0".repeat(64)), ("mode", "0755")], "Artifact has the wrong sum");
    check([("member", "missing"), ("mode", "0755")], "Member is not in the archive");
    lab.shell("echo x > /opt/kf-theirs");
    let theirs = lab.arguments(KIND, [("path", "/opt/kf-theirs".into()), ("source", source.as_str().into())]);
    assert_eq!(lab.plan(KIND, None, Some(&theirs)).unwrap_err().summary, "Exists already");
    assert_eq!(lab.apply(KIND, &Change::Create { after: theirs }).unwrap_err().summary, "Exists already");
    lab.shell("rm /opt/kf-theirs");
}

#[test]
fn a_local_source_must_be_there_until_it_is_installed() {
    let Some(lab) = lab("a_local_source_must_be_there_until_it_is_installed") else { return };
    let source = archive(&lab, "one.tar.gz", 1000);
    let wanted = |source: &str| {
        lab.arguments(KIND, [("path", "/opt/kf-local".into()), ("source", source.into()), ("member", "release/tool".into())])
    };
    let whole = std::fs::read(&source).unwrap();
    let half = lab.local("half.tar.gz", &whole[..whole.len() / 2]);
    assert_eq!(lab.plan(KIND, None, Some(&wanted(&half))).unwrap_err().summary, "Archive can't be read");
    assert_eq!(lab.plan(KIND, None, Some(&wanted("/no/such"))).unwrap_err().summary, "Source can't be read");
    let state = lab.create(KIND, &wanted(&source));
    let second = archive(&lab, "two.tar.gz", 10);
    std::fs::remove_file(&source).unwrap();
    std::fs::remove_file(&second).unwrap();
    lab.step(KIND, Some(&state), Some(&wanted(&source)), Action::NoOp);
    assert_eq!(lab.plan(KIND, Some(&state), Some(&wanted(&second))).unwrap_err().summary, "Source can't be read");
    lab.delete(KIND, &state);
    assert_eq!(std::fs::read_dir(lab.folder.path().join("cache")).unwrap().count(), 0, "nothing is left in the cache");
}

#[test]
fn a_large_one_arrives_whole_and_fast() {
    let Some(lab) = lab("a_large_one_arrives_whole_and_fast") else { return };
    let source = lab.local("large", &(0..60_000_000u32).map(|i| (i >> 3) as u8).collect::<Vec<_>>());
    let wanted = lab.arguments(KIND, [("path", "/run/kf-large".into()), ("source", source.as_str().into())]);
    let change = lab.plan(KIND, None, Some(&wanted)).unwrap();
    let started = std::time::Instant::now();
    let state = lab.apply(KIND, &change).unwrap().unwrap();
    say(&format!("60 MB in {:?}", started.elapsed()));
    assert!(started.elapsed().as_secs() < 20);
    lab.delete(KIND, &state);
}

#[test]
fn what_was_there_before_need_not_be_sent_again() {
    let Some(mut lab) = lab("what_was_there_before_need_not_be_sent_again") else { return };
    let content = noise(6_000_000);
    let [first, second, third] = [2_000_000, 4_000_000, 6_000_000].map(|n| lab.local(&format!("v{n}"), &content[..n]));
    let wanted = |lab: &Lab, version: &str, source: &str| {
        let path = format!("/opt/kf-kept/{version}/tool");
        lab.arguments(KIND, [("path", path.into()), ("source", source.into()), ("previous", "/opt/kf-kept/previous".into())])
    };
    let kept = |lab: &Lab| lab.shell("stat -c %s /opt/kf-kept/previous/* 2>/dev/null | tr '\\n' ' '");
    let delete = |lab: &Lab, state: &karmaform_model::Object| lab.apply(KIND, &Change::Delete { before: state.clone() }).unwrap();
    // An upgrade is a new file beside the old one, which then goes.
    let one = lab.create(KIND, &wanted(&lab, "v1", &first));
    let two = lab.create(KIND, &wanted(&lab, "v2", &second));
    assert_eq!(kept(&lab), "");
    delete(&lab, &one);
    assert_eq!(kept(&lab), "2000000");
    // One step back: nothing is sent, and the source of what comes back need not be there if its sum is known.
    let before = lab.received();
    let change = lab.plan(KIND, None, Some(&wanted(&lab, "v1", &first))).unwrap();
    let one = lab.apply(KIND, &change).unwrap().unwrap();
    delete(&lab, &two);
    assert!(lab.received() - before < 1_000_000, "it was sent");
    assert_eq!((kept(&lab), lab.shell("stat -c '%s %a' /opt/kf-kept/v1/tool")), ("4000000".to_owned(), "2000000 755".to_owned()));
    // In one place: what is replaced is kept in the place of what was kept.
    let mut other = wanted(&lab, "v1", &third);
    let state = lab.step(KIND, Some(&one), Some(&other), Action::Update).unwrap();
    assert_eq!(kept(&lab), "2000000");
    other.insert("source".into(), first.as_str().into());
    lab.renew();
    let state = lab.step(KIND, Some(&state), Some(&other), Action::Update).unwrap();
    assert_eq!(kept(&lab), "6000000");
    assert_eq!(lab.shell("sha256sum </opt/kf-kept/v1/tool"), format!("{}  -", state["content_sha256"].as_str().unwrap()));
    // Kept elsewhere from now on: nothing stays where it was.
    let mut moved = other.clone();
    moved.insert("previous".into(), "/opt/kf-kept/before".into());
    let state = lab.step(KIND, Some(&state), Some(&moved), Action::Update).unwrap();
    assert_eq!(lab.shell("ls -d /opt/kf-kept/previous 2>/dev/null || echo none"), "none");
    // With the last one goes what was kept.
    lab.delete(KIND, &state);
    assert_eq!(lab.shell("ls -d /opt/kf-kept 2>/dev/null || echo none"), "none");
    let refused = lab.arguments(KIND, [("path", "/opt/x".into()), ("source", first.as_str().into()), ("previous", "/usr/bin".into())]);
    assert_eq!(lab.plan(KIND, None, Some(&refused)).unwrap_err().summary, "Bad path");
    let itself = lab.arguments(KIND, [("path", "/opt/x/y".into()), ("source", first.as_str().into()), ("previous", "/opt/x".into())]);
    assert_eq!(lab.plan(KIND, None, Some(&itself)).unwrap_err().summary, "Bad path");
}

#[test]
fn a_program_that_is_refused_does_not_take_its_place() {
    let Some(lab) = lab("a_program_that_is_refused_does_not_take_its_place") else { return };
    let program = |name: &str, status: u8| lab.local(name, format!("#!/bin/sh\necho {name}\nexit {status}\n").as_bytes());
    let (good, bad, better) = (program("good", 0), program("bad", 7), program("better", 0));
    let wanted = |source: &str| {
        let check = "\"$FILE\" >&2";
        let previous = "/opt/kf-tried/previous";
        lab.arguments(
            KIND,
            [("path", "/opt/kf-tried/now/tool".into()), ("source", source.into()), ("previous", previous.into()), ("check", check.into())],
        )
    };
    let state = lab.create(KIND, &wanted(&good));
    let state = lab.step(KIND, Some(&state), Some(&wanted(&better)), Action::Update).unwrap();
    let error = lab.apply(KIND, &lab.plan(KIND, Some(&state), Some(&wanted(&bad))).unwrap()).unwrap_err();
    assert!(error.summary == "File was refused" && error.detail.contains("It said:\nbad"), "{error:?}");
    // Neither what was there nor what is kept for a way back is another one.
    assert_eq!(lab.shell("/opt/kf-tried/now/tool; /opt/kf-tried/previous/tool; ls -A /opt/kf-tried/now"), "better\ngood\ntool");
    lab.delete(KIND, &state);
}

#[test]
fn what_has_not_changed_is_not_read_again() {
    let Some(lab) = lab("what_has_not_changed_is_not_read_again") else { return };
    let source = lab.local("tool", &noise(2_000_000));
    let wanted = lab.arguments(KIND, [("path", "/opt/kf-bin/tool".into()), ("source", source.as_str().into())]);
    let state = lab.create(KIND, &wanted);
    let sum = state["content_sha256"].as_str().unwrap();
    // A note that lies is believed while the file is the same, so the file was not read.
    let lie = "0".repeat(64);
    lab.shell(&format!("sed -i s/{sum}/{lie}/ /var/lib/karmaform/owned"));
    let seen = |lab: &Lab| lab.observe(KIND, &wanted, Some(&state)).unwrap().unwrap()["content_sha256"].as_str().unwrap().to_owned();
    assert_eq!(seen(&lab), lie);
    // Any change of it ends that: also one that keeps its size, and puts its time back.
    let changed = "t=$(stat -c %y /opt/kf-bin/tool); printf x | dd of=/opt/kf-bin/tool bs=1 count=1 conv=notrunc 2>/dev/null; touch -d \"$t\" /opt/kf-bin/tool";
    lab.shell(changed);
    let now = seen(&lab);
    assert!(now != lie && now != sum, "{now}");
    let state = lab.step(KIND, Some(&state), Some(&wanted), Action::Update).unwrap();
    lab.shell("chmod 0700 /opt/kf-bin/tool");
    let state = lab.step(KIND, Some(&state), Some(&wanted), Action::Update).unwrap();
    lab.shell(&format!("sed -i s/{sum}/{lie}/ /var/lib/karmaform/owned"));
    assert_eq!(seen(&lab), lie, "what was repaired is known again");
    lab.delete(KIND, &state);
}

#[test]
fn a_program_out_of_an_image() {
    let Some(mut lab) = lab("a_program_out_of_an_image") else { return };
    let Some(registry) = Registry::start("a_program_out_of_an_image", false) else { return };
    let made = |answer: &str| {
        let script = format!("#!/bin/sh\necho {answer}\n");
        let below = layer(&[Item::File("etc/os-release", b"ID=test")], true);
        let middle = layer(&[Item::File("bin/stand-in", script.as_bytes()), Item::HardLink("bin/hard", "bin/stand-in")], true);
        image("linux/amd64", &[below, middle, layer(&[Item::Symlink("bin/tool", "stand-in")], false)], false)
    };
    let (first, second) = (made("one"), made("two"));
    for image in [&first, &second] {
        registry.push("test/tool", image);
    }
    registry.name("test/tool", "v1", &index(&[("linux/amd64", &first)], false));
    let address = registry.address.clone();
    let arguments = lab.arguments(KIND, []);
    let wanted = |name: &str, member: &str| {
        let mut wanted = arguments.clone();
        let source = format!("oci://{address}/test/tool{name}");
        wanted.extend(object([("path", "/opt/kf-bin/tool".into()), ("source", source.into()), ("member", member.into())]));
        wanted
    };
    let pinned = |image: &Image| format!(":v1@sha256:{}", image.manifest.sum());

    let state = lab.create(KIND, &wanted(":v1", "/bin/tool"));
    assert_eq!(lab.shell("/opt/kf-bin/tool; stat -c %F /opt/kf-bin/tool"), "one\nregular file");
    // the tag is another image now: no reason to change anything, but what is damaged is not mended with something else
    registry.name("test/tool", "v1", &second.manifest);
    let by_tag = wanted(":v1", "/bin/tool");
    lab.step(KIND, Some(&state), Some(&by_tag), Action::NoOp);
    lab.shell("echo drift >> /opt/kf-bin/tool");
    let change = lab.plan(KIND, Some(&state), Some(&by_tag)).unwrap();
    lab.renew();
    let error = lab.apply(KIND, &change).unwrap_err();
    assert!(error.summary == "Source is not what it was" && error.hints.iter().any(|h| h.contains("digest")), "{error:?}");

    let state = lab.step(KIND, Some(&state), Some(&wanted(&pinned(&first), "hard")), Action::Update).unwrap();
    assert_eq!(lab.shell("/opt/kf-bin/tool"), "one");
    let state = lab.step(KIND, Some(&state), Some(&wanted(&pinned(&second), "/bin/tool")), Action::Update).unwrap();
    assert_eq!(lab.shell("/opt/kf-bin/tool"), "two");

    // with a digest all is in the cache: what is damaged is mended, and what is gone made anew, without the registry
    drop(registry);
    assert!(std::net::TcpStream::connect(&address).is_err());
    lab.shell("echo drift >> /opt/kf-bin/tool");
    lab.renew();
    let state = lab.step(KIND, Some(&state), Some(&wanted(&pinned(&second), "/bin/tool")), Action::Update).unwrap();
    lab.shell("rm /opt/kf-bin/tool");
    let state = lab.step(KIND, Some(&state), Some(&wanted(&pinned(&second), "/bin/tool")), Action::Create).unwrap();
    assert_eq!(lab.shell("/opt/kf-bin/tool"), "two");
    lab.delete(KIND, &state);
}
