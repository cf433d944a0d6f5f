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

import test_mpi_messages as messages

FDR, LIBRARY = messages.FDR, messages.LIBRARY
bad = []


def environment(folder, **more):
    env = messages.environment(folder, "1M") | more
    env.pop("FDR_FINALIZE")
    return env


def words(launcher, program, how):
    return [launcher, "-n", "2", "env", f"LD_PRELOAD={LIBRARY}", program, how]


def files(folder, end=".fdr"):
    return sorted(f for f in glob.glob(f"{folder}/*.fdr") if re.search(r"\.r\d+\.\d+" + re.escape(end) + "$", f))


def until(holds, what):
    for _ in range(3000):
        if holds():
            return True
        time.sleep(0.01)
    bad.append(f"{what}: not within 30 s")
    return False


def asked(launcher, program):
    """The launcher passes SIGUSR1 on to all ranks."""
    what = f"{launcher}, SIGUSR1"
    with tempfile.TemporaryDirectory() as folder:
        with subprocess.Popen(words(launcher, program, "hang"), env=environment(folder), stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True) as job:
            job.stdout.readline()
            job.send_signal(signal.SIGUSR1)
            until(lambda: len(files(folder)) == 2, what)
            reasons = [json.loads(subprocess.run([FDR, "info", "--json", f], capture_output=True, check=False).stdout)
                       ["reason_kind"] for f in files(folder)]
            if reasons != ["signal", "signal"]:
                bad.append(f"{what}: {files(folder)} {reasons}")
            job.terminate()


def triggered(launcher, program):
    """Rank 0 waits in MPI_Recv for ever; the trigger fires in it alone, as rank 1 stands outside of MPI."""
    what = f"{launcher}, scope job"
    with tempfile.TemporaryDirectory() as folder:
        env = environment(folder, FDR_TRIGGERS="stands: region MPI_Recv stuck 300ms scope job")
        with subprocess.Popen(words(launcher, program, "hang"), env=env, stdout=subprocess.PIPE,
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


def collected(launcher, program, how, verdict):
    what = f"{launcher}, fdr run, {how}"
    with tempfile.TemporaryDirectory() as folder:
        env = environment(folder)
        for name in ("FDR_DIR", "FDR_LIVE_DIR", "FDR_LIVE_FORCE"):
            env.pop(name)
        command = [FDR, "run", "--", *words(launcher, program, how)]
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
        if not re.search(verdict, err):
            bad.append(f"{what}: no '{verdict}' in {err[-2000:]}")
        # hydra may end with 0 after SIGTERM
        if (job.returncode == 0 and how != "hang") or "rank" in out:
            bad.append(f"{what}: status {job.returncode}, output {out}")


def main():
    if not os.path.exists(FDR) or not os.path.exists(LIBRARY) or os.environ.get("FDR_SANITIZE"):
        print("skipped: no fdr or no libfdr-mpi, or a sanitizer")
        return 77
    tried = 0
    with tempfile.TemporaryDirectory() as work:
        for cc, launcher in messages.LIBRARIES:
            if not messages.there(cc) or not messages.there(launcher):
                continue
            program = os.path.join(work, cc)
            source = os.path.join(messages.SOURCE, "tests/adapters/mpi/deaths.c")
            subprocess.run([cc, "-g", "-w", "-o", program, source], check=True)
            asked(launcher, program)
            triggered(launcher, program)
            collected(launcher, program, "segv", r"died of +SIGSEGV")
            collected(launcher, program, "kill", r"rank 1\b")
            collected(launcher, program, "hang", r"rank 1\b")
            tried += 1
    if not tried:
        print("skipped: no MPI")
        return 77
    print("\n".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
