#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=house promise=P7
# P7: fdr crash reports a death from its bundle: function, line, inlined functions and all threads. It shows the text of
# an abort and of an uncaught exception, and hides secrets. For several processes it names the first one to die.
set -euo pipefail
if [ -n "${FDR_SANITIZE:-}" ]; then echo "sanitizers have handlers of their own"; exit 77; fi
build=${FDR_BUILD:?}
source_dir=${FDR_SOURCE:?}
work=$(mktemp -d)
live=$(mktemp -d /dev/shm/fdr-tool-XXXXXX)
trap 'rm -rf "$work" "$live"' EXIT
cd "$work"
fdr=$build/bin/fdr
export FDR_LIVE_DIR=$live FDR_DIR=$work FDR_BUFFER=1M
# On a busy machine the bundle may need more than the usual 800 ms; then it would stay in the live directory.
export FDR_CRASH_DEADLINE=60s
unset FDR_CRASH

bad=0
has() { grep -qE -- "$1" "$2" || { echo "no '$1' in:"; cat "$2"; bad=1; }; }
has_not() { if grep -qE -- "$1" "$2"; then echo "'$1' is in:"; cat "$2"; bad=1; fi; }
same() { [ "$1" = "$2" ] || { echo "$3: '$1', not '$2'"; bad=1; }; }
options=(-O2 -g -I "$source_dir/include" -L "$build/lib" "-Wl,-rpath,$build/lib")

cat >victim.c <<'END'
#include <assert.h>
#include <fdr/fdr.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int *volatile nowhere = (int *)16;
static void (*volatile no_function)(void);
static inline __attribute__((always_inline)) int folded(int v) { return *nowhere + v; }
__attribute__((noinline)) int culprit(const char *how)
{
    FDR_FUNCTION();
    int v = (int)strlen(how);
    if (!strcmp(how, "assert")) assert(v == 3);
    if (!strcmp(how, "jump")) no_function();
    if (!strcmp(how, "wait") && write(1, "waits\n", 6) == 6) pause();
    if (!strcmp(how, "raise")) raise(SIGTERM); else if (!strcmp(how, "exit")) exit(7);
    return folded(v);
}
#include <stdio.h> /* here: lines above are told below */
#include <sys/syscall.h>
static int waiting;
static void *bystander(void *unused)
{
    FDR_REGION("waiting") {
        __atomic_add_fetch(&waiting, 1, __ATOMIC_RELAXED);
        pause();
    }
    return unused;
}
static int deaf_tid;
static void *deaf(void *unused)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    __atomic_store_n(&deaf_tid, (int)syscall(SYS_gettid), __ATOMIC_RELAXED);
    pause();
    return unused;
}
/* What is said of it is where it stands: on a busy machine it may take its time to get there. */
static void wait_until_it_sleeps(const int *tid)
{
    char path[64], state = 0;
    while (!__atomic_load_n(tid, __ATOMIC_RELAXED)) usleep(1000);
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", *tid);
    for (FILE *f; state != 'S' && (f = fopen(path, "r")); fclose(f), usleep(1000))
        if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1) abort();
}
int main(int argc, char **argv)
{
    pthread_t t;
    (void)argc;
    fdr_init(NULL);
    fdr_note("case", "seventeen");
    fdr_note("case", "eighteen");
    if (getenv("ATTEMPT")) fdr_note("mpi.attempt", getenv("ATTEMPT"));
    fdr_metric_id m = fdr_metric_define("residual", "", FDR_F64, FDR_METRIC_GAUGE);
    int crowd = strcmp(argv[1], "crowd") ? 1 : 300;
    for (int i = 0; i < crowd; i++) pthread_create(&t, NULL, bystander, NULL);
    while (__atomic_load_n(&waiting, __ATOMIC_RELAXED) < crowd) usleep(1000);
    pthread_create(&t, NULL, deaf, NULL);
    wait_until_it_sleeps(&deaf_tid);
    for (int i = 0; i < 200; i++)
        FDR_REGION("step") fdr_metric_f64(m, 0.5 * i);
    usleep(20000);
    return culprit(argv[1]);
}
END
gcc "${options[@]}" victim.c -o victim -lfdr -pthread

die() { rm -f ./*.crash.fdr; { (ulimit -c 0; "$@" || true); } 2>/dev/null; }
bundle() { set -- ./*.crash.fdr; [ $# = 1 ] && [ -e "$1" ] && echo "$1"; }

SLURM_JOB_ID=4711 OMP_SECRET_X=hidden FDR_URL=http://me:hidden@host/x DATABASE=hidden \
    OMP_BROKERS='amqp://a.example/,amqp://u:hidden@b.example/,amqp://v:hidden@c/' FDR_TWO='http://h/?q=1 postgres://u:hidden@h/db' die ./victim segv --password hunter2 \
    --api-token=hunter2 KEY=hunter2 --env=API_TOKEN=hunter2 --token -hunter2 "Authorization: Bearer hunter2" -H "X-Api-Key: hunter2" \
    Authorization: Bearer hunter2 https://me:hunter2@example.org/a?b=c '{"password":"hunter2"}' \
    amqp://a/,amqp://u:hunter2@b/ 'X: Bearer hunter2' 'curl Basic hunter2 shown4' 'send as Bearer' hunter2 'public Basics' -n 12 input.dat host:/data --level=3
$fdr crash --registers "$(bundle)" >out.txt
same "$(sed -n 1p out.txt | grep -cE '^victim \(pid [0-9]+ on .*\) died of SIGSEGV \(address not mapped: 0x10\), at 2.* UTC.$')" 1 "the first line"
same "$(sed -n 2p out.txt)" "It died in folded at victim.c:10, called from culprit, main." "the second line"
same "$(sed -n 3p out.txt | grep -cE '^Its thread [0-9]+ victim was in culprit, for .*\.$')" 1 "the third line"
has 'died of    SIGSEGV \(address not mapped: 0x10\) in thread [0-9]+ victim' out.txt
has '#0 .* folded \[inlined\] at .*victim.c:10' out.txt
has '#0 .* culprit at .*victim.c:19' out.txt
has '#1 .* main at .*victim.c:' out.txt
has 'rip' out.txt
has 'waiting, for' out.txt
has 'it did not answer: state S' out.txt
has 'enter  +culprit' out.txt
has 'residual = 99.5' out.txt
has 'note       case = eighteen' out.txt
$fdr crash "$(bundle)" >short.txt
has_not '^registers|rip' short.txt
has 'newest 50 events' out.txt
has_not 'hunter2|hidden' out.txt
$fdr crash --json "$(bundle)" >out.json
has_not 'hunter2|hidden' out.json
has 'SLURM_JOB_ID=4711' out.json
has_not 'DATABASE' out.json
has 'OMP_BROKERS=amqp://a.example/,amqp://u:\*\*\*@b.example/,amqp://v:\*\*\*@c/' out.json
has 'FDR_URL=http://me:\*\*\*@host/x' out.json
has 'https://me:\*\*\*@example.org/a\?b=c' out.json
for shown in shown4 'public Basics' '-n' input.dat host:/data --level=3 --env=API_TOKEN= 'Authorization:'; do has "$shown" out.json; done
has '\*\*\*' out.json
python3 - out.json <<'END'
import json, sys
[d] = json.load(open(sys.argv[1]))
assert d["cause"]["name"] == "SIGSEGV" and d["cause"]["addr"] == 16, d["cause"]
[t] = [t for t in d["threads"] if t["faulting"]]
assert [f["function"] for f in t["frames"]][:3] == ["folded", "culprit", "main"], t["frames"]
assert t["open"] == ["culprit"] and len(d["events"]) == 50 and d["events"][-1]["name"] == "culprit"
others = [t for t in d["threads"] if not t["faulting"] and t["answered"]]
assert any(any("pause" in f["function"] for f in t["frames"]) for t in others), others
assert len([t for t in d["threads"] if not t["answered"]]) == 2  # the deaf one and the dumper
for text in "cmdline", "environment", "uname", "status", "limits", "maps":
    assert d["texts"][text], text
assert d["notes"] == {"case": "eighteen"}
END
same "$($fdr check -q "$(bundle)"; echo $?)" 0 "fdr check"
# a recovered file gives the same report, also with a damaged bin
$fdr recover "$(bundle)" -o recovered.fdr >/dev/null
same "$($fdr check -q recovered.fdr; echo $?)" 0 "fdr check of what was recovered"
$fdr crash recovered.fdr >out.txt
has 'died of    SIGSEGV \(address not mapped: 0x10\) in thread [0-9]+ victim' out.txt
has '#0 .* culprit at .*victim.c:19' out.txt
has 'it did not answer: state S' out.txt
cp "$(bundle)" damaged.fdr
chmod 600 damaged.fdr
python3 - <<'END'
import struct
with open("damaged.fdr", "r+b") as f:
    bins = struct.unpack("<Q", f.read(32)[24:])[0]
    f.seek(bins + 70)
    f.write(bytes(100))
END
same "$($fdr crash damaged.fdr 2>err.txt >out.txt; echo $?)" 1 "crash of a damaged bundle"
has 'damaged.fdr: damaged parts are left out: bin at ' err.txt
has '#0 .* culprit at .*victim.c:19' out.txt
same "$($fdr recover damaged.fdr -o recovered2.fdr >/dev/null; echo $?)" 1 "recover of a damaged bundle"
$fdr crash recovered2.fdr >out.txt
has 'died of    SIGSEGV' out.txt
has '#0 .* culprit at .*victim.c:19' out.txt
rm -f recovered.fdr recovered2.fdr damaged.fdr
# a bundle that was truncated in its notes: the rest of it is whole
head -c 600000 "$(bundle)" >cut.fdr
same "$($fdr recover cut.fdr -o recovered.fdr >/dev/null; echo $?)" 1 "recover of a bundle that is cut off"
same "$($fdr check -q recovered.fdr; echo $?)" 0 "fdr check of what was recovered of it"
$fdr crash recovered.fdr >out.txt
has 'died of    SIGSEGV' out.txt
rm -f cut.fdr recovered.fdr
# without handlers the cause is unknown
FDR_CRASH=0 die ./victim segv
$fdr crash "$live"/*.live.fdr >out.txt
has 'died of    an unknown cause: fdr had no handlers' out.txt
has_not 'SIGKILL' out.txt
rm -f "$live"/*.live.fdr
die ./victim segv
# the file under this path is not the one that crashed: fdr crash takes no names from it
cp victim kept; gcc "${options[@]}" -DOTHER -O0 victim.c -o victim -lfdr -pthread
$fdr crash "$(bundle)" >out.txt
has_not 'culprit at' out.txt
has 'victim\+0x' out.txt
cp kept victim

die ./victim assert
$fdr crash "$(bundle)" >out.txt
has "message    victim: victim.c:15: culprit: Assertion .v == 3. failed" out.txt
same "$(sed -n 2p out.txt)" "It died in culprit at victim.c:15, called from main." "the place of an assertion"
same "$(sed -n 3p out.txt | cut -c1-32)" "It said: victim: victim.c:15: cu" "the third line of an assertion"
has '#[0-9]+ .* culprit at .*victim.c:15' out.txt
die ./victim jump
$fdr crash "$(bundle)" >out.txt
has '#0 +0000000000000000 in no module' out.txt
has '#1 .* culprit at .*victim.c:16' out.txt
strip -g victim
die ./victim segv
$fdr crash "$(bundle)" >out.txt
has '#1 .* main in victim' out.txt
cp kept victim
rm -f ./*.crash.fdr

# An uncaught exception and its text.
if command -v g++ >/dev/null; then
    cat >thrower.cpp <<'END'
#include <fdr/fdr.hpp>
#include <stdexcept>
int main() { fdr_init(nullptr); throw std::out_of_range("index 17 of 12"); }
END
    g++ -std=c++17 "${options[@]}" thrower.cpp -o thrower -lfdr
    die ./thrower
    $fdr crash "$(bundle)" >out.txt
    has 'died of    SIGABRT' out.txt
    has 'exception  std::out_of_range' out.txt
    has '^It died in main at thrower.cpp:3' out.txt
    has 'note       what = index 17 of 12' out.txt
    # A program without fdr.hpp: the report shows the library's own what(). An own what() of the program is not called,
    # nor any other of its functions.
    cat >throws.cpp <<'END'
#include <fdr/fdr.h>
#include <stdexcept>
#include <utility>
struct derived : std::runtime_error { using std::runtime_error::runtime_error; };
struct speaks : std::logic_error {
    using std::logic_error::logic_error;
    const char *what() const noexcept override { return "of its own"; }
};
struct other { virtual ~other() {} int here = 1; };
struct both : other, std::runtime_error { both() : std::runtime_error("behind another") {} };
int main(int, char **argv)
{
    fdr_init(nullptr);
    switch (*argv[1]) {
    case 'd': throw derived("no convergence: 7 > 5");
    case 's': throw speaks("given");
    case 'b': throw both();
    case 'n': [] { throw std::bad_alloc(); }();
    case 'w': throw "words";
    case 'p': throw std::pair<int, char>(1, 'c');
    default: throw 12;
    }
}
END
    g++ -std=c++17 "${options[@]}" throws.cpp -o throws -lfdr
    for how in derived speaks both new words pair int; do
        die ./throws "$how"
        $fdr crash "$(bundle)" >"out-$how.txt"
        has 'died of    SIGABRT' "out-$how.txt"
        has '#[0-9]+ .* main at .*throws.cpp' "out-$how.txt"
        has '^command    ./throws' "out-$how.txt"
        has_not '^handler ' "out-$how.txt"
    done
    has '^what       no convergence: 7 > 5$' out-derived.txt
    has '^what       std::bad_alloc$' out-new.txt
    for how in speaks both words pair int; do has '^exception  ' "out-$how.txt"; has_not '^what ' "out-$how.txt"; done
    has '^exception  int$' out-int.txt
    has '^exception  char const\*$' out-words.txt
    has '^exception  std::pair<int, char>$' out-pair.txt
    # The exception was caught and is being handled when abort comes: the report must not call it uncaught.
    cat >aborts.cpp <<'END'
#include <cstdlib>
#include <fdr/fdr.h>
#include <stdexcept>
#include <thread>
[[gnu::noinline]] static void thrower() { throw std::runtime_error("is thrown"); }
[[gnu::noinline]] static void says_not() noexcept { thrower(); }
static void work(char how)
{
    if (how == 'o') std::set_terminate([] { std::abort(); });
    try { if (how == 'n') says_not(); else if (how != 'o') thrower(); }
    catch (const std::exception &) { if (how == 'r') throw; std::abort(); }
    thrower();
}
int main(int, char **argv)
{
    fdr_init(nullptr);
    if (argv[1][1] == 't') std::thread(work, *argv[1]).join();
    else work(*argv[1]);
}
END
    g++ -std=c++17 "${options[@]}" aborts.cpp -o aborts -lfdr -pthread
    for how in caught ct rethrown rt noexcept nt own ot; do
        die ./aborts "$how"
        $fdr crash "$(bundle)" >"out-$how.txt"
        case $how in
        c*) has '^handling   std::runtime_error$' "out-$how.txt"; has_not '^exception ' "out-$how.txt" ;;
        *) has '^exception  std::runtime_error$' "out-$how.txt"; has_not '^handling ' "out-$how.txt" ;;
        esac
        has '^what       is thrown$' "out-$how.txt"
    done
    rm -f ./*.crash.fdr
fi

# More threads than a bundle has stacks for: every thread is named all the same.
FDR_BUFFER=32M die ./victim crowd
$fdr crash "$(bundle)" >out.txt
# alike ones share a line: those that wait with a stack, and those without
same "$(awk '/^thread / { n = 1; if (split($0, part, ", and ") > 1) n += part[2] } /^  waiting, for/ { sum += n } END { print sum }' out.txt)" \
    300 "threads that are told of"
[ "$(grep -c '^  waiting, for' out.txt)" -lt 30 ] || { echo "threads that are alike are told one by one"; bad=1; }
has 'its stack is missing: this bundle has the stacks of 257 threads' out.txt
$fdr crash --json "$(bundle)" >out.json
python3 - out.json <<'END'
import json, sys
[d] = json.load(open(sys.argv[1]))
waiting = [t for t in d["threads"] if t["open"] == ["waiting"]]
assert len({t["tid"] for t in waiting}) == 300, len(waiting)
assert len([t for t in waiting if t["frames"]]) < 257 and sum(t["faulting"] for t in d["threads"]) == 1
END

# Calls of exit, if FDR_CRASH asks for them: from C, and by ERROR STOP.
FDR_CRASH='exit' die ./victim exit
$fdr crash "$(bundle)" >out.txt
has 'died of    exit with status 7 in thread' out.txt
has '#[0-9]+ .* culprit at .*victim.c:' out.txt
$fdr info "$(bundle)" >out.txt
has 'why        the process ended by exit with status 7' out.txt
same "$($fdr check -q "$(bundle)"; echo $?)" 0 "fdr check of an exit"
if command -v gfortran >/dev/null && [ -e "$build/lib/libfdr-instrument.so" ]; then
    printf 'program p\n  call solve\nend program\nsubroutine solve\n  error stop 9\nend subroutine\n' >stop.f90
    gfortran -g -finstrument-functions stop.f90 -o stop -L "$build/lib" "-Wl,-rpath,$build/lib" -lfdr-instrument -lfdr
    status=0
    rm -f ./*.crash.fdr
    FDR_CRASH='exit' ./stop 2>/dev/null || status=$?
    same "$status" 9 "the status of ERROR STOP"
    $fdr crash "$(bundle)" >out.txt
    has 'died of    exit with status 9' out.txt
    has '#[0-9]+ .* solve' out.txt
    has '^  .*solve' out.txt
    rm -f ./*.crash.fdr
    # libgfortran handles the signals of faults from the begin of the main program on. Its handler prints first, and the
    # bundle is left all the same.
    printf 'program p\n  call solve\nend program\nsubroutine solve\n  integer, pointer :: q\n  q => null()\n  q = 3\nend subroutine\n' >fault.f90
    gfortran -g -finstrument-functions fault.f90 -o fault -L "$build/lib" "-Wl,-rpath,$build/lib" -lfdr-instrument -lfdr
    status=0
    ./fault 2>err.txt || status=$?
    same "$status" 139 "the status of a fault in Fortran"
    has 'Backtrace for this error' err.txt
    $fdr crash "$(bundle)" >out.txt
    has 'died of    SIGSEGV' out.txt
    has '#0 .* solve' out.txt
    has_not '^handlers' out.txt
else echo "no gfortran: ERROR STOP is not tried"; fi
rm -f ./*.crash.fdr

waits() { # until a victim has said in FILE that it waits
    for _ in $(seq 3000); do
        if [ -s "$1" ]; then return; fi
        sleep 0.01
    done
    echo "$1: it never waits"
    exit 1
}

# Three processes: the first faults, the second is asked to end after it, the third is killed.
FDR_CRASH=all ./victim wait >one.txt & one=$!
./victim wait >two.txt & two=$!
waits one.txt
waits two.txt
mkdir first; FDR_DIR=$work/first die ./victim segv
{ kill -TERM "$one"; kill -KILL "$two"; } 2>/dev/null
wait "$one" "$two" 2>/dev/null || true
$fdr crash ./*.crash.fdr "$live"/*.live.fdr first/*.crash.fdr >out.txt
has '^FIRST .*SIGSEGV .*first/' out.txt
has 'SIGTERM, sent by process' out.txt
has 'an unseen cause, no handler ran: SIGKILL, the OOM killer or _exit' out.txt
has '^first      pid [0-9]+ on .*: SIGSEGV \(address not mapped: 0x10\) in folded at victim.c:10; it was in culprit$' out.txt
has '^evidence   it is the only one that died by itself; its handler wrote the cause$' out.txt
has '^the others .*1 by SIGTERM, [^;]* later' out.txt
has '^the others .*1 killed unseen, last seen ' out.txt
has '^meanwhile  2 in culprit' out.txt
same "$(sed -n 6p out.txt | cut -d' ' -f1)" FIRST "the first line of the list"
has '#0 .* culprit' out.txt

# The same bundle twice, and a copy of it, count as one death.
mkdir copy
cp first/*.crash.fdr copy/copy.fdr
$fdr crash first/*.crash.fdr ./*."$one".*.crash.fdr copy/copy.fdr first/*.crash.fdr >out.txt
same "$(grep -c 'SIGSEGV (address' out.txt)" 3 "lines on one death: the first, in the list and told"
same "$(grep -c '^note: left out, the same death as first/' out.txt)" 2 "files that are left out"
has '^note: left out, .*: copy/copy.fdr$' out.txt
$fdr crash --json first/*.crash.fdr copy/copy.fdr >out.txt
same "$(python3 -c 'import json; print([len(d["left_out"]) for d in json.load(open("out.txt"))])')" "[1]" "JSON of a copy"

# Five deaths of one place: bundles of the same fingerprint collapse, and the first says how many it counts.
mkdir loop
for _ in 1 2 3 4 5; do FDR_CRASH_TOTAL=100% FDR_CRASH_FREE=0% FDR_DIR=$work/loop die ./victim segv; done
$fdr gc --crash-total 100% --crash-free 0% loop >/dev/null
same "$(find loop -name '*.crash.fdr' | wc -l)" 3 "bundles that stay of five deaths"
$fdr crash --json loop/*.crash.fdr >out.json
same "$(python3 -c 'import json; d = json.load(open("out.json")); print(sorted(x["alike"] for x in d), len({x["fingerprint"] for x in d}))')" \
    "[0, 0, 2] 1" "counted deaths, and fingerprints"
$fdr crash --all loop/*.crash.fdr >out.txt
has '^alike      2 more deaths of the same cause, place and build; their bundles are gone$' out.txt

# The process was sent the signal; it did not call abort itself.
./victim wait >third.txt & one=$!
waits third.txt
kill -ABRT "$one"
wait "$one" 2>/dev/null || true
$fdr crash ./*."$one".*.crash.fdr >out.txt
has "SIGABRT, sent by process $$ " out.txt

# A process that ended before its first event: it died when it began, not at the machine's time 0.
printf '#include <fdr/fdr.h>\n#include <unistd.h>\nint main(void) { fdr_init(0); _exit(0); }\n' >nothing.c
cc "${options[@]}" nothing.c -o nothing -lfdr
mkdir "$live/nothing"
chmod 700 "$live/nothing"
FDR_LIVE_DIR=$live/nothing ./nothing
$fdr crash "$live"/nothing/*.live.fdr >out.txt
said=$(date -d "$(sed -n 's/^newest  *//p' out.txt)" +%s)
[ $(($(date +%s) - said)) -lt 600 ] || { echo "it says $said:"; cat out.txt; bad=1; }

# Handlers installed later than fdr's that do not return: the process may have died of their signals.
cat >taken.c <<'END'
#include <fdr/fdr.h>
#include <signal.h>
static void mine(int number) { signal(number, SIG_DFL), raise(number); }
int main(void)
{
    fdr_init(0);
    fdr_marker(fdr_marker_define("here"), 1);
    signal(SIGSEGV, mine), signal(SIGABRT, mine);
    fdr_handlers_changed();
    return *(int *volatile)16;
}
END
cc "${options[@]}" taken.c -o taken -lfdr
mkdir "$live/taken"
chmod 700 "$live/taken"
{ (ulimit -c 0; FDR_LIVE_DIR=$live/taken ./taken || true); } 2>/dev/null
$fdr crash "$live"/taken/*.live.fdr >out.txt
has '^died of    an unseen cause, no handler ran: SIGKILL, the OOM killer or _exit, or 2 signals with later handlers$' out.txt
has "^handlers   later ones replaced fdr's for SIGABRT, SIGSEGV: no bundle" out.txt
same "$(tail -n +5 out.txt | grep -c handler)" 2 "lines about handlers"
# With FDR_CRASH=first they do not replace fdr's, and the stack stands before the registers.
{ (ulimit -c 0; FDR_CRASH=first ./taken || true); } 2>/dev/null
$fdr crash --registers ./taken.*.crash.fdr >out.txt
has '^died of    SIGSEGV' out.txt
has_not '^handlers' out.txt
same "$(grep -oE '^(where|open regions|registers)' out.txt | tr '\n' ' ')" "where open regions registers " "the order"
$fdr crash --json "$live"/taken/*.live.fdr | tr -d ' \n' >out.txt
has '"handlers_replaced":\["SIGABRT","SIGSEGV"\]' out.txt
$fdr crash "$live"/nothing/*.live.fdr "$live"/taken/*.live.fdr >out.txt
has 'no handler ran: SIGKILL, the OOM killer or _exit, or 2 signals with later handlers' out.txt
has 'no handler ran: SIGKILL, the OOM killer or _exit  ' out.txt

# Two of four ranks were asked to end, the other two left no file. No rank is said to have died by itself, and the
# missing ranks are named.
mkdir ranks
for r in 0 2; do
    FDR_CRASH=all FDR_DIR=$work/ranks OMPI_COMM_WORLD_RANK=$r OMPI_COMM_WORLD_SIZE=4 ./victim wait &
    one=$!
    sleep 0.5
    kill -TERM "$one"
    wait "$one" 2>/dev/null || true
done
$fdr crash ranks/*.crash.fdr >out.txt
has '^evidence   none of these died by itself' out.txt
has '^missing    2 of 4 ranks have no recording: 1, 3$' out.txt
has_not '^warning' out.txt
# For bundles of two jobs a warning is printed.
for job in 4711 4712; do
    mkdir "job$job"
    { (ulimit -c 0; SLURM_JOB_ID=$job FDR_DIR=$work/job$job ./victim segv || true); } 2>/dev/null
done
$fdr crash job4711/*.crash.fdr job4712/*.crash.fdr >out.txt
has '^warning: these files are of several jobs .471., 471.' out.txt
$fdr crash --json job4711/*.crash.fdr | tr -d ' \n' >out.txt
has '"job":"4711","attempt":null' out.txt
# The second attempt of a job is another one, too.
mkdir again
{ (ulimit -c 0; ATTEMPT=1 SLURM_JOB_ID=4711 FDR_DIR=$work/again ./victim segv || true); } 2>/dev/null
$fdr crash job4711/*.crash.fdr again/*.crash.fdr >out.txt
has '^warning: these files are of several jobs .4711(, 4711| attempt 1, 4711)' out.txt
$fdr crash --json again/*.crash.fdr | tr -d ' \n' >out.txt
has '"job":"4711","attempt":"1"' out.txt
$fdr crash job4711/*.crash.fdr >out.txt
has_not '^warning' out.txt
# fdr's own threads are distinguished from threads that did not answer
sed -n '/^thread [0-9]* fdr-dumper/{n;p;}' out.txt >own.txt
has "^  a thread of fdr: it answers no signal" own.txt
$fdr crash --json job4711/*.crash.fdr >out.json
python3 -c '
import json
threads = json.load(open("out.json"))[0]["threads"]
assert {t["name"] for t in threads if t["own"]} >= {"fdr-dumper"}, threads
assert not [t for t in threads if t["own"] != t["name"].startswith("fdr-")]' || bad=1
# check takes several files: one line each, and the worst exit code
dd if="$(echo job4711/*.crash.fdr)" of=cut.fdr bs=1000 count=600 2>/dev/null
same "$($fdr check job*/*.crash.fdr >out.txt; echo $?)" 0 "check of two"
same "$(grep -c ': whole: .* 0 findings$' out.txt)$(grep -c . out.txt)" 22 "a line each"
same "$($fdr check job*/*.crash.fdr cut.fdr victim.c >out.txt 2>/dev/null; echo $?)" 2 "the worst exit code"
same "$($fdr check cut.fdr job*/*.crash.fdr >out.txt; echo $?)" 1 "one of three damaged"
same "$(grep -c . out.txt)" 3 "lines of three"
has '^cut.fdr: damaged: .*finding.*: cut off: 600000' out.txt
$fdr check --json job*/*.crash.fdr | tr -d ' \n' >out.txt
has '^\[\{"file":.*"verdict":"whole".*,\{"file":.*\}\]$' out.txt
same "$($fdr crash nothing.fdr >/dev/null 2>&1; echo $?)" 2 "no file"
[ "$bad" = 0 ]
