# Everything needs only make and Python 3.11 or later; uv is used where it is on the PATH.
# The first target that needs it builds .venv from the pinned requirements; later runs are quick.

VENV := .venv
BIN := $(VENV)/bin
CONFORMANCE_VENV := .venv-conformance
CLIENT_VENV := .venv-client
ORIGINAL_VENV := .venv-original
OSC_PLACEMENT_VENV := .venv-osc-placement
NOVA_VENV := .venv-nova
GENERATORS_VENV := .venv-generators
SOURCES := src tests bench
# Three workers of `make test` fit two cores: they wait a lot, for a server to start or a TTL to end.
# Those of a soak and of a comparison have a core each.
WORKERS ?= 3
BUSY_WORKERS ?= 2
PYTEST := $(BIN)/python -m pytest
CONFORMANCE = $(CONFORMANCE_VENV)/bin/python -m tests.conformance
CLIENT_TESTS = bin/python -m tests.clients --moorage $(BIN)/moorage
# What `make e2e` runs: targets of their own.
E2E := osc-placement nova compare generators
# Runs a command beside a PostgreSQL in a folder.
CLUSTER := $(BIN)/python -m tests.support.cluster

# Runs a suite on SQLite, then on PostgreSQL, whatever the first comes to.
define on-both-engines
@failed=0; \
$(1) || failed=1; \
$(CLUSTER) - sh -c '$(1) --database "$$MOORAGE_DATABASE"' || failed=1; \
exit $$failed
endef

# Python keeps what it has compiled, whatever the environment says: the tests start hundreds of servers,
# and each would compile everything again, which doubles the processor time of a start.
unexport PYTHONDONTWRITEBYTECODE

# What `make run`, `make bench` and `make soak` hand on, for example: make run ARGS="--listen 127.0.0.1:9000"
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help run run-postgres test e2e osc-placement nova generators compare environments check bench soak mutate \
	conformance conformance-sqlite conformance-postgresql client format zipapp lock openapi clean
.DELETE_ON_ERROR:

help: ## Say what there is
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/run.stamp ## Start Moorage on http://127.0.0.1:8778 with its ledger in ./moorage.sqlite
	@exec $(BIN)/moorage serve $(ARGS)

run-postgres: $(VENV)/dev.stamp ## The same with its ledger in a PostgreSQL of its own, in ./moorage-postgres
	@exec $(CLUSTER) moorage-postgres $(BIN)/moorage serve $(ARGS)

test: $(VENV)/dev.stamp $(CLIENT_VENV)/stamp $(CONFORMANCE_VENV)/stamp ## Run every test, then the original's own suite (about a quarter of an hour)
	@failed=0; \
	$(PYTEST) -n $(WORKERS) --dist worksteal $(ARGS) || failed=1; \
	$(MAKE) --no-print-directory conformance || failed=1; \
	exit $$failed

e2e: ## Run real clients' own functional tests, then compare answers with the original's
	@failed=0; \
	for theme in $(E2E); do \
		began=$$(date +%s); \
		$(MAKE) --no-print-directory $$theme && ended=passed || { ended=failed; failed=1; }; \
		echo "e2e: $$theme $$ended after $$(($$(date +%s) - began)) s, its environment included"; \
	done; \
	exit $$failed

osc-placement: $(VENV)/dev.stamp $(OSC_PLACEMENT_VENV)/stamp
	$(call on-both-engines,$(OSC_PLACEMENT_VENV)/$(CLIENT_TESTS) osc-placement)

nova: $(VENV)/dev.stamp $(NOVA_VENV)/stamp
	$(call on-both-engines,$(NOVA_VENV)/$(CLIENT_TESTS) nova)

# Clients made from the native API's description by two generators, used on a server.
generators: $(VENV)/dev.stamp $(GENERATORS_VENV)/stamp
	$(GENERATORS_VENV)/bin/python -m tests.generators --moorage $(BIN)/moorage

check: $(VENV)/dev.stamp ## Check style, types, imports and the floor plan
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(PYTEST) -q tests/floorplan tests/docs

# Both engines at the same time; make shows what each has said when it has ended, one after the other.
conformance: $(VENV)/dev.stamp $(CONFORMANCE_VENV)/stamp ## Run OpenStack Placement's own functional suite against Moorage, on both engines
	@$(MAKE) --no-print-directory --keep-going -j 2 --output-sync=target conformance-sqlite conformance-postgresql

conformance-sqlite: $(VENV)/dev.stamp $(CONFORMANCE_VENV)/stamp
	@echo "conformance: on SQLite"
	@$(CONFORMANCE) --moorage $(BIN)/moorage

conformance-postgresql: $(VENV)/dev.stamp $(CONFORMANCE_VENV)/stamp
	@echo "conformance: on PostgreSQL"
	@$(CLUSTER) - sh -c '$(CONFORMANCE) --moorage $(BIN)/moorage --database "$$MOORAGE_DATABASE"'

environments: ## Build all environments of the tests, several at a time
	@$(MAKE) --no-print-directory -j 3 $(VENV)/dev.stamp $(CONFORMANCE_VENV)/stamp $(CLIENT_VENV)/stamp \
		$(OSC_PLACEMENT_VENV)/stamp $(NOVA_VENV)/stamp $(GENERATORS_VENV)/stamp

compare: $(VENV)/dev.stamp $(CONFORMANCE_VENV)/stamp ## Send the same random requests to the original and to Moorage (ARGS="--help")
	$(BIN)/python -m tests.compare --engines sqlite,postgresql --seed 1 --requests 5000 --workers $(BUSY_WORKERS) $(ARGS)

client: $(CLIENT_VENV)/stamp ## Build the environment of the stock openstack client that the README's tour uses

bench: $(VENV)/dev.stamp ## Measure beside the original, half an hour (ARGS="--quick": 3; ARGS="--help": more)
	@$(MAKE) --no-print-directory $(ORIGINAL_VENV)/stamp || \
		echo "bench: goes on without the original (uwsgi needs a C compiler and Python's headers)" >&2
	$(BIN)/python -m bench --original $(ORIGINAL_VENV) $(ARGS)

soak: $(VENV)/dev.stamp ## Run the randomised tests for longer, with new seeds, and those that take minutes
	MOORAGE_SOAK=1 $(PYTEST) -o faulthandler_timeout=0 -n 0 tests/e2e/test_loop.py $(ARGS)
	MOORAGE_SOAK=1 $(PYTEST) -o faulthandler_timeout=0 -n $(BUSY_WORKERS) tests/simulation \
		$$(grep -rl --include='test_*.py' SOAK tests/compare tests/e2e tests/store | grep -v test_loop) $(ARGS)

mutate: $(VENV)/dev.stamp ## Plant a bug per invariant of admission; fail unless the simulator catches all (a minute)
	$(BIN)/python -m tests.simulation.admission.mutation.mutants

format: $(VENV)/dev.stamp ## Format the code and mend what can be mended
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

zipapp: ## Build dist/moorage.pyz: `moorage run` in one file for any Python from 3.9 on
	scripts/zipapp

lock: ## Pin the dependencies of pyproject.toml anew (needs uv)
	scripts/lock

openapi: $(VENV)/run.stamp ## Write the native API's description to docs/reference/openapi.json anew
	$(BIN)/python scripts/openapi > docs/reference/openapi.json.new
	mv docs/reference/openapi.json.new docs/reference/openapi.json

clean: ## Remove environments and caches; the ledger in moorage.sqlite stays
	rm -rf .venv .venv-* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	rm -rf build dist src/*.egg-info bench/results
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/run.stamp: requirements.lock pyproject.toml scripts/environment
	scripts/environment $(VENV) requirements.lock .
	@touch $@

$(VENV)/dev.stamp: requirements-dev.lock $(VENV)/run.stamp
	scripts/environment $(VENV) requirements-dev.lock
	@touch $@

# The original and its clients pin other versions than we do: an environment for each.
$(CONFORMANCE_VENV)/stamp: tests/conformance/requirements.lock scripts/environment
	scripts/environment $(CONFORMANCE_VENV) tests/conformance/requirements.lock
	@touch $@

$(CLIENT_VENV)/stamp: tests/e2e/requirements.lock scripts/environment
	scripts/environment $(CLIENT_VENV) tests/e2e/requirements.lock
	@touch $@

$(OSC_PLACEMENT_VENV)/stamp: tests/clients/requirements-osc-placement.lock scripts/environment
	scripts/environment $(OSC_PLACEMENT_VENV) tests/clients/requirements-osc-placement.lock
	@touch $@

$(NOVA_VENV)/stamp: tests/clients/requirements-nova.lock scripts/environment
	scripts/environment $(NOVA_VENV) tests/clients/requirements-nova.lock
	@touch $@

$(GENERATORS_VENV)/stamp: tests/generators/requirements.lock scripts/environment
	scripts/environment $(GENERATORS_VENV) tests/generators/requirements.lock
	@touch $@

$(ORIGINAL_VENV)/stamp: bench/requirements.lock scripts/environment
	scripts/environment $(ORIGINAL_VENV) bench/requirements.lock
	@touch $@
