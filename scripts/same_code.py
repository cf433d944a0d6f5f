#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: same_code.py NAME_A BUILD_A NAME_B BUILD_B

Compares the functions in the object files of two builds; scripts/same_code.sh makes the builds. A function is its
instructions, in which

- a name of ours, of a function, a variable or a place in a table, is a number, in the order in which the function uses
  them; names of other libraries stay;
- a text is the text itself;
- addresses are left out, and so is the padding behind the last instruction.

Both builds are bags of functions. The two bags must be equal. And names must go with each other: a global name of A
has one name in B, in all functions that occur once."""
import collections
import os
import re
import subprocess
import sys

PADDING = re.compile(r"^(nop|data16|cs nop|xchg\s+%ax,%ax|int3)")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def objects(build):
    """The object files, but for those that CMake makes to try the compiler."""
    for folder, _, files in os.walk(os.path.join(build, "CMakeFiles")):
        if ".dir" in folder and "CMakeScratch" not in folder:
            yield from (os.path.join(folder, f) for f in sorted(files) if f.endswith(".o"))


def texts(path):
    """Returns a function (symbol, offset) -> the text that a relocation with this place refers to."""
    sections, places = {}, {}
    with open(path, "rb") as f:
        image = f.read()
    for number, name, off, size in re.findall(
        r"\[ *(\d+)\] (\.rodata[.\w]*str[.\w]*)\s+PROGBITS\s+\w+ (\w+) (\w+)", run("readelf", "-SW", path)
    ):
        sections[number] = image[int(off, 16) : int(off, 16) + int(size, 16)]
        places[name] = (number, 0)
    for value, number, name in re.findall(
        r"^ *\d+: (\w+) +\d+ NOTYPE +LOCAL +DEFAULT +(\d+) (\.LC\d+)$", run("readelf", "-sW", path), flags=re.M
    ):
        if number in sections:
            places[name] = (number, int(value, 16))

    def text(symbol, offset):
        if symbol not in places:
            return None
        number, begin = places[symbol]
        return sections[number][begin + offset :].split(b"\0")[0].decode("latin-1")

    return text


def defined(build):
    """The names that the build defines itself: all, and those that are global."""
    every, everywhere = set(), set()
    for path in objects(build):
        for line in run("nm", "--defined-only", path).splitlines():
            name = line.split()[-1].split(".")[0]
            every.add(name)
            if line.split()[-2].isupper():
                everywhere.add(name)
    return every, everywhere


class Function:
    """One function while it is read."""

    def __init__(self, name, text, ours):
        self.name, self.text, self.ours = name, text, ours
        self.lines, self.numbers = [], {}

    def number(self, name):
        if isinstance(name, str) and name.split(".")[0] not in self.ours:
            return name
        return f"N{self.numbers.setdefault(name, len(self.numbers))}"

    def target(self, kind, symbol, offset):
        """A name with an offset, as a relocation has it."""
        # The offset of a relative place counts from the end of the instruction, four bytes behind it.
        text = self.text(symbol, offset + (4 if "PC32" in kind or "PLT32" in kind else 0))
        if text is not None:
            return repr(text)
        if symbol.startswith("."):  # a place in a section: its neighbours decide which one it is
            return self.number((symbol, offset))
        return f"{self.number(symbol)}{offset:+#x}"

    def instruction(self, text):
        text = re.sub(r"\s*#.*$", "", text)
        jump = re.match(r"(\S+(?:\s+\S+)*?)\s+[0-9a-f]+ <([^>+]+)(?:\+0x([0-9a-f]+))?>$", text)
        if jump:
            mnemonic, name, offset = jump.groups()
            offset = int(offset or "0", 16)
            where = f"self+{offset:#x}" if name == self.name else f"{self.number(name)}+{offset:#x}"
            text = f"{mnemonic} {where}"
        self.lines.append(text)

    def relocation(self, kind, name, offset):
        # Without the relocation the instruction leads to a wrong place in its own function. Only the relocation is
        # right.
        self.lines[-1] = re.sub(r" self\+0x[0-9a-f]+$", "", self.lines[-1])
        self.lines.append(f"  {kind} {self.target(kind, name, offset)}")

    def body(self):
        while self.lines and PADDING.match(self.lines[-1]):
            self.lines.pop()
        return "\n".join(self.lines)


def functions(path, ours):
    """Each function in an object file."""
    text, current = texts(path), None
    for line in run("objdump", "-drw", "--no-show-raw-insn", path).splitlines():
        begins = re.match(r"[0-9a-f]+ <(.+)>:$", line)
        instruction = re.match(r" +[0-9a-f]+:\t(.*)$", line)
        relocation = re.search(r"\t[0-9a-f]+: (R_\w+)\t(\S+?)([+-]0x[0-9a-f]+)?$", line)
        if begins:
            if current:
                yield current
            current = Function(begins.group(1), text, ours)
        elif instruction and current:
            # A wide line holds the instruction and the relocation in it.
            current.instruction(re.sub(r"\t[0-9a-f]+: R_.*$", "", instruction.group(1)).strip())
            if relocation:
                current.relocation(relocation.group(1), relocation.group(2), int(relocation.group(3) or "0", 16))
    if current:
        yield current


class Build:
    """body -> the functions with this body: for each its label in messages, and the names it uses, in order."""

    def __init__(self, folder):
        ours, self.everywhere = defined(folder)
        self.functions, self.count = collections.defaultdict(list), 0
        for path in objects(folder):
            source = re.sub(r"^.*?\.dir/|\.o$", "", path)
            for f in functions(path, ours):
                body = f.body()
                title = f"{source}: {f.name}, {body.count(chr(10)) + 1} lines"
                self.functions[body].append((title, list(f.numbers)))
                self.count += 1


def unpaired(a, b, name_a, name_b):
    """Functions that the other build lacks."""
    for mine, other, name in ((a, b, name_a), (b, a, name_b)):
        for body, found in mine.functions.items():
            for title, _ in found[len(other.functions.get(body, [])) :]:
                yield f"only in {name}: {title}"


def renamed_twice(a, b):
    """Global names of A that have more than one name in B."""
    meaning = {}
    for body, found in a.functions.items():
        others = b.functions.get(body, [])
        if len(found) != 1 or len(others) != 1:
            continue
        for mine, other in zip(found[0][1], others[0][1]):
            if mine in a.everywhere and other in b.everywhere:
                if meaning.setdefault(mine, other) != other:
                    yield f"{others[0][0]}: uses {other} where {mine} is {meaning[mine]} elsewhere"


def main():
    name_a, build_a, name_b, build_b = sys.argv[1:]
    a, b = Build(build_a), Build(build_b)
    if not a.count or not b.count:
        sys.exit("same_code: a build without functions")
    found = [*unpaired(a, b, name_a, name_b), *renamed_twice(a, b)]
    for line in found:
        print(line)
    verdict = f"different: {len(found)}" if found else "the same code"
    print(f"{name_a}: {a.count} functions, {name_b}: {b.count} functions; {verdict}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
