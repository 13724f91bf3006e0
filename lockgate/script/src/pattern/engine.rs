//! Matching itself: a pattern against a text at a place, by trying.

use crate::fuel::Fuel;

/// How deep one trial may go.
const DEPTH: usize = 200;
/// How many captures a pattern may have.
const CAPTURES: usize = 32;

/// Why a pattern cannot be matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bad {
    EndsInPercent,
    MissingBracket,
    MissingBalance,
    MissingFrontier,
    InvalidCapture,
    TooManyCaptures,
    Unfinished,
    TooComplex,
    OutOfSteps,
}

impl Bad {
    pub(super) fn message(self) -> &'static str {
        match self {
            Self::EndsInPercent => "malformed pattern (ends with '%')",
            Self::MissingBracket => "malformed pattern (missing ']')",
            Self::MissingBalance => "unbalanced pattern",
            Self::MissingFrontier => "missing '[' after '%f' in pattern",
            Self::InvalidCapture => "invalid capture index",
            Self::TooManyCaptures => "too many captures",
            Self::Unfinished => "unfinished capture",
            Self::TooComplex => "pattern too complex",
            Self::OutOfSteps => "too many steps",
        }
    }
}

/// What a part of a pattern in brackets found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Capture {
    /// It began here and has not ended.
    Open(usize),
    /// From here to there.
    Span(usize, usize),
    /// The place itself.
    Place(usize),
}

/// Where a pattern matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) captures: Vec<Capture>,
}

/// A pattern.
pub(super) struct Pattern<'a> {
    items: &'a [u8],
    anchored: bool,
    plain: bool,
}

impl<'a> Pattern<'a> {
    pub(super) fn new(pattern: &'a [u8], plain: bool) -> Self {
        match pattern.strip_prefix(b"^").filter(|_| !plain) {
            Some(items) => Self {
                items,
                anchored: true,
                plain,
            },
            None => Self {
                items: pattern,
                anchored: false,
                plain,
            },
        }
    }

    /// A pattern whose `^` stands for itself.
    pub(super) fn unanchored(pattern: &'a [u8]) -> Self {
        Self {
            items: pattern,
            anchored: false,
            plain: false,
        }
    }

    /// The first match from a place on.
    pub(super) fn find(&self, text: &[u8], from: usize, fuel: &Fuel) -> Result<Option<Found>, Bad> {
        let last = if self.anchored { from } else { text.len() };
        for at in from..=last {
            if let Some(found) = self.at(text, at, fuel)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// A match at a place.
    pub(super) fn at(&self, text: &[u8], at: usize, fuel: &Fuel) -> Result<Option<Found>, Bad> {
        if self.plain {
            if !fuel.take(1 + self.items.len() as u64 / 16) {
                return Err(Bad::OutOfSteps);
            }
            let end = at + self.items.len();
            return Ok((text.get(at..end) == Some(self.items)).then(|| Found {
                start: at,
                end,
                captures: Vec::new(),
            }));
        }
        let mut trial = Trial {
            text,
            pattern: self.items,
            captures: Vec::new(),
            fuel,
            depth: 0,
        };
        let end = trial.go(at, 0)?;
        let captures = trial.captures;
        if end.is_some() && captures.iter().any(|capture| matches!(capture, Capture::Open(_))) {
            return Err(Bad::Unfinished);
        }
        Ok(end.map(|end| Found {
            start: at,
            end,
            captures,
        }))
    }
}

struct Trial<'a> {
    text: &'a [u8],
    pattern: &'a [u8],
    captures: Vec<Capture>,
    fuel: &'a Fuel,
    depth: usize,
}

impl Trial<'_> {
    /// Matches the pattern from `p` on with the text from `s` on. Answers where that ends.
    fn go(&mut self, s: usize, p: usize) -> Result<Option<usize>, Bad> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(Bad::TooComplex);
        }
        let end = self.items(s, p);
        self.depth -= 1;
        end
    }

    fn step(&self) -> Result<(), Bad> {
        if self.fuel.take(1) {
            Ok(())
        } else {
            Err(Bad::OutOfSteps)
        }
    }

    fn items(&mut self, mut s: usize, mut p: usize) -> Result<Option<usize>, Bad> {
        loop {
            self.step()?;
            match (self.pattern.get(p), self.pattern.get(p + 1)) {
                (None, _) => return Ok(Some(s)),
                (Some(b'('), Some(b')')) => return self.capture(s, p + 2, Capture::Place(s)),
                (Some(b'('), _) => return self.capture(s, p + 1, Capture::Open(s)),
                (Some(b')'), _) => return self.close(s, p + 1),
                (Some(b'$'), None) => return Ok((s == self.text.len()).then_some(s)),
                (Some(b'%'), Some(b'b')) => match self.balance(s, p + 2)? {
                    Some(end) => (s, p) = (end, p + 4),
                    None => return Ok(None),
                },
                (Some(b'%'), Some(b'f')) => {
                    let set = p + 2;
                    if self.pattern.get(set) != Some(&b'[') {
                        return Err(Bad::MissingFrontier);
                    }
                    let after = self.item_end(set)?;
                    let before = s.checked_sub(1).and_then(|at| self.text.get(at)).copied();
                    let here = self.text.get(s).copied();
                    let edge = !self.in_set(before.unwrap_or(0), set, after - 1)
                        && self.in_set(here.unwrap_or(0), set, after - 1);
                    if !edge {
                        return Ok(None);
                    }
                    p = after;
                }
                (Some(b'%'), Some(digit)) if digit.is_ascii_digit() => match self.again(s, *digit)? {
                    Some(end) => (s, p) = (end, p + 2),
                    None => return Ok(None),
                },
                _ => {
                    let after = self.item_end(p)?;
                    match self.pattern.get(after) {
                        Some(b'?') => {
                            if self.single(s, p, after) {
                                let kept = self.captures.clone();
                                if let Some(end) = self.go(s + 1, after + 1)? {
                                    return Ok(Some(end));
                                }
                                self.captures = kept;
                            }
                            p = after + 1;
                        }
                        Some(b'+') => {
                            return match self.single(s, p, after) {
                                true => self.most(s + 1, p, after),
                                false => Ok(None),
                            };
                        }
                        Some(b'*') => return self.most(s, p, after),
                        Some(b'-') => return self.least(s, p, after),
                        _ if self.single(s, p, after) => (s, p) = (s + 1, after),
                        _ => return Ok(None),
                    }
                }
            }
        }
    }

    /// As many as possible, then fewer.
    fn most(&mut self, s: usize, p: usize, after: usize) -> Result<Option<usize>, Bad> {
        let mut count = 0;
        while self.single(s + count, p, after) {
            self.step()?;
            count += 1;
        }
        loop {
            let kept = self.captures.clone();
            if let Some(end) = self.go(s + count, after + 1)? {
                return Ok(Some(end));
            }
            self.captures = kept;
            match count.checked_sub(1) {
                Some(fewer) => count = fewer,
                None => return Ok(None),
            }
        }
    }

    /// As few as possible, then more.
    fn least(&mut self, mut s: usize, p: usize, after: usize) -> Result<Option<usize>, Bad> {
        loop {
            let kept = self.captures.clone();
            if let Some(end) = self.go(s, after + 1)? {
                return Ok(Some(end));
            }
            self.captures = kept;
            if !self.single(s, p, after) {
                return Ok(None);
            }
            s += 1;
        }
    }

    fn capture(&mut self, s: usize, p: usize, capture: Capture) -> Result<Option<usize>, Bad> {
        if self.captures.len() >= CAPTURES {
            return Err(Bad::TooManyCaptures);
        }
        let before = self.captures.len();
        self.captures.push(capture);
        let end = self.go(s, p)?;
        if end.is_none() {
            self.captures.truncate(before);
        }
        Ok(end)
    }

    fn close(&mut self, s: usize, p: usize) -> Result<Option<usize>, Bad> {
        let open = self
            .captures
            .iter()
            .rposition(|capture| matches!(capture, Capture::Open(_)));
        let Some(at) = open else {
            return Err(Bad::InvalidCapture);
        };
        let Capture::Open(start) = self.captures[at] else {
            return Err(Bad::InvalidCapture);
        };
        self.captures[at] = Capture::Span(start, s);
        let end = self.go(s, p)?;
        if end.is_none()
            && let Some(capture) = self.captures.get_mut(at)
        {
            *capture = Capture::Open(start);
        }
        Ok(end)
    }

    /// `%bxy`: from an x to the y that closes it.
    fn balance(&self, s: usize, p: usize) -> Result<Option<usize>, Bad> {
        let (Some(&open), Some(&close)) = (self.pattern.get(p), self.pattern.get(p + 1)) else {
            return Err(Bad::MissingBalance);
        };
        if self.text.get(s) != Some(&open) {
            return Ok(None);
        }
        let mut inside = 1;
        for (index, &byte) in self.text[s + 1..].iter().enumerate() {
            self.step()?;
            if byte == close {
                inside -= 1;
                if inside == 0 {
                    return Ok(Some(s + index + 2));
                }
            } else if byte == open {
                inside += 1;
            }
        }
        Ok(None)
    }

    /// `%1`: what an earlier capture found, once more.
    fn again(&self, s: usize, digit: u8) -> Result<Option<usize>, Bad> {
        let index = usize::from(digit).checked_sub(usize::from(b'1'));
        let capture = index.and_then(|index| self.captures.get(index));
        let Some(Capture::Span(start, end)) = capture.copied() else {
            return Err(Bad::InvalidCapture);
        };
        let length = end - start;
        Ok((self.text.get(s..s + length) == Some(&self.text[start..end])).then_some(s + length))
    }

    /// Where the item that begins at `p` ends.
    fn item_end(&self, p: usize) -> Result<usize, Bad> {
        match self.pattern.get(p) {
            Some(b'%') if p + 1 >= self.pattern.len() => Err(Bad::EndsInPercent),
            Some(b'%') => Ok(p + 2),
            Some(b'[') => {
                let mut at = p + 1;
                if self.pattern.get(at) == Some(&b'^') {
                    at += 1;
                }
                // The first may be a bracket itself.
                loop {
                    match self.pattern.get(at) {
                        None => return Err(Bad::MissingBracket),
                        Some(b'%') => at += 2,
                        Some(_) => at += 1,
                    }
                    if self.pattern.get(at) == Some(&b']') {
                        return Ok(at + 1);
                    }
                }
            }
            _ => Ok(p + 1),
        }
    }

    /// Whether the item from `p` to `after` matches the character at `s`.
    fn single(&self, s: usize, p: usize, after: usize) -> bool {
        let Some(&byte) = self.text.get(s) else {
            return false;
        };
        match self.pattern[p] {
            b'.' => true,
            b'%' => in_class(byte, self.pattern[p + 1]),
            b'[' => self.in_set(byte, p, after - 1),
            own => own == byte,
        }
    }

    /// Whether a character is in the set whose brackets are at these places.
    fn in_set(&self, byte: u8, open: usize, close: usize) -> bool {
        let mut at = open + 1;
        let negated = self.pattern.get(at) == Some(&b'^');
        if negated {
            at += 1;
        }
        let mut found = false;
        while at < close {
            let item = self.pattern[at];
            if item == b'%' {
                at += 1;
                found |= self.pattern.get(at).is_some_and(|class| in_class(byte, *class));
            } else if self.pattern.get(at + 1) == Some(&b'-') && at + 2 < close {
                found |= (item..=self.pattern[at + 2]).contains(&byte);
                at += 2;
            } else {
                found |= item == byte;
            }
            at += 1;
        }
        found != negated
    }
}

/// Whether a character is of a class such as `%a`; a capital letter means the others.
fn in_class(byte: u8, class: u8) -> bool {
    let is = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => byte.is_ascii_whitespace() || byte == 0x0b,
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return class == byte,
    };
    is != class.is_ascii_uppercase()
}
