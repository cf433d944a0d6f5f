#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Instrumentation and sampling in one recording of an MPI program, as in figures 4 to 6 of Ilsche et al., Combining
Instrumentation and Sampling for Trace-based Application Performance Analysis, 2014, as a table.

    figure 4   time: the program alone; all functions; filtered; MPI only; MPI and call-path samples at 2.6 kSa/s
    figure 5   time: counters read at every event, or by the monitor thread every ms
    figure 6   size of the complete recordings of these

The program is mpi_solver.c on two ranks: many short functions, a halo exchange and a reduction in each step. All variants
run by turns in each round; nothing is reduced. Time is processor time of the whole job, the monitor's included.

    mpi_figures.py [--rounds N] [--steps N] [--json FILE]      FDR_BUILD: a release build"""
import os
import shutil
import statistics
import subprocess
import sys

import mpi_jobs as jobs

COUNTERS = "page-faults,context-switches,task-clock"
EDGES = {"FDR_EDGE_COUNTERS": COUNTERS, "FDR_EDGE_REGIONS": "*"}
SAMPLED = {"FDR_COUNTERS": COUNTERS}
# name, figure, is every function hooked?, is it recorded?, settings; "rules": functions shorter than a row are left out
VARIANTS = [
    ("the program alone", "4", False, False, {}),
    ("all functions and MPI", "4", True, True, {}),
    ("filtered functions and MPI", "4", True, True, {"FDR_FILTER": "rules"}),
    ("MPI only", "4", False, True, {}),
    ("MPI, samples at 2.6 kSa/s", "4", False, True, {"FDR_SAMPLE": "2.6kHz"}),
    ("MPI, samples, counters every ms", "4, 5", False, True, {"FDR_SAMPLE": "2.6kHz"} | SAMPLED),
    ("all functions, counters every ms", "5, 6", True, True, SAMPLED),
    ("all functions, counters at every event", "5, 6", True, True, EDGES),
    ("filtered, counters every ms", "5, 6", True, True, {"FDR_FILTER": "rules"} | SAMPLED),
    ("filtered, counters at every event", "5, 6", True, True, {"FDR_FILTER": "rules"} | EDGES),
    ("MPI only, counters at every event", "5, 6", False, True, EDGES),
]


def build(cc, folder):
    lib, source = os.path.join(jobs.BUILD, "lib"), os.path.join(jobs.HERE, "mpi_solver.c")
    plain, hooked = os.path.join(folder, "solver"), os.path.join(folder, "solver-hooked")
    subprocess.run([cc, "-O2", "-g", "-w", source, "-o", plain], check=True)
    subprocess.run([cc, "-O2", "-g", "-w", "-finstrument-functions", source, "-o", hooked, "-L", lib, f"-Wl,-rpath,{lib}",
                    "-lfdr-instrument", "-lfdr"], check=True)
    with open(os.path.join(folder, "rules"), "w", encoding="ascii") as f:
        f.write("exclude name conductivity\nexclude name relax_cell\n")
    return {False: plain, True: hooked}


def settings(variant, folder):
    more = dict(variant[4]) | {"FDR_BUFFER": "64M", "FDR_DISK": "1G", "FDR_ARENA": "anonymous", "FDR_STRATEGY": "whole"}
    if "FDR_FILTER" in more:
        more["FDR_FILTER"] = os.path.join(folder, "rules")
    return more


def size_of(launcher, variant, programs, words, folder):
    """Bytes stored, and events, readings and samples, of the recordings of both ranks."""
    if not variant[3]:
        return {"bytes": 0, "calls": 0, "readings": 0, "samples": 0, "reduced": 0}
    jobs.job(launcher, [programs[variant[2]], *words], folder, True, FDR_FINALIZE="snapshot", **settings(variant, folder))
    files, infos = jobs.taken(folder)
    jobs.forget(files)
    count = {c: sum(r["presented"] - r["filtered"] for i in infos for r in i["ledger"] if r["class"] == c)
             for c in ("region", "user", "sample")}
    return {"bytes": sum(i["bytes_stored"] for i in infos), "calls": count["region"], "readings": count["user"],
            "samples": count["sample"], "reduced": sum(r["reduced"] for i in infos for r in i["ledger"])}


def report(rows):
    print("| recorded | figure | CPU s | / alone | MiB | calls | readings | samples |")
    print("|---|---|---|---|---|---|---|---|")
    for r in rows:
        print(f"| {r['variant']} | {r['figure']} | {r['cpu_s']:.2f} | {r['over_plain']:.2f} ({r['least']:.2f} .. "
              f"{r['most']:.2f}) | {r['bytes'] / 1048576:.2f}{' (reduced)' if r['reduced'] else ''} | {r['calls']:,} | "
              f"{r['readings']:,} | {r['samples']:,} |")


def measure_all(a, folder):
    library = next((m for m in (jobs.MPICH, jobs.OPENMPI) if shutil.which(m[0]) and shutil.which(m[1])), None)
    if not library:
        sys.exit("mpi_figures: no MPI here")
    programs, words = build(library[0], folder), [str(a.size), str(a.steps)]
    sizes = {v[0]: size_of(library[1], v, programs, words, folder) for v in VARIANTS}
    times = {v[0]: [] for v in VARIANTS}
    for i in range(a.rounds):
        for v in VARIANTS:
            took, _ = jobs.job(library[1], [programs[v[2]], *words], folder, v[3], **settings(v, folder))
            times[v[0]].append(took)
        jobs.say(f"figures: round {i + 1} of {a.rounds}")
    return rows_of(times, sizes, a.rounds)


def rows_of(times, sizes, rounds):
    alone, rows = times[VARIANTS[0][0]], []
    for v in VARIANTS:
        over = sorted(t / p for t, p in zip(times[v[0]], alone))
        rows.append({"variant": v[0], "figure": v[1], "cpu_s": statistics.median(times[v[0]]),
                     "over_plain": statistics.median(over), "least": over[0], "most": over[-1], "rounds": rounds}
                    | sizes[v[0]])
    return rows


if __name__ == "__main__":
    jobs.run(__doc__, [("rounds", 5, "of all variants"), ("size", 100, "cells of an edge"), ("steps", 100, "of the solver")],
             measure_all, report)
