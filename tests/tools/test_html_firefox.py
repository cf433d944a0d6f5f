#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools,slow timeout=300 promise=P8 excuse=firefox
# P8: the page in Firefox, from disk: it decodes every call that `fdr dump` shows, draws, zooms by keyboard, asks for
# nothing outside, and hostile names inject nothing.
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import evt_stream  # noqa: E402
import marionette  # noqa: E402
from evt_stream import ENTER, LEAVE, RECV, SEND  # noqa: E402

fdr = os.environ["FDR_BUILD"] + "/bin/fdr"
browser = shutil.which("firefox-esr") or shutil.which("firefox")
for missing, there in (("fdr command", os.path.exists(fdr)), ("firefox", browser)):
    if not there:
        print(f"skipped: no {missing}")
        sys.exit(77)
work = tempfile.mkdtemp(prefix="fdr-html-firefox-")
HOSTILE = (b"<img src=x onerror=\"injected=1\">", b"</script><script>injected=1</script>", b"\xff\xfe", b"x" * 10000)
LOADED = 'return performance.getEntriesByName("fdr-loaded").length'
CALLS = """
    let calls = 0;
    for (const l of fdrPage.timeline.locations) {
        const file = fdrPage.model.files[l.file];
        const want = [{ location: l.id, depth: 0 }];
        const [[, lanes]] = await fdrPage.ask("lanes", file, { want, from: 0, to: file.end - file.first, cells: 2 ** 31 - 1 });
        for (const lane of lanes.values()) calls += lane.n;
    }
    return calls;"""
# Pixels of the picture that are neither paper nor writing of one colour: there is something to see.
COLOURS = """
    const { timeline: t } = fdrPage, p = t.context.getImageData(150, 20, t.width - 150, t.height - 20).data, seen = new Set();
    for (let i = 0; i < p.length; i += 4) seen.add(p[i] << 16 | p[i + 1] << 8 | p[i + 2]);
    return seen.size;"""


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=work)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


def recorded(name, words, names, messages=()):
    with open(f"{work}/{name}.evt", "wb") as f:
        f.write(evt_stream.stream(words, [7] * len(words), names, messages))
    run(fdr, "replay", f"{name}.evt", "--buffer", "1M", "-o", f"{name}.fdr")
    return f"{name}.fdr"


def calls_of(*files):
    lines = run(fdr, "dump", "--tsv", *files).splitlines()[1:]
    return sum(line.split("\t")[2] == "enter" for line in lines)


def look(firefox, page, files, zooms):
    firefox.open(f"{work}/{page}")
    firefox.wait_for(LOADED)
    calls, want = firefox.evaluate_later(CALLS), calls_of(*files)
    outside = firefox.evaluate('return performance.getEntriesByType("resource").map((r) => r.name).filter((n) => !/^(blob|data):/.test(n))')
    injected = firefox.evaluate("return [globalThis.injected || 0, document.querySelectorAll('img, script[src], iframe').length]")
    print(page, "calls", calls, "of", want, "colours", firefox.evaluate(COLOURS))
    assert calls == want, (calls, want)
    assert not outside and injected == [0, 0], (outside, injected)
    assert firefox.evaluate(COLOURS) > 3
    if zooms:
        before = firefox.evaluate("document.querySelector('#timeline canvas').focus(); return fdrPage.view.span")
        firefox.key("w")
        assert firefox.evaluate("return fdrPage.view.span") < before


try:
    hostile = recorded("hostile", [ENTER | i for i in range(4)] + [LEAVE | 3], HOSTILE)
    run(fdr, "html", hostile, "-o", "hostile.html")
    steps = [ENTER, ENTER | 1, LEAVE | 1, LEAVE] * 2000
    ranks = [recorded(f"job.r{r}.t0", steps + [ENTER, kind, kind, LEAVE], (b"step", b"b"), [(1 - r, 3, 8)])
             for r, kind in ((0, SEND), (1, RECV))]
    run(fdr, "html", *ranks, "-o", "job.html")
    with marionette.Firefox(browser, work) as firefox:
        look(firefox, "hostile.html", [hostile], False)
        look(firefox, "job.html", ranks, True)
        assert firefox.evaluate("return fdrPage.model.messages.n") == 2
finally:
    shutil.rmtree(work, ignore_errors=True)
