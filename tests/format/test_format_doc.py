#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=house promise=P6
# P6: docs/FORMAT.md agrees with the headers and the library. Every structure has the stated size, every field the
# stated offset and size, and the kinds have the stated numbers. The library writes the worked example byte for byte.
# With --write: updates offsets, sizes and kinds in the tables; new fields must be added by hand.
import os
import re
import subprocess
import sys
import tempfile

HEADERS = ["format/arena/arena.h", "format/arena/crash_section.h"]


def compile_and_run(work, name, text, options):
    source, program = os.path.join(work, name + ".c"), os.path.join(work, name)
    with open(source, "w", encoding="utf-8") as f:
        f.write(text)
    subprocess.run(["cc", "-std=gnu11", "-Wall", "-Wextra", source, "-o", program, *options], check=True)
    return subprocess.run([program], check=True, capture_output=True, text=True, cwd=work, timeout=60).stdout


def structures(header):
    """Name -> its fields. This parses as much of C as the headers need."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    found = {}
    for name, body in re.findall(r"^struct (fdri_arena_\w+) \{(.*?)^\};", text, flags=re.S | re.M):
        body = re.sub(r"struct \{.*?\} (\w+)(\[\w*\])?;", lambda m: f"int {m.group(1)}{m.group(2) or ''};", body, flags=re.S)
        found[name] = []
        for statement in filter(None, map(str.strip, body.split(";"))):
            declared = re.match(r"(?:struct )?\w+\s+(.*)", statement, flags=re.S).group(1)
            for one in declared.split(","):
                field = re.match(r"\s*(\w+)(.*)", one, flags=re.S)
                found[name].append(field.group(1) + ("[]" if field.group(2).strip() == "[]" else ""))
    return found


def measure(work, source, structs, enums):
    lines = ["#include <stdio.h>", "#include <stddef.h>", *(f'#include "{h}"' for h in HEADERS), "int main(void) {"]
    for name, fields in structs.items():
        lines.append(f'printf("{name} - 0 %zu\\n", sizeof(struct {name}));')
        for f in fields:
            plain = f.removesuffix("[]")
            size = f"sizeof(((struct {name} *)0)->{plain}{'[0]' if f != plain else ''})"
            lines.append(f'printf("{name} {f} %zu %zu\\n", offsetof(struct {name}, {plain}), {size});')
    lines += [f'printf("- {e} %d 0\\n", (int){e});' for e in enums]
    out = compile_and_run(work, "measure", "\n".join(lines + ["return 0; }"]), ["-I", source])
    return {(s, f): (int(o), int(n)) for s, f, o, n in map(str.split, out.splitlines())}


def check_tables(lines, actual, structs, bad):
    """Checks the tables of the page. Returns the page with the right numbers."""
    current, seen, out = None, {}, []
    for line in lines:
        if line.startswith("#"):
            current = None
        heading = re.match(r"### `struct (\w+)`, (\d+) bytes", line)
        row = re.match(r"\| (\d+) \| (\d+) \| `([\w\[\]]+)` \|(.*)", line)
        kind = re.match(r"\| (\d+) \| `(FDRI_ARENA_(?:META|DEF)_\w+)` \|(.*)", line)
        right = line
        if heading:
            current = heading.group(1)
            seen[current] = []
            if current not in structs:
                bad.append(f"struct {current} is in no header")
            else:
                right = f"### `struct {current}`, {actual[current, '-'][1]} bytes"
        elif row and current:
            seen[current].append(row.group(3))
            if (current, row.group(3)) not in actual:
                bad.append(f"struct {current} has no field {row.group(3)}")
            else:
                offset, size = actual[current, row.group(3)]
                right = f"| {offset} | {size} | `{row.group(3)}` |{row.group(4)}"
        elif kind:
            seen.setdefault("-", []).append(kind.group(2))
            if ("-", kind.group(2)) in actual:
                right = f"| {actual['-', kind.group(2)][0]} | `{kind.group(2)}` |{kind.group(3)}"
            else:
                bad.append(f"{kind.group(2)} is in no header")
        if right != line:
            bad.append(f"the page has: {line[:70]}\n  the header: {right[:70]}")
        out.append(right)
    for name, fields in structs.items():
        if name not in seen:
            bad.append(f"struct {name} is not on the page")
        elif fields != seen[name]:
            missing = [f for f in fields if f not in seen[name]]
            bad.append(f"struct {name}: {'not on the page: ' + ', '.join(missing) if missing else 'fields out of order'}")
    bad += [f"{e} is not on the page" for s, e in actual if s == "-" and e not in seen.get("-", [])]
    return out, sum(map(len, seen.values()))


def check_example(work, page, source, build, bad):
    library = os.path.join(build, "lib")
    program = re.search(r"```c\n(.*?)```", page, flags=re.S).group(1)
    options = ["-I", os.path.join(source, "include"), "-L", library, "-Wl,-rpath," + library, "-lfdr"]
    if os.environ.get("FDR_SANITIZE"):
        options.append("-fsanitize=" + os.environ["FDR_SANITIZE"])
    compile_and_run(work, "worked", program, ["-Werror", *options])
    [name] = [n for n in os.listdir(work) if n.endswith(".fdr")]
    with open(os.path.join(work, name), "rb") as f:
        image = f.read()
    count = 0
    for at, text in re.findall(r"^([0-9a-f]{5})  ((?:[0-9a-f]{2} ?){16})$", page, flags=re.M):
        count += 1
        there = image[int(at, 16) : int(at, 16) + 16].hex(" ")
        if there != text.strip():
            bad.append(f"example at {at}: the page has {text}\n  the library wrote {there}")
    if count < 10:
        bad.append("the example's dump is gone")


def main():
    source, build = os.environ.get("FDR_SOURCE", "."), os.environ.get("FDR_BUILD", "")
    path = os.path.join(source, "docs", "FORMAT.md")
    with open(path, encoding="utf-8") as f:
        page = f.read()
    header = ""
    folder = os.path.join(source, "format", "arena")
    for name in sorted(os.listdir(folder)):
        if name == "checks.h":  # describes checks, and no layout
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            header += f.read()
    structs, bad = structures(header), []
    enums = re.findall(r"^\s+(FDRI_ARENA_(?:META|DEF)_[A-Z]+)\b", header, flags=re.M)
    with tempfile.TemporaryDirectory() as work:
        actual = measure(work, source, structs, enums)
        lines, count = check_tables(page.split("\n"), actual, structs, bad)
        if "--write" in sys.argv:
            with open(path, "w", encoding="utf-8") as f:
                f.write("\n".join(lines))
        if build and os.path.exists(os.path.join(build, "lib", "libfdr.so")):
            check_example(work, page, source, build, bad)
    for line in bad:
        print(line)
    print(f"{count} fields and kinds, {len(bad)} wrong")
    return 1 if bad or count < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
