#!/usr/bin/env bash
# The unsafe code under memory checkers: the unit tests of the modules that have any, and fits through all of them.
#
# - the address sanitizer, which this compiler brings along but wants to be asked for by RUSTC_BOOTSTRAP;
# - valgrind, which knows AVX2 but not AVX-512, so that it sees the AVX2 and the portable code.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
triple=$(rustc -vV | sed -n 's/^host: //p')
filters=(linalg:: solver::tiles:: solver::kernel::)

echo "address sanitizer"
RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address -Cforce-frame-pointers=yes" \
    $cargo test --locked -p outlast --lib --target "$triple" --target-dir target/sanitize -- "${filters[@]}"
RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address -Cforce-frame-pointers=yes" \
    $cargo test --locked -p outlast --test all --target "$triple" --target-dir target/sanitize -- kernel:: kernel_many:: hostile_matrix:: fuzzed::

if command -v valgrind >/dev/null; then
    echo "valgrind"
    binary=$($cargo test --locked -p outlast --lib --no-run --message-format=json | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
    RAYON_NUM_THREADS=2 valgrind --quiet --error-exitcode=9 "$binary" --test-threads=1 "${filters[@]}"
else
    echo "*** valgrind is not installed: not run"
fi
