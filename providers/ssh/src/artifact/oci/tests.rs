#[path = "../../../tests/hosts/images.rs"]
mod images;
mod server;

use super::*;
use crate::artifact::Store;
use crate::sum::sha256;
use images::{BASIC, Image as Made, Item, Part, Registry as Real, image, index, layer};
use server::{Server, Wants};

const LINUX: &str = "linux/amd64";

/// Three layers: something below, the program, and its other name.
fn program(platform: &str, content: &[u8], docker: bool) -> Made {
    let below = layer(&[Item::File("etc/os-release", b"ID=test"), Item::File("usr/bin/below", b"below")], true);
    let middle = layer(&[Item::File("bin/stand-in", content)], false);
    let above = layer(&[Item::Symlink("bin/tool", "stand-in")], true);
    image(platform, &[below, middle, above], docker)
}

/// What a test works with: a registry, a cache and a log-in.
struct Bench {
    server: Server,
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        Self { server: Server::start(), folder: tempfile::tempdir().unwrap() }
    }

    /// Puts an image there, and gives it a name.
    fn name(&self, tag: &str, image: &Made) {
        self.server.push("a/b", image);
        self.server.put(&format!("a/b/manifests/{tag}"), image.manifest.clone());
    }

    fn log_in(&self, text: &str) {
        fs::write(self.folder.path().join("config.json"), text.replace("HOST", &self.server.address)).unwrap();
    }

    fn supply(&self, name: &str, member: &str) -> Supply {
        let source = format!("oci://{}/a/b{name}", self.server.address);
        Supply { source, sha256: None, member: Some(member.to_owned()), platform: None }
    }

    /// A run's store. Each run has one of its own; the cache stays.
    fn store(&self) -> Store {
        Store::new(self.folder.path().join("cache")).with_docker(self.folder.path().join("config.json"))
    }

    fn get(&self, supply: &Supply) -> Result<String, Diagnostic> {
        read(&self.store(), supply)
    }

    fn kept(&self) -> Vec<String> {
        let names = fs::read_dir(self.folder.path().join("cache")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap().block_on(future)
}

fn read(store: &Store, supply: &Supply) -> Result<String, Diagnostic> {
    let ready = wait(store.get(supply))?;
    let mut text = String::new();
    ready.read().read_to_string(&mut text).unwrap();
    assert_eq!(ready.sha256, sha256(text.as_bytes()));
    Ok(text)
}

/// How a part is called in what was asked.
fn short(part: &Part) -> String {
    part.sum()[..6].to_owned()
}

#[test]
fn a_file_comes_out_of_an_image_of_either_kind() {
    for docker in [false, true] {
        let bench = Bench::new();
        let made = program(LINUX, b"the program", docker);
        bench.name("v1", &made);
        assert_eq!(bench.get(&bench.supply(":v1", "/bin/tool")).unwrap(), "the program");
        let [_, middle, above, config] = &made.blobs[..] else { panic!() };
        assert_eq!(
            bench.server.asked(),
            format!("v1 {} {} {}", short(config), short(above), short(middle)),
            "and not for the lowest layer"
        );
        // another member, another run: only what the tag means now has to be asked for
        assert_eq!(bench.get(&bench.supply(":v1", "stand-in")).unwrap(), "the program");
        assert_eq!(bench.server.asked(), "v1");
        // with a digest, nothing
        let by_digest = format!(":v1@sha256:{}", made.manifest.sum());
        assert_eq!(bench.get(&bench.supply(&by_digest, "tool")).unwrap(), "the program");
        assert_eq!(bench.server.asked(), short(&made.manifest));
        assert_eq!(bench.get(&bench.supply(&by_digest[3..], "tool")).unwrap(), "the program");
        assert_eq!(bench.server.asked(), "");
        let mut expected: Vec<_> = [middle, above, config, &made.manifest].map(|p| format!("oci-{}", p.sum())).into();
        expected.sort();
        assert_eq!(bench.kept(), expected);
    }
}

#[test]
fn an_image_is_learned_once_in_a_run() {
    let bench = Bench::new();
    let made = program(LINUX, b"the program", false);
    bench.name("v1", &made);
    let store = bench.store();
    let wishes = ["/bin/tool", "tool", "stand-in", "below"].map(|m| bench.supply(":v1", m));
    let (a, b, c, d) =
        wait(async { tokio::join!(store.get(&wishes[0]), store.get(&wishes[1]), store.get(&wishes[2]), store.get(&wishes[3])) });
    assert!([a, b, c, d].iter().all(Result::is_ok));
    bench.server.put("a/b/manifests/v1", program(LINUX, b"another", false).manifest);
    assert_eq!(read(&store, &bench.supply(":v1", "bin/tool")).unwrap(), "the program");
    assert_eq!(bench.server.asked().matches("v1").count(), 1);
}

#[test]
fn an_index_leads_to_the_platform() {
    for docker in [false, true] {
        let bench = Bench::new();
        let (amd, arm) = (program(LINUX, b"for amd64", docker), program("linux/arm64", b"for arm64", docker));
        let list = index(&[(LINUX, &amd), ("linux/arm64", &arm)], docker);
        bench.server.push("a/b", &amd);
        bench.server.push("a/b", &arm);
        bench.server.put("a/b/manifests/v1", list.clone());
        bench.server.put(&format!("a/b/manifests/sha256:{}", list.sum()), list.clone());
        for name in [":v1".to_owned(), format!("@sha256:{}", list.sum())] {
            let on = |platform: &str| bench.get(&Supply { platform: Some(platform.to_owned()), ..bench.supply(&name, "tool") });
            assert_eq!(bench.get(&bench.supply(&name, "tool")).unwrap(), "for amd64");
            assert_eq!(on("linux/arm64").unwrap(), "for arm64");
            let error = on("linux/s390x").unwrap_err();
            assert!(error.summary == "Image can't be used" && error.detail.contains("linux/amd64, linux/arm64"), "{error:?}");
        }
        bench.server.asked();
        assert_eq!(bench.get(&bench.supply(&format!("@sha256:{}", list.sum()), "tool")).unwrap(), "for amd64");
        assert_eq!(bench.server.asked(), "", "all of it is in the cache");
        // without an index the image itself says for what it is
        bench.server.put("a/b/manifests/arm", arm.manifest.clone());
        assert!(bench.get(&bench.supply(":arm", "tool")).unwrap_err().detail.contains("is for linux/arm64, but linux/amd64 is wanted"));
    }
}

#[test]
fn hard_links_and_marks_count() {
    let bench = Bench::new();
    let below = layer(&[Item::File("bin/a", b"old"), Item::File("bin/b", b"gone"), Item::File("opt/c", b"gone")], true);
    let above = [Item::File("bin/.wh.b", b""), Item::File("opt/.wh..wh..opq", b""), Item::HardLink("bin/d", "bin/a")];
    let made = image(LINUX, &[below, layer(&above, true)], false);
    bench.name("v1", &made);
    let get = |member: &str| bench.get(&bench.supply(":v1", member));
    assert_eq!(get("/bin/d").unwrap(), "old");
    assert_eq!(get("d").unwrap(), "old");
    for member in ["/bin/b", "b", "/opt/c", "c", "bin"] {
        assert_eq!(get(member).unwrap_err().summary, "Member is not in the image");
    }
}

#[test]
fn passwords_and_tokens_are_given_where_they_are_wanted() {
    let bench = Bench::new();
    let made = program(LINUX, b"the program", false);
    bench.name("v1", &made);
    let known = format!(r#"{{"auths": {{"HOST": {{"auth": "{BASIC}"}}}}}}"#);
    let check = |wants: Wants, config: &str, expected: Result<&str, &[&str]>| {
        bench.server.wants(wants.clone());
        bench.log_in(config);
        let _ = fs::remove_dir_all(bench.folder.path().join("cache"));
        bench.server.asked();
        match (bench.get(&bench.supply(":v1", "stand-in")), expected) {
            (Ok(text), Ok(begin)) => {
                assert_eq!(text, "the program");
                let asked = bench.server.asked();
                assert!(asked.starts_with(begin), "{wants:?}: {asked}");
            }
            (Err(error), Err(words)) => {
                let said = format!("{} {} {:?}", error.summary, error.detail, error.hints);
                assert!(words.iter().all(|w| said.contains(w)), "{said}");
                assert!(!said.contains("hunter") && !said.contains(BASIC), "{said}");
            }
            (found, _) => panic!("{wants:?} {config}: {found:?}"),
        }
    };
    let host = bench.server.address.clone();
    check(Wants::Nothing, "{}", Ok("v1 "));
    // who has a password shows it to nobody who does not want it
    check(Wants::Nothing, &known, Ok("v1 "));
    check(Wants::Basic(BASIC), &known, Ok("v1 v1+Basic "));
    check(Wants::Basic("other"), &known, Err(&["Registry refuses the image", "was tried", "Log in again"]));
    check(Wants::Basic(BASIC), "{}", Err(&["Registry refuses the image", "is no log-in", &format!("docker login {host}")]));
    check(Wants::Basic(BASIC), r#"{"credsStore": "desktop"}"#, Err(&["helper \"desktop\"", "USER:PASSWORD in base64", &host]));
    check(Wants::Basic(BASIC), "nonsense", Err(&["Docker's configuration can't be read", "config.json"]));
    check(Wants::Token(None, 100), "{}", Ok("v1 token v1+Bearer "));
    check(Wants::Token(Some(BASIC), 100), &known, Ok("v1 token+Basic v1+Bearer "));
    check(Wants::Token(Some("other"), 100), &known, Err(&["Registry refuses the image", "was tried"]));
    // one that is only good for a moment is renewed
    check(Wants::Token(Some(BASIC), 1), &known, Ok("v1 token+Basic v1+Bearer "));
    check(Wants::Token(Some(BASIC), 0), &known, Err(&["Registry refuses the image"]));
}

#[test]
fn a_registry_that_gives_no_more_is_asked_again_and_says_what_helps() {
    let bench = Bench::new();
    let made = program(LINUX, b"the program", false);
    bench.name("v1", &made);
    bench.server.wants(Wants::Patience);
    let store = bench.store();
    let why = read(&store, &bench.supply(":v1", "tool")).unwrap_err();
    assert!(why.retryable && why.summary == "Image can't be fetched" && why.detail.contains("status 429"), "{why:?}");
    assert_eq!(why.retry_after, Some(3), "as the registry says");
    assert!(why.hints.iter().any(|h| h.contains(&format!("docker login {}", bench.server.address))), "{:?}", why.hints);
    // The same run gets it when it may, and asks nobody before.
    bench.server.wants(Wants::Nothing);
    bench.server.asked();
    assert!(read(&store, &bench.supply(":v1", "tool")).is_err() && bench.server.asked().is_empty());
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert_eq!(read(&store, &bench.supply(":v1", "tool")).unwrap(), "the program");
}

#[test]
fn who_holds_the_layers_learns_no_password() {
    let (bench, other) = (Bench::new(), Server::start());
    let made = program(LINUX, b"the program", false);
    bench.name("v1", &made);
    other.push("a/b", &made);
    bench.server.wants(Wants::Basic(BASIC));
    bench.server.sends_on_to(&other);
    bench.log_in(&format!(r#"{{"auths": {{"HOST": {{"auth": "{BASIC}"}}}}}}"#));
    assert_eq!(bench.get(&bench.supply(":v1", "tool")).unwrap(), "the program");
    let asked = other.asked();
    assert!(asked.split(' ').count() == 3 && !asked.contains('+'), "{asked}");
}

#[test]
fn what_is_damaged_is_not_used_and_not_kept() {
    let bench = Bench::new();
    let made = program(LINUX, b"the program", false);
    bench.name("v1", &made);
    let [_, middle, above, _] = &made.blobs[..] else { panic!() };
    let path = format!("a/b/blobs/sha256:{}", middle.sum());
    let mut other = middle.clone();
    other.bytes[0] ^= 1;
    bench.server.put(&path, other.clone());
    let get = || bench.get(&bench.supply(":v1", "tool"));
    let error = get().unwrap_err();
    assert!(error.summary == "Image has the wrong sum" && error.detail.contains(&sha256(&other.bytes)), "{error:?}");
    other.bytes.truncate(10);
    bench.server.put(&path, other);
    assert!(get().is_err_and(|e| e.retryable && e.detail.contains("10 of")));
    assert!(!bench.kept().contains(&format!("oci-{}", middle.sum())) && bench.kept().iter().all(|n| n.starts_with("oci-")));
    bench.server.push("a/b", &made);
    assert_eq!(get().unwrap(), "the program");
    // on the disk
    fs::write(bench.folder.path().join("cache").join(format!("oci-{}", above.sum())), "damaged").unwrap();
    bench.server.asked();
    assert_eq!(get().unwrap(), "the program");
    assert_eq!(bench.server.asked(), format!("v1 {}", short(above)), "fetched again");
    // a manifest that is not what its digest says
    let digest = "0".repeat(64);
    bench.server.put(&format!("a/b/manifests/sha256:{digest}"), made.manifest.clone());
    assert_eq!(bench.get(&bench.supply(&format!("@sha256:{digest}"), "tool")).unwrap_err().summary, "Image has the wrong sum");
}

#[test]
fn what_can_not_be_used_is_said() {
    let bench = Bench::new();
    let put = |tag: &str, layers: &[Part]| bench.name(tag, &image(LINUX, layers, false));
    let plain = layer(&[Item::File("bin/tool", b"x")], false);
    put("zstd", &[Part::new("application/vnd.oci.image.layer.v1.tar+zstd", "x")]);
    put("hidden", &[Part::new(&plain.kind, [0x28, 0xb5, 0x2f, 0xfd, 0])]);
    put("broken", &[Part::new(&plain.kind, &plain.bytes[..600])]);
    put("above", &[Part::new("application/vnd.oci.image.layer.v1.tar+zstd", "x"), plain]);
    bench.server.put("a/b/manifests/page", Part::new("text/html", "<html>"));
    let check = |name: &str, summary: &str, word: &str| {
        let error = bench.get(&bench.supply(name, "tool")).unwrap_err();
        assert!(error.summary == summary && error.detail.contains(word), "{error:?}");
    };
    check(":zstd", "Layer is compressed with zstd", "layer 1 of 1");
    check(":hidden", "Layer is compressed with zstd", "zstd");
    check(":broken", "Layer can't be read", "layer 1 of 1");
    check(":page", "Image can't be used", "no JSON");
    check(":none", "Image can't be fetched", "404");
    check("", "Bad source", "neither");
    assert_eq!(bench.get(&bench.supply(":above", "tool")).unwrap(), "x", "what lies below need not be read");
    let supply = |sha256: Option<&str>, member: Option<&str>| Supply {
        sha256: sha256.map(str::to_owned),
        member: member.map(str::to_owned),
        ..bench.supply(":zstd", "x")
    };
    assert_eq!(bench.get(&supply(Some("0"), Some("x"))).unwrap_err().summary, "Image has no sum");
    assert_eq!(bench.get(&supply(None, None)).unwrap_err().summary, "Member is missing");
    let nobody = Supply { source: "oci+http://127.0.0.1:1/a:x".to_owned(), ..bench.supply("", "x") };
    assert!(bench.get(&nobody).is_err_and(|e| e.retryable && e.summary == "Image can't be fetched"));
}

#[test]
fn a_registry_of_debians_gives_the_same() {
    let test = "a_registry_of_debians_gives_the_same";
    for (docker, wants_password) in [(false, false), (true, true)] {
        let Some(registry) = images::Registry::start(test, wants_password) else { return };
        let folder = tempfile::tempdir().unwrap();
        let (amd, arm) = (program(LINUX, b"for amd64", docker), program("linux/arm64", b"for arm64", docker));
        registry.push("a/b", &amd);
        registry.push("a/b", &arm);
        registry.name("a/b", "v1", &index(&[(LINUX, &amd), ("linux/arm64", &arm)], docker));
        registry.name("a/b", "arm", &arm.manifest);
        let config = folder.path().join("config.json");
        let get = |scheme: &str, tag: &str, platform: &str| {
            let source = format!("{scheme}://{}/a/b:{tag}", registry.address);
            let supply = Supply { source, sha256: None, member: Some("tool".to_owned()), platform: Some(platform.to_owned()) };
            read(&Store::new(folder.path().join("cache")).with_docker(config.clone()), &supply)
        };
        if wants_password {
            assert_eq!(get("oci", "v1", LINUX).unwrap_err().summary, "Registry refuses the image");
            fs::write(&config, format!(r#"{{"auths": {{"{}": {{"auth": "{BASIC}"}}}}}}"#, registry.address)).unwrap();
        }
        assert_eq!(get("oci", "v1", LINUX).unwrap(), "for amd64");
        assert_eq!(get("oci+http", "v1", "linux/arm64").unwrap(), "for arm64");
        assert_eq!(get("oci", "arm", "linux/arm64").unwrap(), "for arm64");
        assert_eq!(get("oci", "arm", LINUX).unwrap_err().summary, "Image can't be used");
        assert!(get("oci", "v2", LINUX).unwrap_err().detail.contains("404"));
    }
}

#[test]
fn short_names_are_read_as_clusters_read_them() {
    let check = |image: &str, expected: &str| assert_eq!(in_full(image), expected, "{image}");
    check("nginx", "docker.io/library/nginx:latest");
    check("nginx:1", "docker.io/library/nginx:1");
    check("karmada/karmada-scheduler:v1", "docker.io/karmada/karmada-scheduler:v1");
    check("docker.io/nginx@sha256:ab", "docker.io/library/nginx@sha256:ab");
    check("registry.k8s.io/pause:3.9", "registry.k8s.io/pause:3.9");
    check("localhost:5000/a/b", "localhost:5000/a/b:latest");
    check("10.0.0.1:5000/a:2@sha256:ab", "10.0.0.1:5000/a:2@sha256:ab");
}

#[test]
fn only_a_registry_that_says_so_lacks_an_image() {
    let Some(real) = Real::start("only_a_registry_that_says_so_lacks_an_image", false) else { return };
    let made = program(LINUX, b"the program", false);
    real.push("a/b", &made);
    real.name("a/b", "v1", &made.manifest);
    let bench = Bench::new();
    let store = bench.store();
    let lacks = |address: &str, name: &str| wait(karmaform_model::Registries::lacks(&store, &format!("{address}/{name}")));
    let digest = |sum: &str| format!("a/b@sha256:{sum}");
    for (name, expected) in [
        ("a/b:v1".to_owned(), false),
        (digest(&made.manifest.sum()), false),
        ("a/b:v2".to_owned(), true),
        ("a/b".to_owned(), true), // which is a/b:latest
        ("a/c:v1".to_owned(), true),
        (digest(&sha256(b"nothing")), true),
    ] {
        assert_eq!(lacks(&real.address, &name), expected, "{name}");
    }
    // Who does not let us in has not said anything, nor who is not there; and a page that is not there is no image that is not there.
    bench.server.wants(Wants::Token(Some("somebody's"), 1));
    assert!(!lacks(&bench.server.address, "a/b:v1"));
    bench.server.wants(Wants::Nothing);
    assert!(!lacks(&bench.server.address, "a/b:v1"));
    let address = real.address.clone();
    drop(real);
    assert!(!lacks(&address, "a/b:v2"));
}

#[test]
fn an_image_whose_name_is_none_is_refused_before_anybody_is_asked() {
    let access = Access { docker: "/does/not/exist".into(), trusted: crate::artifact::Trusted::default() };
    let why = digest_now("registry.example.com/Upper:1", Path::new("/does/not/exist"), &access).unwrap_err();
    assert_eq!(why.summary, "Bad image");
    assert!(why.detail.starts_with("The image registry.example.com/Upper:1 has a repository that is none"), "{}", why.detail);
}
