#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads the `ctest:` lines of all tests (cmake/FdrTests.cmake lists their words). docs/DESIGN.md has the promises.

promises.py --write         writes tests/README.md
promises.py --check         fails if tests/README.md is out of date, or a `ctest:` line holds an unknown word
promises.py --select NAME.. prints the tests of these names; a name may be that of a promise (P3), or lack the prefix test_
"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join("tests", "README.md")

DESIGN = os.path.join("docs", "DESIGN.md")


def promises():
    """Number -> (title, meaning), from the table of DESIGN.md."""
    with open(os.path.join(ROOT, DESIGN), encoding="utf-8") as f:
        rows = re.findall(r"^\| (P\d+) \| (.+?) \| (.+) \|$", f.read(), re.M)
    if not rows:
        sys.exit(f"{DESIGN} has no table of promises")
    return {number: (title[0].upper() + title[1:], meaning) for number, title, meaning in rows}


PROMISES = promises()

LABELS = {
    "unit": "one part of the libraries, alone or through the public header",
    "stress": "many threads, or much data, at full speed",
    "signals": "signal handlers, jumps out of them, crashes, kills",
    "tools": "the `fdr` command and its output",
    "house": "rules about the sources, the texts and the packages",
    "corpus": "recorded streams of real programs",
    "models": "the models of the lock-free code (`*.pml`), searched by spin",
    "demo": "the demo of `./dev demo`",
    "cross": "aarch64, compiled here and run by qemu-user",
    "threads": "several threads, or signal handlers, act at once",
    "slow": "not part of `./dev test`",
}

WORDS = {"label", "promise", "timeout", "serial", "without", "excuse", "clock", "wrap"}
BUILDS = {"asan", "tsan", "ubsan"}


class Test:
    """One test file; `names` has more than one name if the test runs once more by another clock."""

    def __init__(self, path):
        self.path = path
        self.name, extension = os.path.splitext(os.path.basename(path))
        self.compiled = extension == ".c"
        with open(os.path.join(ROOT, path), encoding="utf-8") as f:
            lines = [line for line, _ in zip(f, range(5))]
        self.words, self.reasons, self.unknown = {}, [], []
        for line in lines:
            _, found, text = line.partition("ctest:")
            if not found:
                continue
            self.reasons += re.findall(r"\(([^)]*)\)", text)
            for word in re.sub(r"\([^)]*\)", "", text.replace("*/", "")).split():
                key, _, value = word.partition("=")
                if key not in WORDS or (key in self.words and key != "wrap"):
                    self.unknown.append(word)
                self.words[key] = [part for part in value.split(",") if part]
        self.labels = self.words.get("label", ["unit" if self.compiled else "house"])
        self.promises = self.words.get("promise", [])
        self.without = self.words.get("without", [])
        self.excuses = self.words.get("excuse", [])
        self.names = [self.name] + [f"{self.name}_{clock}" for clock in self.words.get("clock", [])]

    def complaints(self):
        for word in self.unknown:
            yield f"unknown or repeated word '{word}'"
        for values, known in ((self.labels, LABELS), (self.promises, PROMISES), (self.without, BUILDS)):
            yield from (f"unknown value '{value}'" for value in values if value not in known)
        if bool(self.without) != bool(self.reasons):
            yield "without= and its (reason) belong together"


def tests():
    found = []
    for folder, folders, files in os.walk(os.path.join(ROOT, "tests")):
        if os.path.relpath(folder, ROOT) == "tests":
            folders[:] = [name for name in folders if name != "consumer"]
        found += [os.path.relpath(os.path.join(folder, name), ROOT) for name in files
                  if re.fullmatch(r"test_\w+\.(c|sh|py)", name)]
    return sorted((Test(path) for path in found), key=lambda test: test.name)


def names(some):
    return ", ".join(test.name.removeprefix("test_") for test in some) or "none"


def page(all_tests):
    text = ["<!-- SPDX-License-Identifier: MIT -->", "# Tests", "",
            "`scripts/promises.py --write` generates this page from the `ctest:` lines of the tests. Do not edit it.", "",
            "## Names", "",
            "A test is one file `test_NAME.c`, `test_NAME.sh` or `test_NAME.py`, in any folder below `tests/`. Its name is",
            "unique in all folders. Files without the prefix `test_` are helpers. The first lines of a test say what it proves.",
            "A comment there that begins with `ctest:` sets its properties; `cmake/FdrTests.cmake` lists the words. A function",
            "of a test begins with the promises that it proves: `P3_...`.", "",
            "## Running", "",
            "| command | runs |", "|---|---|",
            "| `./dev test` | every test without the label `slow` |",
            "| `./dev test full` | every test; those with the labels below under the sanitizers; a minute of fuzzing |",
            "| `./dev test NAME...` | these tests, with or without the prefix `test_`; `P3` runs the tests of that promise |",
            "| `ctest --preset tsan -R NAME` | one test under a sanitizer, after `cmake --preset tsan` and "
            "`cmake --build --preset tsan` |", "",
            "AddressSanitizer and UndefinedBehaviorSanitizer run the labels `unit`, `stress` and `threads`. ThreadSanitizer runs",
            "the label `threads`.", "",
            "A test may lack something of the machine. It then prints `skipped: REASON` and exits with status 77. The verdict",
            "excuses it by name if the reason holds a word of `excuse=` in its `ctest:` line. Any other skip fails the run.", "",
            "## Labels", "",
            "| label | meaning | tests |", "|---|---|---|"]
    for label, meaning in LABELS.items():
        text.append(f"| `{label}` | {meaning} | {sum(label in test.labels for test in all_tests)} |")
    text += ["", "## Promises", "", "| promise | meaning | fast tests | slow tests |", "|---|---|---|---|"]
    for promise, (title, meaning) in PROMISES.items():
        some = [test for test in all_tests if promise in test.promises]
        fast, slow = ([test for test in some if ("slow" in test.labels) == is_slow] for is_slow in (False, True))
        text.append(f"| {promise} {title} | {meaning} | {names(fast)} | {names(slow)} |")
    text += ["| none | Tools, formats, house rules, how well memory is used. | "
             + " | ".join(names(test for test in all_tests if not test.promises and ("slow" in test.labels) == is_slow)
                          for is_slow in (False, True)) + " |", "",
             "## Not under every sanitizer", "", "| test | without | reason |", "|---|---|---|"]
    for test in all_tests:
        if test.without:
            text.append(f"| {test.name.removeprefix('test_')} | {', '.join(test.without)} | {'; '.join(test.reasons)} |")
    return "\n".join(text) + "\n"


def select(all_tests, wanted):
    chosen = []
    for want in wanted:
        some = [name for test in all_tests for name in test.names
                if want in test.promises or name in (want, f"test_{want}")]
        if not some:
            sys.exit(f"dev test: no test has the name '{want}'")
        chosen += some
    print("\n".join(dict.fromkeys(chosen)))


def main():
    all_tests, verb = tests(), sys.argv[1:2]
    if verb == ["--select"]:
        return select(all_tests, sys.argv[2:])
    if verb not in (["--write"], ["--check"]):
        sys.exit(__doc__.strip())
    bad = [f"{test.path}: {what}" for test in all_tests for what in test.complaints()]
    seen = [test.name for test in all_tests]
    bad += [f"{name}: two tests have this name" for name in sorted(set(seen)) if seen.count(name) > 1]
    path, new = os.path.join(ROOT, PAGE), page(all_tests)
    old = None
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            old = f.read()
    if verb == ["--write"]:
        with open(path, "w", encoding="utf-8") as f:
            f.write(new)
    elif old != new:
        bad.append(f"{PAGE} is out of date: run scripts/promises.py --write")
    if bad:
        sys.exit("\n".join(bad))
    print(f"{len(all_tests)} tests")


if __name__ == "__main__":
    main()
