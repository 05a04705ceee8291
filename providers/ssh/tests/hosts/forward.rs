//! Ways through a host.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::lab::{Lab, lab};

/// What sshd says first.
fn banner(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut bytes = [0; 4];
    let _ = stream.read_exact(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn forward(lab: &Lab, host: &str, port: u16) -> SocketAddr {
    lab.runtime.block_on(lab.driver.forward(lab.client(), host, port)).unwrap()
}

#[test]
fn many_connections_at_once_and_after_a_loss() {
    let Some(lab) = lab("many_connections_at_once_and_after_a_loss") else { return };
    let address = forward(&lab, "127.0.0.1", 22);
    assert_eq!(forward(&lab, "127.0.0.1", 22), address, "the same way when asked again");
    let threads: Vec<_> = (0..8).map(|_| std::thread::spawn(move || banner(address))).collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), "SSH-");
    }
    lab.shell("for p in $(pgrep -f '[s]shd: root'); do [ $p = $PPID ] || kill $p; done 2>/dev/null; true");
    assert_eq!(banner(address), "SSH-");

    let closed = forward(&lab, "127.0.0.1", 1);
    assert_eq!(banner(closed).trim_matches('\0'), "", "nothing listens there");
    drop(lab);
    std::thread::sleep(Duration::from_millis(300));
    assert!(TcpStream::connect(address).is_err(), "it ends with the client");
}

#[test]
fn large_amounts_go_both_ways() {
    let Some(lab) = lab("large_amounts_go_both_ways") else { return };
    let perl = "use Socket; socket(S,PF_INET,SOCK_STREAM,0); setsockopt(S,SOL_SOCKET,SO_REUSEADDR,1); bind(S,sockaddr_in(4711,INADDR_LOOPBACK)); listen(S,5); \
                alarm 60; while(accept(C,S)){while(sysread(C,$b,65536)){my $o=0;while($o<length $b){$o+=syswrite(C,$b,length($b)-$o,$o)}}close C}";
    lab.shell(&format!("nohup perl -e '{perl}' >/dev/null 2>&1 & sleep 0.5"));
    let mut stream = TcpStream::connect(forward(&lab, "127.0.0.1", 4711)).unwrap();
    let sent: Vec<u8> = (0..8_000_000u32).map(|i| (i * 7 % 251) as u8).collect();
    let mut writer = stream.try_clone().unwrap();
    let to_send = sent.clone();
    let writing = std::thread::spawn(move || {
        writer.write_all(&to_send).unwrap();
        writer.shutdown(std::net::Shutdown::Write).unwrap();
    });
    let mut received = Vec::new();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.read_to_end(&mut received).unwrap();
    writing.join().unwrap();
    assert!(received == sent, "{} of {} bytes", received.len(), sent.len());
    lab.shell("pkill perl; true");
}
