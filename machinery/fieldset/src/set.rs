//! Sets of fields.
//!
//! A set is a tree: a node stands for a field, says whether that field is in the set, and holds the fields below it.
//! Nodes are sorted, and a node that says nothing does not exist, so that equal sets are equal trees. A field may be in
//! a set without those below it, and the other way round.

use crate::path::{Path, PathElement};

/// A set of fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    nodes: Vec<Node>,
}

/// One field and what is below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) element: PathElement,
    /// Whether the field itself is in the set.
    pub(crate) member: bool,
    /// The fields below it that are.
    pub(crate) below: FieldSet,
}

impl FieldSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// The set of these fields, each named by the fields above it.
    pub fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = Self::new();
        for path in paths {
            set.insert(&Path::of_fields(path));
        }
        set
    }

    /// Whether there is nothing in the set.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The number of fields in the set.
    pub fn len(&self) -> usize {
        self.nodes
            .iter()
            .map(|node| usize::from(node.member) + node.below.len())
            .sum()
    }

    /// The number of elements of the longest path.
    pub fn depth(&self) -> usize {
        self.nodes
            .iter()
            .map(|node| 1 + node.below.depth())
            .max()
            .unwrap_or(0)
    }

    /// Adds a field; those above it are not added. The whole object (the empty path) is nobody's.
    pub fn insert(&mut self, path: &Path) {
        self.insert_elements(&path.0);
    }

    fn insert_elements(&mut self, elements: &[PathElement]) {
        let Some((first, rest)) = elements.split_first() else {
            return;
        };
        let index = self.find(first).unwrap_or_else(|index| {
            let node = Node {
                element: first.clone(),
                member: false,
                below: Self::new(),
            };
            self.nodes.insert(index, node);
            index
        });
        if rest.is_empty() {
            self.nodes[index].member = true;
        } else {
            self.nodes[index].below.insert_elements(rest);
        }
    }

    /// Whether a field is in the set.
    pub fn has(&self, path: &Path) -> bool {
        let Some((last, above)) = path.0.split_last() else {
            return false;
        };
        let mut set = self;
        for element in above {
            match set.node(element) {
                Some(node) => set = &node.below,
                None => return false,
            }
        }
        set.node(last).is_some_and(|node| node.member)
    }

    /// The fields below `element`.
    pub fn below(&self, element: &PathElement) -> Option<&Self> {
        self.node(element)
            .map(|node| &node.below)
            .filter(|below| !below.is_empty())
    }

    /// What is in either set.
    pub fn union(self, other: Self) -> Self {
        if self.is_empty() {
            return other;
        }
        if other.is_empty() {
            return self;
        }
        let mut out = Self::with_capacity(self.nodes.len() + other.nodes.len());
        let mut right = other.nodes.into_iter().peekable();
        for mut node in self.nodes {
            while let Some(other) = right.next_if(|other| other.element < node.element) {
                out.nodes.push(other);
            }
            if let Some(other) = right.next_if(|other| other.element == node.element) {
                node.member |= other.member;
                node.below = node.below.union(other.below);
            }
            out.nodes.push(node);
        }
        out.nodes.extend(right);
        out
    }

    /// What is in both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        let mut out = Self::new();
        let mut right = other.nodes.iter().peekable();
        for node in &self.nodes {
            while right.next_if(|other| other.element < node.element).is_some() {}
            if let Some(other) = right.next_if(|other| other.element == node.element) {
                let below = node.below.intersection(&other.below);
                let member = node.member && other.member;
                if member || !below.is_empty() {
                    out.push(node.element.clone(), member, below);
                }
            }
        }
        out
    }

    /// What is in this set and not in the other. Fields below one that is taken away stay.
    pub fn difference(self, other: &Self) -> Self {
        self.subtract(other, false)
    }

    /// The same, but everything below a field that is taken away goes with it.
    pub fn recursive_difference(self, other: &Self) -> Self {
        self.subtract(other, true)
    }

    fn subtract(mut self, other: &Self, recursive: bool) -> Self {
        if other.is_empty() {
            return self;
        }
        let mut right = other.nodes.iter().peekable();
        self.nodes.retain_mut(|node| {
            while right.next_if(|other| other.element < node.element).is_some() {}
            let Some(other) = right.next_if(|other| other.element == node.element) else {
                return true;
            };
            if other.member {
                node.member = false;
                if recursive {
                    return false;
                }
            }
            node.below = std::mem::take(&mut node.below).subtract(&other.below, recursive);
            node.member || !node.below.is_empty()
        });
        self
    }

    /// The fields that have none of the set below them.
    pub fn leaves(&self) -> Self {
        let mut out = Self::with_capacity(self.nodes.len());
        for node in &self.nodes {
            out.push(
                node.element.clone(),
                node.member && node.below.is_empty(),
                node.below.leaves(),
            );
        }
        out
    }

    /// Calls `visit` with every field of the set: at each level first the fields themselves, then what is below them.
    pub fn each(&self, mut visit: impl FnMut(&Path)) {
        self.each_below(&mut Path::default(), &mut visit);
    }

    fn each_below(&self, prefix: &mut Path, visit: &mut impl FnMut(&Path)) {
        for node in self.nodes.iter().filter(|node| node.member) {
            prefix.0.push(node.element.clone());
            visit(prefix);
            prefix.0.pop();
        }
        for node in self.nodes.iter().filter(|node| !node.below.is_empty()) {
            prefix.0.push(node.element.clone());
            node.below.each_below(prefix, visit);
            prefix.0.pop();
        }
    }

    /// The fields of the set, in the order of [`FieldSet::each`].
    pub fn paths(&self) -> Vec<Path> {
        let mut paths = Vec::with_capacity(self.len());
        self.each(|path| paths.push(path.clone()));
        paths
    }

    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self {
            nodes: Vec::with_capacity(capacity),
        }
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(crate) fn node(&self, element: &PathElement) -> Option<&Node> {
        self.find(element).ok().map(|index| &self.nodes[index])
    }

    fn find(&self, element: &PathElement) -> Result<usize, usize> {
        self.nodes.binary_search_by(|node| node.element.cmp(element))
    }

    /// Adds a node unless it says nothing. Walks call it in order, so that it nearly always goes to the end; a node
    /// that is there already is replaced.
    pub(crate) fn push(&mut self, element: PathElement, member: bool, below: Self) {
        if !member && below.is_empty() {
            return;
        }
        let node = Node {
            element,
            member,
            below,
        };
        match self.nodes.last() {
            Some(last) if last.element >= node.element => match self.find(&node.element) {
                Ok(index) => self.nodes[index] = node,
                Err(index) => self.nodes.insert(index, node),
            },
            _ => self.nodes.push(node),
        }
    }
}

#[cfg(test)]
mod tests;
