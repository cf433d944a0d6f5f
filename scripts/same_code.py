#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: same_code.py NAME_A BUILD_A NAME_B BUILD_B

Compares the functions in the object files of two builds; scripts/same_code.sh makes the builds. A function is its
instructions, in which

- a name of a function, a variable or a place in a table is a number, in the order in which the function uses them;
- a text is the text itself;
- addresses are gone, and so is the padding behind the last instruction.

Both builds are bags of functions. The two bags must be equal."""
import collections
import os
import re
import subprocess
import sys

PADDING = re.compile(r"^(nop|data16|cs nop|xchg\s+%ax,%ax|int3)")


def objects(build):
    """The object files, but for those that CMake makes to try the compiler."""
    for folder, _, files in os.walk(os.path.join(build, "CMakeFiles")):
        if ".dir" in folder and "CMakeScratch" not in folder:
            yield from (os.path.join(folder, f) for f in sorted(files) if f.endswith(".o"))


def texts(path):
    """(section, offset) -> the text there, for the sections that hold texts."""
    found = {}
    listing = subprocess.run(["readelf", "-SW", path], check=True, capture_output=True, text=True).stdout
    with open(path, "rb") as f:
        image = f.read()
    for name, off, size in re.findall(r"\] (\.rodata[.\w]*str[.\w]*)\s+PROGBITS\s+\w+ (\w+) (\w+)", listing):
        found[name] = image[int(off, 16) : int(off, 16) + int(size, 16)]
    return found


def text_at(sections, section, offset):
    bytes_ = sections[section][offset:]
    return bytes_.split(b"\0")[0].decode("latin-1")


class Function:
    """One function while it is read."""

    def __init__(self, name, sections):
        self.name, self.sections = name, sections
        self.lines, self.numbers = [], {}

    def number(self, name):
        return f"N{self.numbers.setdefault(name, len(self.numbers))}"

    def target(self, symbol, offset):
        """A name with an offset, as <name+0x12> or a relocation's name-0x4."""
        if symbol in self.sections:
            return repr(text_at(self.sections, symbol, offset + 4))
        if symbol.startswith("."):  # a place in a section: which one it is depends on its neighbours
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
        # Without the relocation the instruction leads to some place of its own function: only the relocation is true.
        self.lines[-1] = re.sub(r" self\+0x[0-9a-f]+$", "", self.lines[-1])
        self.lines.append(f"  {kind} {self.target(name, offset)}")

    def body(self):
        while self.lines and PADDING.match(self.lines[-1]):
            self.lines.pop()
        return "\n".join(self.lines)


def functions(path):
    """(name, body) of each function in an object file."""
    listing = subprocess.run(
        ["objdump", "-drw", "--no-show-raw-insn", path], check=True, capture_output=True, text=True
    ).stdout
    sections, current = texts(path), None
    for line in listing.splitlines():
        begins = re.match(r"[0-9a-f]+ <(.+)>:$", line)
        instruction = re.match(r" +[0-9a-f]+:\t(.*)$", line)
        relocation = re.search(r"\t[0-9a-f]+: (R_\w+)\t(\S+?)([+-]0x[0-9a-f]+)?$", line)
        if begins:
            if current:
                yield current.name, current.body()
            current = Function(begins.group(1), sections)
        elif instruction and current:
            # A wide line holds the instruction and the relocation in it.
            current.instruction(re.sub(r"\t[0-9a-f]+: R_.*$", "", instruction.group(1)).strip())
            if relocation:
                current.relocation(relocation.group(1), relocation.group(2), int(relocation.group(3) or "0", 16))
    if current:
        yield current.name, current.body()


def bag(build):
    """body -> names of the functions that have it."""
    found = collections.defaultdict(list)
    for path in objects(build):
        source = re.sub(r"^.*?\.dir/|\.o$", "", path)
        for name, body in functions(path):
            found[body].append(f"{source}: {name}, {body.count(chr(10)) + 1} lines")
    return found


def main():
    name_a, build_a, name_b, build_b = sys.argv[1:]
    a, b = bag(build_a), bag(build_b)
    count_a, count_b = (sum(map(len, x.values())) for x in (a, b))
    if not count_a or not count_b:
        sys.exit("same_code: a build without functions")
    different = 0
    for mine, other, name in ((a, b, name_a), (b, a, name_b)):
        for body in mine:
            for function in mine[body][len(other.get(body, [])) :]:
                print(f"only in {name}: {function}")
                different += 1
    verdict = f"different: {different}" if different else "the same code"
    print(f"{name_a}: {count_a} functions, {name_b}: {count_b} functions; {verdict}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
