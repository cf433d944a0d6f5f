#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools,slow timeout=300
# `fdr samples` finds the hot functions of programs that measure themselves by their own CPU clocks. The programs have
# recursion, tail calls, inlined functions, code made at run time, and two libraries loaded in one place by turns. Some
# threads never call fdr. The programs are built with and without frame pointers. The results must agree by function,
# line and region, and folded.
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile

build, source = os.environ["FDR_BUILD"], os.environ["FDR_SOURCE"]
fdr = f"{build}/bin/fdr"
if not os.path.exists(fdr) or os.environ.get("FDR_SANITIZE"):
    print("skipped: needs the fdr command, without sanitizers")
    sys.exit(77)
work = tempfile.mkdtemp(prefix="fdr-sample-known-")
bad = 0

LIBRARY = r"""
static volatile double sink;
__attribute__((noinline)) void INNER(long n) { double x = 1; while (n-- > 0) x = x * 1.0000001 + 0.1; sink = x; }
__attribute__((noinline)) void plugin(long n) { INNER(n); sink = 1; }
"""

PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fdr/fdr.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "busy_functions.h"
#define WORK(n, by) do { double x = 1; for (long i = 0; i < (n); i++) x = x * 1.0000001 + (by); sink = x; } while (0)
__attribute__((noinline)) static void first(long n) { WORK(n, .1); }
__attribute__((noinline)) static void second(long n) { WORK(n, .2); }
__attribute__((noinline)) static void jumped_to(long n) { WORK(n, .3); }
__attribute__((noinline)) static void jumps(long n) { sink = (double)n; jumped_to(n); }
static inline __attribute__((always_inline)) void part(long n) { WORK(n, .4); }
__attribute__((noinline)) static void contains(long n) { part(3 * n); WORK(n, .5); }
__attribute__((noinline)) static long recurse(int depth, long n)
{
    if (depth == 0) { first(n); return 1; }
    long below = recurse(depth - 1, n);
    WORK(n / 20, .6);
    return below + 1;
}
static double spent[2];
static void *stranger(void *p)
{
    double end = now() + *(double *)p;
    while (now() < end) for (int i = 0; i < 10; i++) first(30000), first(30000), first(30000), second(30000);
    return NULL;
}
static void plugins(double until, char **path)
{
    for (int i = 0; now() < until; i++) {
        void *library = dlopen(path[i % 2], RTLD_NOW);
        if (!library) exit(3);
        void (*run)(long) = (void (*)(long))dlsym(library, "plugin");
        double from = now(), end = from + (i % 2 ? .6 : .2);
        while (now() < end) run(500000); /* what reads the clock must not show */
        spent[i % 2] += now() - from;
        dlclose(library);
    }
}
static void made(double until) /* push rbp; mov rbp, rsp; 1: dec rdi; jnz 1b; pop rbp; ret */
{
    static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0x5d, 0xc3};
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) exit(77);
    memcpy(page, code, sizeof code);
    while (now() < until) {
        double from = now();
        ((void (*)(long))page)(3000000);
        double between = now();
        second(200000);
        spent[0] += between - from, spent[1] += now() - between;
    }
}
int main(int argc, char **argv)
{
    const char *what = argv[1];
    double seconds = atof(argv[2]), end = now() + seconds;
    if (argc < 5 || fdr_init(NULL)) return 2;
    fdr_marker(fdr_marker_define("here"), 1);
    if (!strcmp(what, "recursion")) while (now() < end) FDR_REGION("recursion") recurse(20, 20000);
    if (!strcmp(what, "tail")) while (now() < end) for (int i = 0; i < 10; i++) jumps(30000), second(10000);
    if (!strcmp(what, "inline")) while (now() < end) for (int i = 0; i < 10; i++) contains(10000);
    if (!strcmp(what, "plugins")) plugins(end, argv + 3);
    if (!strcmp(what, "made")) made(end);
    if (!strcmp(what, "strangers")) {
        pthread_t thread[3];
        for (int i = 0; i < 3; i++) pthread_create(&thread[i], NULL, stranger, &seconds);
        for (int i = 0; i < 3; i++) pthread_join(thread[i], NULL);
    }
    printf("[%f, %f]\n", spent[0], spent[1]);
    return fdr_snapshot("end") != 0;
}
"""


def check(good, what, *more):
    global bad
    print("ok:" if good else "FAIL:", what, *(more if not good else ()), flush=True)
    bad += not good


def compile_all():
    for name in ("one", "two"):
        with open(f"{work}/plugin.c", "w") as f:
            f.write(LIBRARY.replace("INNER", f"inner_{name}"))
        subprocess.run(["cc", "-O1", "-g", "-fPIC", "-shared", "-fno-omit-frame-pointer", f"{work}/plugin.c", "-o", f"{work}/{name}.so"],
                       check=True)
    with open(f"{work}/known.c", "w") as f:
        f.write(PROGRAM)
    for name, flag in (("framed", "-fno-omit-frame-pointer"), ("bare", "-fomit-frame-pointer")):
        subprocess.run(["cc", "-std=gnu11", "-O2", "-g", flag, f"-I{source}/include", f"-I{source}/tests/support", f"{work}/known.c", "-o", f"{work}/{name}",
                        f"-L{build}/lib", f"-Wl,-rpath,{build}/lib", "-lfdr", "-pthread", "-ldl"], check=True)


class Run:
    def __init__(self, program, what, setting):
        self.title = f"{program}, {what}, {setting}"
        directory = tempfile.mkdtemp(dir=work)
        env = {k: v for k, v in os.environ.items() if not k.startswith("FDR_")}
        env |= {"FDR_DIR": directory, "FDR_ARENA": "anonymous", "FDR_BUFFER": "8M", "FDR_SAMPLE": setting}
        done = subprocess.run([f"{work}/{program}", what, "0.8", f"{work}/one.so", f"{work}/two.so"], env=env, capture_output=True,
                              text=True, timeout=120)
        self.skipped = done.returncode == 77
        if self.skipped:
            return
        check(done.returncode == 0, f"{self.title}: runs", done.stderr)
        self.spent = json.loads(done.stdout)
        self.file = f"{directory}/{os.listdir(directory)[0]}"
        self.told = self.ask("--limit", "0")
        self.rows = {r["name"]: r for r in self.told["rows"]}

    def ask(self, *options):
        return json.loads(subprocess.run([fdr, "samples", "--json", *options, self.file], capture_output=True, check=True).stdout)

    def text(self, *options):
        return subprocess.run([fdr, "samples", *options, self.file], capture_output=True, text=True, check=True).stdout

    def share(self, name, which="self"):
        return self.rows.get(name, {which: {"share": 0}})[which]["share"]

    def near(self, name, share, of=1.0, which="self"):
        """Within three times the stated interval, or 4 %. A single run may lie outside of a 95 % interval."""
        row = self.rows.get(name, {which: {"share": 0, "low": 0, "high": 0}})[which]
        least = max(3 * (row["high"] - row["low"]) / 2, 0.04)
        check(abs(row["share"] - share * of) <= least, f"{self.title}: {name} has {share * of:.3f} {which}", row)


def known(program, setting):
    follows = program == "framed" or "unwind" in setting
    r = Run(program, "recursion", setting)
    own, below = r.share("first"), r.share("recurse")
    check(own > 0.3 and below > 0.3 and own + below > 0.9, f"{r.title}: both functions", own, below)
    if follows:
        r.near("recurse", own + below, which="all")
        deep = max(line.count(";recurse") for line in r.text("--folded").splitlines())
        check(deep >= 20, f"{r.title}: folded, as deep as it was", deep)
    else:
        check("stacks are cut" in r.text(), f"{r.title}: says that callers are missing")
    region = {row["name"]: row["self"]["share"] for row in r.ask("--by", "region")["rows"]}
    check(region.get("recursion", 0) > 0.9, f"{r.title}: by region", region)
    r = Run(program, "tail", setting)
    r.near("jumped_to", 0.75)
    r.near("second", 0.25)
    r = Run(program, "inline", setting)
    r.near("contains", 1)
    r.near("part", 0.75, which="all")
    lines = sorted((row["self"]["share"] for row in r.ask("--by", "line")["rows"]), reverse=True)
    check(len(lines) > 1 and abs(lines[0] - 0.75) < 0.08 and abs(lines[1] - 0.25) < 0.08, f"{r.title}: two lines", lines[:4])
    r = Run(program, "plugins", setting)
    total = sum(r.spent)
    r.near("inner_one", r.spent[0] / total)
    r.near("inner_two", r.spent[1] / total)
    r = Run(program, "strangers", setting)
    check(len([s for s in r.told["streams"] if s["kept"] > 100]) == 3, f"{r.title}: three threads", r.told["streams"])
    r.near("first", 0.75)
    r.near("second", 0.25)
    if platform.machine() != "x86_64":
        return
    r = Run(program, "made", setting)
    if r.skipped:
        return
    total = sum(r.spent)
    nameless = sum(row["self"]["share"] for name, row in r.rows.items() if name.startswith("[no module]"))
    check(abs(nameless - r.spent[0] / total) < 0.05, f"{r.title}: code of no module", nameless, r.spent)
    r.near("second", r.spent[1] / total)


try:
    compile_all()
    for program, setting in (("framed", "1kHz"), ("bare", "1kHz"), ("bare", "1kHz,unwind")):
        known(program, setting)
finally:
    shutil.rmtree(work)
sys.exit(bad > 0)
