#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=house,slow
"""Names: a room's global symbols begin with the name of the room, and no two files have the same name.

- A global symbol of an object file of a library is `fdri_ROOM` or begins with `fdri_ROOM_`, unless a public header
  declares it, or it is a hook with a name from outside. ROOM is the last folder of the file; of a file directly in
  base/ it is the file's own name. Rooms named pressure keep their names. fdri_FOLDER_ROOM is the row of a room in a
  table of the folder around it.
- A header outside include/ defines no struct, enum or macro of the public prefix fdr_, FDR_. Types that a public header
  declares are defined inside.
- No two files of the product share a name, and no two tests."""
import collections
import os
import re
import subprocess
import sys

LIBRARIES = ["base", "format", "bins", "policies", "recorder", "sampler", "retention", "export", "reader", "convert"]
# Functions of the C library that libfdr replaces.
SIGNAL_FUNCTIONS = {"sigaction", "signal", "bsd_signal", "ssignal", "sysv_signal", "__sysv_signal", "sigprocmask"}
FOREIGN = {"fdr_switch_", "setsid", "daemon", "pthread_sigmask"} | SIGNAL_FUNCTIONS


def public():
    names = set()
    for name in os.listdir("include/fdr"):
        with open(os.path.join("include/fdr", name), encoding="utf-8") as f:
            names |= set(re.findall(r"\b(?:fdr|FDR)_\w+", re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)))
    return names


def room(source):
    folder = os.path.dirname(source)
    return os.path.splitext(os.path.basename(source))[0] if folder == "base" else os.path.basename(folder)


def objects(build):
    """Object files of the libraries, and their sources."""
    found = {}
    for place, _, files in os.walk(os.path.join(build, "CMakeFiles")):
        for path in (os.path.join(place, name) for name in files):
            match = re.search(r"fdr_obj_\w+\.dir/(.*)\.o$", path)
            if match and match.group(1).split("/")[0] in LIBRARIES and os.path.exists(match.group(1)):
                found[path] = match.group(1)
    return found


def symbols(build, known, bad):
    source_of = objects(build)
    listing = subprocess.run(["nm", "-A", "-g", "--defined-only", *source_of], check=True, capture_output=True, text=True).stdout
    for line in listing.splitlines():
        path, _, rest = line.partition(":")
        source, symbol = source_of[path], rest.split()[-1]
        own = "fdri_" + room(source)
        row = f"fdri_{os.path.basename(os.path.dirname(os.path.dirname(source)))}_{room(source)}"
        if symbol in known | FOREIGN or symbol in (own, row) or symbol.startswith(own + "_"):
            continue
        if room(source) != "pressure" and not symbol.startswith("__"):
            bad.append(f"{source}: {symbol} does not begin with {own}_")
    return len(listing.splitlines())


def headers(known, bad):
    for folder in LIBRARIES:
        for place, _, files in os.walk(folder):
            for name in (f for f in files if f.endswith(".h")):
                path = os.path.join(place, name)
                with open(path, encoding="utf-8") as f:
                    text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
                found = re.findall(r"^(?:struct|enum|union) (fdr_\w+) \{", text, flags=re.M)
                found += re.findall(r"^\s*#\s*define (FDR_\w+|fdr_\w+)", text, flags=re.M)
                bad += [f"{path}: {n} has the prefix of the public headers" for n in found if n not in known]


def basenames(bad):
    for roots in (LIBRARIES + ["tools", "adapters"], ["tests"]):
        where = collections.defaultdict(list)
        for root in roots:
            for place, _, files in os.walk(root):
                if "consumer" not in place and "__pycache__" not in place:
                    for name in files:
                        where[name].append(os.path.join(place, name))
        bad += [f"one name, several files: {' '.join(paths)}" for paths in where.values() if len(paths) > 1]


def main():
    os.chdir(os.environ["FDR_SOURCE"])
    known, bad = public(), []
    count = 0
    if os.environ.get("FDR_SANITIZE"):
        print("instrumented objects have names of their runtime: sources only")
    else:
        count = symbols(os.environ["FDR_BUILD"], known, bad)
        if count < 500:
            bad.append(f"only {count} global symbols found")
    headers(known, bad)
    basenames(bad)
    for line in bad:
        print(line)
    print(f"{count} global symbols, {len(bad)} complaints")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
