//! Connections that break, hang, or are rationed.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use karmaform_model::{Action, Change};

use crate::lab::{Lab, lab};

#[test]
fn a_connection_that_was_lost_is_made_again() {
    let Some(lab) = lab("a_connection_that_was_lost_is_made_again") else { return };
    let wanted = lab.arguments("ssh_file", [("path", "/opt/kf-lost".into()), ("content", "x".into())]);
    // while idle: nobody notices
    lab.shell("for p in $(pgrep -f '[s]shd: root'); do [ $p = $PPID ] || kill $p; done 2>/dev/null; true");
    let state = lab.step("ssh_file", None, Some(&wanted), Action::Create).unwrap();
    // in the middle of a command: a clear word, at once, and the next one works
    let slow = Change::Create { after: lab.arguments("ssh_command", [("command", "kill $(pgrep -f '[s]shd: root'); sleep 30".into())]) };
    let started = Instant::now();
    let error = lab.apply("ssh_command", &slow).unwrap_err();
    assert_eq!(error.summary, "Connection to the host was lost", "{error:?}");
    assert!(error.retryable && started.elapsed() < Duration::from_secs(10));
    // What was begun goes on without its connection, and so is at work there.
    lab.shell("pkill -f '[s]leep 30'");
    lab.delete("ssh_file", &state);
}

/// A way to the test's host that can be made to swallow everything, and lets so many bytes through in a second.
fn proxy(lab: &Lab, rate: u64) -> (u16, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (dead, target) = (Arc::new(AtomicBool::new(false)), format!("{}:22", lab.address(0)));
    let switch = Arc::clone(&dead);
    std::thread::spawn(move || {
        for near in listener.incoming() {
            let (near, far) = (near.unwrap(), TcpStream::connect(&target).unwrap());
            for (mut from, mut to) in [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)] {
                let dead = Arc::clone(&switch);
                std::thread::spawn(move || {
                    let mut buffer = [0; 65536];
                    while let Ok(n @ 1..) = from.read(&mut buffer) {
                        std::thread::sleep(Duration::from_secs_f64(n as f64 / rate as f64));
                        if !dead.load(Ordering::SeqCst) && to.write_all(&buffer[..n]).is_err() {
                            break;
                        }
                    }
                });
            }
        }
    });
    (port, dead)
}

/// What the test's host is known by, for another way to it.
fn host_key(lab: &Lab) -> String {
    let known = std::fs::read_to_string(&lab.known_hosts).unwrap();
    known.lines().find_map(|l| l.strip_prefix(&format!("{} ", lab.address(0)))).unwrap().to_owned()
}

/// Connects through such a proxy.
fn go_through(lab: &mut Lab, port: u16) {
    let key = host_key(lab);
    let through = lab.connection_with([
        ("address", "127.0.0.1".into()),
        ("port", i64::from(port).into()),
        ("host_key", key.as_str().into()),
        ("connect_timeout", 3i64.into()),
    ]);
    lab.use_client(lab.connect(&through).unwrap());
}

#[test]
fn a_slow_link_is_not_a_lost_one() {
    let Some(mut lab) = lab("a_slow_link_is_not_a_lost_one") else { return };
    let (port, _) = proxy(&lab, 250_000);
    go_through(&mut lab, port);
    let source = lab.local("slow", &noise(6_000_000));
    let wanted = lab.arguments("ssh_artifact", [("path", "/opt/kf-slow/file".into()), ("source", source.as_str().into())]);
    let change = lab.plan("ssh_artifact", None, Some(&wanted)).unwrap();
    let command = Change::Create { after: lab.arguments("ssh_command", [("command", "echo here".into())]) };
    let started = Instant::now();
    let state = std::thread::scope(|scope| {
        let upload = scope.spawn(|| lab.apply("ssh_artifact", &change));
        std::thread::sleep(Duration::from_secs(2));
        // It stands in line behind what is on its way by then.
        assert_eq!(lab.apply("ssh_command", &command).unwrap().unwrap()["output"], "here".into());
        upload.join().unwrap().unwrap().unwrap()
    });
    assert!(started.elapsed() > Duration::from_secs(20), "the link was not slow: {:?}", started.elapsed());
    lab.delete("ssh_artifact", &state);
}

#[test]
fn a_host_that_falls_silent_does_not_hold_a_run_for_ever() {
    let Some(mut lab) = lab("a_host_that_falls_silent") else { return };
    let (port, dead) = proxy(&lab, u64::MAX);
    go_through(&mut lab, port);
    let command =
        |text: &str| Change::Create { after: lab.arguments("ssh_command", [("command", text.into()), ("timeout", 300i64.into())]) };
    lab.apply("ssh_command", &command("true")).unwrap();
    let switch = Arc::clone(&dead);
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(1));
        switch.store(true, Ordering::SeqCst);
    });
    let started = Instant::now();
    let error = lab.apply("ssh_command", &command("sleep 200")).unwrap_err();
    assert_eq!(error.summary, "Connection to the host was lost", "{error:?}");
    assert!((20..35).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
    lab.shell("pkill -f '[s]leep 200'");

    // what comes next finds out quickly, and only once
    let started = Instant::now();
    for _ in 0..5 {
        assert_eq!(lab.apply("ssh_command", &command("true")).unwrap_err().summary, "Host can't be reached");
    }
    assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
    dead.store(false, Ordering::SeqCst);
    std::thread::sleep(Duration::from_secs(10));
    lab.apply("ssh_command", &command("true")).unwrap();
}

#[test]
fn a_server_with_one_session_is_asked_one_by_one() {
    let Some(mut lab) = lab("a_server_with_one_session") else { return };
    // It goes into the background first, and writes that file when it listens.
    lab.shell("/usr/sbin/sshd -o Port=2222 -o MaxSessions=1 -o PidFile=/run/kf-sshd.pid; timeout 30 sh -c 'until [ -s /run/kf-sshd.pid ]; do sleep 0.1; done'");
    let key = host_key(&lab);
    lab.use_client(lab.connect(&lab.connection_with([("port", 2222i64.into()), ("host_key", key.as_str().into())])).unwrap());
    let command = Change::Create { after: lab.arguments("ssh_command", [("command", "sleep 0.2; echo done".into())]) };
    lab.runtime.block_on(async {
        let mut running = tokio::task::JoinSet::new();
        for _ in 0..6 {
            let (driver, client, command) = (lab.driver.clone(), lab.client().clone(), command.clone());
            running.spawn(async move { driver.apply(&client, "ssh_command", &command).await });
        }
        while let Some(result) = running.join_next().await {
            assert_eq!(result.unwrap().unwrap().unwrap()["output"], "done".into());
        }
    });
    lab.shell("kill $(cat /run/kf-sshd.pid)");
}

#[test]
fn an_upload_that_breaks_off_goes_on_where_it_was() {
    let Some(lab) = lab("an_upload_that_breaks_off") else { return };
    const SIZE: usize = 120_000_000;
    let source = lab.local("large", &noise(SIZE));
    let wanted = lab.arguments("ssh_artifact", [("path", "/opt/kf-cut/large".into()), ("source", source.as_str().into())]);
    let change = lab.plan("ssh_artifact", None, Some(&wanted)).unwrap();
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            let kill = "for i in $(seq 2000); do if [ $(cat /var/lib/karmaform/parts/* 2>/dev/null | wc -c) -gt 20000000 ]; then \
                        for p in $(pgrep -f '[s]shd: root'); do [ $p = $PPID ] || kill $p; done; exit 0; fi; sleep 0.02; done; exit 1";
            lab.shell(kill);
        });
        lab.apply("ssh_artifact", &change).unwrap_err()
    });
    assert!(error.summary == "Connection to the host was lost" && error.retryable, "{error:?}");
    lab.shell("sleep 1; test ! -e /opt/kf-cut/large");
    assert_eq!(lab.shell("find / -xdev -name '.karmaform*' 2>/dev/null; ls /var/lib/karmaform/parts | wc -l"), "1");
    let here: u64 = lab.shell("stat -c %s /var/lib/karmaform/parts/*").parse().unwrap();
    let before = lab.received();
    let state = lab.apply("ssh_artifact", &change).unwrap().unwrap();
    let sent = lab.received() - before;
    assert!(here > 20_000_000 && sent < SIZE as u64 - here + 10_000_000, "{here} bytes were there, {sent} were sent");
    assert_eq!(lab.shell("stat -c %s /opt/kf-cut/large; ls /var/lib/karmaform/parts"), SIZE.to_string());
    lab.delete("ssh_artifact", &state);
}

#[test]
fn a_part_that_is_not_what_it_should_be_is_not_gone_on_with() {
    let Some(lab) = lab("a_part_that_is_not_what_it_should_be") else { return };
    // What is compressed is spoiled as well as what is not.
    let source = lab.local("large", &[noise(3_000_000), vec![7; 3_000_000]].concat());
    let wanted = lab.arguments("ssh_artifact", [("path", "/opt/kf-part/large".into()), ("source", source.as_str().into())]);
    let change = lab.plan("ssh_artifact", None, Some(&wanted)).unwrap();
    // Of the right length so far, and rubbish: what its name is, only we know.
    let spoil = "for i in $(seq 2000); do for f in /var/lib/karmaform/parts/*; do if [ -s \"$f\" ]; then head -c 1000 /dev/urandom \
                 1<>\"$f\"; exit 0; fi; done; sleep 0.001; done; exit 1";
    std::thread::scope(|scope| {
        scope.spawn(|| lab.shell(&format!("timeout 20 sh -c '{spoil}' || true")));
        // Whether it is spoiled in time is a matter of luck; that nothing wrong is installed is not.
        for _ in 0..5 {
            match lab.apply("ssh_artifact", &change) {
                Ok(Some(state)) => {
                    lab.delete("ssh_artifact", &state);
                    return;
                }
                Ok(None) => panic!("nothing was made"),
                Err(error) => assert!(error.retryable && error.summary == "File did not arrive as it was sent", "{error:?}"),
            }
        }
        panic!("it never arrived");
    });
}

/// Bytes that no compression makes smaller, the same every time.
pub(crate) fn noise(size: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(size + 8);
    while bytes.len() < size {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(size);
    bytes
}

#[test]
fn two_runs_never_work_on_one_host() {
    let Some(mut lab) = lab("two_runs_never_work_on_one_host") else { return };
    let file = |lab: &Lab, text: &str| {
        let after = lab.arguments("ssh_file", [("path", "/opt/kf-two".into()), ("content", text.into())]);
        lab.plan("ssh_file", None, Some(&after)).unwrap()
    };
    let command = Change::Create { after: lab.arguments("ssh_command", [("command", "echo > /opt/kf-command".into())]) };
    let state = lab.apply("ssh_file", &file(&lab, "one")).unwrap().unwrap();
    let first = lab.another_run("ops@desk", "another state");
    let change = file(&lab, "two");
    let error = lab.apply("ssh_file", &change).unwrap_err();
    assert!(
        error.summary == "Host is held by another run" && error.retryable && error.detail.contains("test works on this host"),
        "{error:?}"
    );
    assert_eq!(lab.apply("ssh_command", &command).unwrap_err().summary, "Host is held by another run");
    assert_eq!(lab.shell("cat /opt/kf-two; ls /opt/kf-command 2>/dev/null || echo none"), "onenone");
    // Who only looks is not held up, and holds up nobody.
    lab.plan("ssh_file", Some(&state), Some(&state)).unwrap();
    // The other run ends, however it does: the host is free.
    drop(first);
    let state = lab.apply("ssh_file", &change).unwrap().unwrap();
    assert!(lab.shell("cat /run/karmaform.run").ends_with("ops@desk"));
    // One that is cut off from its host, which did not notice, holds it as long as it said it would.
    lab.shell("read up rest </proc/uptime; echo other $((${up%%.*} + 300)) 0 0 ops@far > /run/karmaform.run");
    assert!(lab.apply("ssh_file", &change).unwrap_err().detail.contains("ops@far works on this host"));
    lab.shell("read up rest </proc/uptime; echo other ${up%%.*} 0 0 ops@far > /run/karmaform.run");
    lab.apply("ssh_file", &change).unwrap();
    // Who went on for the same state takes it over at once.
    let cut_off = lab.another_run("ops@home", "another state");
    lab.apply("ssh_file", &change).unwrap();
    drop(cut_off);
    // A script that goes on without its connection is at work, whatever else is known of its run.
    let orphan = "setsid sh -c 'exec 8</run/karmaform.run; flock -s 8; sleep 9' >/dev/null 2>&1 </dev/null &";
    lab.shell(&format!("echo other 0 0 0 ops@far > /run/karmaform.run; {orphan} sleep 0.5"));
    assert!(lab.apply("ssh_file", &change).unwrap_err().detail.contains("ops@far works on this host"));
    lab.shell("sleep 9");
    lab.apply("ssh_file", &change).unwrap();
    // Its process number is somebody else's by now.
    lab.shell("read up rest </proc/uptime; echo other $((${up%%.*} + 300)) 1 7 ops@far > /run/karmaform.run");
    lab.apply("ssh_file", &change).unwrap();
    lab.delete("ssh_file", &state);
}
