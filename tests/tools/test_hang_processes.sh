#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=180 promise=P10
# fdr hang of running processes: native stacks, state, the holder of a mutex, innermost first, names that fit, idle
# threads last and in one line. The watchdog says nothing of an idle server, whatever it looks at (P10).
set -uo pipefail
: "${FDR_BUILD:?}" "${FDR_SOURCE:?}"
fdr=$FDR_BUILD/bin/fdr
lib=$FDR_BUILD/lib
if [ -n "${FDR_SANITIZE:-}" ]; then echo "skipped: sanitizers have handlers of their own"; exit 77; fi
if [ ! -x "$fdr" ]; then echo "skipped: no $fdr (jansson or zstd missing)"; exit 77; fi
if ! "$fdr" version --build | grep -q '^with:.*\bdw\b'; then echo "skipped: no stacks without libdw"; exit 77; fi
work=$(mktemp -d)
unset "${!FDR_@}"
FDR_LIVE_DIR=$(mktemp -d /dev/shm/fdr-hang-XXXXXX 2>/dev/null || mktemp -d)
pids=()
trap 'kill -KILL "${pids[@]}" 2>/dev/null; rm -rf "$work" "$FDR_LIVE_DIR"' EXIT
export FDR_LIVE_DIR FDR_DIR=$work FDR_BUFFER=4M
cd "$work" || exit 1
failed=0
fail() { echo "FAILED: $*"; failed=1; }
has() { grep -qE "$1" out.txt || { fail "$2: no '$1' in:"; cat out.txt; }; }
hasnot() { if grep -qE "$1" out.txt; then fail "$2: '$1' in:"; cat out.txt; fi; }

cat >server.cpp <<'END'
#include <cstdio>
#include <cstring>
#include <map>
#include <pthread.h>
#include <string>
#include <sys/epoll.h>
#include <unistd.h>
#include <vector>
static pthread_mutex_t jobs = PTHREAD_MUTEX_INITIALIZER, taken = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static volatile bool stop;
static pthread_barrier_t there;
static void *background(void *name)
{
    pthread_setname_np(pthread_self(), (const char *)name);
    if (!strcmp((const char *)name, "holder")) pthread_mutex_lock(&taken);
    pthread_barrier_wait(&there);
    pthread_mutex_lock(&jobs);
    while (!stop) pthread_cond_wait(&more, &jobs);
    return NULL;
}
template <class A, class B> __attribute__((noinline)) void take_the_lock_of(const A &, const B &)
{
    pthread_mutex_lock(&taken);
    __asm__ volatile("");
}
static void *worker(void *)
{
    pthread_setname_np(pthread_self(), "worker");
    take_the_lock_of(std::map<std::string, std::vector<std::map<std::string, std::vector<std::string>>>>(),
                     std::vector<std::map<std::string, std::map<std::string, std::string>>>());
    return NULL;
}
static void *spinner(void *)
{
    pthread_setname_np(pthread_self(), "spinner");
    while (!stop) {}
    return NULL;
}
int main(int argc, char **argv)
{
    static char idle[] = "bio_close", holder[] = "holder";
    bool join = argc > 1 && !strcmp(argv[1], "join"), bad = argc > 1 && !strcmp(argv[1], "bad");
    pthread_t t;
    epoll_event e;
    pthread_barrier_init(&there, NULL, 5);
    for (int i = 0; i < 4; i++) pthread_create(&t, NULL, background, i || !bad ? idle : holder);
    pthread_barrier_wait(&there);
    pthread_t other;
    if (bad) pthread_create(&other, NULL, worker, NULL), pthread_create(&other, NULL, spinner, NULL);
    puts("ready");
    fflush(stdout);
    if (join) return pthread_join(t, NULL);
    return epoll_wait(epoll_create1(0), &e, 1, -1);
}
END
g++ -g -O1 -finstrument-functions -pthread -o server server.cpp "-L$lib" "-Wl,-rpath,$lib" -lfdr-instrument -lfdr || exit 1

# begin NAME ARGUMENT...: starts the server; pid is its number
begin() {
    ./server "${@:2}" >"$1.out" 2>"$1.err" &
    pid=$!
    pids+=("$pid")
    for _ in $(seq 3000); do grep -q ready "$1.out" && break; sleep 0.02; done
}
# waits until fdr's own thread has looked this often, by the times that it slept
looks() {
    local task=
    for task in "/proc/$pid/task"/*; do grep -q fdr-dumper "$task/comm" && break; done
    local now from
    from=$(awk '/^voluntary/{print $2}' "$task/status")
    for _ in $(seq 3000); do
        now=$(awk '/^voluntary/{print $2}' "$task/status")
        [ "$now" -ge $((from + $1)) ] && return
        sleep 0.02
    done
    fail "fdr's thread does not look"
}
files() { find . -maxdepth 1 -name '*.fdr' | wc -l; }

# ---- an idle server: main in epoll_wait, or in pthread_join; the others never had work ----
for how in epoll join; do
    export FDR_WATCHDOG=40ms
    begin "$how" "$how"
    looks 200 # four of them in each 40 ms
    if [ "$(files)" != 0 ] || [ -s "$how.err" ]; then fail "the watchdog reports an idle server ($how)" && cat "$how.err"; fi
    unset FDR_WATCHDOG
    "$fdr" hang --for 1ms "$pid" >out.txt || fail "$how: fdr hang finds something in an idle server"
    has '^nothing hangs: 0 of 5 threads' "$how"
    has "^idle: pid $pid on .*: 5 threads wait for work: .*bio_close \(condition\)" "$how"
    [ "$(wc -l <out.txt)" = 2 ] || { fail "$how: idle threads take more than one line"; cat out.txt; }
    kill -KILL "$pid"
done

# ---- a lock that is held, and a thread that runs ----
FDR_WATCHDOG=200ms begin bad bad
for _ in $(seq 3000); do [ "$(files)" != 0 ] && break; sleep 0.02; done
grep -qE 'has stood in .*take_the_lock_of.* for a lock of thread [0-9]+ \(holder\), state S.*; 5 idle; ' bad.err ||
    { fail "the watchdog's message"; cat bad.err; }
status=0
"$fdr" hang --for 1ms "$pid" >out.txt || status=$?
[ $status = 1 ] || fail "exit status of fdr hang: $status"
has '^hangs: 2 of 7 threads' hang
has 'thread [0-9]+ worker: .*, waits for a lock of thread [0-9]+ \(holder\)$' hang
has '^    (void )?take_the_lock_of.* < worker\(?' "innermost first"
has '^   #[0-9]+ +[0-9a-f]+ take_the_lock_of.* at .*server.cpp:[0-9]+$' "native stacks"
has 'thread [0-9]+ spinner: .*, runs$' hang
has '^idle: .*: 5 threads wait for work' hang
tail -1 out.txt | grep -q '^idle: ' || fail "idle threads do not come last"
[ "$(awk '{ if (length > most) most = length } END { print most }' out.txt)" -le 260 ] || { fail "lines are long"; cat out.txt; }
"$fdr" hang --full-names --for 1ms "$pid" >out.txt
has 'basic_string<char' "--full-names"
"$fdr" hang --json --for 1ms "$pid" >out.json
python3 - "$pid" <<'END' || fail "hang --json"
import json
v = json.load(open("out.json"))
by = {s["state"]: s for s in v["stuck"]}
assert len(v["stuck"]) == 2 and len(v["idle"]) == 5 and not v["unseen"], v
assert by["S"]["waits_for"] == "lock" and by["S"]["lock_owner"] in [s["tid"] for s in v["idle"]], v
assert by["R"]["waits_for"] is None and by["S"]["frames"], v
END

# ---- a stopped process: its threads cannot take work ----
before=$(awk '/^voluntary/{print $2}' "/proc/$pid/status")
"$fdr" hang "$pid" >/dev/null
[ "$(awk '/^voluntary/{print $2}' "/proc/$pid/status")" = "$before" ] || fail "fdr hang woke the first thread"
kill -STOP "$pid"
for _ in $(seq 3000); do grep -q '^State:.*T' "/proc/$pid/status" && break; sleep 0.02; done
"$fdr" hang --for 1ms "$pid" >out.txt
has '^hangs: 7 of 7 threads' stopped
has 'thread [0-9]+ server: .*, stopped, waits for events$' stopped
hasnot '^idle: ' stopped
kill -KILL "$pid"

# ---- the watchdog's file says the same ----
"$fdr" hang ./*.1.fdr >out.txt
has '^    (void )?take_the_lock_of.* < worker\(?' "file"
has '^idle: .*: 5 threads wait for work' "file"
exit $failed
