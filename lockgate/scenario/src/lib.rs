//! Scenarios: readable files of steps and expectations, run on embedded servers in this process and on real ones.

mod file;
mod matching;
mod path;
mod reference;
mod yaml;

pub use file::*;
pub use matching::Memory;
pub use path::Path;
pub use reference::Reference;
