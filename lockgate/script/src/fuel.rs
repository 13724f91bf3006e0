//! Steps: what makes every call end.

use std::cell::Cell;
use std::rc::Rc;

use mlua::{HookTriggers, Lua, VmState};

/// How many instructions are counted at once.
const STRIDE: u32 = 1000;

/// What is left of a call's steps.
pub(crate) struct Fuel {
    left: Cell<u64>,
}

impl Fuel {
    pub(crate) fn new(steps: u64) -> Self {
        Self {
            left: Cell::new(steps),
        }
    }

    /// Takes some steps; whether they were there.
    pub(crate) fn take(&self, steps: u64) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(steps));
        left > steps
    }

    /// Whether nothing is left.
    pub(crate) fn is_out(&self) -> bool {
        self.left.get() == 0
    }

    /// The error that ends a call which has nothing left.
    pub(crate) fn error(&self) -> mlua::Error {
        mlua::Error::RuntimeError("too many steps".to_owned())
    }
}

/// Has every instruction of the machine counted.
pub(crate) fn watch(lua: &Lua, fuel: &Rc<Fuel>) -> mlua::Result<()> {
    let fuel = fuel.clone();
    let triggers = HookTriggers::new().every_nth_instruction(STRIDE);
    lua.set_hook(triggers, move |_, _| match fuel.take(u64::from(STRIDE)) {
        true => Ok(VmState::Continue),
        false => Err(fuel.error()),
    })
}
