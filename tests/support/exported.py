# SPDX-License-Identifier: MIT
"""Recordings for the tests of exporters: events of all kinds, hostile names, reductions, damage, nothing at all. What an
exporter wrote, its own consumer reads; the test compares that with fdr dump."""
import atexit
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

BUILD, SOURCE = os.environ["FDR_BUILD"], os.environ["FDR_SOURCE"]
SANITIZED = os.environ.get("FDR_SANITIZE", "")
FDR = f"{BUILD}/bin/fdr"
if not os.path.exists(FDR):
    print("skipped: no fdr command in this build")
    sys.exit(77)
work = tempfile.mkdtemp(prefix="fdr-exported-")
atexit.register(shutil.rmtree, work, True)
bad = 0
select = ()  # filters for all dumps and exports

PROGRAM = r"""
#include <fdr/fdr.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
struct payload { uint32_t count; int64_t balance; double norm; };
static fdr_metric_id rss, delta, load, ticks;
static fdr_marker_id checkpoint;
static fdr_event_type residual, nothing;
static fdr_comm_id half;
static fdr_io_file file;
static char lengthy[10001];
static int rounds;
static double cpu(void) { struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
static void *work(void *name)
{
    fdr_thread_name(name);
    for (int i = 0; i < rounds; i++) FDR_REGION("outer \"quoted\" \\ back") {
        FDR_REGION("control \a\t\x1b[31m; and more") FDR_REGION(lengthy) {}
        FDR_REGION("not UTF-8: \xff\xfe") fdr_metric_u64(rss, 1ull << 60 | (unsigned)i);
        fdr_metric_i64(delta, -i);
        fdr_metric_f64(load, i / 7.0);
        fdr_metric_u64(ticks, (unsigned)i);
        fdr_marker(checkpoint, (unsigned)i);
        fdr_event(residual, &(struct payload){(unsigned)i, -5 - i, i * 0.1});
        fdr_event(nothing, &(char){0});
        fdr_message_send(1, 7, half, 100);
        fdr_message_recv(2, -3, 0, 200);
        fdr_collective_begin(13);
        fdr_collective_end(13, 0, -1, 8, 16);
        fdr_collective_begin_nth(11, half, (unsigned)i);
        fdr_collective_end_nth(11, half, 1, 8, 16, (unsigned)i);
        for (unsigned op = 0; op < 6; op++) {
            uint64_t began = fdr_io_begin(file, op, 512, op == 2 ? 4096 : FDR_IO_NO_OFFSET);
            fdr_io_end(file, op, i % 3 ? 500 : 0, op == 3 ? 5 : 0, began);
        }
    }
    FDR_REGION("busy") for (double end = cpu() + 0.05; cpu() < end;) {}
    return name;
}
int main(int count, char **argument)
{
    static const struct fdr_field fields[] = {{"count", FDR_U32, offsetof(struct payload, count)},
        {"balance", FDR_I64, offsetof(struct payload, balance)}, {"norm \"n\"", FDR_F64, offsetof(struct payload, norm)}};
    pthread_t t;
    rounds = count > 1 ? atoi(argument[1]) : 0;
    memset(lengthy, 'l', sizeof lengthy - 1);
    fdr_init(NULL);
    if (rounds) {
        rss = fdr_metric_define("rss", "bytes", FDR_U64, FDR_METRIC_GAUGE);
        delta = fdr_metric_define("de\"lta", "", FDR_I64, FDR_METRIC_GAUGE);
        load = fdr_metric_define("load", "1", FDR_F64, FDR_METRIC_GAUGE);
        ticks = fdr_metric_define("ticks", "", FDR_U64, FDR_METRIC_COUNTER);
        checkpoint = fdr_marker_define("check, \"point\"");
        residual = fdr_event_define("residual; \xff", fields, 3);
        nothing = fdr_event_define("nothing", NULL, 0);
        half = fdr_comm_define("row \"0\"", (const uint32_t[]){2, 1}, 2);
        file = fdr_io_file_define("/tmp/da\"ta,\xff");
        pthread_create(&t, 0, work, "second \"2\"");
        work("first");
        pthread_join(t, 0);
        FDR_REGION("left open") FDR_REGION("inner") { fdr_snapshot("now"); }
    } else fdr_snapshot("nothing");
    printf("%s\n", fdr_last_snapshot());
    fdr_finalize();
    return 0;
}
"""


def check(good, what, *shown):
    global bad
    print(("ok: " if good else "FAILED: ") + what, *([] if good else shown))
    bad += not good


def same(what, got, expected):
    """Compares two lists of tuples; shows the first differences."""
    got, expected = list(got), list(expected)
    differ = [(i, g, e) for i, (g, e) in enumerate(zip(got, expected)) if g != e][:3]
    check(got == expected, f"{what}: {len(expected)}", f"of {len(got)} and {len(expected)}, first differences:", *differ)


def tool(*arguments, **more):
    return subprocess.run([FDR, *arguments], capture_output=True, text=True, errors="surrogateescape", cwd=work,
                          timeout=300, **more)


def compiled(source, name="program"):
    with open(f"{work}/{name}.c", "w", encoding="latin-1") as f:
        f.write(source)
    lib = f"{BUILD}/lib"
    subprocess.run(["cc", "-O1", "-g", f"-I{SOURCE}/include", f"{work}/{name}.c", "-o", f"{work}/{name}", f"-L{lib}",
                    f"-Wl,-rpath,{lib}", "-lfdr", "-lpthread"], check=True)
    return f"{work}/{name}"


def record(program, *arguments, **settings):
    """Runs the program; the path of its recording, which it prints."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("FDR_")}
    env |= {"FDR_DIR": work, "FDR_LIVE_DIR": work, "FDR_LIVE_FORCE": "1", "FDR_BUFFER": "8M"} | settings
    done = subprocess.run([program, *arguments], env=env, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def recordings():
    """Name -> path."""
    program = compiled(PROGRAM)
    all_ = {
        "everything": record(program, "200", FDR_SAMPLE="1kHz"),
        "given back": record(program, "6000", FDR_BUFFER="256K"),
        "nothing": record(program),
    }
    with open(all_["given back"], "rb") as f:
        data = bytearray(f.read())
    for at in range(len(data) // 3, len(data) * 2 // 3, 5003):
        data[at] ^= 16
    all_["damaged"] = f"{work}/damaged.fdr"
    with open(all_["damaged"], "wb") as f:
        f.write(data)
    return all_


def dump(path, *more):
    """The events of fdr dump: dictionaries with location, time, kind, depth, id, name; attributes as a dictionary."""
    text = tool("dump", "--tsv", *select, *more, path).stdout
    rows = []
    for line in text.splitlines()[1:]:
        location, time, kind, depth, id_, name, more = line.split("\t")
        attributes = dict(a.split("=", 1) for a in more.split(" ") if "=" in a)
        rows.append({"location": int(location), "time": int(time), "kind": kind, "depth": int(depth), "id": int(id_),
                     "name": name, "attributes": attributes})
    return rows


def export(path, to, out, *more):
    done = tool("export", path, "--to", to, "-o", out, *select, *more)
    check(done.returncode in (0, 1) and os.path.exists(f"{work}/{out}"), f"{os.path.basename(path)} to {to}", done.stderr)
    return f"{work}/{out}"


def fails_whole(path, to, most=20000):
    """A disk that is full in the middle: one line, and no file is left."""
    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    before = set(os.listdir(work))
    done = tool("export", path, "--to", to, "-o", "full", preexec_fn=limited)
    check(done.returncode == 2 and len(done.stderr.splitlines()) == 1, f"{to}: a full disk is one line", done.stderr)
    check(set(os.listdir(work)) == before, f"{to}: a full disk leaves nothing", set(os.listdir(work)) - before)


def end():
    sys.exit(bad != 0)
