//! Paths as linked lists on the stack, turned into text only when there is something to report.

use std::fmt::Write;

use machinery_value::field::FieldPath;

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a str),
    /// A key of a map: dotted in schema messages, in brackets elsewhere.
    Key(&'a str),
    Index(usize),
}

/// A path from the root of an object; each step borrows the one before it.
#[derive(Clone, Copy)]
pub(crate) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

impl<'a> Path<'a> {
    pub(crate) const ROOT: Path<'static> = Path {
        parent: None,
        step: Step::Root,
    };

    pub(crate) fn field(&'a self, name: &'a str) -> Self {
        Self {
            parent: Some(self),
            step: Step::Field(name),
        }
    }

    pub(crate) fn key(&'a self, name: &'a str) -> Self {
        Self {
            parent: Some(self),
            step: Step::Key(name),
        }
    }

    pub(crate) fn index(&'a self, index: usize) -> Self {
        Self {
            parent: Some(self),
            step: Step::Index(index),
        }
    }

    pub(crate) fn is_root(&self) -> bool {
        matches!(self.step, Step::Root)
    }

    /// The path as the messages of schema validation show it: `spec.ports[0].name`, map keys after a dot.
    pub(crate) fn dotted(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, true);
        text
    }

    /// The path of a field error: map keys in brackets.
    pub(crate) fn to_field(self) -> FieldPath {
        let mut text = String::new();
        self.write(&mut text, false);
        FieldPath::from(text.as_str())
    }

    fn write(&self, text: &mut String, dotted: bool) {
        if let Some(parent) = self.parent {
            parent.write(text, dotted);
        }
        match self.step {
            Step::Root => {}
            Step::Field(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            // At the root, the server leaves the dot of a map key in its messages.
            Step::Key(name) if dotted => {
                text.push('.');
                text.push_str(name);
            }
            Step::Key(name) => {
                text.push('[');
                text.push_str(name);
                text.push(']');
            }
            Step::Index(index) => {
                // Writing into a string cannot fail.
                let _ = write!(text, "[{index}]");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_render_for_messages_and_for_fields() {
        let spec = Path::ROOT.field("spec");
        let labels = spec.field("labels");
        let key = labels.key("a/b");
        let item = key.index(2);
        assert_eq!(item.dotted(), "spec.labels.a/b[2]");
        assert_eq!(item.to_field().as_str(), "spec.labels[a/b][2]");
        assert_eq!(Path::ROOT.key("x").dotted(), ".x");
        assert_eq!(Path::ROOT.to_field().to_string(), "<nil>");
    }
}
