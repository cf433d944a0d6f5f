#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=120
# The watchdog names a function by the program's symbols. Of a stripped program it knows only the address; then fdr info
# prints the function's name below the watchdog's reason, once the file with the symbols is there.
set -euo pipefail
: "${FDR_BUILD:?}" "${FDR_SOURCE:?}"
fdr=$FDR_BUILD/bin/fdr
lib=$FDR_BUILD/lib
if [ -n "${FDR_SANITIZE:-}" ]; then echo "sanitizers have handlers of their own"; exit 77; fi
if [ ! -x "$fdr" ]; then echo "no $fdr (jansson or zstd missing)"; exit 77; fi
if ! "$fdr" version --build | grep -q '^with:.*\bdw\b'; then echo "no names without libdw"; exit 77; fi
work=$(mktemp -d)
unset "${!FDR_@}"
FDR_LIVE_DIR=$(mktemp -d /dev/shm/fdr-names-XXXXXX 2>/dev/null || mktemp -d)
trap 'rm -rf "$work" "$FDR_LIVE_DIR"' EXIT
export FDR_LIVE_DIR FDR_DIR=$work FDR_BUFFER=1M
cd "$work"

cat >stands.c <<'END'
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
__attribute__((noinline)) void stands_here(void) { pthread_mutex_lock(&m); }
int main(void) { pthread_mutex_lock(&m); stands_here(); return 0; }
END
cc -g -O1 -finstrument-functions -o stands stands.c "-L$lib" "-Wl,-rpath,$lib" -lfdr-instrument -lfdr

# reason: runs the program until the watchdog has written a snapshot
reason() {
    rm -f ./*.fdr
    FDR_WATCHDOG=200ms ./stands &
    pid=$!
    for ((i = 0; i < 200; i++)); do
        [ -z "$(find . -name '*.fdr')" ] || break
        sleep 0.1
    done
    { kill -KILL $pid; wait $pid; } 2>/dev/null || true
}

reason
"$fdr" info ./*.fdr >out.txt
grep -q "^why  .*has stood in stands_here 0x[0-9a-f]* for .* for a lock of thread $pid (stands)" out.txt || { cat out.txt; exit 1; }
mv stands whole
strip -o stands whole
reason
mv whole stands
"$fdr" info ./*.fdr >out.txt
grep -A1 '^why  .*has stood in 0x[0-9a-f]* for' out.txt | tail -1 | grep -qE '^ +0x[0-9a-f]+ is stands_here at .*stands.c:3$' ||
    { cat out.txt; exit 1; }
