//! Says what is wrong with a text that is not JSON, in the words of Go's scanner.
//!
//! Only texts that were refused come here, so this reads plainly rather than fast. It keeps its own stack, so no
//! text can make it recurse.

/// What may come next.
enum Expect {
    Value,
    FirstItem,
    FirstKey,
    Key,
    Colon,
    AfterPair,
    AfterItem,
    End,
}

/// The text is over; what is there so far may have been fine.
const CUT_OFF: &str = "unexpected end of JSON input";

/// The first syntax error in `bytes`, or `None` if there is none.
pub(super) fn explain(bytes: &[u8]) -> Option<String> {
    let mut scan = Scan {
        bytes,
        at: 0,
        open: Vec::new(),
        expect: Expect::Value,
    };
    scan.run().err()
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The containers that are open; true for an object.
    open: Vec<bool>,
    expect: Expect,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// The next byte, which must be there.
    fn next(&mut self) -> Result<u8, String> {
        let byte = self.peek().ok_or(CUT_OFF)?;
        self.at += 1;
        Ok(byte)
    }

    fn run(&mut self) -> Result<(), String> {
        loop {
            while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
                self.at += 1;
            }
            if self.peek().is_none() && matches!(self.expect, Expect::End) {
                return Ok(());
            }
            let byte = self.next()?;
            self.step(byte)?;
        }
    }

    fn step(&mut self, byte: u8) -> Result<(), String> {
        match (&self.expect, byte) {
            (Expect::FirstItem, b']') | (Expect::FirstKey, b'}') => self.close(),
            (Expect::Value | Expect::FirstItem, _) => return self.value(byte),
            (Expect::FirstKey | Expect::Key, b'"') => {
                self.string()?;
                self.expect = Expect::Colon;
            }
            (Expect::FirstKey | Expect::Key, _) => {
                return Err(wrong(byte, "looking for beginning of object key string"));
            }
            (Expect::Colon, b':') => self.expect = Expect::Value,
            (Expect::Colon, _) => return Err(wrong(byte, "after object key")),
            (Expect::AfterPair, b',') => self.expect = Expect::Key,
            (Expect::AfterPair, b'}') | (Expect::AfterItem, b']') => self.close(),
            (Expect::AfterPair, _) => return Err(wrong(byte, "after object key:value pair")),
            (Expect::AfterItem, b',') => self.expect = Expect::Value,
            (Expect::AfterItem, _) => return Err(wrong(byte, "after array element")),
            (Expect::End, _) => return Err(wrong(byte, "after top-level value")),
        }
        Ok(())
    }

    fn close(&mut self) {
        self.open.pop();
        self.value_done();
    }

    fn value_done(&mut self) {
        self.expect = match self.open.last() {
            None => Expect::End,
            Some(true) => Expect::AfterPair,
            Some(false) => Expect::AfterItem,
        };
    }

    fn value(&mut self, byte: u8) -> Result<(), String> {
        match byte {
            b'{' => {
                self.open.push(true);
                self.expect = Expect::FirstKey;
                return Ok(());
            }
            b'[' => {
                self.open.push(false);
                self.expect = Expect::FirstItem;
                return Ok(());
            }
            b'"' => self.string()?,
            b'-' | b'0'..=b'9' => self.number(byte)?,
            b't' => self.literal("true")?,
            b'f' => self.literal("false")?,
            b'n' => self.literal("null")?,
            _ => return Err(wrong(byte, "looking for beginning of value")),
        }
        self.value_done();
        Ok(())
    }

    fn string(&mut self) -> Result<(), String> {
        loop {
            match self.next()? {
                b'"' => return Ok(()),
                b'\\' => match self.next()? {
                    b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => {}
                    b'u' => {
                        for _ in 0..4 {
                            let byte = self.next()?;
                            if !byte.is_ascii_hexdigit() {
                                return Err(wrong(byte, "in \\u hexadecimal character escape"));
                            }
                        }
                    }
                    byte => return Err(wrong(byte, "in string escape code")),
                },
                byte if byte < 0x20 => return Err(wrong(byte, "in string literal")),
                _ => {}
            }
        }
    }

    fn number(&mut self, first: u8) -> Result<(), String> {
        let leading = if first == b'-' {
            self.digit("in numeric literal")?
        } else {
            first
        };
        if leading != b'0' {
            self.digits();
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digit("after decimal point in numeric literal")?;
            self.digits();
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digit("in exponent of numeric literal")?;
            self.digits();
        }
        Ok(())
    }

    fn digit(&mut self, context: &str) -> Result<u8, String> {
        let byte = self.next()?;
        if byte.is_ascii_digit() {
            Ok(byte)
        } else {
            Err(wrong(byte, context))
        }
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn literal(&mut self, word: &str) -> Result<(), String> {
        for expected in word.bytes().skip(1) {
            let byte = self.next()?;
            if byte != expected {
                return Err(wrong(
                    byte,
                    &format!("in literal {word} (expecting '{}')", expected as char),
                ));
            }
        }
        Ok(())
    }
}

fn wrong(byte: u8, context: &str) -> String {
    let shown = match byte {
        b'\'' => "\\'".to_owned(),
        b'\\' => "\\\\".to_owned(),
        0x07 => "\\a".to_owned(),
        0x08 => "\\b".to_owned(),
        0x0c => "\\f".to_owned(),
        b'\n' => "\\n".to_owned(),
        b'\r' => "\\r".to_owned(),
        b'\t' => "\\t".to_owned(),
        0x0b => "\\v".to_owned(),
        0x00..=0x1f | 0x7f => format!("\\x{byte:02x}"),
        0x80..=0xa0 | 0xad => format!("\\u{byte:04x}"),
        _ => char::from(byte).to_string(),
    };
    format!("invalid character '{shown}' {context}")
}
