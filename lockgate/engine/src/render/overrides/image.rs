//! Changes of images: `[registry/]repository[:tag][@digest]`.

use std::fmt;

use lockgate_api::overrides::ImageOverrider;
use serde_json::Value;

use super::{Misfit, containers, unknown_operator};

/// Changes the image at the path that the overrider names, else those of all containers.
pub(super) fn apply(
    manifest: &mut Value,
    overrider: &ImageOverrider,
    warnings: &mut Vec<String>,
) -> Result<(), Misfit> {
    if let Some(predicate) = &overrider.predicate {
        let place = || predicate.path.clone();
        let Some(image) = manifest.pointer_mut(&predicate.path) else {
            return Err(Misfit::new(place(), "there is nothing"));
        };
        return change(image, place, overrider, warnings);
    }
    let Some((path, containers)) = containers::containers(manifest) else {
        return Ok(());
    };
    for (index, container) in containers.iter_mut().enumerate() {
        let place = || format!("{path}/{index}/image");
        let Some(image) = container.get_mut("image") else {
            return Err(Misfit::new(place(), "there is nothing"));
        };
        change(image, place, overrider, warnings)?;
    }
    Ok(())
}

fn change(
    image: &mut Value,
    place: impl Fn() -> String,
    overrider: &ImageOverrider,
    warnings: &mut Vec<String>,
) -> Result<(), Misfit> {
    let Value::String(text) = image else {
        return Err(Misfit::new(place(), "this is not a string"));
    };
    let mut parts = Parts::parse(text);
    let changed = match overrider.operator.as_str() {
        "add" => |old: &str, value: &str| format!("{old}{value}"),
        "replace" => |_: &str, value: &str| value.to_owned(),
        "remove" => |_: &str, _: &str| String::new(),
        other => return Err(Misfit::new(place(), unknown_operator(other))),
    };
    match overrider.component.as_str() {
        "Registry" => parts.registry = changed(&parts.registry, &overrider.value),
        "Repository" => parts.repository = changed(&parts.repository, &overrider.value),
        "Tag" => {
            let version = changed(&parts.version, &overrider.value);
            if version.is_empty() || is_tag(&version) || is_digest(&version) {
                parts.version = version;
            } else {
                warnings.push(format!(
                    "{}: {version:?} is neither a tag nor a digest, so the image keeps {:?}",
                    place(),
                    parts.version,
                ));
            }
        }
        other => return Err(Misfit::new(place(), format!("an image has no {other:?}"))),
    }
    if parts.repository.is_empty() {
        return Err(Misfit::new(place(), "an image needs a repository"));
    }
    *text = parts.to_string();
    Ok(())
}

/// The parts of an image.
#[derive(Debug, PartialEq, Eq)]
struct Parts {
    /// Empty for the default one.
    registry: String,
    repository: String,
    /// The tag, else the digest, else empty. Of an image with both only the tag is kept.
    version: String,
}

impl Parts {
    fn parse(image: &str) -> Self {
        let (rest, digest) = image.split_once('@').unwrap_or((image, ""));
        // A colon before the last slash belongs to a port.
        let (rest, tag) = match rest.rsplit_once(':') {
            Some((before, tag)) if !tag.contains('/') => (before, tag),
            _ => (rest, ""),
        };
        let (registry, repository) = match rest.split_once('/') {
            Some((first, others)) if is_registry(first) => (first, others),
            _ => ("", rest),
        };
        let version = if tag.is_empty() { digest } else { tag };
        Self {
            registry: registry.to_owned(),
            repository: repository.to_owned(),
            version: version.to_owned(),
        }
    }
}

impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.registry.is_empty() {
            write!(f, "{}/", self.registry)?;
        }
        f.write_str(&self.repository)?;
        match self.version.as_str() {
            "" => Ok(()),
            digest if digest.contains(':') => write!(f, "@{digest}"),
            tag => write!(f, ":{tag}"),
        }
    }
}

fn is_registry(first: &str) -> bool {
    first.contains(['.', ':']) || first == "localhost"
}

fn is_tag(text: &str) -> bool {
    let word = |c: u8| c.is_ascii_alphanumeric() || c == b'_';
    text.len() <= 128
        && text.bytes().next().is_some_and(word)
        && text.bytes().all(|c| word(c) || c == b'.' || c == b'-')
}

/// `algorithm:hex`, where parts of the algorithm's name are joined by one sign.
fn is_digest(text: &str) -> bool {
    let Some((algorithm, hex)) = text.split_once(':') else {
        return false;
    };
    let named = algorithm.split(['-', '_', '+', '.']).all(|part| {
        part.starts_with(|c: char| c.is_ascii_alphabetic()) && part.bytes().all(|c| c.is_ascii_alphanumeric())
    });
    named && hex.len() >= 32 && hex.bytes().all(|c| c.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use lockgate_api::overrides::ImagePredicate;
    use serde_json::json;

    use super::*;

    const HEX: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    /// The image after the change, and how many warnings there were.
    fn changed(image: &str, component: &str, operator: &str, value: &str) -> (String, usize) {
        let mut manifest = json!({"image": image});
        let mut warnings = Vec::new();
        let overrider = ImageOverrider {
            predicate: Some(ImagePredicate {
                path: "/image".to_owned(),
            }),
            component: component.to_owned(),
            operator: operator.to_owned(),
            value: value.to_owned(),
        };
        let text = match apply(&mut manifest, &overrider, &mut warnings) {
            Ok(()) => manifest["image"].as_str().unwrap_or_default().to_owned(),
            Err(misfit) => format!("{}: {}", misfit.path, misfit.message),
        };
        (text, warnings.len())
    }

    #[test]
    fn parts_of_images_are_changed_apart() {
        let digest = |image: &str| format!("{image}@sha256:{HEX}");
        let table = [
            ("nginx", "Registry", "replace", "reg.io", "reg.io/nginx"),
            ("reg.io:5000/a/b:v1", "Registry", "remove", "", "a/b:v1"),
            (
                "library/nginx:1",
                "Registry",
                "add",
                "x.io",
                "x.io/library/nginx:1",
            ),
            ("k8s.gcr/pause:3", "Registry", "add", ".io", "k8s.gcr.io/pause:3"),
            ("localhost/pause:3", "Registry", "replace", "r.io", "r.io/pause:3"),
            ("reg.io/a:v1", "Repository", "replace", "b/c", "reg.io/b/c:v1"),
            ("a:v1", "Repository", "add", "-x", "a-x:v1"),
            ("a:v1", "Tag", "add", "-r1", "a:v1-r1"),
            ("a:v1", "Tag", "remove", "", "a"),
            ("reg.io:5000/a", "Tag", "replace", "v2", "reg.io:5000/a:v2"),
            (&digest("a"), "Tag", "replace", "v2", "a:v2"),
            (&digest("a"), "Tag", "remove", "", "a"),
            (&digest("a"), "Repository", "replace", "b", &digest("b")),
            ("a:v1", "Tag", "replace", &format!("sha256:{HEX}"), &digest("a")),
            ("a", "Tag", "replace", "v2", "a:v2"),
            ("a", "Tag", "add", "v2", "a:v2"),
            // An image with both loses its digest, whatever is changed.
            (&digest("a:v1"), "Registry", "replace", "r.io", "r.io/a:v1"),
            (
                "a:v1",
                "Repository",
                "remove",
                "",
                "/image: an image needs a repository",
            ),
            ("", "Tag", "replace", "v2", "/image: an image needs a repository"),
            (
                "a",
                "Tag",
                "replaced",
                "v2",
                "/image: there is no operator \"replaced\" here",
            ),
            ("a", "Name", "replace", "v2", "/image: an image has no \"Name\""),
        ];
        for (image, component, operator, value, expected) in table {
            assert_eq!(
                changed(image, component, operator, value),
                (expected.to_owned(), 0),
                "{image}: {component} {operator} {value}"
            );
        }
    }

    #[test]
    fn what_is_no_tag_changes_nothing_and_is_said() {
        for value in ["bad tag", ":", "sha256:12", "-x", &"x".repeat(129)] {
            assert_eq!(
                changed("a:v1", "Tag", "replace", value),
                ("a:v1".to_owned(), 1),
                "{value}"
            );
        }
    }
}
