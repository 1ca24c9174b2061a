# make run    set up and open the TUI; without a terminal: a measurement of one to two minutes and its projection
# make test   set up, lint and run the whole suite; what this machine lacks is skipped and said
# make ready  what the suite needs: the packages and, where there is docker, the image
# make suite  the tests and the coverage gate alone, once all is ready
# make bare   the tests that depend on tools of the machine, without the slow ones: .ci/run hides the tools for it
# make lint   ruff, mypy --strict, import contracts
# make docs   the site, in site/; every link and every name in it must exist (make test builds it too)
# make reference  reference tables and outputs of commands in README and docs, written anew from the code
# make bench  all figures beside their baselines of the same run: tests/benchmarks/*.txt
# make study  seeded studies of intervals, verdicts and models, each with its table in tests/studies; about an hour
# make mutants  a seeded sample of 200 changes of code that computes; the tests should notice 90 %; survivors are listed
# make fuzz   a million mangled inputs: counts, and the seed of each failure
# make chaos  500 runs that are struck by kills, full disks, broken daemons and the like, and 50 kills on every real place
# make resolve  plain pip finds versions for `.[all]` in two minutes; new releases of others can change that
# make newest  conformance with the newest releases of all SDKs, in a fresh environment; for a weekly schedule
# make lock   pin the constraints anew

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Half of the tests wait, for a daemon, a process or a screen: seven workers keep two cores busy, and eight cost more than
# they bring. Whoever is done takes over tests of those who are not, as files differ a hundredfold.
WORKERS ?= 7

COVERED := 'costmodel/*,taxtui/recording/*,taxtui/live/state.py,taxtui/sandboxes/kit/shell/framed_shell.py,taxtui/runner/*'

.PHONY: run ready lint suite bare test docs reference lock snapshots screenshots bench study mutants fuzz chaos resolve newest clean
.NOTPARALLEL: # one after the other, whatever MAKEFLAGS say

run: $(VENV)/.run
	@if [ -t 0 ] && [ -t 1 ]; then exec $(BIN)/taxtui; else \
		recording=$$($(BIN)/taxtui run) && \
		$(BIN)/taxtui project "$$recording"; fi

test: ready lint suite

ready: $(VENV)/.test
	@if docker image inspect taxtui-base:bookworm >/dev/null 2>&1; then \
		$(BIN)/taxtui setup --base taxtui-base:bookworm >/dev/null; fi

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Tests, studies and benchmarks start hundreds of interpreters, which would all compile everything anew.
export PYTHONDONTWRITEBYTECODE =
suite: $(VENV)/.test
	$(BIN)/pytest -n $(WORKERS) --dist worksteal --cov --cov-report= $(ARGS)
	@$(BIN)/coverage report --fail-under=95 --skip-covered --include=$(COVERED)

# The tests whose behaviour depends on docker, bubblewrap, sshd and other tools of the machine; .ci/run hides these.
bare: $(VENV)/.test
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not slow and not real_tools" \
		$(addprefix --ignore=tests/taxtui/,importers live plan recording report tui) tests/taxtui tests/suite $(ARGS)

# mkdocs-material's note on its own future is no warning about this site.
docs: $(VENV)/.test
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# All figures, each beside a baseline of the same run; ARGS="dispatch ui" runs these alone.
bench: $(VENV)/.test
	$(BIN)/python -m tests.support.printouts benchmarks $(ARGS)

# Seeded studies of intervals, verdicts and models, each with its table; ARGS="tails power" runs these alone.
study: $(VENV)/.test
	$(BIN)/python -m tests.support.printouts studies $(ARGS)

# A seeded sample of mutants of the rooms that compute; ARGS="--count 20 --seed 2". Survivors are listed.
mutants: $(VENV)/.test
	$(BIN)/python -m tests.support.mutants $(ARGS)

fuzz: $(VENV)/.test
	$(BIN)/python -m tests.support.fuzz.fuzzing $(if $(SEED),--seed $(SEED))

# Runs that are struck, with counts, and what repeats a failure.
chaos: $(VENV)/.test
	$(BIN)/python -m tests.support.chaos $(if $(SEED),--seed $(SEED))
	$(BIN)/python -m tests.support.chaos --kills

# In a fresh environment, with the newest releases; PYTHON=python3.12 asks for that one.
RESOLVE_S ?= 120
resolve:
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && $(PYTHON) -m venv "$$folder" && { \
		timeout $(RESOLVE_S) "$$folder/bin/pip" install --dry-run --quiet --disable-pip-version-check '.[all]' || { \
			echo "pip did not resolve '.[all]' within $(RESOLVE_S) s" >&2; exit 1; }; }

# No constraints: a release that breaks an adapter fails here first. NEWEST=docker,aws,kubernetes,daytona,ssh,ray has Ray too.
NEWEST ?= docker,aws,kubernetes,daytona,ssh
newest:
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && $(PYTHON) -m venv "$$folder" && \
		"$$folder/bin/pip" install --quiet --disable-pip-version-check uv && \
		"$$folder/bin/uv" pip install --quiet --python "$$folder/bin/python" --upgrade --group test -e '.[$(NEWEST)]' && \
		"$$folder/bin/uv" pip list --python "$$folder/bin/python" | \
			grep -E '^(docker|boto3|botocore|kubernetes|daytona|asyncssh|websockets|aiohttp|ray|moto) ' && \
		"$$folder/bin/python" -m pytest -q -n $(WORKERS) --dist worksteal tests/taxtui/substrates/test_conformance.py \
			$(if $(findstring ray,$(NEWEST)),tests/taxtui/runner/fanout/test_ray.py) $(ARGS)

snapshots: $(VENV)/.test
	$(BIN)/pytest tests/taxtui/tui --snapshot-update

# Reference tables and outputs of commands. A test fails while a page is out of date; outputs that take a minute are
# compared in CI only.
reference: $(VENV)/.test
	$(BIN)/python -m tests.support.reference

# Pictures of the screens, from recordings/run.msgpack.
screenshots: $(VENV)/.test
	$(BIN)/python -m tests.support.documents.screenshots

lock:
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile --no-strip-extras --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		--no-emit-index-url --all-extras --group dev pyproject.toml .ci/build.in --output-file .ci/constraints.txt
	echo uv | $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		--no-emit-index-url - --output-file .ci/uv.txt

clean:
	rm -rf $(VENV) dist build site .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis

# Cleared, as half of another Python's environment is left where one is made over it.
$(VENV)/.run: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "taxtui needs Python 3.11 or newer: make PYTHON=python3.12 run")'
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[docker]'
	@touch $@

# uv takes seconds where pip takes two minutes; pip is for a machine whose index uv does not know.
$(VENV)/.test: pyproject.toml .ci/constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "taxtui needs Python 3.11 or newer: make PYTHON=python3.12 test")'
	$(PYTHON) -m venv --clear $(VENV)
	{ $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r .ci/uv.txt && \
		$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r .ci/constraints.txt; } || \
		$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r .ci/constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@ $(VENV)/.run
