# Everything by one word, from a cold clone, on Linux or macOS with cargo and Python 3.10 or later.
#
#   make demo    build the command and let it show itself; the picture lands in demo-output/
#   make test    format, lints, Rust tests in two profiles, Python tests, doc examples
#   make bench   one table against scikit-learn, scikit-learn-intelex and rehline (DATA=folder adds real data)
#   make wheel   the Python wheel, in dist/
#   make clean   remove what the others made

PYTHON ?= python3
CARGO ?= cargo
DATA ?=
BENCH_ARGS ?=

VENV := .venv
BENCH := .bench
TARGET := $(or $(CARGO_TARGET_DIR),target)
SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock pyproject.toml

.PHONY: demo test rust-lint rust-test python-test bench wheel clean

demo:
	$(CARGO) build --release --locked -p outlast-cli
	mkdir -p demo-output
	"$(TARGET)/release/outlast" demo --output demo-output/demo.svg

test: rust-lint rust-test python-test

rust-lint:
	if $(CARGO) fmt --version >/dev/null 2>&1; then $(CARGO) fmt --all --check; fi
	if $(CARGO) clippy --version >/dev/null 2>&1; then $(CARGO) clippy --locked --workspace --all-targets -- -D warnings; fi

# The dev profile (optimised, with overflow checks and debug assertions) runs everything; the release profile runs the
# core once more, as users get it. nextest runs no doc examples, so these have a line of their own.
rust-test:
	if $(CARGO) nextest --version >/dev/null 2>&1; then $(CARGO) nextest run --locked; else $(CARGO) test --locked --lib --bins --tests; fi
	$(CARGO) test --locked --doc -p outlast
	$(CARGO) test --locked --release --lib -p outlast

$(VENV)/.packages: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet maturin pytest pandas scikit-learn mypy
	touch $@

$(VENV)/.built: $(VENV)/.packages $(SOURCES)
	VIRTUAL_ENV="$(abspath $(VENV))" $(VENV)/bin/maturin develop --release --locked --quiet
	touch $@

python-test: $(VENV)/.built
	$(VENV)/bin/python -m pytest -q

$(BENCH)/.packages: pyproject.toml
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet maturin pandas scikit-learn scikit-learn-intelex rehline
	touch $@

$(BENCH)/.built: $(BENCH)/.packages $(SOURCES)
	VIRTUAL_ENV="$(abspath $(BENCH))" $(BENCH)/bin/maturin develop --release --locked --quiet
	touch $@

bench: $(BENCH)/.built
	$(BENCH)/bin/python bench/run.py $(if $(DATA),--data "$(DATA)") $(BENCH_ARGS)

wheel: $(VENV)/.packages
	$(VENV)/bin/maturin build --release --locked --out dist

clean:
	$(CARGO) clean
	rm -rf $(VENV) $(BENCH) dist demo-output bench-output .pytest_cache .mypy_cache python/outlast/_core*.so
	find python bench -name __pycache__ -type d -exec rm -rf {} +
