#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=tools,slow timeout=600 promise=P7
# P7: the recordings that processes leave behind can be listed, read, collected and removed. No verb removes a file that
# is being written, or that was not read yet. Also tests fdr run and fdr hang.
# shellcheck disable=SC2015
set -u
: "${FDR_BUILD:?}" "${FDR_SOURCE:?}"
fdr=$FDR_BUILD/bin/fdr
if [ ! -x "$fdr" ]; then echo "test_leftover_recordings: no $fdr (jansson or zstd missing): skipped"; exit 77; fi
if [ -n "${FDR_SANITIZE:-}" ]; then echo "test_leftover_recordings: the program it builds has no sanitizer: skipped"; exit 77; fi
work=$(mktemp -d)
live=/dev/shm/fdr-test-left-$$
trap 'rm -rf "$work" "$live"' EXIT
cd "$work" || exit 1
export FDR_LIVE_DIR=$live FDR_DIR=$work
bad=0
fail() { echo "FAIL: $*"; bad=$((bad + 1)); }
ok() { echo "ok: $*"; }
expect()
{
    local code=$1 what=$2 got
    shift 2
    "$@" >out.txt 2>err.txt
    got=$?
    if [ "$got" = "$code" ]; then ok "$what"; else
        fail "$what: exit $got, not $code: $*"
        head -3 err.txt
    fi
}
has() { grep -q -- "$1" out.txt err.txt || fail "$2: no '$1' in: $(cat out.txt err.txt)"; }
# shellcheck disable=SC2012,SC2086
count() { ls $1 2>/dev/null | wc -l; }

cat >program.c <<'END'
#include <fdr/fdr.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
static volatile sig_atomic_t seen;
static void see(int number) { (void)number, seen++; }
/* A thread that waits for signals would be idle. */
static void hang(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    pthread_mutex_lock(&lock);
}
static int count(void)
{
    struct sigaction a;
    sigaction(SIGCHLD, NULL, &a);
    if (a.sa_handler == SIG_IGN) seen += 10;
    signal(SIGINT, see);
    puts("ready");
    fflush(stdout);
    while (seen % 10 == 0) usleep(1000);
    usleep(300000); /* a second one would be on its way */
    return seen;
}
static void *others(void *first)
{
    pthread_join(*(pthread_t *)first, NULL);
    FDR_REGION("outer") {
        puts("ready");
        fflush(stdout);
        hang();
    }
    return NULL;
}
int main(int argc, char **argv)
{
    static pthread_t me, other;
    const char *how = argc > 1 ? argv[1] : "";
    struct fdr_config c = {.size = sizeof c, .buffer = "1M"};
    if (fdr_init(&c)) return 90;
    fdr_region outer = fdr_region_define("outer", NULL, 0), stuck = fdr_region_define(argc > 2 ? argv[2] : "stuck", NULL, 0);
    fdr_enter(outer);
    for (int i = 0; i < 100; i++) fdr_enter(stuck), fdr_leave(stuck);
    if (!strcmp(how, "exit")) return atoi(argv[2]);
    if (!strcmp(how, "epochs")) for (int i = 0; i < 2000000; i++) fdr_enter(i % 7 ? stuck : outer), fdr_leave(i % 7 ? stuck : outer);
    if (!strcmp(how, "kill") || !strcmp(how, "epochs")) kill(getpid(), SIGKILL);
    if (!strcmp(how, "_exit")) _exit(7);
    if (!strcmp(how, "term")) { raise(SIGTERM); }
    if (!strcmp(how, "leave")) me = pthread_self(), pthread_create(&other, NULL, others, &me), pthread_exit(NULL);
    if (!strcmp(how, "count")) return count();
    if (!strcmp(how, "eat")) for (;;) memset(malloc(1 << 20), 1, 1 << 20);
    if (!strcmp(how, "hidden")) prctl(PR_SET_DUMPABLE, 0);
    fdr_enter(stuck);
    puts("ready");
    fflush(stdout);
    hang();
}
END
${CC:-cc} -O1 -pthread -I"$FDR_SOURCE/include" program.c -o program -L"$FDR_BUILD/lib" -lfdr -Wl,-rpath,"$FDR_BUILD/lib" ||
    { echo "cannot build the program"; exit 1; }

# ---- dead and live ----------------------------------------------------------------------------------------------
./program kill >/dev/null 2>&1
[ "$(count "$live/*.live.fdr")" = 1 ] && ok "a kill leaves one" || fail "a kill left: $(ls "$live")"
./program wait x >ready.txt &
pid=$!
for _ in $(seq 3000); do grep -q ready ready.txt && break; sleep 0.02; done
expect 0 "list" "$fdr" list
grep -q "^left " out.txt && grep -q "^live " out.txt || fail "list: $(cat out.txt)"
[ "$(stat -c %a "$live"/*.live.fdr | sort -u)" = 600 ] || fail "list marked something as read"

# ---- damage where nothing but a sum tells it: every verb that reads it says so, and check does ----------------------
FDR_LIVE_DIR=$work/epochs FDR_LIVE_FORCE=1 FDR_BUFFER=512K ./program epochs >/dev/null 2>&1
python3 - "$work/epochs" <<'END' || fail "no totals of epochs in what a kill left"
import glob, struct, sys
name, = glob.glob(sys.argv[1] + "/*.fdr")
data = bytearray(open(name, "rb").read())
rows = [off for off in range(4096, len(data), 64)
        if data[off:off + 6] == b"FDRM" + struct.pack("<H", 57)]
for off in rows: data[off + 24] ^= 1
open("damaged.fdr", "wb").write(data)
sys.exit(not rows)
END
expect 0 "check of totals of epochs" "$fdr" check "$work"/epochs/*.fdr
expect 1 "check of damaged totals of epochs" "$fdr" check damaged.fdr
has "the totals of epoch . are damaged" "check of damaged totals of epochs"
expect 1 "stats of damaged totals of epochs" bash -c "'$fdr' stats --by epoch damaged.fdr 2>&1 >/dev/null"
has "the totals of epoch . are damaged" "stats of damaged totals of epochs"

# ---- a histogram that is not of its row: the row is shown without --------------------------------------------------
python3 - "$work/epochs" <<'END' || fail "no histogram in what a kill left"
import glob, struct, sys
name, = glob.glob(sys.argv[1] + "/*.fdr")
data = bytearray(open(name, "rb").read())
done = 0
for slab in range(4096, len(data), 64):
    if data[slab:slab + 6] != b"FDRM" + struct.pack("<H", 5): continue
    for off in range(slab + 64, slab + struct.unpack_from("<I", data, slab + 8)[0], 64):
        key, flags, calls = struct.unpack_from("<IIQ", data, off)
        word, = struct.unpack_from("<Q", data, off + 48)
        if key >> 24 != 1 or not word or calls < 1000: continue
        at = (word & 0xffffffff) + (word >> 32 & 0xff) * 8
        struct.pack_into("<Q", data, at, struct.unpack_from("<Q", data, at)[0] + 1000)
        done += 1
open("moved.fdr", "wb").write(data)
sys.exit(not done)
END
expect 0 "check of a histogram that moved" "$fdr" check moved.fdr
has "note: .* histograms are not shown" "check of a histogram that moved"
expect 0 "stats of a histogram that moved" "$fdr" stats --json moved.fdr
has '"name": "stuck".*"histogram": null' "stats of a histogram that moved"

# ---- gc keeps live and unread recordings -------------------------------------------------------------------
expect 0 "gc spares the unread" "$fdr" gc --age 0s
[ "$(count "$live/*.live.fdr")" = 2 ] || fail "gc removed something unread"
expect 0 "gc --dry-run" "$fdr" gc --age 0s --unread --dry-run
has "would remove" "gc --dry-run"
[ "$(count "$live/*.live.fdr")" = 2 ] || fail "gc --dry-run removed something"
dead=$("$fdr" list --json | python3 -c 'import json,sys; print([e["path"] for e in json.load(sys.stdin) if e["condition"] == "left"][0])')
expect 0 "check" "$fdr" check "$dead"
[ "$(stat -c %a "$dead")" = 400 ] || fail "check did not mark $dead as read"
expect 0 "stats of the live one" "$fdr" stats "$live"/program.*."$pid".0.live.fdr
[ "$(stat -c %a "$live"/program.*."$pid".0.live.fdr)" = 600 ] || fail "a live recording was marked as read"
expect 0 "gc --age 1h" "$fdr" gc --age 1h
[ -e "$dead" ] || fail "gc removed what is young"
expect 0 "gc --size of more than there can be" "$fdr" gc --size 99999999999G
[ -e "$dead" ] || fail "gc removed what takes less than that"
expect 0 "gc --size" "$fdr" gc --size 0 --json
[ ! -e "$dead" ] || fail "gc --size 0 left what was read"
[ "$(count "$live/*.live.fdr")" = 1 ] || fail "gc removed what is live"
# Incomplete files: gc keeps those that a process has open, young ones, and files of other programs.
touch "$live/p.h.1.2.fdr.123.part" "$live/p.h.1.crash.123.part" "$live/p.fdr.124.part" "$live/young.fdr.125.part" "$live/a.part"
touch -d '2 hours ago' "$live/p.h.1.2.fdr.123.part" "$live/p.h.1.crash.123.part" "$live/p.fdr.124.part" "$live/a.part"
exec 7<"$live/p.fdr.124.part"
expect 0 "gc of younger parts" "$fdr" gc --age 3h
[ "$(count "$live/*.part")" = 5 ] || fail "gc --age 3h removed parts of two hours"
expect 0 "gc of parts" "$fdr" gc --age 1h
[ "$(cd "$live" && echo ./*.part)" = "./a.part ./p.fdr.124.part ./young.fdr.125.part" ] || fail "gc left: $(ls "$live")"
exec 7<&-
expect 0 "gc of the last part" "$fdr" gc --age 1h
[ ! -e "$live/p.fdr.124.part" ] || fail "gc left a part that nobody has open"
rm "$live"/*.part
expect 64 "gc --age nonsense" "$fdr" gc --age nonsense

# ---- a process whose first thread has ended goes on in the others: it is live, and is read from outside ---------------
FDR_LIVE_DIR=$work/ended FDR_LIVE_FORCE=1 ./program leave >ready4.txt &
headless=$!
for _ in $(seq 3000); do grep -q ready ready4.txt && break; sleep 0.02; done
expect 0 "list of a first thread that ended" "$fdr" list "$work/ended"
has "^live " "list of a first thread that ended"
expect 0 "gc of a first thread that ended" "$fdr" gc --age 0s --unread "$work/ended"
expect 0 "collect of a first thread that ended" "$fdr" collect "$work/ended" -o "$work"
[ "$(count "$work/ended/*.live.fdr")" = 1 ] || fail "the live recording of a first thread that ended was taken away"
expect 0 "stats of a first thread that ended" "$fdr" stats "$headless"
expect 1 "hang of a first thread that ended" "$fdr" hang --for 1ms "$headless"
kill -KILL "$headless"
wait "$headless" 2>/dev/null

# ---- hang --------------------------------------------------------------------------------------------------------
expect 1 "hang PID" "$fdr" hang --for 1ms "$pid"
has " x < outer" "hang"
expect 0 "hang: not so long" "$fdr" hang --for 100h "$pid"
./program wait y >ready2.txt &
other=$!
for _ in $(seq 3000); do grep -q ready ready2.txt && break; sleep 0.02; done
expect 1 "hang over two" "$fdr" hang --for 1ms --json "$pid" "$other"
python3 - <<'END' || fail "hang --json"
import json
v = json.load(open("out.txt"))
assert v["judgement"] == "hang" and v["hangs"] and len(v["processes"]) == 2 and len(v["stuck"]) == 2 and len(v["absent"]) == 1, v
END
# A dead process's file says how long its threads had stood still. In a bundle this time ends with the signal, in other
# files with the last look of fdr's own thread.
for _ in $(seq 120); do
    "$fdr" info --json "$live"/program.*."$other".0.live.fdr >out.txt
    python3 -c 'import json,sys; v=json.load(open("out.txt")); sys.exit(v.get("alive_ns", 0) < v["last_ns"] + 1000000000)' && break
    sleep 0.5
done
./program wait z >ready3.txt &
ended=$!
for _ in $(seq 3000); do grep -q ready ready3.txt && break; sleep 0.02; done
sleep 1.1
kill -TERM "$ended"
kill -KILL "$pid" "$other"
wait "$ended" "$pid" "$other" 2>/dev/null
expect 1 "hang of a bundle" "$fdr" hang "$live"/program.*."$ended".*.crash.fdr
has " z < outer" "hang of a bundle"
# the same bundle as of 17 processes
mkdir many
python3 - "$live"/program.*."$ended".*.crash.fdr <<'END'
import struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
for i in range(17):
    struct.pack_into("<I", data, 224, 1000 + i)
    open("many/%d.fdr" % i, "wb").write(data)
END
expect 3 "hang of 17" "$fdr" hang many/*.fdr
has "17 of 17 processes stand in z" "hang of 17"
has "stacks: of the first 16" "hang of 17"
expect 3 "hang of what a kill left" "$fdr" hang "$live"/program.*."$other".0.live.fdr
has " y < outer" "hang of what a kill left"
has "undecided: no state and no stack of it is here, so it may wait for work" "hang of what a kill left"
expect 0 "hang of what a kill left: longer than was seen" "$fdr" hang --for 100h "$live"/program.*."$other".0.live.fdr
has "note: pid $other .* ended unseen" "hang of what a kill left: longer than was seen"
FDR_LIVE_DIR=$work/died FDR_LIVE_FORCE=1 ./program term >/dev/null 2>&1
expect 3 "hang with one that died" "$fdr" hang --for 500ms "$live"/program.*."$other".0.live.fdr died/*.crash.fdr
has "not there: pid .* which died of SIGTERM" "hang with one that died"
expect 0 "info of what a kill left" "$fdr" info "$live"/program.*."$other".0.live.fdr
has "^alive " "info of what a kill left"
rm -f "$live"/program.*."$ended".*.crash.fdr

# Of four ranks two wait, one computes, and one left no file. One file claims to be rank 2,000,000,000.
mkdir ranks
pids=()
for r in 0 1 3 2000000000; do
    how=$([ $r = 3 ] && echo elsewhere || echo exchange)
    (cd ranks && FDR_SIGNAL=USR1 FDR_HOLDOFF=0s FDR_DIR=. PMI_RANK=$r exec ../program wait "$how") >"ready-$r.txt" &
    pids+=("$!")
done
for r in 0 1 3 2000000000; do
    for _ in $(seq 3000); do grep -q ready "ready-$r.txt" && break; sleep 0.02; done
done
# a SIGUSR1 for the whole job: each rank writes its own snapshot
kill -USR1 "${pids[@]}"
for _ in $(seq 3000); do [ "$(count "ranks/*.r*.1.fdr")" = 4 ] && break; sleep 0.02; done
[ "$(count "ranks/*.r*.1.fdr")" = 4 ] && ok "a job-wide SIGUSR1 leaves one of each" || fail "SIGUSR1 left: $(ls ranks)"
# one rank writes a second snapshot
kill -USR1 "${pids[2]}"
for _ in $(seq 3000); do [ "$(count "ranks/*.r3.2.fdr")" = 1 ] && break; sleep 0.02; done
kill -KILL "${pids[@]}"
wait "${pids[@]}" 2>/dev/null
expect 3 "hang over two files of one process" "$fdr" hang --for 0ns ranks/*.r3.2.fdr ranks/*.r*.1.fdr
has ", in 4 processes" "hang over two files of one process"
has "3 of 4 processes stand in exchange" "hang over two files of one process"
has "note: left out, .*: ranks/[^ ]*r3.1.fdr$" "hang over two files of one process"
expect 3 "the same as JSON" "$fdr" hang --json --for 0ns ranks/*.r*.[12].fdr
has '"left_out": \["ranks/[^,]*r3.1.fdr"\]' "the same as JSON"
python3 -c 'import json; assert len(json.load(open("out.txt"))["processes"]) == 4' || fail "the same as JSON"
expect 3 "hang over ranks" "$fdr" hang --for 0ns ranks/*.r*.1.fdr
has "3 of 4 processes stand in exchange" "hang over ranks"
has "not there: rank 3 .*which stands elsewhere" "hang over ranks"
has "missing: rank 2 has no recording" "hang over ranks"
has "missing: ranks 4 to 1999999999 have no recordings" "hang over ranks"
[ "$(wc -l <out.txt)" -lt 40 ] || fail "hang prints a line for every rank"
expect 3 "hang over ranks as JSON" "$fdr" hang --json --for 0ns ranks/*.r*.1.fdr
python3 - <<'END' || fail "hang --json over ranks"
import json
v = json.load(open("out.txt"))
assert v["region"] == "exchange" and v["missing_ranks"][:3] == [2, 4, 5] and len(v["missing_ranks"]) == 4096
assert v["missing_rank_count"] == 1 + 2000000000 - 4, v["missing_rank_count"]
assert v["missing"] == [[2, 2], [4, 1999999999]], v["missing"]
END
for pid in "${pids[@]}"; do rm -f "$live"/program.*."$pid".*live.fdr; done

# ---- collect -----------------------------------------------------------------------------------------------------
mkdir kept
expect 0 "collect" "$fdr" collect -o kept
[ "$(count "$live/*.fdr")" = 0 ] || fail "collect left: $(ls "$live")"
[ "$(count "kept/*.live.fdr")" = 2 ] || fail "collect took: $(ls kept)"
for f in kept/*.fdr; do "$fdr" check -q "$f" || fail "check $f"; done
expect 0 "collect again" "$fdr" collect -o kept
mkdir "$live/run-999999999-abcdef" "$live/run-$$-abcdef"
expect 0 "collect of nothing" "$fdr" collect -o kept
[ ! -e "$live/run-999999999-abcdef" ] || fail "collect left the empty directory of an fdr run that is gone"
[ -e "$live/run-$$-abcdef" ] || fail "collect removed the directory of a process that is there"
rmdir "$live/run-$$-abcdef"
expect 2 "collect from nowhere" "$fdr" collect "$work/nowhere" -o kept
expect 2 "gc of nowhere" "$fdr" gc "$work/nowhere"
expect 2 "collect to nowhere is said" bash -c "./program kill; '$fdr' collect -o '$work/nowhere'"
rm -f "$live"/*.fdr
mkdir again
./program wait live >ready6.txt &
pid=$!
for _ in $(seq 3000); do grep -q ready ready6.txt && break; sleep 0.02; done
for i in 1 2; do
    expect 0 "collect --live, $i" "$fdr" collect --live -o again
    [ "$(count "again/*.fdr")" = "$i" ] || fail "collect --live, $i: $(ls again)"
done
[ "$(count "again/*.live.fdr")" = 0 ] || fail "collect --live called a snapshot a live file: $(ls again)"
for f in again/*.fdr; do "$fdr" check -q "$f" || fail "check $f"; done
kill -KILL "$pid"
wait "$pid" 2>/dev/null
pid=
rm -f "$live"/*.fdr

# Unreadable files and files mapped by a process stay; links of another user are not followed.
printf 'no recording' >"$live/foreign.fdr"
head -c 65536 /dev/zero >"$live/early.1.0.live.fdr"
python3 -c 'import mmap, sys, time
f = open(sys.argv[1], "r+b")
m = mmap.mmap(f.fileno(), 0)
print("ready", flush=True)
time.sleep(100)' "$live/early.1.0.live.fdr" >ready5.txt &
pid=$!
for _ in $(seq 3000); do grep -q ready ready5.txt && break; sleep 0.02; done
./program kill
expect 2 "collect of what cannot be read" "$fdr" collect -o kept
has "foreign.fdr: not a readable recording; it stays" "collect"
has "early.1.0.live.fdr: a process is writing it, it stays" "collect"
[ -e "$live/foreign.fdr" ] && [ -e "$live/early.1.0.live.fdr" ] || fail "collect took what it cannot read"
[ "$(count "$live/program*.fdr")" = 0 ] || fail "collect left what it can read"
kill "$pid"
wait "$pid" 2>/dev/null
rm -f "$live"/*.fdr
if [ "$(id -u)" = 0 ] && [ ! -e /dev/shm/fdr-64999 ] && [ ! -e /dev/shm/fdr-64998 ]; then
    trap 'rm -rf "$work" "$live" /dev/shm/fdr-64999 /dev/shm/fdr-64998' EXIT
    ./program kill
    mkdir -m 700 /dev/shm/fdr-64999
    cp "$live"/*.live.fdr /dev/shm/fdr-64999/his.fdr
    cp "$live"/*.live.fdr /dev/shm/fdr-64999/roots.fdr
    chown 64999 /dev/shm/fdr-64999 /dev/shm/fdr-64999/his.fdr
    ln -s "$live" /dev/shm/fdr-64998
    ln -s "$live" /dev/shm/fdr-64999/run-1
    "$fdr" collect --all-users -o kept >out.txt 2>err.txt
    has "/dev/shm/fdr-64999/his.fdr: now" "collect --all-users"
    [ -e /dev/shm/fdr-64999/roots.fdr ] || fail "collect --all-users took another user's file"
    [ "$(count "$live/*.fdr")" = 1 ] || fail "collect --all-users followed a symbolic link"
    rm -rf /dev/shm/fdr-64999 /dev/shm/fdr-64998 "$live"/*.fdr
fi

# ---- run -----------------------------------------------------------------------------------------------------------
mkdir runs
expect 0 "run: exit 0" "$fdr" run -o runs -- ./program exit 0
expect 5 "run: exit status" "$fdr" run -o runs ./program exit 5
[ "$(count "runs/*.fdr")" = 0 ] || fail "run kept something of a clean exit"
expect 127 "run: no such command" "$fdr" run -o runs -- ./no-such-program
expect 137 "run: SIGKILL" bash -c "'$fdr' run -o runs -- ./program kill; exit \$?"
[ "$(count "runs/*.live.fdr")" = 1 ] || fail "run kept of a kill: $(ls runs)"
"$fdr" info --json runs/*.live.fdr >out.txt
python3 - <<'END' || fail "run: end in info --json"
import json
e = json.load(open("out.txt"))["end"]
assert e["signal"] == 9 and e["exit_status"] is None and e["oom_kill"] == 0, e
END
"$fdr" check -q runs/*.live.fdr || fail "check of what run kept"
rm -f runs/*
if [ -z "${FDR_SANITIZE:-}" ]; then # their runtimes want to be the first library
    echo '#include <errno.h>
int fork(void);
int fork(void) { errno = EAGAIN; return -1; }' >nofork.c
    ${CC:-cc} -shared -fPIC nofork.c -o nofork.so || fail "no library without fork"
    expect 2 "run: no process" env LD_PRELOAD="$work/nofork.so" "$fdr" run -o runs -- ./program exit 0
    has 'program: cannot be started: Resource temporarily unavailable' "run: no process"
fi
(cd /dev/shm && FDR_LIVE_DIR=${live##*/} "$fdr" run -o "$work/runs" -- sh -c "cd /; exec '$work/program' kill" 2>"$work/err.txt")
[ "$(count "runs/*.live.fdr")" = 1 ] || fail "run with a relative live directory kept: $(ls runs); $(cat err.txt)"
rm -f runs/*
# a SIGKILL, as by the kernel's OOM killer: only `fdr run` can name it
group=
for root in /sys/fs/cgroup/memory /sys/fs/cgroup; do
    mkdir "$root/fdr-test-$$" 2>/dev/null || continue
    if echo 67108864 2>/dev/null >"$root/fdr-test-$$/memory.limit_in_bytes" || echo 67108864 2>/dev/null >"$root/fdr-test-$$/memory.max"; then
        group=$root/fdr-test-$$
        break
    fi
    rmdir "$root/fdr-test-$$"
done
if [ -n "$group" ]; then
    expect 137 "run: the OOM killer" bash -c "echo \$\$ >'$group/cgroup.procs' && exec '$fdr' run -o runs -- ./program eat"
    "$fdr" info --json runs/*.live.fdr >out.txt
    python3 - <<'END' || fail "run: oom_kill in info --json"
import json
e = json.load(open("out.txt"))["end"]
assert e["signal"] == 9 and e["oom_kill"] == 1, e
END
    "$fdr" check -q runs/*.live.fdr || fail "check of what the OOM killer left"
    rm -f runs/*
    for _ in $(seq 100); do rmdir "$group" 2>/dev/null && break; sleep 0.05; done
else echo "no memory cgroup can be made here: skipped"; fi
expect 7 "run: _exit" "$fdr" run -o runs -- ./program _exit
"$fdr" info runs/*.live.fdr >out.txt
has "exit status 7" "run: info"
rm -f runs/*
"$fdr" run -o runs -- ./program wait z >ready3.txt 2>/dev/null &
runner=$!
for _ in $(seq 3000); do grep -q ready ready3.txt && break; sleep 0.02; done
kill -TERM "$runner"
wait "$runner"
[ "$?" = 143 ] && ok "run passes SIGTERM on and ends of it" || fail "run did not end of SIGTERM"
# ^C goes to the process group: the program gets one signal, and no second one from fdr
cat >terminal.py <<'END'
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
seen = b""
while b"ready" not in seen:
    seen += os.read(fd, 1000)
os.write(fd, b"\x03")
try:
    while os.read(fd, 1000):
        pass
except OSError:
    pass
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
expect 1 "run: ^C comes once" python3 terminal.py "$fdr" run -o runs -- ./program count
expect 11 "run: an ignored SIGCHLD stays ignored for the program" \
    python3 terminal.py /bin/bash -c "trap '' CHLD; exec '$fdr' run -o runs -- ./program count"
expect 5 "run: without a live directory" env FDR_LIVE_DIR=/proc/nothing/there "$fdr" run -o runs -- ./program exit 5
has "its recording is not kept if it is killed" "run without a live directory"
mkdir "$work/open"
chmod 777 "$work/open"
expect 5 "run: a live directory open to others" env FDR_LIVE_DIR="$work/open" "$fdr" run -o runs -- ./program exit 5
has "not permitted" "run with a live directory open to others"
rm -f runs/*
[ "$(find "$live" -mindepth 1 | wc -l)" = 0 ] || fail "run left: $(find "$live" -mindepth 1)"

# ---- a core file ---------------------------------------------------------------------------------------------------
pattern=$(cat /proc/sys/kernel/core_pattern)
if [ "$pattern" = core ] && "$fdr" version --build | grep -q "dw"; then
    mkdir cores
    (cd cores && ulimit -c unlimited && FDR_ARENA=anonymous FDR_CRASH=0 exec ../program wait c >../ready4.txt) &
    pid=$!
    for _ in $(seq 3000); do grep -q ready ready4.txt && break; sleep 0.02; done
    kill -QUIT "$pid"
    wait "$pid" 2>/dev/null
    core=$(find cores -type f | head -1)
    if [ -n "$core" ]; then
        expect 0 "recover CORE" "$fdr" recover "$core" -o from-core.fdr
        expect 0 "check of it" "$fdr" check from-core.fdr
        "$fdr" info from-core.fdr >out.txt
        has "outer > c" "info of it"
        expect 2 "recover CORE: never over another" "$fdr" recover "$core" -o from-core.fdr
        head -c 4096 "$core" >cut.core
        expect 2 "recover CORE: a core that is cut off" "$fdr" recover cut.core -o cut-core.fdr
        has "cut off" "recover CORE: a core that is cut off"
        at=$(python3 -c 'import sys; b = open(sys.argv[1], "rb").read(); print(b.find(open(sys.argv[2], "rb").read(8)))' \
            "$core" from-core.fdr)
        head -c $((at + 300000)) "$core" >cut.core
        expect 1 "recover CORE: a core that is cut off in the arena" "$fdr" recover cut.core -o cut-arena.fdr
        has "not in the core, which is cut off" "recover CORE: a core that is cut off in the arena"
        [ "$(count "./*.part")" = 0 ] || fail "recover CORE left half of a file"
    else echo "no core file is written here: skipped"; fi
    # a core whose 60,000 segments claim 2^62 bytes each must be refused soon
    python3 - <<'END'
import struct
head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 4, 62, 1, 0, 64, 0, 0, 64, 56, 60000, 0, 0, 0)
one = struct.pack("<IIQQQQQQ", 1, 4, 0, 4096, 0, 1 << 62, 1 << 62, 4096)
open("hostile.core", "wb").write(head + one * 60000 + bytes(1 << 20))
END
    expect 2 "recover of a hostile core ends" timeout 100 "$fdr" recover hostile.core -o hostile.fdr
    expect 2 "recover of no recording" "$fdr" recover /bin/true -o x.fdr
fi

# ---- several at once: a file that another command took is no failure -----------------------------------------------
FDR_LIVE_DIR=$work/twice.live FDR_LIVE_FORCE=1 FDR_BUFFER=1M ./program _exit
one=$(find "$work/twice.live" -name '*.live.fdr' | head -1)
[ -n "$one" ] || fail "nothing was left to copy"
for verb in 'gc --unread --age 0s twice' 'collect twice -o twice.out'; do
    mkdir -p twice twice.out
    chmod 700 twice
    for i in $(seq 150); do cp "$one" "twice/many.$i.live.fdr"; done
    pids=()
    # shellcheck disable=SC2086
    for _ in 1 2 3 4; do "$fdr" $verb >/dev/null 2>>twice.txt & pids+=($!); done
    status=0
    for p in "${pids[@]}"; do wait "$p" || status=$?; done
    [ "$status" = 0 ] && [ -z "$(find twice -name '*.fdr')" ] && ok "four at once: fdr $verb" || fail "four at once, $verb: $status, $(head -3 twice.txt)"
done
rm -rf twice twice.live twice.out

# ---- a process that may not be looked into is not dead ------------------------------------------------------------
plain=()
if [ "$(id -u)" = 0 ]; then plain=(setpriv --bounding-set -all --inh-caps -all); fi
if [ ${#plain[@]} = 0 ] || "${plain[@]}" true 2>/dev/null; then
    mkdir hidden.out
    FDR_LIVE_DIR=$work/hidden FDR_LIVE_FORCE=1 "${plain[@]}" ./program hidden >ready6.txt &
    pid=$!
    for _ in $(seq 3000); do grep -q ready ready6.txt && break; sleep 0.02; done
    "${plain[@]}" cat "/proc/$pid/maps" >/dev/null 2>&1 && fail "its memory may be looked into: nothing is tested"
    expect 0 "list of who is hidden" "${plain[@]}" "$fdr" list hidden
    has "^live .*$pid" "list of who is hidden"
    expect 0 "gc of who is hidden" "${plain[@]}" "$fdr" gc --unread --age 0s hidden
    expect 0 "collect of who is hidden" "${plain[@]}" "$fdr" collect hidden -o hidden.out
    [ "$(count "hidden/*.live.fdr")" = 1 ] && ok "its file stays" || fail "gc or collect took it: $(cat out.txt)"
    kill -9 $pid
    wait $pid 2>/dev/null
    expect 0 "collect of who was hidden" "${plain[@]}" "$fdr" collect hidden -o hidden.out
    [ "$(count "hidden/*.live.fdr")" = 0 ] && ok "then it is collected" || fail "it stays: $(cat out.txt)"
    rm -rf hidden hidden.out
else
    echo "a process that may not be looked into: setpriv cannot drop capabilities here: not tested"
fi

# ---- nor one that /proc does not show: hidepid=2, in a mount namespace of its own -----------------------------------
cat >hidepid.sh <<'END'
look() { setpriv --bounding-set -all --inh-caps -all "$@"; }
look true || exit 3
mount -t proc -o "$2" proc /proc || exit 3 # in a namespace of its own: nobody else sees it
export FDR_LIVE_DIR=$PWD/unseen FDR_LIVE_FORCE=1
setpriv --bounding-set -all --inh-caps -all ./program hidden >ready7.txt &
pid=$!
for _ in $(seq 3000); do grep -q ready ready7.txt && break; sleep 0.02; done
look test -e /proc/$pid && { echo "it is shown all the same"; kill -9 $pid; exit 3; }
look "$1" list unseen >list.txt 2>&1
look "$1" gc --unread --age 0s unseen >gc.txt 2>&1
find unseen -name '*.live.fdr' >stays.txt
kill -9 $pid
wait $pid 2>/dev/null
look "$1" gc --unread --age 0s unseen >gc.txt 2>&1
find unseen -name '*.live.fdr' >gone.txt
exit 0
END
unshare=(unshare -m -p -f)
options=hidepid=2,gid=65534 # the group that is shown all the same: not root's
[ "$(id -u)" = 0 ] || unshare=(unshare -r -m -p -f) options=hidepid=2
if "${unshare[@]}" bash hidepid.sh "$fdr" "$options" >unshare.txt 2>&1; then
    grep -q "^live " list.txt && ok "list of who is not in /proc" || fail "list of who is not in /proc: $(cat list.txt)"
    [ -s stays.txt ] && ok "gc of who is not in /proc" || fail "gc took the file of who is not in /proc"
    [ -s gone.txt ] && fail "gc of who was not in /proc: $(cat gc.txt)" || ok "gc of who was not in /proc"
else
    echo "a process that /proc does not show: no mount with hidepid=2 here: not tested: $(head -1 unshare.txt)"
fi

# ---- nothing leaks -------------------------------------------------------------------------------------------------
for _ in $(seq "${FDR_LEFT_STARTS:-50}"); do ./program exit 0; done
[ "$(find "$live" -mindepth 1 | wc -l)" = 0 ] && ok "clean starts and stops leave nothing" || fail "clean exits left: $(ls "$live")"

[ "$bad" = 0 ] || { echo "$bad complaints"; exit 1; }
