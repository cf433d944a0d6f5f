#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The price of libfdr-mpi, on programs of Debian that know nothing of fdr: hpcc, and testers of ScaLAPACK.

Each program runs with two ranks, alone and with libfdr-mpi preloaded, by turns; every second pair begins with the
recorded run. Figures are quotients of the processor time of the whole job (user and system, of all its processes), with
a 95 % interval from the pairs. `calls x ns / run` is the number of recorded MPI calls and messages times the price of each, over the
processor time. The prices come from mpi_calls.c: a wrapped call, less the call itself, without and with messages.

    mpi.py [--pairs N] [--size N] [--json FILE]

FDR_BUILD: a release build. Skipped is what is not installed (hpcc, scalapack-mpi-test)."""
import argparse
import glob
import json
import math
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.environ.get("FDR_SOURCE", os.path.dirname(HERE))
BUILD = os.environ.get("FDR_BUILD", os.path.join(SOURCE, "build/release"))
LIBRARY, FDR = os.path.join(BUILD, "lib/libfdr-mpi.so"), os.path.join(BUILD, "bin/fdr")
OPENMPI, MPICH = ("mpicc.openmpi", "mpirun.openmpi"), ("mpicc.mpich", "mpiexec.hydra")
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


def say(text):
    print(f"mpi: {text}", file=sys.stderr)


def environment(folder):
    env = {k: v for k, v in os.environ.items() if not k.startswith("FDR_")}
    env |= {f"OMPI_{k}": "1" for k in ("ALLOW_RUN_AS_ROOT", "ALLOW_RUN_AS_ROOT_CONFIRM", "MCA_rmaps_base_oversubscribe",
                                       "MCA_mpi_yield_when_idle")}
    return env | {"FDR_LIVE_DIR": folder, "FDR_LIVE_FORCE": "1", "FDR_DIR": folder, "FDR_BUFFER": "64M"}


def job(launcher, program, folder, recorded, **more):
    """Runs a job of two ranks; returns its processor time in seconds and its output."""
    words = ["env", f"LD_PRELOAD={LIBRARY}", *program] if recorded else program
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([launcher, "-n", "2", *words], env=environment(folder) | more, cwd=folder, capture_output=True,
                          text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"mpi: {program[0]}: status {done.returncode}: {done.stderr[-400:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def calls_of(launcher, program, folder):
    """Of all ranks: MPI calls, messages (both ends), and events that found no room."""
    job(launcher, program, folder, True, FDR_FINALIZE="snapshot")
    files = glob.glob(f"{folder}/*.fdr")
    rows = json.loads(subprocess.run([FDR, "stats", "--json", "--limit", "0", *files], check=True, capture_output=True,
                                     text=True).stdout)
    infos = json.loads(subprocess.run([FDR, "info", "--json", *files], check=True, capture_output=True, text=True).stdout)
    for f in files:
        os.remove(f)
    ledger = [row for i in infos for row in i["ledger"]]
    messages = sum(row["presented"] for row in ledger if row["class"] == "message")
    return sum(r["calls"] for r in rows), messages, sum(row["lost"] for row in ledger)


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
    for what in ("direct", "wrapped", "region", "send-direct", "send-wrapped"):
        runs = [float(subprocess.run([program, what, str(calls)], env=env, check=True, capture_output=True,
                                     text=True).stdout) for _ in range(5)]
        least[what] = min(runs)
    return {"launcher": launcher, "call": least["wrapped"] - least["direct"], "region": least["region"],
            "call_net": least["wrapped"] - least["direct"] - least["region"],
            "sendrecv": least["send-wrapped"] - least["send-direct"],
            "sendrecv_net": least["send-wrapped"] - least["send-direct"] - least["region"], "all": least}


# ---- programs ----

def two_ranks(text):
    for name, values in (("P", "1 1 2 1"), ("Q", "1 2 1 2")):
        text = re.sub(rf"(?m)^[\d ]+([ \t]*values of {name}\b)", rf"{values} 1 1 1 1\1", text)
    return text


def programs(folder, size):
    hpcc = shutil.which("hpcc")
    if hpcc and shutil.which(OPENMPI[1]):
        with open(os.path.join(folder, "hpccinf.txt"), "w", encoding="ascii") as f:
            f.write(HPL.format(n=size))
        yield "hpcc", OPENMPI, [hpcc]
    else:
        say("hpcc: skipped, it or Open MPI is not installed")
    found = glob.glob("/usr/lib/*/scalapack/mpich-tests")
    if not found or not shutil.which(MPICH[1]):
        say("ScaLAPACK: skipped, scalapack-mpi-test or MPICH is not installed")
        return
    for path in glob.glob(f"{found[0]}/*.dat"):
        with open(path, encoding="latin-1") as f:
            text = two_ranks(f.read())
        with open(os.path.join(folder, os.path.basename(path)), "w", encoding="latin-1") as f:
            f.write(text)
    yield "xdlu", MPICH, [os.path.join(found[0], "xdlu")]


def measure(name, library, program, folder, pairs, ns):
    launcher = library[1]
    calls, messages, lost = calls_of(launcher, program, folder)
    price_ns = calls * ns["call"] + messages * (ns["sendrecv"] - ns["call"]) / 2
    quotients, seconds = [], []
    for i in range(pairs):
        order = (True, False) if i % 2 else (False, True)
        took = {recorded: job(launcher, program, folder, recorded)[0] for recorded in order}
        quotients.append(took[True] / took[False])
        seconds.append(took[False])
        say(f"{name}: pair {i + 1} of {pairs}: {took[False]:.2f} s alone, x {quotients[-1]:.3f}")
    middle, low, high = interval(quotients)
    alone = statistics.median(seconds)
    return {"program": name, "launcher": launcher, "cpu_s": alone, "quotient": middle, "low": low, "high": high,
            "calls": calls, "messages": messages, "lost": lost, "calls_x_ns": price_ns / 1e9 / alone, "pairs": pairs}


def report(rows, prices):
    print("| program, 2 ranks | CPU s alone | recorded / alone | 95 % interval | MPI calls | messages | lost | calls x ns / run |")
    print("|---|---|---|---|---|---|---|---|")
    for r in rows:
        print(f"| {r['program']} ({r['launcher']}) | {r['cpu_s']:.2f} | {r['quotient']:.3f} | {r['low']:.3f} .. "
              f"{r['high']:.3f} | {r['calls']:,} | {r['messages']:,} | {r['lost']} | {100 * r['calls_x_ns']:.2f} % |")
    print("\n| a wrapped call, ns | beside the call | a region | net | sendrecv with itself, beside it | net |")
    print("|---|---|---|---|---|---|")
    for p in prices.values():
        print(f"| {p['launcher']} | {p['call']:.1f} | {p['region']:.1f} | {p['call_net']:.1f} | {p['sendrecv']:.1f} | "
              f"{p['sendrecv_net']:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--size", type=int, default=1200, help="N of hpcc's linear system")
    parser.add_argument("--calls", type=int, default=1000000)
    parser.add_argument("--json")
    a = parser.parse_args()
    if not os.path.exists(LIBRARY):
        sys.exit(f"mpi: no {LIBRARY}; cmake --preset release && cmake --build --preset release")
    rows, prices = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for library in (OPENMPI, MPICH):
            if shutil.which(library[0]) and shutil.which(library[1]):
                prices[library] = price(*library, folder, a.calls)
        for name, library, program in programs(folder, a.size):
            if library not in prices:
                sys.exit(f"mpi: {library[0]} is needed")
            rows.append(measure(name, library, program, folder, a.pairs, prices[library]))
    report(rows, prices)
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump({"programs": rows, "prices": list(prices.values())}, f, indent=1)


if __name__ == "__main__":
    main()
