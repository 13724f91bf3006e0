//! Protobuf's encoding, byte by byte: tags, varints, fixed words and byte strings.

use super::wrong_wire;
use crate::WireError;

/// How deep groups may be nested in what is skipped.
const MAX_GROUPS: usize = 64;

/// How the value of a field is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    Varint,
    Fixed64,
    Bytes,
    StartGroup,
    EndGroup,
    Fixed32,
}

impl Wire {
    pub(super) fn number(self) -> u8 {
        self as u8
    }

    fn parse(bits: u64) -> Option<Self> {
        Some(match bits & 7 {
            0 => Self::Varint,
            1 => Self::Fixed64,
            2 => Self::Bytes,
            3 => Self::StartGroup,
            4 => Self::EndGroup,
            5 => Self::Fixed32,
            _ => return None,
        })
    }
}

/// What is left of a message.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

fn malformed(text: &str) -> WireError {
    WireError::Malformed(text.to_owned())
}

fn early_end() -> WireError {
    malformed("unexpected EOF")
}

impl<'a> Reader<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The number and wire type of the next field; `None` at the end.
    pub(super) fn tag(&mut self) -> Result<Option<(u32, Wire)>, WireError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        // Go keeps 32 bits of the number and takes them as signed.
        let number = (tag >> 3) as u32;
        let wire = Wire::parse(tag)
            .ok_or_else(|| WireError::Malformed(format!("proto: illegal wireType {}", tag & 7)))?;
        if wire == Wire::EndGroup {
            return Err(malformed("proto: wiretype end group for non-group"));
        }
        if number == 0 || number > i32::MAX as u32 {
            return Err(WireError::Malformed(format!(
                "proto: illegal tag {} (wire type {tag})",
                number as i32
            )));
        }
        Ok(Some((number, wire)))
    }

    /// A varint, whose bits beyond 64 are dropped as in Go.
    pub(super) fn varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or_else(early_end)?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(malformed("proto: integer overflow"))
    }

    /// A varint field.
    pub(super) fn integer(&mut self, wire: Wire, field: &str) -> Result<u64, WireError> {
        if wire != Wire::Varint {
            return Err(wrong_wire(wire, field));
        }
        self.varint()
    }

    /// A field of a length and as many bytes.
    pub(super) fn bytes(&mut self, wire: Wire, field: &str) -> Result<&'a [u8], WireError> {
        if wire != Wire::Bytes {
            return Err(wrong_wire(wire, field));
        }
        let length = self.varint()?;
        if length > i64::MAX as u64 {
            return Err(malformed("proto: negative length found during unmarshaling"));
        }
        self.take(usize::try_from(length).unwrap_or(usize::MAX))
    }

    /// A field of eight bytes.
    pub(super) fn fixed64(&mut self, wire: Wire, field: &str) -> Result<u64, WireError> {
        if wire != Wire::Fixed64 {
            return Err(wrong_wire(wire, field));
        }
        let bytes = self.take(8)?.first_chunk().ok_or_else(early_end)?;
        Ok(u64::from_le_bytes(*bytes))
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(early_end)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Passes over the value of a field that nobody asked for.
    pub(super) fn skip(&mut self, wire: Wire) -> Result<(), WireError> {
        let mut groups = 0usize;
        let mut wire = wire;
        loop {
            match wire {
                Wire::Varint => drop(self.varint()?),
                Wire::Fixed64 => drop(self.take(8)?),
                Wire::Fixed32 => drop(self.take(4)?),
                Wire::Bytes => drop(self.bytes(wire, "")?),
                Wire::StartGroup => groups += 1,
                Wire::EndGroup => groups = groups.saturating_sub(1),
            }
            if groups == 0 {
                return Ok(());
            }
            if groups > MAX_GROUPS {
                return Err(WireError::TooDeep);
            }
            let tag = self.varint()?;
            wire = Wire::parse(tag).ok_or_else(|| malformed("proto: illegal wireType"))?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_are_read_and_bounded() {
        let cases: [(&[u8], Result<u64, &str>); 6] = [
            (&[0x00], Ok(0)),
            (&[0xac, 0x02], Ok(300)),
            (
                &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
                Ok(u64::MAX),
            ),
            (&[0x80; 11], Err("proto: integer overflow")),
            (&[0x80], Err("unexpected EOF")),
            (&[], Err("unexpected EOF")),
        ];
        for (bytes, want) in cases {
            let got = Reader::new(bytes).varint().map_err(|e| e.to_string());
            assert_eq!(got, want.map_err(str::to_owned), "{bytes:?}");
        }
    }

    #[test]
    fn unknown_fields_are_passed_over() {
        // A varint, eight bytes, a string, a group with a group and four bytes in it, then field 1.
        let bytes = [
            0x50, 0x96, 0x01, 0x51, 1, 2, 3, 4, 5, 6, 7, 8, 0x52, 2, 9, 9, 0x53, 0x5b, 0x55, 1, 2, 3, 4,
            0x5c, 0x54, 0x08, 0x07,
        ];
        let mut reader = Reader::new(&bytes);
        let mut seen = None;
        while let Some((number, wire)) = reader.tag().expect("a tag") {
            if number == 1 {
                seen = Some(reader.integer(wire, "x").expect("a number"));
            } else {
                reader.skip(wire).expect("passed over");
            }
        }
        assert_eq!(seen, Some(7));
        let endless = [0x53u8; 200];
        let mut reader = Reader::new(&endless);
        let (_, wire) = reader.tag().expect("a tag").expect("not the end");
        assert_eq!(reader.skip(wire), Err(WireError::TooDeep));
    }
}
