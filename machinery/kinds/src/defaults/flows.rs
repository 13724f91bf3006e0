//! Flow schemas and priority levels.

use crate::access::{Object, make, set, set_nonzero, with};

/// A FlowSchema.
pub(super) fn flow_schema(object: &mut Object) {
    make(object, "spec", |spec| {
        set_nonzero(spec, "matchingPrecedence", 1000);
    });
    make(object, "status", |_| {});
}

/// A PriorityLevelConfiguration.
pub(super) fn priority_level(object: &mut Object) {
    make(object, "status", |_| {});
    with(object, "spec", |spec| {
        with(spec, "exempt", |exempt| {
            set(exempt, "nominalConcurrencyShares", 0);
            set(exempt, "lendablePercent", 0);
        });
        with(spec, "limited", |limited| {
            set(limited, "nominalConcurrencyShares", 30);
            set(limited, "lendablePercent", 0);
            with(limited, "limitResponse", |response| {
                with(response, "queuing", |queuing| {
                    set_nonzero(queuing, "handSize", 8);
                    set_nonzero(queuing, "queues", 64);
                    set_nonzero(queuing, "queueLengthLimit", 50);
                });
            });
        });
    });
}
