# SPDX-License-Identifier: MIT
"""What mpi.py and mpi_figures.py share: where things are, jobs of two ranks, and the frame of a benchmark."""
import argparse
import glob
import json
import os
import resource
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.environ.get("FDR_SOURCE", os.path.dirname(HERE))
BUILD = os.environ.get("FDR_BUILD", os.path.join(SOURCE, "build/release"))
LIBRARY, FDR = os.path.join(BUILD, "lib/libfdr-mpi.so"), os.path.join(BUILD, "bin/fdr")
PATIENCE = 120  # seconds of one job
OPENMPI, MPICH = ("mpicc.openmpi", "mpirun.openmpi"), ("mpicc.mpich", "mpiexec.hydra")


def say(text):
    print(f"mpi: {text}", file=sys.stderr)


def environment(folder):
    env = {k: v for k, v in os.environ.items() if not k.startswith("FDR_")}
    env |= {f"OMPI_{k}": "1" for k in ("ALLOW_RUN_AS_ROOT", "ALLOW_RUN_AS_ROOT_CONFIRM", "MCA_rmaps_base_oversubscribe")}
    if (os.cpu_count() or 1) < 2:  # else each poll would be a system call, which a program on its own processors avoids
        env["OMPI_MCA_mpi_yield_when_idle"] = "1"
    return env | {"FDR_LIVE_DIR": folder, "FDR_LIVE_FORCE": "1", "FDR_DIR": folder, "FDR_BUFFER": "64M"}


def job(launcher, program, folder, recorded, **more):
    """Runs a job of two ranks; returns its processor time in seconds and its output."""
    words = ["env", f"LD_PRELOAD={LIBRARY}", *program] if recorded else program
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([launcher, "-n", "2", *words], env=environment(folder) | more, cwd=folder, capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"mpi: {program[0]}: status {done.returncode}: {done.stderr[-400:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def taken(folder):
    """The snapshots of a job, as `fdr info` tells them, and their paths; forget(paths) removes them."""
    files = glob.glob(f"{folder}/*.fdr")
    return files, json.loads(ask("info", "--json", *files))


def ask(*arguments):
    return subprocess.run([FDR, *arguments], check=True, capture_output=True, text=True).stdout


def forget(files):
    for f in files:
        os.remove(f)


def run(doc, options, measure, report):
    """options: name, default, help. measure(arguments, folder) gives what report and the JSON file tell."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default, text in options:
        parser.add_argument(f"--{name}", type=int, default=default, help=text)
    parser.add_argument("--json")
    a = parser.parse_args()
    if not os.path.exists(LIBRARY):
        sys.exit(f"mpi: no {LIBRARY}; cmake --preset release && cmake --build --preset release")
    with tempfile.TemporaryDirectory() as folder:
        result = measure(a, folder)
    report(result)
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump(result, f, indent=1)
