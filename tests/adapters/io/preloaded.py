# SPDX-License-Identifier: MIT
"""Programs under the preloaded libfdr-io, for the tests beside this folder."""
import json
import os
import subprocess
import sys
import tempfile

BUILD, SOURCE = os.environ.get("FDR_BUILD", ""), os.environ.get("FDR_SOURCE", "")
FDR, LIBRARY = os.path.join(BUILD, "bin", "fdr"), os.path.join(BUILD, "lib", "libfdr-io.so")
PLAIN = {k: v for k, v in os.environ.items() if not k.startswith("FDR_")}


def skip(reason):
    print("skipped: " + reason)
    sys.exit(77)


def check_build():
    if os.environ.get("FDR_SANITIZE"):
        skip("not with sanitizers: their runtime must be loaded first")
    if not os.path.exists(FDR):
        skip("the command is not built (jansson or zstd missing)")


class Place:
    """A folder with the compiled program, and runs of it without and with the library."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.realpath(self.folder.name)
        self.live = tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        self.count = 0

    def compile(self, *options):
        name = os.path.join(self.path, "program" + str(self.count))
        self.count += 1
        source = os.path.join(SOURCE, "tests", "adapters", "io", "program.c")
        subprocess.run(["cc", "-O2", "-pthread", *options, source, "-o", name], check=True)
        return name

    def run(self, command, preload, **environment):
        """Returns the finished process, the folder it ran in, and its recording (None: not preloaded)."""
        folder = os.path.join(self.path, "run" + str(self.count))
        self.count += 1
        os.makedirs(os.path.join(folder, "out"))
        env = dict(PLAIN, LC_ALL="C", **environment)
        if preload:
            env.update(LD_PRELOAD=LIBRARY, FDR_FINALIZE="snapshot", FDR_BUFFER="8M", FDR_FORK="off",
                       FDR_DIR=os.path.join(folder, "out"), FDR_LIVE_DIR=self.live.name, FDR_LIVE_FORCE="1")
            env.update(environment)
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, timeout=120, check=False)
        files = sorted(os.listdir(os.path.join(folder, "out")))
        name = os.path.basename(command[0])
        mine = [f for f in files if f.startswith(name + ".")]
        return done, folder, os.path.join(folder, "out", mine[0]) if mine else None


def fdr_json(*arguments):
    return json.loads(subprocess.run([FDR, *arguments], check=True, capture_output=True).stdout)


def calls_by_region(recording):
    return {r["name"]: r["calls"] for r in fdr_json("stats", "--json", recording)}


def by_file(recording):
    """(file, operation) -> (operations, bytes)"""
    rows = fdr_json("stats", "--by", "file", "--json", recording)
    return {(r["file"], r["operation"]): (r["operations"], r["bytes"]) for r in rows}
