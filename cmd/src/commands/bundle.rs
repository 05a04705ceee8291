//! `bundle`: one file with everything that the configuration needs from elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use karmaform_engine::{Options, Pool, again};
use karmaform_lang::Evaluator;
use karmaform_model::{
    Action, Address, BoxFuture, ChildStep, Composite, Diagnostic, Diagnostics, Need, Object, Plan, Registry, ResourceEntry, Snapshot,
    Supply, Type, Value, without_credentials,
};

use crate::app::{App, Ended, Stop, VERSION};
use crate::bundle::{Contents, ImageNote, Use, Writer, unseen};
use crate::flags::VariableFlags;
use crate::planning::{Planned, looking, plan_as_far};
use crate::project::{Project, load_directory};
use crate::testing::Instances;
use crate::trust::use_trust;
use crate::ui::style::Tone;
use crate::ui::table::table;

/// Where it is written unless said otherwise.
const FILE: &str = "karmaform.kfbundle";
/// What programs are published for.
const ARCHITECTURES: [&str; 2] = ["amd64", "arm64"];

/// Arguments of `bundle`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Where it is written
    #[arg(long, value_name = "FILE", default_value = FILE)]
    out: String,
    /// Architectures of the hosts that it is for, with commas between them
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "amd64", value_parser = ARCHITECTURES)]
    arch: Vec<String>,
    /// Print what it holds as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    variables: VariableFlags,
}

/// All that a configuration needs.
#[derive(Default)]
struct Needs {
    /// With the provider that gets it, and where it comes from as it may be shown.
    files: BTreeMap<Supply, (String, String)>,
    images: BTreeSet<String>,
    packages: BTreeSet<String>,
    /// Resources of which it is not known what they need.
    later: BTreeSet<Address>,
}

impl Needs {
    /// What a resource with these arguments needs, whoever makes it.
    fn add(&mut self, registry: &Registry, resource_type: &str, arguments: &Object, address: &Address) {
        let Some(ResourceEntry::Type(looking, _)) = registry.catalog().resource(resource_type) else { return };
        let Some(driver) = registry.driver(looking.name()) else { return };
        for need in driver.needs(resource_type, arguments) {
            match need {
                Need::File { supply, is_secret } => {
                    let shown = if is_secret { "(sensitive)".to_owned() } else { without_credentials(&supply.source) };
                    self.files.insert(supply, (looking.name().to_owned(), shown));
                }
                Need::Image(image) => drop(self.images.insert(image)),
                Need::Package(name) => drop(self.packages.insert(name)),
                Need::Later => drop(self.later.insert(address.clone())),
            }
        }
    }
}

/// Runs it.
pub(crate) fn run(app: &mut App, args: &Args) -> Ended {
    app.lines.only = args.json;
    let project = load_directory(app, &args.variables, false)?.checked()?;
    use_trust(app, &project, Use::Certain)?;
    let architectures: BTreeSet<&String> = args.arch.iter().collect();
    let mut needs = Needs::default();
    for architecture in &architectures {
        collect(app, &project, architecture, &mut needs)?;
    }
    let mut warnings: Diagnostics = unknown(&needs.later).into_iter().collect();
    let path = app.directory.join(&args.out);
    let unwritable = |e: std::io::Error| Stop::from(Diagnostic::error("Bundle can't be written", format!("{}: {e}.", args.out)));
    let mut writer = Writer::new(&path).map_err(unwritable)?;
    for (supply, (provider, shown)) in &needs.files {
        let Some(driver) = app.wiring.registry.driver(provider).cloned() else { continue };
        let defaults = project.config.providers.get(provider).cloned().unwrap_or_default();
        if !args.json {
            let member = supply.member.as_deref().map(|m| format!(" ({m})")).unwrap_or_default();
            app.say(&format!("Adding {shown}{member}\n"));
        }
        let supplied = tried(app, &|| driver.supply(&defaults, supply))?.map_err(Stop::from)?;
        writer.add(supply, shown.clone(), supplied).map_err(unwritable)?;
    }
    let mut contents = Contents::new(VERSION, architectures.into_iter().cloned().collect());
    contents.packages = needs.packages.into_iter().collect();
    let mut is_patient = true;
    for image in needs.images {
        let digest = digest(app, &project, &image, is_patient)?.unwrap_or_else(|why| {
            warnings.push(no_digest(&image, &why));
            // Where there is no way out, not every image waits for one. An image that is not there was not waited for.
            is_patient &= !why.retryable;
            None
        });
        contents.images.push(ImageNote { image, digest });
    }
    let (contents, size, sum) = writer.finish(&path, contents).map_err(unwritable)?;
    if args.json {
        let later: Vec<String> = needs.later.iter().map(ToString::to_string).collect();
        let answer = serde_json::json!({ "bundle": args.out, "size": size, "sha256": sum, "not_known": later, "contents": contents });
        app.output.print(&format!("{answer}\n"));
    } else {
        let text = report(app, &args.out, &contents, size, &sum);
        app.output.print(&text);
        app.show_warnings(&warnings);
    }
    Ok(0)
}

/// What there is to make if nothing is there, and what that needs.
fn collect(app: &mut App, project: &Project, architecture: &str, needs: &mut Needs) -> Result<(), Stop> {
    let registry = Arc::new(unseen(&app.wiring.registry, &project.config.providers, architecture));
    let options = Options { tries: false, now: app.now_seconds(), tool_version: VERSION.to_owned(), ..Options::default() };
    let pool = Pool::new(Arc::clone(registry.catalog()), project.config.providers.clone());
    let planned = plan_as_far(app, project, &registry, &Snapshot::default(), &pool, &options, false);
    let planned = planned.and_then(Planned::whole).map_err(without_a_look)?;
    for resource in planned.plan.resources.iter().filter(|r| r.change.action() == Action::Create) {
        let Some(after) = resource.change.after() else { continue };
        match registry.catalog().resource(&resource.resource_type) {
            Some(ResourceEntry::Composite(ty)) if ty.legs(after).is_empty() => {}
            Some(ResourceEntry::Composite(ty)) => along(project, &planned.plan, (&app.wiring.registry, &**ty), &resource.address, needs)?,
            _ => needs.add(&app.wiring.registry, &resource.resource_type, after, &resource.address),
        }
    }
    Ok(())
}

/// What plans may lead over on some way to a composite, and what its parts need there.
fn along(project: &Project, plan: &Plan, of: (&Registry, &dyn Composite), address: &Address, needs: &mut Needs) -> Result<(), Stop> {
    let (registry, ty) = of;
    let nothing = Snapshot::default();
    let instances = Instances::new(plan, &nothing, registry.catalog(), false);
    // The plan's record of it has no ways to hosts.
    let (arguments, wrong) = Evaluator::new(&project.config, &instances).arguments(address);
    if wrong.has_errors() {
        return Err(wrong.into());
    }
    for leg in ty.legs(&arguments) {
        let Some(leg) = leg else {
            needs.later.insert(address.clone());
            continue;
        };
        for child in &ty.expand(address, &leg).map_err(Stop::Because)?.children {
            let unknown = |_: &[ChildStep], _: &str| Value::unknown(Type::Any);
            let arguments = child.arguments.iter().map(|(name, arg)| (name.clone(), arg.resolve(&unknown))).collect();
            needs.add(registry, &child.resource_type, &arguments, address);
        }
    }
    Ok(())
}

/// What went wrong may come from what a plan at the site knows and this one does not.
fn without_a_look(stop: Stop) -> Stop {
    const HINT: &str =
        "A bundle is made without a look at any host or cluster: what depends on what they say is not known. Let variables decide it.";
    match stop {
        Stop::Because(all) => Stop::Because(all.into_iter().map(|d| if d.is_error() { d.with_hint(HINT) } else { d }).collect()),
        code => code,
    }
}

/// What is got, as often as a step of an apply is tried.
fn tried<'a, T>(app: &mut App, get: &dyn Fn() -> BoxFuture<'a, Result<T, Diagnostic>>) -> Result<Result<T, Diagnostic>, Stop> {
    let clock = Arc::clone(&app.wiring.clock);
    let mut tries = 0;
    loop {
        let got = looking(app, get())?;
        tries += 1;
        let Some(next) = got.as_ref().err().and_then(|why| again(why, tries)) else { return Ok(got) };
        app.say(&format!("  {}\n", next.note));
        looking(app, clock.sleep(next.pause))?;
    }
}

/// What the name of an image means now, from whichever provider knows images; or why nobody could tell.
fn digest(app: &mut App, project: &Project, image: &str, is_patient: bool) -> Result<Result<Option<String>, Diagnostic>, Stop> {
    let drivers: Vec<_> = app.wiring.registry.drivers().cloned().collect();
    for driver in drivers {
        let defaults = project.config.providers.get(driver.name()).cloned().unwrap_or_default();
        let ask = || driver.digest(&defaults, image);
        let told = if is_patient { tried(app, &ask)? } else { looking(app, ask())? };
        match told {
            Ok(None) => {}
            told => return Ok(told),
        }
    }
    Ok(Ok(None))
}

fn no_digest(image: &str, why: &Diagnostic) -> Diagnostic {
    let detail = format!("What {image} means now can't be told: {} It is listed without its digest.", why.detail);
    Diagnostic::warning("Image without a digest", detail)
}

/// What is not in it, for whoever relies on it.
fn unknown(later: &BTreeSet<Address>) -> Option<Diagnostic> {
    const NAMED: usize = 5;
    if later.is_empty() {
        return None;
    }
    let mut named: Vec<String> = later.iter().take(NAMED).map(ToString::to_string).collect();
    if later.len() > NAMED {
        named.push(format!("{} more", later.len() - NAMED));
    }
    let detail = format!("What {} needs from elsewhere depends on what is seen outside, so it is not in the bundle.", named.join(", "));
    let warning = Diagnostic::warning("Not everything is known", detail);
    Some(warning.with_hint("Write the sources so that they follow from variables alone."))
}

fn report(app: &App, path: &str, contents: &Contents, size: u64, sum: &str) -> String {
    let plain = |text: String| (text, Tone::Plain);
    let mut text = String::from("\n");
    if !contents.files.is_empty() {
        let rows: Vec<_> = contents
            .files
            .iter()
            .map(|f| {
                let part = [f.member.clone(), f.platform.clone()].into_iter().flatten().collect::<Vec<_>>().join(", ");
                [f.source.clone(), part, format!("{:.1} MB", f.size as f64 / 1e6), f.sha256[..12].to_owned()].map(plain).to_vec()
            })
            .collect();
        text.push_str(&table(&["source", "part", "size", "sha256"].map(str::to_owned), &rows, &app.theme));
    }
    if !contents.images.is_empty() {
        let digest = |i: &ImageNote| i.digest.clone().unwrap_or_else(|| "not known".to_owned());
        let rows: Vec<_> = contents.images.iter().map(|i| [i.image.clone(), digest(i)].map(plain).to_vec()).collect();
        text.push_str("\nImages are not in it. Copy them to a registry that the clusters reach:\n");
        text.push_str(&table(&["image", "digest"].map(str::to_owned), &rows, &app.theme));
    }
    if !contents.packages.is_empty() {
        let packages = contents.packages.join(", ");
        text.push_str(&format!("\nPackages are not in it; hosts get them from their distribution: {packages}\n"));
    }
    text.push_str(&format!(
        "\nWrote {path}: {} files, {:.1} MB, for {}.\n",
        contents.files.len(),
        size as f64 / 1e6,
        contents.architectures.join(" and ")
    ));
    text.push_str(&format!("sha256 {sum}\n\nWhere it is used: karmaform {{ bundle = \"{path}\" }}\n"));
    text
}
