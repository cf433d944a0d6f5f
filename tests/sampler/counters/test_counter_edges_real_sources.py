#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=house timeout=180 promise=P10
# P10: counters at the edges of calls work with real sources: perf, /proc and PAPI (a fake one, the machine's, or none).
# If the kernel or the user's rights forbid a counter, fdr says so in one line, records no zeros, and the program runs
# on.
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

build, source = os.environ["FDR_BUILD"], os.environ["FDR_SOURCE"]
fdr = f"{build}/bin/fdr"
if not os.path.exists(fdr):
    print("skipped: no fdr command in this build")
    sys.exit(77)
work = tempfile.mkdtemp(prefix="fdr-edges-")
bad = 0

PROGRAM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <fdr/fdr.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static void touch(long n) {
    char *p = mmap(0, n * 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (long i = 0; i < n; i++) p[i * 4096] = 1;
    munmap(p, n * 4096);
}
static void nap(int n) { for (int i = 0; i < n; i++) usleep(1); }
static jmp_buf out;
static void thrown(void) { FDR_REGION("thrown") { touch(7); longjmp(out, 1); } }
static jmp_buf back;
static void escaping(void) { FDR_REGION("escaping") longjmp(back, 1); }
static void caught(void) { FDR_REGION("caught") { if (!setjmp(back)) escaping(); } }
static void *work(void *p) {
    for (int i = 0; i < 10; i++) FDR_REGION("outer") {
        touch(10);
        FDR_REGION("inner") touch(100);
        FDR_REGION("napping") nap(5);
    }
    return p;
}
enum { PIPES = 40, BYTES = 4000 };
/* Its pipes get the numbers of all that it closed. They are not to be read, written or closed by anybody else. */
static int closing(void)
{
    static char in[BYTES], out[2 * BYTES];
    int p[PIPES][2], kept = 1;
    close_range(3, ~0u, 0);
    for (int i = 0; i < BYTES; i++) in[i] = (char)(i * 7);
    for (int i = 0; i < PIPES; i++) kept &= !pipe2(p[i], O_NONBLOCK) && write(p[i][1], in, BYTES) == BYTES;
    work(0);
    int failed = fdr_snapshot("done");
    fdr_finalize();
    for (int i = 0; i < PIPES; i++) {
        kept &= read(p[i][0], out, sizeof out) == BYTES && !memcmp(in, out, BYTES);
        kept &= !close(p[i][0]) && !close(p[i][1]);
    }
    return failed ? 2 : !kept;
}
extern void *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_malloc(size_t bytes);
static __thread int handling;
static int allocated;
void *calloc(size_t n, size_t bytes) { return allocated += handling, __libc_calloc(n, bytes); }
void *malloc(size_t bytes) { return allocated += handling, __libc_malloc(bytes); }
static void on(int number)
{
    (void)number;
    handling = 1;
    FDR_REGION("handled") touch(2);
    handling = 0;
}
/* Its first call is in a handler, which not even blocks its own signal. */
static void *handles(void *p) { raise(SIGUSR2); work(p); raise(SIGUSR2); return p; }
/* Ordinary code that blocks a signal with a handler. */
static void *blocks(void *p)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    return work(p);
}
static int handlers(void)
{
    struct sigaction a = {.sa_handler = on, .sa_flags = SA_NODEFER};
    void *(*of[])(void *) = {handles, blocks};
    pthread_t t;
    sigaction(SIGUSR2, &a, NULL);
    for (int i = 0; i < 2; i++) pthread_create(&t, NULL, of[i], NULL), pthread_join(t, NULL);
    int failed = fdr_snapshot("done");
    fdr_finalize();
    return failed ? 2 : allocated != 0;
}
int main(int argc, char **argv)
{
    fdr_init(NULL);
    if (argc > 1 && !strcmp(argv[1], "handlers")) return handlers();
    if (argc > 1 && !strcmp(argv[1], "close")) {
        work(0);
        return closing();
    }
    if (argc > 1 && !strcmp(argv[1], "fork")) {
        work(0);
        fflush(stdout);
        pid_t child = fork();
        if (!child) { work(0); fdr_init(NULL); work(0); int bad = fdr_snapshot("child"); fdr_finalize(); _exit(bad != 0); }
        int status;
        waitpid(child, &status, 0);
        fdr_finalize();
        return status != 0;
    }
    pthread_t t[3];
    for (int i = 0; i < 3; i++) pthread_create(&t[i], NULL, work, NULL);
    work(0);
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    for (volatile int i = 0; i < 3; i++) if (!setjmp(out)) FDR_REGION("catcher") thrown();
    for (volatile int i = 0; i < 50; i++) caught();
    FDR_REGION("after") touch(3);
    int failed = fdr_snapshot("done");
    fdr_finalize();
    return failed != 0;
}
"""

# denied ERRNO PROGRAM...: runs the program; perf_event_open fails with ERRNO, as with a stricter perf_event_paranoid.
DENIED = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)atoi(argv[1])),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    if (argc < 3 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) return 77;
    execvp(argv[2], argv + 2);
    return 127;
}
"""


def check(good, what, *more):
    global bad
    print(("ok: " if good else "FAIL: ") + what, *([] if good else more))
    bad += not good


def run(name, *arguments, prefix=(), **environment):
    directory = f"{work}/{name}"
    os.makedirs(directory)
    os.chmod(directory, 0o777)
    env = {k: v for k, v in os.environ.items() if not k.startswith("FDR_")}
    env |= {"FDR_DIR": directory, "FDR_ARENA": "anonymous", "FDR_BUFFER": "8M"} | environment
    done = subprocess.run([*prefix, f"{work}/program", *arguments], env=env, capture_output=True, text=True, timeout=60)
    files = [f"{directory}/{f}" for f in os.listdir(directory) if f.endswith(".fdr")]
    check(done.returncode == 0 and len(files) == 1, f"{name}: runs", done.returncode, done.stderr, files)
    return done, files[0] if files else None


def counters(file, *options):
    return json.loads(subprocess.run([fdr, "counters", "--json", *options, file], capture_output=True, check=True).stdout)


def call(file, counter, region):
    rows = [r for r in counters(file, "--by", "call") if r["counter"].endswith(counter) and r["region"] == region]
    return rows[0] if len(rows) == 1 else {}


def exactly(file, counter):
    inner, outer = call(file, counter, "inner"), call(file, counter, "outer")
    check(inner.get("calls_read") == 40 and 4000 <= inner["amount"] <= 4060, f"{counter}: 100 faults a call", inner)
    check(inner.get("min", 0) >= 100, f"{counter}: none misses any", inner)
    check(outer.get("calls_read") == 40 and abs(outer["amount"] - outer["self"] - inner["amount"]) <= 60 and
          400 <= outer["self"] <= 560, f"{counter}: what is inside and what is its own", outer)
    thrown = call(file, counter, "catcher")
    check(thrown.get("calls_read", 0) <= 3 and call(file, counter, "after").get("calls_read") == 1,
          f"{counter}: longjmp out of a call that is read", thrown)


def built_in():
    done, file = run("perf", FDR_EDGE_COUNTERS="page-faults,task-clock|cpu-time,context-switches")
    check(done.stderr == "", "nothing to complain about", done.stderr)
    exactly(file, "page-faults")
    napping = call(file, "context-switches", "napping")
    check(napping.get("amount", 0) >= 100, "context switches of sleeps", napping)
    check(subprocess.run([fdr, "check", file], capture_output=True).returncode == 0, "fdr check")
    with open(f"{work}/rules.txt", "w") as f:
        f.write("counters name inn*\n")
    done, file = run("rules", FDR_EDGE_COUNTERS="task:page-faults", FDR_FILTER=f"{work}/rules.txt")
    regions = {r["region"] for r in counters(file, "--by", "call")}
    check(regions == {"inner"}, "rules choose the calls", regions)
    done, file = run("regions", FDR_EDGE_COUNTERS="task:page-faults", FDR_EDGE_REGIONS="after,cat*")
    check({r["region"] for r in counters(file, "--by", "call")} == {"after", "catcher"} or
          {r["region"] for r in counters(file, "--by", "call")} == {"after"}, "FDR_EDGE_REGIONS chooses the calls")
    done, file = run("long", FDR_EDGE_COUNTERS="task:page-faults", FDR_EDGE_REGIONS="x" * 250 + ",after")
    check({r["region"] for r in counters(file, "--by", "call")} == {"after"} and
          re.fullmatch(r"fdr: nothing matched these patterns: FDR_EDGE_REGIONS 'x+'\n", done.stderr), "a long pattern", done.stderr)
    with open(f"{work}/escape.txt", "w") as f:
        f.write("exclude name escaping\ncounters name caught\n")
    done, file = run("escape", FDR_EDGE_COUNTERS="task:page-faults", FDR_FILTER=f"{work}/escape.txt")
    check(call(file, "page-faults", "caught").get("calls_read") == 50, "longjmp out of a call that a rule keeps out")
    stats = json.loads(subprocess.run([fdr, "stats", "--json", file], capture_output=True, check=True).stdout)
    check([r["calls"] for r in stats if r["name"] == "caught"] == [50], "and its caller's leave is no leave of it", stats)
    done, file = run("ruled", FDR_FILTER=f"{work}/rules.txt")
    check(done.stderr == "" and counters(file) == [], "the rule alone does nothing", done.stderr)
    done, file = run("process", FDR_EDGE_COUNTERS="process:rss")
    check(done.stderr.count("\n") == 1 and "counts the whole process" in done.stderr, "what belongs to no call is refused", done.stderr)
    done, file = run("fork", "fork", FDR_EDGE_COUNTERS="page-faults")
    inner = call(file, "page-faults", "inner")
    check(inner.get("calls_read") == 10 and 1000 <= inner["amount"] <= 1060, "a child that starts a recording of its own", inner)


def rights():
    for name, prefix in (("nobody", ["setpriv", "--reuid", "65534", "--clear-groups"]),
                         ("paranoid3", [f"{work}/denied", "13"]), ("noperf", [f"{work}/denied", "38"]),
                         ("nobody3", ["setpriv", "--reuid", "65534", "--clear-groups", f"{work}/denied", "13"])):
        if "setpriv" in prefix and (os.getuid() or not shutil.which("setpriv")):
            print(f"skipped: {name} needs root and setpriv")
            continue
        done, file = run(name, prefix=prefix, FDR_EDGE_COUNTERS="page-faults,context-switches,perf:context-switches",
                         FDR_COUNTERS="default,perf:cpu-migrations")
        exactly(file, "page-faults")
        said = done.stderr.splitlines()
        allowed = name == "nobody" and open("/proc/sys/kernel/perf_event_paranoid").read().strip() in ("-1", "0", "1")
        if allowed:
            check(said == [], f"{name}: everything works", said)
            continue
        check(len(said) == 2 and all("perf_event_open" in line for line in said), f"{name}: what is missing, once", said)
        if name != "noperf":
            check(all("perf_event_paranoid is" in line for line in said) and (name == "nobody" or "or the call is filtered" in said[0]),
                  f"{name}: and what stands in its way", said)
        napping = call(file, "switches:context-switches", "napping")
        check(napping.get("amount", 0) >= 100, f"{name}: another source in its place, no zeros", napping)
        check(not any(r["counter"] == "perf:context-switches" for r in counters(file)), f"{name}: nothing recorded as zeros")


def real_events():
    """The machine's own PAPI. If its libpfm4 does not know the processor, a preloaded library presents it as known."""
    subprocess.run(["cc", "-shared", "-fPIC", f"{source}/tests/support/papi_software_events.c", "-o", f"{work}/known.so", "-ldl"], check=True)
    for extra in {}, {"LD_PRELOAD": f"{work}/known.so"}:
        text = subprocess.run([fdr, "counters", "--json"], capture_output=True, check=True, env=os.environ | extra).stdout
        if any(r["name"] in ("PAGE-FAULTS", "perf::PAGE-FAULTS") and r["works"] for r in json.loads(text)):
            closed("closed-real", "perf::PAGE-FAULTS,perf::TASK-CLOCK", **extra)
            return
    print("skipped: PAPI has no events of perf's here")


def closed(name, events, **environment):
    """The program closes all descriptors. Its own files then get these numbers, and fdr must leave them open."""
    done, file = run(name, "close", FDR_PAPI=events, **environment)
    check(done.stderr.count("\n") == 1 and "closed the counters of a thread" in done.stderr, f"{name}: said once", done.stderr)
    check(call(file, events.split(",")[0], "inner").get("calls_read") == 10, f"{name}: what was read until then is there")


def papi():
    library = f"{build}/lib/libfdr-papi.so"
    needed = re.findall(r"NEEDED.*\[(libpapi[^]]*)\]", subprocess.run(["readelf", "-d", library], capture_output=True, text=True).stdout)
    done, file = run("papi", FDR_PAPI="no::such-event")
    check(done.stderr.count("\n") == 1 and "no::such-event" in done.stderr, "an event that is none costs one line", done.stderr)
    done, file = run("real", FDR_PAPI="PAPI_TOT_INS", FDR_EDGE_COUNTERS="task:page-faults")
    said, counted = done.stderr.splitlines(), {r["counter"] for r in counters(file)}
    check((said == [] and "PAPI_TOT_INS" in counted) or
          (len(said) == 1 and "PAPI_TOT_INS" in said[0] and counted == {"task:page-faults"}),
          "instructions are counted, or what stands in the way is said once and nothing is recorded as zeros", said, counted)
    exactly(file, "task:page-faults")
    # libfdr without its component libfdr-papi
    os.makedirs(f"{work}/alone.lib")
    shutil.copy(f"{build}/lib/libfdr.so.0", f"{work}/alone.lib/")
    done, file = run("alone", FDR_PAPI="PAPI_TOT_INS", LD_LIBRARY_PATH=f"{work}/alone.lib")
    check(done.stderr.count("\n") == 1 and "libfdr-papi" in done.stderr, "no libfdr-papi: said once", done.stderr)
    if not needed:
        print("skipped: this build has no PAPI")
        return
    # the component without PAPI's library
    os.makedirs(f"{work}/orphan.lib")
    shutil.copy(f"{build}/lib/libfdr.so.0", f"{work}/orphan.lib/")
    with open(library, "rb") as f:
        text = f.read()
    with open(f"{work}/orphan.lib/libfdr-papi.so.0", "wb") as f:
        f.write(text.replace(needed[0].encode(), b"x" * len(needed[0])))
    done, file = run("orphan", FDR_PAPI="PAPI_TOT_INS", FDR_EDGE_COUNTERS="task:page-faults", LD_LIBRARY_PATH=f"{work}/orphan.lib")
    check(done.stderr.count("\n") == 1 and "xxxx" in done.stderr and "PAPI_TOT_INS" in done.stderr, "no PAPI library: said once", done.stderr)
    exactly(file, "task:page-faults")
    os.makedirs(f"{work}/fake.lib")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", f"{source}/tests/support/papi_fake.c", "-o", f"{work}/fake.lib/{needed[0]}",
                    f"-Wl,-soname,{needed[0]}"], check=True)
    fake = {"LD_LIBRARY_PATH": f"{work}/fake.lib"}
    done, file = run("fake", FDR_PAPI="FAKE::PAGE-FAULTS,FAKE::CPU-CLOCK,FAKE::CONTEXT-SWITCHES,FAKE::BROKEN,FAKE::NONE", **fake)
    exactly(file, "FAKE::PAGE-FAULTS")
    clock = [r for r in counters(file, "--by", "call") if r["counter"] == "FAKE::CPU-CLOCK" and r["unit"] == "ns"]
    check(len(clock) >= 4 and all(r["amount"] > 0 for r in clock), "a clock with its unit", clock)
    check(done.stderr.count("\n") == 1 and "stays 0" in done.stderr and "PAPI_add_event (component fake): no event" in done.stderr
          and "FAKE::NONE: PAPI knows no such event" in done.stderr, "silent zeros and broken events are refused", done.stderr)
    names = {r["counter"] for r in counters(file)}
    check(names == {"FAKE::PAGE-FAULTS", "FAKE::CPU-CLOCK"}, "and not recorded", names)
    done, file = run("fake-fork", "fork", FDR_PAPI="FAKE::PAGE-FAULTS", **fake)
    inner = call(file, "PAGE-FAULTS", "inner")
    check(inner.get("calls_read") == 10 and 1000 <= inner["amount"] <= 1060, "PAPI in a child", inner)
    if "perf:task-clock" in {r["name"] for r in json.loads(subprocess.run([fdr, "counters", "--json"], capture_output=True).stdout) if r["works"]}:
        closed("closed", "FAKE::PAGE-FAULTS,FAKE::CPU-CLOCK", FAKE_PERF="1", **fake)
        real_events()
    done, file = run("handlers", "handlers", FDR_PAPI="FAKE::PAGE-FAULTS", **fake)
    check(call(file, "PAGE-FAULTS", "handled").get("calls_read") == 1, "what is made for a thread is not made in a handler, and then read there")
    check(call(file, "PAGE-FAULTS", "inner").get("calls_read") == 20, "but in a thread that blocks signals")
    two = "FAKE::FAULTS,FAKE::PAGE-FAULTS"
    done, file = run("narrow", FDR_PAPI=two, FAKE_COUNTERS="1", **fake)
    check("does not fit beside the others: conflict; multiplexing: not supported" in done.stderr, "too many for the processor", done.stderr)
    check({r["counter"] for r in counters(file)} == {"FAKE::FAULTS"}, "the first of them is counted")
    done, file = run("multiplex", FDR_PAPI=two, FAKE_COUNTERS="1", FAKE_MULTIPLEX="1", **fake)
    check(done.stderr == "" and len(counters(file)) == 2, "multiplexed where that works", done.stderr)
    done, file = run("dead", FDR_PAPI="FAKE::FAULTS", FAKE_DEAD="1", **fake)
    check("PAPI_library_init: not supported" in done.stderr, "a PAPI that does not start", done.stderr)
    done, file = run("empty", FDR_PAPI="PAPI_TOT_INS,FAKE::FAULTS", FDR_EDGE_COUNTERS="task:page-faults", FAKE_EMPTY="1", **fake)
    check(done.stderr.count("\n") == 1 and all(f"{name}: PAPI knows no such event" in done.stderr for name in ("PAPI_TOT_INS", "FAKE::FAULTS")),
          "a PAPI without any event: what is missing is said once", done.stderr)
    check({r["counter"] for r in counters(file)} == {"task:page-faults"}, "and what there is works")
    exactly(file, "task:page-faults")
    empty = subprocess.run([fdr, "counters", "--json"], capture_output=True, env=os.environ | fake | {"FAKE_EMPTY": "1"}, check=True)
    check(not any(r["name"].startswith("FAKE") for r in json.loads(empty.stdout)), "fdr counters lists none")
    done, file = run("both", FDR_PAPI="FAKE::FAULTS", FDR_EDGE_COUNTERS="task:page-faults", **fake)
    exactly(file, "FAKE::FAULTS")
    exactly(file, "task:page-faults")
    listed = json.loads(subprocess.run([fdr, "counters", "--json"], capture_output=True, env=os.environ | fake, check=True).stdout)
    works = {r["name"]: r["works"] for r in listed}
    check(works.get("FAKE::CPU-CLOCK") is True and works.get("PAPI: 2 others") is False, "fdr counters lists PAPI's", works)


try:
    for name, text in (("program", PROGRAM), ("denied", DENIED)):
        with open(f"{work}/{name}.c", "w") as f:
            f.write(text)
        subprocess.run(["cc", "-O1", "-std=gnu11", f"-I{source}/include", f"{work}/{name}.c", "-o", f"{work}/{name}",
                        f"-L{build}/lib", f"-Wl,-rpath,{build}/lib", "-lfdr", "-lpthread"], check=True)
    os.chmod(work, 0o755)
    built_in()
    rights()
    papi()
finally:
    shutil.rmtree(work)
print("passed" if not bad else f"{bad} failed")
sys.exit(bad != 0)
