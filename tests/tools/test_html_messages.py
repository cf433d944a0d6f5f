#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=120
# The page of two ranks has the messages that `fdr messages` matches, with the times of both ends, and single ends with
# their reason. Ranks that do not fit into --size are lines: one location, its overview, no recording.
import base64
import gzip
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import evt_stream  # noqa: E402
from evt_stream import ENTER, LEAVE, RECV, SEND  # noqa: E402

fdr = os.environ["FDR_BUILD"] + "/bin/fdr"
if not os.path.exists(fdr):
    print("skipped: no fdr command in this build")
    sys.exit(77)
work = tempfile.mkdtemp(prefix="fdr-html-messages-")
MATCHED, EDGE = 1, 2
WORDS = ("send_file", "send_location", "recv_file", "recv_location", "from", "to", "tag", "comm", "state")


def run(*arguments):
    done = subprocess.run([fdr, *arguments], capture_output=True, text=True, cwd=work)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def recorded(rank, words, dts, messages):
    name = f"ring.r{rank}.t0"
    with open(f"{work}/{name}.evt", "wb") as f:
        f.write(evt_stream.stream(words, dts, (b"step", b"halo"), messages, rank=rank))
    run("replay", f"{name}.evt", "--buffer", "1M", "-o", f"ring.host.{rank + 10}.r{rank}.1.fdr")
    return f"ring.host.{rank + 10}.r{rank}.1.fdr"


class Page:
    def __init__(self, name):
        with open(f"{work}/{name}") as f:
            self.text = f.read()
        self.data = json.loads(self.block("data"))

    def block(self, name):
        return gzip.decompress(base64.b64decode(re.search(rf'id="{name}">([^<]*)<', self.text).group(1)))

    def embedded(self, file):
        return f'data-file="{file}"' in self.text

    def messages(self):
        block = self.block("messages")
        rows, _ = struct.unpack_from("<II", block)
        numbers = struct.unpack_from(f"<{3 * rows}d", block, 8)
        words = struct.unpack_from(f"<{9 * rows}I", block, 8 + 24 * rows)
        for i in range(rows):
            yield {k: numbers[c * rows + i] for c, k in enumerate(("sent", "received", "bytes"))} | {
                k: words[c * rows + i] for c, k in enumerate(WORDS)}


try:
    # rank 0 sends four messages; rank 1 receives three, in the same time: neither stands out
    call = [ENTER, ENTER | 1]
    first = recorded(0, call + [SEND, SEND, SEND, SEND, LEAVE | 1, LEAVE], [5, 5, 100, 100, 100, 100, 5, 5], [(1, 7, 64)])
    second = recorded(1, call + [RECV, RECV, RECV, LEAVE | 1, LEAVE], [5, 5, 133, 133, 134, 5, 5], [(0, 7, 64)])
    run("html", first, second, "-o", "both.html")
    page, pairs = Page("both.html"), json.loads(run("messages", "--json", "--pairs", first, second))["pairs"]
    rows = list(page.messages())
    assert len(pairs) == 3 and len(rows) == 4, (pairs, rows)
    matched = sorted((r for r in rows if r["state"] == MATCHED), key=lambda r: r["sent"])
    zero = matched[0]["sent"] - pairs[0]["send_ns"]
    for r, p in zip(matched, sorted(pairs, key=lambda p: p["send_ns"]), strict=True):
        # both files begin at the same moment of their own clocks
        assert r["sent"] - zero == p["send_ns"] and r["bytes"] == 64 and r["tag"] == 7, (r, p)
        assert (r["send_file"], r["recv_file"], r["from"], r["to"]) == (0, 1, 0, 1), r
        assert r["received"] - r["sent"] == p["recv_ns"] - p["send_ns"] + (matched[0]["received"] - matched[0]["sent"]) - (
            pairs[0]["recv_ns"] - pairs[0]["send_ns"]), (r, p)
    alone = next(r for r in rows if r["state"] != MATCHED)
    assert alone["state"] == EDGE and alone["received"] != alone["received"] and alone["recv_file"] == 2**32 - 1, alone
    assert page.data["comms"] == ["world"] and page.embedded(0) and page.embedded(1)
    print("messages:", len(rows), "of them matched:", len(matched))

    run("html", first, second, "--size", "1500K", "-o", "line.html")
    page = Page("line.html")
    lines = [f["line"] for f in page.data["files"]]
    assert lines == [False, True] and page.embedded(0) and not page.embedded(1), lines
    assert len(page.data["files"][1]["locations"]) == 1 and "totals" not in page.data["files"][1]
    _, locations, cells = struct.unpack_from("<dII", page.block("overview1"))
    assert (locations, cells) == (1, 512), (locations, cells)
    assert len(list(page.messages())) == 4
finally:
    shutil.rmtree(work)
