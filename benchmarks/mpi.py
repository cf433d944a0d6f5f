#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The price of libfdr-mpi, on two programs of Debian that know nothing of fdr: hpcc, and ScaLAPACK's tester of the
tridiagonal reduction (xdtrd; problems of a size that fits into the memory that it takes).

Each runs with two ranks, alone, with libfdr-mpi preloaded, and with FDR_OVERHEAD=2% as well; every second round has the
opposite order.
Figures are quotients of the processor time of the whole job (user and system, of all its processes), with a 95 %
interval from the pairs. `calls x ns / run` is the number of recorded MPI calls and messages times the price of each,
over the processor time. The prices come from mpi_calls.c: a wrapped call, less the call itself, without and with messages.

hpcc polls with MPI_Testany before each update of its test MPIRandomAccess. So it is also told without the two sections
of this test: less their wall time on each rank, as both ranks poll all the time.

    mpi.py [--pairs N] [--minutes N] [--size N] [--json FILE]

The programs end after some N minutes in whole, with fewer rounds where time is short.

FDR_BUILD: a release build. A program that is not installed is skipped."""
import glob
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

from mpi_jobs import BUILD, HERE, MPICH, OPENMPI, SOURCE, LIBRARY, ask, environment, forget, job, run, say, taken

ALONE, RECORDED, BOUNDED = "alone", "recorded", "with FDR_OVERHEAD=2%"
WAYS = {ALONE: {}, RECORDED: {}, BOUNDED: {"FDR_OVERHEAD": "2%"}}
HPL = """HPLinpack benchmark input file
fdr
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
{n}          Ns
1            # of NBs
80           NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
1            Ps
2            Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
"""


TRD = """ScaLAPACK TRD computation input file
fdr
TRD.out      output file name
6            device out
L            define Lower or Upper
7            number of problems sizes
380 390 400 410 420 430 440 values of N
6            number of NB's
4 8 12 16 20 24 values of NB
1            Number of processor grids (ordered pairs of P & Q)
1            values of P
2            values of Q
10.0         threshold
"""


def calls_of(launcher, program, folder):
    """Of all ranks: MPI calls, messages (both ends), and events that found no room."""
    job(launcher, program, folder, True, FDR_FINALIZE="snapshot")
    files, infos = taken(folder)
    rows = json.loads(ask("stats", "--json", "--limit", "0", *files))
    forget(files)
    ledger = [row for i in infos for row in i["ledger"]]
    messages = sum(row["presented"] for row in ledger if row["class"] == "message")
    return sum(r["calls"] for r in rows), messages, sum(row["lost"] for row in ledger)


def polling(folder):
    """Processor seconds of hpcc's sections that poll; 0 for other programs. hpcc adds to its output file: removes it."""
    path = os.path.join(folder, "hpccoutf.txt")
    if not os.path.exists(path):
        return 0
    with open(path, encoding="ascii") as f:
        times = re.findall(r"(?m)^MPIRandomAccess(?:_LCG)?_time=(\S+)", f.read())
    os.remove(path)
    return 2 * sum(float(t) for t in times)


def interval(values):
    """Median, and the 95 % interval of the mean."""
    mean = statistics.fmean(values)
    half = 1.96 * statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.inf
    return statistics.median(values), mean - half, mean + half


# ---- the price of a call ----

def price(cc, launcher, folder, calls):
    """ns of a call, each the least of five runs."""
    program, lib = os.path.join(folder, "mpi_calls"), os.path.join(BUILD, "lib")
    subprocess.run([cc, "-O2", "-I", os.path.join(SOURCE, "include"), os.path.join(HERE, "mpi_calls.c"), "-o", program,
                    "-L", lib, f"-Wl,-rpath,{lib}", "-lfdr"], check=True)
    env = environment(folder) | {"LD_PRELOAD": LIBRARY}
    least = {}
    for what in ("direct", "wrapped", "region", "send-direct", "send-wrapped", "poll-direct", "poll-wrapped"):
        runs = [float(subprocess.run([program, what, str(calls)], env=env, check=True, capture_output=True,
                                     text=True).stdout) for _ in range(5)]
        least[what] = min(runs)
    return {"launcher": launcher, "call": least["wrapped"] - least["direct"], "region": least["region"],
            "call_net": least["wrapped"] - least["direct"] - least["region"],
            "sendrecv": least["send-wrapped"] - least["send-direct"],
            "sendrecv_net": least["send-wrapped"] - least["send-direct"] - least["region"],
            "poll": least["poll-wrapped"] - least["poll-direct"], "all": least}


# ---- programs ----

def programs(folder, size):
    hpcc = shutil.which("hpcc")
    if hpcc and shutil.which(OPENMPI[1]):
        with open(os.path.join(folder, "hpccinf.txt"), "w", encoding="ascii") as f:
            f.write(HPL.format(n=size))
        yield "hpcc", OPENMPI, [hpcc]
    else:
        say("hpcc: skipped, it or Open MPI is not installed")
    tester = glob.glob("/usr/lib/*/scalapack/mpich-tests/xdtrd")
    if tester and shutil.which(MPICH[1]):
        with open(os.path.join(folder, "TRD.dat"), "w", encoding="ascii") as f:
            f.write(TRD)
        yield "xdtrd", MPICH, tester
    else:
        say("xdtrd: skipped, scalapack-mpi-test or MPICH is not installed")


def measure(name, library, program, folder, pairs, ns, deadline):
    """At least two pairs, and no further one behind the deadline."""
    launcher = library[1]
    calls, messages, lost = calls_of(launcher, program, folder)
    price_ns = calls * ns["call"] + messages * (ns["sendrecv"] - ns["call"]) / 2
    quotients, others, bounded, seconds = [], [], [], []
    polling(folder)
    for i in range(pairs):
        if len(quotients) >= 2 and time.monotonic() > deadline:
            break
        took, rest = {}, {}
        try:
            for way in list(WAYS)[::-1 if i % 2 else 1]:
                took[way] = job(launcher, program, folder, way != ALONE, **WAYS[way])[0]
                rest[way] = took[way] - polling(folder)
        except subprocess.TimeoutExpired:
            say(f"{name}: a round is left out, the run {way} did not end")
            continue
        quotients.append(took[RECORDED] / took[ALONE])
        others.append(rest[RECORDED] / rest[ALONE])
        bounded.append(took[BOUNDED] / took[ALONE])
        seconds.append(took[ALONE])
        say(f"{name}: round {i + 1} of {pairs}: {took[ALONE]:.2f} s alone, x {quotients[-1]:.3f}, x {bounded[-1]:.3f}")
    if not quotients:
        sys.exit(f"mpi: {name}: no round of runs ended")
    middle, low, high = interval(quotients)
    alone = statistics.median(seconds)
    return {"program": name, "launcher": launcher, "cpu_s": alone, "quotient": middle, "low": low, "high": high,
            "without_polling": interval(others), "bounded": interval(bounded), "calls": calls, "messages": messages, "lost": lost,
            "calls_x_ns": price_ns / 1e9 / alone, "pairs": len(quotients)}


def report(result):
    rows, prices = result["programs"], result["prices"]
    print("| program, 2 ranks | pairs | CPU s alone | recorded / alone | 95 % interval | MPI calls | messages | lost | calls x ns / run |")
    print("|---|---|---|---|---|---|---|---|---|")
    for r in rows:
        print(f"| {r['program']} ({r['launcher']}) | {r['pairs']} | {r['cpu_s']:.2f} | {r['quotient']:.3f} | {r['low']:.3f} .. "
              f"{r['high']:.3f} | {r['calls']:,} | {r['messages']:,} | {r['lost']} | {100 * r['calls_x_ns']:.2f} % |")
    print()
    for r in rows:
        print("{} {}: {:.3f} ({:.3f} .. {:.3f})".format(r["program"], BOUNDED, *r["bounded"]))
        if r["program"] == "hpcc":
            print("hpcc without MPIRandomAccess: {:.3f} ({:.3f} .. {:.3f})".format(*r["without_polling"]))
    print("\n| a wrapped call, ns | beside the call | a region | net | sendrecv with itself, beside it | net | a poll of two |")
    print("|---|---|---|---|---|---|---|")
    for p in prices:
        print(f"| {p['launcher']} | {p['call']:.1f} | {p['region']:.1f} | {p['call_net']:.1f} | {p['sendrecv']:.1f} | "
              f"{p['sendrecv_net']:.1f} | {p['poll']:.1f} |")


def measure_all(a, folder):
    end = time.monotonic() + 60 * a.minutes
    rows, prices = [], {}
    for library in (OPENMPI, MPICH):
        if shutil.which(library[0]) and shutil.which(library[1]):
            prices[library] = price(*library, folder, a.calls)
    found = list(programs(folder, a.size))
    for i, (name, library, program) in enumerate(found):
        if library not in prices:
            sys.exit(f"mpi: {library[0]} is needed")
        share = (end - time.monotonic()) / (len(found) - i)
        rows.append(measure(name, library, program, folder, a.pairs, prices[library], time.monotonic() + share))
    return {"programs": rows, "prices": list(prices.values())}


if __name__ == "__main__":
    run(__doc__, [("pairs", 30, "of runs of each program"), ("minutes", 12, "of all programs"),
                  ("size", 2000, "N of hpcc's linear system"), ("calls", 1000000, "to measure the price of one")],
        measure_all, report)
