#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=house,slow timeout=900 promise=P10
# P10: fdr builds without its optional libraries: PAPI, elfutils, libiberty, OTF2 and SQLite (X_none.c replaces
# X_<name>.c). The build has no warnings. It reports each missing part once, and all else works: samples, counters, and
# names by module. A setting that asks for PAPI gets a message.
# shellcheck disable=SC2015 # ok and fail do not fail
set -u
if [ -n "${FDR_SANITIZE:-}" ] || [ "${FDR_COVERAGE:-OFF}" = ON ]; then echo "skipped: once is enough"; exit 77; fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
ok() { echo "ok: $1"; }
fail() { echo "FAIL: $1"; failed=1; }

# Objects of FDR_BUILD serve here, too, but for the parts X_NAME.c and start.c, which names the parts (fdr_build.h).
# make takes an object that is newer than its source for done.
cmake -S "$FDR_SOURCE" -B "$work/build" -G "Unix Makefiles" -DCMAKE_BUILD_TYPE=Debug -DFDR_TESTS=OFF -DFDR_INSTALL=OFF \
    -DFDR_WERROR=ON "-DFDR_WITHOUT=papi;dw;iberty;otf2;sqlite" >"$work/log" 2>&1 || { tail -20 "$work/log"; exit 1; }
objects=()
while IFS= read -r object; do
    source=${object%.o}
    source=${source#*.dir/}
    case $source in
        *_none.c | *_papi.c | *_dw.c | *_iberty.c | *_otf2.c | *_sqlite.c | recorder/life/start.c | generated/*) ;;
        *) objects+=("$object") ;;
    esac
done < <(cd "$FDR_BUILD" && find CMakeFiles/fdr_obj_{base,format,bins,policies,recorder,sampler,retention,export,reader,convert}.dir \
    CMakeFiles/fdr_command.dir -name '*.o')
(cd "$FDR_BUILD" && cp --parents -t "$work/build" "${objects[@]}")
cmake --build "$work/build" -j2 --target fdr_fdr_shared fdr_papi_shared fdr_command >"$work/log" 2>&1 || { tail -40 "$work/log"; exit 1; }
built=$(grep -c 'Building C object' "$work/log" || true)
[ ${#objects[@]} -gt 300 ] && [ "$built" -lt 60 ] || fail "${#objects[@]} objects were there, $built were built"
ok "it compiles"
fdr=$work/build/bin/fdr
unset "${!FDR_@}"

"$fdr" version --build >"$work/out" || fail "fdr version --build"
[ "$(grep "^with:" "$work/out")" = "with: urcu numa" ] || [ "$(grep "^with:" "$work/out")" = "with: urcu" ] || fail "it claims what it has not: $(cat "$work/out")"

cat >"$work/program.c" <<'END'
#include <fdr/fdr.h>
#include <time.h>
static volatile double sink;
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
__attribute__((noinline)) static void hot(double until) { while (now() < until) for (int i = 0; i < 9999; i++) sink = sink * 1.1 + 1; }
int main(void)
{
    if (fdr_init(NULL)) return 2;
    FDR_REGION("phase") hot(now() + 0.5);
    return fdr_snapshot("end") != 0;
}
END
source=${BASH_SOURCE[0]%/*}/../..
cc -O1 -g -fno-omit-frame-pointer -I"$source/include" "$work/program.c" -o "$work/program" -L"$work/build/lib" -Wl,-rpath,"$work/build/lib" -lfdr ||
    { echo "cannot build the program"; exit 1; }
mkdir "$work/there"
env FDR_DIR="$work/there" FDR_ARENA=anonymous FDR_BUFFER=8M FDR_SAMPLE=1kHz FDR_COUNTERS=default FDR_PAPI=PAPI_TOT_INS "$work/program" 2>"$work/said" ||
    fail "the program fails: $(cat "$work/said")"
[ "$(grep -c PAPI "$work/said")" = 1 ] && ok "it says once that there is no PAPI" || fail "PAPI is asked for: $(cat "$work/said")"
file=$(ls "$work"/there/*.fdr)
"$fdr" check "$file" >"$work/out" 2>&1 || fail "check: $(cat "$work/out")"
"$fdr" samples --by region "$file" >"$work/out" 2>&1 && grep -q phase "$work/out" && ok "samples by region" || fail "samples: $(cat "$work/out")"
"$fdr" samples "$file" >"$work/out" 2>&1 && grep -q '\[program\]' "$work/out" && ok "functions go by their module" || fail "samples: $(cat "$work/out")"
"$fdr" counters "$file" >"$work/out" 2>&1 && grep -qE 'rss' "$work/out" && ok "counters" || fail "counters: $(cat "$work/out")"
"$fdr" stats "$file" >"$work/out" 2>&1 && grep -q phase "$work/out" && ok "stats" || fail "stats: $(cat "$work/out")"
"$fdr" export "$file" --to otf2 -o "$work/otf2" 2>"$work/said" && fail "OTF2 without its library"
grep -q "lacks the library for otf2" "$work/said" && [ ! -e "$work/otf2" ] && ok "export to OTF2 says what is missing" || fail "otf2: $(cat "$work/said")"
env FDR_DIR="$work/there" FDR_ARENA=anonymous FDR_BUFFER=8M FDR_SAMPLE=PAPI_TOT_INS/100000 "$work/program" 2>"$work/said" &&
    [ "$(grep -c 'made without PAPI' "$work/said")" = 1 ] && ok "overflow of PAPI's events: said once, too" || fail "PAPI is to overflow: $(cat "$work/said")"
"$fdr" counters >"$work/out" 2>&1 || fail "what works on this machine: $(cat "$work/out")"
exit $failed
