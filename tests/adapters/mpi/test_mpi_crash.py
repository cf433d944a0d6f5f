#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=300 excuse=MPI promise=P7
"""P7: one rank of a real job dies of a fault, of abort, or is killed. With each installed MPI fdr crash names that rank,
the cause and the place in five lines, and says how the others ended and what they waited for. If the launcher kills all
others at once, too, nobody is called the first."""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
from mpi_runs import FDR, bad, compiled, environment, ranks, with_each  # noqa: E402

# how rank 1 dies, what the first line says of it
RUNS = [("segv", r"rank 1: SIGSEGV \(address not mapped: 0x10\) in die_late at hanging\.c:\d+; it was in .+"),
        ("abort", r"rank 1: SIGABRT \(abort\) in die_late at hanging\.c:\d+; it was in .+"),
        ("kill", r"(rank 1: an unseen cause, no handler ran: SIGKILL, the OOM killer or _exit; it was in .+"
                 r"|not known: one of \d that were killed unseen within 2 s)")]
EVIDENCE = (r"evidence   (it is the only one that died by itself|no handler saw its end"
            r"|no handler saw their ends, and signs of life).*")


def ask(*words):
    done = subprocess.run([FDR, *words], capture_output=True, text=True, check=False)
    if done.returncode > 1:
        bad.append(f"fdr {' '.join(words)}: status {done.returncode}: {done.stderr[-300:]}")
    return done.stdout


def check_lines(what, lines, first):
    expected = [f"first      {first}", EVIDENCE, r"the others .*\((rank 0|ranks 0).*"]
    for n, pattern in enumerate(expected):
        if n >= len(lines) or not re.fullmatch(pattern, lines[n]):
            bad.append(f"{what}: line {n + 1} is not '{pattern}': {lines[:6]}")
    waits = r"meanwhile  2 waiting in MPI_Allreduce #5 on MPI_COMM_WORLD \(ranks 0, 2\)"
    if not any(re.match(waits, x) for x in lines):
        bad.append(f"{what}: what the others did: {lines[:6]}")


def one(names, program, how, first):
    what = f"{names[1]}, {how}"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(ranks(names, 3, program, how), env=environment(folder, FDR_CRASH_DEADLINE="60s"), check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, timeout=120)
        files = sorted(glob.glob(f"{folder}/*.fdr"))
        if len(files) != 3:
            bad.append(f"{what}: {files}")
            return
        text = ask("crash", *files)
        check_lines(what, text.splitlines(), first)
        deaths = json.loads(ask("crash", "--json", *files))
        known = "not known" not in text.splitlines()[0]
        if [d["rank"] for d in deaths if d["first"]] != ([1] if known else []):
            bad.append(f"{what}: {[(d['rank'], d['first']) for d in deaths]}")
        print("\n".join([f"{what}:"] + text.splitlines()[:5]))


def with_library(names, work):
    program = compiled(names, "hanging.c", work, "-O1", "-pthread")
    for run in RUNS:
        one(names, program, *run)


with_each(with_library)
