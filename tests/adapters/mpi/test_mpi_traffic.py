#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools,slow timeout=300 excuse=MPI
"""Every message and every collective of a program is recorded, with each installed MPI, on two ranks: number and bytes
are those that the program counted itself. Linked and preloaded, from C, with threads, and Fortran 77, 90 and 2008;
preloaded, the program prints what it prints alone. A program without MPI prints the same under the preloaded library,
and leaves nothing."""
import glob
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
from mpi_runs import BUILD, FDR, SOURCE, bad, environment, preload, there  # noqa: E402

HERE, LIB = os.path.join(SOURCE, "tests/adapters/mpi"), os.path.join(BUILD, "lib")
LINK = ["-L", LIB, f"-Wl,-rpath,{LIB}", "-lfdr-mpi", "-lfdr"]
# Debian's names where both can be installed, then the plain ones: C, Fortran, start.
LIBRARIES = [("mpicc.openmpi", "mpif90.openmpi", "mpirun.openmpi"), ("mpicc.mpich", "mpif90.mpich", "mpiexec.hydra")]
PLAIN = ("mpicc", "mpif90", "mpirun")
PROGRAMS = ["traffic.c", "neighbors.c", "traffic_threads.c", "traffic_f77.f", "traffic_f90.f90", "traffic_f08.f90"]


def run(what, command, env):
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        bad.append(f"{what}: status {done.returncode}: {done.stdout[-300:]} {done.stderr[-600:]}")
    return sorted(line for line in done.stdout.splitlines() if line.startswith("rank"))


def counted(path):
    """What the file holds, in the words of the programs."""
    text = subprocess.run([FDR, "dump", "-j", "--class", "message,collective", path], capture_output=True, text=True,
                          check=True).stdout
    sums = {kind: [0, 0] for kind in ("send", "recv", "coll_end")}
    begun = 0
    for e in json.loads(text):
        kind, a = e["kind"], e["attributes"]
        if kind == "coll_begin":
            begun += 1
            continue
        sums[kind][0] += 1
        sums[kind][1] += a["bytes"] if "bytes" in a else a["sent"] + a["received"]
    if begun != sums["coll_end"][0]:
        bad.append(f"{path}: {begun} collectives began, {sums['coll_end'][0]} ended")
    (s, sb), (r, rb), (c, cb) = sums["send"], sums["recv"], sums["coll_end"]
    return f"sent {s} {sb} received {r} {rb} collectives {c} {cb}"


def once(path):
    """The way from Fortran to C is not recorded twice."""
    text = subprocess.run([FDR, "stats", "-j", "--limit", "0", path], capture_output=True, text=True, check=True).stdout
    for row in json.loads(text):
        if row["name"] in ("MPI_Init", "MPI_Finalize", "MPI_Mprobe", "MPI_Iallreduce") and row["calls"] != 1:
            bad.append(f"{path}: {row['calls']} calls of {row['name']}")
        if not row["file"].startswith("mpi:"):
            bad.append(f"{path}: {row['name']} of {row['file']}")


def markers(path):
    text = subprocess.run([FDR, "dump", "-j", "--class", "marker", path], capture_output=True, text=True, check=True).stdout
    found = [(e["name"], e["attributes"]["value"]) for e in json.loads(text)]
    if found != [("MPI_Pcontrol", 2)]:
        bad.append(f"{path}: MPI_Pcontrol: {found}")


def partners(path, rank):
    """Peers are ranks of the world, however the communicators number them."""
    text = subprocess.run([FDR, "dump", "-j", "--class", "message", path], capture_output=True, text=True,
                          check=True).stdout
    peers = {e["attributes"]["peer"] for e in json.loads(text)}
    if peers != {rank ^ 1}:
        bad.append(f"{path}: peers of rank {rank}: {peers}")


def all_matched(what, files):
    """One sender, one receiver, each with its ordinal: all have partners, also those of partitions."""
    found = json.loads(subprocess.run([FDR, "messages", "--json", *files], check=True, capture_output=True,
                                      text=True).stdout)
    if any(c["messages"] != c["matched"] for c in found["channels"]):
        bad.append(f"{what}: not matched: {found['counts']}, {found['channels']}")


def compare(what, folder, lines):
    files = sorted(glob.glob(f"{folder}/*.fdr"))
    if "neighbors.c" in what:
        all_matched(what, files)
    if len(files) != len(lines) or not files:
        bad.append(f"{what}: {len(files)} files of {len(lines)} ranks: {files}")
        return
    for rank, line in enumerate(lines):
        path = next((f for f in files if f".r{rank}." in f), None)
        if not path:
            bad.append(f"{what}: no file of rank {rank}: {files}")
            continue
        if subprocess.run([FDR, "check", "-q", path], check=False).returncode:
            bad.append(f"{what}: {path}: check")
        found = f"rank {rank} {counted(path)}"
        partners(path, rank)
        if "traffic.c" in what:
            markers(path)
        once(path)
        if found != line:
            bad.append(f"{what}: recorded '{found}', the program counted '{line}'")


def build(compiler, source, out, link):
    command = [compiler, "-g", "-w", os.path.join(HERE, source), "-o", out, *link]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        bad.append(f"{' '.join(command)}: {done.stderr[-500:]}")
    return done.returncode == 0


def with_library(names, work):
    cc, fortran, start = names
    for source in PROGRAMS:
        compiler = cc if source.endswith(".c") else fortran
        if not there(compiler) or (compiler == fortran and not there("gfortran")):
            continue
        base = os.path.join(work, f"{source}.{start}")
        if not build(compiler, source, base, []) or not build(compiler, source, base + ".linked", LINK):
            continue
        alone = run(f"{start} {source}", [start, "-n", "2", base], environment(work))
        ways = {"linked": [base + ".linked"], "preloaded": [*preload(), base]}
        for way, program in ways.items():
            what = f"{start} {source} {way}"
            with tempfile.TemporaryDirectory(dir=work) as folder:
                lines = run(what, [start, "-n", "2", *program], environment(folder))
                if lines != alone:
                    bad.append(f"{what}: prints {lines}, alone {alone}")
                compare(what, folder, lines)


def without_mpi(work):
    with tempfile.TemporaryDirectory(dir=work) as folder:
        for command in (["ls", "-l", SOURCE], ["python3", "-c", "import threading; print(7)"]):
            alone = subprocess.run(command, capture_output=True, env=environment(folder), check=True)
            loaded = subprocess.run(command, capture_output=True, check=True,
                                    env=environment(folder, LD_PRELOAD=f"{LIB}/libfdr-mpi.so"))
            if (alone.stdout, alone.stderr) != (loaded.stdout, loaded.stderr):
                bad.append(f"{command}: differs under the preloaded library: {loaded.stderr[-300:]}")
        if os.listdir(folder):
            bad.append(f"programs without MPI left {os.listdir(folder)}")


def main():
    if os.environ.get("FDR_SANITIZE") or os.environ.get("FDR_COVERAGE", "OFF") == "ON":
        print("skipped: no sanitizers in MPI programs")
        return 77
    libraries = [names for names in LIBRARIES if there(names[0]) and there(names[2])]
    if not libraries and there(PLAIN[0]) and there(PLAIN[2]):
        libraries = [PLAIN]
    if not libraries or not os.path.exists(FDR):
        print("skipped: no MPI here, or no fdr command")
        return 77
    with tempfile.TemporaryDirectory() as work:
        without_mpi(work)
        for names in libraries:
            with_library(names, work)
    for line in bad:
        print(line)
    print(f"{len(PROGRAMS)} programs with {len(libraries)} libraries, {len(bad)} complaints")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
