#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=120 excuse=gdb
# scripts/gdb/fdr_gdb.py shows locations, partitions, bins and offsets, of a stopped program and of its core file. The
# numbers are those of the program: its calls are the records of the listed bins.
import os
import re
import shutil
import subprocess
import sys
import tempfile

build, source = os.environ["FDR_BUILD"], os.environ["FDR_SOURCE"]
if os.environ.get("FDR_SANITIZE"):
    print("skipped: the sanitizers' runtime does not run below gdb")
    sys.exit(77)
if not shutil.which("gdb"):
    print("skipped: gdb is not installed")
    sys.exit(77)
directory = tempfile.TemporaryDirectory(prefix="fdr-gdb-")
work = directory.name
bad = 0

PROGRAM = r"""
#include <fdr/fdr.h>
void stop_here(void) { __asm__ volatile(""); }
int main(void)
{
    fdr_init(NULL);
    fdr_region outer = fdr_region_define("outer", 0, 0), inner = fdr_region_define("inner", 0, 0);
    fdr_enter(outer);
    for (int i = 0; i < 3000; i++) { fdr_enter(inner); fdr_leave(inner); }
    stop_here();
    fdr_leave(outer);
    fdr_finalize();
    return 0;
}
"""


def check(good, what, *shown):
    global bad
    print(("ok: " if good else "FAILED: ") + what, *([] if good else shown))
    bad += not good


def gdb(*arguments, commands):
    env = {k: v for k, v in os.environ.items() if not k.startswith("FDR_")}
    env |= {"FDR_DIR": work, "FDR_ARENA": "anonymous", "FDR_BUFFER": "1M", "FDR_MIN_DURATION": "0"}
    words = ["gdb", "-nx", "-batch"]
    for command in [f"source {source}/scripts/gdb/fdr_gdb.py", *commands]:
        words += ["-ex", command]
    done = subprocess.run([*words, *arguments], capture_output=True, text=True, cwd=work, env=env, timeout=100)
    return done.stdout + done.stderr


with open(f"{work}/program.c", "w", encoding="utf-8") as f:
    f.write(PROGRAM)
subprocess.run(["cc", "-g", "-O0", f"-I{source}/include", f"{work}/program.c", "-o", f"{work}/program", f"-L{build}/lib",
                f"-Wl,-rpath,{build}/lib", "-lfdr", "-pthread"], check=True)
SHOW = ["fdr locations", "fdr bins 0", "echo at 4096:", "fdr at 4096", "echo printed:",
        "print *(struct fdri_arena_bin *) $fdr_at(4096)", "echo raw:",
        "print/r ((struct fdri_arena_bin *) $fdr_at(4096))->seq", "echo head:", "fdr at 64", "fdr bins 77"]
live = gdb("program", commands=["break stop_here", "run", "generate-core-file core", *SHOW])
for name, text in ("the program", live), ("its core file", gdb("program", "core", commands=SHOW)):
    listed = re.findall(r"bin of location 0, region depth 2 band (\d), seq (\d+): (\d+) records from (\d+), (\d+) bytes, "
                        r"listed\n", re.split("at 4096:", text)[0])
    check(sum(int(b[2]) for b in listed) == 3000, f"{name}: the records of the bins are its calls", text)
    sums = re.findall(r"partition region depth 2 band (\d): (\d+) bins, (\d+) bytes, oldest seq 1 at \d+, newest at \d+", text)
    check(sums and all((int(n), int(size)) == (sum(b[0] == band for b in listed), sum(int(b[4]) for b in listed if b[0] == band))
                       for band, n, size in sums), f"{name}: partitions count their bins", sums, listed)
    check(re.search(r"\d+  location 0, thread [1-9]\d*: 1 open calls, \d+ bins, \d+ partitions\n", text), f"{name}: location", text)
    first = re.search(r"at 4096:(bin of location 0.*)\n", text)
    check(first and re.search(r"printed:\$\d+ = " + re.escape(first.group(1)), text), f"{name}: an offset, two ways", text)
    check(re.search(r"raw:\$\d+ = 1\n", text), f"{name}: a field", text)
    check("head:64: no bin, location or partition begins here" in text, f"{name}: an offset without a structure", text)
    check("no location 77" in text, f"{name}: a location that is not there", text)
nothing = gdb("program", commands=["break main", "run", "fdr locations"])
check("no recording: fdri_life_recording.arena.base is NULL" in nothing, "before fdr_init", nothing)
sys.exit(bad != 0)
