#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=signals,slow timeout=600 promise=P10
# P10: FDR_FORK with whole programs: daemons of several kinds, children that call exec, servers with many workers. Each
# program waits for the file `stop`, so the test may look at its processes for as long as it needs.
set -euo pipefail
: "${FDR_BUILD:?}" "${FDR_SOURCE:?}"
fdr=$FDR_BUILD/bin/fdr
lib=$FDR_BUILD/lib
if [ -n "${FDR_SANITIZE:-}" ] || [ "${FDR_COVERAGE:-OFF}" = ON ]; then echo "not with sanitizers"; exit 77; fi
if [ ! -x "$fdr" ]; then echo "no $fdr (jansson or zstd missing)"; exit 77; fi
if ! "$fdr" version --build | grep -q '^with:.*\bdw\b'; then echo "no symbols without libdw"; exit 77; fi

work=$(mktemp -d)
cleanup()
{
    touch "$work/stop"
    sleep 0.2 # the programs see it
    rm -rf "$work" "$FDR_LIVE_DIR"
}
unset "${!FDR_@}"
FDR_LIVE_DIR=$(mktemp -d /dev/shm/fdr-test-XXXXXX)
trap cleanup EXIT
export FDR_LIVE_DIR FDR_BUFFER=4M FDR_DIR=$work
cd "$work"
bad=0
fail() { echo "FAIL: $*"; bad=$((bad + 1)); }

cat >program.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline))
static volatile int work;
NOINLINE void leaf(void) { work++; }
NOINLINE void request(void) { for (int i = 0; i < 100; i++) leaf(); }
NOINLINE void serve(void)
{
    do request(), usleep(10000); while (access("stop", F_OK));
}
static void say_pid(void)
{
    FILE *f = fopen("pid.new", "w");
    fprintf(f, "%d\n", (int)getpid());
    fclose(f);
    rename("pid.new", "pid");
}
NOINLINE int fork_for(void) { return fork(); }
NOINLINE void lead(void) { if (setsid() < 0) exit(1); }
NOINLINE void once(void)
{
    if (fork()) _exit(0);
    lead();
}
NOINLINE void twice(void)
{
    if (fork_for()) exit(0);
    lead();
    if (fork_for()) _exit(0);
}
NOINLINE void close_all(void)
{
    once();
    for (int i = 3; i < 1024; i++) close(i);
}
NOINLINE int workers(int count)
{
    for (int i = 0; i < count; i++) if (!fork_for()) return 0;
    while (wait(NULL) > 0) {}
    return 1;
}
static void run_shell(int lead_first)
{
    int status;
    if (!fork_for()) {
        if (lead_first) setsid();
        execl("/bin/sh", "sh", "-c", "set -- /proc/$$/fd/*; echo $#; set -- /proc/$$/task/*; echo $#; set -- $FDR_LIVE_DIR/*; echo $#", (char *)0);
    }
    wait(&status);
}
int main(int argc, char **argv)
{
    const char *how = argv[1];
    if (!strcmp(how, "exec")) return run_shell(argc > 2), 0;
    if (!strcmp(how, "workers")) return workers(atoi(argv[2])) ? 0 : (serve(), 0);
    if (!strcmp(how, "daemon") && daemon(1, 1)) return 1;
    if (!strcmp(how, "once")) once();
    if (!strcmp(how, "twice")) twice();
    if (!strcmp(how, "closed")) close_all();
    say_pid();
    serve();
    return 0;
}
END
hooks=(-O1 -g -finstrument-functions -fno-optimize-sibling-calls)
gcc "${hooks[@]}" program.c -o shared -L "$lib" -Wl,-rpath,"$lib" -Wl,--no-as-needed -lfdr-instrument -lfdr
read -ra needs <<<"$(pkg-config --libs liburcu-bp numa)"
gcc "${hooks[@]}" program.c -o static -L "$lib" -l:libfdr-instrument.a -l:libfdr.a "${needs[@]}" -pthread -lrt -ldl
gcc "${hooks[@]}" program.c -o preloaded

# until WHAT COMMAND...: waits until the command succeeds, at most 120 s
until_true()
{
    local what=$1
    shift
    for _ in $(seq 1200); do
        if "$@" >/dev/null 2>&1; then return 0; fi
        sleep 0.1
    done
    fail "$what"
    return 1
}
files() { find "$FDR_LIVE_DIR" -name "*$1*.live.fdr" | wc -l; }
has_files() { [ "$(files "${2:-}")" = "$1" ]; }
ended() { ! kill -0 "$1"; }

start() { # start PROGRAM HOW...: runs it in the background
    local program=$1 preload=
    shift
    if [ "$program" = preloaded ]; then preload=$lib/libfdr-instrument.so; fi
    rm -f stop pid err
    LD_PRELOAD=$preload "./$program" "$@" >out 2>err &
    first=$!
}

# ---- daemons ----

one_daemon() # PROGRAM HOW OPEN
{
    local what="$1 $2"
    start "$1" "$2"
    until_true "$what: no pid" test -s pid || return 0
    local pid
    pid=$(cat pid)
    until_true "$what: no live file" has_files 1 ".$pid." || { cat err; return 0; }
    if ! "$fdr" info "$pid" >shown 2>&1; then fail "$what: fdr info: $(tail -1 shown)"; fi
    grep -q "^note *forked from = " shown || fail "$what: no note of the parent"
    if [ -n "$3" ]; then grep -qE "^ *open *$3" shown || fail "$what: open calls: $(grep -E '^ *open' shown)"; fi
    touch stop
    until_true "$what: does not end" ended "$pid" || return 0
    has_files 0 ".$pid." || fail "$what: the daemon's live file stays"
    if [ "$2" = daemon ]; then has_files 0 || fail "$what: the parent's live file stays"; fi
    if [ -s err ]; then fail "$what: $(cat err)"; fi
    rm -f "$FDR_LIVE_DIR"/*
}
for program in shared static preloaded; do
    one_daemon "$program" daemon "main > serve"
    one_daemon "$program" once "main > serve"
    one_daemon "$program" twice "main > serve"
done
one_daemon shared closed ""
FDR_FORK=follow one_daemon shared twice "main" # serve began before the recording did

# ---- children that call exec see nothing of fdr ----

for how in "exec" "exec lead"; do
    for mode in daemon follow off; do
        # shellcheck disable=SC2086
        FDR_ENABLE=0 ./shared $how >without 2>err
        # shellcheck disable=SC2086
        FDR_FORK=$mode ./shared $how >with 2>>err
        # the third line counts live files: with fdr there is that of the parent, without it the pattern itself
        cmp -s without with || fail "$how, $mode: $(tr '\n' ' ' <without) / $(tr '\n' ' ' <with)"
        if [ -s err ]; then fail "$how, $mode: $(cat err)"; fi
        has_files 0 || fail "$how, $mode: a live file stays"
    done
done

# ---- workers ----

start shared workers 3
until_true "workers: nothing is said" grep -q "is a forked child of this one and records nothing" err
has_files 1 || fail "workers: $(files "") live files, expected that of the parent"
touch stop
wait $first
if [ "$(wc -l <err)" != 1 ]; then fail "workers: $(cat err)"; fi

FDR_FORK=follow start shared workers 50
until_true "50 workers followed: $(files "") live files" has_files 51
if ! "$fdr" info "$(pgrep -P $first | tail -1)" >shown 2>&1; then fail "a worker: $(tail -1 shown)"; fi
grep -q "^buffer *256 KiB" shown || fail "a worker: $(grep ^buffer shown)"
grep -q "^ *open *main" shown || fail "a worker: no open calls"
touch stop
wait $first
if [ -s err ]; then fail "50 workers: $(cat err)"; fi
has_files 0 || fail "50 workers: a live file stays"

# 64 sixteenths are the limit. All that find none say so in one line.
FDR_FORK=follow start shared workers 70
until_true "70 workers followed: $(files "") live files" has_files 65
until_true "70 workers: nothing is said" grep -q "hold their limit of memory" err
touch stop
wait $first
if [ "$(wc -l <err)" != 1 ]; then fail "70 workers: $(cat err)"; fi

echo "$bad failures"
[ "$bad" = 0 ]
