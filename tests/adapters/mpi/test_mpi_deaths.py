#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools,slow timeout=300 promise=P7 excuse=MPI
"""P7: a rank is killed, calls MPI_Abort, ends without MPI_Finalize, or the launcher ends a job that hangs. With each
installed MPI there is one whole file of each rank; it names its rank and says how the rank ended, as far as anybody can
know; rank 0 is in the call in which it waited; all messages are matched; recovery keeps them."""
import glob
import json
import os
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
from mpi_runs import FDR, bad, compiled, environment, two_ranks, with_each  # noqa: E402

# How rank 1 ends, and what its file says: the name of the cause and its code, null if no handler saw it
SAYS = {"kill": (None, None), "abort": ("MPI_Abort", 9), "exit": ("finalize", None), "_exit": (None, None),
        "time out": ("SIGTERM", None)}


def ask(*words):
    done = subprocess.run([FDR, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        bad.append(f"fdr {' '.join(words)}: status {done.returncode}: {done.stderr[-300:]}")
    return done.stdout


def start(names, program, how, folder):
    """Runs the job. A job that hangs is ended once rank 1 has said so."""
    env = environment(folder, FDR_CRASH="exit")
    with subprocess.Popen(two_ranks(names, program, how), env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True) as job:
        if how == "time out":
            job.stdout.readline()
            job.send_signal(signal.SIGTERM)
        job.stdout.read()


def one(names, program, how):
    what = f"{names[1]}, {how}"
    with tempfile.TemporaryDirectory() as folder:
        start(names, program, how, folder)
        files = sorted(glob.glob(f"{folder}/*.fdr"), key=lambda f: f.split(".r")[-1])
        if len(files) != 2 or any(f".r{rank}." not in f for rank, f in enumerate(files)):
            bad.append(f"{what}: not one file of each rank: {files}")
            return
        for f in files:
            ask("check", "-q", f)
        infos = json.loads(ask("info", "--json", *files))
        causes = [i["cause"]["name"] if i["cause"] else i["reason"] for i in infos]
        name, code = SAYS[how]
        if causes[1] != name and not (how == "time out" and causes[1] is None):  # the launcher may kill at once
            bad.append(f"{what}: rank 1 ended by {causes[1]}")
        if code is not None and infos[1]["cause"]["code"] != code:
            bad.append(f"{what}: {infos[1]['cause']}")
        if causes[0] not in (None, "SIGTERM"):
            bad.append(f"{what}: rank 0, which its launcher ended, says {causes[0]}")
        waiting = infos[0]["locations"][0]["open"]
        if waiting not in (["MPI_Recv"], ["MPI_Barrier"]):  # the last barrier, if rank 1 was faster
            bad.append(f"{what}: rank 0 was in {waiting}")
        if [(i["rank"], i["world_size"]) for i in infos] != [(0, 2), (1, 2)]:
            bad.append(f"{what}: ranks {[i['notes'] for i in infos]}")
        whole = [os.path.join(folder, f"recovered.r{rank}.fdr") for rank in range(2)]
        for f, to in zip(files, whole):
            ask("recover", f, "-o", to)
        for paths in (files, whole):
            counts = json.loads(ask("messages", "--json", *paths))["counts"]
            if counts != {"matched": 20, "edge": 0, "given_back": 0, "ambiguous": 0, "unresolved": 0, "unmatchable": 0}:
                bad.append(f"{what}: {counts} in {paths}")
        calls = {r["name"]: r["calls"] for r in json.loads(ask("stats", "--json", *files))}
        if calls.get("MPI_Send") != 20 or calls.get("MPI_Recv") != 20 or "MPI_Finalize" in calls:
            bad.append(f"{what}: {calls}")


def with_library(names, work):
    program = compiled(names, "deaths.c", work)
    for how in SAYS:
        one(names, program, how)


with_each(with_library)
