#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools,slow timeout=1200 serial excuse=hpcc
"""hpcc (HPC Challenge, Debian's, linked to Open MPI) computes under the preloaded libfdr-mpi what it computes alone. Two
ranks and a small problem. What depends on time is left out: rates, and updates that are made until a time is over.
Nothing is lost in the ledger, and each message is matched or was given back."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
from mpi_runs import FDR, LIBRARY, bad, environment, preload, there  # noqa: E402
from test_mpi_scalapack import recorded  # noqa: E402

LAUNCHER = "mpirun.openmpi"
# Line 3 is a name, 4 a device; hpcc ignores both. Of each kind of value there is one, behind its number.
INPUT = """HPLinpack
fdr
none
8
1
100 order of the matrix
1
80 blocks
0
1
1 rows of processes
2 columns
16.0
1
2
1
4
1
2
1
1
1
1
1
1
2
64
0
0
1
8
"""
OF_TIME = re.compile(r"time|flops|GUPs|GBs|GBytes|usec|_(Copy|Scale|Add|Triad)=|ExeUpdates", re.I)
RESULT = re.compile(r"max\(\|x-x0\|\)|\.\.\. PASSED|completed and|errors in|Solution Validates")


def run(what, command, work):
    """What it computes: the lines of results, and the summary's rows."""
    with tempfile.TemporaryDirectory(dir=work) as folder:
        with open(os.path.join(folder, "hpccinf.txt"), "w", encoding="ascii") as f:
            f.write(INPUT)
        done = subprocess.run([LAUNCHER, "-n", "2", *command], env=environment(work, FDR_BUFFER="64M", OPENBLAS_NUM_THREADS="1"),
                              cwd=folder, capture_output=True, text=True, timeout=560, check=False)
        if done.returncode or "fdr:" in done.stderr:
            bad.append(f"{what}: status {done.returncode}: {done.stdout[-200:]} {done.stderr[-400:]}")
        with open(os.path.join(folder, "hpccoutf.txt"), encoding="ascii") as f:
            lines = f.read().splitlines()
    rows = [line for line in lines if re.match(r"\w+=", line) and not OF_TIME.search(line)]
    return rows + [line for line in lines if RESULT.search(line)]


def main():
    program = shutil.which("hpcc")
    if not program or not there(LAUNCHER):
        print("skipped: no hpcc, or no Open MPI")
        return 77
    if not os.path.exists(FDR) or not os.path.exists(LIBRARY) or os.environ.get("FDR_SANITIZE"):
        print("skipped: no fdr or no libfdr-mpi, or a sanitizer")
        return 77
    with tempfile.TemporaryDirectory() as work:
        alone = run("alone", [program], work)
        loaded = run("loaded", [*preload(), program], work)
        if alone != loaded or "Success=1" not in loaded:
            bad.append(f"other results: alone {set(alone) - set(loaded)}, under libfdr-mpi {set(loaded) - set(alone)}")
        recorded("hpcc", sorted(glob.glob(f"{work}/*.fdr")), given_back=True)
        print(f"{len(alone)} results")
    print("\n".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
