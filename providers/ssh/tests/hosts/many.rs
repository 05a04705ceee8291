//! Many things at once: questions in one script, changes side by side.

use std::time::Instant;

use karmaform_model::{Ask, Change, Object};

use crate::lab::{Lab, lab, object, say};

fn files(lab: &Lab, count: usize) -> Vec<Object> {
    (0..count)
        .map(|i| lab.arguments("ssh_file", [("path", format!("/opt/kf-many/f{i}").into()), ("content", format!("content {i}\n").into())]))
        .collect()
}

fn apply_all(lab: &Lab, changes: &[Change]) -> Vec<Object> {
    let all = async {
        let mut running = tokio::task::JoinSet::new();
        for (index, change) in changes.iter().cloned().enumerate() {
            let (driver, client) = (lab.driver.clone(), lab.client().clone());
            running.spawn(async move { (index, driver.apply(&client, "ssh_file", &change).await) });
        }
        let mut done = Vec::new();
        while let Some(result) = running.join_next().await {
            let (index, result) = result.unwrap();
            done.push((index, result.unwrap()));
        }
        done.sort_by_key(|(index, _)| *index);
        done.into_iter().filter_map(|(_, object)| object).collect()
    };
    lab.runtime.block_on(all)
}

#[test]
fn sixty_questions_are_one_quick_script() {
    let Some(lab) = lab("sixty_questions_are_one_quick_script") else { return };
    let wanted = files(&lab, 50);
    let creates: Vec<_> = wanted.iter().map(|w| lab.plan("ssh_file", None, Some(w)).unwrap()).collect();
    let started = Instant::now();
    let state = apply_all(&lab, &creates);
    say(&format!("50 files written side by side in {:?}", started.elapsed()));
    assert_eq!(state.len(), 50);
    assert_eq!(
        lab.shell("wc -l < /var/lib/karmaform/owned; ls /opt/kf-many | wc -l"),
        "51\n50",
        "50 files and the directory made for them"
    );

    let mut asks: Vec<_> = state.iter().map(|s| ask("ssh_file", object([("path", s["path"].clone())]), Some(s))).collect();
    asks.extend((0..6).map(|i| ask("ssh_directory", object([("path", format!("/opt/kf-many/d{i}").into())]), None)));
    asks.extend(["ssh.service", "dbus.service"].map(|u| ask("ssh_systemd_unit", object([("name", u.into())]), None)));
    asks.extend(["root", "daemon"].map(|u| ask("ssh_user", object([("name", u.into())]), None)));
    assert_eq!(asks.len(), 60);
    let fastest = |asks: &[Ask]| {
        let times = (0..5).map(|_| {
            let started = Instant::now();
            let answers = lab.runtime.block_on(lab.driver.observe(lab.client(), asks));
            let time = started.elapsed();
            assert_eq!(answers.iter().filter(|a| matches!(a, Ok(Some(_)))).count(), asks.len().min(54));
            assert_eq!(answers.iter().filter(|a| matches!(a, Ok(None))).count(), asks.len().saturating_sub(54));
            time
        });
        times.min().unwrap_or_default()
    };
    // Of so many scripts each would take as long as the one, however slow the host is.
    let (one, all) = (fastest(&asks[..1]), fastest(&asks));
    say(&format!("60 questions in {all:?}, one in {one:?}"));
    assert!(all < 15 * one, "{all:?} and {one:?}");

    let deletes: Vec<_> = state.into_iter().map(|before| Change::Delete { before }).collect();
    apply_all(&lab, &deletes);
    lab.assert_nothing_left();
    assert_eq!(lab.shell("ls -d /opt/kf-many 2>/dev/null || echo gone"), "gone");
}

fn ask(kind: &str, identity: Object, known: Option<&Object>) -> Ask {
    Ask { resource_type: kind.to_owned(), identity, known: known.cloned(), wanted: None, begun: false }
}

#[test]
fn a_slow_command_holds_nobody_up() {
    let Some(lab) = lab("a_slow_command_holds_nobody_up") else { return };
    let slow = Change::Create { after: lab.arguments("ssh_command", [("command", "sleep 6".into())]) };
    let quick = Change::Create { after: lab.arguments("ssh_command", [("command", "true".into())]) };
    lab.runtime.block_on(async {
        let (driver, client) = (lab.driver.clone(), lab.client().clone());
        let slow = tokio::spawn(async move { driver.apply(&client, "ssh_command", &slow).await });
        tokio::task::yield_now().await;
        for _ in 0..10 {
            lab.driver.apply(lab.client(), "ssh_command", &quick).await.unwrap();
        }
        assert!(!slow.is_finished(), "ten quick ones wait for it");
        slow.await.unwrap().unwrap();
    });
}
