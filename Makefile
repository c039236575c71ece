# All targets need only make and Python 3.11 or later; uv is used if it is on the PATH.
# The first target that needs .venv builds it from the pinned requirements; later runs are quick.

VENV := .venv
BIN := $(VENV)/bin
CONFORMANCE_VENV := .venv-conformance
CLIENT_VENV := .venv-client
ORIGINAL_VENV := .venv-original
OSC_PLACEMENT_VENV := .venv-osc-placement
NOVA_VENV := .venv-nova
IRONIC_VENV := .venv-ironic
GENERATORS_VENV := .venv-generators
GENERATORS_NODE := .node-generators
METAL3_VENV := .venv-metal3
MOVING_VENV := .venv-moving
AUDIT_VENV := .venv-audit
INSTALLERS_VENV := .venv-installers
SITE_VENV := .venv-site
RELEASE_VENV := .venv-release
# Where `make docs` builds the site.
SITE := build/docs
PREFECT_VENV := .venv-prefect
DAGSTER_VENV := .venv-dagster
AIRFLOW_VENV := .venv-airflow
BROWSER_VENV := .venv-browser
BROWSER_NODE := .node-browser
CHROMIUM := .chromium/chromium
# What `make browser` has seen, for people to look at.
PICTURES := build/browser
PROMTOOL := .promtool/promtool
KUBECTL := .kubectl/kubectl
# What `make kubernetes-tools` builds once, for minutes.
KUBERNETES_TOOLS := .kubernetes-tools
NGINX := .nginx/nginx
SYSTEMD := .systemd
HAPROXY := .haproxy
MARIADB := .mariadb
OLDEST_PYTHON := .oldest-python/python3.9
DEBIAN_ROOT := .debian-root/root.tar
SOURCES := src tests bench demo contrib docs/site
# `make test` has four workers for two cores, because they often wait for a server or a TTL.
# `make thorough` has three, whose tests wait less and need more memory; others have one for each core.
WORKERS ?= 4
THOROUGH_WORKERS ?= 3
THOROUGH_SEEDS ?= rest
BUSY_WORKERS ?= 2
PYTEST := $(BIN)/python -m pytest
CONFORMANCE = $(CONFORMANCE_VENV)/bin/python -m tests.conformance
CLIENT_TESTS = bin/python -m tests.clients --moorage $(BIN)/moorage
# The targets that `make e2e` runs.
E2E := docs osc-placement nova real-nova compare moving browser generators alerts proxies units baremetal reporters kubernetes-tools metal3 chart oldest-python installations containers test-release
# Those that run beside them: they deploy nodes, and install clusters, for minutes, and mostly wait.
E2E_BESIDE := gate orchestrators
# What `make quick` runs: not what starts a server for each test, or a PostgreSQL, or searches at random.
QUICK := tests/core tests/store tests/faces --ignore=tests/faces/dashboard --ignore=tests/faces/boskos --ignore=tests/faces/leaseproxy \
	-m 'not played_in_part' -k 'not postgres and not machine and not naive and not round_robin and not upkeep'
# Two at a time, and all tests of an orchestrator in one process, which starts it once.
ORCHESTRATED := $(PYTEST) --confcutdir tests/orchestrators -p no:cacheprovider -q tests/orchestrators
# Runs a command with a PostgreSQL in a folder.
CLUSTER := $(BIN)/python -m tests.support.cluster

# Runs a suite on SQLite, again with an agent for each provider, then on PostgreSQL, even if one fails.
define on-both-engines
@failed=0; \
$(1) || failed=1; \
$(1) --agents all || failed=1; \
$(CLUSTER) - sh -c '$(1) --database "$$MOORAGE_DATABASE"' || failed=1; \
exit $$failed
endef

# Python must keep its compiled files: the tests start hundreds of servers, and if each compiled
# everything again, a start would need twice the processor time.
unexport PYTHONDONTWRITEBYTECODE

# Arguments for `make run`, `make bench` and others, such as: make run ARGS="--listen 127.0.0.1:9000"
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help run run-postgres demo ironic gated-ironic test quick thorough e2e osc-placement nova real-nova moving browser screenshots generators alerts proxies units baremetal gate reporters kubernetes-tools metal3 metal3-soak chart chart-files orchestrators oldest-python installations containers test-release docs compare audit environments check budgets bench bench-nova bench-dashboard bench-moving soak mutate \
	conformance conformance-sqlite conformance-agents conformance-postgresql conformance-imported client format zipapp distributions release images publish-distributions publish-images publish-chart publish-release lock openapi clean
.DELETE_ON_ERROR:

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/run.stamp ## Start Moorage on http://127.0.0.1:8778 with its database in ./moorage.sqlite
	@exec $(BIN)/moorage serve $(ARGS)

run-postgres: $(VENV)/dev.stamp ## Start Moorage with its own PostgreSQL, in ./moorage-postgres
	@exec $(CLUSTER) moorage-postgres $(BIN)/moorage serve $(ARGS)

demo: $(VENV)/run.stamp ## Serve an example with 2,000 machines and 300 jobs, to look at in a browser (ARGS="--help")
	@exec $(BIN)/python -m demo $(ARGS)

ironic: $(IRONIC_VENV)/stamp ## Start a real OpenStack Ironic with 50 fake nodes (ARGS="--nodes 10"; ARGS="--help")
	@exec $(IRONIC_VENV)/bin/python -m tests.baremetal.serve $(ARGS)

gated-ironic: $(VENV)/dev.stamp $(IRONIC_VENV)/stamp $(CLIENT_VENV)/stamp ## Start a real Ironic with 50 fake nodes behind the gate, 5 busy at once (ARGS="--help")
	@exec $(BIN)/python -m tests.gate.serve --moorage $(BIN)/moorage $(ARGS)

test: $(VENV)/dev.stamp $(CLIENT_VENV)/stamp $(CONFORMANCE_VENV)/stamp ## Run all tests, then the functional suite of OpenStack Placement (about 15 minutes)
	@failed=0; \
	$(PYTEST) -n $(WORKERS) --dist worksteal $(ARGS) || failed=1; \
	$(MAKE) --no-print-directory conformance-sqlite || failed=1; \
	exit $$failed

quick: $(VENV)/dev.stamp ## Run what tells most in little time: rules, stores on SQLite, APIs
	$(PYTEST) -q -n $(WORKERS) --dist worksteal $(QUICK) $(ARGS)

thorough: $(VENV)/dev.stamp $(CONFORMANCE_VENV)/stamp ## Run what `make test` leaves out: the other seeds, the suite on PostgreSQL and with agents
	@failed=0; \
	MOORAGE_SEEDS=$(THOROUGH_SEEDS) $(PYTEST) -q -n $(THOROUGH_WORKERS) --dist worksteal $(ARGS) || failed=1; \
	$(MAKE) --no-print-directory --keep-going -j 2 --output-sync=target conformance-postgresql conformance-agents || failed=1; \
	exit $$failed

e2e: environments ## Run the functional tests of real clients, then compare answers with OpenStack Placement
	@scripts/themes --beside "$(E2E_BESIDE)" $(E2E)

osc-placement: $(VENV)/dev.stamp $(OSC_PLACEMENT_VENV)/stamp
	$(call on-both-engines,$(OSC_PLACEMENT_VENV)/$(CLIENT_TESTS) osc-placement)

nova: $(VENV)/dev.stamp $(NOVA_VENV)/stamp
	$(call on-both-engines,$(NOVA_VENV)/$(CLIENT_TESTS) nova)

real-nova: $(VENV)/dev.stamp $(NOVA_VENV)/stamp ## Audit a ledger against nova's own API and databases, and compare the double of Nova with it
	NOVA_PYTHON=$(abspath $(NOVA_VENV)/bin/python) $(PYTEST) -q -n $(BUSY_WORKERS) tests/real_nova $(ARGS)

moving: $(VENV)/dev.stamp $(MOVING_VENV)/stamp $(CONFORMANCE_VENV)/stamp $(MARIADB)/stamp $(NGINX) ## Move the ledger of OpenStack Placement in and out, on MariaDB, PostgreSQL and SQLite
	@failed=0; \
	ORIGINAL_PYTHON=$(abspath $(MOVING_VENV)/bin/python) MARIADB=$(abspath $(MARIADB)) NGINX_PROGRAM=$(abspath $(NGINX)) $(PYTEST) -q -n $(BUSY_WORKERS) --dist loadfile tests/moving $(ARGS) || failed=1; \
	$(if $(ARGS),,$(MAKE) --no-print-directory conformance-imported || failed=1;) \
	exit $$failed

browser: $(VENV)/dev.stamp $(BROWSER_VENV)/stamp $(BROWSER_NODE)/stamp $(CHROMIUM) ## Look at every page of the dashboard in a real browser
	rm -rf $(PICTURES) && mkdir -p $(PICTURES)
	$(CLUSTER) - env PICTURES=$(abspath $(PICTURES)) MOORAGE=$(abspath $(BIN)/moorage) CHROMIUM=$(abspath $(CHROMIUM)) AXE=$(abspath $(BROWSER_NODE)/node_modules/axe-core/axe.min.js) \
		$(BROWSER_VENV)/bin/python -m pytest --confcutdir tests/browser -p no:cacheprovider -q -n $(BUSY_WORKERS) tests/browser $(ARGS)

screenshots: $(VENV)/run.stamp $(BROWSER_VENV)/stamp $(CHROMIUM) ## Take the pictures of README.md and docs/ from the example of `make demo`
	CHROMIUM=$(abspath $(CHROMIUM)) $(BROWSER_VENV)/bin/python -m tests.browser.screenshots --python $(abspath $(BIN)/python) $(ARGS)

# Lints the OpenAPI description of the native API, and tests what three generators make from it.
generators: $(VENV)/dev.stamp $(GENERATORS_VENV)/stamp $(GENERATORS_NODE)/stamp
	$(GENERATORS_VENV)/bin/python -m tests.generators --moorage $(BIN)/moorage --node-packages $(GENERATORS_NODE)

alerts: $(VENV)/dev.stamp $(PROMTOOL) ## Test the alert rules with Prometheus' promtool
	@$(BIN)/python -m tests.alerts --promtool $(PROMTOOL)

proxies: $(VENV)/dev.stamp $(CLIENT_VENV)/stamp $(NGINX) $(HAPROXY)/stamp ## Serve behind a real nginx and a real HAProxy, with the stock client
	NGINX_PROGRAM=$(abspath $(NGINX)) HAPROXY_PROGRAM=$(abspath $(HAPROXY))/haproxy $(PYTEST) -q -n $(BUSY_WORKERS) tests/proxies $(ARGS)

units: $(VENV)/dev.stamp $(SYSTEMD)/stamp ## Install the units of systemd into a folder, check them, and start a server again and again
	PATH=$(abspath $(SYSTEMD)):$$PATH $(PYTEST) -q -n $(BUSY_WORKERS) tests/units $(ARGS)

baremetal: $(IRONIC_VENV)/stamp $(CLIENT_VENV)/stamp $(NGINX) ## Deploy a fake node of a real OpenStack Ironic with the stock clients
	PYTHONPATH=src $(CLIENT_VENV)/bin/python -m tests.baremetal --nginx $(NGINX) $(ARGS)

gate: $(VENV)/dev.stamp $(IRONIC_VENV)/stamp $(CLIENT_VENV)/stamp $(NOVA_VENV)/stamp ## Deploy 50 nodes of a real Ironic through the gate, with the stock clients
	PYTHONPATH=src $(CLIENT_VENV)/bin/python -m tests.gate --moorage $(BIN)/moorage --nova $(NOVA_VENV)/bin/python

reporters: $(VENV)/dev.stamp $(IRONIC_VENV)/stamp $(NOVA_VENV)/stamp ## Report nodes of a real Ironic, alone and beside nova's own code
	$(BIN)/python -m tests.reporters --nova $(NOVA_VENV)/bin/python

kubernetes-tools: ## Build Kubernetes' API server, etcd, kubectl and Helm for tests, once (6 minutes on two cores; needs Go)
	scripts/kubernetes-tools $(KUBERNETES_TOOLS)

metal3: $(VENV)/dev.stamp $(METAL3_VENV)/stamp $(KUBECTL) kubernetes-tools ## Govern hosts of a real Kubernetes API server; let kubectl and an operator work with its double
	@failed=0; \
	$(BIN)/python -m tests.metal3 --kubectl $(KUBECTL) --kopf $(METAL3_VENV)/bin/python || failed=1; \
	$(PYTEST) -q -n $(BUSY_WORKERS) --dist loadfile tests/kubernetes/test_cluster.py tests/kubernetes/test_boskos.py tests/kubernetes/conversation tests/kubernetes/metal3 $(ARGS) || failed=1; \
	exit $$failed

# Other versions of Kubernetes that the guides name; `make metal3 chart` uses the newest.
OLDER_KUBERNETES := 1.34 1.35

# One version after another: an API server takes both cores for minutes to build.
metal3-soak: $(VENV)/dev.stamp kubernetes-tools ## Govern 1,000 hosts, with two API servers, and on older versions of Kubernetes (30 minutes, and 7 for each new API server)
	@failed=0; \
	MOORAGE_SOAK=1 $(PYTEST) --timeout 0 -s -n 0 $$(grep -rl --include='test_*.py' SOAK tests/kubernetes) $(ARGS) || failed=1; \
	for version in $(OLDER_KUBERNETES); do \
		scripts/kubernetes-tools $(KUBERNETES_TOOLS) $$version && \
		KUBERNETES_TOOLS=$(abspath $(KUBERNETES_TOOLS))/$$version $(PYTEST) -q -n $(BUSY_WORKERS) --dist loadfile \
			tests/kubernetes/test_cluster.py tests/kubernetes/metal3 tests/kubernetes/chart $(ARGS) || failed=1; \
	done; \
	exit $$failed

chart: $(VENV)/dev.stamp kubernetes-tools ## Install the Helm chart on a real Kubernetes API server, and start what its pods would
	$(PYTEST) -q -n $(BUSY_WORKERS) --dist loadfile tests/kubernetes/chart $(ARGS)

chart-files: $(VENV)/run.stamp ## Update the generated files of deploy/helm/moorage (copies of manifests and alerts, values.schema.json, table in the README)
	$(BIN)/python scripts/chart

orchestrators: $(VENV)/dev.stamp $(PREFECT_VENV)/stamp $(DAGSTER_VENV)/stamp $(AIRFLOW_VENV)/stamp ## Run the recipes for Prefect, Dagster and Airflow with the real packages
	@failed=0; \
	$(ORCHESTRATED) -k prefect $(ARGS) & first=$$!; \
	$(ORCHESTRATED) -k 'dagster or airflow' $(ARGS) || failed=1; \
	wait $$first || failed=1; \
	exit $$failed

oldest-python: $(VENV)/dev.stamp $(OLDEST_PYTHON) ## Run the client on Python 3.9, the oldest that it supports
	MOORAGE_TEST_PYTHON=$(abspath $(OLDEST_PYTHON)) $(PYTEST) -q -n $(BUSY_WORKERS) tests/client/run tests/client/leasing/test_pythons.py tests/client/test_distributions.py

installations: $(VENV)/dev.stamp $(INSTALLERS_VENV)/stamp ## Install Moorage with pip, pipx and uv from a checkout, a wheel and an sdist
	INSTALLERS=$(abspath $(INSTALLERS_VENV)/bin) $(PYTEST) -q -n $(BUSY_WORKERS) tests/installations $(ARGS)

containers: $(VENV)/dev.stamp $(CLIENT_VENV)/stamp $(DEBIAN_ROOT) ## Build the container images on a minimal Debian, without an engine, and run them (as root)
	BASE=$(abspath $(DEBIAN_ROOT)) CLIENT=$(abspath $(CLIENT_VENV)/bin) unshare --mount $(PYTEST) -q -n 0 tests/containers $(ARGS)

# The release of this commit in dist/ is compared with one that is built elsewhere, with other settings.
test-release: $(VENV)/dev.stamp release ## Build the release, again elsewhere, and compare; test the workflow that publishes it
	SPHINX=$(abspath $(SITE_VENV)/bin/sphinx-build) CYCLONEDX=$(abspath $(RELEASE_VENV)/bin/cyclonedx-py) \
		$(PYTEST) -q -n 0 tests/releases $(ARGS)

docs: $(VENV)/dev.stamp $(SITE_VENV)/stamp ## Build the site of the documentation, with a search, in build/docs/html
	scripts/site $(SITE_VENV)/bin/sphinx-build $(SITE)
	SPHINX=$(abspath $(SITE_VENV)/bin/sphinx-build) BUILT=$(abspath $(SITE)/html) $(PYTEST) -q -n 0 tests/site $(ARGS)
	@echo "docs: open $(SITE)/html/index.html"

check: $(VENV)/dev.stamp ## Check style, types, imports, the structure of the code, and what operations cost
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python scripts/chart --check
	$(PYTEST) -q tests/floorplan tests/docs
	$(BIN)/python -m tests.budgets

# How many functions an operation calls does not depend on the load of the machine.
budgets: $(VENV)/dev.stamp ## Count what one operation costs, and lower its budgets (ARGS="--raise")
	$(BIN)/python -m tests.budgets --write $(ARGS)

# Both engines, and SQLite with an agent for each provider, two at a time; make prints the output of each when it has ended.
conformance: $(VENV)/dev.stamp $(CONFORMANCE_VENV)/stamp ## Run the functional suite of OpenStack Placement against Moorage, on both engines
	@$(MAKE) --no-print-directory --keep-going -j 2 --output-sync=target conformance-sqlite conformance-postgresql \
		conformance-agents

conformance-sqlite: $(VENV)/dev.stamp $(CONFORMANCE_VENV)/stamp
	@echo "conformance: on SQLite"
	@$(CONFORMANCE) --moorage $(BIN)/moorage

conformance-agents: $(VENV)/dev.stamp $(CONFORMANCE_VENV)/stamp
	@echo "conformance: on SQLite, with agents"
	@$(CONFORMANCE) --moorage $(BIN)/moorage --agents all

conformance-postgresql: $(VENV)/dev.stamp $(CONFORMANCE_VENV)/stamp
	@echo "conformance: on PostgreSQL"
	@$(CLUSTER) - sh -c '$(CONFORMANCE) --moorage $(BIN)/moorage --database "$$MOORAGE_DATABASE"'

conformance-imported: $(VENV)/dev.stamp $(CONFORMANCE_VENV)/stamp
	@echo "conformance: on an imported ledger"
	@$(CONFORMANCE) --moorage $(BIN)/moorage --imported

environments: ## Build all virtual environments of the tests, several at once
	@$(MAKE) --no-print-directory -j 3 $(VENV)/dev.stamp $(CONFORMANCE_VENV)/stamp $(CLIENT_VENV)/stamp \
		$(OSC_PLACEMENT_VENV)/stamp $(NOVA_VENV)/stamp $(GENERATORS_VENV)/stamp $(GENERATORS_NODE)/stamp $(IRONIC_VENV)/stamp $(METAL3_VENV)/stamp $(MOVING_VENV)/stamp $(PREFECT_VENV)/stamp $(DAGSTER_VENV)/stamp $(AIRFLOW_VENV)/stamp \
		$(BROWSER_VENV)/stamp $(BROWSER_NODE)/stamp $(CHROMIUM) $(PROMTOOL) $(KUBECTL) $(NGINX) $(HAPROXY)/stamp $(SYSTEMD)/stamp $(MARIADB)/stamp $(OLDEST_PYTHON) $(INSTALLERS_VENV)/stamp $(SITE_VENV)/stamp

compare: $(VENV)/dev.stamp $(CONFORMANCE_VENV)/stamp ## Send the same random requests to OpenStack Placement and to Moorage (ARGS="--help")
	$(BIN)/python -m tests.compare --engines sqlite,postgresql --seed 1 --requests 5000 --workers $(BUSY_WORKERS) $(ARGS)
	$(if $(ARGS),,$(BIN)/python -m tests.compare --agents all --seed 1 --requests 3000 --workers $(BUSY_WORKERS))
	$(if $(ARGS),,ORIGINAL=$(abspath $(CONFORMANCE_VENV)/bin) $(PYTEST) -q -n $(BUSY_WORKERS) tests/openstack)

client: $(CLIENT_VENV)/stamp ## Build the virtual environment of the openstack client, with the plugins for Placement and Ironic

# It ends with the ratios to earlier versions of Moorage, see `bench/baselines.toml`.
bench: $(VENV)/dev.stamp ## Compare the speed with OpenStack Placement and with earlier versions, 45 minutes (ARGS="--quick": 6; ARGS="--help")
	@$(MAKE) --no-print-directory $(ORIGINAL_VENV)/stamp || \
		echo "bench: continues without the original (uwsgi needs a C compiler and Python's headers)" >&2
	$(BIN)/python -m bench --original $(ORIGINAL_VENV) $(ARGS)
	$(if $(findstring --help,$(ARGS)),,$(BIN)/python -m bench.ironic.gate)
	$(if $(findstring --help,$(ARGS)),,$(BIN)/python -m bench.versus --original $(ORIGINAL_VENV) $(filter --quick --tiny --write-docs,$(ARGS)))

bench-nova: $(VENV)/dev.stamp $(NOVA_VENV)/stamp $(ORIGINAL_VENV)/stamp ## Let nova's own code refresh 500 nodes, compare with OpenStack Placement (5 minutes)
	$(BIN)/python -m bench.reporters.nova --nova $(NOVA_VENV)/bin/python --original $(ORIGINAL_VENV) $(ARGS)

bench-dashboard: $(VENV)/dev.stamp $(BROWSER_VENV)/stamp $(CHROMIUM) ## Measure the dashboard: first paint, 200 open pages, claims beside them (20 minutes)
	$(BIN)/python -m bench.dashboard --browser $(BROWSER_VENV)/bin/python --chromium $(CHROMIUM) $(ARGS)

bench-moving: $(VENV)/dev.stamp $(MOVING_VENV)/stamp $(MARIADB)/stamp ## Measure a move of 15,000 providers from OpenStack Placement on MariaDB, and back (10 minutes)
	ORIGINAL_PYTHON=$(abspath $(MOVING_VENV)/bin/python) MARIADB=$(abspath $(MARIADB)) $(BIN)/python -m bench.moving $(ARGS)

soak: $(VENV)/dev.stamp metal3-soak ## Run the randomised tests for longer, with new seeds, and the tests that take minutes
	MOORAGE_SOAK=1 $(PYTEST) --timeout 0 -n 0 tests/e2e/test_loop.py $(ARGS)
	MOORAGE_SOAK=1 $(PYTEST) --timeout 0 -n $(BUSY_WORKERS) tests/simulation \
		$$(grep -rl --include='test_*.py' SOAK tests/compare tests/e2e tests/integrations tests/store | grep -v test_loop) $(ARGS)

mutate: $(VENV)/dev.stamp ## Plant bugs in pools, agents, provisioning, reshapes; fail unless all are found (10 minutes)
	MOORAGE_SEEDS=all $(BIN)/python -m tests.simulation.mutation.mutants

format: $(VENV)/dev.stamp ## Format the code and fix what can be fixed automatically
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

zipapp: ## Build dist/moorage.pyz: `moorage run` and the agent in one file, for Python 3.9 or later
	scripts/zipapp

# The same sources give the same bytes.
distributions: $(VENV)/run.stamp ## Build the wheel and the source distribution of Moorage in dist/
	@mkdir -p dist
	cd dist && rm -f moorage-*.whl moorage-*.tar.gz
	SOURCE_DATE_EPOCH=315532800 $(BIN)/python -c 'from flit_core import buildapi as b; print(b.build_sdist("dist"), b.build_wheel("dist"))'

# Of the last commit, whatever the working tree has.
release: $(VENV)/run.stamp $(SITE_VENV)/stamp $(RELEASE_VENV)/stamp ## Build all files of a release in dist/: the same bytes from the same commit
	$(BIN)/python scripts/release $(SITE_VENV)/bin/sphinx-build $(RELEASE_VENV)/bin/cyclonedx-py

images: ## Build the container images of the last commit (ENGINE=podman; IMAGE=registry.example/moorage)
	scripts/images

publish-distributions:
	scripts/publish distributions

publish-images:
	scripts/publish images

publish-chart:
	scripts/publish chart

publish-release:
	scripts/publish release

lock: ## Update the pinned dependencies (needs uv)
	scripts/lock

# Needs a database of vulnerabilities: exit code 2 of the script says that none can be reached.
audit: $(AUDIT_VENV)/stamp ## Look for known vulnerabilities of all pinned packages (ARGS="--advisories FOLDER")
	$(AUDIT_VENV)/bin/python scripts/audit $(ARGS)

openapi: $(VENV)/dev.stamp ## Update docs/reference/openapi.json, the OpenAPI description of the native API, with examples that a server answers
	$(BIN)/python -m tests.faces.v1.recorded
	$(BIN)/python scripts/openapi > docs/reference/openapi.json.new
	mv docs/reference/openapi.json.new docs/reference/openapi.json

clean: ## Remove virtual environments and caches, but no database
	rm -rf .venv .venv-* .node-generators .node-browser .promtool .kubectl .nginx .haproxy .systemd .mariadb .chromium .kubernetes-tools .oldest-python .debian-root .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	rm -rf build dist src/*.egg-info bench/results .baselines
	find src tests bench demo -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/run.stamp: requirements.lock pyproject.toml scripts/environment
	scripts/environment $(VENV) requirements.lock .
	@touch $@

$(VENV)/dev.stamp: requirements-dev.lock $(VENV)/run.stamp
	scripts/environment $(VENV) requirements-dev.lock
	@touch $@

# OpenStack Placement and its clients pin other versions, so each has its own environment.
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

$(IRONIC_VENV)/stamp: tests/baremetal/requirements.lock scripts/environment
	scripts/environment $(IRONIC_VENV) tests/baremetal/requirements.lock
	@touch $@

$(GENERATORS_VENV)/stamp: tests/generators/requirements.lock scripts/environment
	scripts/environment $(GENERATORS_VENV) tests/generators/requirements.lock
	@touch $@

$(GENERATORS_NODE)/stamp: tests/generators/package-lock.json tests/generators/package.json scripts/node-packages
	scripts/node-packages $(GENERATORS_NODE) tests/generators/package-lock.json
	@touch $@

$(BROWSER_VENV)/stamp: tests/browser/requirements.lock scripts/environment
	scripts/environment $(BROWSER_VENV) tests/browser/requirements.lock
	@touch $@

$(BROWSER_NODE)/stamp: tests/browser/package-lock.json tests/browser/package.json scripts/node-packages
	scripts/node-packages $(BROWSER_NODE) tests/browser/package-lock.json
	@touch $@

$(CHROMIUM): scripts/chromium
	scripts/chromium $@

$(AUDIT_VENV)/stamp: tests/audit/requirements.lock scripts/environment
	scripts/environment $(AUDIT_VENV) tests/audit/requirements.lock
	@touch $@

$(INSTALLERS_VENV)/stamp: tests/installations/requirements.lock scripts/environment
	scripts/environment $(INSTALLERS_VENV) tests/installations/requirements.lock
	@touch $@

$(SITE_VENV)/stamp: docs/site/requirements.lock scripts/environment
	scripts/environment $(SITE_VENV) docs/site/requirements.lock
	@touch $@

$(RELEASE_VENV)/stamp: tests/releases/requirements.lock scripts/environment
	scripts/environment $(RELEASE_VENV) tests/releases/requirements.lock
	@touch $@

$(METAL3_VENV)/stamp: tests/metal3/requirements.lock scripts/environment
	scripts/environment $(METAL3_VENV) tests/metal3/requirements.lock
	@touch $@

$(MOVING_VENV)/stamp: tests/moving/requirements.lock scripts/environment
	scripts/environment $(MOVING_VENV) tests/moving/requirements.lock
	@touch $@

$(PREFECT_VENV)/stamp: tests/orchestrators/requirements-prefect.lock scripts/environment
	scripts/environment $(PREFECT_VENV) tests/orchestrators/requirements-prefect.lock
	@touch $@

$(DAGSTER_VENV)/stamp: tests/orchestrators/requirements-dagster.lock scripts/environment
	scripts/environment $(DAGSTER_VENV) tests/orchestrators/requirements-dagster.lock
	@touch $@

$(AIRFLOW_VENV)/stamp: tests/orchestrators/requirements-airflow.lock scripts/environment
	scripts/environment $(AIRFLOW_VENV) tests/orchestrators/requirements-airflow.lock
	@touch $@

$(PROMTOOL): scripts/promtool
	scripts/promtool $@

$(NGINX): scripts/nginx
	scripts/nginx $@

$(SYSTEMD)/stamp: scripts/debian-programs
	scripts/debian-programs $(SYSTEMD) systemd systemctl systemd-analyze systemd-socket-activate

$(HAPROXY)/stamp: scripts/debian-programs
	scripts/debian-programs $(HAPROXY) haproxy haproxy

$(MARIADB)/stamp: scripts/mariadb
	scripts/mariadb $(MARIADB)

$(DEBIAN_ROOT): scripts/debian-root
	scripts/debian-root $@

$(KUBECTL): scripts/kubectl
	scripts/kubectl $@

# What is only linked is older than the script, so it is linked again each time.
$(OLDEST_PYTHON): scripts/oldest-python
	scripts/oldest-python $@

$(ORIGINAL_VENV)/stamp: bench/requirements.lock scripts/environment
	scripts/environment $(ORIGINAL_VENV) bench/requirements.lock
	@touch $@
