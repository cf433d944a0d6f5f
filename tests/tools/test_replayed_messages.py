#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools,corpus,slow timeout=300 excuse=corpus
"""Messages of recorded streams of real programs, replayed. The streams know which send belongs to which receive; fdr
replay does not read that. With room for all, fdr messages finds these pairs. With little room it finds those of which
both ends are held, and no other. Streams that begin in the middle of a run have no pair, and their messages are
unmatchable."""
import array
import itertools
import json
import os
import struct
import subprocess
import sys
import tempfile

FDR = os.path.join(os.environ["FDR_BUILD"], "bin/fdr")
CORPUS = os.environ.get("FDR_CORPUS", os.path.join(os.environ["FDR_SOURCE"], "../shared/corpus"))
SEND, RECV, ISEND, IRECV = 3, 4, 5, 8
KINDS = {SEND: "send", RECV: "recv", ISEND: "send", IRECV: "recv"}
COMMS = {0: "world"}  # these two programs use no other
ALL, FEW = ("--buffer", "16M"), ("--buffer", "96K", "--bin", "1K")
bad = []


def run(*command):
    return subprocess.run(command, check=True, capture_output=True).stdout


def streams(name):
    return [os.path.join(CORPUS, f"{name}.r{rank}.t0.evt.zst") for rank in (0, 1)]


def messages_of(rank, path):
    """The sends and the receives of a stream: (from, to, tag, communicator, number): (time, bytes)."""
    data = run("zstd", "-dcq", path)
    count, at = struct.unpack_from("<Q", data, 16)[0], struct.unpack_from("<6Q", data, 88)
    steps, words = array.array("I"), array.array("I")
    steps.frombytes(data[at[4]: at[4] + 4 * count])
    words.frombytes(data[at[5]: at[5] + 4 * count])
    found = {"send": {}, "recv": {}}
    now = itertools.accumulate(steps, initial=struct.unpack_from("<Q", data, 56)[0])
    next(now)
    for time, word in zip(now, words):
        if word >> 24 in KINDS:
            peer, tag, comm, _, size, number = struct.unpack_from("<iiIIQQ", data, at[3] + 32 * (word & 0xFFFFFF))
            kind = KINDS[word >> 24]
            ends = (rank, peer) if kind == "send" else (peer, rank)
            found[kind][(*ends, tag, comm, number)] = (time, size)
    return found


def truth(name):
    """Pairs as `found` has them."""
    ranks = [messages_of(rank, path) for rank, path in enumerate(streams(name))]
    received = ranks[0]["recv"] | ranks[1]["recv"]
    return {(*key[:3], COMMS.get(key[3]), key[4], size, time, received[key][0])
            for key, (time, size) in (ranks[0]["send"] | ranks[1]["send"]).items() if key in received}


def replayed(name, work, *settings):
    out = os.path.join(work, f"{name}.fdr")
    figures = json.loads(run(FDR, "replay", *streams(name), *settings, "--json", "-o", out))
    return out, figures


def messages(path):
    found = json.loads(run(FDR, "messages", "--pairs", "--json", path))
    pairs = [(p["from"], p["to"], p["tag"], p["comm"]["name"], p["ordinal"], p["bytes"], p["send_ns"],
              p["recv_ns"]) for p in found["pairs"]]
    if len(pairs) != found["counts"]["matched"] or len(set(pairs)) != len(pairs):
        bad.append(f"{path}: {found['counts']} for {len(pairs)} pairs, {len(set(pairs))} different")
    return set(pairs), found["counts"]


def held(path):
    """(rank, kind, time) of each message in the file."""
    rows = run(FDR, "dump", "--tsv", "--class", "message", path).decode().splitlines()[1:]
    return {(int(rank), kind, int(time)) for rank, time, kind, *_ in (row.split("\t") for row in rows)}


def compare(name, work):
    true = truth(name)
    path, figures = replayed(name, work, *ALL)
    if figures["kept_events"] != figures["events"]:
        bad.append(f"{name}: all should find room: {figures}")
    if messages(path)[0] != true:
        bad.append(f"{name}: {len(messages(path)[0] - true)} wrong, {len(true - messages(path)[0])} missing of {len(true)}")
    path, figures = replayed(name, work, *FEW)
    if figures["kept_events"] * 10 > figures["events"]:
        bad.append(f"{name}: too little was given back: {figures}")
    pairs, counts = messages(path)
    ends = held(path)
    both = {t for t in true if (t[0], "send", t[6]) in ends and (t[1], "recv", t[7]) in ends}
    if pairs != both or not 0 < 2 * len(pairs) < len(true):
        bad.append(f"{name}: {len(pairs - true)} wrong, {len(both - pairs)} of {len(both)} missing")
    if any(counts[state] for state in ("edge", "ambiguous", "unresolved", "unmatchable")):
        bad.append(f"{name}: what has no partner was given back: {counts}")
    print(f"{name}: {len(true)} pairs; of {len(ends)} messages held at last {len(pairs)} pairs")


def begins_in_mid_run(name, work):
    _, counts = messages(replayed(name, work, *ALL)[0])
    if not counts.pop("unmatchable") or any(counts.values()):
        bad.append(f"{name}: nothing can be matched: {counts}")


def main():
    if not os.path.isdir(CORPUS) or not os.path.exists(FDR):
        print(f"skipped: no fdr command, or no corpus in {CORPUS} (FDR_CORPUS says where)")
        return 77
    with tempfile.TemporaryDirectory() as work:
        compare("npb-cg", work)
        compare("npb-lu", work)
        begins_in_mid_run("npb-bt", work)
    print("\n".join(bad) if bad else "all messages are as the streams know them")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
