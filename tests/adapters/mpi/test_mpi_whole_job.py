#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=300 excuse=MPI
"""Acts on a whole job, with each installed MPI. SIGUSR1 to the launcher takes a snapshot of every rank. A trigger of one
rank with `scope job` does, too. `fdr run` of a launcher collects the files of all ranks in one folder and prints the
verdict: of a rank that died of SIGSEGV or was killed, and of a job that hung until it was ended. Nothing depends on
times: the test waits for files and lines."""
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
from mpi_runs import FDR, bad, compiled, environment, two_ranks, with_each  # noqa: E402

OWN = {"FDR_BUFFER": "1M", "FDR_FINALIZE": None}


def files(folder, end=".fdr"):
    return sorted(f for f in glob.glob(f"{folder}/*.fdr") if re.search(r"\.r\d+\.\d+" + re.escape(end) + "$", f))


def until(holds, what):
    for _ in range(3000):
        if holds():
            return True
        time.sleep(0.01)
    bad.append(f"{what}: not within 30 s")
    return False


def asked(names, program):
    """The launcher passes SIGUSR1 on to all ranks."""
    what = f"{names[1]}, SIGUSR1"
    with tempfile.TemporaryDirectory() as folder:
        with subprocess.Popen(two_ranks(names, program, "hang"), env=environment(folder, **OWN), stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True) as job:
            job.stdout.readline()
            job.send_signal(signal.SIGUSR1)
            until(lambda: len(files(folder)) == 2, what)
            reasons = [json.loads(subprocess.run([FDR, "info", "--json", f], capture_output=True, check=False).stdout)
                       ["reason_kind"] for f in files(folder)]
            if reasons != ["signal", "signal"]:
                bad.append(f"{what}: {files(folder)} {reasons}")
            job.terminate()


def triggered(names, program):
    """Rank 0 waits in MPI_Recv for ever; the trigger fires in it alone, as rank 1 stands outside of MPI."""
    what = f"{names[1]}, scope job"
    with tempfile.TemporaryDirectory() as folder:
        env = environment(folder, **OWN, FDR_TRIGGERS="stands: region MPI_Recv stuck 300ms scope job")
        with subprocess.Popen(two_ranks(names, program, "hang"), env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as job:
            said = next((line for line in job.stderr if "snapshot of the whole job" in line), "")
            if "2 of 2 ranks took a snapshot" not in said:
                bad.append(f"{what}: {said}")
            kinds = {}
            for f in files(folder):
                info = json.loads(subprocess.run([FDR, "info", "--json", f], capture_output=True, check=False).stdout)
                kinds[info["rank"]] = info["reason_kind"]
            if kinds != {0: "trigger", 1: "job"}:
                bad.append(f"{what}: {kinds}")
            job.terminate()


def collected(names, program, how, verdict):
    what = f"{names[1]}, fdr run, {how}"
    with tempfile.TemporaryDirectory() as folder:
        env = environment(folder, **OWN, FDR_DIR=None, FDR_LIVE_DIR=None, FDR_LIVE_FORCE=None)
        command = [FDR, "run", "--", *two_ranks(names, program, how)]
        with subprocess.Popen(command, env=env, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as job:
            if how == "hang":
                job.stdout.readline()
                time.sleep(1.2)  # fdr hang takes shorter waits for usual
                job.terminate()
            out, err = job.communicate()
        found = files(f"{folder}/fdr-job.{job.pid}", ".crash.fdr") + files(f"{folder}/fdr-job.{job.pid}", ".live.fdr")
        if len(found) != 2:
            bad.append(f"{what}: {found}; {err[-2000:]}")
        if how == "kill":  # the launcher killed rank 0 later, or both at once
            said = subprocess.run([FDR, "crash", *found], capture_output=True, text=True, check=False).stdout
            if not re.match(r"first +(rank 1:|not known)", said):
                bad.append(f"{what}: fdr crash: {said[:600]}")
        if not re.search(verdict, err):
            bad.append(f"{what}: no '{verdict}' in {err[-2000:]}")
        # hydra may end with 0 after SIGTERM
        if (job.returncode == 0 and how != "hang") or "rank" in out:
            bad.append(f"{what}: status {job.returncode}, output {out}")


def with_library(names, work):
    program = compiled(names, "deaths.c", work)
    asked(names, program)
    triggered(names, program)
    collected(names, program, "segv", r"first +rank 1: SIGSEGV(.|\n)*meanwhile +1 [^\n]*rank 0")
    collected(names, program, "kill", r"rank 1\b")
    collected(names, program, "hang", r"rank 1\b")


with_each(with_library)
