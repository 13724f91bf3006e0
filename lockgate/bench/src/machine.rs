//! What the figures were taken on: without it they say nothing.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;

use crate::error::BenchError;

const PROBES: usize = 100;

/// The machine and the place where the servers keep their data.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Machine {
    pub(crate) cores: usize,
    pub(crate) processor: String,
    pub(crate) load_before: f64,
    pub(crate) load_after: f64,
    pub(crate) file_system: String,
    /// The median time to append 4 KiB and have them on disk, in milliseconds.
    pub(crate) sync_milliseconds: f64,
}

impl Machine {
    pub(crate) fn inspect(scratch: &Path) -> Result<Self, BenchError> {
        Ok(Self {
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            processor: processor(),
            load_before: load_average(),
            load_after: 0.0,
            file_system: file_system(scratch),
            sync_milliseconds: sync_milliseconds(scratch).map_err(BenchError::file(scratch))?,
        })
    }

    /// Nothing is on disk there, whatever a server syncs.
    pub(crate) fn volatile(&self) -> bool {
        matches!(self.file_system.as_str(), "tmpfs" | "ramfs")
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let kept = if self.volatile() {
            " (in memory: syncing costs nothing there)"
        } else {
            ""
        };
        vec![
            format!("machine: {} cores, {}", self.cores, self.processor),
            format!(
                "load average: {:.2} before, {:.2} after",
                self.load_before, self.load_after
            ),
            format!(
                "data on {}{kept}; a synced append of 4 KiB takes {:.2} ms",
                self.file_system, self.sync_milliseconds
            ),
        ]
    }
}

/// The load of the last minute.
pub(crate) fn load_average() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace()
        .next()
        .and_then(|load| load.parse().ok())
        .unwrap_or(0.0)
}

fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text
        .lines()
        .find(|line| line.starts_with("model name"))
        .and_then(|line| line.split_once(": "));
    model.map_or_else(
        || std::env::consts::ARCH.to_owned(),
        |(_, model)| model.to_owned(),
    )
}

fn file_system(path: &Path) -> String {
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    file_system_of(&path, &mounts).unwrap_or_else(|| "an unknown file system".into())
}

/// The type of the deepest mount above a path; of two on one place, the later one.
fn file_system_of(path: &Path, mounts: &str) -> Option<String> {
    mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            Some((PathBuf::from(fields.next()?), fields.next()?))
        })
        .filter(|(place, _)| path.starts_with(place))
        .max_by_key(|(place, _)| place.components().count())
        .map(|(_, kind)| kind.to_owned())
}

fn sync_milliseconds(directory: &Path) -> std::io::Result<f64> {
    let mut file = tempfile::tempfile_in(directory)?;
    let mut times = Vec::with_capacity(PROBES);
    for _ in 0..PROBES {
        let begun = Instant::now();
        file.write_all(&[7; 4096])?;
        file.sync_data()?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_unstable_by(f64::total_cmp);
    Ok(times[PROBES / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_mount_counts() {
        let mounts = "/dev/vda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/vdb /tmp/disk xfs rw 0 0\n";
        for (path, expected) in [
            ("/var/tmp", "ext4"),
            ("/tmp/a", "tmpfs"),
            ("/tmp/disk/a", "xfs"),
            ("/tmpx", "ext4"),
        ] {
            assert_eq!(
                file_system_of(Path::new(path), mounts).as_deref(),
                Some(expected),
                "{path}"
            );
        }
    }

    #[test]
    fn a_sync_takes_time() {
        let directory = tempfile::tempdir().unwrap();
        assert!(sync_milliseconds(directory.path()).unwrap() > 0.0);
    }
}
