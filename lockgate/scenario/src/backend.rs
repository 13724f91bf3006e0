//! Where scenarios run: on servers in this process, or on real ones.

mod embedded;
mod janitor;
mod real;

use futures::future::BoxFuture;

use crate::file::Scenario;
use crate::plane::Plane;
use crate::world::World;

pub use embedded::Embedded;
pub(crate) use janitor::Janitor;
pub use real::{Real, RealError};

/// Gives each scenario servers that hold nothing of the one before.
pub trait Backend: Send {
    /// Fresh servers with the definitions installed; nothing runs on them yet.
    fn open<'a>(
        &'a mut self,
        scenario: &'a Scenario,
        plane: &'a dyn Plane,
    ) -> BoxFuture<'a, Result<World, String>>;
    /// Ends what was opened.
    fn close(&mut self, world: World) -> BoxFuture<'_, Result<(), String>>;
}
