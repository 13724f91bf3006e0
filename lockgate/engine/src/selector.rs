//! Selectors: which templates a policy is about, which clusters a placement names.
