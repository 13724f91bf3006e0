//! The station as a whole: sequences of steps on a small model of the hub, each followed by a restart.

mod evidence;
mod holder;
mod lazy;
mod member;
mod preemption;
mod properties;
mod statics;
mod suspension;
mod switch;
mod world;
