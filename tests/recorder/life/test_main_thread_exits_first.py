#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=300 promise=P10
# P10: the first thread of a program leaves by pthread_exit while another one goes on. The kernel's files of the process
# then describe an ended thread and are empty. The recording must still contain samples, function names and resident
# memory. The program must end with status 0 together with its last own thread, whatever threads fdr has and whatever
# name that thread has. A thread that only waits does not count as ended.
import glob
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
work = tempfile.mkdtemp(prefix="fdr-first-left-")
bad = 0

PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <fdr/fdr.h>
#include "busy_functions.h"
__attribute__((noinline)) static void spin(void) { for (int i = 0; i < 10000; i++) sink = sink * 1.0000001 + 0.1; }
__attribute__((noinline)) static void caller(void) { spin(); sink = 1; }
static void *goes_on(void *unused)
{
    for (char state = 0; state != 'Z';) {
        FILE *f = fopen("/proc/self/stat", "re");
        if (!f || fscanf(f, "%*d %*s %c", &state) != 1) exit(97);
        fclose(f);
    }
    const char *name = getenv("THREAD_NAME");
    if (name) pthread_setname_np(pthread_self(), name);
    FDR_REGION("after") for (double until = now() + 1; now() < until;)
        for (int i = 0; i < 100; i++) caller(); /* on a busy machine who asks the clock loses the processor there */
    if (name && puts(name) < 0) exit(96);
    return unused;
}
int main(void)
{
    pthread_t thread;
    FDR_REGION("main") pthread_create(&thread, NULL, goes_on, NULL);
    pthread_exit(NULL);
}
"""


def check(good, what):
    global bad
    if not good:
        print(f"failed: {what}")
        bad += 1


def run(name, **settings):
    """Runs the program and returns the path of its recording, or None."""
    folder = f"{work}/{name}"
    os.makedirs(folder)
    env = {**os.environ, "FDR_DIR": folder, "FDR_LIVE_DIR": f"{work}/live", "FDR_LIVE_FORCE": "1", "FDR_BUFFER": "8M",
           "FDR_FINALIZE": "snapshot", "LD_LIBRARY_PATH": f"{build}/lib", "LD_PRELOAD": f"{build}/lib/libfdr-instrument.so",
           **settings}
    process = subprocess.Popen([f"{work}/program"], env=env, stdout=subprocess.PIPE, text=True)
    try:
        out = process.communicate(timeout=60)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        out = process.communicate()[0]
    check(process.returncode == 0, f"{name}: status {process.returncode}")
    check(out.strip() == settings.get("THREAD_NAME", ""), f"{name}: the thread did not come to its end: {out!r}")
    files = glob.glob(f"{folder}/*.fdr")
    check(len(files) == 1, f"{name}: {files}")
    return files[0] if files else None


def told(verb, file, *options):
    return json.loads(subprocess.run([fdr, verb, "--json", *options, file], check=True, capture_output=True, text=True).stdout)


try:
    with open(f"{work}/program.c", "w") as f:
        f.write(PROGRAM)
    subprocess.run(["cc", "-O2", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-I", f"{source}/include", "-I",
                    f"{source}/tests/support", "-o", f"{work}/program", f"{work}/program.c", "-L", f"{build}/lib", "-lfdr", "-pthread"], check=True)
    os.makedirs(f"{work}/live", mode=0o700)

    for name, settings in {"plain": {}, "no-signal": {"FDR_SIGNAL": "none", "FDR_COUNTERS": "rss"},
                           "called-as-ours": {"THREAD_NAME": "fdr-dumper"},
                           "cpu": {"FDR_SIGNAL": "none", "FDR_SAMPLE": "1kHz"}, "wall": {"FDR_SAMPLE": "1kHz,wall,signal", "FDR_COUNTERS": "rss"}}.items():
        file = run(name, **settings)
        if file and "FDR_SAMPLE" in settings:
            rows = {row["name"]: row for row in told("samples", file, "--region", "after")["rows"]}
            check({"spin", "caller", "goes_on"} <= set(rows), f"{name}: {sorted(rows)}")
            check(rows.get("goes_on", {}).get("all", {}).get("share", 0) > 0.5, f"{name}: {rows.get('goes_on')}")
        if file and "FDR_COUNTERS" in settings:
            rss = [c for c in told("counters", file) if c["counter"] == "process:rss"]
            check(rss and rss[0]["min"] > 100000, f"{name}: {rss}")
finally:
    shutil.rmtree(work)
sys.exit(bad != 0)
