//! The public conformance suite: what every driver of coord-api owes
