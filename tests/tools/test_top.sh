#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=120
# fdr top, stats and snapshot of a running, a stopped and a deaf process. On a terminal `fdr top` redraws in place,
# elsewhere it prints plain lines. Last part: fdr ignores file names in the environment of a program with extra
# privileges.
set -u
: "${FDR_BUILD:?}" "${FDR_SOURCE:?}"
fdr=$FDR_BUILD/bin/fdr
if [ ! -x "$fdr" ]; then echo "test_top: no $fdr (jansson or zstd missing): skipped"; exit 77; fi
if [ -n "${FDR_SANITIZE:-}" ]; then echo "test_top: the program it builds has no sanitizer: skipped"; exit 77; fi
work=$(mktemp -d)
live=$(mktemp -d /dev/shm/fdr-test-top-XXXXXX)
pid=
clean() { [ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null; rm -rf "$work" "$live"; }
trap clean EXIT
cd "$work" || exit 1
export FDR_LIVE_DIR=$live FDR_DIR=$work
bad=0
fail() { echo "FAIL: $*"; bad=$((bad + 1)); }
has() { grep -q -- "$1" out.txt || fail "$2: no '$1' in: $(head -c 2000 out.txt)"; }
has_not() { if grep -q -- "$1" out.txt; then fail "$2: '$1' in: $(head -c 2000 out.txt)"; fi; }
run()
{
    local code=$1 what=$2 got
    shift 2
    timeout 60 "$@" >out.txt 2>err.txt
    got=$?
    if [ "$got" = "$code" ]; then echo "ok: $what"; else fail "$what: exit $got, not $code: $(head -3 err.txt)"; fi
}

cat >program.c <<'END_C'
#include <fdr/fdr.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static void *calls(void *region)
{
    for (int i = 0; i < 100; i++) fdr_enter(*(fdr_region *)region), fdr_leave(*(fdr_region *)region);
    return NULL;
}
int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    struct fdr_config c = {.size = sizeof c, .buffer = "1M"};
    sigset_t all;
    sigfillset(&all);
    if (!strcmp(how, "named")) c.name = "a.job";
    if (!strcmp(how, "deaf")) sigprocmask(SIG_BLOCK, &all, NULL);
    if (fdr_init(&c)) return 90;
    fdr_region outer = fdr_region_define("outer", NULL, 0), inner = fdr_region_define("inner", NULL, 0);
    if (!strcmp(how, "simulated")) {
        uint64_t t = 1000;
        fdr_enter_at(outer, t);
        fdr_enter_at(inner, t += 10);
        puts("ready");
        fflush(stdout);
        for (;;) pause();
    }
    fdr_enter(outer);
    for (int i = 0; i < 1000; i++) fdr_enter(inner), fdr_leave(inner);
    if (!strcmp(how, "die")) kill(getpid(), SIGKILL);
    puts("ready");
    fflush(stdout);
    for (pthread_t t; !strcmp(how, "threads"); usleep(1000))
        if (!pthread_create(&t, NULL, calls, &inner)) pthread_join(t, NULL);
    for (int n = 10000; !strcmp(how, "again"); n = n > 10 ? n / 2 : 10000) {
        for (int i = 0; i < n; i++) calls(&inner);
        usleep(30000);
        fdr_finalize();
        if (fdr_init(&c)) return 91;
    }
    for (;;) {
        fdr_enter(inner);
        usleep(1000);
        fdr_leave(inner);
    }
}
END_C
${CC:-cc} -O1 -I"$FDR_SOURCE/include" program.c -o program -L"$FDR_BUILD/lib" -lfdr -pthread -Wl,-rpath,"$FDR_BUILD/lib" ||
    { echo "cannot build the program"; exit 1; }

start()
{
    rm -f ready.txt
    ./program "$1" >ready.txt &
    pid=$!
    for _ in $(seq 1000); do grep -qs ready ready.txt && break; sleep 0.02; done
}
stop()
{
    kill -KILL "$pid"
    wait "$pid" 2>/dev/null
    pid=
    rm -f "$live"/*
}

for how in running stopped deaf; do
    start "$how"
    if [ "$how" = stopped ]; then kill -STOP "$pid"; fi
    run 0 "top, $how" "$fdr" top -n 2 -i 50ms "$pid"
    has 'outer' "top, $how"
    has_not $'\033' "top where no terminal is, $how"
    run 0 "top --json, $how" "$fdr" top --json -n 3 -i 20ms "$pid"
    python3 - <<'END' || fail "top --json, $how"
import json
looks = [json.loads(line) for line in open("out.txt")]
assert len(looks) == 3
assert all(l["locations"][0]["open"][0] == "outer" for l in looks), looks[0]
assert all(a["ledger"]["presented"] <= b["ledger"]["presented"] for a, b in zip(looks, looks[1:]))
assert looks[0]["events_per_s"] is None and all(l["events_per_s"] is not None for l in looks[1:]), looks
for a, b in zip(looks, looks[1:]):
    events = b["events_per_s"] * (b["time_ns"] - a["time_ns"]) / 1e9  # a call is two
    assert abs(events - 2 * (b["ledger"]["presented"] - a["ledger"]["presented"])) < 1, (events, a, b)
END
    run 0 "stats PID, $how" "$fdr" stats "$pid"
    has 'inner' "stats, $how"
    run 0 "snapshot PID, $how" "$fdr" snapshot "$pid" -o "$how.fdr"
    run 0 "check of it, $how" "$fdr" check "$how.fdr"
    stop
done

start simulated
run 0 "info of times of its own" "$fdr" info --json "$pid"
if grep -q '"time_unit_ns": *1\.0[,}]' out.txt; then echo "the clock counts ns: times of its own are not tried"; else
    grep -q '"given_times": *true' out.txt || fail "info of times of its own"
    run 0 "hang of times of its own" "$fdr" hang --for 1ns "$pid"
    has "nothing hangs: 0 of 0 threads" "hang of times of its own"
    has "1 thread with open regions that records times of their own" "hang of times of its own"
    run 0 "top of times of its own" "$fdr" top -n 1 "$pid"
    has "  -  outer > inner" "top of times of its own"
fi
stop
start threads
run 0 "top of threads that come and go" "$fdr" top --json -n 4 -i 200ms "$pid"
python3 - <<'END' || fail "top of threads that come and go"
import json
looks = [json.loads(line) for line in open("out.txt")]
for a, b in zip(looks, looks[1:]):
    if b["events_per_s"] is None: continue  # a thread was counted twice or not at all while it ended: it fell
    events = b["events_per_s"] * (b["time_ns"] - a["time_ns"]) / 1e9
    assert abs(events - 2 * (b["ledger"]["presented"] - a["ledger"]["presented"])) < 1, (events, a["ledger"], b["ledger"])
assert looks[0]["ledger"]["presented"] < looks[-1]["ledger"]["presented"]
END
stop
start again
run 0 "top of recordings that follow one another" "$fdr" top --json -n 10 -i 100ms "$pid"
python3 - <<'END' || fail "top of recordings that follow one another"
import json
for look in map(json.loads, open("out.txt")):
    for rate in [look["events_per_s"]] + [l["events_per_s"] for l in look["locations"]]:
        assert rate is None or rate < 1e12, rate
END
stop

start running
python3 - "$fdr" "$pid" <<'END' || fail "snapshot without room"
import resource, signal, subprocess, sys
def no_room():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))
done = subprocess.run([sys.argv[1], "snapshot", sys.argv[2], "-o", "full.fdr"], preexec_fn=no_room, capture_output=True, text=True)
assert done.returncode == 2 and done.stderr == "fdr: full.fdr: File too large\n", done
END
stop

# the names are those that the process gives
long=$(printf 'n%.0s' $(seq 240))
for how in running named; do
    cp program "$long"
    ./"$long" "$how" >ready.txt &
    pid=$!
    for _ in $(seq 1000); do grep -qs ready ready.txt && break; sleep 0.02; done
    mkdir "from-$how"
    run 0 "snapshot of a long name, $how" "$fdr" snapshot "$pid" -o "from-$how"
    expected=$(basename "$(echo "$live"/*.live.fdr)" .live.fdr)
    expected=${expected%.*}.1.fdr
    [ -e "from-$how/$expected" ] || fail "snapshot, $how: $(ls "from-$how") and not $expected"
    stop
    rm "$long" ready.txt
done

# on a terminal each screen replaces the one before, also on a narrow one
cat >terminal.py <<'END'
import fcntl, os, pty, struct, sys, termios
rows, columns = int(sys.argv[1]), int(sys.argv[2])
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    os.execv(sys.argv[3], sys.argv[3:])
seen = b""
try:
    while (more := os.read(fd, 65536)):
        seen += more
except OSError:
    pass
sys.stdout.write(seen.decode(errors="replace"))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
start running
for size in "24 80" "40 200" "5 20"; do
    # shellcheck disable=SC2086
    run 0 "top on a terminal of $size" python3 terminal.py $size "$fdr" top -n 3 -i 20ms "$pid"
    [ "$(grep -o $'\033\[H' out.txt | wc -l)" = 3 ] || fail "top on a terminal of $size: not redrawn in place 3 times"
    has 'LOC' "top on a terminal of $size"
done
stop
run 2 "top of no process" "$fdr" top -n 1 999999999
if unshare -T --boottime 100 true 2>/dev/null; then
    rm -f ready.txt
    unshare -T --monotonic 100 --boottime 100 ./program there >ready.txt &
    for _ in $(seq 1000); do grep -qs ready ready.txt && break; sleep 0.02; done
    pid=$(pgrep -P $! || echo $!)
    run 2 "top of a process in another time namespace" "$fdr" top -n 1 "$pid"
    grep -q "another time namespace" err.txt || fail "top of a process in another time namespace says: $(head -1 err.txt)"
    run 0 "top beside it" nsenter -T -t "$pid" "$fdr" top -n 1 "$pid"
    stop
else echo "no time namespaces here: not tried"; fi

# a program with extra privileges: its environment must not choose files
if [ "$(id -u)" = 0 ] && id nobody >/dev/null 2>&1 && command -v setpriv >/dev/null; then
    chmod 755 "$work"
    mkdir given
    chmod 777 given
    cp program privileged
    chown root privileged
    chmod 4755 privileged
    FDR_LIVE_DIR=$work/given FDR_LIVE_FORCE=1 FDR_DIR=$work/given FDR_BUFFER=1M \
        setpriv --reuid nobody --clear-groups ./privileged die >out.txt 2>&1
    got=$?
    if [ "$got" = 137 ]; then
        if [ -z "$(ls given)" ]; then echo "ok: a privileged program ignores its environment"; else fail "a privileged program wrote $(ls given)"; fi
        rm -f /dev/shm/fdr-*/privileged.*.live.fdr
        rmdir "/dev/shm/fdr-$(id -u nobody)" 2>/dev/null
    else
        echo "a privileged program cannot be started here ($got: $(head -1 out.txt)): skipped"
    fi
else echo "not root, or no setpriv: a privileged program is not tried"; fi

[ "$bad" = 0 ] || { echo "$bad complaints"; exit 1; }
