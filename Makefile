# perftrail: everything a contributor does, each with its own set-up. `make help` lists it.
PYTHON ?= python3
BIN := .venv/bin
# Tests start hundreds of Pythons: each would compile perftrail again where the environment forbids byte code.
unexport PYTHONDONTWRITEBYTECODE
# Versions and hashes of requirements/dev.txt; with an empty LOCKED, the newest versions in the ranges of pyproject.toml.
LOCKED ?= yes
SOURCES := pyproject.toml CMakeLists.txt $(wildcard launcher/* launcher/*/*)
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check

.PHONY: help setup demo check test test-long durations campaign studies studies-full docs site coverage lock wheel release image image-base sbom tools clean FORCE

help: ## list these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

setup: .venv/ready ## make .venv with perftrail in it; needs Python 3.11, a C compiler, make and git; LOCKED= ignores the lock

# The editable install knows the modules that there were: a new one needs another install.
.venv/modules: FORCE
	@mkdir -p .venv
	@find src -name '*.py' | LC_ALL=C sort | cmp -s - $@ || find src -name '*.py' | LC_ALL=C sort > $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "perftrail needs Python 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv .venv

# The build backend is installed first: perftrail is then built without an isolated environment of newer packages.
.venv/runtime: requirements/build.txt requirements/runtime.txt | $(BIN)/python
	@echo "installing perftrail's dependencies into .venv (a minute; longer on a busy machine) ..." >&2
	@$(BIN)/python $(PIP_INSTALL) --require-hashes $(patsubst %,--requirement %,$(filter %.txt,$^))
	@touch $@

.venv/locked: requirements/dev.txt | .venv/runtime
	@echo "installing the tools for tests and checks into .venv (a minute or two; longer on a busy machine) ..." >&2
	@$(BIN)/python $(PIP_INSTALL) --require-hashes --requirement requirements/dev.txt
	@rm -f .venv/newest; touch $@

.venv/newest: pyproject.toml requirements/build.in | $(BIN)/python
	@echo "installing the newest dependencies into .venv (a minute or two) ..." >&2
	@$(BIN)/python $(PIP_INSTALL) --upgrade --requirement requirements/build.in
	@$(BIN)/python $(PIP_INSTALL) --upgrade --no-build-isolation --editable '.[dev]'
	@rm -f .venv/locked .venv/runtime; touch $@

.venv/installed: $(SOURCES) .venv/modules $(if $(LOCKED),.venv/runtime,.venv/newest)
	@echo "installing perftrail into .venv ..." >&2
	@$(BIN)/python $(PIP_INSTALL) --no-build-isolation --no-deps --editable .
	@touch $@

.venv/ready: .venv/installed $(if $(LOCKED),.venv/locked,.venv/newest)
	@touch $@

demo: .venv/installed ## find the release of a real Python package that changed its speed
	@$(BIN)/perftrail find studies/quick-start
	@echo "perftrail is $(BIN)/perftrail; this puts it on the path: . $(BIN)/activate" >&2

check: setup ## format, lint, import rules, types and the tests of what a study says
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	@# The types are checked while tests run: mypy uses one core, for a minute without its cache.
	$(BIN)/mypy > .venv/types 2>&1 & types=$$!; \
	$(BIN)/pytest -q --workers 2 -m 'not slow' tests/model tests/studyfile tests/docs tests/charts tests/present src; tests=$$?; \
	wait $$types; types=$$?; cat .venv/types; exit $$(( $$tests || $$types ))

# Tests that wait run beside those that compute: two workers more than processors.
WORKERS := $$(( $$(nproc) + 2 ))

test: setup ## every test but the long ones: real builds, real kills, a browser
	$(BIN)/pytest --workers $(WORKERS) --durations 20 -m 'not long' $(TESTS)

test-long: setup .build/site/ready ## the long tests: simulations, programs of benchmarks, campaigns and studies
	$(BIN)/pytest --workers $(WORKERS) --durations 10 -m long $(or $(TESTS),tests)

durations: setup ## store what the tests of make test cost, by kind and file; on a quiet machine
	$(BIN)/pytest --workers $(WORKERS) --store-durations -m 'not long' $(TESTS)

campaign: setup ## many trials that try to break what perftrail promises; at most half an hour
	$(BIN)/python -m campaign --seconds 180

coverage: setup ## executed lines and branches of the C code, by file
	$(BIN)/python -m tests.process.launcher.coverage

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

# Sphinx reads a copy: pages of other directories are symbolic links in docs, and links lead only to files.
site: .build/site/ready ## build the site from docs into .build/site/html; a warning, for example of a dead link, is an error
	rm -rf .build/site/docs
	cp -rLp docs .build/site/docs
	.build/site/bin/python -m sphinx --quiet --fail-on-warning --keep-going -c docs -d .build/site/pickles -b html .build/site/docs .build/site/html

.build/site/ready: requirements/site.txt
	@echo "installing Sphinx into .build/site ..." >&2
	@test -x .build/site/bin/python || $(PYTHON) -m venv .build/site
	@.build/site/bin/python $(PIP_INSTALL) --require-hashes --requirement requirements/site.txt
	@touch $@

# Every other lock has the versions of dev.txt.
COMPILE = UV_CUSTOM_COMPILE_COMMAND="make lock" .build/tools/bin/uv pip compile --quiet --universal --generate-hashes \
  --python-version 3.11 --no-emit-index-url $(UPGRADE)
lock: tools ## write the locks of requirements/ from the ranges in pyproject.toml; UPGRADE=--upgrade takes newest versions
	$(COMPILE) --extra dev pyproject.toml requirements/build.in -o requirements/dev.txt
	$(COMPILE) -c requirements/dev.txt pyproject.toml -o requirements/runtime.txt
	$(COMPILE) -c requirements/dev.txt pyproject.toml requirements/build.in -o requirements/action.txt
	$(COMPILE) -c requirements/dev.txt --extra cluster --extra report pyproject.toml -o requirements/image.txt
	$(COMPILE) -c requirements/dev.txt requirements/build.in -o requirements/build.txt
	$(COMPILE) -c requirements/dev.txt requirements/build.in requirements/release.in -o requirements/release.txt
	$(COMPILE) -c requirements/dev.txt --group site -o requirements/site.txt
	$(COMPILE) requirements/tools.in -o requirements/tools.txt

# The date of the commit is the date of the files in the wheel: two builds have equal bytes.
wheel: setup ## build the wheel into dist, with equal bytes for equal sources
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m pip wheel --quiet --disable-pip-version-check \
	  --no-build-isolation --no-deps --wheel-dir dist .

release: .build/release/ready sbom ## build and check all that a release publishes into dist: sdist, wheels of each platform, sums
	.build/release/bin/python -m release $(if $(TAG),--tag $(TAG))

.build/release/ready: requirements/release.txt
	@echo "installing the compiler of releases into .build/release ..." >&2
	@test -x .build/release/bin/python || $(PYTHON) -m venv .build/release
	@.build/release/bin/python $(PIP_INSTALL) --require-hashes --requirement requirements/release.txt
	@touch $@

IMAGE := deploy/image/Dockerfile
image: ## build the container image perftrail with the wheel in dist; needs Docker, and make release before
	docker build --tag perftrail --file $(IMAGE) .

image-base: ## name the newest base of the container image by its digest
	base=$$(sed -n 's/^FROM \([^@]*\)@.*/\1/p' $(IMAGE)); \
	digest=$$(docker buildx imagetools inspect "$$base" --format '{{.Manifest.Digest}}') \
	  && sed -i "s|^FROM .*|FROM $$base@$$digest|" $(IMAGE)

sbom: setup tools ## write dist/sbom.json: what perftrail needs, with hashes and licences, in CycloneDX
	@mkdir -p dist
	.build/tools/bin/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible --of JSON \
	  -o dist/sbom.json requirements/runtime.txt
	$(BIN)/python -m requirements.sbom dist/sbom.json

tools: .build/tools/ready

.build/tools/ready: requirements/tools.txt
	@echo "installing tools into .build/tools ..." >&2
	@test -x .build/tools/bin/python || $(PYTHON) -m venv .build/tools
	@.build/tools/bin/python $(PIP_INSTALL) --require-hashes --requirement requirements/tools.txt
	@touch $@

clean: ## remove what make made here (measurements in .perftrail stay)
	rm -rf .venv .build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
