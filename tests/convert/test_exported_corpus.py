#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools,corpus,slow timeout=600 excuse=OTF2,protoc,babeltrace2,corpus
# Recorded streams of real programs, and the ranks of an MPI run, through each exporter and its consumer: OTF2's library,
# otf2-print, protoc, babeltrace2, Python's csv module, pprof. Each sees the events of fdr dump, one by one, also of
# recordings that gave events back. Of each program this is one stream, and of it the newest thousand events and more.
import glob
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../support")]
import test_otf2  # noqa: E402, I100: may start this file anew, in the Python that has OTF2
import exported as x  # noqa: E402
import test_csv  # noqa: E402
import test_ctf  # noqa: E402
import test_perfetto  # noqa: E402
import test_profiles  # noqa: E402

ENOUGH = 1000  # events


def newest(path):
    """Selects the newest ENOUGH events or more. Returns where they begin, and how many they are."""
    x.select = ()
    begin = x.dump(path)[-ENOUGH:][0]["time"]
    x.select = ("--from", f"@{begin}")
    return begin, len(x.dump(path))


def compare(name, path, begin=0):
    """begin: profiles count the time since then."""
    for consumer in (test_otf2, test_csv, test_ctf, test_perfetto):
        consumer.compare(name, path)
    rows = [{**r, "time": max(r["time"], begin)} for r in x.dump(path, "--class", "region")]
    paths = test_profiles.paths_of(rows)
    test_profiles.folded(name, path, paths)
    test_profiles.pprof(name, path, paths)


def stream(path):
    name = os.path.basename(path)[: -len(".evt.zst")]
    out = f"{x.work}/{name}.fdr"
    done = x.tool("replay", path, "--buffer", "512K", "-o", out)
    x.check(done.returncode == 0, f"{name}: replayed", done.stderr)
    begin, count = newest(out)
    x.check(count >= ENOUGH, f"{name}: {count} events to compare")
    compare(name, out, begin)
    os.unlink(out)


def ranks():
    run = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    cc = shutil.which("mpicc.openmpi") or shutil.which("mpicc")
    if not run or not cc:
        print("note: no MPI here, so no ranks of a job")
        return
    program, folder = f"{x.work}/random", f"{x.work}/ranks"
    subprocess.run([cc, "-O1", f"{x.SOURCE}/tests/adapters/mpi/random_traffic.c", "-o", program], check=True)
    os.mkdir(folder)
    env = {k: v for k, v in os.environ.items() if not k.startswith("FDR_")}
    env |= {f"OMPI_{k}": "1" for k in ("ALLOW_RUN_AS_ROOT", "ALLOW_RUN_AS_ROOT_CONFIRM", "MCA_rmaps_base_oversubscribe",
                                       "MCA_mpi_yield_when_idle")}
    env |= {"FDR_LIVE_DIR": folder, "FDR_LIVE_FORCE": "1", "FDR_DIR": folder, "FDR_BUFFER": "256K", "FDR_FINALIZE": "snapshot"}
    subprocess.run([run, "-n", "3", "env", f"LD_PRELOAD={x.BUILD}/lib/libfdr-mpi.so", program, "5", "60"], env=env,
                   check=True, capture_output=True, timeout=200)
    files = sorted(glob.glob(f"{folder}/*.fdr"))
    x.check(len(files) == 3, "three ranks", files)
    x.select = ()
    for rank, path in enumerate(files):
        compare(f"rank{rank}", path)


if __name__ == "__main__":
    ranks()
    corpus = os.environ.get("FDR_CORPUS", f"{x.SOURCE}/../shared/corpus")
    streams = {os.path.basename(path).split(".")[0]: path for path in sorted(glob.glob(f"{corpus}/*.evt.zst"))}
    for path in streams.values():
        stream(path)
    if not streams:
        print(f"skipped: no corpus in {corpus} (FDR_CORPUS says where); the ranks were compared")
        sys.exit(1 if x.bad else 77)
    x.end()
