//! Runs the commands of a session, each bounded in time, in a directory that nothing else uses.

use std::io::Read as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// The longest that one command may take.
const LIMIT: Duration = Duration::from_secs(60);

/// Where commands run.
pub(crate) struct Shell {
    directory: PathBuf,
    home: PathBuf,
    path: std::ffi::OsString,
    kubeconfig: PathBuf,
}

impl Shell {
    /// A shell with an empty home (kubectl keeps what it discovers there) that finds the given programs first.
    pub(crate) fn new(scratch: &Path, programs: &[PathBuf], kubeconfig: &Path) -> Self {
        let (directory, home, bin) = (scratch.join("work"), scratch.join("home"), scratch.join("bin"));
        for made in [&directory, &home, &bin] {
            std::fs::create_dir_all(made).expect("a directory can be made in the scratch directory");
        }
        for program in programs {
            let name = program.file_name().expect("a program has a name");
            std::os::unix::fs::symlink(program, bin.join(name)).expect("the directory was empty");
        }
        let mut path = bin.into_os_string();
        if let Some(rest) = std::env::var_os("PATH") {
            path.push(":");
            path.push(rest);
        }
        Self {
            directory,
            home,
            path,
            kubeconfig: kubeconfig.to_owned(),
        }
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Runs a command; gives what it wrote to both outputs and its exit code.
    pub(crate) fn run(&self, command: &str) -> (String, i32) {
        let (mut reader, writer) = std::io::pipe().expect("a pipe can be made");
        let errors = writer.try_clone().expect("a pipe can be written from two sides");
        let mut child = Command::new("sh")
            .args(["-c", command])
            .current_dir(&self.directory)
            .env("PATH", &self.path)
            .env("HOME", &self.home)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("TMPDIR", &self.directory)
            .env("SHELL", "/bin/sh")
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .env_remove("KUBECTL_EXTERNAL_DIFF")
            .envs(["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"].map(|name| (name, &self.home)))
            .stdin(Stdio::null())
            .stdout(writer)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .expect("a shell can be run");
        let (done, output) = mpsc::channel();
        std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = reader.read_to_end(&mut text);
            let _ = done.send(text);
        });
        let Ok(output) = output.recv_timeout(LIMIT) else {
            let group = format!("-{}", child.id());
            let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
            let _ = child.wait();
            return (format!("no end within {} s", LIMIT.as_secs()), -1);
        };
        let status = child.wait().expect("a child can be waited for");
        let code = status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        (String::from_utf8_lossy(&output).into_owned(), code)
    }
}
