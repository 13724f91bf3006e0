//! An ordered, versioned, watchable key-value store; durable or in memory.
