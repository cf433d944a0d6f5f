#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=120
# Each format of `fdr export --list` is in --help, README.md and the man page, writes a recording, and leaves nothing if
# it fails. Wrong formats and options are wrong usage, and the message names the right ones.
import gzip
import json
import os
import subprocess
import sys
import tempfile

build, source = os.environ["FDR_BUILD"], os.environ["FDR_SOURCE"]
fdr = f"{build}/bin/fdr"
directory = tempfile.TemporaryDirectory(prefix="fdr-exporters-")
work = directory.name
bad = 0


def check(good, what, *shown):
    global bad
    print(("ok: " if good else "FAILED: ") + what, *([] if good else shown))
    bad += not good


def tool(*arguments):
    return subprocess.run([fdr, *arguments], capture_output=True, text=True, cwd=work)


def contents(path):
    """The bytes of a file, unpacked, or of all files of a directory."""
    if os.path.isdir(path):
        return [part for name in os.listdir(path) for part in contents(f"{path}/{name}")]
    with open(path, "rb") as f:
        data = f.read()
    return [gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data]


def size(path):
    return sum(size(f"{path}/{name}") for name in os.listdir(path)) if os.path.isdir(path) else os.path.getsize(path)


settings = {"FDR_DIR": work, "FDR_LIVE_DIR": work, "FDR_LIVE_FORCE": "1", "FDR_BUFFER": "4M"}
env = {k: v for k, v in os.environ.items() if not k.startswith("FDR_")} | settings
subprocess.run([f"{build}/examples/events"], check=True, env=env, stdout=subprocess.DEVNULL)
recording = next(f for f in os.listdir(work) if f.endswith(".fdr"))

lists = subprocess.run([sys.executable, f"{source}/scripts/exporters.py", "--check"], capture_output=True, text=True)
check(lists.returncode == 0, "README.md and the man page have the formats", lists.stderr)
text, help_ = tool("export", "--list").stdout, tool("export", "--help").stdout
check(text and text in help_, "--help ends with the list of --list", help_)
check(max(map(len, text.splitlines())) < 80, "its lines fit a terminal of 80 columns", text)
formats = json.loads(tool("export", "--list", "--json").stdout)
check(len(formats) >= 2 and all(f["name"] in text and f["help"] in text for f in formats), "text and JSON agree", formats)

for f in formats:
    name, out = f["name"], f"{work}/{f['name']}.out"
    done = tool("export", recording, "--to", name, "-o", out, "--json")
    check(done.returncode == 0, f"{name} writes", done.stderr)
    written = contents(out)
    check(json.loads(done.stdout) == {"output": out, "format": name, "files": 1, "bytes": size(out)},
          f"{name} reports", done.stdout)
    check(any(b"iteration" in part for part in written), f"{name} has the calls")
    before = set(os.listdir(work))
    failed = tool("export", recording, "--to", name, "-o", f"{work}/nowhere/x")
    check(failed.returncode == 2 and set(os.listdir(work)) == before, f"{name} into nowhere", failed.stderr)
    for option in f["options"]:
        if not option["value"] == "TEXT":
            continue
        done = tool("export", recording, "--to", name, "-o", "-", "--set", f"{option['name']}=a \"value\"")
        check(done.returncode == 0 and 'a \\"value\\"' in done.stdout, f"{name} takes {option['name']}", done.stderr)
        done = tool("export", recording, "--to", name, "-o", "-", "--set", option["name"])
        check(done.returncode == 64 and f"'{option['name']}' lacks '=VALUE'" in done.stderr, "... and no less", done.stderr)

for arguments, said in [
    (["--to", "none"], f"'none' is no format ({', '.join(f['name'] for f in formats)})"),
    ([], f"--to is needed: {', '.join(f['name'] for f in formats)}"),
    (["--to", "chrome", "--set", "title=x"], "'title' is no option of chrome"),
]:
    done = tool("export", recording, "-o", "-", *arguments)
    check(done.returncode == 64 and said in done.stderr and not done.stdout, f"refused: {arguments}", done.stderr)
sys.exit(bad != 0)
