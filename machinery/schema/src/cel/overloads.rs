//! The functions of the server's dialect with their types.
//!
//! A line is a signature; the first argument of one that starts with a dot is what it is called on. What is not listed
//! here the server does not have, and nobody may use, whether or not the engine does.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::types::CelType;

const SIGNATURES: &str = "
_&&_(bool, bool) bool
_||_(bool, bool) bool
!_(bool) bool
@not_strictly_false(bool) bool
_?_:_(bool, A, A) A
_==_(A, A) bool
_!=_(A, A) bool
-_(int) int
-_(double) double
_+_(int, int) int
_+_(uint, uint) uint
_+_(double, double) double
_+_(string, string) string
_+_(bytes, bytes) bytes
_+_(list(A), list(A)) list(A)
_+_(timestamp, duration) timestamp
_+_(duration, timestamp) timestamp
_+_(duration, duration) duration
_-_(int, int) int
_-_(uint, uint) uint
_-_(double, double) double
_-_(timestamp, timestamp) duration
_-_(timestamp, duration) timestamp
_-_(duration, duration) duration
_*_(int, int) int
_*_(uint, uint) uint
_*_(double, double) double
_/_(int, int) int
_/_(uint, uint) uint
_/_(double, double) double
_%_(int, int) int
_%_(uint, uint) uint
@in(A, list(A)) bool
@in(A, map(A, B)) bool
_[_](list(A), int) A
_[_](map(A, B), A) B
_[_](optional(list(A)), int) optional(A)
_[_](optional(map(A, B)), A) optional(B)
_[?_](list(A), int) optional(A)
_[?_](optional(list(A)), int) optional(A)
_[?_](map(A, B), A) optional(B)
_[?_](optional(map(A, B)), A) optional(B)
size(string) int
size(bytes) int
size(list(A)) int
size(map(A, B)) int
.size(string) int
.size(bytes) int
.size(list(A)) int
.size(map(A, B)) int
.contains(string, string) bool
.startsWith(string, string) bool
.endsWith(string, string) bool
.matches(string, string) bool
matches(string, string) bool
int(int) int
int(uint) int
int(double) int
int(string) int
int(timestamp) int
int(duration) int
uint(uint) uint
uint(int) uint
uint(double) uint
uint(string) uint
double(double) double
double(int) double
double(uint) double
double(string) double
string(string) string
string(bool) string
string(bytes) string
string(double) string
string(duration) string
string(int) string
string(timestamp) string
string(uint) string
string(net.IP) string
string(net.CIDR) string
bytes(bytes) bytes
bytes(string) bytes
bool(bool) bool
bool(string) bool
timestamp(timestamp) timestamp
timestamp(string) timestamp
timestamp(int) timestamp
duration(duration) duration
duration(string) duration
duration(int) duration
dyn(A) dyn
type(A) type(A)
.getFullYear(timestamp) int
.getFullYear(timestamp, string) int
.getMonth(timestamp) int
.getMonth(timestamp, string) int
.getDate(timestamp) int
.getDate(timestamp, string) int
.getDayOfMonth(timestamp) int
.getDayOfMonth(timestamp, string) int
.getDayOfWeek(timestamp) int
.getDayOfWeek(timestamp, string) int
.getDayOfYear(timestamp) int
.getDayOfYear(timestamp, string) int
.getHours(timestamp) int
.getHours(timestamp, string) int
.getHours(duration) int
.getMinutes(timestamp) int
.getMinutes(timestamp, string) int
.getMinutes(duration) int
.getSeconds(timestamp) int
.getSeconds(timestamp, string) int
.getSeconds(duration) int
.getMilliseconds(timestamp) int
.getMilliseconds(timestamp, string) int
.getMilliseconds(duration) int
.charAt(string, int) string
.indexOf(string, string) int
.indexOf(string, string, int) int
.indexOf(list(A), A) int
.lastIndexOf(string, string) int
.lastIndexOf(string, string, int) int
.lastIndexOf(list(A), A) int
.lowerAscii(string) string
.upperAscii(string) string
.trim(string) string
.replace(string, string, string) string
.replace(string, string, string, int) string
.split(string, string) list(string)
.split(string, string, int) list(string)
.substring(string, int) string
.substring(string, int, int) string
.join(list(string)) string
.join(list(string), string) string
.format(string, list(dyn)) string
strings.quote(string) string
.isSorted(list(A)) bool
.sum(list(int)) int
.sum(list(uint)) uint
.sum(list(double)) double
.sum(list(duration)) duration
.min(list(A)) A
.max(list(A)) A
.first(list(A)) optional(A)
.last(list(A)) optional(A)
.distinct(list(A)) list(A)
.reverse(list(A)) list(A)
.sort(list(A)) list(A)
.slice(list(A), int, int) list(A)
.flatten(list(A)) list(dyn)
.flatten(list(A), int) list(dyn)
lists.range(int) list(int)
.find(string, string) string
.findAll(string, string) list(string)
.findAll(string, string, int) list(string)
url(string) kubernetes.URL
isURL(string) bool
.getScheme(kubernetes.URL) string
.getHost(kubernetes.URL) string
.getHostname(kubernetes.URL) string
.getPort(kubernetes.URL) string
.getEscapedPath(kubernetes.URL) string
.getQuery(kubernetes.URL) map(string, list(string))
quantity(string) kubernetes.Quantity
isQuantity(string) bool
semver(string) kubernetes.Semver
semver(string, bool) kubernetes.Semver
isSemver(string) bool
isSemver(string, bool) bool
.sign(kubernetes.Quantity) int
.isInteger(kubernetes.Quantity) bool
.asInteger(kubernetes.Quantity) int
.asApproximateFloat(kubernetes.Quantity) double
.add(kubernetes.Quantity, kubernetes.Quantity) kubernetes.Quantity
.add(kubernetes.Quantity, int) kubernetes.Quantity
.sub(kubernetes.Quantity, kubernetes.Quantity) kubernetes.Quantity
.sub(kubernetes.Quantity, int) kubernetes.Quantity
.isGreaterThan(kubernetes.Quantity, kubernetes.Quantity) bool
.isGreaterThan(kubernetes.Semver, kubernetes.Semver) bool
.isLessThan(kubernetes.Quantity, kubernetes.Quantity) bool
.isLessThan(kubernetes.Semver, kubernetes.Semver) bool
.compareTo(kubernetes.Quantity, kubernetes.Quantity) int
.compareTo(kubernetes.Semver, kubernetes.Semver) int
.major(kubernetes.Semver) int
.minor(kubernetes.Semver) int
.patch(kubernetes.Semver) int
ip(string) net.IP
isIP(string) bool
ip.isCanonical(string) bool
.family(net.IP) int
.isUnspecified(net.IP) bool
.isLoopback(net.IP) bool
.isLinkLocalMulticast(net.IP) bool
.isLinkLocalUnicast(net.IP) bool
.isGlobalUnicast(net.IP) bool
cidr(string) net.CIDR
isCIDR(string) bool
.containsIP(net.CIDR, string) bool
.containsIP(net.CIDR, net.IP) bool
.containsCIDR(net.CIDR, string) bool
.containsCIDR(net.CIDR, net.CIDR) bool
.ip(net.CIDR) net.IP
.prefixLength(net.CIDR) int
.masked(net.CIDR) net.CIDR
.validate(kubernetes.NamedFormat, string) optional(list(string))
format.named(string) optional(kubernetes.NamedFormat)
sets.contains(list(A), list(A)) bool
sets.equivalent(list(A), list(A)) bool
sets.intersects(list(A), list(A)) bool
optional.none() optional(A)
optional.of(A) optional(A)
optional.ofNonZeroValue(A) optional(A)
.hasValue(optional(A)) bool
.value(optional(A)) A
.or(optional(A), optional(A)) optional(A)
.orValue(optional(A), A) A
.path(kubernetes.authorization.Authorizer, string) kubernetes.authorization.PathCheck
.group(kubernetes.authorization.Authorizer, string) kubernetes.authorization.GroupCheck
.serviceAccount(kubernetes.authorization.Authorizer, string, string) kubernetes.authorization.Authorizer
.resource(kubernetes.authorization.GroupCheck, string) kubernetes.authorization.ResourceCheck
.subresource(kubernetes.authorization.ResourceCheck, string) kubernetes.authorization.ResourceCheck
.namespace(kubernetes.authorization.ResourceCheck, string) kubernetes.authorization.ResourceCheck
.name(kubernetes.authorization.ResourceCheck, string) kubernetes.authorization.ResourceCheck
.fieldSelector(kubernetes.authorization.ResourceCheck, string) kubernetes.authorization.ResourceCheck
.labelSelector(kubernetes.authorization.ResourceCheck, string) kubernetes.authorization.ResourceCheck
.check(kubernetes.authorization.PathCheck, string) kubernetes.authorization.Decision
.check(kubernetes.authorization.ResourceCheck, string) kubernetes.authorization.Decision
.allowed(kubernetes.authorization.Decision) bool
.errored(kubernetes.authorization.Decision) bool
.error(kubernetes.authorization.Decision) string
.reason(kubernetes.authorization.Decision) string
";

/// What can be put in an order, and with what.
const ORDERED: [&str; 14] = [
    "bool, bool",
    "int, int",
    "uint, uint",
    "double, double",
    "int, uint",
    "int, double",
    "uint, int",
    "uint, double",
    "double, int",
    "double, uint",
    "string, string",
    "bytes, bytes",
    "timestamp, timestamp",
    "duration, duration",
];

/// One signature of a function.
#[derive(Debug)]
pub(super) struct Overload {
    pub(super) member: bool,
    pub(super) params: Vec<CelType<'static>>,
    pub(super) result: CelType<'static>,
}

/// The signatures of a function; none if it is not listed.
pub(super) fn of(name: &str) -> Option<&'static [Overload]> {
    static TABLE: OnceLock<HashMap<&'static str, Vec<Overload>>> = OnceLock::new();
    TABLE.get_or_init(table).get(name).map(Vec::as_slice)
}

fn table() -> HashMap<&'static str, Vec<Overload>> {
    let mut table: HashMap<&'static str, Vec<Overload>> = HashMap::new();
    for line in SIGNATURES.lines().filter(|line| !line.is_empty()) {
        if let Some((name, overload)) = signature(line) {
            table.entry(name).or_default().push(overload);
        }
    }
    for name in ["_<_", "_<=_", "_>_", "_>=_"] {
        let orders = ORDERED.iter().map(|params| Overload {
            member: false,
            params: types(params),
            result: CelType::Bool,
        });
        table.entry(name).or_default().extend(orders);
    }
    table
}

fn signature(line: &'static str) -> Option<(&'static str, Overload)> {
    let (member, line) = match line.strip_prefix('.') {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let (name, rest) = line.split_once('(')?;
    let mut depth = 1_usize;
    let (close, _) = rest.char_indices().find(|(_, c)| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth == 0
    })?;
    let (params, result) = (&rest[..close], rest[close + 1..].trim());
    Some((
        name,
        Overload {
            member,
            params: types(params),
            result: ty(result)?,
        },
    ))
}

/// Types, separated by commas that are in no parentheses.
fn types(text: &'static str) -> Vec<CelType<'static>> {
    let mut depth = 0_usize;
    let parts = text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.filter_map(|part| ty(part.trim())).collect()
}

fn ty(text: &'static str) -> Option<CelType<'static>> {
    if let Some((outer, inner)) = text.split_once('(') {
        let mut inner = types(inner.strip_suffix(')')?).into_iter().map(Box::new);
        return Some(match outer {
            "list" => CelType::List(inner.next()?),
            "optional" => CelType::Optional(inner.next()?),
            "type" => CelType::Type(inner.next()?),
            "map" => CelType::Map(inner.next()?, inner.next()?),
            _ => return None,
        });
    }
    Some(match text {
        "" => return None,
        "A" => CelType::Param(b'A'),
        "B" => CelType::Param(b'B'),
        "dyn" => CelType::Dyn,
        "bool" => CelType::Bool,
        "int" => CelType::Int,
        "uint" => CelType::Uint,
        "double" => CelType::Double,
        "string" => CelType::Text,
        "bytes" => CelType::Bytes,
        "timestamp" => CelType::Timestamp,
        "duration" => CelType::Duration,
        name => CelType::Named(name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_signature() {
        let lines = SIGNATURES.lines().filter(|line| !line.is_empty());
        for line in lines {
            let (name, overload) = signature(line).unwrap_or_else(|| panic!("{line}"));
            let params: Vec<String> = overload.params.iter().map(shown).collect();
            let dot = if overload.member { "." } else { "" };
            let written = format!("{dot}{name}({}) {}", params.join(", "), shown(&overload.result));
            assert_eq!(written, line);
        }
    }

    fn shown(ty: &CelType<'_>) -> String {
        match ty {
            CelType::Param(letter) => char::from(*letter).to_string(),
            CelType::List(item) => format!("list({})", shown(item)),
            CelType::Optional(value) => format!("optional({})", shown(value)),
            CelType::Type(of) => format!("type({})", shown(of)),
            CelType::Map(key, value) => format!("map({}, {})", shown(key), shown(value)),
            other => other.name(),
        }
    }
}
