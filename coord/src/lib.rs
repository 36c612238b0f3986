//! Pick a coordination store by URL: the facade over coord-api and its drivers
