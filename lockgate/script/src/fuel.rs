//! Steps, and as a last bound time: what makes every call end.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use mlua::{HookTriggers, Lua, VmState};

/// How many instructions are counted at once. The time is looked at as often, and one instruction may join texts as long as
/// the memory allows: so they are few.
const STRIDE: u32 = 100;
/// How many bytes are copied or compared for one step.
const BYTES: usize = 64;

/// How often it is asked how long the call took, which is dearer than to look at the clock.
const LOOK: Duration = Duration::from_millis(5);

/// What is left of a call's steps.
pub(crate) struct Fuel {
    left: Cell<u64>,
    until: Duration,
    look: Cell<Instant>,
    late: Cell<bool>,
}

impl Fuel {
    pub(crate) fn new(steps: u64, time: Duration) -> Self {
        Self {
            left: Cell::new(steps),
            until: spent() + time,
            look: Cell::new(Instant::now() + LOOK.min(time)),
            late: Cell::new(false),
        }
    }

    /// Takes some steps; whether they were there.
    pub(crate) fn take(&self, steps: u64) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(steps));
        left > steps
    }

    /// Takes the steps of what goes through so many bytes.
    pub(crate) fn charge(&self, bytes: usize) -> mlua::Result<()> {
        match self.take((bytes / BYTES) as u64 + 1) {
            true => Ok(()),
            false => Err(self.error()),
        }
    }

    /// Whether nothing is left.
    pub(crate) fn is_out(&self) -> bool {
        self.left.get() == 0
    }

    /// Whether nothing is left because it took too long.
    pub(crate) fn is_late(&self) -> bool {
        self.late.get()
    }

    /// The error that ends a call which has nothing left.
    pub(crate) fn error(&self) -> mlua::Error {
        mlua::Error::RuntimeError("too many steps".to_owned())
    }

    /// Operators of the language (joining and comparing texts, reading them as numbers) cost what their operands are long, and
    /// cannot be counted: who does nothing else is ended by the clock.
    fn look_at_the_clock(&self) {
        let now = Instant::now();
        if now < self.look.get() {
            return;
        }
        self.look.set(now + LOOK);
        if spent() > self.until {
            self.late.set(true);
            self.left.set(0);
        }
    }
}

/// How long this thread has worked. A machine that sleeps, or has much else to do, makes no script slow.
#[cfg(unix)]
fn spent() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(spent).unwrap_or_default()
}

/// How long this thread has worked, as far as can be told here.
#[cfg(not(unix))]
fn spent() -> Duration {
    static SINCE: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    SINCE.get_or_init(Instant::now).elapsed()
}

/// Has every instruction of the machine counted.
pub(crate) fn watch(lua: &Lua, fuel: &Rc<Fuel>) -> mlua::Result<()> {
    let fuel = fuel.clone();
    let triggers = HookTriggers::new().every_nth_instruction(STRIDE);
    lua.set_hook(triggers, move |_, _| {
        fuel.look_at_the_clock();
        match fuel.take(u64::from(STRIDE)) {
            true => Ok(VmState::Continue),
            false => Err(fuel.error()),
        }
    })
}
