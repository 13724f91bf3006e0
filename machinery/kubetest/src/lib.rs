//! Nothing but tests: kube-rs as a client of the API server, in process and over TLS; and clients of other languages, whose
//! programs are in `clients/`.
