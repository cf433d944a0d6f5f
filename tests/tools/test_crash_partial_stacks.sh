#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=300 promise=P8
# P8: a bundle may hold only a part of a stack. fdr crash and fdr hang say that callers are missing and how many bytes
# were kept. They never show remains of earlier calls as callers. A complete stack has no such line.
set -euo pipefail
: "${FDR_BUILD:?}" "${FDR_SOURCE:?}"
fdr=$FDR_BUILD/bin/fdr
lib=$FDR_BUILD/lib
options=(-g -O1 -w "-I$FDR_SOURCE/include" "-L$lib" "-Wl,-rpath,$lib" -pthread)
if [ -n "${FDR_SANITIZE:-}" ]; then echo "sanitizers have handlers of their own"; exit 77; fi
if [ ! -x "$fdr" ]; then echo "no $fdr (jansson or zstd missing)"; exit 77; fi
if ! "$fdr" version --build | grep -q '^with:.*\bdw\b'; then echo "no stacks without libdw"; exit 77; fi
work=$(mktemp -d)
unset "${!FDR_@}"
FDR_LIVE_DIR=$(mktemp -d /dev/shm/fdr-cut-XXXXXX 2>/dev/null || mktemp -d)
trap 'rm -rf "$work" "$FDR_LIVE_DIR"' EXIT
export FDR_LIVE_DIR FDR_DIR=$work FDR_BUFFER=1M
cd "$work"

bad=0
has() { grep -qE -- "$1" "$2" || { echo "$what: no '$1' in:"; cat "$2"; bad=1; }; }
has_not() { if grep -qE -- "$1" "$2"; then echo "$what: '$1' is in:"; cat "$2"; bad=1; fi; }

cat >snapshot_cut.c <<'END'
#include <fdr/fdr.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define APART __attribute__((noinline))
#define KEEP __asm__ volatile("" ::: "memory")
static int *volatile nowhere = (int *)16;
static const char *how;
static volatile int ready;
static int end(void)
{
    ready = 1;
    if (*how == 'h' || *how == 'o') pause();
    return *nowhere;
}
APART static int litter(int n) { int r = n ? litter(n - 1) : (int)write(-1, "", 0); KEEP; return r + 1; }
/* Leaves return addresses in the part of the stack where wide's array will be, not far from its lower end. */
APART static int litter_below(int n)
{
    char room[2500000];
    __asm__ volatile("" ::"r"(room) : "memory");
    int r = litter(n);
    KEEP;
    return r;
}
APART static int wide(int n)
{
    char room[3000000];
    __asm__ volatile("" ::"r"(room) : "memory");
    int r = *nowhere + room[n];
    KEEP;
    return r;
}
APART static int wide_below(int n)
{
    char room[3000000];
    __asm__ volatile("" ::"r"(room) : "memory");
    int r = end() + room[n];
    KEEP;
    return r;
}
APART static int deep(int n) { int r = n ? deep(n - 1) : end(); KEEP; return r + 1; }
APART static int caller(void)
{
    int r = 0;
    if (!strcmp(how, "wide")) r = litter_below(200), r += wide(9);
    if (!strcmp(how, "below")) r = litter_below(200), r += wide_below(9);
    if (!strcmp(how, "deep")) r = deep(4000);
    if (!strcmp(how, "shallow")) r = deep(5);
    if (*how == 'h') FDR_REGION("barrier") r = deep(400);
    if (*how == 'o') r = deep(400);
    KEEP;
    return r;
}
static void *other(void *unused) { caller(); return unused; }
int main(int argc, char **argv)
{
    pthread_t t;
    (void)argc;
    how = argv[1];
    fdr_init(0);
    if (*how != 'o') return caller();
    pthread_create(&t, NULL, other, NULL);
    while (!ready) usleep(1000);
    usleep(20000);
    return *nowhere;
}
END
gcc "${options[@]}" snapshot_cut.c -o cut -lfdr

cat >look.py <<'END'
# look.py DYING|OTHER CUT OUTERMOST LEAST: JSON of the thread
import json, sys
who, cut, outermost, least = sys.argv[1:]
[d] = json.load(sys.stdin)
[t] = [t for t in d["threads"] if not t["own"] and t["faulting"] == (who == "dying")]
names = [f["function"] for f in t["frames"]]
assert t["cut"] == (cut == "cut"), t["cut"]
assert names[-1].startswith(outermost) and len(names) >= int(least), names
assert not any(f["guessed"] or f["function"] == "litter" for f in t["frames"]), names
END
missing='^  \(callers are missing: of the larger stack, the file has [0-9]+ addresses from the first '
# dies HOW, then arguments of look.py: which thread, incomplete or not, its last frame, least number of frames
dies()
{
    what=$1
    rm -f ./*.crash.fdr
    { (ulimit -c 0 -s 16384; ./cut "$1" || true); } 2>/dev/null
    "$fdr" crash ./*.crash.fdr >out.txt
    "$fdr" crash --json ./*.crash.fdr | python3 look.py "${@:2}" || { echo "FAIL: $what"; cat out.txt; bad=1; }
}
dies shallow dying whole _start 8
has_not 'callers are missing' out.txt
dies deep dying cut deep 100
has "${missing}[0-9.]+ KiB\)\$" out.txt
dies wide dying cut wide 1
has "$missing"'1 MiB\)$' out.txt
has_not '^  \?#' out.txt
sed -n '/^where/,/callers are missing/p' out.txt | tail -2 | head -1 >last.txt
has '#0 .* wide at .*cut.c:31$' last.txt # the line comes behind the last frame
dies below dying cut wide_below 2
has "$missing"'1 MiB\)$' out.txt
dies other other cut deep 20
has "${missing}[0-9.]+ (KiB|B)\)\$" out.txt
sed -n '/^thread [0-9]* cut/,/^$/p' out.txt >thread.txt
has "$missing" thread.txt

# fdr hang on a snapshot by the watchdog
what=hang
mkdir hang
FDR_DIR=$work/hang FDR_WATCHDOG=500ms ./cut hang &
pid=$!
for ((i = 0; i < 200; i++)); do
    [ -z "$(find hang -name '*.fdr')" ] || break
    sleep 0.1
done
{ kill -KILL $pid; wait $pid; } 2>/dev/null || true
"$fdr" hang --for 100ms hang/*.fdr >out.txt || true
has "$missing" out.txt
"$fdr" hang --json --for 100ms hang/*.fdr >out.json || true
python3 -c '
import json
[s] = json.load(open("out.json"))["stuck"]
assert s["cut"] is True and s["frames"][-1]["function"].startswith("deep"), s' || bad=1
[ "$bad" = 0 ]
