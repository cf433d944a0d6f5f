#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=600 serial excuse=MPI
"""One-sided communication is recorded, with each installed MPI: rma.c and rma.F90 count their own operations and bytes
by target, also of large counts and requests; what failed, or goes nowhere, is not recorded. Windows have one identity on
all ranks. The numbers of completing synchronizations have no gap. A program that makes and frees windows for ever does
not grow."""
import collections
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
from mpi_runs import FDR, LIBRARY, SOURCE, bad, compiled, environment, grows, there, two_ranks, with_each  # noqa: E402

COMPLETED, CREATED, FREED, FENCE, NO_TARGET = 8, 9, 10, 16, 2**32 - 1
ROUNDS, MORE_AT_MOST = 1000, 16384


def run(what, command, folder, **more):
    done = subprocess.run(command, env=environment(folder, **more), cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode or "fdr:" in done.stderr:
        bad.append(f"{what}: status {done.returncode}: {done.stdout[-300:]} {done.stderr[-600:]}")
    return sorted(line for line in done.stdout.splitlines() if line.startswith("rank")), done.stderr


def events(path):
    text = subprocess.run([FDR, "dump", "-j", "--class", "user", path], capture_output=True, text=True, check=True).stdout
    return [{k: int(v) for k, v in e["attributes"].items()} for e in json.loads(text) if e["name"] == "fdr.rma"]


def windows(path):
    """Of each number: identity and size."""
    what = json.loads(subprocess.run([FDR, "info", "--json", path], capture_output=True, text=True, check=True).stdout)
    return {c["id"]: c for c in what["communicators"] if c["name"].endswith("(window)")}


def counted(rank, rows):
    sums = collections.defaultdict(lambda: [0, 0, 0])
    for e in rows:
        if e["what"] == COMPLETED:
            continue
        target = -1 if e["target"] == NO_TARGET else e["target"]
        for i, more in enumerate((1, e["sent"], e["received"])):
            sums[e["what"], target][i] += more
    return sorted(f"rank {rank} what {w} target {t} times {n} sent {s} received {r}" for (w, t), (n, s, r) in sums.items())


def complete(what, rows):
    """A synchronization has the number that operations since the one before have, and requests complete once."""
    at = {}
    for e in rows:
        if e["what"] in (CREATED, FREED, COMPLETED):
            continue
        if e["completing"] != at.get(e["window"], 0):
            bad.append(f"{what}: number {e['completing']} in place of {at.get(e['window'], 0)}: {e}")
            return
        at[e["window"]] = e["completing"] + (e["what"] >= FENCE)
    posted = [e["request"] for e in rows if e["request"] and e["what"] != COMPLETED]
    done = [e["request"] for e in rows if e["what"] == COMPLETED]
    if len(set(done)) != len(done) or not set(done) <= set(posted) or not done or len(set(posted)) != len(posted):
        bad.append(f"{what}: requests {posted}, completed {done}")
    print(f"{what}: {len(rows)} events, {len(posted)} requests, {len(done)} seen complete")


def look(what, folder, lines):
    """The recordings of both ranks have what the program says."""
    named = []
    for rank in (0, 1):
        files = glob.glob(f"{folder}/*.r{rank}.*.fdr")
        if len(files) != 1:
            bad.append(f"{what}: files of rank {rank}: {files}")
            return
        rows, known = events(files[0]), windows(files[0])
        mine = [line for line in lines if line.startswith(f"rank {rank} ")]
        if counted(rank, rows) != mine or not mine:
            bad.append(f"{what}: recorded {counted(rank, rows)}, the program counted {mine}")
        if not {e["window"] for e in rows} <= set(known):
            bad.append(f"{what}: windows {sorted({e['window'] for e in rows})}, known {known}")
        complete(f"{what} rank {rank}", rows)
        named.append([(c["identity"], c["size"]) for _, c in sorted(known.items())])
    if named[0] != named[1] or len({i for i, _ in named[0]}) != len(named[0]):
        bad.append(f"{what}: identities differ: {named}")


def every_way(names, program, work, what):
    with tempfile.TemporaryDirectory(dir=work) as folder:
        lines, _ = run(what, two_ranks(names, program), folder)
        look(what, folder, lines)


def in_fortran(names, work):
    compiler = names[0].replace("mpicc", "mpif90")
    if not there(compiler):
        print(f"note: no {compiler}")
        return
    for flags, name in (([], "mpi"), (["-DF08"], "mpi_f08")):
        base = os.path.join(work, f"{compiler}-{name}")
        subprocess.run([compiler, "-w", "-fallow-argument-mismatch", *flags, os.path.join(SOURCE, "tests/adapters/mpi/rma.F90"),
                        "-o", base], check=True, cwd=work)
        every_way(names, base, work, f"{names[1]} {name}")


def grown_more(names, program, work):
    """Bytes by which a rank grows in half of the rounds, beyond the program alone; what finds no name is counted, too."""
    grown = {}
    # If ranks give way, one may get far ahead more often.
    start = [names[1], "-n", "2", "env"]
    for what, command in (("alone", [*start, program]), ("recorded", [*start, f"LD_PRELOAD={LIBRARY}", program])):
        with tempfile.TemporaryDirectory(dir=work) as folder:
            lines, said = run(f"{names[1]} windows {what}", [*command, "windows", str(ROUNDS)], folder, FDR_BUFFER="2M",
                              LD_PRELOAD=None)
            grown[what] = {int(r): int(n) for r, n in re.findall(r"grown (\d) (-?\d+)", said)}
            for path in glob.glob(f"{folder}/*.fdr"):
                rank = int(re.search(r"\.r(\d)\.", path)[1])
                mine = [line for line in lines if line.startswith(f"rank {rank} ")]
                if counted(rank, events(path)) != mine:
                    bad.append(f"{names[1]} windows: recorded {counted(rank, events(path))}, counted {mine}")
                if not 10 <= len(windows(path)) < ROUNDS:
                    bad.append(f"{names[1]} windows: {len(windows(path))} have names")
    print(f"{names[1]}: grown {grown}")
    return max(grown["recorded"].get(rank, 1 << 30) - grown["alone"].get(rank, 0) for rank in (0, 1))


def with_library(names, work):
    base = compiled(names, "rma.c", work)
    every_way(names, base, work, names[1])
    in_fortran(names, work)
    grows(names, base, work, grown_more, MORE_AT_MOST, ROUNDS // 2)


with_each(with_library)
