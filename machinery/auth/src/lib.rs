//! Who is asking, and may they: certificates, tokens, RBAC.
