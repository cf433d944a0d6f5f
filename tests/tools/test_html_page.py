#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=120 promise=P8
# P8: fdr html without a browser. Names with HTML stay text in the first screen, which stands before every script. The
# content security policy names the hashes of the script and the style that follow. The recording in the page unpacks to
# the file, --redact and --size leave it out, and a page that cannot be written leaves nothing behind.
import base64
import gzip
import hashlib
import html.parser
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import evt_stream  # noqa: E402
import exported  # noqa: E402

fdr = os.environ["FDR_BUILD"] + "/bin/fdr"
if not os.path.exists(fdr):
    print("skipped: no fdr command in this build")
    sys.exit(77)
work = tempfile.mkdtemp(prefix="fdr-html-page-")
ENTER, LEAVE = evt_stream.ENTER, evt_stream.LEAVE
NAMES = (b"<img src=x onerror=alert(1)>", b"</script><b>&amp;\x01", b"\xff\xfe", b"\xe2\x80\xaeturned", b"y" * 10000)


def run(*arguments, code=0):
    done = subprocess.run([fdr, *arguments], capture_output=True, text=True, errors="replace", cwd=work)
    assert done.returncode == code, (arguments, done.returncode, done.stderr)
    return done.stderr


def read(name):
    with open(f"{work}/{name}", "rb") as f:
        return f.read()


class Page(html.parser.HTMLParser):
    """Elements, texts and blocks of a page."""

    def __init__(self, name):
        super().__init__()
        self.tags, self.texts, self.blocks, self.policy, self.block = [], [], [], "", None
        self.feed(read(name).decode())

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append(tag)
        if attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"]
        self.block = attributes if tag in ("script", "style") else None

    def handle_data(self, data):
        if self.block is None:
            self.texts.append(data)
        else:
            self.blocks.append((self.block, data))
            self.block = None

    def unpacked(self, **wanted):
        """The bytes of the blocks with these attributes."""
        found = [text for attributes, text in self.blocks if all(attributes.get(k) == v for k, v in wanted.items())]
        return b"".join(gzip.decompress(base64.b64decode(text)) for text in found)


def check_policy(page):
    assert page.policy.startswith("default-src 'none'"), page.policy
    own = [text for attributes, text in page.blocks if attributes.get("type") != "text/plain"]
    assert len(own) == 2
    for text in own:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in page.policy, digest
    assert "unsafe-inline" not in page.policy and "http" not in page.policy


try:
    with open(f"{work}/one.evt", "wb") as f:
        f.write(evt_stream.stream([ENTER | i for i in range(5)], names=NAMES))
    run("replay", "one.evt", "--buffer", "1M", "-o", "one.fdr")
    run("html", "one.fdr", "-o", "one.html")
    page, text = Page("one.html"), "".join(Page("one.html").texts)
    assert not {"img", "b", "iframe", "link"} & set(page.tags), set(page.tags)
    assert "<img src=x onerror=alert(1)>" in text and "</script><b>&amp;\ufffd" in text and "\ufffdturned" in text
    assert read("one.html").index(b"</main>") < read("one.html").index(b"<script")
    check_policy(page)
    assert page.unpacked(**{"data-file": "0"}) == read("one.fdr")
    data = json.loads(page.unpacked(id="data"))
    regions = data["files"][0]["regions"]
    assert regions[1] == NAMES[0].decode() and max(map(len, regions)) > 1000, [r[:99] for r in regions]
    assert os.stat(f"{work}/one.html").st_mode & 0o777 == 0o600
    print("a page:", len(read("one.html")), "bytes")

    run("html", "one.fdr", "--redact", "-o", "redacted.html")
    host = os.uname().nodename
    redacted = Page("redacted.html")
    assert not redacted.unpacked(**{"data-file": "0"}) and work.encode() not in read("redacted.html")
    assert not any(re.search(rf"\b{re.escape(host)}\b", t) for t in redacted.texts) or len(host) < 3
    files = exported.record(exported.compiled(exported.PROGRAM), "5")  # /tmp/da"ta and more, the last moments of both threads
    for more, shown in ((), True), (("--redact",), False):
        run("html", files, *more, "-o", "files.html")
        assert any("/tmp/da" in t for t in Page("files.html").texts) == shown, more
    crash = "#include <fdr/fdr.h>\n#include <signal.h>\nint main(void) { fdr_init(0); FDR_REGION(\"a\") raise(SIGFPE); }"
    done = subprocess.run([exported.compiled(crash, "crash")], env=os.environ | {"FDR_DIR": work, "FDR_LIVE_DIR": work, "FDR_LIVE_FORCE": "1"})
    bundle = [f for f in os.listdir(work) if f.endswith(".crash.fdr")]
    assert done.returncode < 0 and len(bundle) == 1, bundle
    run("html", bundle[0], "-o", "crash.html")
    moments = json.loads(Page("crash.html").unpacked(id="data"))["files"][0]
    assert moments["instants"] == [[moments["instants"][0][0], "SIGFPE"]], moments["instants"]
    assert moments["first"] <= moments["instants"][0][0] <= moments["end"]
    run("html", "one.fdr", "one.fdr", "--size", "1K", "-o", "small.html")
    assert not Page("small.html").unpacked(**{"data-file": "0"}) and len(json.loads(Page("small.html").unpacked(id="data"))["files"]) == 2

    run("html", "one.fdr", code=64)
    run("html", "-o", "none.html", code=64)
    run("html", "one.fdr", "--size", "much", "-o", "none.html", code=64)
    assert "one.fdr" in run("html", "one.fdr", "-o", "one.fdr", code=64)
    assert "none.fdr" in run("html", "none.fdr", "-o", "none.html", code=2)
    assert "no/such" in run("html", "one.fdr", "-o", "no/such.html", code=2)
    left = sorted(f for f in os.listdir(work) if f.startswith("none") or f.endswith(".part"))
    assert not left, left
finally:
    shutil.rmtree(work)
