#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools,slow timeout=300 serial excuse=MPI
"""Messages and collectives of each function of MPI, of each calling region, of each epoch, and the bytes of each
communicator are what the program counted itself (regions.c): with room for all, with buffers that give nine of ten
messages back, and in the file that SIGKILL leaves. With each installed MPI."""
import glob
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
from mpi_runs import BUILD, FDR, SOURCE, bad, compiled, environment, two_ranks, with_each  # noqa: E402

SUMS = ("sends", "bytes_sent", "receives", "bytes_received", "collectives", "collectives_sent", "collectives_received")
# buffer, rounds, the least share of messages that must be out, is rank 0 killed?
RUNS = [("16M", 400, 0, False), ("256K", 16000, 0.9, False), ("512K", 1500, 0, True)]


def ask(*arguments):
    return json.loads(subprocess.run([FDR, *arguments], check=True, capture_output=True, text=True).stdout)


def truth(text):
    """{(rank, kind, name): the seven numbers}"""
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 10 and words[1] in ("in", "caller", "comm"):
            found[int(words[0]), words[1], None if words[2] == "-" else words[2]] = tuple(map(int, words[3:]))
    return found


def check(what, files, want, out):
    said = ask("messages", "--json", *files)
    ranks = {r["rank"] for r in said["ranks"]}
    want = {k: v for k, v in want.items() if k[0] in ranks}
    regions = {(r["rank"], "caller" if r["caller"] else "in", r["name"]): tuple(r[s] for s in SUMS)
               for r in said["regions"]}
    expected = {k: v for k, v in want.items() if k[1] != "comm"}
    if regions != expected:
        bad.append(f"{what}: regions {sorted(set(regions.items()) ^ set(expected.items()), key=str)}")
    if any(said["in_no_region"].values()):
        bad.append(f"{what}: {said['in_no_region']}")
    for c in said["communicators"]:
        name = "second" if c["comm"]["name"] == "second" else "world"
        if (c["bytes_sent"], c["bytes_received"]) != want[c["rank"], "comm", name][5:]:
            bad.append(f"{what}: bytes of {c}, the program counted {want[c['rank'], 'comm', name]}")
    if len(said["communicators"]) != 2 * len(files):
        bad.append(f"{what}: communicators {said['communicators']}")
    epochs = 0
    for rank in ranks:
        mine = [e for e in said["epochs"] if e["rank"] == rank]
        if not all(e["known"] for e in mine):
            bad.append(f"{what}: epochs that are not known: {mine}")
            continue
        sums = tuple(sum(e[s] for e in mine) for s in SUMS)
        all_of = tuple(map(sum, zip(*(v for k, v in want.items() if k[0] == rank and k[1] == "in"))))
        epochs = max(epochs, len(mine))
        if mine and sums != all_of:
            bad.append(f"{what}: rank {rank}: epochs have {sums}, the program counted {all_of}")
    ledger = [r for f in files for r in ask("info", "--json", f)["ledger"] if r["class"] == "message"]
    gone = 1 - sum(r["kept"] for r in ledger) / sum(r["presented"] for r in ledger)
    if gone < out or (out and epochs < 4):
        bad.append(f"{what}: {gone:.3f} of the messages are out, {epochs} epochs: the test proves nothing")
    print(f"{what}: {len(regions)} regions, {epochs} epochs, {gone:.3f} of the messages out")


def test(names, work):
    lib = os.path.join(BUILD, "lib")
    program = compiled(names, "regions.c", work, "-I", os.path.join(SOURCE, "include"), "-L", lib,
                       f"-Wl,-rpath,{lib}", "-Wl,--no-as-needed", "-lfdr")
    for buffer, rounds, out, kill in RUNS:
        with tempfile.TemporaryDirectory() as folder:
            command = two_ranks(names, program, str(rounds), *(["kill"] if kill else []))
            done = subprocess.run(command, env=environment(folder, FDR_BUFFER=buffer), capture_output=True, text=True,
                                  timeout=200, check=False)
            files = sorted(glob.glob(f"{folder}/*.r0.*.live.fdr" if kill else f"{folder}/*.fdr"))
            what = f"{names[1]}, {buffer}"
            if (done.returncode and not kill) or len(files) != (1 if kill else 2):
                bad.append(f"{what}: status {done.returncode}, {files}: {done.stderr[-600:]}")
                continue
            check(what, files, truth(done.stdout), out)


if __name__ == "__main__":
    with_each(test)
