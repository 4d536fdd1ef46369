# Everything by one word, from a cold clone, on Linux or macOS with cargo and Python 3.10 or later.
#
#   make demo    build the command and let it show itself; the picture and the page of an audit land in demo-output/
#   make test    format, lints, Rust tests in two profiles, Python tests, doc examples
#   make docs    the documentation site, in docs-output/index.html
#   make bench   one table against scikit-learn, scikit-learn-intelex and rehline (DATA=folder adds real data), dask and growth
#   make bench-growth  the fit of data larger than memory, up to 20 million rows
#   make bench-audit   how well wrong labels are ranked, against cleanlab (DATA=folder adds real data)
#   make fuzz    coverage-guided fuzzing of every reader and of fits, SECONDS=60 for each target
#   make differential   COUNT=3000 random problems against Clarabel
#   make faults  KILLS=100 kills of each command that writes, a full disk, a read-only folder
#   make soak    fits and predictions for MINUTES=10, with an eye on memory and speed
#   make sanitize   the unsafe code under the address sanitizer and valgrind
#   make deny    licences and sources of what is compiled in (cargo-deny)
#   make wheel   the Python wheel, in dist/: one for Python 3.10 and everything later
#   make clean   remove what the others made

PYTHON ?= python3
CARGO ?= cargo
DATA ?=
BENCH_ARGS ?=
SECONDS ?= 60
COUNT ?= 3000
KILLS ?= 100
MINUTES ?= 10

SITE := "sphinx>=8,<10" "myst-parser>=4,<6" "furo>=2024.8" "numpydoc>=1.8,<2" "sphinx-gallery>=0.18,<1" \
	"sphinx-copybutton>=0.5,<1" "sphinx-mathjax-offline<1"

PEERS := scikit-learn-intelex rehline cvxpy dask-ml

# From a cold clone, what would make the next build quicker makes this one slower by half. `cargo` on its own keeps its ways.
export CARGO_INCREMENTAL := 0
# Nor does a debugger look at what is tested here.
export CARGO_PROFILE_DEV_DEBUG := 0

VENV := .venv
BENCH := .bench
SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock pyproject.toml

.PHONY: demo test rust-lint rust-test browser python-packages python-test bench bench-growth bench-audit fuzz differential faults soak sanitize deny wheel clean

demo:
	mkdir -p demo-output
	$(CARGO) run --release --locked -p outlast-cli -- demo -o demo-output/outlast-demo.svg --html demo-output/outlast-audit.html

# Packages and the browser come over the network while lints are compiled.
test:
	$(MAKE) -j2 rust-lint python-packages
	$(MAKE) rust-test
	$(MAKE) python-test

# Crates that depend on each other are packed together by cargo 1.90 and later.
rust-lint:
	if $(CARGO) fmt --version >/dev/null 2>&1; then $(CARGO) fmt --all --check; \
	else echo "cargo fmt is not installed: the format is not checked"; fi
	if $(CARGO) clippy --version >/dev/null 2>&1; then $(CARGO) clippy --locked --workspace --all-targets -- -D warnings; \
	else echo "cargo clippy is not installed: lints are not checked"; fi
	$(CARGO) tree --locked --quiet --manifest-path fuzz/Cargo.toml >/dev/null
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps --workspace --lib
	$(CARGO) package --locked --quiet --no-verify --allow-dirty --workspace --exclude outlast-python

# The dev profile (optimised, with overflow checks and debug assertions) runs everything but the reproductions, which are long fits; the
# release profile runs these, and all that the Python tests do. nextest runs no doc examples, so these have a line of their own. Cargo unites
# the features of the packages that a line names: lines of one profile name packages of the same features, or all would be compiled again.
rust-test:
	$(CARGO) check --locked -p outlast --no-default-features
	if $(CARGO) nextest --version >/dev/null 2>&1; then $(CARGO) nextest run --locked; else $(CARGO) test --locked --lib --bins --tests; fi
	$(CARGO) test --locked --doc -p outlast -p outlast-cli -p outlast-reproduce
	$(CARGO) test --locked --release --lib --test experiments -p outlast-reproduce -p outlast-python

$(VENV)/.packages: pyproject.toml Makefile
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet maturin pytest pytest-xdist pandas polars pyarrow scikit-learn mypy cvxpy matplotlib onnx onnxruntime selenium libsvm-official liblinear-official "dask[array,dataframe]" distributed
	touch $@

$(VENV)/.built: $(VENV)/.packages $(SOURCES)
	VIRTUAL_ENV="$(abspath $(VENV))" $(VENV)/bin/maturin develop --release --locked --quiet
	touch $@

# Chromium and its driver, in which the audit page is tested: found, or installed where that is allowed.
browser:
	@if [ "$$OUTLAST_NO_BROWSER" = 1 ]; then \
	    echo "*** OUTLAST_NO_BROWSER=1: the audit page is NOT tested in a browser"; \
	elif command -v chromedriver >/dev/null && \
	    { command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium chromium-driver >/dev/null; then :; \
	else \
	    echo "*** Chromium and chromedriver are not installed and can't be installed from here (no root, or no apt-get)."; \
	    echo "*** The audit page can't be tested without them. Install them (apt-get install chromium chromium-driver),"; \
	    echo "*** or go without that test, on your own responsibility: OUTLAST_NO_BROWSER=1 make test"; \
	    exit 1; \
	fi

python-packages: browser $(VENV)/.packages

python-test: browser $(VENV)/.built
	$(VENV)/bin/python -m pytest -q -n auto --dist worksteal

$(BENCH)/.packages: pyproject.toml Makefile
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet maturin pandas scikit-learn "dask[array,dataframe]" distributed
	for peer in $(PEERS); do \
	    $(BENCH)/bin/python -m pip install --quiet $$peer || echo "$$peer can't be installed here: its rows are left out"; \
	done
	touch $@

$(BENCH)/.built: $(BENCH)/.packages $(SOURCES)
	VIRTUAL_ENV="$(abspath $(BENCH))" $(BENCH)/bin/maturin develop --release --locked --quiet
	touch $@

bench: $(BENCH)/.built
	$(BENCH)/bin/python bench/run.py $(if $(DATA),--data "$(DATA)") $(BENCH_ARGS)
	$(if $(BENCH_ARGS),,$(BENCH)/bin/python bench/dask_fits.py --growth)

# The fit of data larger than memory, from half a million to twenty million rows.
bench-growth: $(BENCH)/.built
	$(BENCH)/bin/python bench/stream.py

bench-audit: $(BENCH)/.built
	$(BENCH)/bin/python -m pip install --quiet cleanlab || echo "cleanlab can't be installed here: its columns are left out"
	$(BENCH)/bin/python bench/audit.py $(if $(DATA),--data "$(DATA)") $(BENCH_ARGS)

# What takes minutes and more of what docs/reliability.md reports; `make test` runs a little of each.
fuzz:
	CARGO="$(CARGO)" fuzz/run $(SECONDS)

differential:
	OUTLAST_DIFFERENTIAL=$(COUNT) $(CARGO) test --locked --release -p outlast --test all differential -- --nocapture

faults:
	OUTLAST_KILLS=$(KILLS) $(CARGO) test --locked --release -p outlast-cli --test cli faults -- --nocapture --test-threads=2
	$(CARGO) build --locked --release -p outlast-cli
	tests/full_disk.sh target/release/outlast

soak:
	$(CARGO) run --locked --release -p outlast --example soak -- $(MINUTES)

sanitize:
	CARGO="$(CARGO)" tests/sanitize.sh

deny:
	if $(CARGO) deny --version >/dev/null 2>&1; then :; else $(CARGO) install --locked cargo-deny; fi
	$(CARGO) deny --locked check licenses bans sources
	$(CARGO) deny --locked check advisories || echo "*** the advisory database can't be fetched from here: advisories are NOT checked"

wheel: $(VENV)/.packages
	$(VENV)/bin/maturin build --release --locked --out dist

$(VENV)/.site: $(VENV)/.packages
	$(VENV)/bin/python -m pip install --quiet $(SITE)
	touch $@

.PHONY: docs
docs: $(VENV)/.site $(VENV)/.built
	$(VENV)/bin/python -m sphinx -E -W --keep-going -q -d docs-output/.doctrees docs docs-output

clean:
	$(CARGO) clean
	rm -rf docs-output docs/examples docs/reference/generated docs/sg_execution_times.rst
	rm -rf $(VENV) $(BENCH) dist demo-output bench-output .pytest_cache .mypy_cache python/outlast/_core*.so
	find python bench -name __pycache__ -type d -exec rm -rf {} +
