#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What fdr hang costs over the recordings of a job of many ranks, and whether it is right. bench_scale makes the
recordings: 256 KiB for each rank, calls of an event stream that are shifted and perturbed from rank to rank.

    scale.py [--ranks N,N,...] [--ways N] [--rounds N] [--stream FILE.evt.zst] [--json FILE]

--ranks: jobs in which one rank computes for ever; cost against ranks. --ways: ranks of the jobs that hang in each way, a
quarter of the files missing. The files lie in memory; fdr runs on one core. FDR_BUILD: a release build. Exit code 1: a
verdict is wrong."""
import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.environ.get("FDR_SOURCE", os.path.dirname(HERE))
BUILD = os.environ.get("FDR_BUILD", os.path.join(SOURCE, "build/release"))
FDR, GENERATOR = os.path.join(BUILD, "bin/fdr"), os.path.join(BUILD, "benchmarks/bench_scale")
# how; percent of the files of others that are missing; judgement, kind, ranks behind for culprit c of n
WAYS = [("healthy", 25, "none", None, lambda c, n: []), ("slow", 25, "slow", "computing", lambda c, n: [c]),
        ("compute", 25, "hang", "computing", lambda c, n: [c]), ("pair", 25, "hang", "cycle", lambda c, n: [c, c + 1]),
        ("circle", 0, "hang", "cycle", lambda c, n: list(range(n))), ("mismatch", 25, "hang", "mismatch", lambda c, n: [c]),
        ("root", 25, "hang", "mismatch", lambda c, n: [c]), ("ended", 25, "hang", "ended", lambda c, n: [c]),
        ("dead", 25, "hang", "dead", lambda c, n: [c]), ("killed", 25, "hang", "dead", lambda c, n: [c]),
        ("missing", 0, "undecided", "absent", lambda c, n: [c])]


def memory_folder():
    return tempfile.mkdtemp(prefix="fdr-scale-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)


def generate(folder, ranks, how, culprit, missing, stream):
    words = [GENERATOR, str(ranks), folder, how, str(culprit), str(missing)] + ([stream] if stream else [])
    env = {k: v for k, v in os.environ.items() if not k.startswith(("FDR_", "SLURM_", "PMI"))}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"scale: {' '.join(words)}: status {done.returncode}: {done.stderr[-500:]}")


def one_core():
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def judge(folder):
    """The verdict, and what it cost: seconds of processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([FDR, "hang", "--json", folder], capture_output=True, text=True, check=False, preexec_fn=one_core)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1, 3):
        sys.exit(f"scale: fdr hang: status {done.returncode}: {done.stderr[-500:]}")
    cost = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(done.stdout), cost


def spread(ranges):
    return [r for low, high in ranges for r in range(low, high + 1)]


def wrong(seen, judgement, kind, behind):
    """What of the verdict is wrong; None: nothing."""
    accused = {r for h in seen["hangs"] if h["judgement"] == "hang" for r in spread(h["behind"])}
    if accused - set(behind):
        return f"accuses {sorted(accused - set(behind))[:8]}"
    if seen["judgement"] != judgement:
        return f"{seen['judgement']}, not {judgement}: {seen['sentence']}"
    first = seen["hangs"][0] if kind else None
    if kind and (first["kind"] != kind or spread(first["behind"]) != behind):
        return f"{first['kind']} of {first['behind']}, not {kind} of {behind[:8]}"
    return None


def cost_against_ranks(counts, rounds, stream):
    rows, bad = [], []
    print("| ranks | MiB of files | processor time of `fdr hang`, s | of each rank, ms |\n|---|---|---|---|")
    for ranks in counts:
        folder = memory_folder()
        try:
            generate(folder, ranks, "compute", ranks // 3, 0, stream)
            size = sum(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder)) / (1 << 20)
            looks = [judge(folder) for _ in range(rounds)]
        finally:
            shutil.rmtree(folder)
        what = wrong(looks[0][0], "hang", "computing", [ranks // 3])
        if what:
            bad.append(f"{ranks} ranks: {what}")
        cost = min(c for _, c in looks)
        rows.append({"ranks": ranks, "mib": size, "seconds": cost})
        print(f"| {ranks} | {size:.0f} | {cost:.2f} | {1e3 * cost / ranks:.2f} |", flush=True)
    return rows, bad


def each_way(ranks, stream):
    bad, culprit = [], ranks // 2
    print("\n| how | verdict |\n|---|---|")
    for how, missing, judgement, kind, behind in WAYS:
        folder = memory_folder()
        try:
            generate(folder, ranks, how, culprit, missing, stream)
            seen, _ = judge(folder)
        finally:
            shutil.rmtree(folder)
        what = wrong(seen, judgement, kind, behind(culprit, ranks))
        if what:
            bad.append(f"{how}: {what}")
        print(f"| {how} | {'WRONG: ' if what else ''}{seen['sentence'][:160]} -- {seen['judgement']} |", flush=True)
    return bad


def unpacked(stream, work):
    if not stream:
        return None
    to = os.path.join(work, "stream.evt")
    subprocess.run(["zstd", "-dqf", stream, "-o", to], check=True)
    return to


def main():
    words = argparse.ArgumentParser()
    words.add_argument("--ranks", default="64,256,1024,4096")
    words.add_argument("--ways", type=int, default=64)
    words.add_argument("--rounds", type=int, default=3)
    words.add_argument("--stream")
    words.add_argument("--json")
    a = words.parse_args()
    for path in (FDR, GENERATOR):
        if not os.access(path, os.X_OK):
            sys.exit(f"scale: no {path}")
    with tempfile.TemporaryDirectory() as work:
        stream = unpacked(a.stream, work)
        rows, bad = cost_against_ranks([int(n) for n in a.ranks.split(",")], a.rounds, stream)
        bad += each_way(a.ways, stream)
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump(rows, f)
    for line in bad:
        print(f"WRONG: {line}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
