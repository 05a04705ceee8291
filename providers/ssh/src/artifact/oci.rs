//! Images of containers as sources: one file out of the layers of an image in a registry.
//!
//! Everything is named by its sum, so what was fetched once stays right: it is kept in the cache under its sum, and looked at before the
//! registry is asked. Only what a tag means now has to be asked for each time.

mod challenge;
mod find;
mod layers;
mod login;
mod manifest;
mod reference;
mod registry;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use karmaform_model::{Diagnostic, Supply};

use self::find::{Found, Layers};
use self::layers::Listing;
pub(super) use self::login::usual_file;
use self::manifest::{Blob, Document, Platform};
pub(crate) use self::reference::{PLATFORM, Reference, digest_of, is_image, platform_problem, shown};
use self::registry::Registry;
use super::{Access, ByPlace, Ready, unfinished, unnamed};
use crate::sum::sha256_of;

/// Indexes may name indexes; nobody nests them deeper than this.
const NESTED: usize = 4;

/// An image that many want something of: who comes second finds what the first one learned. Its tag is asked for once in a run, so that
/// all hosts get the same.
pub(super) type Shared = Arc<Mutex<Option<Image>>>;

/// An image whose parts are known.
pub(super) struct Image {
    registry: Registry,
    name: String,
    directory: PathBuf,
    /// From the lowest to the uppermost.
    layers: Vec<Layer>,
}

struct Layer {
    blob: Blob,
    /// Once it was needed.
    opened: Option<(File, Listing)>,
}

/// Whether a file can be taken out of an image as these arguments say. `name` stands for the source in messages.
pub(crate) fn check(source: &str, name: &str, has_member: bool, has_sum: bool) -> Result<Reference, Diagnostic> {
    let reference = Reference::parse(source).map_err(|why| Diagnostic::error("Bad source", format!("{name} in \"source\" {why}.")))?;
    if has_sum {
        let detail = format!("{name} is an image, and \"sha256\" is the sum of a file. What names an image is the digest of its manifest.");
        return Err(Diagnostic::error("Image has no sum", detail)
            .with_hint("Write the digest behind the image in \"source\", as \"@sha256:DIGEST\", and leave out \"sha256\"."));
    }
    if !has_member {
        return Err(Diagnostic::error("Member is missing", format!("{name} is an image; \"member\" must say which file of it is meant."))
            .with_hint("Write its path in the image, as \"/bin/etcd\", or the end of it."));
    }
    Ok(reference)
}

/// Takes the member of a supply out of its image.
pub(super) fn take(shared: &Shared, directory: &Path, access: &Access, supply: &Supply) -> Result<Ready, Diagnostic> {
    let name = shown(&supply.source);
    let reference = check(&supply.source, &format!("\"{name}\""), supply.member.is_some(), supply.sha256.is_some())?;
    let mut image = shared.lock().unwrap_or_else(PoisonError::into_inner);
    let image = match &mut *image {
        Some(image) => image,
        none => none.insert(Image::resolve(reference, &name, directory, access, supply)?),
    };
    let member = supply.member.as_deref().unwrap_or_default();
    let found = find::find(image, member)?.map_err(|why| Diagnostic::error("Member is not in the image", format!("{name}: {why}.")))?;
    Ready::of(image.copy(found)?, &name)
}

/// An image's name as clusters read it: without a registry it is Docker Hub's, without a tag or a digest the latest.
fn in_full(image: &str) -> String {
    let (name, digest) = image.split_once('@').map_or((image, None), |(name, digest)| (name, Some(digest)));
    let first = name.split('/').next().unwrap_or_default();
    let has_registry = name.contains('/') && (first == "localhost" || first.contains(['.', ':']));
    let name = if has_registry { name.to_owned() } else { format!("docker.io/{name}") };
    let name = match name.strip_prefix("docker.io/") {
        Some(short) if !short.contains('/') => format!("docker.io/library/{short}"),
        _ => name,
    };
    let has_tag = name.rsplit('/').next().is_some_and(|last| last.contains(':'));
    match digest {
        Some(digest) => format!("{name}@{digest}"),
        None if has_tag => name,
        None => format!("{name}:latest"),
    }
}

/// True if the registry of an image, named as clusters do, says that it has none of this name.
pub(super) fn is_lacking(image: &str, access: &Access) -> bool {
    let source = format!("oci://{}", in_full(image));
    let Ok(reference) = Reference::parse(&source) else { return false };
    let path = format!("manifests/{}", reference.name());
    Registry::new(reference, shown(&source), access).is_ok_and(|registry| registry.in_a_hurry().lacks(&path))
}

/// The digest of what an image's name, as clusters write it, means now.
pub(super) fn digest_now(image: &str, directory: &Path, access: &Access) -> Result<String, Diagnostic> {
    let source = format!("oci://{}", in_full(image));
    let reference = Reference::parse(&source).map_err(|why| Diagnostic::error("Bad image", format!("The image {image} {why}.")))?;
    if let Some(digest) = &reference.digest {
        return Ok(format!("sha256:{digest}"));
    }
    let path = format!("manifests/{}", reference.name());
    let registry = Registry::new(reference, shown(&source), access)?;
    let mut image = Image { registry, name: shown(&source), directory: directory.to_owned(), layers: Vec::new() };
    Ok(format!("sha256:{}", crate::sum::sha256(&image.by_tag(&path)?)))
}

impl Image {
    /// Learns what an image is made of.
    fn resolve(reference: Reference, name: &str, directory: &Path, access: &Access, supply: &Supply) -> Result<Self, Diagnostic> {
        let platform = Platform::parse(supply.platform.as_deref().unwrap_or(PLATFORM));
        let (name, directory) = (name.to_owned(), directory.to_owned());
        let (path, digest) = (format!("manifests/{}", reference.name()), reference.digest.clone());
        let registry = Registry::new(reference, name.clone(), access)?;
        let mut image = Self { registry, name, directory, layers: Vec::new() };
        let mut bytes = match digest {
            Some(digest) => image.manifest(&digest)?,
            None => image.by_tag(&path)?,
        };
        let mut is_chosen = false;
        for _ in 0..NESTED {
            match manifest::read(&bytes).map_err(|why| image.unfit(&why))? {
                Document::Index(index) => {
                    let blob = manifest::choose(index, &platform).map_err(|why| image.unfit(&why).with_hint("Set \"platform\"."))?;
                    bytes = image.manifest(&blob.digest)?;
                    is_chosen = true;
                }
                Document::Manifest { config, layers } => {
                    // what an index says of its manifests is believed, as everybody does
                    if !is_chosen && config.size <= registry::LARGEST {
                        let config = image.whole("blobs", &config.digest, Some(config.size))?;
                        manifest::check(&config, &platform).map_err(|why| image.unfit(&why).with_hint("Set \"platform\"."))?;
                    }
                    image.layers = layers.into_iter().map(|blob| Layer { blob, opened: None }).collect();
                    return Ok(image);
                }
            }
        }
        Err(image.unfit("is an index of indexes without an end"))
    }

    fn manifest(&mut self, digest: &str) -> Result<Vec<u8>, Diagnostic> {
        self.whole("manifests", digest, None)
    }

    /// What a tag means now. It is not kept: nobody would ask for it.
    fn by_tag(&mut self, path: &str) -> Result<Vec<u8>, Diagnostic> {
        let answer = self.registry.open(path)?;
        let mut bytes = Vec::new();
        answer.reader.take(registry::LARGEST + 1).read_to_end(&mut bytes).map_err(|e| self.registry.failed(&e.to_string()).retryable())?;
        let sum = crate::sum::sha256(&bytes);
        match answer.digest {
            Some(digest) if digest != sum => Err(self.wrong_sum(&digest, &sum)),
            _ => Ok(bytes),
        }
    }

    /// A small thing of this sum.
    fn whole(&mut self, folder: &str, digest: &str, size: Option<u64>) -> Result<Vec<u8>, Diagnostic> {
        let file = self.kept(folder, digest, size)?;
        let mut bytes = Vec::new();
        ByPlace::new(&file).read_to_end(&mut bytes).map_err(|e| self.registry.failed(&e.to_string()))?;
        Ok(bytes)
    }

    /// Something of this sum: out of the cache, or else from the registry, into the cache.
    fn kept(&mut self, folder: &str, digest: &str, size: Option<u64>) -> Result<File, Diagnostic> {
        let kept = self.directory.join(format!("oci-{digest}"));
        if let Ok(file) = File::open(&kept) {
            if sha256_of(&mut ByPlace::new(&file)).is_ok_and(|sum| sum == digest) {
                return Ok(file);
            }
            // damaged on disk
            let _ = fs::remove_file(&kept);
        }
        let mut file = unfinished(&self.directory)?;
        let reader = self.registry.open(&format!("{folder}/sha256:{digest}"))?.reader;
        let limit = size.unwrap_or(registry::LARGEST);
        let failed = |e: io::Error| self.registry.failed(&e.to_string()).retryable();
        let received = io::copy(&mut reader.take(limit + 1), &mut file).map_err(failed)?;
        if let Some(size) = size.filter(|size| received < *size) {
            return Err(self.registry.failed(&format!("{received} of {size} bytes arrived")).retryable());
        }
        let sum = sha256_of(&mut ByPlace::new(file.as_file())).map_err(failed)?;
        if sum != digest {
            return Err(self.wrong_sum(digest, &sum));
        }
        // rename: another run that fetches the same at the same time sees the old or the new file, and both are right
        file.persist(&kept).map_err(|e| Diagnostic::error("Cache can't be written", format!("{}: {}.", kept.display(), e.error)))
    }

    fn copy(&self, found: Found) -> Result<File, Diagnostic> {
        let mut file = unnamed(&self.directory)?;
        let copied = match &self.layers[found.layer].opened {
            Some((layer, _)) => layers::copy(layer, found.entry, &mut file),
            None => Err(io::Error::other("the layer vanished")),
        };
        copied.map_err(|e| self.unreadable(found.layer, &e))?;
        Ok(file)
    }

    /// `why` is the end of a sentence that begins with the image.
    fn unfit(&self, why: &str) -> Diagnostic {
        Diagnostic::error("Image can't be used", format!("{} {why}.", self.name))
    }

    fn wrong_sum(&self, digest: &str, sum: &str) -> Diagnostic {
        let detail =
            format!("{}: a part of it should have the SHA-256 sum {digest}, but what arrived has {sum}. Nothing was installed.", self.name);
        Diagnostic::error("Image has the wrong sum", detail)
            .with_hint("The registry's disk may be damaged, or something on the way to it changes what it sends.")
    }

    fn place_of(&self, layer: usize) -> String {
        format!("{}: layer {} of {}", self.name, layer + 1, self.layers.len())
    }

    fn unreadable(&self, layer: usize, error: &io::Error) -> Diagnostic {
        let place = self.place_of(layer);
        Diagnostic::error("Layer can't be read", format!("{place} can't be read as a tar archive (plain or gzip): {error}."))
    }

    fn is_zstd(&self, layer: usize) -> Diagnostic {
        let place = self.place_of(layer);
        Diagnostic::error("Layer is compressed with zstd", format!("{place} is compressed with zstd, which karmaform does not read."))
            .with_hint("Take an image that was made with gzip, or get the file by other means and give its path or URL.")
    }
}

impl Layers for Image {
    fn count(&self) -> usize {
        self.layers.len()
    }

    fn listing(&mut self, index: usize) -> Result<&Listing, Diagnostic> {
        if self.layers[index].opened.is_none() {
            let blob = self.layers[index].blob.clone();
            if blob.kind.ends_with("zstd") {
                return Err(self.is_zstd(index));
            }
            let file = self.kept("blobs", &blob.digest, Some(blob.size))?;
            if layers::is_zstd(&file).map_err(|e| self.unreadable(index, &e))? {
                return Err(self.is_zstd(index));
            }
            let listing = layers::list(&file).map_err(|e| self.unreadable(index, &e))?;
            self.layers[index].opened = Some((file, listing));
        }
        let opened = self.layers[index].opened.as_ref().map(|(_, listing)| listing);
        opened.ok_or_else(|| self.unfit("has lost a layer, which is a bug"))
    }
}

#[cfg(test)]
mod tests;
