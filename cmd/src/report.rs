//! Reports: which forms there are, how they are asked for, and that they are written. What is in them is for those who make them.

pub(crate) mod plan;

use std::collections::{BTreeMap, BTreeSet};

use karmaform_lang::{Config, Reference};
use karmaform_model::{Address, Diagnostic, Key, Mode};

use crate::app::{App, Stop};
use crate::disk::{self, reason_to_write, write_replaced};
use crate::ui::graph::{Node, Picture};
use crate::ui::style::Tone;

/// A form that a report can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// As on the terminal.
    Human,
    /// Everything, for programs.
    Json,
    /// For what shows test results.
    Junit,
    /// For what shows findings in code.
    Sarif,
    /// For summaries and notes.
    Markdown,
    /// For node_exporter's textfile collector.
    Prometheus,
    /// A page for a browser.
    Html,
    /// A message for a webhook.
    Slack,
    /// Alerts.
    Alertmanager,
    /// Chromium's trace events.
    Chrome,
    /// OpenTelemetry's traces.
    Otlp,
}

/// All forms by the names that they have on the command line.
const FORMATS: [(&str, Format); 11] = [
    ("human", Format::Human),
    ("json", Format::Json),
    ("junit", Format::Junit),
    ("sarif", Format::Sarif),
    ("markdown", Format::Markdown),
    ("prometheus", Format::Prometheus),
    ("html", Format::Html),
    ("slack", Format::Slack),
    ("alertmanager", Format::Alertmanager),
    ("chrome", Format::Chrome),
    ("otlp", Format::Otlp),
];

/// So many instances of a data source are drawn as needed by each that may read any of them.
const NEEDED: usize = 20;

/// A report that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) format: Format,
    /// The file.
    pub(crate) file: String,
}

/// Reads `FORMAT=FILE`, where only these forms are to be had.
///
/// # Errors
/// The reader's: if there is no such format, or no file.
pub(crate) fn wanted(offered: &'static [Format]) -> impl Fn(&str) -> Result<Wanted, String> + Clone + Send + Sync + 'static {
    move |text| {
        let known = || FORMATS.iter().filter(|(_, f)| offered.contains(f));
        let (name, file) = text.split_once('=').filter(|(_, file)| !file.is_empty()).ok_or("it must have the form FORMAT=FILE")?;
        let Some((_, format)) = known().find(|(n, _)| *n == name) else {
            let names: Vec<&str> = known().map(|(n, _)| *n).collect();
            return Err(format!("there is no format \"{name}\"; there are {}", names.join(", ")));
        };
        Ok(Wanted { format: *format, file: file.to_owned() })
    }
}

/// Writes them. A pipeline goes on with the files whatever becomes of the terminal, so they come first.
///
/// # Errors
/// If a file can't be written.
pub(crate) fn write(app: &App, wanted: &[Wanted], content: impl Fn(Format) -> String) -> Result<(), Stop> {
    for one in wanted {
        write_replaced(&app.directory.join(&one.file), content(one.format).as_bytes()).map_err(|e| unwritten(one, &e))?;
    }
    Ok(())
}

/// Makes room for them: an older one in its place must not be taken for that of a run that comes to write none.
///
/// # Errors
/// If one can't be removed.
fn make_room(app: &App, wanted: &[Wanted]) -> Result<(), Stop> {
    for one in wanted {
        disk::make_room(&app.directory.join(&one.file)).map_err(|e| unwritten(one, &e))?;
    }
    Ok(())
}

fn unwritten(one: &Wanted, error: &std::io::Error) -> Diagnostic {
    Diagnostic::error("Report can't be written", format!("The file \"{}\" can't be written: {}.", one.file, reason_to_write(error)))
}

/// A picture of what depends on what. `marks`: how something is marked, and where a click on it leads. What needs a data source is told by
/// the configuration alone, as that is in no state.
pub(crate) fn picture<'a>(
    things: impl Iterator<Item = (&'a Address, &'a [Address])>,
    marks: &BTreeMap<&Address, (Tone, String)>,
    reads: &Reads,
) -> Picture {
    let things: BTreeMap<&Address, &[Address]> = things.collect();
    let composites: BTreeSet<Address> = things.keys().filter_map(|a| a.composite()).collect();
    let mut picture = Picture::default();
    for (address, needs) in &things {
        let frame = address.composite().or_else(|| composites.contains(*address).then(|| (*address).clone()));
        let (tone, link) = marks.get(address).cloned().unzip();
        let block = frame.as_ref().unwrap_or(address).block().to_string();
        picture.nodes.insert(address.to_string(), Node { frame: frame.map(|f| f.to_string()), block, tone, link });
        let known = needs.iter().filter(|n| things.contains_key(n));
        picture.edges.extend(known.map(|n| (address.to_string(), n.to_string())));
    }
    for (address, source) in of_data(&things, reads) {
        picture.edges.insert((address.to_string(), source.to_string()));
    }
    picture
}

/// Blocks, and the data sources that they name.
pub(crate) type Reads = BTreeMap<Address, BTreeSet<Address>>;

/// Which blocks read which data sources.
pub(crate) fn reads(config: &Config) -> Reads {
    let sources = |references: &[Reference]| references.iter().map(|r| r.address.block()).filter(|a| a.mode == Mode::Data).collect();
    config.blocks.iter().map(|(address, block)| (address.clone(), sources(&block.references))).collect()
}

fn of_data<'a>(things: &BTreeMap<&'a Address, &'a [Address]>, reads: &Reads) -> Vec<(&'a Address, &'a Address)> {
    let mut instances: BTreeMap<Address, Vec<&Address>> = BTreeMap::new();
    for address in things.keys().filter(|a| !a.is_child()) {
        instances.entry(address.block()).or_default().push(address);
    }
    let mut found = Vec::new();
    for (block, own) in &instances {
        for source in reads.get(block).into_iter().flatten().filter_map(|s| instances.get(s)) {
            let by_key: BTreeMap<&Key, &&Address> = source.iter().filter_map(|s| Some((s.key.as_ref()?, s))).collect();
            for address in own {
                let same_key = address.key.as_ref().and_then(|key| by_key.get(key)).copied();
                let needed: Vec<&Address> = same_key.map_or_else(|| source.iter().copied().take(NEEDED).collect(), |s| vec![*s]);
                found.extend(needed.into_iter().map(|s| (*address, s)));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_offered_can_be_had() {
        let all = wanted(&[Format::Human, Format::Html]);
        assert_eq!(all("html=a=b.html"), Ok(Wanted { format: Format::Html, file: "a=b.html".into() }));
        assert_eq!(all("html"), Err("it must have the form FORMAT=FILE".to_owned()));
        assert_eq!(all("pdf=x"), Err("there is no format \"pdf\"; there are human, html".to_owned()));
        let few = wanted(&[Format::Json, Format::Html]);
        assert_eq!(few("junit=x"), Err("there is no format \"junit\"; there are json, html".to_owned()));
    }

    #[test]
    fn a_composite_and_its_parts_share_a_box() {
        let address = |text: &str| -> Address { text.parse().unwrap() };
        let (composite, part, host) = (address("etcd_cluster.m"), address("etcd_cluster.m/ca"), address("data.ssh_host.h[\"a\"]"));
        let needs = [composite.clone(), address("gone.g")];
        let things = [(&composite, &[][..]), (&part, &needs[..]), (&host, &[][..])];
        let reads = [(composite.clone(), [host.block()].into())].into();
        let picture = picture(things.into_iter(), &[(&part, (Tone::Change, "r0".to_owned()))].into(), &reads);
        let frames: Vec<_> = picture.nodes.values().map(|n| n.frame.as_deref()).collect();
        assert_eq!(frames, [None, Some("etcd_cluster.m"), Some("etcd_cluster.m")]);
        assert_eq!(picture.nodes["etcd_cluster.m/ca"].link.as_deref(), Some("r0"));
        assert_eq!(picture.nodes["data.ssh_host.h[\"a\"]"].block, "data.ssh_host.h");
        let edges: Vec<String> = picture.edges.iter().map(|(from, to)| format!("{from} {to}")).collect();
        assert_eq!(edges, ["etcd_cluster.m data.ssh_host.h[\"a\"]", "etcd_cluster.m/ca etcd_cluster.m"]);
    }
}
