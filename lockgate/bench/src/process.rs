//! What the kernel says about a process: its memory and the CPU time it took.

use std::path::Path;

use serde::Serialize;

use crate::error::BenchError;

/// `/proc` counts CPU time in these, on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// A process that is measured.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) name: String,
    pub(crate) pid: u32,
}

/// Resident memory in megabytes of a million bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Memory {
    pub(crate) resident: f64,
    /// The most it ever was.
    pub(crate) peak: f64,
}

impl std::ops::Add for Memory {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            resident: self.resident + other.resident,
            peak: self.peak + other.peak,
        }
    }
}

impl Process {
    pub(crate) fn this() -> Self {
        Self {
            name: "lockgate".into(),
            pid: std::process::id(),
        }
    }

    pub(crate) fn memory(&self) -> Result<Memory, BenchError> {
        parse_memory(&self.read("status")?).ok_or_else(|| self.unreadable("status"))
    }

    /// User and system time so far, in seconds.
    pub(crate) fn cpu_seconds(&self) -> Result<f64, BenchError> {
        parse_cpu(&self.read("stat")?).ok_or_else(|| self.unreadable("stat"))
    }

    fn read(&self, file: &str) -> Result<String, BenchError> {
        let path = Path::new("/proc").join(self.pid.to_string()).join(file);
        std::fs::read_to_string(&path).map_err(|e| {
            BenchError::server(
                &self.name,
                format!("process {} cannot be read ({e}): has it ended?", self.pid),
            )
        })
    }

    fn unreadable(&self, file: &str) -> BenchError {
        BenchError::server(
            &self.name,
            format!("/proc/{}/{file} is not as expected", self.pid),
        )
    }
}

/// The CPU time of several processes together.
pub(crate) fn cpu_seconds(processes: &[Process]) -> Result<f64, BenchError> {
    processes.iter().map(Process::cpu_seconds).sum()
}

fn parse_memory(status: &str) -> Option<Memory> {
    let megabytes = |field: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(field))?;
        let kibibytes: f64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
        Some(kibibytes * 1024.0 / 1e6)
    };
    Some(Memory {
        resident: megabytes("VmRSS:")?,
        peak: megabytes("VmHWM:")?,
    })
}

fn parse_cpu(stat: &str) -> Option<f64> {
    // The name stands in parentheses and may hold anything, even parentheses.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let (user, system): (f64, f64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((user + system) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_understood() {
        let memory = parse_memory("Name:\tx\nVmHWM:\t    2000 kB\nVmRSS:\t    1000 kB\n").unwrap();
        assert_eq!(
            memory,
            Memory {
                resident: 1.024,
                peak: 2.048
            }
        );
        assert_eq!(parse_memory("Name:\tkthread\n"), None);
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 1 0 5 0 0";
        assert_eq!(parse_cpu(stat), Some(3.0));
        assert_eq!(parse_cpu("7 (a"), None);
    }

    #[test]
    fn this_process_can_be_read() {
        let memory = Process::this().memory().unwrap();
        assert!(
            memory.resident > 0.5 && memory.peak >= memory.resident * 0.9,
            "{memory:?}"
        );
        assert!(Process::this().cpu_seconds().unwrap() >= 0.0);
    }
}
