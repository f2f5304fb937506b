# Everything here needs only Python 3.11+ and make. PYTHON=python3.12 picks another interpreter.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install -q --disable-pip-version-check -c constraints.txt

.PHONY: help run paper paper-kills ray-kills scale venv test test-versions pytest proof lint bench bench-peers bench-fit bench-service bench-keys screenshot soak coverage fuzz age contexts verdicts sizes docs clients map release clean

# The main job: the paper's headline comparison, with the default policy beside it. Ends with a table and a picture.
run: .venv/.run
	$(BIN)/accrual headline
	@echo "(in this folder, accrual is $(BIN)/accrual)"

# Show these lines.
help: Makefile
	@awk '/^# /{if (!text) text = substr($$0, 3); next} /^[a-z-]+: /{if (text) printf "make %-15s%s\n", substr($$1, 1, length($$1) - 1), text} {text = ""}' Makefile

# Every table and figure of the paper, checked against the printed ones. Continues where it stopped.
paper: venv
	$(BIN)/accrual paper --check

# The paper's run is killed twenty times (SIGKILL) and must write the same bytes as a run without kills.
paper-kills: venv
	$(BIN)/pytest -m slow tests/studies/test_paper_runner.py
	$(BIN)/python benchmarks/paper_kills.py

# Nodes of a Ray cluster are killed twenty times, then its head; the run must write the same bytes as without Ray.
ray-kills: venv
	$(BIN)/pytest -m slow tests/runs/test_on_ray.py
	$(BIN)/python benchmarks/ray_kills.py

# How the cost of a round grows with arms, window, groups, horizon and runs.
scale: venv
	$(BIN)/python benchmarks/scale.py

# The virtual environment .venv, with everything.
venv: .venv/.all

# Set everything up, then linters and tests at the same time.
test: venv
	@$(MAKE) --no-print-directory --keep-going --jobs=2 lint pytest

# The tests without the linters.
pytest: venv
# One process for each core and one more, because many tests wait. The tests of a file stay in one process, because
# they share servers and compiled kernels (tests/conftest.py). Tests start Python some hundred times, so it may write
# bytecode.
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n $$($(BIN)/python -c 'import os; print(os.cpu_count() + 1)') --dist loadfile

# The tests on Python 3.11 and 3.13, with pinned and with the oldest allowed dependencies, before a release.
# It says which of the two is missing. TESTS=tests/service runs a part of them.
test-versions: venv
	$(BIN)/python tools/test_versions.py $(TESTS)

# The store's long proofs, each with a control that must fail. Each takes some minutes.
# FLIPS=2000 tries 2,000 wrong bytes in place of 20,000, and EXAMPLES=100 tries 100 histories in place of 2,000.
proof: venv
	$(BIN)/pytest -m slow tests/proof tests/live tests/policies tests/service/test_attacks_service.py

# ruff, mypy (strict) and import-linter.
lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# The engine against a plain C++ loop, and the other limits on time and memory.
bench: venv
	$(BIN)/python benchmarks/bench.py

# The Age policies beside the no-delay floor, and what they cost.
age: venv
	$(BIN)/python benchmarks/age.py

# What contexts are worth, compared with the same learner waiting and with policies without contexts; what they cost.
contexts: venv
	$(BIN)/python benchmarks/contexts.py

# How often the 95 % intervals of a fit, a comparison and a replay hold the truth, on simulated logs.
coverage: venv
	$(BIN)/python benchmarks/fit_coverage.py
	$(BIN)/python benchmarks/compare_coverage.py
	$(BIN)/python benchmarks/context_coverage.py

# How often a verdict is false, how soon it falls, what state()'s interval covers, and plans beside trials.
verdicts: venv
	$(BIN)/python -m benchmarks.verdicts

# Logs of up to 50 million pieces: seconds and memory of a fit.
bench-fit: venv
	$(BIN)/python benchmarks/fit_size.py

# Ten minutes of broken logs.
fuzz: venv
	$(PIP) -e '.[fuzz]'
	$(BIN)/python benchmarks/fuzz_fit.py

# The service under load, compared with a bare echo. Server and load generator have a core each.
bench-service: venv
	$(BIN)/python -m benchmarks.service_load

# Random keys compared with growing keys, in one run.
bench-keys: venv
	$(BIN)/python benchmarks/keys.py

# How many megabytes an installation takes: bare, with each extra, and of the client alone.
sizes: venv
	$(BIN)/python benchmarks/install_sizes.py

# The picture of the service's page that the documentation shows; needs Chromium.
screenshot: venv
	$(BIN)/python -m tests.screenshot

# An hour at 70 % of what the service can do: memory, errors, and the state at the end.
soak: venv
	$(BIN)/python -m benchmarks.service_soak

# The documentation as a site, in out/site: open out/site/index.html. Nothing is fetched.
docs: .venv/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open out/site/index.html"

# The types of the Python and the TypeScript client, from the OpenAPI description of the service.
clients: venv
	$(BIN)/python tools/client_types.py

# The picture of the rooms and what each imports, from pyproject.toml and the source.
map: venv
	$(BIN)/python tools/architecture.py

# Builds the sdists and wheels, installs and tries them offline, and tags the commit; uploads nothing: docs/releasing.md.
# make release REPOSITORY=https://host/owner/accrual
release: venv
	$(PIP) -e '.[release]'
	$(BIN)/python tools/release.py '$(REPOSITORY)'

# Other bandit libraries on the same problems.
bench-peers: venv
	$(PIP) -e '.[peers]'
	$(BIN)/python benchmarks/peers.py
	$(BIN)/python benchmarks/peer_contexts.py

# One line for a Python that is too old, before anything is made.
OLD = accrual needs Python 3.11 or newer, and $(PYTHON) is $(or $(shell $(PYTHON) --version 2>&1),not there): say make PYTHON=python3.12, or where a newer one is
.venv/bin/python:
	$(if $(shell $(PYTHON) -c 'import sys; print("new" if sys.version_info >= (3, 11) else "")' 2>/dev/null),,$(error $(OLD)))
	$(PYTHON) -m venv .venv

.venv/.run: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) -e '.[cli,plot,service]'
	touch $@

.venv/.docs: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) -e '.[docs,service,client]'
	touch $@

.venv/.all: .venv/bin/python pyproject.toml clients/python/pyproject.toml constraints.txt
	$(PIP) -e '.[all,test,lint]' -e clients/python
	touch $@ .venv/.run .venv/.docs

# Remove everything that was made here.
clean: Makefile
	rm -rf clients/typescript/node_modules clients/typescript/dist clients/typescript/build
	rm -rf .venv out .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
