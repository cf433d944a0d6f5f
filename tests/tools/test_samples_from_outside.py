#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=300
# Looks from outside (FDR_SAMPLE=wall) in every verb that shows samples: the state is the innermost row, the function
# that called the kernel is around it, and a running thread has no place. The program waits until it was looked at, so
# the test does not depend on speed.
import json
import os
import shutil
import subprocess
import sys
import tempfile

build, source = os.environ["FDR_BUILD"], os.environ["FDR_SOURCE"]
fdr = f"{build}/bin/fdr"
if not os.path.exists(fdr) or os.environ.get("FDR_SANITIZE"):
    print("skipped: needs the fdr command, without sanitizers")
    sys.exit(77)
work = tempfile.mkdtemp(prefix="fdr-outside-")
bad = 0

# It takes a snapshot now and then, and goes on until one has 20 looks in each state.
PROGRAM = r"""
#define _GNU_SOURCE
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static int over;
__attribute__((noinline)) static void waits(void) { poll(NULL, 0, 5); }
static void *waiter(void *p)
{
    pthread_setname_np(pthread_self(), "waiter");
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) FDR_REGION("request") FDR_REGION("reply") waits();
    return p;
}
static void *runner(void *p)
{
    static volatile double x;
    FDR_REGION("computes") while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) x = x * 1.0000001 + 0.1;
    return p;
}
static int enough(const char *path)
{
    struct fdr_file *f;
    struct fdr_read_event e;
    struct fdr_select select = {.classes = 1u << FDR_IN_SAMPLE};
    char message[300];
    int blocked = 0, runs = 0;
    if (fdr_file_open(path, &f, message, sizeof message) != FDR_WHOLE) return 0;
    struct fdr_iter *i = fdr_iter_open(f, &select);
    while (fdr_iter_next(i, &e)) {
        const char *state = fdr_definition(f, FDR_REGION_DEFINITION, e.sample->state)->name;
        blocked += e.sample->region_count == 2 && !strncmp(state, "[blocked", 8);
        runs += e.sample->region_count == 1 && !strncmp(state, "[runs", 5);
    }
    fdr_iter_close(i);
    fdr_file_close(f);
    return blocked > 20 && runs > 20;
}
int main(void)
{
    pthread_t t[2];
    if (fdr_init(NULL)) return 4;
    pthread_create(&t[0], NULL, waiter, NULL);
    pthread_create(&t[1], NULL, runner, NULL);
    do {
        usleep(200000);
        unlink(fdr_last_snapshot());
        if (fdr_snapshot("look")) return 3;
    } while (!enough(fdr_last_snapshot()));
    puts(fdr_last_snapshot());
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    return 0;
}
"""


def check(good, what, *more):
    global bad
    if not good:
        bad += 1
        print("FAILED:", what, *more)


def ask(*arguments):
    done = subprocess.run([fdr, *arguments], capture_output=True, text=True)
    check(done.returncode == 0 and not done.stderr, " ".join(arguments), done.returncode, done.stderr)
    return done.stdout


def rows(by):
    told = json.loads(ask("samples", "--json", "--limit", "0", "--by", by, file))
    return told, {r["name"]: r for r in told["rows"]}


try:
    with open(f"{work}/program.c", "w") as f:
        f.write(PROGRAM)
    subprocess.run(["cc", "-O1", "-g", "-std=gnu11", f"-I{source}/include", f"{work}/program.c", "-o", f"{work}/program",
                    f"-L{build}/lib", f"-Wl,-rpath,{build}/lib", "-lfdr-reader", "-lfdr", "-pthread"], check=True)
    env = {k: v for k, v in os.environ.items() if not k.startswith("FDR_")} | {
        "FDR_ARENA": "anonymous", "FDR_DIR": work, "FDR_SAMPLE": "1kHz,wall", "FDR_DISK": "100G", "FDR_KEEP": "2,newest"}
    done = subprocess.run([f"{work}/program"], env=env, capture_output=True, text=True)
    check(done.returncode == 0 and done.stdout and not done.stderr, "the program", done)
    file = done.stdout.strip()

    told, function = rows("function")
    state = next((n for n in function if n in ("[blocked in poll]", "[blocked in ppoll]")), None)
    check(state is not None, "the state names the call", sorted(function))
    check(function["[runs, place unknown]"]["self"]["samples"] > 20, "a running thread has no place", sorted(function))
    if state:
        poll = [r for n, r in function.items() if "poll" in n and not n.startswith("[")]
        check(poll and poll[0]["self"]["samples"] == 0 and poll[0]["all"]["samples"] > 20, "the function around it", poll)
    check(abs(sum(r["self"]["weight"] for r in told["rows"]) - told["weight"]) < 1, "all time is somewhere")
    for s in told["streams"]:
        check(s["presented"] + s["left_out"] == s["periods"], "looks taken and left out are all periods", s)
    text = ask("samples", file)
    if any(s["left_out"] for s in told["streams"]):
        check("looks" in text and "were left out" in text, "which is said", text)
    check("are cut" not in text, "no stack is missing", text)

    _, region = rows("region")
    check(region["reply"]["self"]["samples"] > 20 and region["request"]["all"]["samples"] >= region["reply"]["self"]["samples"],
          "regions", region)
    check(region["computes"]["self"]["samples"] > 20, "the region of a running thread", region)
    _, thread = rows("thread")
    check(any(n.startswith("waiter,") for n in thread), "the thread's newest name", sorted(thread))
    if state:
        for folded in (ask("samples", "--folded", file), ask("export", "--to", "folded", "--class", "sample", file, "-o", "-")):
            lines = [x for x in folded.splitlines() if x.startswith("waiter;request;reply;") and f";{state} " in x]
            check(lines and "poll" in lines[0].split(";")[3], "folded: the state is the leaf", folded)
        check(f"state={state.replace(' ', '_')}" in ask("dump", "--tsv", "--class", "sample", file), "dump --tsv")
        check(f"sample {state}" in ask("dump", "--class", "sample", file), "dump")
        check(f'"state": "{state}"' in ask("dump", "--json", "--class", "sample", file), "dump --json")
        ask("export", "--to", "chrome", file, "-o", f"{work}/t.json")
        events = json.load(open(f"{work}/t.json"))
        check(any(e.get("name") == state for e in events["traceEvents"]), "chrome: events")
        check(any(v["name"] == state for v in events["stackFrames"].values()), "chrome: frames")
    ask("check", file)
    check("[runs, place unknown]" in ask("stats", "--by", "path", file), "stats --by path")
finally:
    shutil.rmtree(work)
sys.exit(bad > 0)
