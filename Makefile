# perftrail: everything a contributor does, each with its own set-up. `make help` lists it.
PYTHON ?= python3
BIN := .venv/bin
# Tests start hundreds of Pythons: each would compile perftrail again where the environment forbids byte code.
unexport PYTHONDONTWRITEBYTECODE
SOURCES := pyproject.toml CMakeLists.txt $(wildcard launcher/* launcher/*/*)

.PHONY: help setup demo check test test-long campaign studies studies-full docs clean FORCE

help: ## list these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

setup: .venv/ready ## make .venv with perftrail in it; needs Python 3.11, a C compiler, make and git

# The editable install knows the modules that there were: a new one needs another install.
.venv/modules: FORCE
	@mkdir -p .venv
	@find src -name '*.py' | LC_ALL=C sort | cmp -s - $@ || find src -name '*.py' | LC_ALL=C sort > $@

.venv/ready: $(SOURCES) .venv/modules
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "perftrail needs Python 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing perftrail into .venv (a minute or two) ..." >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: setup ## find the release of a real Python package that changed its speed
	@$(BIN)/perftrail find studies/quick-start
	@echo "perftrail is $(BIN)/perftrail; this puts it on the path: . $(BIN)/activate" >&2

check: setup ## format, lint, import rules, types and the tests of what a study says
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/pytest -q -n 2 -m 'not slow' tests/model tests/studyfile tests/docs tests/charts tests/present tests/cli src

test: setup ## every test but the long ones: real builds, real kills, a browser
	$(BIN)/pytest -n 2 --dist worksteal --durations 20 -m 'not long' $(TESTS)

test-long: setup ## the long tests: simulations of searches, programs of benchmarks and campaigns
	$(BIN)/pytest -n 2 --dist worksteal --durations 10 -m long $(TESTS)

campaign: setup ## many trials that try to break what perftrail promises; at most half an hour
	$(BIN)/python -m campaign --seconds 180

OCAML := studies/ocaml-light-threads
TCL := studies/tcl-thread-allocator
SUITE := studies/tcl-suite
FEWER := --only benchmark=string,list,dict,regexp,expr,proc,file,thread
WITHOUT_5_3 := --only variant=tramp,cont,promise,lwt,equeue,callcc,sys,vm,tramp-4.06
SMALL := $(WITHOUT_5_3) --only numbers=1000,3000,10000,30000,100000 --only below=200,500,1000,2000,5000 --only length=20,30,50,100
LARGER := --only variant=tramp,cont,promise,callcc --only numbers=300000 --only below=10000 --only length=300,500,1000
OF_VM := --only variant=vm,tramp-4.06 --only numbers=300000 --only below=5000 --only length=200

studies: setup ## the papers' studies, at a size for half an hour; installs Debian packages
	studies/packages
	PERFTRAIL=$(CURDIR)/$(BIN)/perftrail studies/tcl-performance-history/run
	$(BIN)/perftrail run $(TCL) --only threads=0,2,25
	$(BIN)/perftrail report $(TCL) -o $(TCL)/answers
	$(BIN)/perftrail run $(SUITE) $(FEWER)
	$(BIN)/perftrail report $(SUITE) -o $(SUITE)/answers
	$(BIN)/perftrail run $(OCAML) $(SMALL)
	$(BIN)/perftrail run $(OCAML) $(LARGER)
	$(BIN)/perftrail run $(OCAML) $(OF_VM)
	$(BIN)/perftrail report $(OCAML) -o $(OCAML)/answers

studies-full: setup ## the same at the papers' sizes: hours
	studies/packages
	PERFTRAIL=$(CURDIR)/$(BIN)/perftrail studies/tcl-performance-history/run full
	for study in $(TCL) $(TCL)/preloaded.toml $(TCL)/tcl9.toml; do $(BIN)/perftrail run $$study; done
	$(BIN)/perftrail report $(TCL) -o $(TCL)/answers
	for study in $(SUITE) $(SUITE)/instructions.toml; do $(BIN)/perftrail run $$study; done
	$(BIN)/perftrail report $(SUITE) -o $(SUITE)/answers
	$(BIN)/perftrail run $(OCAML)
	$(BIN)/perftrail report $(OCAML) -o $(OCAML)/answers

docs: setup ## write the reference pages from the code
	$(BIN)/python docs/generate.py

clean: ## remove what make made here (measurements in .perftrail stay)
	rm -rf .venv .build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
