#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools excuse=mpi4py
"""A program whose MPI library comes with a plugin: mpi4py loads it for itself only. Under the preloaded libfdr-mpi every
message is recorded, and the program prints what it prints alone."""
import glob
import os
import subprocess
import sys
import tempfile

SOURCE, BUILD = os.environ["FDR_SOURCE"], os.environ["FDR_BUILD"]
FDR, LIBRARY = os.path.join(BUILD, "bin/fdr"), os.path.join(BUILD, "lib/libfdr-mpi.so")
PYTHON = "/usr/bin/python3" # of the distribution, as mpi4py is
PROGRAM = """
from mpi4py import MPI
c = MPI.COMM_SELF
for i in range(3):
    r = c.Irecv(bytearray(10), 0, i)
    c.Send(bytes(10), 0, i)
    r.Wait()
c.Barrier()
print("done", MPI.Get_version()[0] >= 3)
"""


def main():
    if os.environ.get("FDR_SANITIZE") or os.environ.get("FDR_COVERAGE", "OFF") == "ON":
        print("skipped: mpi4py not with sanitizers")
        return 77
    known = subprocess.run([PYTHON, "-c", "import mpi4py"], capture_output=True, check=False)
    if known.returncode or not os.path.exists(FDR):
        print("skipped: no mpi4py here, or no fdr command")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        env = {k: v for k, v in os.environ.items() if not k.startswith("FDR_")}
        env |= {"FDR_LIVE_DIR": folder, "FDR_LIVE_FORCE": "1", "FDR_DIR": folder, "FDR_BUFFER": "4M",
                "FDR_FINALIZE": "snapshot", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        alone = subprocess.run([PYTHON, "-c", PROGRAM], env=env, capture_output=True, text=True, check=False)
        left = os.listdir(folder)
        loaded = subprocess.run([PYTHON, "-c", PROGRAM], env=env | {"LD_PRELOAD": LIBRARY}, capture_output=True, text=True,
                                check=False)
        bad = [] if not left else [f"alone it left {left}"]
        if (alone.returncode, alone.stdout) != (loaded.returncode, loaded.stdout) or loaded.returncode:
            bad.append(f"alone: {alone}; preloaded: {loaded}")
        files = glob.glob(f"{folder}/*.fdr")
        text = "".join(subprocess.run([FDR, "dump", "--class", "message,collective", f], capture_output=True, text=True,
                                      check=True).stdout for f in files)
        for what, count in (("send  peer=0", 3), ("recv  peer=0", 3), ("bytes=10", 6), ("Barrier ends", 1)):
            if text.count(what) != count:
                bad.append(f"{text.count(what)} '{what}' in {files}: {text}")
    for line in bad:
        print(line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
