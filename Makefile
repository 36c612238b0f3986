# Two commands do everything: `make demo` and `make test`. The rest is for those who work on coord itself.
.PHONY: demo test faults verify fix bench audit setup
.DEFAULT_GOAL := help

help:
	@echo "make demo    see it work"
	@echo "make test    everything CI checks: format, lints, docs, unit, conformance, fault and doc tests"
	@echo "make faults  real three-node clusters under load and faults, about an hour (FLAGS=\"--schedules 2\" for less)"
	@echo "make verify  the read-only checks alone (format, lints, docs)"
	@echo "make fix     format and apply the lints' suggestions"
	@echo "make bench   benchmarks, as ratios"
	@echo "make audit   licences, advisories and duplicate versions of the dependencies"

setup:
	@scripts/setup.sh

demo: setup
	cargo run --quiet -p coord-cli -- demo

test: setup
	@scripts/test.sh

faults: setup
	cargo run --quiet -p coord-faults --locked -- run $(FLAGS)

verify: setup
	@scripts/verify.sh

fix: setup
	cargo fmt --all
	cargo clippy --workspace --all-targets --fix --allow-dirty --allow-staged -- -D warnings

bench: setup
	cargo bench --workspace

audit:
	@scripts/audit.sh
