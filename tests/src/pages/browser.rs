//! Chromium by its driver: WebDriver (<https://www.w3.org/TR/webdriver2/>) and the commands that chromedriver adds.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

/// Longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(120);
/// Between two looks at a page.
const BETWEEN: Duration = Duration::from_millis(20);
/// What chromedriver says when it listens.
const STARTED: &str = "was started successfully on port ";
/// What it says before it ends when another program has its port.
const TAKEN: &str = "port not available";
/// How often a port may be taken in a row.
const ATTEMPTS: usize = 20;

/// A browser without a window, of its own profile. It ends with this.
pub(super) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    _profile: tempfile::TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.try_to_ask("DELETE", &format!("/session/{}", self.session), None);
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// chromedriver and where it listens; `None` if there is none on this machine.
///
/// It takes a free port of IPv4 and then the same one of IPv6, which other tests may have at that moment: then it ends, and
/// is started again. Whatever else ends it is told in its own words.
fn driver() -> Option<(Child, u16)> {
    for _ in 0..ATTEMPTS {
        let mut driver = Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        let mut lines = BufReader::new(driver.stdout.take().expect("its output")).lines().map_while(Result::ok);
        let mut said = Vec::new();
        for line in lines.by_ref() {
            if let Some((_, port)) = line.rsplit_once(STARTED) {
                let port = port.trim_end_matches('.').parse().expect("a port");
                // It goes on talking, and must not stand still for it.
                std::thread::spawn(move || lines.for_each(drop));
                return Some((driver, port));
            }
            said.push(line);
        }
        let status = driver.wait().expect("its end");
        assert!(said.iter().any(|line| line.contains(TAKEN)), "chromedriver ended ({status}): {said:#?}");
    }
    panic!("chromedriver found its port taken {ATTEMPTS} times");
}

impl Browser {
    /// `None`: there is none on this machine.
    pub(super) fn start() -> Option<Self> {
        let chromium = ["/usr/bin/chromium", "/usr/bin/google-chrome"].into_iter().find(|p| Path::new(p).exists())?;
        let (driver, port) = driver()?;
        let profile = tempfile::tempdir().expect("a folder");
        let mut browser = Self { driver, port, session: String::new(), _profile: profile };
        let folder = format!("--user-data-dir={}", browser._profile.path().display());
        let args = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--window-size=1200,900",
            &folder,
        ];
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": { "binary": chromium, "args": args },
            "goog:loggingPrefs": { "browser": "ALL" },
        } } });
        let made = browser.ask("POST", "/session", Some(&wanted));
        browser.session = made["sessionId"].as_str().unwrap_or_else(|| panic!("no session: {made}")).to_owned();
        Some(browser)
    }

    /// Opens a file and waits until it is there.
    pub(super) fn open(&self, path: &Path) {
        self.post("/url", &json!({ "url": format!("file://{}", path.display()) }));
    }

    /// Runs a script, and gives what it returns.
    pub(super) fn run(&self, script: &str) -> Json {
        self.post("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// What can be read on the page, once `last` is in it.
    ///
    /// Entries are `content-visibility: auto`: until the browser has drawn its first frame, which may be after the page has
    /// loaded, they have no text to read.
    #[track_caller]
    pub(super) fn text(&self, last: &str) -> String {
        let end = Instant::now() + LIMIT;
        loop {
            let text = self.run("return document.body.innerText");
            let text = text.as_str().unwrap_or_default();
            if text.contains(last) {
                return text.to_owned();
            }
            assert!(Instant::now() < end, "no {last} in {text}");
            std::thread::sleep(BETWEEN);
        }
    }

    /// The same, if it returns a number.
    pub(super) fn number(&self, script: &str) -> u64 {
        let value = self.run(script);
        value.as_u64().unwrap_or_else(|| panic!("{script}: {value}"))
    }

    /// Clicks as a mouse does.
    pub(super) fn click(&self, selector: &str) {
        self.post(&format!("/element/{}/click", self.element(selector)), &json!({}));
    }

    /// Types as a keyboard does, in place of what is there.
    pub(super) fn type_into(&self, selector: &str, text: &str) {
        let element = self.element(selector);
        // Ctrl+A, and what removes it.
        let keys = format!("\u{e009}a\u{e009}\u{e017}{text}");
        self.post(&format!("/element/{element}/value"), &json!({ "text": keys }));
    }

    /// What the reader's system prefers: `light` or `dark`.
    pub(super) fn scheme(&self, scheme: &str) -> &Self {
        self.devtools("Emulation.setEmulatedMedia", &json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] }));
        self
    }

    /// No page may run scripts any more.
    pub(super) fn without_scripts(&self) {
        self.devtools("Emulation.setScriptExecutionDisabled", &json!({ "value": true }));
    }

    /// What it has complained about: errors, and what a page's own policy refused.
    pub(super) fn complaints(&self) -> Vec<String> {
        let log = self.post("/se/log", &json!({ "type": "browser" }));
        log.as_array().into_iter().flatten().map(|line| line["message"].to_string()).collect()
    }

    fn element(&self, selector: &str) -> String {
        let found = self.post("/element", &json!({ "using": "css selector", "value": selector }));
        let id = found.as_object().and_then(|o| o.values().next()?.as_str().map(str::to_owned));
        id.unwrap_or_else(|| panic!("{selector}: {found}"))
    }

    fn devtools(&self, command: &str, parameters: &Json) {
        self.post("/goog/cdp/execute", &json!({ "cmd": command, "params": parameters }));
    }

    #[track_caller]
    fn post(&self, path: &str, body: &Json) -> Json {
        let value = self.ask("POST", &format!("/session/{}{path}", self.session), Some(body));
        assert!(value["error"].is_null(), "{path} {body}: {value}");
        value
    }

    #[track_caller]
    fn ask(&self, method: &str, path: &str, body: Option<&Json>) -> Json {
        self.try_to_ask(method, path, body).unwrap_or_else(|e| panic!("{method} {path}: {e}"))
    }

    fn try_to_ask(&self, method: &str, path: &str, body: Option<&Json>) -> std::io::Result<Json> {
        let body = body.map(ToString::to_string).unwrap_or_default();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(LIMIT))?;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.port,
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes())?;
        // It does not end the connection, so the length counts.
        let mut reader = BufReader::new(stream);
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line)? > 2 {
            let header = line.to_ascii_lowercase();
            length = header.strip_prefix("content-length:").and_then(|v| v.trim().parse().ok()).unwrap_or(length);
            line.clear();
        }
        let mut answer = vec![0; length];
        reader.read_exact(&mut answer)?;
        let mut json: Json = serde_json::from_slice(&answer)?;
        Ok(json["value"].take())
    }
}
