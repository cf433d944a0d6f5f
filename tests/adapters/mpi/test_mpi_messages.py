#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools,slow timeout=300 serial excuse=MPI
"""Messages are matched across ranks whatever was given back: random traffic (random_traffic.c) whose truth is in the
sizes of its messages, with each installed MPI, 2 and 3 ranks, and threads. No pair is wrong; every pair of which both
ends are held and have a sure ordinal is found. (test_mpi_given_back.py: with buffers that keep less than a tenth.)"""
import glob
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
from mpi_runs import FDR, LIBRARIES, LIBRARY, SOURCE, bad, environment, preload, there  # noqa: E402

# ranks, buffer, seed, rounds, threads; the least share of messages that must be out
RUNS = [(2, "16M", 1, 150, 1, 0), (3, "16M", 2, 60, 1, 0), (2, "320K", 3, 4000, 1, 0.3), (2, "16M", 4, 60, 3, 0)]
UNSURE = 1 << 63


def info(path):
    return json.loads(subprocess.run([FDR, "info", "--json", path], check=True, capture_output=True, text=True).stdout)


def limits(what):
    """Envelopes in which some ordinal is not sure, because a cancel did not tell at once what it did. JSON shows such a
    counter, which is larger than its integers, as the largest of them."""
    return {t["name"]: 0 for t in what["tallies"]["rows"]
            if t["kind_name"] in ("sent", "received") and t["counters"]["hole"] == UNSURE - 1}


def held(path):
    """The ends in a file: (kind, location, time) to (bytes, peer, is the ordinal sure?)."""
    text = subprocess.run([FDR, "dump", "--tsv", "--class", "message", path], check=True, capture_output=True,
                          text=True).stdout
    what = info(path)
    limit, identity = limits(what), {"0": "1"} | {str(c["id"]): c["identity"] for c in what["communicators"]}
    ends, resolved = {}, {}
    for line in text.splitlines()[1:]:
        location, time, kind, _, _, _, attributes = line.split("\t")
        a = dict(word.split("=") for word in attributes.split())
        if kind == "resolve":
            resolved[a["token"]] = int(a["ordinal"])
            continue
        key = (kind, int(location), int(time))
        if key in ends:
            bad.append(f"{path}: two messages at {key}")
        ends[key] = a
    for key, a in ends.items():
        ordinal = resolved.get(a.get("token"), UNSURE) if a["ordinal"] == "?" else int(a["ordinal"])
        name = f"{'to' if key[0] == 'send' else 'from'} {a['peer']}, tag {a['tag']}, communicator {identity[a['comm']]}"
        ends[key] = (int(a["bytes"]), int(a["peer"]), "ambiguous" not in a and ordinal < limit.get(name, UNSURE))
    return ends


def judge(what, files, out):
    found = json.loads(subprocess.run([FDR, "messages", "--pairs", "--json", *files], check=True, capture_output=True,
                                      text=True).stdout)
    ends = {r["rank"]: held(r["file"]) for r in found["ranks"]}
    pairs, wrong = set(), 0
    for p in found["pairs"]:
        sent = ends[p["from"]].get(("send", p["send_location"], p["send_ns"]))
        got = ends[p["to"]].get(("recv", p["recv_location"], p["recv_ns"]))
        if not sent or not got or sent[0] != got[0] or sent[0] != p["bytes"] or sent[1] != p["to"]:
            wrong += 1
        pairs.add((p["from"], p["bytes"]))
    sends = {(rank, b) for rank, e in ends.items() for k, (b, _, sure) in e.items() if k[0] == "send" and sure}
    receives = {(peer, b) for e in ends.values() for k, (b, peer, sure) in e.items() if k[0] == "recv" and sure}
    missing = (sends & receives) - pairs
    counts, all_ends = found["counts"], sum(len(e) for e in ends.values())
    messages = sum(c["messages"] for c in found["channels"])
    sums = 2 * counts["matched"] + sum(n for state, n in counts.items() if state != "matched")
    if wrong or missing or sums != all_ends or (messages and 1 - all_ends / 2 / messages < out):
        bad.append(f"{what}: {len(pairs)} pairs, {wrong} wrong, {len(missing)} missing; {all_ends} ends of {messages} "
                   f"messages are held; {counts}")
    if out == 0 and (counts["unmatchable"] or counts["unresolved"] or counts["ambiguous"] > messages / 20):
        bad.append(f"{what}: {counts}")
    print(f"{what}: {messages} messages, {all_ends} ends held, {len(pairs)} pairs, {counts}")
    return messages


def run(names, base, ranks, buffer, seed, rounds, threads, out):
    what = f"{names[1]} -n {ranks}, {buffer}, {threads} threads"
    with tempfile.TemporaryDirectory() as folder:
        command = [names[1], "-n", str(ranks), *preload(), base]
        command += [str(seed), str(rounds), str(threads)]
        done = subprocess.run(command, env=environment(folder, FDR_BUFFER=buffer), capture_output=True, text=True, timeout=200,
                              check=False)
        files = sorted(glob.glob(f"{folder}/*.fdr"))
        if done.returncode or len(files) != ranks:
            bad.append(f"{what}: status {done.returncode}, files {files}: {done.stdout[-300:]} {done.stderr[-600:]}")
            return
        sent = sum(int(line.split()[3]) for line in done.stdout.splitlines() if line.startswith("rank"))
        if judge(what, files, out) != sent and not any(info(f)["tallies"]["refused"] for f in files):
            bad.append(f"{what}: the program sent {sent} messages")


def main(runs):
    if not os.path.exists(FDR) or not os.path.exists(LIBRARY) or os.environ.get("FDR_SANITIZE"):
        print("skipped: no fdr or no libfdr-mpi, or a sanitizer")
        return 77
    tried = 0
    with tempfile.TemporaryDirectory() as work:
        for names in LIBRARIES if any(there(n[0]) for n in LIBRARIES) else [("mpicc", "mpirun")]:
            if not there(names[0]) or not there(names[1]):
                continue
            base = os.path.join(work, names[0])
            subprocess.run([names[0], "-g", "-O1", "-w", "-pthread", "-o", base,
                            os.path.join(SOURCE, "tests/adapters/mpi/random_traffic.c")], check=True)
            for one in runs:
                run(names, base, *one)
            tried += 1
    if not tried:
        print("skipped: no MPI")
        return 77
    print("\n".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(RUNS))
