# What a developer types. `make` alone says what there is.
#
# One set of flags and one profile for everything that is run here: what `make demo` built, `make test` does not build again.
CARGO_FLAGS = --features sandbox

# Handed to the demo or to the comparison: make demo ARGS=--once
ARGS =

# How often `make soak` kills the gateway.
COUNT = 100

.PHONY: help demo test test-systems soak faults flood check dist bench bench-parts clean needs-build needs-bench needs-tests needs-systems

help: ## Say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

demo: needs-build ## Build, start the gateway before a stand-in core, and call it (ARGS=--once: and stop)
	cargo build $(CARGO_FLAGS) --bins
	@exec "$${CARGO_TARGET_DIR:-target}/debug/portvakt-sandbox" demo --config config/gateway.yaml --certs certs $(ARGS)

test: needs-tests ## Run every test: units, integration, the examples in the documentation
	cargo test $(CARGO_FLAGS)

test-systems: needs-systems ## Run the tests that need other programs or more than seconds (Go, Jackson, Gson, Node)
	cargo test $(CARGO_FLAGS) --test it -- --ignored systems::

soak: needs-tests ## Kill the gateway under load and start it again, over and over (COUNT=1000: so often)
	PORTVAKT_SOAK=$(COUNT) cargo test $(CARGO_FLAGS) --test it -- --exact soak::killed_under_load_it_keeps_what_it_promised --nocapture

faults: needs-tests ## Measure what known TPPs feel while the responders of others fail
	cargo test $(CARGO_FLAGS) --test it -- --ignored --exact certificate::faults::known_tpps_do_not_feel_the_responders_of_others --nocapture

flood: needs-tests ## Send 100 000 unsigned requests of every kind and measure what they cost in CPU and memory
	cargo test $(CARGO_FLAGS) --test it -- --ignored --exact flood::a_hundred_thousand_strangers --nocapture

check: needs-build ## Judge without running: format, lints, documentation, dependencies
	cargo fmt --check
	cargo clippy --features bench --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc $(CARGO_FLAGS) --no-deps
	.ci/deny.sh || [ $$? -eq 75 ]

dist: needs-bench ## Build what is deployed: measured under a load first, and optimised for that
	@.ci/dist.sh --train

bench: needs-bench ## Compare with nginx, haproxy and scripts on this machine (ARGS="get refused --rounds 5": two of the loads)
	@programs=$$(.ci/dist.sh) && "$$programs/portvakt-bench" $(ARGS)

bench-parts: needs-build ## Measure what the parts cost: admission, payloads, state, trust, memory
	cargo bench $(CARGO_FLAGS) --bench admit --bench payload --bench state --bench trust --bench memory

clean: ## Remove what was built (certs/ stays: `portvakt-sandbox pki --force` makes it anew)
	cargo clean

needs-build: ## Make sure of what the build needs beside Rust, installing it where that is allowed
	@.ci/needs.sh

needs-bench: ## The same for the comparison, which does without what can't be had
	@.ci/needs.sh bench

needs-tests: ## The same for the tests, which do without what can't be had
	@.ci/needs.sh tests

needs-systems: ## The same for test-systems, which fails without them
	@.ci/needs.sh systems
