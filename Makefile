# Every target sets up what it needs: a virtual environment in .venv with the pinned packages. What a run needs comes
# first; the developers' tools are added by the targets that use them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= auto
SBOM ?= build/sbom.json
# Python's own pip, if there is one, installs into the environment: making a second one takes longer than a run's phase.
OWN_PIP := $(shell $(PYTHON) -c 'import pip; exit(int(pip.__version__.split(".")[0]) < 23)' 2> /dev/null && echo yes)
PIP := $(if $(OWN_PIP),$(PYTHON) -m pip --python $(CURDIR)/$(BIN)/python,$(CURDIR)/$(BIN)/python -m pip)
INSTALL := $(PIP) --quiet --disable-pip-version-check install --no-deps
EFFORT ?= quick
SECONDS ?= 600
TESTING = --dist worksteal $(if $(filter thorough,$(EFFORT)),-m '' --hypothesis-profile=thorough)
WAITING = $(or $(filter-out auto,$(WORKERS)),$(shell expr $$(getconf _NPROCESSORS_ONLN) \* 3 / 2))
COVERING := tests/unit/crypto tests/unit/protocol tests/property tests/attacks
COVERING += tests/unit/both/test_command_help.py tests/documents/test_glossary.py
# Threads of one process that share small matrices wait for each other, and for other processes.
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: help setup demo browser test test-all compose-test networks spark-test soak check audit faults fuzz bench bench-compare bench-short bench-utility sbom bundle bundle-test lock clean

help:
	@grep -E '^[a-z-]+:.*## ' Makefile | sed 's/:.*## /\t/'

$(VENV)/programs: requirements.lock requirements-build.lock pyproject.toml
	$(PYTHON) -m venv $(if $(OWN_PIP),--without-pip) $(VENV)
	$(INSTALL) --require-hashes -r requirements.lock -r requirements-build.lock
	$(INSTALL) --no-build-isolation -e .
	$(BIN)/python -m compileall -q crypto protocol party curator
	touch $@

$(VENV)/ready: $(VENV)/programs requirements-dev.lock
	$(INSTALL) --require-hashes -r requirements-dev.lock
	touch $@

setup: $(VENV)/ready ## make the virtual environment with the pinned packages

demo: $(VENV)/programs ## made-up hospitals and two real runs on this machine; METHOD=dp-ccbn PRESET=paper NOISE=local PARTIES=5 EPSILON=0.5 KEEP=1 ASK=1 ARGS="--out DIR"
	$(BIN)/subn demo $(if $(METHOD),--method $(METHOD)) $(if $(PRESET),--preset $(PRESET)) $(if $(NOISE),--noise $(NOISE)) $(if $(PARTIES),--parties $(PARTIES)) $(if $(EPSILON),--epsilon $(EPSILON)) $(if $(KEEP),--keep) $(if $(ASK),--ask --keep) $(ARGS)

browser: ## see to it that there are a browser and an nginx for the tests of pages
	@packages=; \
	for name in chromium chromium-browser google-chrome none; do command -v $$name > /dev/null && break; done; \
	[ $$name != none ] || packages="chromium fonts-dejavu-core"; \
	PATH="$$PATH:/usr/sbin" command -v nginx > /dev/null || packages="$$packages nginx"; \
	[ -n "$$packages" ] || exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	    export DEBIAN_FRONTEND=noninteractive; \
	    apt-get update -qq && apt-get install -qq -y --no-install-recommends $$packages > /dev/null; \
	else \
	    echo "The tests of pages need a browser and nginx: install $$packages (Debian: apt-get install; elsewhere: Chrome, nginx)" >&2; exit 1; \
	fi

# Measuring coverage doubles a test's time, so that only the tests which cover crypto/ and protocol/ are measured.
# The others wait for processes as long as they compute: half as many workers again as processors keep these busy.
# `worksteal` leaves neighbours to one worker, which then share what they have set up, until another has nothing to do.
test: setup browser ## run the tests in parallel, with coverage of crypto/ and protocol/
	$(BIN)/pytest -n $(WORKERS) $(TESTING) --cov --cov-report=term --cov-fail-under=97 $(COVERING)
	$(BIN)/pytest -n $(WAITING) $(TESTING) $(addprefix --ignore=,$(COVERING))

test-all: ## run all tests: also the exhaustive ones, and many more examples of every property
	$(MAKE) --no-print-directory test EFFORT=thorough

compose-test: setup ## build the image, run a cluster of containers (podman or docker), and clean up
	$(BIN)/pytest -n 2 --dist loadfile --ignore tests/containers/test_postgres.py tests/containers

spark-test: build/spark/ready ## runs with one party on Spark, one on PostgreSQL and one here (needs Java 17; minutes)
	PYTHONPATH=build/spark $(BIN)/pytest -s -W default tests/spark

build/spark/ready: $(VENV)/ready tests/spark/requirements.txt
	$(PIP) --quiet --disable-pip-version-check install --no-deps --target build/spark -r tests/spark/requirements.txt
	touch $@

soak: setup ## many parties in runs at once, and a thousand runs in a row: memory, handles and rows
	SOAK_PARTIES=$(or $(PARTIES),50) SOAK_AT_ONCE=$(or $(AT_ONCE),20) SOAK_RUNS=$(or $(RUNS),1000) $(BIN)/pytest -s tests/load

networks: setup ## cut off, slow down and lose whole parties, each in network namespaces of its own (as root)
	unshare --net --mount --propagation private $(BIN)/pytest -s tests/networks

faults: setup ## search at length for schedules of faults that break a promise; SCHEDULES=20000 MINUTES=120 SEED=0
	$(BIN)/python -m tests.simulation $(if $(SCHEDULES),--schedules $(SCHEDULES)) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(filter-out auto,$(WORKERS)),--workers $(WORKERS)) $(if $(SEED),--seed $(SEED))

check: setup ## lint, format, types, layer rules, and the rules of text and size
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest --quiet tests/documents/test_prose.py

audit: setup ## lower bounds on the epsilon of all that is released; prints a table and writes build/audit.json (minutes)
	$(BIN)/python -m tests.audit

fuzz: setup ## change what decoders of outside bytes read, for SECONDS=600 in all; TARGETS="schema csv" for some of them
	$(BIN)/python -m tests.fuzz $(SECONDS) $(TARGETS)

bench: setup ## print ratios, slopes and instruction counts; writes build/bench.json and the figure build/bench.svg
	$(BIN)/python -m tests.benchmarks

bench-compare: setup ## compare build/bench.json with the committed baseline; fails if something is slower
	$(BIN)/python -m tests.benchmarks compare

bench-short: setup ## count the instructions of the hottest kernels, and compare them with the committed baseline
	@command -v valgrind > /dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get > /dev/null || \
	    (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends valgrind > /dev/null)
	$(BIN)/python -m tests.benchmarks compare-short

sbom: setup ## write what the product is made of, from the lock file, to build/sbom.json (CycloneDX)
	mkdir -p $(dir $(SBOM))
	PYTHONWARNINGS=ignore $(BIN)/cyclonedx-py requirements requirements.lock --pyproject pyproject.toml --output-reproducible -o $(SBOM)

bundle: setup ## write images, wheels, manifests, documents and SBOMs for machines without a network, signed, to build/bundle
	PYTHON=$(CURDIR)/$(BIN)/python PIP="$(PIP)" .ci/bundle

bundle-test: setup browser build/older/ready ## the bundle made twice, and used where there is no network; PostgreSQL; upgrades (as root, with podman)
	$(BIN)/pytest tests/containers/test_postgres.py
	tests/bundle/twice
	unshare --net --mount --propagation private $(BIN)/pytest -s tests/bundle

bench-utility: setup ## error against public tables, beside central methods; writes tests/benchmarks/utility.md
	$(BIN)/python -m tests.benchmarks.utility --check
	$(MAKE) --no-print-directory build/peers/ready
	$(BIN)/python -m tests.benchmarks.peers.all --python build/peers/bin/python
	$(BIN)/python -m tests.benchmarks.utility $(if $(filter-out auto,$(WORKERS)),--workers $(WORKERS))

build/peers/ready: tests/benchmarks/peers/requirements.txt
	$(PYTHON) -m venv build/peers
	build/peers/bin/pip install --quiet --disable-pip-version-check -r tests/benchmarks/peers/requirements.txt
	touch $@

# The program as it was once, with its own packages, for the test of upgrades.
build/older/ready:
	mkdir -p build/older
	git archive 10bb490 | tar -x -C build/older
	$(PYTHON) -m venv build/older/.venv
	build/older/.venv/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r build/older/requirements.lock -r build/older/requirements-build.lock
	build/older/.venv/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e build/older
	touch $@

lock: ## renew the pinned versions (developers only)
	$(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-header --extra postgres -o requirements.lock pyproject.toml
	$(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-header --extra dev --extra bench --extra engines --extra experiments --extra postgres --all-build-deps -o requirements-dev.lock pyproject.toml
	$(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-header --all-build-deps --only-build-deps -o requirements-build.lock pyproject.toml

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build *.egg-info
