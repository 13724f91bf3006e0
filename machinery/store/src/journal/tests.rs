//! Durable stores: on a disk that breaks, on one that takes its time, and in files.

mod crash;
mod disk;
mod files;
mod flow;

use super::Journal;
use super::problem::Problem;
use crate::testing::Text;
use crate::{Options, Store};

fn open_disk(disk: &disk::Disk) -> Result<Store<Text>, Problem> {
    let (journal, loaded) = Journal::open_backend(disk.clone(), 1 << 20)?;
    Ok(Store::with_journal(journal, loaded, &Options::default())?)
}
