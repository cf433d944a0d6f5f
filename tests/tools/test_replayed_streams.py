#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=300
# The output of fdr on streams made by this test agrees with the streams. The cases are unusual: too many regions for
# the memory, hours without an event, filtered calls, a stop of storage within open calls, and more.
import collections
import json
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile

fdr = os.environ["FDR_BUILD"] + "/bin/fdr"
if not os.path.exists(fdr):
    print("skipped: needs the fdr command")
    sys.exit(77)
work = tempfile.mkdtemp(prefix="fdr-statements-")
bad = 0
TICK, ENTER, LEAVE, SEND, END = 0, 1, 2, 3, 10
HOUR = 3600 * 10**9


def check(good, what):
    global bad
    if not good:
        print(f"failed: {what}")
        bad += 1


def run(*arguments):
    done = subprocess.run([fdr, *arguments], capture_output=True, text=True, timeout=120)
    check(done.returncode == 0, f"{arguments}: exit status {done.returncode}, {done.stderr}")
    return done.stdout


def write(name, regions, records, params=(), start=HOUR):
    """Writes a stream of records (gap, kind, value). A gap may be longer than one record can hold."""
    strings = b"\0" + b"".join(b"r%d\0" % i for i in range(regions))
    at = [1]
    for i in range(regions):
        at.append(at[-1] + len(b"r%d\0" % i))
    words = []
    for gap, kind, value in records:
        while gap >= 1 << 32:
            words.append(((1 << 32) - 1, TICK << 24))
            gap -= (1 << 32) - 1
        words.append((gap, kind << 24 | value))
    parts = [b"".join(struct.pack("<4I", at[i], 0, 0, 0) for i in range(regions)), strings, b"",
             b"".join(struct.pack("<iiIIQQ", *p) for p in params), b"".join(struct.pack("<I", w[0]) for w in words),
             b"".join(struct.pack("<I", w[1]) for w in words)]
    offsets, body = [], b""
    for part in parts:
        body += bytes(-len(body) % 8)
        offsets.append(136 + len(body))
        body += part
    head = struct.pack("<8s2IQ8I3Q2I6Q", b"FDREVT1\n", 1, 136, len(words), regions, len(params), 0, len(strings), 0, 1,
                       0, 0, start, len(words), 0, 0, 0, *offsets)
    path = os.path.join(work, name)
    with open(path, "wb") as f:
        f.write(head + body)
    return path


def replay(stream, *settings):
    out = stream + ".fdr"
    figures = json.loads(run("replay", stream, "--json", "-o", out, *settings))
    return out, figures, json.loads(run("info", "--json", out))


def points_beside_regions():
    """Points of new kinds come when regions have taken all rows. No epoch sums them, and the memory figures agree."""
    params = [(1, 10 + i % 13, 0, 0, 1000, 0) for i in range(13)]
    records, calls = [], 0
    for i in range(30000):
        records += [(900, ENTER, i * 7 % 900), (50, LEAVE, i * 7 % 900)]
        calls += 1
        if i > 12000 and i % 100 == 0:
            records.append((10, END, i // 100 % 13))
    out, figures, info = replay(write("points", 900, records, params), "--buffer", "256K")
    check(len(info["epochs"]) > 2, "there are epochs")
    check(all(e["exact"] for e in info["epochs"]), "epochs are exact")
    check(sum(e["calls"] for e in info["epochs"]) == calls,
          f"{calls} calls, epochs count {[e['calls'] for e in info['epochs']]}")
    check(sum(e["exclusive_ns"] for e in info["epochs"]) == calls * 50, "exclusive times of epochs")
    check(figures["meta_bytes"] == info["meta_bytes"], f"accounts: {figures['meta_bytes']}, {info['meta_bytes']}")
    check(info["band_edge_ns"] == [256, 4096, 262144], f"edges of bands {info['band_edge_ns']}")
    text = run("replay", out[:-4], "--buffer", "256K")
    check(f" in {figures['bins_used']} of {info['bins']} bins" in text, f"bins: {text}")
    # a kind without a row is not counted; a kind with a row is exact
    for row in json.loads(run("stats", "--by", "class", "--json", out)):
        for kind in row["kinds"] if row["class"] == "collective" else []:
            made = sum(r[1] == END and params[r[2]][1] == kind["id"] for r in records)
            check(kind["events"] == made and not kind["at_least"], f"{kind['name']}: {kind['events']} of {made}")


def one_without_room():
    """One of two threads has no row for messages. The sum is a lower bound, and is shown as one."""
    few = [(100, SEND, 0)] * 50 + [(10, ENTER, 0), (10, LEAVE, 0)]
    many = [w for i in range(3000) for w in ((20, ENTER, i), (20, LEAVE, i))]
    many += [(5, ENTER, 0)] * 140 + [(100, SEND, 0)] * 50 + [(5, LEAVE, 0)] * 140  # rows of open calls stay in memory
    paths = [write(f"two{i}", 3000, r, [(1, 0, 0, 0, 8, 0)]) for i, r in enumerate((few, many))]
    out = os.path.join(work, "two.fdr")
    run("replay", *paths, "--buffer", "768K", "-o", out)
    rows = json.loads(run("stats", "--by", "class", "--json", out))
    send = [k for r in rows if r["class"] == "message" for k in r["kinds"]][0]
    check(send["events"] == 50 and send["at_least"], f"{send['events']} of 100 messages")
    check("or more" in next(l for l in run("stats", out).splitlines() if l.endswith("]") and "message send" in l), "text, too")
    said = "50 events without duration are in no sum"
    check(said in run("stats", out) and said not in run("stats", "--location", "0", out), "how many are missing")
    locations = json.loads(run("info", "--json", out))["locations"]
    check([l["points_without_row"] for l in locations] == [0, 50], "whose they are")
    check("note    50 events without duration in no total" in run("info", out), "what fdr info says")
    check(locations[1]["rows_folded"] == sum(t["calls"] for t in json.loads(run("stats", "--json", out)) if t["name"] == "[rest]"),
          "only calls are in [rest]")
    rows = json.loads(run("stats", "--by", "class", "--json", "--location", "0", out))
    send = [k for r in rows if r["class"] == "message" for k in r["kinds"]][0]
    check(send["events"] == 50 and not send["at_least"], "all of the other thread")


def deep():
    """There are more kinds of reductions than ledger lines. Calls that are only counted have no known time of enter."""
    records = [(1 + i * 977 % 5000, k, d) for i in range(600) for k in (ENTER, LEAVE) for d in (range(60) if k == ENTER else range(59, -1, -1))]
    out, _, info = replay(write("deep", 60, records), "--buffer", "256K")
    text = run("info", "--all", out)
    check(info["reductions"][0]["step"] == "earlier" and info["reductions"][0]["steps"] == 0, "more steps than lines")
    check(info["reductions"][0]["from_ns"] == info["first_ns"] and info["reductions"][0]["to_ns"] == info["last_ns"],
          "what they gave back may lie anywhere")
    check("earlier steps" in text and ", in 0 steps" not in text, "steps that nobody counted are not 0")
    records = [w for i in range(100) for w in ((10, ENTER, 0), (10, LEAVE, 0))] + [(10, ENTER, d) for d in range(6)]
    out, figures, info = replay(write("limit", 60, records), "--depth", "4")
    at = HOUR + 2000
    check(info["locations"][0]["open_enter_ns"] == [at + 10, at + 20, at + 30, at + 40, None, None], "open calls")
    check("innermost with a time since +0.000002030 s" in run("info", out), "text, too")
    check(figures["kept_events"] == 200, f"{figures['kept_events']} kept of 200")


def deeper_than_the_stack():
    """Calls without a level on the stack are lost. All count at one depth, which `fdr info` names."""
    records = [(10, k, d % 50) for k in (ENTER, LEAVE) for d in (range(1100) if k == ENTER else range(1099, -1, -1))] * 3
    out, figures, info = replay(write("stack", 50, records), "--buffer", "8M")
    one, rows = info["locations"][0], info["ledger"]
    check((one["levels_refused"], one["levels_refused_from"]) == (3 * 64, 1037), f"{one}")
    check([(r["depth"], r["presented"], r["lost"]) for r in rows if r["lost"]] == [(1037, 3 * 64, 3 * 64)], "their row")
    check(one["presented_before"] == one["presented_after"] == 3300 == sum(r["presented"] for r in rows), "nothing moved")
    check("note    192 calls lost: no room for their level of the stack; the ledger has them at depth 1037" in run("info", out),
          "what fdr info says")


def hours():
    """The shown length of the run does not depend on the kept events. Columns with long times stay separate."""
    records = []
    for i in range(26):
        records += [(HOUR, ENTER, 0), (0, LEAVE, 0)]
        records += [(k * 977 % 5000, ENTER + k % 2, 1) for k in range(14000)]
    out, _, info = replay(write("hours", 2, records), "--buffer", "256K")
    check(info["last_ns"] - info["first_ns"] < 25 * HOUR, "the oldest calls are gone")
    check(min(r["from_ns"] for r in info["reductions"]) == 2 * HOUR, "they are missing from the first event on")
    text = run("stats", out)
    check("whole run, 25 h 00 min" in text, text.split("\n")[0])
    records = [(0, ENTER, 0), (7 * HOUR, LEAVE, 0)]
    out, _, _ = replay(write("long", 1, records))
    check(re.search(r"^ *7 h 00 min +100\.00 % +7 h 00 min +1 +7 h 00 min +7 h 00 min +7 h 00 min +7 h 00 min +r0", run("stats", out), re.M),
          "long times stand apart")
    check("119 min 59 s 100.00 %" in run("stats", replay(write("less", 1, [(0, ENTER, 0), (2 * HOUR - 1, LEAVE, 0)]))[0]),
          "the longest of times stands apart")


def from_zero():
    """Time begins at 0: the first epoch begins there, within one unit."""
    records = [(0, ENTER, 0), (0, LEAVE, 0)] + [w for _ in range(20000) for w in ((500, ENTER, 0), (300, LEAVE, 0))]
    for resolution, most in (("0", 1), ("16ns", 16)):
        _, _, info = replay(write("zero", 1, records, start=0), "--resolution", resolution, "--buffer", "256K")
        check(info["locations"][0]["start_ns"] <= most, f"began at {info['locations'][0]['start_ns']}")
        check(info["epochs"][0]["from_ns"] <= most, f"the first epoch begins at {info['epochs'][0]['from_ns']}")
    out, _, _ = replay(write("few", 1, [(0, ENTER, 0), (0, LEAVE, 0), (5, ENTER, 0), (5, LEAVE, 0)], start=0))
    for begin in ("@0", "0", "-1s"):
        check(run("dump", "--tsv", "--from=" + begin, out) == run("dump", "--tsv", out), f"from {begin} on is everything")
    check(run("dump", "--tsv", "--to=@0", out).count("\tenter\t") == 1, "up to 0 is what was at 0")


def own_time():
    """A stream's own times are no times of day, even if they lie in the machine's future."""
    for start in (1000, 10**6 * HOUR):
        out, _, _ = replay(write("own", 1, [(10, ENTER, 0), (10, LEAVE, 0)], start=start))
        text = next(l for l in run("info", out).splitlines() if l.startswith("reach "))
        check(text.endswith(f"to {start + 20} ns"), f"a time of day that nobody knows: {text}")


def nothing_there():
    """A request without a possible result gets one line as an answer."""
    stream = write("some", 1, [(10, ENTER, 0), (10, LEAVE, 0)])
    out, _, _ = replay(stream)
    done = subprocess.run([fdr, "dump", out, "--from", "5s", "--to", "1s"], capture_output=True, text=True, timeout=60)
    check(done.stderr == f"fdr: {out}: --to 1s is before --from 5s: nothing is between them\n", f"a window turned round: {done.stderr}")
    where = os.path.join(work, "none")
    done = subprocess.run([fdr, "replay", stream, "-o", where + "/x.fdr"], capture_output=True, text=True, timeout=60)
    check(done.returncode == 2 and done.stderr.count("\n") == 1 and done.stderr.startswith(f"fdr: {where}: No such file"), f"no directory: {done.stderr}")


def filtered_end():
    """The last epoch ends at the newest event, even if a filter left this event out. Its totals include the event."""
    records = [w for i in range(20000) for w in ((10, ENTER, 0), (2000 if i < 15000 else 20, LEAVE, 0))]
    _, _, info = replay(write("filter", 1, records), "--buffer", "256K", "--min-duration", "1us")
    last = info["epochs"][-1]
    check(last["to_ns"] == HOUR + sum(r[0] for r in records), f"the last epoch ends at {last['to_ns']}")


def stopped():
    """Strategy `first`: calls that were open when storage stopped are kept without their ends."""
    records = [(10, ENTER, 0), (10, ENTER, 1)] + [w for i in range(60000) for w in ((i * 977 % 5000, ENTER, i % 40), (i * 31 % 900, LEAVE, i % 40))]
    records += [(10, LEAVE, 1), (10, LEAVE, 0)]
    out, figures, info = replay(write("stop", 40, records), "--buffer", "256K", "--strategy", "first")
    kinds = collections.Counter()
    for line in run("dump", "--tsv", out).splitlines()[1:]:
        _, _, kind, _, _, _, attributes = line.split("\t")
        kinds[kind] += "repaired" not in attributes
    check(info["locations"][0]["open"] == [], "all are over by now")
    check(0 < kinds["leave"] < 60000, "storing stopped")
    check(re.search(r"stopped: the buffer was full\)\n +missing from \+[0-9.]+ s on\n", run("info", "--all", out)), "from when on")
    check(figures["kept_events"] == 2 * kinds["leave"], f"{figures['kept_events']} kept, dump shows {2 * kinds['leave']}")


def folded(path, *filters):
    """Exclusive time by call path."""
    lines = run("export", path, "--to", "folded", "-o", "-", *filters).splitlines()
    return {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in lines}


def exclusive(path, *filters):
    return {r["name"]: r["exclusive_ns"] for r in json.loads(run("stats", "--events", "--json", path, *filters))}


def times_under_filters():
    """A call's exclusive time excludes all its callees, shown or not. In a window only the time inside it counts."""
    ms = 10**6
    records = [(0, ENTER, 0)] + [w for _ in range(1000) for w in ((0, ENTER, 1), (600000, ENTER, 2), (400000, LEAVE, 2), (0, LEAVE, 1))]
    out, _, _ = replay(write("own time", 3, records + [(0, LEAVE, 0)]))
    whole = {"r0": 0, "r1": 600 * ms, "r2": 400 * ms}
    check(exclusive(out) == whole, f"own times {exclusive(out)}")
    for filters, shown in ((("--region", "r1"), ["r1"]), (("--region", "r0"), ["r0"]), (("--depth", "..2"), ["r0", "r1"]),
                           (("--depth", "2"), ["r1"]), (("--min-duration", "1ms"), ["r0", "r1"])):
        got, lines = exclusive(out, *filters), folded(out, *filters)
        check(got == {n: whole[n] for n in shown}, f"{filters}: own times {got}")
        check(sum(lines.values()) == sum(whole[n] for n in shown), f"{filters}: folded {lines}")
    window = ("--from", "-10ms")
    check(exclusive(out, *window) == {"r0": 0, "r1": 6 * ms, "r2": 4 * ms}, f"own times of a window {exclusive(out, *window)}")
    check(folded(out, *window) == {"r0;r1": 6 * ms, "r0;r1;r2": 4 * ms}, f"a window folded {folded(out, *window)}")
    window = ("--from", "100500us", "--to", "102700us")
    root = json.loads(run("tree", "--json", out, *window))[0]
    check(root["inclusive_ns"] == 2200000 and root["exclusive_ns"] == 0, f"a window's tree {root}")
    check(root["children"][0]["exclusive_ns"] == 1300000, f"cut at both ends {root}")
    # open calls, and parents made up by the reader
    records = [(0, ENTER, 0), (0, ENTER, 1), (ms, ENTER, 2), (ms, LEAVE, 2), (ms, ENTER, 2), (2 * ms, LEAVE, 2)]
    out, _, _ = replay(write("open", 3, records))
    check(folded(out, "--region", "r[01]", "--min-duration", "3ms") == {"r0;r1": 2 * ms}, "an open call is as long as it was until now")
    check(folded(out, "--region", "r2") == {"r2": 3 * ms}, "a part of a path")
    records = [w for i in range(9000) for w in ((9, ENTER, 0), (9, ENTER, 1), (9, LEAVE, 1), (9 + i % 7 * 500, LEAVE, 0))]
    out, _, _ = replay(write("made up", 2, records), "--buffer", "256K", "--pin", "100us")
    for filters in (("--region", "r1"), ("--min-duration", "9ns"), ("--depth", "..2")):
        enters = [l.split("\t")[5] for l in run("dump", "--tsv", "--class", "region", *filters, out).splitlines() if "\tenter\t" in l]
        calls = collections.Counter()
        def add(nodes):
            for n in nodes:
                calls[n["name"]] += n["calls"]
                add(n["children"])
        tree = json.loads(run("tree", "--json", *filters, out))
        add(tree)
        check(all(calls[n] == enters.count(n) for n in ("r0", "r1")), f"{filters}: {calls}")
        check(("[reduced]" in calls) == ("[reduced]" in enters), f"{filters}: made up ones around others {tree}")


def rest_of_chosen_regions():
    """If a requested region may be part of a rest row, the output says so."""
    records = [w for i in range(3000) for _ in range(20) for w in ((20, ENTER, i), (20, LEAVE, i))]
    out, _, _ = replay(write("chosen", 3000, records), "--buffer", "256K")
    rows = json.loads(run("stats", "--json", out))
    rest, exact = [r for r in rows if r["rest"]], [r["name"] for r in rows if r["name"][0] == "r" and not r["at_least"]]
    check(len(rest) == 1 and rest[0]["name"] == "[rest]" and exact, "there is a rest, and not of all")
    gone = next(f"r{i}" for i in range(3000) if f"r{i}" not in exact)
    got = json.loads(run("stats", "--json", "--region", gone, "--region", exact[0], out))
    check({r["name"]: r["calls"] for r in got} == {exact[0]: 20, "[rest]": rest[0]["calls"]}, f"{got}")
    check(re.search(r"\[rest\]  \[.*may be among them\]$", run("stats", "--region", gone, out), re.M), "text, too")
    check([r["name"] for r in json.loads(run("stats", "--json", "--region", exact[0], out))] == [exact[0]], "no rest beside what is exact")
    for region, calls, at_least in ((gone, 0, True), (exact[0], 20, False), ("r*", sum(r["calls"] for r in rows if r["name"][0] == "r"), True)):
        got = json.loads(run("stats", "--json", "--by", "location", "--region", region, out))
        check([(r["calls"], r["at_least"]) for r in got] == [(calls, at_least)], f"{region}: {got}")
    all_epochs = json.loads(run("stats", "--json", "--by", "epoch", out))
    for region in (gone, exact[0]):
        got = json.loads(run("stats", "--json", "--by", "epoch", "--region", region, out))
        check(len(got) == len(all_epochs) and any(len(e["regions"]) for e in got), "epochs")
        for chosen, whole in zip(got, all_epochs):
            row = [r for r in whole["regions"] if r["name"] == region]
            others = [r for r in whole["regions"] if r["rest"] and not (row and not row[0]["at_least"])]
            check(chosen["regions"] == row + others, f"{region} in an epoch: {chosen}")


def standard_output():
    """-o - writes at the present position of standard output, whatever kind of file it is."""
    out, _, _ = replay(write("out", 1, [(10, ENTER, 0), (10, LEAVE, 0)]))
    command = [fdr, "export", "--to", "folded", "-o", "-", out]
    where = os.path.join(work, "redirected")
    for mode in "wb", "ab":
        with open(where, mode) as f:
            f.write(b"hello\n")
            f.flush()
            subprocess.run(command, stdout=f, check=True, timeout=60)
            if mode == "wb":
                os.write(f.fileno(), b"bye\n")
    said = open(where).read()
    check(said == "hello\nr0 10\nbye\nhello\nr0 10\n", f"into what was there: {said!r}")
    ours, its = socket.socketpair()
    done = subprocess.run(command, stdout=its, stderr=subprocess.PIPE, text=True, timeout=60)
    its.close()
    check(done.returncode == 0 and ours.recv(100) == b"r0 10\n", f"into a socket: {done.stderr}")
    ours.close()


def unfinished_output():
    """An export ended by a signal leaves no file. Its unfinished file never has a name that other users can predict."""
    out, _, _ = replay(write("part", 1, [(10, ENTER, 0), (10, LEAVE, 0)] * 20000))
    where = os.path.join(work, "unfinished")
    os.mkdir(where)
    target, other = os.path.join(where, "e.json"), os.path.join(work, "other")
    with open(other, "w") as f:
        f.write("keep")
    os.symlink(other, target + ".part")
    run("export", "--to", "chrome", "-o", target, out)
    check(open(other).read() == "keep", "a link where others wrote the unfinished file")
    os.unlink(target + ".part")
    check(os.listdir(where) == ["e.json"] and os.path.getsize(target) > 10**6, f"the whole file only: {os.listdir(where)}")
    os.unlink(target)
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (400000, 400000))
    done = subprocess.run([fdr, "export", "--to", "chrome", "-o", target, out], preexec_fn=limit, timeout=60)
    check(done.returncode == -signal.SIGXFSZ and os.listdir(where) == [], f"{done.returncode}: {os.listdir(where)} is left")


def ages_and_filters():
    """Calls that are too short are timed and belong to the calls made. Calls that are too deep are only counted."""
    records = [w for i in range(30000) for w in ((9, ENTER, 0), (9, ENTER, 1), (9, LEAVE, 1), (9 + i % 2 * 900, LEAVE, 0))]
    stream = write("ages", 2, records)
    for settings, made, head, lines in (
            ((), 60000, "every call is kept", []),
            (("--min-duration", "500ns"), 60000, "every call not filtered is kept", ["of the calls made 45,000 were filtered (ledger)"]),
            (("--depth", "1"), 30000, "every call is kept", ["besides 30,000 calls that were only counted, without times"]),
            (("--depth", "1", "--min-duration", "500ns"), 30000, "every call not filtered is kept",
             ["of the calls made 15,000 were filtered (ledger)", "besides 30,000 calls that were only counted, without times"])):
        out, _, info = replay(stream, *settings, "--buffer", "4M")
        text = run("info", out)
        check(sum(e["calls"] for e in info["epochs"]) == made, f"{settings}: {[e['calls'] for e in info['epochs']]}, not {made} calls made")
        check(re.search(rf"^  {head}, of +any length  >= 256 ns", text, re.M), f"{settings}: the head of the table of ages")
        got = [l.strip() for l in text.splitlines() if l.startswith("       of the calls") or l.startswith("       besides")]
        check(got == lines, f"{settings}: {got}")
        counted = 60000 - made
        for filters, besides in ((), counted), (("--region", "r1"), counted), (("--region", "r0"), 0):
            rows = json.loads(run("stats", "--by", "epoch", "--json", *filters, out))
            check(all(r["location_untimed"] == besides and not r["untimed_at_least"] for r in rows), f"{settings}, {filters}: untimed")
            text = run("stats", "--by", "epoch", *filters, out)
            check(("only counted" in text) == (besides > 0), f"{settings}, {filters}: {text.splitlines()[1]}")


def limits():
    """--limit shows the requested number of rows, and the same rows as JSON and as text."""
    records = [w for d in range(4) for i in range(3) for w in ((5, ENTER, d * 3 + i), (100 + 10 * d + i, LEAVE, d * 3 + i))]
    records += [(5, ENTER, 12), (5, ENTER, 13), (5, LEAVE, 13), (5, LEAVE, 12), (5, SEND, 0), (5, END, 0)]
    out, _, _ = replay(write("limits", 14, records, [(1, 10, 0, 0, 8, 0)]))
    for by in ("region", "region --events", "location", "location --events", "depth", "depth --events", "class", "path"):
        what = ["stats", out, "--by", *by.split()]
        whole = json.loads(run(*what, "--json"))
        lines = [l for l in run(*what).split("\n\n")[0].splitlines()[1:] if l[0] != "#"]
        check(len(lines) == 1 + len(whole), f"{what}: {len(whole)} rows as JSON, {len(lines) - 1} as text")
        names = [str(r.get("name", r.get("class", (r.get("path") or [r.get("depth")])[-1]))) for r in whole]
        for line, name in zip(lines[1:], names):
            check(re.search(rf"\b{re.escape(name)}$", line), f"{what}: {name} is {line!r}")
        for n in 1, 2, 100:
            check(json.loads(run(*what, "--json", "--limit", str(n))) == whole[:n], f"{what}: the first {n} as JSON")
            text = run(*what, "--limit", str(n)).split("\n\n")[0].splitlines()
            rows = [l for l in text if l[0] != "#"][1:]
            check([l.split() for l in rows] == [l.split() for l in lines[1:1 + n]], f"{what}: the first {n}")
            check((f"# and {len(whole) - n} more rows: --all" in text) == (n < len(whole)), f"{what}: how many more than {n}")


try:
    limits()
    ages_and_filters()
    unfinished_output()
    standard_output()
    rest_of_chosen_regions()
    times_under_filters()
    points_beside_regions()
    one_without_room()
    deep()
    deeper_than_the_stack()
    hours()
    from_zero()
    own_time()
    nothing_there()
    filtered_end()
    stopped()
finally:
    shutil.rmtree(work)
sys.exit(1 if bad else 0)
