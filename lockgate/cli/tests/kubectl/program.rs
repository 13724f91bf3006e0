//! Finds the programs that the sessions need, and says loudly when there are none.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The oldest kubectl whose output the transcripts hold.
const OLDEST_MINOR: u32 = 32;

/// What `clients/get` exits with when something cannot be obtained here.
const UNAVAILABLE: i32 = 77;

/// Writes past the capture of test output: a test that compared nothing must be seen to have done so.
pub(crate) fn say(what: &str) {
    let _ = writeln!(std::io::stderr(), "kubectl sessions: {what}");
}

/// The kubectl to use: the named one, else the one on the path, else the one that `real/get` has obtained.
pub(crate) fn kubectl() -> Option<PathBuf> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let found = match std::env::var_os("LOCKGATE_KUBECTL") {
            Some(named) => std::path::absolute(named).ok(),
            None => on_path().into_iter().chain(in_cache()).find(|kubectl| minor(kubectl) >= Some(OLDEST_MINOR)),
        };
        if found.is_none() {
            say(&format!("NOTHING WAS COMPARED: there is no kubectl of at least 1.{OLDEST_MINOR} (real/get obtains one)"));
        }
        found
    });
    found.clone()
}

/// Helm 3 or 4 (`helm`, `helm4`), built from its module; obtaining it takes minutes the first time.
#[allow(dead_code, reason = "not every test program needs it")]
pub(crate) fn helm(which: &str) -> Option<PathBuf> {
    let get = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machinery/kubetest/clients/get");
    let output = Command::new(get)
        .arg(which)
        .output()
        .expect("clients/get can be run");
    let words = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        return Some(String::from_utf8_lossy(&output.stdout).trim().into());
    }
    assert_eq!(
        output.status.code(),
        Some(UNAVAILABLE),
        "clients/get {which}: {words}"
    );
    say(&format!("NOTHING WAS COMPARED with {which}: {}", words.trim()));
    None
}

fn on_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|directory| directory.join("kubectl"))
        .filter(|file| file.is_file())
        .collect()
}

/// The same places as those of `real/lib.sh`: `kubectl-VERSION/kubectl` in its cache, the newest first.
fn in_cache() -> Vec<PathBuf> {
    let cache = std::env::var_os("LOCKGATE_REAL_CACHE")
        .map(PathBuf::from)
        .or_else(|| {
            let home = std::env::var_os("HOME")?;
            Some(Path::new(&home).join(".cache/lockgate/real"))
        });
    let entries = cache
        .and_then(|cache| std::fs::read_dir(cache).ok())
        .into_iter()
        .flatten()
        .flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("kubectl-"))
        .map(|entry| entry.path().join("kubectl"))
        .filter(|file| file.is_file())
        .collect();
    found.sort_by_key(|kubectl| std::cmp::Reverse(minor(kubectl)));
    found
}

fn minor(kubectl: &Path) -> Option<u32> {
    let output = Command::new(kubectl)
        .args(["version", "--client", "-o", "json"])
        .output()
        .ok()?;
    let version: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    version["clientVersion"]["minor"]
        .as_str()?
        .trim_end_matches('+')
        .parse()
        .ok()
}

/// An empty directory for one session.
#[allow(dead_code, reason = "not every test program needs it")]
pub(crate) fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("a directory can be made where cargo says");
    path
}
