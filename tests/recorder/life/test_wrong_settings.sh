#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=unit,slow timeout=300 promise=P10 without=asan (starts some 150 programs)
# P10: each wrong value in the environment causes exactly one line on standard error. It names the variable, the value
# and the value used instead, and the program goes on. The same holds for directories that fdr cannot use.
set -u
: "${FDR_BUILD:?}" "${FDR_SOURCE:?}"
work=$(mktemp -d)
live=/dev/shm/fdr-test-config-$$
mounted=
cleanup()
{
    [ -n "$mounted" ] && umount "$mounted" 2>/dev/null
    chmod -R u+w "$work" "$live" 2>/dev/null
    rm -rf "$work" "$live" "$live-link" "$live-other"
}
trap cleanup EXIT
mkdir -m 700 "$live"
bad=0
fail() { echo "FAIL: $*"; bad=$((bad + 1)); }
ok() { echo "ok: $*"; }

cat >"$work/program.c" <<'C'
#include <errno.h>
#include <fdr/fdr.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static pthread_barrier_t all_there;
static void *one_call(void *region)
{
    fdr_region r = *(fdr_region *)region;
    fdr_enter(r), fdr_leave(r);
    pthread_barrier_wait(&all_there);
    return NULL;
}
static void threads(fdr_region r, unsigned count)
{
    static pthread_t t[1000];
    pthread_barrier_init(&all_there, NULL, count);
    for (unsigned i = 0; i < count; i++) if (pthread_create(&t[i], NULL, one_call, &r)) abort();
    for (unsigned i = 0; i < count; i++) pthread_join(t[i], NULL);
}
int main(int argc, char **argv)
{
    setlocale(LC_ALL, "");
    int e = fdr_init(NULL);
    fdr_region r = fdr_region_define("r", NULL, 0);
    fdr_enter(r), fdr_leave(r);
    if (getenv("THREADS")) threads(r, (unsigned)atoi(getenv("THREADS")));
    for (int i = 0; i < 99999; i++) fdr_enter(r), fdr_leave(r);
    struct fdr_usage u = fdr_usage();
    int s = 0;
    if (getenv("CHDIR") && chdir(getenv("CHDIR"))) abort();
    for (int i = 1; i < argc; i++) s = fdr_snapshot(argv[i]);
    printf("init %d presented %llu lost %llu buffer %llu bin %llu snapshot %s path %s\n", e, (unsigned long long)u.presented,
           (unsigned long long)u.lost, (unsigned long long)u.buffer_bytes, (unsigned long long)u.bin_bytes, s ? strerror(-s) : "ok", fdr_last_snapshot());
    fdr_finalize();
    return 0;
}
C
flags=
case ${FDR_SANITIZE:-} in *?*) flags="-fsanitize=$FDR_SANITIZE" ;; esac
[ "${FDR_COVERAGE:-OFF}" = ON ] && flags="$flags --coverage"
library=$(find "$FDR_BUILD" -maxdepth 2 -name 'libfdr.so' | head -1)
[ -n "$library" ] || { echo "test_wrong_settings: no libfdr.so in FDR_BUILD"; exit 1; }
# shellcheck disable=SC2086
${CC:-cc} $flags -g -I"$FDR_SOURCE/include" "$work/program.c" "$library" -pthread -Wl,-rpath,"$(dirname "$library")" -o "$work/program" || exit 1
cd "$work" || exit 1
mkdir snapshots

# run ENVIRONMENT... -- ARGUMENTS...: runs the program in a clean environment; stdout to out.txt, stderr to err.txt
as=() # command that runs the program as another user
run()
{
    local settings=()
    while [ "$1" != -- ]; do settings+=("$1"); shift; done
    shift
    env -i PATH="$PATH" HOME="$work" FDR_LIVE_DIR="$live" FDR_DIR="$work/snapshots" FDR_BUFFER=1M "${settings[@]}" \
        "${as[@]}" "$work/program" "$@" >"$work/out.txt" 2>"$work/err.txt"
    code=$?
}
# text FILE: its lines, as $text, and the number of those that are not empty, as $count. No process: there are hundreds.
text()
{
    local line
    count=0 text=
    while IFS= read -r line || [ -n "$line" ]; do
        text+=$line$'\n'
        [ -z "$line" ] || count=$((count + 1))
    done <"$1"
}
# lines COUNT WHAT WORD...: the last run ended with status 0 and printed COUNT lines, all of these words among them
lines()
{
    local expected=$1 what=$2 good=1 word text count
    shift 2
    text err.txt
    [ "$code" = 0 ] || good=0
    [ "$count" = "$expected" ] || good=0
    [ "$expected" = 0 ] || [[ $'\n'$text == *$'\n'"fdr: "* ]] || good=0
    for word in "$@"; do [[ $text == *"$word"* ]] || good=0; done
    if [ $good = 1 ]; then ok "$what: ${text%%$'\n'*}"; else
        fail "$what: exit $code, expected $expected line(s) with: $*"
        sed 's/^/    /' err.txt out.txt
    fi
}
# wrong NAME VALUE INSTEAD: one line with all three
wrong()
{
    local text count
    run "$1=$2" -- one
    lines 1 "$1=$2" "$1" "$2" "using $3"
    text out.txt
    [[ $text == *"init 0 presented 100000 "*"snapshot ok"* ]] || fail "$1=$2: the program did not record: $text"
    [[ $text == *" lost 0 "* ]] || fail "$1=$2: lost events"
    rm -f snapshots/*
}

run -- one
lines 0 "nothing wrong: nothing said"
run FDR_COUNTERS=off FDR_EDGE_COUNTERS=off FDR_PAPI=off FDR_SAMPLE=off FDR_WATCHDOG=off -- one
lines 0 "all of them off: nothing said"
grep -q 'presented 100000 lost 0 buffer 1048576 bin 4096 snapshot ok' out.txt || fail "a plain run: $(cat out.txt)"
[ -z "$(ls "$live")" ] || fail "clean exit leaves $(ls "$live")"

# ---- names ----
# misspelt NAME MEANT: one line with both
misspelt()
{
    run "$1=8M" -- one
    lines 1 "$1" "fdr: $1: no setting of that name" "did you mean $2?"
    grep -q 'presented 100000 lost 0 buffer 1048576 bin 4096 snapshot ok' out.txt || fail "$1: $(cat out.txt)"
    rm -f snapshots/*
}
misspelt FDR_BUFER FDR_BUFFER
misspelt FDR_BUFFRE FDR_BUFFER
misspelt FDR_BUFFERS FDR_BUFFER
misspelt FDR_BUFFER_SIZE FDR_BUFFER
misspelt FDR_MINDURATION FDR_MIN_DURATION
misspelt FDR_MIN_DURATOIN_ FDR_MIN_DURATION
misspelt FDR_CRASH_DEADLINE_MS FDR_CRASH_DEADLINE
misspelt FDR_PINN FDR_PIN
for name in FDR_ FDR FDR_BUILD FDR_SOURCE FDR_CORPUS FDR_PEERS FDR_TEST_BUDGET FDR_SYMBOLS FDR_OWN XFDR_BUFER fdr_bufer FDRBUFFER \
    FDR_A_VARIABLE_OF_SOMEBODY_ELSE_THAT_IS_VERY_LONG_AND_SAYS_NOTHING_TO_US; do
    run "$name=8M" -- one
    lines 0 "$name is somebody else's"
    rm -f snapshots/*
done

# ---- values ----
wrong FDR_ENABLE maybe 1
for v in 0 0M lots -1 1T 12Q 1e99 1e6 0x100000 1E2K nan inf 5M5 '1 M'; do wrong FDR_BUFFER "$v" "the default"; done
for v in big -4K nan; do wrong FDR_BIN "$v" 4K; done
wrong FDR_BIN 1000 512
wrong FDR_BIN 1 512
run FDR_BIN=1M FDR_BUFFER=8M -- one
lines 1 "FDR_BIN=1M" FDR_BIN "FDR_BIN=1M:" "using 65536"
wrong FDR_ARENA heap mapped
for v in telescop newest LAST; do wrong FDR_STRATEGY "$v" telescope; done
for v in duration,width depth,depth duration,depth,class,epoch,depth; do wrong FDR_REDUCE "$v" duration,depth,class,epoch; done
for v in 5 1h -1us us nan 1usx; do wrong FDR_MIN_DURATION "$v" 0; done
for v in fine 100 -1ns 1e9s 3601s 0.1ns; do wrong FDR_RESOLUTION "$v" 0; done
for v in 0 -3 deep 12x 99999999999999999999 ' 5' +5 -18446744073709551615; do wrong FDR_DEPTH "$v" "no limit"; done
wrong FDR_TIMER sundial tsc
for v in KILL 9 11 32 33 99 USR USR1x -1 RTMIN-1 RTMIN+ RTMIN+99 RTMAX+1 RTMAXx; do wrong FDR_SIGNAL "$v" USR1; done
wrong FDR_SIGNAL " 10" USR1
wrong FDR_SIGNAL +10 USR1
for v in RTMIN SIGRTMIN+2 RTMAX-1 SIGUSR2 12; do run FDR_SIGNAL="$v" -- one; lines 0 "FDR_SIGNAL=$v"; done
for v in 0 all 3,best -1,oldest 3oldest -18446744073709551615 ' 5' +5; do wrong FDR_KEEP "$v" 8,oldest; done
for v in 257 1000,oldest 99999999999999999999; do wrong FDR_KEEP "$v" 256,oldest; done
wrong FDR_KEEP 300,newest 256,newest
for v in 256 256,newest; do run FDR_KEEP="$v" -- one; lines 0 "FDR_KEEP=$v"; done
wrong FDR_HOLDOFF soon 1s
for v in plenty 1.5 1. .5 2.0 0.0001K; do wrong FDR_DISK "$v" 512M; done
for name in BUFFER BIN DISK; do run "FDR_$name=1.5" -- one; lines 1 "FDR_$name=1.5" "FDR_$name=1.5: not a size"; done
for v in often 10 0Hz -1kHz nan infkHz 1e999Hz 2h '1 kHz' 1kHz,fast 1kHz,,wal page-faults/0 faults/7 cycles/ cycles/1e6; do wrong FDR_SAMPLE "$v" off; done
for v in 1us 1MHz; do wrong FDR_SAMPLE "$v" 100us; done
# With ThreadSanitizer, its own handler takes all the time at this rate and ours runs much later; fdr reports that, too.
[ "${FDR_SANITIZE:-}" = thread ] || wrong FDR_SAMPLE 99us,wall 100us
for v in often 1us 11s; do wrong FDR_COUNTER_INTERVAL "$v" 1ms; done
wrong FDR_FINALIZE yes none
for v in 2 yes ALL 0,first first,0 all,firs ',' all,0; do wrong FDR_CRASH "$v" 1; done
for v in 1 all,1 exit,all; do run FDR_CRASH="$v" -- one; lines 0 "FDR_CRASH=$v"; done
# A sanitizer's sigaction stays in front of fdr's; fdr says so once.
first=0
case ${FDR_SANITIZE:-} in *address* | *thread*) first=1 ;; esac
for v in first 1,first all,first first,exit; do run FDR_CRASH="$v" -- one; lines $first "FDR_CRASH=$v"; done
for v in 5 soon -1ms nan 0 0ms; do wrong FDR_CRASH_DEADLINE "$v" 800ms; done
for v in 101% 1.5; do wrong FDR_CRASH_TOTAL "$v" 10%; done
wrong FDR_CRASH_FREE off 15%
for v in -1d 1w; do wrong FDR_CRASH_AGE "$v" 14d; done
run FDR_CRASH_TOTAL=off FDR_CRASH_FREE=2G FDR_CRASH_AGE=1.5h -- one
lines 0 "FDR_CRASH_TOTAL=off FDR_CRASH_FREE=2G FDR_CRASH_AGE=1.5h"
for v in 0 4,x '4,' 1001 -1 equals '1 2' "$(seq -s, 17)"; do wrong FDR_TELESCOPE "$v" equal; done
for v in 5 soon -1ms nan; do wrong FDR_PIN "$v" 0; done
for v in 5 1ms maybe -30s 1h 30s,rank ,job; do wrong FDR_WATCHDOG "$v" off; done
wrong FDR_WATCHDOG_IGNORE "," none
wrong FDR_WATCHDOG_IGNORE " ," none
# For these values, the line names the part that fdr leaves out.
refused() # NAME VALUE WORD...: one line with all of them
{
    local name=$1 value=$2
    shift 2
    run "$name=$value" -- one
    lines 1 "$name=$value" "$name" "$@"
    grep -q 'init 0 presented [0-9]* .*snapshot ok' out.txt || { fail "$name=$value: the program did not record"; cat out.txt; }
    rm -f snapshots/*
}
for v in fast 0Hz -5 1ZHz 'walls:5'; do wrong FDR_SAMPLE "$v" off; done
refused FDR_TRIGGERS "nonsense" "nonsense"
refused FDR_TRIGGERS "$work/no/such/file" "no trigger is set"
refused FDR_COUNTERS "no-such-counter" "no-such-counter"
refused FDR_EDGE_COUNTERS "no-such-counter" "no-such-counter"
refused FDR_PAPI "NO_SUCH_EVENT"
longer=$(printf 'y%.0s' $(seq 1100))
for name in FDR_SAMPLE FDR_LIVE_DIR FDR_FILTER FDR_TRIGGERS FDR_COUNTERS FDR_EDGE_COUNTERS FDR_EDGE_REGIONS FDR_PAPI FDR_WATCHDOG_IGNORE; do
    run "$name=$longer" -- one
    lines 1 "$name of 1100 bytes" "$name=y" "using "
    if grep -qE 'using $' err.txt; then fail "$name of 1100 bytes: does not say what is used"; fi
done
rm -f snapshots/*
wrong FDR_LIVE_FORCE perhaps 0
wrong FDR_FORK perhaps daemon
wrong FDR_CHECK perhaps 0
wrong FDR_REDUCE , duration,depth,class,epoch
wrong FDR_CLASSES , none
run FDR_CLASSES=metric,nonsense -- one
lines 1 "FDR_CLASSES with a class that is none" FDR_CLASSES metric,nonsense "'nonsense'"
run FDR_CLASSES="$(printf 'a,%.0s' $(seq 5000))metric" -- one
lines 1 "FDR_CLASSES with 5000 that are none" FDR_CLASSES "'a' and 4999 more" "using the others"
run FDR_REDUCE="duration$(printf ',%.0s' $(seq 200))width" -- one
lines 1 "FDR_REDUCE with a step that is none far behind" FDR_REDUCE "using duration,depth,class,epoch"
for name in FDR_ENABLE FDR_BUFFER FDR_STRATEGY FDR_CLASSES FDR_SAMPLE FDR_COUNTERS FDR_FILTER FDR_TRIGGERS; do
    run "$name=$(printf 'a\nb')" -- one
    lines 1 "$name of two lines" "$name=a?b"
done
for name in FDR_COUNTERS FDR_EDGE_COUNTERS FDR_PAPI FDR_EDGE_REGIONS; do wrong $name ', ,' none; wrong $name '|' none; done
run FDR_FILTER="$work/missing" -- one
lines 1 "FDR_FILTER that is not there" FDR_FILTER "$work/missing" "recording everything"
printf 'exclude name a\nfrobnicate name b\ninclude name c\n' >rules
mkfifo "$work/fifo"
run FDR_FILTER=/proc/self/mem -- one
lines 1 "FDR_FILTER that cannot be read" FDR_FILTER=/proc/self/mem "Input/output error"
run FDR_TRIGGERS=/proc/self/mem -- one
lines 1 "FDR_TRIGGERS that cannot be read" FDR_TRIGGERS=/proc/self/mem "Input/output error"
run FDR_FILTER="$work/fifo" -- one
lines 1 "FDR_FILTER that is a FIFO" FDR_FILTER "not a file" "recording everything"
run FDR_TRIGGERS=/dev/zero -- one
lines 1 "FDR_TRIGGERS without an end" FDR_TRIGGERS "not a file"
run FDR_FILTER="$work/rules" -- one
lines 2 "a rule that is none" "FDR_FILTER=" "line 2" "nothing matched these patterns"
grep -q 'presented 100000' out.txt || fail "a rule that is none: not recorded"
printf 'exclude name a%17000s name b\ninclude name c # %20000s frobnicate\nexclude name d\nexclude exact e#%17000s\n' exclude x y >rules
run FDR_FILTER="$work/rules" -- one
lines 3 "rules of more than 16383 bytes" FDR_FILTER "line 1 '" "longer than 16383 bytes" "line 4 '"
run FDR_BUFFER=1K -- one
lines 1 "a buffer too small for one bin per location" "FDR_BUFFER=1K:" "using"
grep -q 'presented 100000' out.txt || fail "a small buffer: not recorded"
run FDR_BUFFER=100G -- one
lines 1 "a buffer beyond what offsets reach" FDR_BUFFER "using"
run FDR_BUFFER=128K FDR_BIN=64K -- one
lines 1 "a buffer too small for its bins" "FDR_BUFFER=128K:" "using"
run FDR_BUFFER=256K THREADS=300 -- one
lines 1 "more threads than the buffer has room for" "no room for one more thread" "only counted"
grep -q 'init 0 presented 10[0-9]* .*snapshot ok' out.txt || fail "more threads than fit: $(cat out.txt)"
run FDR_ENABLE=0 -- one
if [ "$code" = 0 ] && [ ! -s err.txt ] && grep -q 'init 0 presented 0 lost 0 buffer 0' out.txt; then
    ok "FDR_ENABLE=0 says and does nothing"
else
    fail "FDR_ENABLE=0: $(cat out.txt err.txt)"
fi
rm -f snapshots/*

# ---- FDR_DIR: snapshots ----
run FDR_DIR="$work/nowhere" --
lines 1 "FDR_DIR that is not there, at the start" "FDR_DIR=$work/nowhere: No such file or directory; recording goes on"
[ ! -e nowhere ] || fail "FDR_DIR is made"
run FDR_DIR="$work/nowhere" FDR_ENABLE=0 --
lines 0 "FDR_DIR that is not there, of a program that records nothing"
run FDR_DIR="$work/nowhere" -- one
lines 2 "FDR_DIR that is not there" "FDR_DIR=$work/nowhere: No such file or directory; no snapshot was written"
grep -q 'presented 100000 .*snapshot No such file' out.txt || fail "FDR_DIR missing: $(cat out.txt)"
echo file >plain
run FDR_DIR="$work/plain" -- one
lines 2 "FDR_DIR that is a file" "FDR_DIR=$work/plain: Not a directory; recording goes on" "no snapshot was written"
long=$(printf 'x%.0s' $(seq 600))
run FDR_DIR="/tmp/$long" -- one
lines 1 "FDR_DIR too long" FDR_DIR "too long" "using"
rm -f ./*.fdr
relative=$(printf 'x%.0s' $(seq 250))
relative=$relative/$(printf 'y%.0s' $(seq 250))
mkdir -p "$relative"
run FDR_DIR="$relative" -- one
lines 1 "FDR_DIR too long with the working directory" "FDR_DIR=xxx" "too long with the working directory put before it; using the relative path"
rm -r "${relative%%/*}"
mkdir elsewhere
run FDR_DIR=snapshots CHDIR=elsewhere -- one
lines 0 "FDR_DIR relative to where the program started"
if [ -z "$(ls snapshots)" ] || [ -n "$(ls elsewhere)" ]; then
    fail "FDR_DIR=snapshots behind chdir: $(ls snapshots elsewhere)"
fi
rm -f snapshots/*
mkdir -m 555 readonly
readonly_dir()
{
    cd readonly || exit 1 # FDR_DIR is set, although it is the directory in which the program starts
    run FDR_DIR="$work/readonly" "$@" --
    cd "$work" || exit 1
    lines 1 "FDR_DIR that is the working directory and read-only" "FDR_DIR=$work/readonly: Permission denied; recording goes on"
    run FDR_DIR="$work/readonly" "$@" -- one
    lines 2 "FDR_DIR that is read-only" "FDR_DIR=$work/readonly: Permission denied; recording goes on" "no snapshot was written"
    grep -q 'presented 100000 .*snapshot Permission denied' out.txt || fail "FDR_DIR read-only: $(cat out.txt)"
    [ -z "$(ls -A readonly)" ] || fail "FDR_DIR read-only: it holds $(ls -A readonly)"
}
if [ "$(id -u)" != 0 ]; then
    readonly_dir
else # root may write anywhere
    as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
    chmod 755 "$work"
    mkdir lib && cp -L "$library" "lib/$(objdump -p "$library" | sed -n 's/^ *SONAME *//p')"
    mkdir -m 700 "$live-other" && chown 65534:65534 "$live-other"
    if "${as[@]}" test -x program 2>/dev/null; then
        readonly_dir FDR_LIVE_DIR="$live-other" LD_LIBRARY_PATH="$work/lib"
    else
        echo "skipped: a read-only FDR_DIR (no setpriv, or $work is closed to others)"
    fi
    as=()
fi
mkdir tiny
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=64k tmpfs tiny 2>/dev/null; then
    mounted=$work/tiny
    run FDR_DIR="$work/tiny" -- one
    lines 1 "FDR_DIR that is full" "$work/tiny" "No space left"
    grep -q 'presented 100000 .*snapshot No space left' out.txt || fail "FDR_DIR full: $(cat out.txt)"
    [ -z "$(ls -A tiny)" ] || fail "FDR_DIR full: left behind $(ls -A tiny)"
    # A full live directory is an error at the start and never a SIGBUS later.
    mkdir -m 700 tiny/live
    run FDR_LIVE_DIR="$work/tiny/live" -- one
    lines 1 "FDR_LIVE_DIR that is full" FDR_LIVE_DIR "$work/tiny/live" "No space left" "anonymous memory"
    grep -q 'presented 100000 .*snapshot ok' out.txt || fail "FDR_LIVE_DIR full: $(cat out.txt)"
    [ -z "$(ls -A tiny/live)" ] || fail "FDR_LIVE_DIR full: left behind $(ls -A tiny/live)"
    umount tiny
    # It has room for a part of the arena only, in large pages if the kernel provides them.
    mount -t tmpfs -o size=5m tmpfs tiny && mkdir -m 700 tiny/live
    run FDR_BUFFER=8M FDR_LIVE_DIR="$work/tiny/live" -- one
    lines 1 "FDR_LIVE_DIR with too little room" FDR_LIVE_DIR "$work/tiny/live" "No space left" "anonymous memory"
    grep -q 'presented 100000 .*snapshot ok' out.txt || fail "FDR_LIVE_DIR with too little room: $(cat out.txt)"
    [ -z "$(ls -A tiny/live)" ] || fail "FDR_LIVE_DIR with too little room: left behind $(ls -A tiny/live)"
    umount tiny && mounted=
else
    echo "skipped: full directories (needs root and a mount)"
fi

# ---- FDR_LIVE_DIR ----
unusable()
{
    run FDR_LIVE_DIR="$1" -- one
    lines 1 "$2" FDR_LIVE_DIR "$1" "anonymous memory"
    grep -q 'presented 100000 .*snapshot ok' out.txt || fail "$2: $(cat out.txt)"
    rm -f snapshots/*
}
ln -s "$live" "$live-link"
unusable "$live-link" "a live directory that is a symbolic link"
unusable /proc/nowhere/live "a live directory that cannot be made"
unusable "$work/plain" "a live directory that is a file"
chmod 777 "$live"
unusable "$live" "a live directory that others may write"
chmod 700 "$live"
if [ "$(id -u)" != 0 ]; then
    chmod 500 "$live"
    unusable "$live" "a live directory that is read-only"
    chmod 700 "$live"
else
    chown 12345 "$live"
    unusable "$live" "a live directory of another user"
    chown 0 "$live"
fi
mkdir -m 700 disk
case $(stat -f -c %T disk) in
    tmpfs | ramfs) echo "skipped: a live directory on a disk (TMPDIR is in RAM)" ;;
    *)
        unusable "$work/disk" "a live directory that is not RAM-backed"
        unusable "$work/refused" "a new live directory that is not RAM-backed"
        [ ! -e "$work/refused" ] || fail "a refused live directory is left behind"
        run FDR_LIVE_DIR="$work/disk" FDR_LIVE_FORCE=1 -- one
        lines 0 "FDR_LIVE_FORCE=1 uses it"
        [ -z "$(ls disk)" ] || fail "a forced live directory keeps $(ls disk)"
        ;;
esac
run FDR_LIVE_DIR="$live/made/here" -- one
lines 1 "a live directory whose parent is missing" FDR_LIVE_DIR "anonymous memory"
run FDR_LIVE_DIR="$live/made" -- one
lines 0 "a live directory is made"
[ "$(stat -c %a "$live/made")" = 700 ] || fail "a live directory is made with mode $(stat -c %a "$live/made")"

# ---- the program's locale has another decimal point ----
if localedef -i de_DE -f UTF-8 "$work/de_DE.UTF-8" >/dev/null 2>&1; then
    run LOCPATH="$work" LC_ALL=de_DE.UTF-8 FDR_BUFFER=1.5M FDR_MIN_DURATION=0.25ns FDR_SAMPLE=0.5kHz -- one
    lines 0 "numbers in a German program"
    grep -q 'presented 100000 lost 0 buffer 1572864 ' out.txt || fail "numbers in a German program: $(cat out.txt)"
else
    echo "skipped: no localedef"
fi

# ---- the command ----
if [ -x "$FDR_BUILD/bin/fdr" ]; then
    FDR_SYMBOLS=maybe "$FDR_BUILD/bin/fdr" version >/dev/null 2>err.txt
    [ "$(cat err.txt)" = "fdr: FDR_SYMBOLS=maybe: known: 0, 1; using 1" ] || fail "FDR_SYMBOLS=maybe: $(cat err.txt)"
    FDR_SYMBOLS=0 "$FDR_BUILD/bin/fdr" version 2>&1 >/dev/null | grep . && fail "FDR_SYMBOLS=0 says something"
fi

# ---- many wrong at once: one line each ----
run FDR_BUFFER=x FDR_BIN=x FDR_STRATEGY=x FDR_TIMER=x -- one
lines 4 "four wrong values"

# ---- limits reached: one line each ----
run FDR_KEEP=2,oldest -- 1 2 3 4 5 6
lines 1 "more snapshots than FDR_KEEP" FDR_KEEP
[ "$(find snapshots -name '*.fdr' | wc -l)" -ge 2 ] || fail "FDR_KEEP: $(ls snapshots)"
find snapshots -name '*.part' | grep . && fail "temporary files are left"
rm -f snapshots/*
run FDR_DISK=4K FDR_FINALIZE=snapshot -- 1 2
lines 1 "a snapshot larger than FDR_DISK" "FDR_DISK is less than the size of one snapshot"
grep -q FDR_KEEP err.txt && fail "FDR_KEEP does not help where FDR_DISK is too small"

if [ $bad = 0 ]; then echo "test_wrong_settings: all good"; else echo "test_wrong_settings: $bad wrong"; exit 1; fi
