//! Hunts in processes of their own, so that an input that ends the process, or never ends, is still told.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Target, hunt};

/// No input takes this long on the slowest machine, with all targets at once or beside everything else.
const PATIENCE: Duration = Duration::from_secs(120);
/// Worth a look, though a busy machine may be the reason.
const SLOW: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(100);

/// What came of a watched hunt.
#[derive(Debug)]
pub struct Watched {
    /// The target's name.
    pub target: &'static str,
    /// What the hunt printed.
    pub said: String,
    /// Whether nothing was found.
    pub clean: bool,
}

/// Where a hunt writes the input that it is about to read: its number, its length, itself.
struct Trace(File);

impl Trace {
    fn open(path: &Path) -> io::Result<Self> {
        File::create(path).map(Self)
    }

    /// A trace that cannot be written is not worth ending a hunt for.
    fn write(&self, number: u64, input: &[u8]) {
        let mut record = number.to_le_bytes().to_vec();
        record.extend((input.len() as u64).to_le_bytes());
        record.extend(input);
        self.0.write_all_at(&record, 0).ok();
    }

    fn read(path: &Path) -> Option<(u64, Vec<u8>)> {
        let record = fs::read(path).ok()?;
        let number = |at: usize| Some(u64::from_le_bytes(record.get(at..at + 8)?.try_into().ok()?));
        let length = number(8)? as usize;
        Some((number(0)?, record.get(16..16 + length)?.to_vec()))
    }
}

struct Running {
    target: &'static str,
    child: Child,
    trace: PathBuf,
    seen: u64,
    since: Instant,
    hung: bool,
}

/// Runs this program once for each target, so many at a time, with the arguments that `arguments` makes of the target and
/// the file for its trace. Inputs that end a process, or that it does not come to an end with, are written to `found`.
pub fn watch(
    targets: &[Target],
    at_once: usize,
    found: &Path,
    arguments: impl Fn(&Target, &Path) -> Vec<String>,
) -> io::Result<Vec<Watched>> {
    let program = std::env::current_exe()?;
    let traces = tempfile::tempdir()?;
    let start = |target: &Target| -> io::Result<Running> {
        let trace = traces.path().join(target.name);
        let child = Command::new(&program)
            .args(arguments(target, &trace))
            .stdout(File::create(trace.with_extension("out"))?)
            .stderr(Stdio::inherit())
            .spawn()?;
        Ok(Running {
            target: target.name,
            child,
            trace,
            seen: 0,
            since: Instant::now(),
            hung: false,
        })
    };
    let mut waiting = targets.iter();
    let (mut running, mut done) = (Vec::new(), Vec::new());
    loop {
        for target in waiting.by_ref().take(at_once.max(1) - running.len()) {
            running.push(start(target)?);
        }
        if running.is_empty() {
            return Ok(done);
        }
        std::thread::sleep(PAUSE);
        let mut still = Vec::new();
        for mut hunt in running {
            match hunt.child.try_wait()? {
                Some(status) => done.push(ended(&hunt, status.code(), found)?),
                None => {
                    look_after(&mut hunt)?;
                    still.push(hunt);
                }
            }
        }
        running = still;
    }
}

/// Ends a hunt that has been reading one input for too long.
fn look_after(hunt: &mut Running) -> io::Result<()> {
    let number = Trace::read(&hunt.trace).map_or(0, |(number, _)| number);
    if number != hunt.seen {
        hunt.seen = number;
        hunt.since = Instant::now();
    } else if number > 0 && hunt.since.elapsed() > PATIENCE {
        hunt.hung = true;
        hunt.child.kill()?;
    }
    Ok(())
}

fn ended(hunt: &Running, code: Option<i32>, found: &Path) -> io::Result<Watched> {
    let mut said = fs::read_to_string(hunt.trace.with_extension("out"))?;
    // 1 is a finding that the hunt itself has told and kept.
    if !matches!(code, Some(0 | 1)) {
        let (number, input) = Trace::read(&hunt.trace).unwrap_or_default();
        let file = keep(found, hunt.target, &input)?;
        let how = if hunt.hung {
            "did not come to an end with it"
        } else {
            "the process ended"
        };
        said.push_str(&format!(
            "{}: input {number}: {how}\n  kept as {}\n",
            hunt.target,
            file.display()
        ));
    }
    Ok(Watched {
        target: hunt.target,
        said,
        clean: code == Some(0),
    })
}

/// Writes an input to the folder of its target, named by its content.
fn keep(found: &Path, target: &str, input: &[u8]) -> io::Result<PathBuf> {
    let folder = found.join(target);
    fs::create_dir_all(&folder)?;
    let name = input.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    let file = folder.join(format!("{name:016x}"));
    fs::write(&file, input)?;
    Ok(file)
}

/// Hunts for as long as `time` says, and tells what came of it; whether nothing was found.
pub fn hunt_for(
    target: &Target,
    seed: u64,
    time: Duration,
    trace: Option<&Path>,
    found: &Path,
) -> io::Result<(String, bool)> {
    let trace = trace.map(Trace::open).transpose()?;
    let began = Instant::now();
    let mut number = 0;
    let done = hunt(
        target,
        seed,
        |_| began.elapsed() >= time,
        |input| {
            number += 1;
            if let Some(trace) = &trace {
                trace.write(number, input);
            }
        },
    );
    let mut said = format!(
        "{}: {} inputs went {} ways, the slowest took {} ms\n",
        target.name,
        done.inputs,
        done.ways,
        done.slowest.0.as_millis()
    );
    if done.slowest.0 > SLOW {
        let text = String::from_utf8_lossy(&done.slowest.1);
        said.push_str(&format!("  which is slow: {text:?}\n"));
    }
    if let Some(finding) = &done.finding {
        let file = keep(found, target.name, &finding.input)?;
        said.push_str(&format!("  {}\n  kept as {}\n", finding.what, file.display()));
    }
    Ok((said, done.finding.is_none()))
}
