//! What is refused for reasons that no text case can have: bytes that are no text, an environment, a file with the number of the process, a store that
//! fails half way.

use std::sync::Arc;

use karmaform_model::{
    Address, BoxFuture, Diagnostic, Found, Item, Object, ResourceState, Schema, Serial, Snapshot, StateStore, Status, StoreError, Value,
    Version,
};
use karmaform_remote::RemoteState;

use super::Place;
use crate::wiring::{BackendKind, BackendRequest, OpenBackend};
use crate::{Output, Wiring, run};

#[test]
fn what_is_no_text_is_not_formatted() {
    let place = Place::new("");
    std::fs::write(place.path().join("bytes.kf.hcl"), b"a = \"\xff\"\n").unwrap();
    let done = place.check(&["fmt"], 2);
    assert!(done.stderr.contains("Error: Can't format a file") && done.stderr.contains("The file \"bytes.kf.hcl\""), "{}", done.stderr);
    // From standard input as well.
    let (mut output, captured) = Output::captured("");
    output.stdin = Box::new(std::io::Cursor::new(b"a = \"\xff\"\n".to_vec()));
    assert_eq!(run(vec!["karmaform".into(), "fmt".into(), "-".into()], place.wiring(), output), 1);
    assert!(captured.stderr().contains("Error: Can't format standard input"), "{}", captured.stderr());
    assert_eq!(captured.stdout(), "");
}

#[test]
fn what_the_environment_chose_nobody_selects() {
    let mut place = Place::new("");
    place.set("KF_WORKSPACE", "dev");
    for arguments in [&["workspace", "select", "default"], &["workspace", "new", "other"]] {
        let refused = place.check(arguments, 1).stderr;
        assert!(refused.contains("Error: Workspace is overridden"), "{refused}");
        assert!(refused.contains("KF_WORKSPACE chooses the workspace \"dev\"") && refused.contains("Unset KF_WORKSPACE"), "{refused}");
    }
    assert!(!place.path().join(".karmaform").exists());
}

#[test]
fn a_kubeconfig_that_can_not_be_written_is_said() {
    let place = Place::new("");
    let connection = Value::object([("provider", "kubernetes".into()), ("id", "main".into()), ("kubeconfig", "apiVersion: v1\n".into())]);
    let address = Address::managed("karmada_control_plane", "main");
    let registry = &place.registry;
    let schema = registry.resource(&address.kind).unwrap().schema();
    let mut attributes: Object = schema.attributes.iter().map(|a| (a.name.to_owned(), Value::null(a.ty.clone()))).collect();
    attributes.insert("connection".into(), connection);
    let resource = ResourceState {
        resource_type: address.kind.clone(),
        provider: "karmaform".into(),
        schema_version: schema.version,
        attributes: schema.encode(&attributes).into(),
        secret_paths: Vec::new(),
        dependencies: Vec::new(),
        create_before_destroy: false,
        protected: false,
        status: Status::Ready,
    };
    let mut state = Snapshot { lineage: "l".into(), serial: 1, tool_version: "0.1.0".into(), ..Snapshot::default() };
    state.resources.insert(address, resource);
    place.write("karmaform.tfstate", &state.to_text());
    std::os::unix::fs::symlink("nowhere/at/all", place.path().join(".karmaform")).unwrap();
    let refused = place.check(&["connect", "karmada_control_plane.main", "--", "true"], 1).stderr;
    assert!(refused.contains("Error: The kubeconfig can't be written") && refused.contains("something else is in its place"), "{refused}");
}

#[test]
fn a_working_directory_that_leads_nowhere_is_said() {
    let place = Place::new("");
    std::os::unix::fs::symlink("nowhere/at/all", place.path().join(".karmaform")).unwrap();
    let refused = place.check(&["init"], 1).stderr;
    assert!(refused.contains("Error: Can't make the working directory") && refused.contains(".karmaform can't be made: "), "{refused}");
}

/// A store that can be read and locked, and refuses everything that is tried with it.
#[derive(Default)]
struct Picky(std::sync::Mutex<Option<(Item, Vec<u8>)>>);

impl Picky {
    fn held(&self) -> std::sync::MutexGuard<'_, Option<(Item, Vec<u8>)>> {
        self.0.lock().unwrap()
    }
}

impl StateStore for Picky {
    fn place(&self) -> String {
        "picky://state".into()
    }

    fn get<'a>(&'a self, item: &'a Item) -> BoxFuture<'a, Result<Option<Found>, StoreError>> {
        Box::pin(async move {
            let found = self.held().clone().filter(|(i, _)| i == item);
            Ok(found.map(|(_, bytes)| Found { bytes, version: Version("1".into()) }))
        })
    }

    fn put<'a>(&'a self, item: &'a Item, bytes: Vec<u8>, _: Option<&'a Version>) -> BoxFuture<'a, Result<Version, StoreError>> {
        Box::pin(async move {
            if matches!(item, Item::Scratch(_)) {
                return Err(StoreError::Refused("the bucket takes no such names".into()));
            }
            *self.held() = Some((item.clone(), bytes));
            Ok(Version("1".into()))
        })
    }

    fn delete<'a>(&'a self, item: &'a Item, _: &'a Version) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let mut held = self.held();
            if held.as_ref().is_some_and(|(i, _)| i == item) {
                *held = None;
            }
            Ok(())
        })
    }

    fn generations(&self) -> BoxFuture<'_, Result<Vec<Serial>, StoreError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn workspaces(&self) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

fn open_picky(request: &BackendRequest<'_>) -> Result<OpenBackend, Diagnostic> {
    let store: Arc<dyn StateStore> = Arc::new(Picky::default());
    let journal = request.directory.join(".karmaform/journal-picky");
    Ok(OpenBackend {
        kind: "picky",
        backend: Arc::new(RemoteState::new(Arc::clone(&store), std::time::Duration::from_secs(60)).sealed(Arc::clone(request.seal))),
        place: store.place(),
        store: Some(store),
        workspace: request.workspace.to_owned(),
        unlocked: None,
        journal: Box::new(move || karmaform_local::FileJournal::open(&journal).map(|j| Box::new(j) as Box<dyn karmaform_model::Journal>)),
        seal: Arc::clone(request.seal),
        record: None,
    })
}

fn picky_schema() -> &'static Schema {
    static SCHEMA: std::sync::LazyLock<Schema> = std::sync::LazyLock::new(|| Schema::new("For a test.", Vec::new()));
    &SCHEMA
}

#[test]
fn a_store_that_refuses_what_is_tried_with_it_is_no_backend() {
    let place = Place::new("karmaform {\n  backend \"picky\" {}\n}\n");
    for command in ["doctor", "init"] {
        let wiring = Wiring { backends: vec![BackendKind { name: "picky", schema: picky_schema, open: open_picky }], ..place.wiring() };
        let (output, captured) = Output::captured("");
        let code = run(vec!["karmaform".into(), command.into()], wiring, output);
        let told = captured.stderr();
        assert_eq!(code, 1, "{command}: {told}");
        assert!(told.contains("Error: Backend can't be used") && told.contains("The bucket takes no such names."), "{command}: {told}");
    }
    assert!(!place.path().join(".karmaform/backend.json").exists());
}
