#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=house promise=P5 timeout=120 excuse=strace
"""P5: libfdr-io counts the calls and bytes that strace sees, for a program that reads and writes by itself: for each
function, and for each file and direction. It sees no more of them than the program makes: fdr's own are left out."""
import collections
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "io"))
from preloaded import Place, by_file, calls_by_region, check_build, skip  # noqa: E402

# Functions of the C library by the system call that they make.
FUNCTIONS = {
    "openat": ("open", "openat", "creat"), "close": ("close",), "read": ("read",), "write": ("write",),
    "pread64": ("pread",), "pwrite64": ("pwrite",), "readv": ("readv",), "writev": ("writev",), "preadv": ("preadv",),
    "pwritev": ("pwritev",), "fsync": ("fsync",), "fdatasync": ("fdatasync",), "sendfile": ("sendfile",),
    "copy_file_range": ("copy_file_range",),
}
READ, WRITTEN = ("read", "pread64", "readv", "preadv"), ("write", "pwrite64", "writev", "pwritev")
LINE = re.compile(r"^(?:\d+ +)?(\w+)\((.*)\) += (-?\d+)")
FILE = re.compile(r"^\d+<([^>]*)>")


def of_file(text, folder):
    name = FILE.match(text).group(1)
    return "[pipe]" if name.startswith("pipe:") else name.replace(folder + "/", "")


def traced(place, program):
    """Counts of system calls, and (file, direction) -> bytes, between the program's two calls of getppid."""
    log = os.path.join(place.path, "strace")
    names = ",".join([*FUNCTIONS, "?creat", "getppid"])
    command = [shutil.which("strace"), "-f", "-y", "-s", "0", "-o", log, "-e", "trace=" + names, program, "calls"]
    done, folder, _ = place.run(command, False)
    with open(log, encoding="utf-8") as f:
        lines = f.read().splitlines()
    if done.returncode or sum("getppid" in line for line in lines) != 2:
        skip("strace cannot trace here: " + done.stderr.decode(errors="replace").strip()[-200:])
    begin, end = [i for i, line in enumerate(lines) if "getppid" in line]
    calls, moved = collections.Counter(), collections.Counter()
    for line in lines[begin + 1:end]:
        if "resumed>" in line or "unfinished" in line:
            sys.exit("strace saw two threads at once: " + line)
        match = LINE.match(line)
        if not match:
            continue
        name, arguments, result = match.groups()
        calls["openat" if name == "creat" else name] += 1
        if name in READ or name in WRITTEN:
            moved[of_file(arguments, folder), "read" if name in READ else "write"] += int(result)
    moved["out.dat", "read"] += 50 + 60  # sendfile and copy_file_range
    moved["out.dat", "write"] += 50 + 60
    return calls, moved


def main():
    check_build()
    if not shutil.which("strace"):
        skip("strace is not installed")
    place = Place()
    program = place.compile()
    system, moved = traced(place, program)
    done, folder, recording = place.run([program, "calls"], True)
    if done.returncode:
        sys.exit(f"status {done.returncode}: {done.stderr}")
    ours, wrong = calls_by_region(recording), 0
    for name, functions in FUNCTIONS.items():
        count = sum(ours.pop(f, 0) for f in functions)
        if count != system[name] or not count:
            print(f"{name}: strace sees {system[name]}, fdr {count}")
            wrong += 1
    if ours:
        print("nobody called these:", ours)
        wrong += 1
    files = {(f.replace(folder + "/", ""), operation): bytes_ for (f, operation), (_, bytes_) in by_file(recording).items()
             if operation in ("read", "write")}
    if files != dict(moved):
        print(f"bytes: strace sees {dict(moved)},\n       fdr {files}")
        wrong += 1
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
