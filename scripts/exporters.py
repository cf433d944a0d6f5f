#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The formats of `fdr export` in README.md and man/fdr.1.scd, as the built command lists them.

exporters.py --write  writes both lists anew
exporters.py --check  fails if one of them is out of date

FDR_BUILD: the build with the command; default build/dev."""
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FDR = os.path.join(os.environ.get("FDR_BUILD", os.path.join(ROOT, "build", "dev")), "bin", "fdr")


def readme(formats):
    return ", ".join(f"`{f['name']}`" for f in formats)


def man(formats):
    lines = []
    for f in formats:
        lines += ["", f"\t- _{f['name']}_: {f['help']}"]
        lines += [f"\t\t- *--set* {o['name']}=_{o['value']}_: {o['help']}" for o in f["options"]]
    return "\n".join(line for line in lines if line)


# File -> the text before the list, behind it, and the function that makes it.
PLACES = {
    "README.md": ("<!-- exporters -->", "<!-- end -->", readme),
    "man/fdr.1.scd": ("; begin of the formats: written by scripts/exporters.py\n", "\n; end of the formats", man),
}


def main():
    if sys.argv[1:] not in (["--write"], ["--check"]):
        sys.exit(__doc__.strip())
    formats = json.loads(subprocess.run([FDR, "export", "--list", "--json"], check=True, capture_output=True).stdout)
    bad = []
    for name, (before, behind, make) in PLACES.items():
        path = os.path.join(ROOT, name)
        with open(path, encoding="utf-8") as f:
            old = f.read()
        pattern = re.compile(re.escape(before) + "(.*?)" + re.escape(behind), re.S)
        if len(pattern.findall(old)) != 1:
            sys.exit(f"{name}: one list of formats is expected, between '{before.strip()}' and '{behind.strip()}'")
        new = pattern.sub(lambda _: before + make(formats) + behind, old)
        if new != old and sys.argv[1] == "--check":
            bad.append(f"{name} is out of date: run scripts/exporters.py --write")
        elif new != old:
            with open(path, "w", encoding="utf-8") as f:
                f.write(new)
    if bad:
        sys.exit("\n".join(bad))
    print(f"{len(formats)} formats")


if __name__ == "__main__":
    main()
