# The developer's commands. `make` without a target lists them.
#
# All targets share one set of flags and one profile, so that `make test` reuses the build of `make demo`.
CARGO_FLAGS = --features sandbox

# Arguments of the demo or of the comparison: make demo ARGS=--once
ARGS =

# The number of kills of `make soak`, or of losses of `make failover`.
COUNT = 100

# The part of the changes of `make mutants`: SHARD=0/4 is the first of every four.
SHARD =

# The minutes of CPU of each target of `make fuzz`.
MINUTES = 20

.PHONY: help demo test bounds exhaust fuzz mutants test-systems test-packages soak failover faults flood check dist docs package bench bench-parts bench-postgres edge clean needs-build needs-package needs-test-packages needs-bench needs-edge needs-tests needs-systems

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

demo: needs-build ## Build, start the gateway with a simulated core, and call it (ARGS=--once: then stop)
	cargo build $(CARGO_FLAGS) --bins
	@exec "$${CARGO_TARGET_DIR:-target}/debug/portvakt-sandbox" demo --config config/gateway.yaml --certs certs $(ARGS)

test: needs-tests ## Run every test: unit tests, integration tests, examples in the documentation
	@.ci/test.sh

bounds: needs-tests ## Run the tests that assert an upper bound on a time, alone: leave the machine to them
	@.ci/test.sh bounds

exhaust: needs-build ## Run the tests named exhaustive over their whole spaces, and the models, in release
	PORTVAKT_EXHAUST=all cargo test --release $(CARGO_FLAGS) -p portvakt-interface -p portvakt-state -p portvakt-gateway --lib -- exhaustive::
	cargo test --release $(CARGO_FLAGS) -p portvakt-state --lib -- model:: --include-ignored --nocapture --test-threads=1

fuzz: needs-build ## Fuzz the parsers of bytes from outside (MINUTES=20: of CPU, for each; ARGS="signature payload": two of them)
	@tests/fuzz/run.sh $(MINUTES) $(ARGS)

mutants: needs-build ## Change the code in one place at a time, and report what no unit test notices (ARGS="changed"; ARGS="src/sca" SHARD=0/4)
	@SHARD=$(SHARD) tests/mutants/run.sh $(ARGS)

test-systems: needs-systems ## Run the tests that need other programs or more than seconds (Go, Java, Node, nginx, Chromium, Prometheus, testssl.sh, sslyze, pkilint)
	@.ci/test.sh systems

test-packages: needs-systems needs-test-packages ## Install and run what `make package` builds: a Debian of its own, images, manifests (root; .ci/run does not)
	cargo build --workspace $(CARGO_FLAGS) --bins
	cargo test $(CARGO_FLAGS) --test it -- --ignored packages:: --nocapture --test-threads=1

soak: needs-tests ## Kill the gateway under load and restart it repeatedly (COUNT=1000: number of kills)
	PORTVAKT_SOAK=$(COUNT) cargo test $(CARGO_FLAGS) --test it -- soak::killed_under_load_it_keeps_what_it_promised state::events::a_killed_process_loses_no_event --nocapture --test-threads=1

failover: needs-systems ## Lose the primary of three gateways on PostgreSQL repeatedly, under load (COUNT=300: number of losses)
	PORTVAKT_FAILOVERS=$(COUNT) PORTVAKT_PATRONI=10 cargo test $(CARGO_FLAGS) --test it -- --ignored --nocapture --test-threads=1 repeat_nothing

faults: needs-tests ## Measure the latency of known TPPs while revocation sources of other TPPs fail
	cargo test $(CARGO_FLAGS) --test it -- --ignored --exact certificate::faults::known_tpps_do_not_feel_the_responders_of_others --nocapture

flood: needs-tests ## Send 100 000 unsigned requests of every kind and measure their CPU and memory
	cargo test $(CARGO_FLAGS) --test it -- --ignored --exact flood::a_hundred_thousand_strangers --nocapture
	cargo test $(CARGO_FLAGS) --test it -- --ignored --exact overload::the_rate_that_known_tpps_keep --nocapture
	cargo test $(CARGO_FLAGS) --test it -- --ignored --exact overload::strangers_buy_no_signatures --nocapture
	cargo test $(CARGO_FLAGS) --test it -- --ignored --exact transport::client_auth::a_thousand_chains_of_one_address --nocapture
	cargo test $(CARGO_FLAGS) --test it -- --ignored --exact evidence::two_thousand_refusals_a_second_hide_none_of_four --nocapture

check: needs-build ## Run the static checks: format, lints, documentation, dependencies
	cargo fmt --check
	cargo clippy --workspace --features bench --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace $(CARGO_FLAGS) --no-deps
	.ci/deny.sh || [ $$? -eq 75 ]

dist: needs-bench ## Build the programs for deployment, with profile-guided optimisation
	@.ci/dist.sh --train

docs: ## Build the documents as a site in target/docs, and check its links (installs mdBook into the target folder)
	@.ci/docs.py

package: needs-bench needs-package ## Build the packages for deployment from the programs of `make dist`, in dist/
	@.ci/package.sh

bench: needs-bench ## Compare with nginx, haproxy and scripts on this machine (ARGS="get refused --rounds 5": two loads)
	@programs=$$(.ci/dist.sh --bench) && "$$programs/portvakt-bench" $(ARGS)

bench-parts: needs-build ## Measure single parts: admission, payloads, state, trust, memory
	cargo bench $(CARGO_FLAGS) --bench admit --bench payload --bench state --bench trust --bench memory

bench-postgres: needs-tests ## Measure the state in PostgreSQL with a synchronous standby, beside SQLite and a bare loop (STATE_PSUS=10000000: PSUs)
	.ci/postgres.sh cargo bench $(CARGO_FLAGS) --bench state -- postgres

edge: needs-edge ## Attack the gateway, nginx and haproxy on this machine (ARGS="--rows 1,7": two rows; ARGS="fuzz --minutes 20")
	@programs=$$(.ci/dist.sh --bench) && "$$programs/portvakt-edge" $(ARGS)

clean: ## Remove the build output (certs/ stays: `portvakt-sandbox pki --force` makes it again)
	cargo clean

needs-build: ## Check the tools that the build needs beside Rust, and install missing ones if allowed
	@.ci/needs.sh

needs-package: ## The same for the packages
	@.ci/needs.sh package

needs-test-packages: ## The same for their tests
	@.ci/needs.sh test-packages

needs-bench: ## The same for the comparison, which leaves out missing peers
	@.ci/needs.sh bench

needs-edge: ## The same for the attacks
	@.ci/needs.sh edge

needs-tests: ## The same for the tests, which skip the parts whose tools are missing
	@.ci/needs.sh tests

needs-systems: ## The same for test-systems, which fails if a tool is missing
	@.ci/needs.sh systems
