#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=house
"""Which room may include which: the folders by a table, the rooms of a folder by their order.

Checks:
- a folder includes only the folders that FOLDERS names;
- inside a folder a room includes rooms below it. An include of a room above must stand in arrows_back.txt. That list
  may only shrink: a line that is not needed any more fails, too;
- each room has a door: a header that begins with the room's job;
- a header inside the product has at most 155 lines. Longer ones stand in long_headers.txt with their lengths, which may
  only shrink: a line that is too high, or not needed any more, fails, too;
- conditionals on the OS or the processor, and the processor's headers, are in base/ only;
- include/, policies/ and format/ use the standard headers of C alone;
- no product has assert() or NDEBUG: the presets dev and release compile the same code, and tests of dev are enough.

The table in docs/ROOMS.md must be up to date. --write brings it and the two lists up to date; it lengthens no header."""
import os
import re
import sys

# Folder -> the folders, or single headers, that it may include beside its own.
FOLDERS = {
    "include/fdr": [],
    "base": ["include/fdr"],
    "format": ["base"],
    "bins": ["format", "base"],
    "policies": ["base/system/task_state.h"],
    "recorder": [
        "bins", "policies", "format", "base", "include/fdr", "export/view.h", "sampler/samples/samples_view.h",
        "sampler/counters/counter_view.h",
    ],
    "sampler": ["include/fdr", "base", "policies/looks.h"],
    "retention": ["policies", "format", "base"],
    "export": ["retention", "policies", "format", "base", "include/fdr"],
    "reader": ["retention", "policies", "format", "base", "include/fdr"],
    "convert": ["include/fdr"],
    "tools": ["include/fdr"],
    "web": ["include/fdr", "tools/html/view/view_window.h"],
    "adapters": ["include/fdr", "base/atomic.h"],
    "examples": ["include/fdr"],
    "benchmarks": ["include/fdr"],
}
# The rooms of each folder with their doors, the lowest first. A room may include the rooms above it in this list.
ROOMS = {
    "base": {
        "base": "base/atomic.h", "base/system": "base/system/syscall.h", "base/fd": "base/fd/open_high.h",
        "base/text": "base/text/message.h", "base/stack": "base/stack/context.h",
        "base/elf": "base/elf/elf_symbols.h",
    },
    "format": {
        "format/arena": "format/arena/arena.h", "format/classes": "format/classes/class_table.h",
        "format/tallies": "format/tallies/tally_table.h",
        "format/codec": "format/codec/record_codec.h",
    },
    "bins": {"bins": "bins/bins.h", "bins/pressure": "bins/pressure/bins_pressure.h"},
    "policies": {"policies": "policies/policies.h"},
    "recorder": {
        "recorder": "recorder/recording.h",
        "recorder/thread": "recorder/thread/thread.h",
        "recorder/names": "recorder/names/names.h",
        "recorder/ended": "recorder/ended/ended.h",
        "recorder/shares": "recorder/shares/shares.h",
        "recorder/memory": "recorder/memory/memory.h",
        "recorder/pressure": "recorder/pressure/recorder_pressure.h",
        "recorder/strategy": "recorder/strategy/strategy.h",
        "recorder/totals": "recorder/totals/totals.h",
        "recorder/tally": "recorder/tally/tally.h",
        "recorder/watch": "recorder/watch/watch.h",
        "recorder/governor": "recorder/governor/governor.h",
        "recorder/jumps": "recorder/jumps/jumps.h",
        "recorder/record": "recorder/record/record.h",
        "recorder/life": "recorder/life/life.h",
    },
    "sampler": {
        "sampler/counters": "sampler/counters/counter.h", "sampler/papi": "sampler/papi/papi.h",
        "sampler/samples": "sampler/samples/sampler.h",
    },
    "retention": {"retention": "retention/retention.h"},
    "export": {
        "export": "export/view.h", "export/snapshot": "export/snapshot/snapshot.h",
        "export/crash": "export/crash/crash_path.h", "export/trigger": "export/trigger/trigger.h",
    },
    "reader": {
        "reader/file": "reader/file/file.h", "reader/job": "reader/job/job.h", "reader/symbol": "reader/symbol/symbols.h",
        "reader/bundle": "reader/bundle/crash_bundle.h", "reader/events": "reader/events/events.h",
        "reader/account": "reader/account/account.h", "reader/recover": "reader/recover/recover_image.h",
        "reader/live": "reader/live/external_copy.h",
    },
    "convert": {"convert": "convert/exporters.h", "convert/otf2": "convert/otf2/otf2.h"},
    "tools": {
        "tools/common": "tools/common/verbs.h", "tools/replay": "tools/replay/event_stream.h",
        "tools/html/view": "tools/html/view/view_window.h", "tools/sql": "tools/sql/sql_tables.h", "tools": None,
        "tools/findings": "tools/findings/findings.h", "tools/story": "tools/story/story.h",
        "tools/hang": "tools/hang/job_facts.h", "tools/deaths": "tools/deaths/deaths.h",
        "tools/html": "tools/html/page.h",
    },
    "adapters": {
        "adapters": None, "adapters/io": "adapters/io/io_adapter.h", "adapters/mpi": "adapters/mpi/adapter.h",
        "adapters/otf2": "adapters/otf2/otf2_adapter.h",
    },
}
# The jobs of rooms without a door.
JOBS = {
    "tools": "One verb of the command a file",
    "adapters": "Bindings, with the public headers only: the compiler's function hooks",
}
STANDARD = set(
    "assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic"
    " stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype".split()
)
BYTES_ONLY = set("assert inttypes limits stdalign stdatomic stdbool stddef stdint string".split())
SYSTEM = {"include/fdr": STANDARD | {"exception"}, "policies": STANDARD, "format": BYTES_ONLY}
PROCESSOR = re.compile(r"^(immintrin|x86intrin|emmintrin|nmmintrin|cpuid|arm_neon|arm_acle)\.h$")
MACHINE = re.compile(
    r"^\s*#\s*(if|ifdef|ifndef|elif)\b.*(__linux|__unix__|__APPLE__|__FreeBSD__|__ANDROID__|_WIN32|__x86_64__|__amd64__"
    r"|__i386__|__aarch64__|__arm__|__riscv|__powerpc|__s390x__|__SSE|__AVX|__BMI|__ARM_|__BYTE_ORDER__)"
)
ASSERTIONS = re.compile(r"\bassert\s*\(|\bNDEBUG\b")
PROGRAMS = ("examples", "benchmarks")
ARROWS = "tests/house/arrows_back.txt"
LONG = "tests/house/long_headers.txt"
MOST_LINES = 155
PUBLIC = ("include/fdr", "examples")  # headers of these folders may have any length
MARKERS = ("<!-- rooms: generated by tests/house/test_layers.py -->", "<!-- end of rooms -->")


def sources(folder):
    for place, folders, files in os.walk(folder):
        folders.sort()
        yield from (os.path.join(place, f) for f in sorted(files) if f.endswith((".c", ".h", ".hpp")))


def room_of(path, folder):
    """The room a file lies in."""
    rooms = ROOMS.get(folder, {})
    place = os.path.dirname(path)
    return place if place in rooms else folder


class Check:
    def __init__(self):
        self.bad, self.includes, self.back, self.below, self.long = [], 0, {}, {}, {}

    def include(self, folder, where, text):
        """One include line: text is <...> or "..."."""
        self.includes += 1
        path = text[1:-1]
        ours = path.split("/")[0] in FOLDERS or path.startswith("fdr/")
        if not ours and text[0] == "<":
            name = path.removesuffix(".h")
            if folder in SYSTEM and name not in SYSTEM[folder]:
                self.bad.append(f"{where}: {folder}/ may not include <{path}>")
            if folder != "base" and PROCESSOR.match(path):
                self.bad.append(f"{where}: the processor is the business of base/: <{path}>")
            return
        if path == "fdr_build.h":  # written by the build: the version
            return
        target = "include/" + path if path.startswith("fdr/") else path
        beside = os.path.join(os.path.dirname(where.split(":")[0]), path)
        if folder == "benchmarks" and "/" not in path:
            return
        if "/" not in path and os.path.exists(beside):
            target = beside
        if not os.path.exists(target):
            self.bad.append(f"{where}: no such header from the root: {path}")
            return
        to = "include/fdr" if target.startswith("include/fdr/") else target.split("/")[0]
        if to != folder and to not in FOLDERS[folder] and target not in FOLDERS[folder]:
            self.bad.append(f"{where}: {folder}/ may not include {path}")
        elif to == folder:
            self.room(folder, where.split(":")[0], target)

    def room(self, folder, file, target):
        order = list(ROOMS.get(folder, {}))
        mine, other = room_of(file, folder), room_of(target, folder)
        if mine == other or mine not in order:
            return
        if order.index(other) > order.index(mine):
            self.back.setdefault((mine, other), set()).add(file)
        else:
            self.below.setdefault(mine, set()).add(other)

    def file(self, folder, path):
        with open(path, encoding="utf-8") as f:
            lines = f.readlines()
        if folder not in PUBLIC and not path.endswith(".c") and len(lines) > MOST_LINES:
            self.long[path] = len(lines)
        for number, line in enumerate(lines, 1):
            include = re.match(r'\s*#\s*include\s*(<[^>]+>|"[^"]+")', line)
            if include:
                self.include(folder, f"{path}:{number}", include.group(1))
            elif folder != "base" and MACHINE.match(line):
                self.bad.append(f"{path}:{number}: OS and CPU conditionals belong to base/: {line.strip()}")
            if folder not in PROGRAMS and ASSERTIONS.search(line):
                self.bad.append(f"{path}:{number}: assertions differ in a release build: {line.strip()}")

    def arrows(self, write):
        now = [f"{a} -> {b}: {' '.join(sorted(files))}" for (a, b), files in sorted(self.back.items())]
        with open(ARROWS, encoding="utf-8") as f:
            head = [line for line in f.read().splitlines() if line.startswith("#") or not line]
            f.seek(0)
            listed = [line for line in f.read().splitlines() if line not in head]
        allowed = {(line.split(":")[0], file) for line in listed for file in line.split(": ")[1].split()}
        found = {(line.split(":")[0], file) for line in now for file in line.split(": ")[1].split()}
        if write:
            with open(ARROWS, "w", encoding="utf-8") as f:
                f.write("\n".join(head + now) + "\n")
            return len(found)
        for arrow, file in sorted(found - allowed):
            self.bad.append(f"{file}: a new arrow back up: {arrow}")
        for arrow, file in sorted(allowed - found):
            self.bad.append(f"{ARROWS}: {arrow} by {file} is gone: strike it out")
        return len(found)

    def lengths(self, write):
        """Compares the long headers with the list."""
        with open(LONG, encoding="utf-8") as f:
            text = f.read().splitlines()
        head = [line for line in text if line.startswith("#")]
        listed = {line.split()[1]: int(line.split()[0]) for line in text if line not in head}
        for path, lines in sorted(self.long.items()):
            if lines > listed.get(path, MOST_LINES):
                self.bad.append(f"{path}: {lines} lines, at most {listed.get(path, MOST_LINES)}: split the header")
        now = {path: min(lines, self.long[path]) for path, lines in listed.items() if path in self.long}
        if write:
            with open(LONG, "w", encoding="utf-8") as f:
                f.write("\n".join(head + [f"{lines} {path}" for path, lines in sorted(now.items())]) + "\n")
            return
        for path, lines in sorted(listed.items()):
            if path not in now:
                self.bad.append(f"{LONG}: {path} is no long header any more: strike it out")
            elif now[path] < lines:
                self.bad.append(f"{LONG}: {path} has {now[path]} lines now, not {lines}: lower the number")


def job(door):
    """The first sentence of the comment that a door begins with."""
    with open(door, encoding="utf-8") as f:
        comment = re.search(r"/\* (?!SPDX)(.*?)\*/", f.read(), flags=re.S).group(1)
    text = re.sub(r"\s*\n \* ?", " ", comment)
    return re.match(r"(.*?)\.(\s|$)", text + ". ", flags=re.S).group(1).strip()


def table(check):
    lines = ["| room | its job | door | below it, and used |", "|---|---|---|---|"]
    for folder, rooms in ROOMS.items():
        for room, door in rooms.items():
            used = ", ".join(f"`{r}`" for r in rooms if r in check.below.get(room, ()))
            text = job(door) if door else JOBS[room]
            lines.append(f"| `{room}/` | {text} | {f'`{os.path.basename(door)}`' if door else ''} | {used} |")
    return "\n".join(lines)


def rooms_page(check, write):
    path = "docs/ROOMS.md"
    with open(path, encoding="utf-8") as f:
        page = f.read()
    begin, end = (page.index(m) for m in MARKERS)
    new = page[: begin + len(MARKERS[0])] + "\n" + table(check) + "\n" + page[end:]
    if write:
        with open(path, "w", encoding="utf-8") as f:
            f.write(new)
    elif new != page:
        check.bad.append(f"{path}: the table of rooms is old; run {sys.argv[0]} --write")


def main():
    os.chdir(os.environ.get("FDR_SOURCE") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    write = "--write" in sys.argv
    check = Check()
    for folder in FOLDERS:
        for path in sources(folder):
            check.file(folder, path)
    for folder in sorted(os.listdir(".")):
        if os.path.isdir(folder) and folder[0] != "." and not folder.startswith("build"):
            if folder not in list(FOLDERS) + ["include", "tests", "fuzz", "scripts"] and any(sources(folder)):
                check.bad.append(f"{folder}/ holds C sources and is not in the table of folders")
    for folder, rooms in ROOMS.items():
        for place, _, files in os.walk(folder):
            if any(f.endswith((".c", ".h")) for f in files) and place not in rooms:
                check.bad.append(f"{place}/ is no room of {folder}/")
    back = check.arrows(write)
    check.lengths(write)
    rooms_page(check, write)
    for line in check.bad:
        print(line)
    print(f"{check.includes} include lines, {back} arrows back up, {len(check.bad)} complaints")
    return 1 if check.bad or check.includes < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
