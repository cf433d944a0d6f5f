#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools promise=P6
"""P6: recordings of format 1 are read as before. tests/format/format1/ has one of each kind, and what the fdr of that
time showed of it. The present one must show the same events, totals and properties; properties may be added. A recovered
file has the present format. A flipped version is refused by number."""
import json
import lzma
import os
import subprocess
import tempfile

FDR = os.path.join(os.environ["FDR_BUILD"], "bin", "fdr")
FOLDER = os.path.join(os.environ["FDR_SOURCE"], "tests", "format", "format1")


def fdr(*arguments):
    done = subprocess.run([FDR, *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def stored(name):
    with lzma.open(os.path.join(FOLDER, name)) as f:
        return f.read()


def differences(old, new, where=""):
    """What of `old` is missing or different in `new`."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [d for key in old for d in differences(old[key], new.get(key), f"{where}.{key}")]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [d for i, pair in enumerate(zip(old, new)) for d in differences(*pair, f"{where}[{i}]")]
    return [] if old == new else [f"{where}: {old!r} became {new!r}"]


def table(text):
    """The lines of dump and stats. Of the table of regions without min, p50 and p99, which came or went; whole files."""
    lines, inside, folder = [], False, ""
    for line in text.splitlines():
        if line.startswith("# files are in "):
            folder = line.removeprefix("# files are in ")
            continue
        inside = (inside or line.startswith("   exclusive    share    inclusive")) and line != ""
        if inside and "% " in line and folder:
            line = line.replace("  (", "  (" + folder, 1)
        if line.startswith("   exclusive    share    inclusive"):
            begin = line.index("         max")
        lines.append(line[:62] + line[begin:] if inside else line)
    return lines


def check(name, folder):
    path = os.path.join(folder, name + ".fdr")
    with open(path, "wb") as f:
        f.write(stored(name + ".fdr.xz"))
    bad = differences(json.loads(stored(name + ".json.xz")), json.loads(fdr("info", "--json", path)[1]))
    shown = fdr("dump", path)[1] + fdr("stats", "--all", path)[1].replace("(messages, io: bytes)", "(messages: bytes)")
    if table(shown) != table(stored(name + ".txt.xz").decode()):
        bad.append("dump or stats differ")
    code, text, _ = fdr("check", path)
    if code != 0:
        bad.append(text)
    again = os.path.join(folder, name + ".recovered.fdr")
    fdr("recover", path, "-o", again)
    if json.loads(fdr("info", "--json", again)[1])["format"] != 2:
        bad.append("the recovered file has another format")
    if fdr("dump", again)[1] != fdr("dump", path)[1]:
        bad.append("the recovered file has other events")
    return [f"{name}: {b}" for b in bad]


def refused(folder):
    path = os.path.join(folder, "future.fdr")
    bytes_ = bytearray(stored("whole.fdr.xz"))
    bytes_[8] = 3
    with open(path, "wb") as f:
        f.write(bytes_)
    code, _, message = fdr("info", path)
    wanted = "format version 3, but this reader knows versions 1 to 2 only"
    return [] if code != 0 and wanted in message else [f"a later version: {message}"]


def main():
    names = sorted(n.removesuffix(".fdr.xz") for n in os.listdir(FOLDER) if n.endswith(".fdr.xz"))
    assert len(names) >= 11, names
    with tempfile.TemporaryDirectory() as folder:
        bad = [b for n in names for b in check(n, folder)] + refused(folder)
    print(f"{len(names)} recordings of format 1, {len(bad)} differences")
    print("\n".join(bad[:20]))
    raise SystemExit(bool(bad))


main()
