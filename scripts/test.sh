#!/usr/bin/env bash
# Everything CI checks, one suite after the other, with the time each took against its budget (two cores, cold build
# not counted in the suites' own budgets).
set -euo pipefail
cd "$(dirname "$0")/.."

summary=()
suite() {
    local name=$1 budget=$2 start=$SECONDS
    shift 2
    echo "=== $name"
    "$@"
    local took=$((SECONDS - start))
    summary+=("$(printf '%-28s %5d s   budget %5d s' "$name" "$took" "$budget")")
}

unit() {
    if cargo nextest --version >/dev/null 2>&1; then
        cargo nextest run --workspace --locked
    else
        # Not --all-targets: that runs the benchmarks, too.
        cargo test --workspace --lib --bins --tests --examples --locked
    fi
}

# Each driver of the facade without the others, and none. The other packages are named only so that their dependencies
# come with the features that they were built with already: none of them may depend on coordkit.
features() {
    local driver packages=()
    for package in coordkit coord-api coord-mem coord-etcd coord-zk coord-conformance coord-harness coord-recipes-tests; do
        packages+=(-p "$package")
    done
    cargo test "${packages[@]}" --no-default-features --test missing_driver --locked
    for driver in memory zookeeper etcd; do
        cargo clippy "${packages[@]}" --all-targets --no-default-features --features "coordkit/$driver" --locked -- -D warnings
    done
}

suite "format, lints, docs" 240 scripts/verify.sh
suite "build" 300 cargo build --workspace --all-targets --locked
suite "tests" 600 unit
suite "features alone" 120 features
suite "doc tests" 60 cargo test --workspace --doc --locked --quiet

echo
printf '%s\n' "${summary[@]}"
