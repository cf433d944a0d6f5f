#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=120 promise=P8
# P8: the fdr command on files with damage in one chosen place, on absurd streams, and on outputs that are no regular
# files. Each case has its exit code, and one line that names the reason.
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import evt_stream  # noqa: E402

build = os.environ["FDR_BUILD"]
fdr = f"{build}/bin/fdr"
if not os.path.exists(fdr):
    print("skipped: no fdr command in this build")
    sys.exit(77)
work = tempfile.mkdtemp(prefix="fdr-odd-")
live = tempfile.mkdtemp(prefix="fdr-odd-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
bad = 0
ENTER, LEAVE = evt_stream.ENTER, evt_stream.LEAVE


def check(good, what, *more):
    global bad
    print("ok:" if good else "FAIL:", what, *(more if not good else ()))
    bad += not good


def ask(*arguments, **more):
    return subprocess.run([fdr, *arguments], capture_output=True, text=True, errors="surrogateescape", cwd=work, timeout=60, **more)


def says(done, code, *texts):
    """True if the command gave this exit code and one line with all these texts."""
    line = done.stderr.splitlines()
    return done.returncode == code and len(line) == 1 and all(text in line[0] for text in texts)


def write(name, data):
    with open(f"{work}/{name}", "wb") as f:
        f.write(data)
    return name


def read(name):
    with open(f"{work}/{name}", "rb") as f:
        return bytearray(f.read())


def evt(name, words, dts=None, names=(b"a", b"b"), **claimed):
    """Writes a stream of these words. `claimed` replaces fields of its header."""
    return write(name, evt_stream.stream(words, dts, names, **claimed))


def calls(count):
    return [ENTER, ENTER | 1, LEAVE | 1, LEAVE] * count


def recorded(name, *options, streams=1):
    for i in range(streams):
        evt(f"{name}{i}.evt", calls(100))
    done = ask("replay", *(f"{name}{i}.evt" for i in range(streams)), "--buffer", "1M", "-o", f"{name}.fdr", *options)
    check(done.returncode == 0, f"replay to {name}.fdr", done.stderr)
    return f"{name}.fdr"


def locations():
    """The id of a location may be any number: the reader must not use it as an index."""
    for ident in (0xFFFFFFFE, 0xFFFFFFFF, 1 << 30):
        image = read(recorded("ids", streams=2))
        for at in range(0, len(image) - 64, 64):
            if image[at : at + 4] != b"FDRM":
                continue
            kind, of = struct.unpack_from("<H", image, at + 4)[0], struct.unpack_from("<I", image, at + 12)[0]
            if of == 1:
                struct.pack_into("<I", image, at + 12, ident)
            if kind == 2 and struct.unpack_from("<I", image, at + 16)[0] == 1:
                struct.pack_into("<I", image, at + 16, ident)
        write("ids.fdr", image)
        for verb in ("stats", "stats --by location", "stats --by depth", "stats --by metric", "stats --region a"):
            done = ask(*verb.split(), "ids.fdr", env=os.environ | {"MALLOC_PERTURB_": "165"})
            check(says(done, 1, "match their check"), f"{verb}: a location with the id {ident}", done.returncode, done.stderr)


def totals():
    """One damaged row of totals: no wrong count is shown, and the other rows are never called complete."""
    image = read(recorded("totals", streams=2))
    slabs = [at for at in range(0, len(image) - 64, 64) if image[at : at + 4] == b"FDRM" and struct.unpack_from("<H", image, at + 4)[0] == 5]
    row = next(at for at in range(slabs[0] + 64, len(image) - 64, 64) if struct.unpack_from("<Q", image, at + 8)[0] == 100)
    image[row + 8] ^= 1 << 6  # makes 100 calls 36
    write("totals.fdr", image)
    for verb, *said in (
        ("stats", "# totals of the whole run", "# rows of totals are damaged, in 1 location:", "[rest]  [or more: rows of totals are damaged]"),
        ("stats --by location", "# rows of totals are damaged, in 1 location:", "[or more: rows of totals are damaged]"),
        ("info", "1 location with damaged totals"),
        ("info --json", '"totals_lost": 1'),
        ("check", "1 locations have damaged totals"),
    ):
        done = ask(*verb.split(), "totals.fdr")
        good = done.returncode == 1 and all(text in done.stdout for text in said) and "exact totals" not in done.stdout
        check(good, f"{verb}: a lost row of totals", done.returncode, done.stdout)
    told = json.loads(ask("info", "--json", "totals.fdr").stdout)
    check(sorted(location["totals_lost"] for location in told["locations"]) == [False, True], "of which location", told)
    done = ask("stats", "--json", "totals.fdr")
    check("1 locations have damaged totals" in done.stderr, "stats --json: a lost row of totals", done.stderr)
    counts = sorted(line["calls"] for line in json.loads(done.stdout) if line["name"] in ("a", "b"))
    check(counts == [100, 200], "no wrong count is shown", done.stdout)


def outputs():
    """An output that is no regular file, or a link to one, is left unchanged."""
    file, stream = recorded("whole"), evt("whole.evt", calls(10))
    write("target", b"here before")
    for name, to in (("to-file", "target"), ("to-nothing", "nowhere"), ("to-output", "/proc/self/fd/1"), ("to-null", "/dev/null")):
        os.symlink(to, f"{work}/{name}")
        for verb in (["recover", file], ["replay", stream]):
            done = ask(*verb, "-o", name)
            stays = os.path.islink(f"{work}/{name}") and os.readlink(f"{work}/{name}") == to and not os.path.exists(f"{work}/nowhere")
            check(says(done, 2, name, "a symbolic link; nothing is written to it") and stays, f"{verb[0]} to a link {name}", done.stderr, stays)
    check(read("target") == b"here before", "what a link leads to stays")
    for verb, name in ((["recover"], file), (["replay"], stream), (["export", "--to", "folded"], file)):
        done = ask(*verb, name, "-o", f"./{name}")
        check(says(done, 64, name, "input and output are the same file"), f"{verb[0]} to what is read is wrong usage", done.returncode, done.stderr)


def quotas():
    """--keep and --disk apply to the requested output only, not to the look at the first reduction."""
    steps = random.Random(1)
    evt("long.evt", calls(100000), [steps.randrange(1, 1 << 28) for _ in range(400000)])
    for options in ("--keep 1", "--disk 1100K", f"--keep 1 --arena mapped --live-dir {live}"):
        done = ask("replay", "long.evt", "--buffer", "1M", *options.split(), "--json", "-o", "long.fdr")
        told = json.loads(done.stdout or "{}")
        good = done.returncode == 0 and not done.stderr and told["reductions"] > 0 and 0 < told["memory_balance_first"] <= 1
        check(good, f"replay {options}", done.returncode, done.stderr, told)


def empty_names():
    """A region may have an empty name. It stays a name of its own."""
    evt("empty.evt", calls(1), names=(b"", b"b"))
    for source, out in (("empty.evt", "empty.fdr"), ("empty.fdr", "again.fdr")):
        done = ask("replay", source, "--buffer", "1M", "-o", out)
        told = [line.split("\t")[5] for line in ask("dump", "--tsv", out).stdout.splitlines()[1:]]
        check(done.returncode == 0 and told == ["", "b", "b", ""], f"replay of {source}: an empty name stays", told)


def paths():
    """Control characters in a file's name do not reach the terminal, from any verb."""
    odd = "x\033[31m\u202ey"
    os.rename(f"{work}/{recorded('plain')}", f"{work}/{odd}.fdr")
    evt(f"{odd}.evt", calls(10))
    for done in (
        ask("recover", f"{odd}.fdr", "-o", f"{odd}2.fdr"),
        ask("replay", f"{odd}.evt", "--buffer", "1M", "-o", f"{odd}3.fdr"),
        ask("recover", "--json", f"{odd}.fdr", "-o", f"{odd}4.fdr"),
    ):
        text = done.stdout + done.stderr
        check(done.returncode == 0 and "31m" in text and "\033" not in text and "\u202e" not in text, "names of files are plain", text)


def helps():
    """If the help cannot be written, the command fails, with and without a verb."""
    verbs = [line.split()[0] for line in ask("--help").stdout.splitlines() if line.startswith("  ")]
    check(len(verbs) > 10, "verbs", verbs)
    for words in [["--help"], *([verb, option] for verb in verbs for option in ("--help", "--usage"))]:
        with open("/dev/full", "w") as full:
            done = subprocess.run([fdr, *words], stdout=full, stderr=subprocess.PIPE, text=True)
        check(says(done, 2, "standard output"), f"{' '.join(words)} to a full disk", done.returncode, done.stderr)
        check(ask(*words).returncode == 0, f"{' '.join(words)}")


def claims():
    """A header claims more regions, communicators or names than the stream has."""
    for what, text in (("regions", " of 4000000000 regions"), ("comms", " of 4000000000 communicators"), ("strings", "of 4000000000 bytes of names")):
        evt("claims.evt", calls(1), **{what: 4000000000})
        done = ask("replay", "claims.evt", "--buffer", "1M", "-o", "claims.fdr")
        told = [line.split("\t")[5] for line in ask("dump", "--tsv", "claims.fdr").stdout.splitlines()[1:]]
        check(says(done, 1, "claims.evt: ", text), f"a stream that claims more {what}", done.returncode, done.stderr)
        check(told == ["a", "b", "b", "a"], "what is there is replayed", told)


try:
    locations()
    totals()
    outputs()
    quotas()
    empty_names()
    paths()
    helps()
    claims()
finally:
    shutil.rmtree(work)
    shutil.rmtree(live)
sys.exit(bad > 0)
