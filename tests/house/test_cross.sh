#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=house,cross,slow timeout=900
# On aarch64 the installed parts compile with warnings as errors, and the tests that qemu-user can run pass. With
# FDR_CROSS_ALL=1, as in ./dev cross, all tests compile, too. Needs Debian's cross compiler, qemu-user, and the
# libraries of scripts/cross.sh; `./dev cross` gets all of them.
#
# Not run: test_api_signals and test_fork. qemu-user delivers process-wide signals to threads that block them and does
# not know MADV_WIPEONFORK. Its plugin layer aborts in children of threads.
# The tests of the reader without the recorder do not run either: it has no CPU conditionals, and each takes a minute.
# Nor do scripts, because they run the command itself. An x86 host orders stores more strongly than aarch64. So this test
# checks instructions and logic; some of the models cover weaker orders (docs/ORDERING.md, "Models").
set -euo pipefail
: "${FDR_BUILD:?}" "${FDR_SOURCE:?}"
skip() { echo "skipped: $*"; exit 77; }
if [ -n "${FDR_SANITIZE:-}" ] || [ "${FDR_COVERAGE:-OFF}" = ON ]; then skip "plain builds only"; fi
for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
    command -v $tool >/dev/null || skip "no $tool (Debian: gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user; ./dev cross installs them)"
done
sysroot=${FDR_SYSROOT:-$FDR_SOURCE/build/aarch64-sysroot}
[ -f "$sysroot/.complete" ] || skip "no aarch64 libraries in $sysroot (./dev cross fetches them)"

build=$FDR_BUILD/aarch64
export FDR_SYSROOT=$sysroot FDR_STRESS_SNAPSHOTS=2 FDR_TEST_EMULATED=1
cmake -G Ninja -S "$FDR_SOURCE" -B "$build" -DCMAKE_TOOLCHAIN_FILE="$FDR_SOURCE/cmake/aarch64.cmake" \
    -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2 -DFDR_DEVELOPER=ON -DFDR_WERROR=ON >"$build.log" 2>&1 ||
    { cat "$build.log"; echo "cmake failed"; exit 1; }
runs=(bins numa reduction_chain api stress progress)
targets=(--target fdr_products "${runs[@]/#/test_}")
if [ "${FDR_CROSS_ALL:-0}" = 1 ]; then targets=(); fi
cmake --build "$build" -j2 "${targets[@]}" >"$build.log" 2>&1 ||
    { tail -50 "$build.log"; echo "does not compile for aarch64"; exit 1; }
echo "compiles for aarch64: $(find "$build" -name '*.o' | wc -l) objects"
file=$(find "$build/lib" -name 'libfdr.so.*.*' | head -1)
objdump=aarch64-linux-gnu-objdump
$objdump -d "$file" | grep 'mrs.*cntvct_el0' >/dev/null || { echo "libfdr.so for aarch64 does not read the counter"; exit 1; }
ctest --test-dir "$build" --output-on-failure -j2 \
    -R "^test_($(IFS='|' && echo "${runs[*]}"))\$"
