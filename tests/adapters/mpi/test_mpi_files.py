#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=300 excuse=MPI
"""Operations on files through MPI are recorded, with each installed MPI: files.c counts its own, by bytes and direction,
and its files have their names. A failed one has an error; offsets are there where no view changes their meaning."""
import glob
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
from mpi_runs import FDR, bad, compiled, environment, two_ranks, with_each  # noqa: E402


def run(what, command, folder):
    done = subprocess.run(command, env=environment(folder), cwd=folder, capture_output=True, text=True, timeout=120,
                          check=False)
    if done.returncode:
        bad.append(f"{what}: status {done.returncode}: {done.stdout[-300:]} {done.stderr[-600:]}")
    return sorted(line for line in done.stdout.splitlines() if line.startswith("rank"))


def operations(path):
    text = subprocess.run([FDR, "dump", "-j", "--class", "io", path], capture_output=True, text=True, check=True).stdout
    events = [(e["kind"], e["name"], e["attributes"]) for e in json.loads(text)]
    begun = sum(kind == "io_begin" for kind, _, _ in events)
    if 2 * begun != len(events):
        bad.append(f"{path}: {begun} operations began, {len(events) - begun} ended")
    return events


def counted(events):
    ends = [(a["op"], a.get("bytes", 0)) for kind, _, a in events if kind == "io_end"]
    words = []
    for op in ("open", "close", "sync", "read", "write"):
        words += [op, len([1 for o, _ in ends if o == op])]
        words += [sum(b for o, b in ends if o == op)] if op in ("read", "write") else []
    return " ".join(map(str, words))


def look(what, path, folder, line):
    events = operations(path)
    found = f"rank {line.split()[1]} {counted(events)}"
    if found != line:
        bad.append(f"{what}: recorded '{found}', the program counted '{line}'")
    here = os.path.realpath(folder)
    names = {name for _, name, _ in events}
    if names != {f"{here}/{n}" for n in ("data.dat", "shared.dat", "view.dat", "nowhere/x.dat")}:
        bad.append(f"{what}: files {names}")
    failed = [(name, a["op"]) for kind, name, a in events if kind == "io_end" and a.get("error")]
    if failed != [(f"{here}/nowhere/x.dat", "open")]:
        bad.append(f"{what}: failed: {failed}")
    offsets = [(os.path.basename(name), "offset" in a) for kind, name, a in events if kind == "io_begin"]
    if ("data.dat", True) not in offsets or ("view.dat", True) in offsets:
        bad.append(f"{what}: offsets: {offsets}")


def with_library(names, work):
    base = compiled(names, "files.c", work)
    with tempfile.TemporaryDirectory(dir=work) as folder:
        alone = run(f"{names[1]} alone", [names[1], "-n", "2", base], folder)
    with tempfile.TemporaryDirectory(dir=work) as folder:
        lines = run(names[1], two_ranks(names, base), folder)
        if lines != alone or len(lines) != 2:
            bad.append(f"{names[1]}: prints {lines}, alone {alone}")
        for rank, line in enumerate(lines):
            files = glob.glob(f"{folder}/*.r{rank}.*.fdr")
            if len(files) == 1:
                look(f"{names[1]} rank {rank}", files[0], folder, line)
            else:
                bad.append(f"{names[1]}: files of rank {rank}: {files}")


with_each(with_library)
