//! Single scenes in virtual time.
