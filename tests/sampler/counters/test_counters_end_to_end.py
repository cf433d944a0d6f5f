#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=house timeout=120
# Counters from end to end. The monitor thread reads them in a program with a known load. `fdr counters` must report that
# load, by thread, region and time.
import json
import os
import shutil
import subprocess
import sys
import tempfile

build, source = os.environ["FDR_BUILD"], os.environ["FDR_SOURCE"]
fdr = f"{build}/bin/fdr"
if not os.path.exists(fdr):
    print("skipped: no fdr command in this build")
    sys.exit(77)
work = tempfile.mkdtemp(prefix="fdr-counters-")
bad = 0

PROGRAM = r"""
#define _GNU_SOURCE
#include <fdr/fdr.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static volatile double x;
static double cpu(void) { struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
static void spin(double s) { for (double end = cpu() + s; cpu() < end;) x += 1; }
static void rest(int ms) { struct timespec t = {0, ms * 1000000L}; while (nanosleep(&t, &t)) continue; } /* a sample interrupts it */
static void touch(long n) {
    char *p = mmap(0, n * 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (long i = 0; i < n; i++) p[i * 4096] = 1;
    munmap(p, n * 4096);
}
static void *silent(void *p) { rest(150); touch(3000); rest(60); return p; } /* never calls fdr */
/* Readings of a counter of the main thread that are more than the buffer holds, and what they come to. */
static void *readings(void *p)
{
    static const struct fdr_field fields[] = {{"thread", FDR_U64, 0}, {"series", FDR_U64, 8}, {"reading", FDR_U64, 16},
                                              {"idle", FDR_U64, 24}, {"chip:cycles", FDR_U64, 32}};
    fdr_event_type type = fdr_event_define("fdr.counters.0", fields, 5);
    uint64_t r[5] = {(uint64_t)getpid(), 1, 0, 0, 7}, before = 0;
    fdr_metric_define("chip:cycles", "", FDR_U64, FDR_METRIC_COUNTER);
    for (int i = 0; i < 150000; i++) {
        r[3] = i % 3; /* that many had nothing new */
        r[2] += r[3] + 1;
        fdr_reading(type, r, i == 0 || i == 149999 ? r[2] : before, r[2]);
        before = r[2];
        r[4] += i % 1000;
    }
    return p;
}
int main(int argc, char **argv)
{
    fdr_init(NULL);
    if (argc > 1 && !strcmp(argv[1], "readings")) {
        pthread_t t;
        FDR_REGION("meanwhile") {
            pthread_create(&t, NULL, readings, NULL);
            pthread_join(t, NULL);
        }
        return fdr_snapshot("done") != 0;
    }
    rest(100); /* the monitor comes up */
    if (argc > 1 && !strcmp(argv[1], "fork")) {
        fflush(stdout);
        pid_t child = fork();
        if (!child) {
            char list[64];
            snprintf(list, sizeof list, "ls -l /proc/%d/fd | grep -c -E 'perf_event|/task/'", getpid());
            int n = system(list); /* 0: some found */
            _exit(n == 0);
        }
        int status;
        waitpid(child, &status, 0);
        printf("child %d\n", status);
    }
    if (argc > 1 && !strcmp(argv[1], "storm")) { /* at full rate for half a second of CPU time, then memory, then nothing */
        for (double end = cpu() + 0.5; cpu() < end;) touch(500);
        char *fat = mmap(0, 300L << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        rest(300);
        munmap(fat, 300L << 20);
        rest(300);
        fdr_finalize();
        return 0;
    }
    if (argc > 1 && !strcmp(argv[1], "churn")) {
        for (int i = 0; i < 300; i++) { pthread_t t; pthread_create(&t, NULL, (void *(*)(void *))touch, (void *)4); pthread_join(t, NULL); }
    }
    pthread_t t;
    pthread_create(&t, NULL, silent, NULL);
    FDR_REGION("spinning") { spin(0.1); }
    rest(20);
    FDR_REGION("touching") { for (int i = 0; i < 10; i++) { FDR_REGION("inner") touch(1000); } }
    rest(20);
    FDR_REGION("resting") { for (int i = 0; i < 20; i++) rest(2); }
    pthread_join(t, NULL);
    rest(20);
    if (fdr_snapshot("done")) return 1;
    printf("tid %d\n", (int)getpid());
    fdr_finalize();
    return 0;
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
    return done, files[0] if files else None


def counters(file, *options):
    return json.loads(subprocess.run([fdr, "counters", "--json", *options, file], capture_output=True, check=True).stdout)


def one(rows, **wanted):
    found = [r for r in rows if all(r.get(k) == v for k, v in wanted.items())]
    return found[0] if len(found) == 1 else {}


def basics():
    done, file = run("basics", FDR_COUNTERS="page-faults,task-clock|cpu-time,context-switches,rss")
    check(done.returncode == 0 and file, "a program under the monitor", done.stderr)
    check(done.stderr == "", "nothing to complain about", done.stderr)
    check(subprocess.run([fdr, "check", file], capture_output=True).returncode == 0, "fdr check")
    rows = counters(file)
    faults = next(r["counter"] for r in rows if r["counter"].endswith(":page-faults"))
    clock = next(r["counter"] for r in rows if r["unit"] == "ns")
    rss = one(rows, counter="process:rss")
    check(rss.get("kind") == "gauge" and rss["unit"] == "bytes" and 1e6 < rss["min"] < rss["max"] < 1e9, "a gauge", rss)
    # The peak is short. A busy machine may miss it.
    check(rss["max"] - rss["min"] >= 1 << 20, "the gauge saw memory come and go", rss)
    region = counters(file, "--by", "region")
    # On a busy machine readings are more than 1 ms apart. Most counts must still go to the right region.
    inner = one(region, counter=faults, region="inner")
    check(5000 <= inner.get("amount", 0) <= 10100, "10000 page faults by region", inner)
    touching = one(region, counter=faults, region="touching")
    check(touching.get("with_called", 0) >= inner["amount"], "with what was called", touching)
    check(one(region, counter=faults, region="spinning").get("amount", 0) < 2500, "none where there are none")
    spinning = one(region, counter=clock, region="spinning")
    check(0.05e9 <= spinning.get("amount", 0) <= 0.13e9, "0.1 s of CPU time by region", spinning)
    check(spinning.get("readings", 0) >= 2, "and how many readings stand behind it", spinning)
    resting = one(region, counter=clock, region="resting")
    check(resting.get("amount", 0) < 0.05e9, "a region that rests uses no CPU", resting)
    silent = one(region, counter=faults, region="(threads that never called fdr)")
    check(2900 <= silent.get("amount", 0) <= 3400, "threads that never call fdr are counted, too", silent)
    tid = int(done.stdout.split()[-1])
    thread = one(counters(file, "--by", "thread"), counter=faults, thread=tid)
    check(10000 <= thread.get("amount", 0) <= 10600, "by thread", thread)
    slices = [r["amount"] for r in counters(file, "--by", "time", "--slices", "10", "--counter", faults)]
    check(abs(sum(slices) - one(counters(file), counter=faults)["amount"]) < 1, "slices add up", slices)
    for by in "counter", "region", "thread", "time":
        text = subprocess.run([fdr, "counters", "--by", by, file], capture_output=True, text=True)
        check(text.returncode == 0 and "readings" in text.stdout, f"as text, by {by}", text.stdout)
    text = subprocess.run([fdr, "counters", "--counter", "nosuch", file], capture_output=True, text=True)
    check(text.returncode == 0 and text.stderr == f"fdr: {file}: no counter matches 'nosuch'\n", "none matches", text)
    stats = subprocess.run([fdr, "stats", "--by", "metric", "--json", file], capture_output=True)
    check(json.loads(stats.stdout) == rows, "fdr stats --by metric")
    dump = subprocess.run([fdr, "dump", "--tsv", file], capture_output=True, text=True).stdout
    check("\tfdr.counters." in dump and f"thread={tid} " in dump, "fdr dump names the thread observed")
    check("fdr-monitor" in subprocess.run([fdr, "info", file], capture_output=True, text=True).stdout, "the monitor's location")


def sampled():
    done, file = run("sampled", FDR_COUNTERS="page-faults", FDR_SAMPLE="1kHz,wall")
    silent = one(counters(file, "--by", "region"), region="(threads that never called fdr)")
    check(2900 <= silent.get("amount", 0) <= 3600, "a thread that never calls fdr stays one where it is sampled", silent, done.stderr)
    text = subprocess.run([fdr, "counters", "--by", "thread", file], capture_output=True, text=True).stdout
    check("(never called fdr)" in text and "(samples)" not in text, "also by its name", text)


def missing():
    done, file = run("missing", FDR_COUNTERS="page-faults,hw:cycles,no-such-thing,energy:package-1-2")
    said = [line for line in done.stderr.splitlines() if line.startswith("fdr: FDR_COUNTERS")]
    check(len(said) == 1 and "no-such-thing: unknown" in said[0], "what cannot be counted costs one line", done.stderr)
    names = {r["counter"] for r in counters(file)}
    check(all(":page-faults" in n or n == "hw:cycles" for n in names), "and is not recorded as zeros", names)
    text = subprocess.run([fdr, "counters", file], capture_output=True, text=True).stdout
    check("could not be counted: " in text and "no-such-thing" in text, "the recording says so, too", text)
    done, _ = run("interval", FDR_COUNTERS="rss", FDR_COUNTER_INTERVAL="1us")
    check(done.stderr.count("\n") == 1 and "FDR_COUNTER_INTERVAL" in done.stderr, "a wrong interval costs one line", done.stderr)


def phases():
    with open(f"{work}/phases.txt", "w") as f:
        f.write("phase never\n")
    done, file = run("phases", FDR_COUNTERS="page-faults", FDR_FILTER=f"{work}/phases.txt")
    check(len(counters(file)) == 1, "rules with phases do not pause the monitor", done.stderr)
    done, file = run("tiny", FDR_COUNTERS="all", FDR_COUNTER_INTERVAL="100us", FDR_BUFFER="256K", FDR_STRATEGY="last")
    good = subprocess.run([fdr, "check", file], capture_output=True, text=True)
    check(good.returncode == 0 and len(counters(file)) > 5, "a buffer much too small", good.stdout, good.stderr)


def thinned():
    total = 150 * 499500 - 999  # without the last addition, which no reading followed
    for strategy in "whole", "telescope":
        done, file = run(f"thin-{strategy}", "readings", FDR_BUFFER="256K", FDR_STRATEGY=strategy)
        all_of = one(counters(file), counter="chip:cycles")
        check(0 < all_of.get("readings", 0) < 30000 and all_of["amount"] == total, f"{strategy}: thinned, and not one count is lost", all_of)
        region = one(counters(file, "--by", "region"), counter="chip:cycles", region="meanwhile")
        check(abs(region.get("amount", 0) - total) < 1, f"{strategy}: by region", region)
        slices = [r["amount"] for r in counters(file, "--by", "time", "--slices", "7")]
        check(abs(sum(slices) - total) < 1 and all(s > 0 for s in slices), f"{strategy}: by time", slices)
    done, file = run("part", "readings", FDR_BUFFER="256K", FDR_STRATEGY="last")
    for by in "counter", "region", "time":
        rows = counters(file, "--by", by)
        covers = rows[0]["covers"]
        check(covers["run_from_ns"] < covers["from_ns"] < covers["to_ns"] <= covers["run_to_ns"] and 0 < covers["share"] < 1, f"readings of a part of the run, by {by}", covers)
        text = subprocess.run([fdr, "counters", "--by", by, file], capture_output=True, text=True).stdout.splitlines()[0]
        check(text.startswith("# readings from ") and text.endswith(f": {100 * covers['share']:.0f} % of it"), "which is said", text)
    lines = json.loads(subprocess.run([fdr, "info", "--json", f"{work}/thin-whole/{os.listdir(f'{work}/thin-whole')[0]}"], capture_output=True).stdout)
    steps = [r for r in lines["reductions"] if r["step"] == "thin"]
    check(len(steps) > 2 and any("readings of level 1" in r["what"] for r in steps), "fdr info says what was thinned", lines["reductions"])


def processes_and_threads():
    done, file = run("fork", "fork", FDR_COUNTERS="all")
    check("child 0\n" in done.stdout, "a forked child has none of the descriptors", done.stdout)
    done, file = run("churn", "churn", FDR_COUNTERS="default")
    check(done.returncode == 0 and subprocess.run([fdr, "check", file], capture_output=True).returncode == 0, "300 short threads")
    limited = ["sh", "-c", 'ulimit -n 24; exec "$0"']
    done, file = run("few", prefix=limited, FDR_COUNTERS="all")
    check(done.returncode == 0 and "quarter of RLIMIT_NOFILE" in done.stderr, "too few descriptors: said, not taken", done.stderr)


def triggers():
    directory = f"{work}/triggers"
    os.makedirs(directory)
    lines = "storm: metric *rusage:minor-faults rate above 2K; fat: metric *process:rss above 250M; off: metric *derived:off-cpu above 0.7"
    env = {k: v for k, v in os.environ.items() if not k.startswith("FDR_")}
    env |= {"FDR_DIR": directory, "FDR_ARENA": "anonymous", "FDR_BUFFER": "8M", "FDR_TRIGGERS": lines,
            "FDR_COUNTERS": "rusage:minor-faults,rss,off-cpu"}
    done = subprocess.run([f"{work}/program", "storm"], env=env, capture_output=True, text=True, timeout=60)
    why = [json.loads(subprocess.run([fdr, "info", "--json", f"{directory}/{f}"], capture_output=True).stdout).get("reason", "")
           for f in os.listdir(directory)]
    for name in "storm", "fat", "off":
        check(any(f"trigger {name}:" in w for w in why), f"a snapshot by the trigger {name}", why, done.stderr)


def listing():
    rows = json.loads(subprocess.run([fdr, "counters", "--json"], capture_output=True, check=True).stdout)
    check(one(rows, name="process:rss").get("works") is True, "fdr counters tries what there is")
    check(all(r["works"] or r["why"] for r in rows), "and says why not")
    text = subprocess.run([fdr, "counters"], capture_output=True, text=True).stdout
    check("process:rss" in text, "as text")


try:
    with open(f"{work}/program.c", "w") as f:
        f.write(PROGRAM)
    subprocess.run(["cc", "-O1", "-std=gnu11", f"-I{source}/include", f"{work}/program.c", "-o", f"{work}/program",
                    f"-L{build}/lib", f"-Wl,-rpath,{build}/lib", "-lfdr", "-lpthread"], check=True)
    os.chmod(work, 0o755)
    basics()
    sampled()
    missing()
    phases()
    thinned()
    processes_and_threads()
    triggers()
    listing()
finally:
    shutil.rmtree(work)
print("passed" if not bad else f"{bad} failed")
sys.exit(bad != 0)
