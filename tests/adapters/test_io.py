#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=house promise=P5,P10 timeout=240
"""P10: programs behave the same with libfdr-io: results, errno, cancellation, children, handlers; and so do cat, cp, dd,
sqlite3, python3 and git. P5: totals of files are exact, also where events were given back."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "io"))
from preloaded import FDR, Place, by_file, calls_by_region, check_build, fdr_json  # noqa: E402

wrong = 0


def expect(what, got, want):
    global wrong
    if got == want:
        return
    wrong += 1
    print(f"{what}: {got!r}, expected {want!r}")


def same(place, what, command):
    """Runs without and with the library; returns the folder and the recording of the latter."""
    plain, _, _ = place.run(command, False)
    done, folder, recording = place.run(command, True)
    expect(what + ": status", done.returncode, plain.returncode)
    expect(what + ": output", done.stdout, plain.stdout)
    expect(what + ": messages", done.stderr, plain.stderr)
    if recording is None:
        expect(what + ": recordings", 0, 1)
        sys.exit(1)
    check = subprocess.run([FDR, "check", recording], capture_output=True, check=False)
    expect(what + ": fdr check", (check.returncode, check.stdout if check.returncode else b""), (0, b""))
    return folder, recording


def own_program(place, program):
    same(place, "errno", [program, "errors"])
    _, recording = same(place, "cancellation", [program, "cancel"])
    events = fdr_json("dump", "--json", "--class", "io", recording)
    ends = [e["attributes"].get("error") for e in events if e["kind"] == "io_end" and e["attributes"]["op"] == "read"]
    expect("reads, those cancelled with ECANCELED", sorted(e or 0 for e in ends), [0, 0, 0, 125, 125, 125])
    expect("regions that cancellation left open",
           sum(location["open"] != [] for location in fdr_json("info", "--json", recording)["locations"]), 0)

    folder, recording = same(place, "children", [program, "children"])
    files = by_file(recording)
    parent = os.path.join(folder, "parent.txt")
    expect("children: the parent's writes", files[parent, "write"], (2, 13))
    expect("children: the child's writes", [f for f in files if "child.txt" in f[0]], [])

    folder, recording = same(place, "handlers", [program, "handlers"])
    files = by_file(recording)
    expect("handlers: main", files[os.path.join(folder, "main.txt"), "write"], (2000, 2000))
    expect("handlers: handler", files[os.path.join(folder, "handler.txt"), "write"], (1000, 1000))
    expect("handlers: opened", files[os.path.join(folder, "handler.txt"), "open"], (1000, 0))

    folder, recording = same(place, "stdio", [program, "stdio"])
    files, calls = by_file(recording), calls_by_region(recording)
    name = os.path.join(folder, "s.txt")
    expect("stdio: written", files[name, "write"], (3, 200 + 7 + 11))
    expect("stdio: read", files[name, "read"], (4, 200 + 7 + 11))
    expect("stdio: calls", {n: calls.get(n) for n in ("fopen", "fread", "fgets", "fprintf", "fclose")},
           {"fopen": 1, "fread": 2, "fgets": 1, "fprintf": 1, "fclose": 1})
    expect("stdio: no reads and writes of the C library", [n for n in calls if n in ("read", "write")], [])


def replayed(place, program):
    """A replay of the recording has the same operations and bytes, and the same time to a ns of rounding for each."""
    _, folder, recording = place.run([program, "calls"], True)
    again = os.path.join(folder, "again.fdr")
    done = subprocess.run([FDR, "replay", recording, "-o", again], capture_output=True, check=False)
    expect("replay: status", done.returncode, 0)
    expect("replay: files", by_file(again), by_file(recording))
    time, replayed_time = (sum(r["time_ns"] for r in fdr_json("stats", "--by", "file", "--json", name))
                           for name in (recording, again))
    expect("replay: times", abs(time - replayed_time) <= 2 * sum(n for n, _ in by_file(again).values()), True)


def given_back(place, program):
    """A buffer that keeps few of 120,000 operations: the totals have them all."""
    _, folder, recording = place.run([program, "many"], True, FDR_BUFFER="512K")
    files, name = by_file(recording), os.path.join(folder, "many.txt")
    expect("many: given back", bool(fdr_json("info", "--json", recording)["reductions"]), True)
    expect("many: written", files[name, "write"], (60000, 270000))
    expect("many: read", files[name, "read"], (60000, 480000))


def real_programs(place):
    place_of = os.path.join(place.path, "tree")
    os.makedirs(place_of)
    with open(os.path.join(place_of, "data"), "wb") as f:
        f.write(bytes(range(256)) * 400)
    data = os.path.join(place_of, "data")
    commands = {
        "cat": ["cat", data],
        "cp": ["cp", "-v", data, "copy"],
        "dd": ["dd", "if=" + data, "of=copy", "bs=1000", "status=none"],
        "sqlite3": ["sqlite3", "t.db", "create table a(x); insert into a values(1),(2); select sum(x) from a"],
        "python3": ["python3", "-c", "open('x','w').write('abc'*9999); print(len(open('x').read()))"],
        "git": ["git", "init", "-q", "repository"],
    }
    for name, command in commands.items():
        tool = sys.executable if name == "python3" else shutil.which(name)
        if not tool:
            print(f"not tried, as it is not there: {name}")
            continue
        folder, recording = same(place, name, [os.path.realpath(tool), *command[1:]])
        if name == "dd":
            files = by_file(recording)
            expect("dd: read", files[data, "read"], (104, 102400))
            expect("dd: written", files[os.path.join(folder, "copy"), "write"], (103, 102400))


def main():
    check_build()
    place = Place()
    for options in [], ["-D_FORTIFY_SOURCE=2"]:
        own_program(place, place.compile(*options))
    replayed(place, place.compile())
    given_back(place, place.compile())
    real_programs(place)
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
