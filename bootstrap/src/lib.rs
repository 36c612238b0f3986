//! Join a running cluster, or be elected its first seed
