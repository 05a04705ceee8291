//! Traces that are sent to a collector with a certificate: by the command as a process, which trusts the authority that the environment names.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::project::Project;

/// A collector on loopback, its certificate as PEM, and what it was sent.
fn collector() -> (u16, String, Arc<Mutex<Vec<String>>>) {
    let own = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("TLS").with_no_client_auth();
    let config = Arc::new(config.with_single_cert(vec![CertificateDer::from(own.cert.der().to_vec())], key).expect("a server"));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let bodies = Arc::<Mutex<Vec<String>>>::default();
    let kept = Arc::clone(&bodies);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = ServerConnection::new(Arc::clone(&config)).expect("a connection");
            let mut reader = BufReader::new(StreamOwned::new(connection, stream));
            let (mut line, mut length) = (String::new(), 0);
            while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
                let header = line.to_ascii_lowercase();
                length = header.strip_prefix("content-length:").and_then(|v| v.trim().parse().ok()).unwrap_or(length);
                line.clear();
            }
            let mut body = vec![0; length];
            if length > 0 && reader.read_exact(&mut body).is_ok() {
                kept.lock().expect("the list").push(String::from_utf8_lossy(&body).into_owned());
                let _ = write!(reader.get_mut(), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}");
            }
        }
    });
    (port, own.cert.pem(), bodies)
}

#[test]
fn a_collector_with_a_certificate_is_told_if_its_authority_is_named() {
    let (port, authority, bodies) = collector();
    let project = Project::new();
    project.write("main.kf.hcl", "resource \"terraform_data\" \"a\" {\n  input = \"one\"\n}\n");
    project.write("ca.pem", &authority);
    let endpoint = format!("https://127.0.0.1:{port}");
    let sends = [("OTEL_TRACES_EXPORTER", "otlp"), ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str())];
    let plan = ["plan", "-detailed-exitcode"];
    let ended = project.start_with(&plan, &sends).end();
    assert!(ended.code == Some(2) && ended.text.contains("Trace not sent"), "{}", ended.text);
    assert!(ended.text.contains("OTEL_EXPORTER_OTLP_CERTIFICATE") && bodies.lock().expect("the list").is_empty(), "{}", ended.text);
    let ended = project.start_with(&plan, &[&sends[..], &[("OTEL_EXPORTER_OTLP_CERTIFICATE", "ca.pem")]].concat()).end();
    assert!(ended.code == Some(2) && !ended.text.contains("Trace"), "{}", ended.text);
    let bodies = bodies.lock().expect("the list");
    assert!(bodies.len() == 1 && bodies[0].contains("\"karmaform.command\""), "{bodies:?}");
}
