#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools,slow timeout=300 serial excuse=MPI
"""Testers of ScaLAPACK (Debian: scalapack-mpi-test), programs that know nothing of fdr, print under the preloaded
libfdr-mpi what they print alone, but for times. Two ranks, each installed MPI. Nothing is lost in the ledger, every
message is matched, and of each communicator all members began equally many collectives."""
import collections
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
from mpi_runs import FDR, LIBRARY, bad, environment, preload, there  # noqa: E402
from test_mpi_messages import info  # noqa: E402

LIBRARIES = [("mpich-tests", "mpiexec.hydra"), ("openmpi-tests", "mpirun.openmpi")]
TESTERS = ["xsqr", "xdinv"]


def run(what, command, env, folder):
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        bad.append(f"{what}: status {done.returncode}: {done.stdout[-200:]} {done.stderr[-400:]}")
    return re.sub(r" +", " ", re.sub(r"\d+\.\d+(E[-+]\d+)?", "#", done.stdout))  # times, and residuals of any width


def recorded(what, files, given_back=False):
    """Checks the recordings of a run. given_back: messages may have been."""
    if len(files) != 2:
        bad.append(f"{what}: files {files}")
        return
    begun = collections.defaultdict(list)
    for path in files:
        if subprocess.run([FDR, "check", "-q", path], check=False).returncode:
            bad.append(f"{what}: {path}: check")
        what_is = info(path)
        for row in what_is["ledger"]:
            if row["lost"] or row["presented"] != row["kept"] + row["reduced"] + row["filtered"]:
                bad.append(f"{what}: {path}: {row}")
        if what_is["lost_unattached"] or what_is["lost_definitions"] or what_is["tallies"]["refused"]:
            bad.append(f"{what}: {path}: something found no room")
        for t in what_is["tallies"]["rows"]:
            if t["kind_name"] == "collectives":
                begun[t["name"]].append((int(t["counters"]["begun"]), int(t["counters"]["ended"])))
    both = [counts for counts in begun.values() if len(counts) == 2]
    if not both or any(a != b or a[0] != a[1] for a, b in both):
        bad.append(f"{what}: collectives {dict(begun)}")
    found = json.loads(subprocess.run([FDR, "messages", "--json", *files], capture_output=True, text=True,
                                      check=True).stdout)
    held = sum(found["counts"].values()) - given_back * found["counts"]["given_back"]
    if not found["counts"]["matched"] or held != found["counts"]["matched"]:
        bad.append(f"{what}: {found['counts']}")
    print(f"{what}: {found['counts']['matched']} messages matched")


def for_two_ranks(path, data):
    """The grids of processes of a tester's input, made for two ranks: 1 x 1, 1 x 2, 2 x 1, 1 x 2."""
    with open(path, encoding="latin-1") as f:
        text = f.read()
    for name, values in (("P", "1 1 2 1"), ("Q", "1 2 1 2")):
        text = re.sub(rf"(?m)^[\d ]+([ \t]*values of {name}\b)", rf"{values} 1 1 1 1\1", text)
    with open(os.path.join(data, os.path.basename(path)), "w", encoding="latin-1") as f:
        f.write(text)


def tester(folder, launcher, name, work):
    what = f"{launcher}, {name}"
    data = os.path.join(work, os.path.basename(folder))
    if not os.path.exists(data):
        os.mkdir(data)
        for path in glob.glob(f"{folder}/*.dat"):
            for_two_ranks(path, data)
    program = os.path.join(folder, name)
    with tempfile.TemporaryDirectory(dir=work) as out:
        env = environment(out, FDR_BUFFER="16M")
        alone = run(what, [launcher, "-n", "2", program], env, data)
        loaded = run(what, [launcher, "-n", "2", *preload(), program], env, data)
        if alone != loaded or "END OF TESTS" not in loaded:
            bad.append(f"{what}: prints something else under libfdr-mpi:\n{loaded[-1500:]}\nalone:\n{alone[-1500:]}")
        recorded(what, sorted(glob.glob(f"{out}/*.fdr")))


def main():
    if not os.path.exists(FDR) or not os.path.exists(LIBRARY) or os.environ.get("FDR_SANITIZE"):
        print("skipped: no fdr or no libfdr-mpi, or a sanitizer")
        return 77
    tried = 0
    with tempfile.TemporaryDirectory() as work:
        for folder, launcher in LIBRARIES:
            for found in glob.glob(f"/usr/lib/*/scalapack/{folder}") if there(launcher) else []:
                tried += 1
                for name in TESTERS if tried == 1 else TESTERS[:1]:
                    tester(found, launcher, name, work)
    if not tried:
        print("skipped: no scalapack-mpi-test")
        return 77
    print("\n".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
