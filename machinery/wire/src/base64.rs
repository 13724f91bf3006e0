//! Standard base64 as Go's decoder reads it: line ends are skipped, padding is required, and an error names the
//! input byte at which Go stops.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Bytes as text.
pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// The text in its one canonical form.
///
/// # Errors
/// With Go's text when it is no base64.
pub(crate) fn canonical(text: &str) -> Result<String, String> {
    let bytes = decode(text.as_bytes()).map_err(|at| format!("illegal base64 data at input byte {at}"))?;
    Ok(encode(&bytes))
}

fn sextet(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

fn skip_line_ends(input: &[u8], mut at: usize) -> usize {
    while matches!(input.get(at), Some(b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// Decodes, or gives the position Go reports.
fn decode(input: &[u8]) -> Result<Vec<u8>, usize> {
    let mut out = Vec::with_capacity(input.len() / 4 * 3);
    let mut at = 0;
    let mut group = [0u8; 4];
    let mut filled = 0;
    loop {
        let Some(&byte) = input.get(at) else {
            // Go counts back from the end by the sextets it has, not by the bytes they took.
            return if filled == 0 { Ok(out) } else { Err(at - filled) };
        };
        at += 1;
        if let Some(bits) = sextet(byte) {
            group[filled] = bits;
            filled += 1;
            if filled == 4 {
                push(&mut out, group, 3);
                filled = 0;
                group = [0; 4];
            }
            continue;
        }
        match (byte, filled) {
            (b'\n' | b'\r', _) => continue,
            (b'=', 2) => {
                at = skip_line_ends(input, at);
                match input.get(at) {
                    None => return Err(input.len()),
                    Some(b'=') => at += 1,
                    Some(_) => return Err(at - 1),
                }
            }
            (b'=', 3) => {}
            _ => return Err(at - 1),
        }
        at = skip_line_ends(input, at);
        if at < input.len() {
            return Err(at);
        }
        push(&mut out, group, filled - 1);
        return Ok(out);
    }
}

fn push(out: &mut Vec<u8>, group: [u8; 4], count: usize) {
    let word = group.iter().fold(0u32, |word, bits| word << 6 | u32::from(*bits));
    out.extend_from_slice(&word.to_be_bytes()[1..=count]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_are_skipped_and_loose_bits_dropped() {
        let cases = [
            ("", Ok("")),
            ("aGVs\r\nbG8=\n", Ok("aGVsbG8=")),
            ("/x==", Ok("/w==")),
            ("a", Err("illegal base64 data at input byte 0")),
            ("aGVs\nb", Err("illegal base64 data at input byte 5")),
            ("====", Err("illegal base64 data at input byte 0")),
            ("ab-d", Err("illegal base64 data at input byte 2")),
        ];
        for (text, want) in cases {
            let want = want.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(canonical(text), want, "{text:?}");
        }
    }
}
