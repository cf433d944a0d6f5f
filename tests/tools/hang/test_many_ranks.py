#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=300
"""fdr hang over the recordings of 64 ranks, made by benchmarks/bench_scale: healthy, slow, hung in each way that files can
show, with a quarter of the files missing. Each verdict is right, and nobody else is accused. Costs are not judged."""
import os
import subprocess
import sys

SOURCE, BUILD = os.environ["FDR_SOURCE"], os.environ["FDR_BUILD"]


def main():
    for name in ("bin/fdr", "benchmarks/bench_scale"):
        if not os.path.exists(os.path.join(BUILD, name)):
            print(f"skipped: no {name}")
            return 77
    if os.environ.get("FDR_SANITIZE"):
        print("skipped: sanitizers have handlers of their own")
        return 77
    script = os.path.join(SOURCE, "benchmarks/scale.py")
    return subprocess.run([sys.executable, script, "--ranks", "64", "--ways", "16", "--rounds", "1"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
