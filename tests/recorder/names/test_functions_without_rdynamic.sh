#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=200
# Rules, triggers and FDR_EDGE_REGIONS know functions of programs linked without -rdynamic: static ones, those of C++ as
# shown and as linked, those of libraries loaded later, those of stripped programs with a debug file. What matches
# nothing, and what cannot match, is said.
set -euo pipefail
: "${FDR_BUILD:?}" "${FDR_SOURCE:?}"
fdr=$FDR_BUILD/bin/fdr
lib=$FDR_BUILD/lib
include=$FDR_SOURCE/include
if [ -n "${FDR_SANITIZE:-}" ] || [ "${FDR_COVERAGE:-OFF}" = ON ]; then echo "not with sanitizers"; exit 77; fi
if [ ! -x "$fdr" ]; then echo "no $fdr (jansson or zstd missing)"; exit 77; fi
if ! "$fdr" version --build | grep -q '^with:.*\bdw\b'; then echo "no names without libdw"; exit 77; fi
work=$(mktemp -d)
unset "${!FDR_@}"
FDR_LIVE_DIR=$(mktemp -d /dev/shm/fdr-names-XXXXXX 2>/dev/null || mktemp -d)
trap 'rm -rf "$work" "$FDR_LIVE_DIR"' EXIT
export FDR_LIVE_DIR FDR_DIR=$work FDR_BUFFER=4M
cd "$work"
hooks=(-O1 -w -finstrument-functions "-finstrument-functions-exclude-file-list=/usr/include/,/include/c++/,/lib/gcc/")
link=("-L$lib" "-Wl,-rpath,$lib" -lfdr-instrument -lfdr)
bad=0
fail() { echo "FAIL: $*"; bad=$((bad + 1)); }

# run PROGRAM [NAME=VALUE...]: records one run; what fdr says is in err
run() {
    local program=$1
    shift
    rm -f ./*.fdr
    env "$@" "./$program" 2>err || fail "$program ($*) ends with $?: $(cat err)"
}
# said N TEXT: the run had N lines, one of them with the text. A trigger that cannot fire may be told before the end
said() {
    sed -i '/no function or region that is known so far/d' err
    if [ "$(wc -l <err)" != "$1" ] || ! grep -qF -- "$2" err; then fail "expected $1 lines and '$2', got: $(cat err)"; fi
}
silent() { # apart from matches that a hold-off drops
    sed -i '/saw its condition again within the hold-off/d' err
    [ ! -s err ] || fail "$1: $(cat err)"
}
newest() { find . -name '*.fdr' | sort -V | tail -1; }
# untimed NAME=COUNT...: of the calls of each function in the newest recording, so many had no time
untimed() {
    "$fdr" stats --json "$(newest)" | python3 -c '
import json, sys
rows = json.load(sys.stdin)
for want in sys.argv[1:]:
    name, count = want.rsplit("=", 1)
    got = sum(r["untimed"] for r in rows if r["name"].split("(")[0] == name)
    if got != int(count): sys.exit(f"{name}: {got} of its calls are untimed, expected {count}")' "$@" || fail "untimed $*"
}

# filtered COUNT: rules kept so many calls out of the newest recording. For programs that fdr cannot name offline
filtered() {
    "$fdr" info "$(newest)" | grep -qE "^  region +[0-9,]+ +[0-9,]+ +$1 +0 +0$" || fail "filtered $1"
}

cat >serve.c <<'END_C'
#include <unistd.h>
static __attribute__((noinline)) void stall(void) { usleep(50000); }
static __attribute__((noinline)) int work(int i) { return i + 1; }
__attribute__((noinline)) int serve(int i) { if (i % 10 == 5) stall(); return work(i); }
int main(void) { int s = 0; for (int i = 0; i < 20; i++) s += serve(i); return s == 1; }
END_C
cc "${hooks[@]}" serve.c -o serve "${link[@]}"
cc "${hooks[@]}" -no-pie -fno-pie serve.c -o fixed "${link[@]}"
for program in serve fixed; do
    run $program 'FDR_TRIGGERS=region * over 10ms holdoff 0s'
    silent "$program: a trigger on all functions"
    [ "$(find . -name "$program*.fdr" | wc -l)" -ge 2 ] || fail "$program: $(ls)"
    "$fdr" info "./$program".*.1.fdr | grep -qE '^why .*trigger region \* over 10ms \(stall 0x[0-9a-f]+: ' || fail "$program: the reason"
    printf '%s\n' 'exclude name work' 'first 3 exact serve' >rules
    run $program FDR_FILTER=rules FDR_FINALIZE=snapshot
    silent "$program: rules"
    untimed work=20 serve=17 stall=0 main=0
    run $program FDR_EDGE_COUNTERS=task:page-faults FDR_EDGE_REGIONS=stall FDR_FINALIZE=snapshot
    silent "$program: FDR_EDGE_REGIONS"
    "$fdr" counters --by call --json "./$program".*.fdr | grep -q '"region": *"stall"' || fail "$program: counters of stall"
done

# stalls of a static function, by its name: until the symbols are read there is no snapshot, then each is seen (D5)
cat >stalls.c <<'END_C'
#include <fdr/fdr.h>
#include <unistd.h>
static __attribute__((noinline)) void stall(void) { usleep(50000); }
int main(void)
{
    while (!*fdr_last_snapshot()) stall();
    for (int i = 0; i < 3; i++) stall();
    return 0;
}
END_C
cc "${hooks[@]}" "-I$include" stalls.c -o stalls "${link[@]}"
run stalls 'FDR_TRIGGERS=slow: region stall over 10ms holdoff 0s' FDR_FINALIZE=snapshot
silent "stalls"
"$fdr" info "$(newest)" >out
grep -qE '^ +trigger +slow: seen ([4-9]|[1-9][0-9]+), dropped [0-9]+, snapshots [1-9]' out ||
    fail "stalls: $(grep -i trigger out)"

# patterns that match nothing: one line, at the end
printf '%s\n' 'exclude name work' 'exclude name nothing*' 'include exact nobody' 'exclude file */none.c' >rules
run serve FDR_FILTER=rules 'FDR_TRIGGERS=slow: region nowhere over 1s;region serve over 1s'
said 1 "fdr: nothing matched these patterns: FDR_FILTER line 2 'nothing*', FDR_FILTER line 3 'nobody', FDR_FILTER line 4 '*/none.c', trigger 'slow'"

# a trigger that cannot match yet: said at once, while the program runs
cat >forever.c <<'END_C'
#include <unistd.h>
static __attribute__((noinline)) void work(void) { usleep(1000); }
int main(void) { for (;;) work(); }
END_C
cc "${hooks[@]}" forever.c -o forever "${link[@]}"
FDR_TRIGGERS='slow: region nowhere over 1s; region work over 3600s; region wor? stuck 3600s' ./forever 2>forever.err &
pid=$!
for ((i = 0; i < 600; i++)); do [ -s forever.err ] || sleep 0.1; done
{ kill -KILL $pid; wait $pid; } 2>/dev/null || true
[ "$(cat forever.err)" = "fdr: trigger 'slow': no function or region that is known so far matches 'nowhere'" ] ||
    fail "at once: $(cat forever.err)"

# a stripped program
cp serve bare && strip bare
printf '%s\n' 'exclude name work' >rules
run bare FDR_FILTER=rules FDR_FINALIZE=snapshot
said 2 "/bare: it is stripped, and no debug file with its build id is in place; rules and triggers see only the names that it exports"
grep -q "nothing matched these patterns: FDR_FILTER line 1 'work'; files whose symbols were not known: 1" err || fail "$(cat err)"
run bare
silent "a stripped program without rules and triggers"

# its symbols in a debug file, and one of another build
for place in . .debug; do
    mkdir -p $place
    cp serve split && objcopy --only-keep-debug split $place/split.debug
    strip split && objcopy --add-gnu-debuglink=$place/split.debug split
    run split FDR_FILTER=rules FDR_FINALIZE=snapshot
    silent "a debug file in $place"
    filtered 20
    rm $place/split.debug
done
objcopy --only-keep-debug fixed split.debug
run split FDR_FILTER=rules
said 2 "/split: it is stripped"

# an executable whose file was removed
cp serve gone
rm -f ./*.fdr
(exec 3<gone && rm gone && FDR_FILTER=rules FDR_FINALIZE=snapshot exec /proc/self/fd/3) 2>err || fail "a removed program"
silent "a removed program"
filtered 20

if c++ --version >/dev/null 2>&1; then
    cat >grid.cpp <<'END_C'
#include <string>
namespace grid {
template <class A, class B> __attribute__((noinline)) A mix(A a, B b) { return a + b; }
struct Field {
    int n = 0;
    __attribute__((noinline)) Field() { asm volatile(""); }
    __attribute__((noinline)) int operator()(int i) const { return i + n; }
};
static __attribute__((noinline)) int solve(int i) { return mix<double, int>(i, 2) > 3; }
}
namespace { __attribute__((noinline)) int hidden(int i) { return i + 1; } }
int main() { int s = 0; for (int i = 0; i < 10; i++) { grid::Field f; s += f(i) + grid::solve(i) + hidden(i); } return s + (int)std::to_string(s).size() == 1; }
END_C
    c++ "${hooks[@]}" grid.cpp -o grid "${link[@]}"
    printf '%s\n' 'exclude name grid::solve' 'exclude exact grid::Field::operator()(int) const' 'exclude name grid::mix*' \
        'exclude name _ZN12_GLOBAL__N_16hidden*' 'exclude name grid::Field::Field' >rules
    run grid FDR_FILTER=rules FDR_FINALIZE=snapshot
    silent "C++"
    untimed 'grid::solve=10' 'double grid::mix<double, int>=10' 'grid::Field::operator=10' 'grid::Field::Field=10' main=0
    c++ "${hooks[@]}" -static-libstdc++ grid.cpp -o static "${link[@]}"
    run static FDR_FILTER=rules FDR_FINALIZE=snapshot
    silent "C++, the library linked statically"
    untimed 'grid::solve=10' 'double grid::mix<double, int>=10' main=0
    printf '%s\n' 'exclude name grid::so*' 'include name *solve(int)' 'exclude name *hidden(int)' >rules
    run grid FDR_FILTER=rules FDR_FINALIZE=snapshot
    silent "include by the shown name"
    untimed 'grid::solve=0' 'double grid::mix<double, int>=0'

    # A library loaded by dlopen. Its functions are known once fdr's thread has read its symbols, which is after their
    # first calls or before. The trigger on the second tells that the first is known. From then on the rule holds in
    # every thread.
    cat >plug.cpp <<'END_C'
#include <string>
namespace plug {
static __attribute__((noinline)) int first(int i) { asm volatile(""); return i + 1; }
static __attribute__((noinline)) int second(int i) { for (volatile int k = 0; k < 10000; k++) {} return i + 1; }
}
extern "C" __attribute__((no_instrument_function)) int run(int i)
{
    return plug::first(i) + plug::second(i) + (int)std::to_string(i).size();
}
END_C
    cat >host.c <<'END_C'
#include <dlfcn.h>
#include <fdr/fdr.h>
#include <pthread.h>
#include <unistd.h>
static int (*run)(int);
static void *calls(void *x) { for (int i = 0; i < 5; i++) run(i); return x; }
int main(void)
{
    pthread_t t;
    fdr_init(NULL);
    int late = fdr_trigger_add("late: region plug::second over 1us");
    *(void **)&run = dlsym(dlopen("./plug.so", RTLD_NOW | RTLD_LOCAL), "run");
    for (int i = 0; i < 6000 && (!fdr_trigger_count(1) || !fdr_trigger_count(late)); i++) run(i), usleep(10000);
    if (!fdr_trigger_count(1) || !fdr_trigger_count(late)) return 1;
    calls(NULL);
    return pthread_create(&t, NULL, calls, NULL) || pthread_join(t, NULL);
}
END_C
    c++ "${hooks[@]}" -shared -fPIC plug.cpp -o plug.so
    cc -O1 "-I$include" host.c -o host -Wl,--no-as-needed "${link[@]}" -ldl -pthread
    printf '%s\n' 'exclude name plug::first' >rules
    run host FDR_FILTER=rules FDR_FINALIZE=snapshot 'FDR_TRIGGERS=region plug::sec* over 1us keep 1'
    ! grep -vqE 'plug.so: its symbols are read; functions recorded until now that have a rule from now on: 1$|no more snap|within the hold-off' err ||
        fail "a library loaded later: $(cat err)"
    untimed plug::second=0
    "$fdr" stats --json "$(newest)" | python3 -c '
import json, sys
row = [r for r in json.load(sys.stdin) if r["name"].startswith("plug::first")][0]
sys.exit(row["untimed"] < 10)' || fail "plug::first once its name is known"
fi
[ $bad -eq 0 ]
