//! Nothing but tests: kube-rs as a client of the API server, in process and over TLS.
