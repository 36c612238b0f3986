//! In-memory driver of coord-api: real leases, virtual time, injectable faults
