#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The verdict of test runs, from the files that `ctest --output-junit build/BUILD.xml` wrote.

verdict.py [--failed PART].. [--excused 'TEST (WHY)'].. BUILD..

Prints one line for each kind of result. Exits with 1 if a test failed, or did not run without an excuse.
--failed names a part of the run that failed without ctest, --excused a test whose packages the machine cannot get.
A test that skips itself prints `skipped: REASON`. It is excused if REASON holds a word of its `excuse=`.
"""
import argparse
import os
import re
import sys
import xml.etree.ElementTree as xml

import promises


def results(build):
    """(name, status, output) of each test in this build; status is ctest's: run, fail or notrun."""
    with open(os.path.join("build", f"{build}.xml"), encoding="utf-8", errors="replace") as f:
        # ctest writes the output of tests unchanged: remove bytes that XML forbids
        text = re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd]", "?", f.read())
    for case in xml.fromstring(text).iter("testcase"):
        yield case.get("name"), case.get("status"), case.findtext("system-out") or ""


def reasons(output):
    return re.findall(r"^.*?\bskipped: (.+)$", output, re.M) or re.findall(r"^(.+): skipped$", output, re.M)


def parts_left_out(output):
    """The functions of a passed test that skipped themselves, or else the skipped parts that its output names."""
    return re.findall(r"^\[  SKIPPED \] (?!\d+ test)(\w+)", output, re.M) or reasons(output)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--failed", action="append", default=[])
    parser.add_argument("--excused", action="append", default=[])
    parser.add_argument("builds", nargs="*")
    said = parser.parse_args()
    failed, not_run, excused, in_part, passed = list(said.failed), [], list(said.excused), [], 0
    cannot = {text.split()[0] for text in said.excused}
    excuses = {name: test.excuses for test in promises.tests() for name in test.names}
    for build in said.builds:
        where = "" if build == "dev" else f"{build}/"
        try:
            cases = list(results(build))
        except (OSError, xml.ParseError):
            not_run.append(f"all tests of {build}")
            continue
        for name, status, output in cases:
            if status == "run":
                passed += 1
                left_out = list(dict.fromkeys(parts_left_out(output)))
                if left_out:
                    in_part.append(f"{where}{name} ({', '.join(left_out)})")
            elif status == "fail":
                failed.append(where + name)
            elif name not in cannot:
                why = (reasons(output) or [""])[-1]
                known = any(word.lower() in why.lower() for word in excuses.get(name, []))
                last = output.strip().rsplit("\n", 1)[-1]
                (excused if known else not_run).append(f"{where}{name} ({why or last or 'no reason given'})")
    for title, some in (("excused in part", in_part), ("excused", excused), ("NOT RUN", not_run), ("FAILED", failed)):
        for one in some:
            print(f"== {title}: {one}")
    bad = failed or not_run
    print(f"== dev test: {'FAILED' if bad else 'ok'}, {passed} passed, {len(failed)} failed, {len(not_run)} not run, "
          f"{len(excused)} excused")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
