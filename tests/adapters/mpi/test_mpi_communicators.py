#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools,slow timeout=600 serial excuse=MPI
"""A program that makes and frees communicators for ever (communicators.c) neither grows nor takes the ordinals of others,
with each installed MPI: fdr's memory is the same after twice as many, names and counters find room, all messages of the
world are matched. Where a communicator is not counted, fdr hang says that it cannot know."""
import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
from mpi_runs import FDR, LIBRARY, bad, compiled, environment, grows, two_ranks, with_each  # noqa: E402

ROUNDS, BEFORE_HANG, MORE_AT_MOST, PATIENCE = 1000, 500, 8192, 200


def run(what, command, folder):
    """Bytes by which each rank grew. If ranks give way, one may get far ahead. MPICH itself then grows."""
    done = subprocess.run(command, env=environment(folder, FDR_BUFFER="1M", LD_PRELOAD=None), capture_output=True, text=True, timeout=240, check=False)
    if done.returncode or sorted(done.stdout.split("\n")) != ["", f"rank 0 world {ROUNDS}", f"rank 1 world {ROUNDS}"]:
        bad.append(f"{what}: status {done.returncode}: {done.stdout[-300:]} {done.stderr[-600:]}")
    if "fdr:" in done.stderr:
        bad.append(f"{what}: {done.stderr[:500]}")
    return {int(r): int(n) for r, n in re.findall(r"grown (\d) (-?\d+)", done.stderr)}


def info(path):
    return json.loads(subprocess.run([FDR, "info", "--json", path], check=True, capture_output=True, text=True).stdout)


def look(what, files):
    found = json.loads(subprocess.run([FDR, "messages", "--json", *files], check=True, capture_output=True,
                                      text=True).stdout)
    world = [c for c in found["channels"] if c["comm"]["id"] == "1"]
    counts = sorted((c["from"], c["to"], sum(d["messages"] for d in world if d["from"] == c["from"])) for c in world)
    if {c[:2]: c[2] for c in counts} != {(0, 1): ROUNDS, (1, 0): ROUNDS}:
        bad.append(f"{what}: messages of the world: {counts}")
    if any(c["messages"] != c["matched"] for c in world):
        bad.append(f"{what}: not all of the world are matched: {world}")
    for path in files:
        what_is = info(path)
        rows = {t["name"]: t["counters"] for t in what_is["tallies"]["rows"] if t["kind_name"] == "mpi"}
        if what_is["tallies"]["refused"] or what_is.get("lost_definitions") or "not counted" not in rows:
            bad.append(f"{what}: {path}: refused {what_is['tallies']['refused']}, rows {rows}")
        if not 32 <= len(what_is["communicators"]) <= 500:
            bad.append(f"{what}: {path}: {len(what_is['communicators'])} communicators have names")


def grown_more(names, base, work):
    """Bytes by which a rank grows beyond the program alone."""
    with tempfile.TemporaryDirectory(dir=work) as folder:
        alone = run(f"{names[1]} alone", [names[1], "-n", "2", base, str(ROUNDS)], folder)
    with tempfile.TemporaryDirectory(dir=work) as folder:
        command = [names[1], "-n", "2", "env", f"LD_PRELOAD={LIBRARY}", base, str(ROUNDS)]
        grown = run(names[1], command, folder)
        look(names[1], sorted(glob.glob(f"{folder}/*.fdr")))
    print(f"{names[1]}: grown {grown}, alone {alone}")
    return max(grown.get(rank, 1 << 30) - alone.get(rank, 0) for rank in (0, 1))


def hangs(names, base, work):
    """Nobody is accused of a communicator that is not counted."""
    with tempfile.TemporaryDirectory(dir=work) as folder:
        command = two_ranks(names, base, str(BEFORE_HANG), "hang")
        job = subprocess.Popen(command, env=environment(folder, FDR_BUFFER="1M"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               stdin=subprocess.DEVNULL)
        seen, deadline = None, time.monotonic() + PATIENCE
        while time.monotonic() < deadline and not (seen and seen["judgement"] == "undecided"):
            time.sleep(0.5)
            done = subprocess.run([FDR, "hang", "--json", "--after", "2s", folder], capture_output=True, text=True,
                                  check=False)
            seen = json.loads(done.stdout) if done.returncode in (0, 1, 3) and done.stdout else seen
            if seen and seen["judgement"] == "hang":
                bad.append(f"{names[1]} hang: accuses: {done.stdout[:1500]}")
                break
        if not seen or seen["judgement"] != "undecided":
            bad.append(f"{names[1]} hang: {json.dumps(seen)[:1500]}")
        else:
            print(f"{names[1]}: {seen['sentence']} -- {seen['why']}")
        for f in glob.glob(f"{folder}/*.live.fdr"):
            os.kill(int(re.search(r"\.(\d+)(?:\.r\d+)?\.\d+\.live\.fdr$", f)[1]), signal.SIGKILL)
        job.wait(timeout=60)


def with_library(names, work):
    base = compiled(names, "communicators.c", work)
    grows(names, base, work, grown_more, MORE_AT_MOST, ROUNDS // 2)
    hangs(names, base, work)


with_each(with_library)
