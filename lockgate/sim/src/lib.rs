//! Member clusters that behave: workloads become ready, or fail.
