#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools,slow timeout=300 excuse=MPI
"""Sessions and functions with large counts (sessions.c), with each installed MPI that has MPI 4. The program prints the
same with libfdr-mpi. Without MPI_Init, too, its messages are counted, with their bytes, and match across the ranks on
communicators that came from groups of sessions; peers are ranks of the world."""
import collections
import glob
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
from mpi_runs import FDR, bad, compiled, environment, two_ranks, with_each  # noqa: E402

# What the program does: messages, their bytes, communicators with messages, and how often it goes through four of them
EXPECTED = {"sessions": (40, 4000, 8, 2), "both": (25, 3000, 5, 1)}


def run(what, command, folder):
    done = subprocess.run(command, env=environment(folder), capture_output=True, text=True, timeout=120, check=False)
    if done.returncode or "fdr:" in done.stderr:
        bad.append(f"{what}: status {done.returncode}: {done.stderr[-800:]}")
    return sorted(done.stdout.splitlines())


def of_files(what, mode, files):
    found = json.loads(subprocess.run([FDR, "messages", "--json", *files], check=True, capture_output=True,
                                      text=True).stdout)
    messages, size, comms, times = EXPECTED[mode]
    if found["counts"].pop("matched") != messages or any(found["counts"].values()):
        bad.append(f"{what}: of {messages} messages are left: {found['counts']}, {found['channels']}")
    if [r["rank"] for r in found["ranks"]] != [0, 1]:
        bad.append(f"{what}: ranks {found['ranks']}")
    seen = (sum(c["messages"] for c in found["channels"]), sum(c["bytes"] for c in found["channels"]),
            len({c["comm"]["id"] for c in found["channels"]}))
    if seen != (messages, size, comms) or None in [c["comm"]["id"] for c in found["channels"]]:
        bad.append(f"{what}: messages, bytes, communicators {seen}: {found['channels']}")
    # rank 1 of each sends tag 5; one communicator of four has the ranks of the world backwards
    first = collections.Counter((c["from"], c["to"]) for c in found["channels"] if c["tag"] == 5)
    if first != {(1, 0): 3 * times + (mode == "both"), (0, 1): times}:
        bad.append(f"{what}: peers of tag 5: {first}")
    reduced = [c for c in found["collectives"] if c["operation"] == "Allreduce"]
    if sum(c["begun"] for c in reduced) != 8 * times or sum(c["bytes_sent"] for c in reduced) != 8 * 64 * times:
        bad.append(f"{what}: {reduced}")
    for path in files:
        if subprocess.run([FDR, "check", "-q", path], check=False).returncode:
            bad.append(f"{what}: check of {path}")
        ranks = json.loads(subprocess.run([FDR, "info", "--json", path], check=True, capture_output=True,
                                          text=True).stdout)["notes"]
        if ranks.get("mpi.size") != "2" or ranks.get("mpi.rank") not in ("0", "1"):
            bad.append(f"{what}: notes {ranks}")


def with_library(names, work):
    program = compiled(names, "sessions.c", work)
    if subprocess.run([names[1], "-n", "1", program, "sessions"], env=environment(work), capture_output=True, check=False).returncode == 77:
        print(f"{names[1]}: older than MPI 4")
        return
    for mode in EXPECTED:
        with tempfile.TemporaryDirectory(dir=work) as folder:
            alone = run(f"{names[1]} {mode} alone", [names[1], "-n", "2", program, mode], folder)
            loaded = run(f"{names[1]} {mode}", two_ranks(names, program, mode), folder)
            if alone != loaded or len(alone) != 2:
                bad.append(f"{names[1]} {mode}: alone {alone}, loaded {loaded}")
            of_files(f"{names[1]} {mode}", mode, sorted(glob.glob(f"{folder}/*.fdr")))
        print(f"{names[1]} {mode}: {loaded}")


with_each(with_library)
