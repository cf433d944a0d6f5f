#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools,slow timeout=180 promise=P10
# P10: overflow of PAPI's events is a source of samples. The test uses a fake PAPI with perf events, and the machine's
# own PAPI if it has events. Threads, places and weights of the samples must be right, with and without counters read
# beside them. It covers fork, exec, a second recording, threads that come and go, and the program's own handler of
# PAPI's signal. Each missing part costs one line.
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

build, tree = os.environ["FDR_BUILD"], os.environ["FDR_SOURCE"]
fdr, library = f"{build}/bin/fdr", f"{build}/lib/libfdr-papi.so"
if not os.path.exists(fdr):
    print("skipped: no fdr command in this build")
    sys.exit(77)
needed = re.findall(r"NEEDED.*\[(libpapi[^]]*)\]", subprocess.run(["readelf", "-d", library], capture_output=True, text=True).stdout)
if not needed:
    print("skipped: this build has no PAPI")
    sys.exit(77)
work = tempfile.mkdtemp(prefix="fdr-sample-papi-")
bad = 0

PROGRAM = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <fdr/fdr.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "busy_functions.h"
SPIN(hot)
SPIN(warm)
SPIN(unseen)
static void work(double seconds)
{
    double until = now() + seconds;
    FDR_REGION("work") while (now() < until) hot(), hot(), hot(), warm();
}
static void *records(void *p)
{
    sigset_t handled; /* which is no sign of a handler */
    sigemptyset(&handled);
    sigaddset(&handled, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &handled, NULL);
    pthread_setname_np(pthread_self(), "records");
    work(0.3);
    return p;
}
static void *quiet(void *p)
{
    pthread_setname_np(pthread_self(), "quiet");
    for (double until = now() + 0.1; now() < until;) unseen();
    return p;
}
static void *brief(void *p) { FDR_REGION("brief") hot(); return p; }
static void touch(int pages)
{
    char *p = mmap(NULL, (size_t)pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FDR_REGION("touch") for (int i = 0; i < pages; i++) p[i * 4096] = 1;
    munmap(p, (size_t)pages * 4096);
}
static int descriptors(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (readdir(d)) n++;
    closedir(d);
    return n;
}
static void on(int number) { (void)number; FDR_REGION("in a handler") hot(); }
static void *handles(void *p) { raise(SIGUSR2); work(0.05); return p; }
static void threads(int n, void *(*of)(void *))
{
    pthread_t t[8];
    for (int i = 0; i < n; i++) pthread_create(&t[i], NULL, of, NULL);
    for (int i = 0; i < n; i++) pthread_join(t[i], NULL);
}
int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    struct sigaction a = {.sa_handler = on}, later;
    sigaction(SIGUSR2, &a, NULL);
    sigaction(SIGRTMIN + 2, &a, NULL);
    fdr_init(NULL);
    if (!strcmp(mode, "faults")) touch(5000);
    else if (strcmp(mode, "refused")) work(0.3);
    if (!strcmp(mode, "handler")) threads(1, handles);
    if (!strcmp(mode, "threads")) {
        threads(2, records);
        threads(1, quiet);
    }
    if (!strcmp(mode, "close")) {
        close_range(3, ~0u, 0);
        int theirs = open("/proc/self/exe", O_RDONLY), more[20];
        for (int i = 0; i < 20; i++) more[i] = dup(theirs);
        for (int i = 0; i < 50; i++) work(0.01);
        if (lseek(theirs, 0, SEEK_CUR)) return 5; /* somebody read it */
        for (int i = 0; i < 20; i++) if (close(more[i])) return 6;
        return close(theirs);
    }
    if (!strcmp(mode, "many")) {
        threads(8, brief);
        int before = descriptors();
        for (int i = 0; i < 30; i++) threads(8, brief);
        usleep(300000);
        if (descriptors() > before) return 3;
    }
    if (!strcmp(mode, "exec")) execl("/bin/sh", "sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done", (char *)NULL);
    if (!strcmp(mode, "fork")) {
        pid_t child = fork();
        if (!child) {
            work(0.05);
            fdr_init(NULL);
            work(0.2);
            int e = fdr_snapshot("child");
            fdr_finalize();
            _exit(e != 0);
        }
        int status;
        waitpid(child, &status, 0);
        return status != 0;
    }
    if (!strcmp(mode, "again")) {
        fdr_finalize();
        work(0.1);
        fdr_init(NULL);
        work(0.2);
    }
    sigaction(SIGRTMIN + 2, NULL, &later);
    if (later.sa_handler != on) return 4;
    return fdr_snapshot("end") != 0;
}
"""


def check(good, what, *shown):
    global bad
    print("ok" if good else "FAILED", what, *(() if good else shown))
    bad += not good


def run(mode, setting, fake=True, **extra):
    """Runs the program. Returns its messages and the samples of its last recording."""
    for name in os.listdir(work):
        if name.endswith(".fdr"):
            os.unlink(f"{work}/{name}")
    env = {k: v for k, v in os.environ.items() if not k.startswith("FDR_")}
    env |= {"FDR_ARENA": "anonymous", "FDR_DIR": work, "FDR_SAMPLE": setting, "FDR_FORK": "off"} | ({"LD_LIBRARY_PATH": f"{work}/fake.lib"} if fake else {}) | extra
    done = subprocess.run([f"{work}/program", mode], env=env, capture_output=True, text=True)
    check(done.returncode == 0, f"{mode or 'plain'} with {setting} ends well", done.returncode, done.stderr)
    files = [f"{work}/{name}" for name in os.listdir(work) if name.endswith(".fdr")]
    if not files:
        return done.stderr.splitlines(), None
    told = json.loads(subprocess.run([fdr, "samples", "--json", "--limit", "0", files[0]], capture_output=True, check=True).stdout)
    return done.stderr.splitlines(), told | {"file": files[0]}


def shares(told):
    return {r["name"]: r["self"]["share"] for r in told["rows"]}


def refused(what, reason, setting, **extra):
    said, told = run("refused", setting, **extra)
    check(len(said) == 1 and reason in said[0] and "no samples are taken" in said[0], f"{what}: said once", said)
    check(told["samples"] == 0, f"{what}: and none are taken", told["samples"])


def source(event, each, fake, **extra):
    said, told = run("threads", f"{event}/{each}", fake, **extra)
    check(len(said) == 1 and "threads that record are sampled" in said[0], f"{event}: who is sampled is said once", said)
    names = sorted(s["name"] for s in told["streams"] if s["kept"])
    check(names == ["program", "records", "records"], "threads that record are sampled, and no other", names)
    check(0.75e9 <= told["weight"] <= 1.2e9, "for all of their time", told["weight"])
    share = shares(told)
    check(0.6 < share["hot"] < 0.85 and 0.15 < share["warm"] < 0.4, "they are where it went", share)
    check("unseen" not in share, "not where other threads were")
    said, told = run("", f"{event}/10", fake, **extra)
    check(len(said) == 2 and "using 100000" in said[0] and told["streams"][0]["period"] == 100000, f"{event}: 100 us is the least", said)
    check(0.2e9 <= told["weight"] <= 0.4e9, "and what it weighs is right", told["weight"])
    for mode in ("exec", "many"):
        run(mode, f"{event}/{each}", fake, **extra)
    for mode in ("fork", "again"):
        said, told = run(mode, f"{event}/{each}", fake, **extra)
        check(len(said) == 2 and 0.15e9 <= told["weight"] <= 0.25e9, f"{mode}: its own samples, all of them", said, told["weight"])


def read(file):
    """The counts of calls, by region and counter."""
    rows = json.loads(subprocess.run([fdr, "counters", "--json", "--by", "call", file], capture_output=True, check=True).stdout)
    return {(r["region"], r["counter"].split("::")[1]): r["amount"] for r in rows}


def beside(prefix, fake, **extra):
    """One set of each thread holds events that overflow and events that are only read."""
    clock = "CPU-CLOCK" if fake else "TASK-CLOCK"
    both = {"FDR_PAPI": f"{prefix}PAGE-FAULTS,{prefix}{clock}"} | extra
    said, told = run("faults", f"{prefix}PAGE-FAULTS/100", fake, **both)
    amount = read(told["file"])
    check(len(said) == 1 and 4000 <= told["weight"] <= 6000, "an event that is read, too: its samples", said, told["weight"])
    check(4900 <= amount["touch", "PAGE-FAULTS"] <= 5300 and 1e5 < amount["touch", clock] < 1e9, "and its count", amount)
    said, told = run("threads", f"{prefix}{clock}/1000000", fake, **both)
    amount = read(told["file"])
    check(len(said) == 1 and 0.75e9 <= told["weight"] <= 1.2e9, "all threads that record are sampled", said, told["weight"])
    check(0.85e9 <= amount["work", clock] <= 1.2e9, "and read", amount)
    for mode, least in ("fork", 0.15e9), ("again", 0.15e9), ("many", 0.2e9), ("close", 0.2e9):
        said, told = run(mode, f"{prefix}{clock}/1000000", fake, **both)
        amount = read(told["file"]) if told else {}
        check(mode == "close" or amount.get(("work", clock), 0) >= least, f"{mode}: both", said, amount)
    check("of thread" in " ".join(said), "close: the program's files are left alone, one line", said)


def faked():
    os.makedirs(f"{work}/fake.lib")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", f"{tree}/tests/support/papi_fake.c", "-o", f"{work}/fake.lib/{needed[0]}",
                    f"-Wl,-soname,{needed[0]}"], check=True)
    source("FAKE::CPU-CLOCK", 1000000, True)
    said, told = run("faults", "FAKE::PAGE-FAULTS/100")
    check(1 <= told["samples"] <= 60 and 4000 <= told["weight"] <= 6000, "5000 page faults", told["samples"], told["weight"])
    said, told = run("handler", "FAKE::CPU-CLOCK/1000000")
    check(len(said) == 2 and "from a signal handler" in said[1], "a thread that attaches in a handler is left out", said)
    said, told = run("close", "FAKE::CPU-CLOCK/1000000")
    check(len(said) == 2 and "closed the event of thread" in said[1], "a program that closes all descriptors: said once, and it keeps its own", said)
    refused("an event that cannot be added", "PAPI_add_event (component fake): no event", "FAKE::BROKEN/1000")
    refused("an event that stays 0", "stays 0", "FAKE::CONTEXT-SWITCHES/10")
    refused("an event without overflow", "PAPI_overflow (component fake): not supported", "FAKE::FAULTS/10")
    refused("no event", "PAPI knows no such event here: no event", "FAKE::NONE/10")
    refused("a component without interrupts", "component fake: it has no interrupts", "FAKE::CPU-CLOCK/1000000", FAKE_QUIET="1")
    refused("a count beyond PAPI's", "at most 2147483647", "FAKE::PAGE-FAULTS/3000000000")
    refused("a PAPI that does not start", "PAPI_library_init: not supported", "FAKE::CPU-CLOCK/1000000", FAKE_DEAD="1")
    refused("a PAPI without events", "PAPI knows no such event", "PAPI_TOT_INS/100000", FAKE_EMPTY="1")
    beside("FAKE::", True)
    multiplexed = {"FDR_PAPI": "FAKE::FAULTS,FAKE::PAGE-FAULTS", "FAKE_COUNTERS": "1", "FAKE_MULTIPLEX": "1"}
    refused("beside multiplexed ones", "the events of FDR_PAPI are multiplexed", "FAKE::CPU-CLOCK/1000000", **multiplexed)
    said, told = run("", "FAKE::CPU-CLOCK/1000000", FDR_PAPI="FAKE::FAULTS", FAKE_COUNTERS="1")
    check(len(said) == 1 and "for an event of FDR_PAPI beside it (component fake): conflict" in said[0] and told["samples"] == 0,
          "no room beside those that are read: said once", said)


def real():
    """The machine's own PAPI. If its libpfm4 does not know the processor, a preloaded library presents it as known."""
    subprocess.run(["cc", "-shared", "-fPIC", f"{tree}/tests/support/papi_software_events.c", "-o", f"{work}/known.so", "-ldl"], check=True)
    for extra in {}, {"LD_PRELOAD": f"{work}/known.so"}:
        text = subprocess.run([fdr, "counters", "--json"], capture_output=True, check=True, env=os.environ | extra).stdout
        if any(r["name"].endswith("TASK-CLOCK") and r["works"] for r in json.loads(text)):
            source("perf::TASK-CLOCK", 1000000, False, **extra)
            beside("perf::", False, **extra)
            return
        refused("this machine's PAPI", "perf::TASK-CLOCK", "perf::TASK-CLOCK/1000000", fake=False, **extra)


def missing():
    os.makedirs(f"{work}/alone.lib")
    shutil.copy(f"{build}/lib/libfdr.so.0", f"{work}/alone.lib/")
    refused("no libfdr-papi", "libfdr-papi", "PAPI_TOT_INS/100000", LD_LIBRARY_PATH=f"{work}/alone.lib")
    os.makedirs(f"{work}/orphan.lib")
    shutil.copy(f"{build}/lib/libfdr.so.0", f"{work}/orphan.lib/")
    with open(library, "rb") as f, open(f"{work}/orphan.lib/libfdr-papi.so.0", "wb") as out:
        out.write(f.read().replace(needed[0].encode(), b"x" * len(needed[0])))
    refused("no PAPI library", "xxxx", "PAPI_TOT_INS/100000", LD_LIBRARY_PATH=f"{work}/orphan.lib")


try:
    with open(f"{work}/program.c", "w") as f:
        f.write(PROGRAM)
    subprocess.run(["cc", "-O1", "-g", "-fno-omit-frame-pointer", "-std=gnu11", f"-I{tree}/include", f"-I{tree}/tests/support", f"{work}/program.c", "-o",
                    f"{work}/program", f"-L{build}/lib", f"-Wl,-rpath,{build}/lib",
                    "-lfdr", "-lpthread"], check=True)
    missing()
    listed = {r["name"]: r["works"] for r in json.loads(subprocess.run([fdr, "counters", "--json"], capture_output=True, check=True).stdout)}
    if not listed.get("perf:task-clock"):
        print("skipped: no perf events here")
    else:
        faked()
        real()
finally:
    shutil.rmtree(work)
print("passed" if not bad else f"{bad} failed")
sys.exit(bad != 0)
