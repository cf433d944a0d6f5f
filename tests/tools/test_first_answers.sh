#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=120
# First answers of the command: fdr stats of a recording with samples only shows these and says so; copies of an inline
# function are one row; fdr export says before it writes more than 100 MB.
set -uo pipefail
: "${FDR_BUILD:?}" "${FDR_SOURCE:?}"
fdr=$FDR_BUILD/bin/fdr
lib=$FDR_BUILD/lib
include=$FDR_SOURCE/include
if [ -n "${FDR_SANITIZE:-}" ]; then echo "skipped: sanitizers change the sampled program"; exit 77; fi
if [ ! -x "$fdr" ]; then echo "skipped: no $fdr (jansson or zstd missing)"; exit 77; fi
if ! "$fdr" version --build | grep -q '^with:.*\bdw\b'; then echo "skipped: no names without libdw"; exit 77; fi
work=$(mktemp -d)
unset "${!FDR_@}"
FDR_LIVE_DIR=$(mktemp -d /dev/shm/fdr-first-XXXXXX 2>/dev/null || mktemp -d)
trap 'rm -rf "$work" "$FDR_LIVE_DIR"' EXIT
export FDR_LIVE_DIR FDR_DIR=$work FDR_FINALIZE=snapshot
cd "$work" || exit 1
failed=0
fail() { echo "FAILED: $*"; failed=1; }

cat >strings.h <<'END'
static __attribute__((noinline)) int length_of(const char *s) { int n = 0; while (s[n]) n++; return n; }
END
for part in one two three; do
    printf '#include "strings.h"\nint %s(void) { return length_of("%s"); }\n' $part $part >$part.c
done
cat >program.c <<'END'
#include <fdr/fdr.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
int one(void), two(void), three(void);
static volatile unsigned long sink;
__attribute__((noinline, no_instrument_function)) static void burn(void)
{
    clock_t until = clock() + CLOCKS_PER_SEC / 4;
    while (clock() < until) for (int i = 0; i < 1000; i++) sink += (unsigned long)i;
}
__attribute__((no_instrument_function)) int main(int argc, char **argv)
{
    struct fdr_config c = {.size = sizeof c};
    (void)argc;
    if (fdr_init(&c)) return 1;
    if (!strcmp(argv[1], "samples")) burn();
    if (!strcmp(argv[1], "copies")) one(), two(), three();
    fdr_region r = fdr_region_define("call", NULL, 0);
    if (!strcmp(argv[1], "calls")) for (int i = atoi(argv[2]); i--;) fdr_enter(r), fdr_leave(r);
    return 0;
}
END
gcc -g -O1 -finstrument-functions "-I$include" program.c one.c two.c three.c -o program "-L$lib" \
    "-Wl,-rpath,$lib" -lfdr-instrument -lfdr || exit 1

# ---- samples only ----
mkdir samples
FDR_DIR=samples FDR_SAMPLE=1kHz ./program samples || fail "the sampled program"
"$fdr" stats samples/*.fdr >out.txt || fail "fdr stats of samples only"
head -1 out.txt | grep -q '^# this recording has samples only, no calls' || { fail "stats of samples only"; cat out.txt; }
"$fdr" samples samples/*.fdr >samples.txt || fail "fdr samples"
tail -n +2 out.txt | cmp -s - samples.txt || { fail "fdr stats shows something else than fdr samples"; cat out.txt; }
grep -q burn out.txt || fail "the sampled function is missing"

# ---- copies of an inline function ----
mkdir copies
FDR_DIR=copies ./program copies || fail "the program with copies"
"$fdr" stats copies/*.fdr >out.txt || fail "fdr stats of copies"
[ "$(grep -c length_of out.txt)" = 1 ] || { fail "rows of length_of"; cat out.txt; }
grep length_of out.txt | grep -qE '(^| )3 ' || { fail "calls of length_of"; cat out.txt; }

# ---- a large export ----
for calls in 1000 1000000; do
    mkdir "calls-$calls"
    FDR_DIR=calls-$calls FDR_BUFFER=64M ./program calls $calls || fail "$calls calls"
    # both streams in one pipe: the message comes before the first byte of the output
    "$fdr" export --to chrome -o - "calls-$calls"/*.fdr 2>&1 | head -c 400 | head -1 >first-$calls.txt
done
grep -qE '^fdr: -: 2000[0-9]* events make some 120 MB of chrome; --fit, --from, --depth and --min-duration leave some out$' \
    first-1000000.txt || { fail "the large export"; cat first-1000000.txt; }
if grep -q '^fdr: ' first-1000.txt; then fail "the small export" && cat first-1000.txt; fi
exit $failed
