#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=signals,slow timeout=300 promise=P7,P10
# P7, P10: a C++ program is sampled at 1 kHz for a long time. Meanwhile it forks, loads and unloads a library, throws,
# and jumps. It starts, ends and cancels threads, takes snapshots and is read from outside. At the end it crashes.
# FDR_SOAK=3600 sets its duration in seconds. It must never hang: it reports each round. Each thread's samples must
# stand for its CPU time. No descriptor and no memory may be lost, and all its files must be readable.
import glob
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

build, source = os.environ["FDR_BUILD"], os.environ["FDR_SOURCE"]
fdr, seconds = f"{build}/bin/fdr", float(os.environ.get("FDR_SOAK", "12"))
SILENT = 120 # seconds without a word mean that it is stuck
if not os.path.exists(fdr) or not shutil.which("g++"):
    print("skipped: no fdr command in this build, or no g++")
    sys.exit(77)
if os.environ.get("FDR_SANITIZE"):
    print("skipped: its own handlers and unwinder are what is looked at here")
    sys.exit(77)
work = tempfile.mkdtemp(prefix="fdr-soak-")
live = tempfile.mkdtemp(prefix="fdr-soak-", dir="/dev/shm")
bad = 0

LIBRARY = r"""
#include <math.h>
static volatile double sink;
__attribute__((noinline)) static void in_library(long n) { for (double x = 1; n-- > 0;) sink = x = x * 1.0000001 + sqrt(x); }
void plugin_work(long n) { in_library(n); sink = 1; }
"""

PROGRAM = r"""
#include <fdr/fdr.hpp>
#include <atomic>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <time.h>
#include <unistd.h>
#include <vector>
static thread_local volatile double sink;
static double clock_of(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
__attribute__((noinline)) static void spin(int n)
{
    double x = 1;
    for (int i = 0; i < n * 1000; i++) x = x * 1.0000001 + 0.1;
    sink = x;
}
static const fdr::region outer("outer"), inner("inner"), throwing("throwing"), leaping("leaping");
static void calls()
{
    fdr::scope a(outer);
    spin(20);
    fdr::scope b(inner);
    spin(40);
}
static int throws(int depth)
{
    fdr::scope in(throwing);
    std::string owned(64, 'x'); // something to be unwound
    spin(2);
    if (depth == 0) throw std::runtime_error(owned);
    return throws(depth - 1) + (int)owned.size();
}
static void catches()
{
    for (int i = 0; i < 20; i++) {
        try {
            throws(10);
            _exit(50);
        } catch (const std::runtime_error &) {
        }
    }
}
static thread_local jmp_buf back;
static void leaps()
{
    for (int i = 0; i < 20; i++) {
        if (setjmp(back) == 0) {
            fdr_enter(leaping.id());
            fdr_enter(leaping.id());
            spin(2);
            longjmp(back, 1);
        }
    }
}
static void forks()
{
    pid_t child = fork();
    if (child == 0) {
        spin(50);
        if (getpid() % 2) execl("/bin/true", "true", (char *)nullptr);
        _exit(0);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {}
    if (status != 0) _exit(41);
}
static void loads(const char *plugin)
{
    void *library = dlopen(plugin, RTLD_NOW);
    if (!library) _exit(42);
    reinterpret_cast<void (*)(long)>(dlsym(library, "plugin_work"))(200000);
    dlclose(library);
}
static void *cancelled(void *)
{
    fdr::scope in(inner);
    for (;;) {
        spin(2);
        pthread_testcancel();
    }
}
static void cancels()
{
    pthread_t thread;
    pthread_create(&thread, nullptr, cancelled, nullptr);
    spin(10);
    pthread_cancel(thread);
    pthread_join(thread, nullptr);
}
// Threads that live as long as the program: one records, one never calls fdr. Both rest half of the time.
static void lasts(const char *name, bool records)
{
    pthread_setname_np(pthread_self(), name);
    std::string said(name);
    for (long round = 0;; round++) {
        if (records) calls();
        else spin(60);
        usleep(1000);
        if (round % 64) continue;
        char line[120];
        snprintf(line, sizeof line, "thread %s %ld %.6f\n", name, (long)syscall(SYS_gettid), clock_of(CLOCK_THREAD_CPUTIME_ID));
        if (write(1, line, strlen(line)) < 0) _exit(43);
    }
}
static long descriptors()
{
    long n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d)) n++;
    if (d) closedir(d);
    return n;
}
static long resident()
{
    long pages = 0;
    if (FILE *f = fopen("/proc/self/statm", "r")) {
        if (fscanf(f, "%*s %ld", &pages) != 1) pages = 0;
        fclose(f);
    }
    return pages * 4;
}
int main(int, char **argv)
{
    setvbuf(stdout, nullptr, _IOLBF, 4096);
    if (fdr_init(nullptr)) return 44;
    std::thread(lasts, "recorder", true).detach();
    std::thread(lasts, "stranger", false).detach();
    double end = clock_of(CLOCK_MONOTONIC) + atof(argv[1]);
    for (int round = 1; clock_of(CLOCK_MONOTONIC) < end || round < 6; round++) {
        std::vector<std::thread> crowd;
        for (int i = 0; i < 4; i++) crowd.emplace_back([] { for (int k = 0; k < 5; k++) calls(), catches(), leaps(); });
        catches();
        leaps();
        forks();
        loads(argv[2]);
        cancels();
        for (auto &t : crowd) t.join();
        if (round % 16 == 1 && fdr_snapshot("round")) return 45;
        usleep(10000);
        printf("round %d descriptors %ld resident %ld\n", round, descriptors(), resident());
    }
    printf("thread main %ld %.6f\n", (long)getpid(), clock_of(CLOCK_THREAD_CPUTIME_ID));
    printf("crash\n");
    fflush(stdout);
    *reinterpret_cast<volatile int *>(8) = 1;
}
"""


def check(good, what, *more):
    global bad
    print("ok:" if good else "FAIL:", what, *(more if not good else ()), flush=True)
    bad += not good


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def ask(*arguments):
    return json.loads(run(fdr, *arguments).stdout) # of a crashed program: status 1


def compile_all():
    with open(f"{work}/plugin.c", "w") as f:
        f.write(LIBRARY)
    with open(f"{work}/soak.cpp", "w") as f:
        f.write(PROGRAM)
    subprocess.run(["cc", "-O1", "-g", "-fno-omit-frame-pointer", "-shared", "-fPIC", f"{work}/plugin.c", "-o", f"{work}/plugin.so", "-lm"],
                   check=True)
    subprocess.run(["g++", "-std=c++17", "-O1", "-g", "-fno-omit-frame-pointer", f"-I{source}/include", f"{work}/soak.cpp", "-o",
                    f"{work}/soak", f"-L{build}/lib", f"-Wl,-rpath,{build}/lib", "-lfdr", "-pthread"], check=True)


class Watched:
    """The running program and its reports. Now and then it is read from outside."""

    def __init__(self, setting):
        env = {k: v for k, v in os.environ.items() if not k.startswith("FDR_")}
        env |= {"FDR_SAMPLE": setting, "FDR_BUFFER": "8M", "FDR_DIR": work, "FDR_LIVE_DIR": live, "FDR_KEEP": "4,newest",
                "FDR_HOLDOFF": "0s", "FDR_CRASH_DEADLINE": "60s", "FDR_COUNTERS": "default"}
        self.complaints = open(f"{work}/said", "w+", encoding="utf-8")
        self.program = subprocess.Popen([f"{work}/soak", str(seconds), f"{work}/plugin.so"], env=env, stdout=subprocess.PIPE,
                                        stderr=self.complaints)
        self.rounds, self.resources, self.threads, self.rest, self.outside = 0, [], {}, b"", 0

    def hear(self, line):
        word = line.split()
        if word[:1] == ["round"]:
            self.rounds = int(word[1])
            self.resources.append((int(word[3]), int(word[5])))
            if self.rounds % 40 == 3 and self.outside < 100:
                self.look_in()
        elif word[:1] == ["thread"] and len(word) == 4:
            self.threads[word[1]] = (int(word[2]), float(word[3]))

    def look_in(self):
        os.kill(self.program.pid, signal.SIGUSR1)
        done = run(fdr, "snapshot", str(self.program.pid), "-o", f"{work}/outside-{self.rounds}.fdr")
        if done.returncode == 0:
            self.outside += 1
        else:
            print(done.stderr)

    def until_the_end(self):
        out = self.program.stdout.fileno()
        while select.select([out], [], [], SILENT)[0]:
            text = os.read(out, 65536)
            if not text:
                return self.program.wait(SILENT)
            *lines, self.rest = (self.rest + text).split(b"\n")
            for line in lines:
                self.hear(line.decode())
        print(run(fdr, "hang", "--for", "1s", str(self.program.pid)).stdout)
        self.program.kill()
        self.program.wait()
        return "stuck"


def judge(w, status, bundle):
    check(status == -signal.SIGSEGV, f"{w.rounds} rounds, then the crash it was to die of", status)
    check(w.outside > 0, "a snapshot from outside while it ran")
    early, late = w.resources[min(4, len(w.resources) - 1)], w.resources[-1]
    check(late[0] <= early[0] + 16, "descriptors stay", early, late) # a thread that has just ended may still have its own
    check(late[1] <= early[1] + 16384, "memory stays", early, late)
    check(bundle is not None, "it left a bundle", os.listdir(work))
    if not bundle:
        return
    told = ask("samples", "--json", "--limit", "0", bundle)
    stream = {s["tid"]: s for s in told["streams"] if s["tid"]}
    for name, (tid, cpu) in w.threads.items():
        weight = stream[tid]["periods"] * stream[tid]["period"] / 1e9 if tid in stream else 0
        check(cpu - 0.1 - cpu / 50 <= weight <= cpu + 2 + cpu / 50, f"{name}: samples stand for {weight:.2f} of {cpu:.2f} s of CPU time")
    check(set(w.threads) == {"main", "recorder", "stranger"}, "every thread that lasts said its time", w.threads)
    names = {r["name"]: r for r in told["rows"]}
    check("spin(int)" in names and names["spin(int)"]["self"]["share"] > 0.3, "the hot function", [r["name"] for r in told["rows"][:9]])
    check("in_library" in names, "a function of the library that is closed again", [n for n in names if "[" in n][:9])
    check(told["samples"] > 100 and sum(s["presented"] for s in told["streams"]) >= told["samples"], "samples", told["samples"])
    print(f"{told['samples']} samples kept of {sum(s['presented'] for s in told['streams'])} in {len(told['streams'])} streams, "
          f"{w.rounds} rounds, resident {early[1]} to {late[1]} KiB, descriptors {early[0]} to {late[0]}")


def soak(setting):
    w = Watched(setting)
    status = w.until_the_end()
    w.complaints.seek(0)
    said = [line for line in w.complaints.read().splitlines() if "fdr" in line]
    unexpected = [line for line in said if "sampling by CPU timers" not in line and "snapshot" not in line and "crash" not in line]
    print("\n".join(said[:10]))
    files = [f for f in glob.glob(f"{work}/*.fdr") + glob.glob(f"{live}/*.fdr")]
    bundle = None
    for file in files:
        done = run(fdr, "check", file)
        check(done.returncode == 0, f"{os.path.basename(file)} can be read", done.stdout[-800:], done.stderr[-400:])
        if ask("info", "--json", file).get("state") == "crashed":
            bundle = file
    check(not unexpected, "it says nothing else", unexpected[:5])
    judge(w, status, bundle)
    for file in files:
        os.unlink(file)


try:
    compile_all()
    for setting in os.environ.get("FDR_SOAK_SAMPLE", "1kHz").split():
        soak(setting)
finally:
    shutil.rmtree(work)
    shutil.rmtree(live)
sys.exit(bad > 0)
