#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools,slow timeout=600 promise=P8 excuse=node,chromium,playwright
# P8: the page in a real browser, from disk. It asks for nothing, breaks no rule of its content security policy, shows
# every call that `fdr dump` shows, and zooms, picks and searches by keyboard and mouse. Names with HTML, quotes,
# controls, 10 KB, bytes that are not UTF-8 and right-to-left text inject nothing. Recordings that are empty, have one
# event, 1,000 locations, 100,000 regions or damage open, too.
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import evt_stream  # noqa: E402

source, fdr = os.environ["FDR_SOURCE"], os.environ["FDR_BUILD"] + "/bin/fdr"
browser = shutil.which("chromium") or shutil.which("chromium-browser")
for missing, there in (
    ("fdr command", os.path.exists(fdr)), ("node", shutil.which("node")), ("chromium", browser),
    ("playwright-core: run `npm ci` in web/", os.path.isdir(f"{source}/web/node_modules/playwright-core")),
):
    if not there:
        print(f"skipped: no {missing}")
        sys.exit(77)
work = tempfile.mkdtemp(prefix="fdr-html-browser-")
ENTER, LEAVE = evt_stream.ENTER, evt_stream.LEAVE
HOSTILE = (
    b"<img src=x onerror=\"injected=1\">", b"</script><script>injected=1</script>", b"<!-- <b>'\"&amp; \x01\x1b[31m\x7f",
    b"x" * 10000, b"\xff\xfe\xc0\x80 not UTF-8", "\u202egnp.exe \u05e9\u05dc\u05d5\u05dd".encode(), b"</bdi></table>", b"",
)


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=work)


def recorded(name, words, names, streams=1, buffer="1M"):
    with open(f"{work}/one.evt", "wb") as f:
        f.write(evt_stream.stream(words, [7] * len(words), names))
    done = run(fdr, "replay", *["one.evt"] * streams, "--buffer", buffer, "-o", f"{name}.fdr")
    assert done.returncode == 0, done.stderr
    return name


def page(name, out=None, *options):
    path = f"{work}/{out or name}.html"
    done = run(fdr, "html", f"{name}.fdr", "-o", path, *options)
    assert done.returncode == 0, (name, done.returncode, done.stderr)
    return path


def damaged(name):
    with open(f"{work}/{name}.fdr", "rb") as f:
        image = bytearray(f.read())
    used = [at for at, byte in enumerate(image) if byte]
    for at in used[len(used) // 2 :: 500]:
        image[at] ^= 0x55
    with open(f"{work}/damaged.fdr", "wb") as f:
        f.write(image)
    done = run(fdr, "html", "damaged.fdr", "-o", "damaged.html")
    assert done.returncode in (0, 1), done.stderr
    return f"{work}/damaged.html"


def calls_of(name):
    return sum(line.split("\t")[2] == "enter" for line in run(fdr, "dump", "--tsv", f"{name}.fdr").stdout.splitlines()[1:])


try:
    every = [ENTER | i for i in range(len(HOSTILE))]
    recorded("hostile", every + [LEAVE | i for i in reversed(range(3, len(HOSTILE)))], HOSTILE)
    recorded("usual", [ENTER, ENTER | 1, LEAVE | 1, LEAVE] * 5000, (b"outer", b"b"))
    recorded("empty", [], (b"a",))
    recorded("one", [ENTER], (b"a",))
    recorded("many", [ENTER, LEAVE] * 3, (b"a",), streams=1000, buffer="64M")
    recorded("deep", [ENTER] * 1200 + [LEAVE] * 1200, (b"a",), buffer="4M")
    words = [w for i in range(100000) for w in (ENTER | i, LEAVE | i)]
    recorded("regions", words, tuple(b"region %d" % i for i in range(100000)), buffer="64M")
    names = ["hostile", "usual", "empty", "one", "many", "deep", "regions"]
    pages = [page(n) for n in names] + [damaged("usual"), page("hostile", "redacted", "--redact")]
    told = run("node", f"{source}/tests/tools/html_browser.mjs", browser, *pages)
    assert told.returncode == 0, told.stderr
    seen = [json.loads(line) for line in told.stdout.splitlines()]
    for name, s in zip(names + ["damaged", "redacted"], seen, strict=True):
        print(name, {k: v for k, v in s.items() if k not in ("path", "open")})
        assert not s["errors"] and not s["requests"] and not s["elements"] and not s["injected"], s
        if name in names:
            assert s["loaded"] == [True] and s["calls"] == calls_of(name), (name, calls_of(name))
    hostile, usual, many = seen[0], seen[1], seen[4]
    assert "<img src=x" in hostile["open"] and "</script>" in hostile["open"]
    assert usual["zooms"] and usual["facts"] == "outer" and many["locations"] == 1000
    assert usual["view"] == [10, 30] or usual["view"] == [5, 25], usual["view"]
    assert seen[-1]["loaded"] == [False]
finally:
    shutil.rmtree(work)
