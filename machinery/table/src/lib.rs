//! Tables: the columns that kubectl prints, for built-in kinds and CRDs.
