use std::sync::mpsc;

use super::*;

/// Nothing here takes this long on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A disk that takes so many bytes, tells of what it took, and waits for a word before each write.
struct Disk {
    takes: usize,
    begin: Option<mpsc::Receiver<()>>,
    taken: Arc<Mutex<Vec<u8>>>,
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(begin) = &self.begin {
            begin.recv().ok();
        }
        let count = bytes.len().min(self.takes);
        if count == 0 {
            // There is room again for whoever comes next.
            self.takes = usize::MAX;
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        self.takes -= count;
        self.taken.lock().extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn disk(takes: usize) -> (Disk, Arc<Mutex<Vec<u8>>>) {
    let taken = Arc::default();
    let disk = Disk {
        takes,
        begin: None,
        taken: Arc::clone(&taken),
    };
    (disk, taken)
}

fn text(taken: &Mutex<Vec<u8>>) -> String {
    String::from_utf8(taken.lock().clone()).unwrap()
}

#[test]
fn lines_are_written_in_order_and_the_last_ones_before_the_end() {
    let (disk, taken) = disk(usize::MAX);
    let log = AuditLog::to(disk).unwrap();
    for number in 0..1000 {
        log.write(format!("{number}\n").as_bytes());
    }
    assert!(log.flush_within(PATIENCE));
    let expected: String = (0..1000).map(|number| format!("{number}\n")).collect();
    assert_eq!(text(&taken), expected);
    assert_eq!(log.lost(), 0);
}

#[test]
fn a_full_disk_loses_lines_and_nothing_else() {
    let (disk, taken) = disk(6);
    let log = AuditLog::to(disk).unwrap();
    log.write(b"one\n");
    assert!(log.flush_within(PATIENCE));
    // Half of it fits.
    log.write(b"two\n");
    assert!(log.flush_within(PATIENCE));
    assert_eq!(log.lost(), 1);
    log.write(b"three\n");
    assert!(log.flush_within(PATIENCE));
    assert_eq!(text(&taken), "one\ntw\nthree\n");
    assert_eq!(log.lost(), 1);
}

#[test]
fn a_slow_disk_makes_nobody_wait() {
    let (mut disk, taken) = disk(usize::MAX);
    let (go, begin) = mpsc::channel();
    disk.begin = Some(begin);
    let log = AuditLog::with(disk, false, 10).unwrap();
    // The disk has the first line, or will have it with those that follow; of these at most ten bytes wait.
    for number in 0..20 {
        log.write(format!("{number:04}\n").as_bytes());
    }
    let lost = log.lost();
    assert!((16..=18).contains(&lost), "{lost}");
    assert!(!log.flush_within(Duration::ZERO));
    drop(go);
    assert!(log.flush_within(PATIENCE));
    assert_eq!(text(&taken).lines().count() as u64, 20 - lost);
    assert_eq!(log.lost(), lost);
}

#[test]
fn a_file_is_appended_to_and_nobody_else_reads_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hub.log");
    for expected in ["a\n", "a\na\n"] {
        let log = AuditLog::append(&path).unwrap();
        log.write(b"a\n");
        assert!(log.flush_within(PATIENCE));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
    }
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    // A process was killed in the middle of a line.
    std::fs::write(&path, "a\nhal").unwrap();
    let log = AuditLog::append(&path).unwrap();
    log.write(b"b\n");
    assert!(log.flush_within(PATIENCE));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\nhal\nb\n");
    assert!(AuditLog::append(&folder.path().join("none/hub.log")).is_err());
}
