#!/usr/bin/env bash
# Licences, advisories and duplicate versions. Apart from `make test` because building cargo-deny takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo deny --version >/dev/null 2>&1 || cargo install cargo-deny --locked
cargo deny check
