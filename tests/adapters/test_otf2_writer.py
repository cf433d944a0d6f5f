#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools,slow promise=P4,P7,P9,P10 timeout=300 excuse=OTF2
# A program that writes OTF2, unchanged: with libfdr-otf2 before OTF2's library fdr records it. The archive that is
# written at the end has every event and definition of the library's own archive. If memory was short, its events are
# some of those, nested and with begin and end. Without fdr everything is as ever; after SIGKILL the events are there.
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

BUILD, SOURCE = os.environ["FDR_BUILD"], os.environ["FDR_SOURCE"]
LIBRARY, FDR = f"{BUILD}/lib/libfdr-otf2.so", f"{BUILD}/bin/fdr"
if not os.path.exists(LIBRARY):
    print("skipped: this build has no OTF2")
    sys.exit(77)
if not shutil.which("otf2-print"):
    print("skipped: no otf2-print (Debian: otf2-tools), to read what OTF2 wrote")
    sys.exit(77)
wrong = 0


def expect(what, good, *shown):
    global wrong
    print(("ok: " if good else "FAILED: ") + what, *([] if good else shown))
    wrong += not good


def compiled(work, name, *libraries):
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "otf2"], capture_output=True, text=True, check=False)
    otf2 = flags.stdout.split() or ["-lopen-trace-format2"]
    subprocess.run(["cc", "-O1", "-w", f"{SOURCE}/tests/adapters/otf2_writer.c", "-o", f"{work}/{name}", *libraries, *otf2,
                    "-lpthread", "-ldl"], check=True)
    return f"{work}/{name}"


def run(work, program, archive, *arguments, preload=True, **settings):
    env = {k: v for k, v in os.environ.items() if not k.startswith("FDR_")}
    env |= {"FDR_DIR": work, "FDR_LIVE_DIR": work, "FDR_LIVE_FORCE": "1", "FDR_BUFFER": "16M"} | settings
    if preload:
        env["LD_PRELOAD"] = LIBRARY
    return subprocess.run([program, f"{work}/{archive}", *arguments], env=env, capture_output=True, text=True, check=False)


def shown(work, archive, *options):
    done = subprocess.run(["otf2-print", *options, f"{work}/{archive}/traces.otf2"], capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if "out of order Region definition" not in line]  # 715827882, as written
    expect(f"{archive}: otf2-print {' '.join(options)}", done.returncode == 0 and not said, said[:3])
    return done.stdout.splitlines()


def whole(work, own, program, name, preload, *modes, **settings):
    for mode in modes:
        archive = f"{name}-{mode}"
        done = run(work, program, archive, mode, preload=preload, **settings)
        expect(f"{archive}: runs, and says nothing", done.returncode == 0 and not done.stderr, done.stderr)
        for option in ((), ("-G",)):
            got, want = shown(work, archive, *option), own[mode, option]
            differ = [(g, w) for g, w in zip(got, want) if g != w][:2]
            expect(f"{archive}: {len(want)} lines, equal", got == want and len(want) > 30, len(got), differ)


def blocking(line):
    """A message whose request was given back is one that blocks."""
    return re.sub(r"^MPI_I(SEND|RECV)  (.*), Request: \d+$", r"MPI_\1   \2", line)


def given_back(work, program):
    """A small buffer: events in order, each one of the library's, calls nested, no end without its begin."""
    full = run(work, program, "full", "loops", "20000", preload=False)
    done = run(work, program, "small", "loops", "20000", FDR_OTF2_ARCHIVE="1", FDR_BUFFER="256K")
    expect("small: runs", full.returncode == done.returncode == 0)
    all_, kept = shown(work, "full")[5:], shown(work, "small")[5:]
    at = iter(all_)
    some = all(any(k in (a, blocking(a)) for a in at) for k in kept)
    expect(f"small: {len(kept)} of {len(all_)} events, in order", 0 < len(kept) < len(all_) and some)
    lacks = re.search(r"lacks (\d+) events", done.stderr)
    expect("small: fdr says how many are missing", lacks and int(lacks[1]) == len(all_) - len(kept), done.stderr)
    [events] = [re.search(r"# Events: (\d+)", line) for line in shown(work, "small", "-G") if line.startswith("LOCATION ")]
    expect("small: the location counts its events", int(events[1]) == len(kept), events[1])
    stack, under_way, bad = [], collections.Counter(), 0
    for line in kept:
        kind, what = line.split()[0], re.search(r"<(\d+)>|Request: (\d+)", line)
        request = re.search(r"Request: (\d+)", line)
        if kind == "ENTER":
            stack.append(what[1])
        elif kind == "LEAVE":
            bad += not stack or stack.pop() != what[1]
        elif kind in ("MPI_ISEND", "MPI_IRECV_REQUEST"):
            under_way[request[1]] += 1
        elif request:
            bad += not under_way[request[1]]
    expect("small: nested, and each end has its begin", not bad and not stack, bad, stack)


def two_at_a_time(work, program):
    """Two archives that are open at once: each gets its own events and definitions, in the recording too."""
    run(work, program, "own-two", "two", preload=False)
    run(work, program, "two", "two", FDR_OTF2_ARCHIVE="1", FDR_FINALIZE="snapshot")
    for part in ("two", "two-second"):
        for option in ((), ("-G",)):
            got, want = shown(work, part, *option), shown(work, f"own-{part}", *option)
            differ = [(g, w) for g, w in zip(got, want) if g != w][:2]
            expect(f"{part} {option}: {len(want)} lines, equal", got == want and len(want) > 20, len(got), differ)
    [file] = [f for f in os.listdir(work) if f.endswith(".fdr")]
    tsv = subprocess.run([FDR, "dump", "--tsv", "--class", "region", f"{work}/{file}"], capture_output=True, text=True,
                         check=False).stdout
    os.unlink(f"{work}/{file}")
    calls = collections.Counter(line.split("\t")[5] for line in tsv.splitlines()[1:] if "\tenter\t" in line)
    expect("two: names of the recording", (calls["region 0"], calls["second region 0"]) == (30, 40), calls)


def locks(work, own, program):
    """An instrumenter that records locks sees those of fdr, too: these are left out, and nobody waits for ever."""
    done = run(work, program, "locks", "locks", FDR_OTF2_ARCHIVE="1")
    left_out = re.fullmatch(r"fdr: (\d+) events of OTF2 are left out: they came out of fdr's own calls, as for locks\n", done.stderr)
    expect("locks: runs, and says what is left out", done.returncode == 0 and left_out and int(left_out[1]) > 1, done.stderr)
    expect("locks: the events of the program", shown(work, "locks") == own["every", ()])


def recorded(work, program):
    """The recording itself: names that came at the end; the whole run after SIGKILL."""
    done = run(work, program, "none", "every", FDR_FINALIZE="snapshot", FDR_DIR=work)
    expect("none: no archive without FDR_OTF2_ARCHIVE", done.returncode == 0 and not os.path.exists(f"{work}/none"), done.stderr)
    [file] = [f for f in os.listdir(work) if f.endswith(".fdr")]
    dump = subprocess.run([FDR, "dump", "--tsv", f"{work}/{file}"], capture_output=True, text=True, check=False).stdout
    rows = [line.split("\t") for line in dump.splitlines()[1:]]
    names = {(r[2], r[5]) for r in rows}
    for want in (("enter", "region 0"), ("enter", "region 1"), ("enter", "deep region"), ("metric", "metric"), ("marker", "parameter"),
                 ("event", "otf2.RmaPut"), ("event", "fdr.request")):
        expect(f"recording: {want}", want in names)
    os.unlink(f"{work}/{file}")
    done = run(work, program, "killed", "killed")
    [file] = [f for f in os.listdir(work) if f.endswith(".fdr")]
    dump = subprocess.run([FDR, "dump", "--tsv", f"{work}/{file}"], capture_output=True, text=True, check=False).stdout
    killed = [line.split("\t") for line in dump.splitlines()[1:]]
    same = [[r[:5], r[6]] for r in killed] == [[r[:5], r[6].removesuffix(" unit=bytes")] for r in rows]
    expect(f"killed: {len(killed)} events, those of the whole run", done.returncode == -9 and same and len(killed) > 500)
    expect("killed: regions have their numbers", ("enter", "OTF2 region 715827882") in {(r[2], r[5]) for r in killed})


def main():
    work = tempfile.mkdtemp(prefix="fdr-otf2-writer-")
    try:
        program = compiled(work, "writer")
        own = {}
        for mode in ("every", "threads", "turns", "handed"):
            run(work, program, f"own-{mode}", mode, preload=False)
            for option in ((), ("-G",)):
                own[mode, option] = shown(work, f"own-{mode}", *option)
        whole(work, own, program, "preloaded", True, "every", "threads", "turns", "handed", FDR_OTF2_ARCHIVE="1")
        whole(work, own, program, "switched-off", True, "threads", FDR_ENABLE="0")
        linked = compiled(work, "linked", f"-L{BUILD}/lib", f"-Wl,-rpath,{BUILD}/lib", "-Wl,--no-as-needed", "-lfdr-otf2")
        whole(work, own, linked, "linked", False, "turns", FDR_OTF2_ARCHIVE="1", FDR_ARENA="anonymous")
        locks(work, own, program)
        given_back(work, program)
        two_at_a_time(work, program)
        recorded(work, program)
        done = run(work, program, "odd", "every", FDR_OTF2_ARCHIVE="yes")
        expect("a wrong setting costs one line", done.stderr == "fdr: FDR_OTF2_ARCHIVE='yes': known: 0, 1; using 0\n", done.stderr)
    finally:
        shutil.rmtree(work, True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
