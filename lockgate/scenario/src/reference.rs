//! Names of objects as kubectl takes them: `deployment/web -n shop`, `work -n karmada-es-member1 -l app=web`.

use std::fmt;

/// One object, or with an empty name all of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The kind in any of the forms that kubectl takes: `deployment`, `deploy`, `deployments.apps`.
    pub kind: String,
    /// The name; empty for all.
    pub name: String,
    /// The namespace; empty for none or all.
    pub namespace: String,
    /// A label selector; empty for everything.
    pub selector: String,
}

impl Reference {
    /// Reads `KIND/NAME [-n NAMESPACE]`.
    pub fn object(text: &str) -> Result<Self, String> {
        let reference = Self::any(text)?;
        if reference.name.is_empty() || !reference.selector.is_empty() {
            return Err(format!("{text:?} is not of the form KIND/NAME [-n NAMESPACE]"));
        }
        Ok(reference)
    }

    /// Reads `KIND [-n NAMESPACE] [-l SELECTOR]`.
    pub fn collection(text: &str) -> Result<Self, String> {
        let reference = Self::any(text)?;
        if !reference.name.is_empty() {
            return Err(format!(
                "{text:?} is not of the form KIND [-n NAMESPACE] [-l SELECTOR]"
            ));
        }
        Ok(reference)
    }

    fn any(text: &str) -> Result<Self, String> {
        let (words, options) = options(text)?;
        let [word] = words.as_slice() else {
            return Err(format!("{text:?} names not one object but {}", words.len()));
        };
        let (kind, name) = word.split_once('/').unwrap_or((word, ""));
        let mut reference = Self {
            kind: kind.to_ascii_lowercase(),
            name: name.to_owned(),
            namespace: String::new(),
            selector: String::new(),
        };
        for (option, value) in options {
            match option.as_str() {
                "-n" | "--namespace" => reference.namespace = value,
                "-l" | "--selector" => reference.selector = value,
                _ => {
                    return Err(format!(
                        "{text:?}: there is no option {option}; there are -n and -l"
                    ));
                }
            }
        }
        Ok(reference)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if !self.name.is_empty() {
            write!(f, "/{}", self.name)?;
        }
        if !self.namespace.is_empty() {
            write!(f, " -n {}", self.namespace)?;
        }
        if !self.selector.is_empty() {
            write!(f, " -l {}", self.selector)?;
        }
        Ok(())
    }
}

/// Options with their values, in the order of the line.
pub(crate) type Options = Vec<(String, String)>;

/// The words of a command line, and its options: `-n shop`, `--image=nginx`, `--image nginx`.
pub(crate) fn options(text: &str) -> Result<(Vec<String>, Options), String> {
    let (mut words, mut options) = (Vec::new(), Vec::new());
    let mut parts = text.split_whitespace();
    while let Some(part) = parts.next() {
        if !part.starts_with('-') {
            words.push(part.to_owned());
        } else if let Some((option, value)) = part.split_once('=') {
            options.push((option.to_owned(), value.to_owned()));
        } else {
            let value = parts
                .next()
                .ok_or_else(|| format!("{text:?}: {part} has no value"))?;
            options.push((part.to_owned(), value.to_owned()));
        }
    }
    Ok((words, options))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_read_as_in_kubectl() {
        for text in [
            "deployment/web -n shop",
            "clusterrole/reader",
            "works.work.karmada.io/a -n karmada-es-m",
        ] {
            assert_eq!(Reference::object(text).unwrap().to_string(), text);
        }
        let all = Reference::collection("work -l a=b,c!=d --namespace x").unwrap();
        assert_eq!(all.to_string(), "work -n x -l a=b,c!=d");
        assert_eq!(
            Reference::object("Deployment/Web -n=a").unwrap().to_string(),
            "deployment/Web -n a"
        );
        for wrong in [
            "",
            "deployment",
            "deployment/a b",
            "deployment/a -n",
            "deployment/a -x y",
        ] {
            assert!(Reference::object(wrong).is_err(), "{wrong}");
        }
        assert!(Reference::collection("deployment/a").is_err());
    }
}
