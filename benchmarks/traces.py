#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""fdr beside OTF2, as Wagner compared his recorder with OTF (2015, 5.2 and 5.4).

    traces.py [--rounds N] [--json FILE] [formats] [flushes]

formats: the event streams of FDR_CORPUS through fdr, OTF2, and OTF2 + zlib, where each full MiB is compressed while the
program waits. Memory an event, processor time an event, and stalls. Ways take turns; figures are quotients to OTF2 in
the same round, with median, least and most.
flushes: ranks that fill OTF2 buffers of 1 to 64 MiB at different times, and meet in a collective. Time in flushes, time
that other ranks wait for them, both of all ranks' time; and the same with fdr.

FDR_BUILD: a release build. Left out is what is not there, with a line that says so: OTF2, zlib, MPI, streams."""
import argparse
import glob
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.environ.get("FDR_SOURCE", os.path.dirname(HERE))
BUILD = os.environ.get("FDR_BUILD", os.path.join(SOURCE, "build/release"))
CORPUS = os.environ.get("FDR_CORPUS", os.path.join(SOURCE, "../shared/corpus"))
SIZES = (1, 4, 16, 64)  # MiB of a buffer


def skipped(part, why):
    print(f"{part}: skipped, {why}")


def compiled(work, name, compiler, *libraries):
    """The program, or None with what the compiler said."""
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "otf2"], capture_output=True, text=True, check=False)
    otf2 = flags.stdout.split() or ["-lopen-trace-format2"]
    done = subprocess.run([compiler, "-O2", "-D_GNU_SOURCE", f"-I{SOURCE}/include", f"{HERE}/{name}.c", "-o", f"{work}/{name}",
                           f"-L{BUILD}/lib", f"-Wl,-rpath,{BUILD}/lib", "-lfdr", *otf2, *libraries], capture_output=True,
                          text=True, check=False)
    if done.returncode:
        return None, next((line for line in done.stderr.splitlines() if "error" in line or "cannot find" in line), done.stderr[:200])
    return f"{work}/{name}", ""


def spread(values):
    if any(v != v for v in values):
        return "not known"
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


# ---- formats ----

def formats(work, rounds):
    streams = sorted(glob.glob(f"{CORPUS}/*.evt.zst"))
    if not streams or not shutil.which("zstd"):
        return skipped("formats", "no event streams in FDR_CORPUS, or no zstd")
    program, why = compiled(work, "trace_formats", os.environ.get("CC", "cc"), "-lz")
    if not program:
        return skipped("formats", f"OTF2 or zlib with headers is not installed: {why}")
    print(f"\nBytes an event, processor time an event as a multiple of OTF2's, and the longest stall; {rounds} rounds, "
          "median (least to most)\n")
    print("| stream | events | fdr B | OTF2 B | OTF2 + zlib B | fdr / OTF2 memory | fdr / OTF2 cost | OTF2 + zlib / OTF2 cost | "
          "stalls of zlib, longest |")
    print("|---|---|---|---|---|---|---|---|---|")
    all_ = {}
    for path in streams:
        name = re.sub(r"\.r(\d+)\.t(\d+)$", r" \1.\2", os.path.basename(path)[: -len(".evt.zst")])
        plain = f"{work}/stream.evt"
        subprocess.run(["zstd", "-dqf", path, "-o", plain], check=True)
        done = subprocess.run([program, plain, str(rounds)], capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"| {name} | failed: {done.stderr[:100]} |")
            continue
        all_[name] = one_stream(name, [line.split("\t") for line in done.stdout.splitlines()])
    for what, key in (("memory", "memory"), ("cost", "cost"), ("cost of OTF2 + zlib", "zlib_cost")):
        medians = [statistics.median(s[key]) for s in all_.values()]
        if medians:
            print(f"\n{what} beside OTF2, geometric mean of {len(medians)} streams: {statistics.geometric_mean(medians):.3f}")
    print("\nPublished for OTFX beside OTF: 70 % less memory, 50.3 against 51.2 % of the cost.")
    return all_


def one_stream(name, lines):
    of = {(way, int(n)): [int(v) for v in values] for way, n, *values in lines}
    rounds = sorted({n for _, n in of})
    per = {way: statistics.median(of[way, n][1] / of[way, n][0] for n in rounds) for way in ("fdr", "OTF2", "OTF2 + zlib")}
    row = {"events": of["fdr", 0][0], "bytes": per,
           "memory": [of["fdr", n][1] / of["OTF2", n][1] for n in rounds],
           "cost": [of["fdr", n][2] / of["OTF2", n][2] for n in rounds],
           "zlib_cost": [of["OTF2 + zlib", n][2] / of["OTF2", n][2] for n in rounds],
           "stalls": of["OTF2 + zlib", 0][3], "longest_ms": [of["OTF2 + zlib", n][4] / 1e6 for n in rounds]}
    print(f"| {name} | {row['events']:,} | {per['fdr']:.2f} | {per['OTF2']:.2f} | {per['OTF2 + zlib']:.2f} | {spread(row['memory'])} | "
          f"{spread(row['cost'])} | {spread(row['zlib_cost'])} | {row['stalls']}, {statistics.median(row['longest_ms']):.1f} ms |",
          flush=True)
    return row


# ---- flushes ----

def run(program, ranks, way, mib, iterations, steps, work):
    env = os.environ | {f"OMPI_{k}": "1" for k in ("ALLOW_RUN_AS_ROOT", "ALLOW_RUN_AS_ROOT_CONFIRM",
                                                   "MCA_rmaps_base_oversubscribe", "MCA_mpi_yield_when_idle")}
    folder = f"{work}/archives"
    os.makedirs(folder)
    launcher = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    done = subprocess.run([launcher, "-n", str(ranks), program, way, str(mib), str(iterations), str(steps), folder],
                          env=env, capture_output=True, text=True, check=False, timeout=600)
    shutil.rmtree(folder)
    if done.returncode:
        raise RuntimeError(done.stderr[:300])
    return [float(v) for v in done.stdout.split("\t")]


def flushes(work, rounds):
    compiler = shutil.which("mpicc.openmpi") or shutil.which("mpicc")
    if not compiler:
        return skipped("flushes", "no MPI (Debian: libopenmpi-dev, openmpi-bin)")
    program, why = compiled(work, "flush_bias", compiler)
    if not program:
        return skipped("flushes", f"OTF2 with its headers is not installed: {why}")
    iterations, steps, all_ = 500, 12000, []
    print(f"\nFlushes: {iterations} iterations, {rounds} rounds, median (least to most). Shares of the time of all ranks; fdr's own is "
          "its giving back of memory\n")
    print("| ranks | buffer | way | run / none | flushes | in flushes % | others wait for them % | wait / flush |")
    print("|---|---|---|---|---|---|---|---|")
    for ranks in (2, 4):
        rows = {}
        for _ in range(rounds):
            none = run(program, ranks, "none", 1, iterations, steps, work)
            for way in ("otf2", "fdr"):
                for mib in SIZES:
                    rows.setdefault((mib, way), []).append((none, run(program, ranks, way, mib, iterations, steps, work)))
        for (mib, way), pairs in sorted(rows.items(), key=lambda r: (r[0][0], r[0][1] == "fdr")):
            wall = [got[0] / none[0] for none, got in pairs]
            share = [100 * got[2] / (got[0] * ranks) for _, got in pairs]
            wait = [100 * got[3] / (got[0] * ranks) for _, got in pairs]
            times = [got[3] / got[2] for _, got in pairs if got[2] and way == "otf2"]
            all_.append({"ranks": ranks, "mib": mib, "way": way, "wall": wall, "flush_share": share, "wait_share": wait})
            print(f"| {ranks} | {mib} MiB | {way} | {spread(wall)} | {statistics.median(got[1] for _, got in pairs):,.0f} | "
                  f"{spread(share)} | {spread(wait) if way == 'otf2' else '-'} | {spread(times) if times else '-'} |", flush=True)
    print("\nPublished for OTF2 (Wagner 2015, 5.4): flushes cost others 64 times their own time, some 55 % of the run.")
    return all_


def main():
    parser = argparse.ArgumentParser(description="fdr beside OTF2: memory, cost, flushes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", help="all figures, into this file")
    parser.add_argument("parts", nargs="*", help="formats, flushes; default: both")
    given = parser.parse_args()
    if set(given.parts) - {"formats", "flushes"}:
        parser.error("parts: formats, flushes")
    with open("/proc/loadavg", encoding="utf-8") as f:
        load = float(f.read().split()[0])
    print(f"{os.cpu_count()} processors, load {load} at the begin" +
          (": a loaded machine, figures are preliminary" if load > 0.5 else ""))
    work, figures = tempfile.mkdtemp(prefix="fdr-traces-"), {"load": load}
    try:
        for part, function in (("formats", formats), ("flushes", flushes)):
            if not given.parts or part in given.parts:
                figures[part] = function(work, given.rounds)
    finally:
        shutil.rmtree(work, True)
    if given.json:
        with open(given.json, "w", encoding="utf-8") as f:
            json.dump(figures, f)
    return 0


if __name__ == "__main__":
    sys.exit(main())
