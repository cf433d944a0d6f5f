#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=120 excuse=SQLite,sqlite3
# Each query of docs/SQL.md answers its question on recordings of two ranks; the page has every table with its columns.
# sqlite3 with libfdr-sqlite gives the same answers as fdr sql, and refuses what is no recording.
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import exported as x  # noqa: E402

if "sqlite" not in x.tool("version", "--build").stdout:
    print("skipped: this build has no SQLite")
    sys.exit(77)

PROGRAM = r"""
#include <fdr/fdr.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
struct fall { uint32_t step; double norm; };
static double cpu(void) { struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
int main(void)
{
    static const struct fdr_field fields[] = {{"step", FDR_U32, offsetof(struct fall, step)}, {"norm", FDR_F64, offsetof(struct fall, norm)}};
    unsigned rank = (unsigned)atoi(getenv("OMPI_COMM_WORLD_RANK"));
    fdr_init(NULL);
    fdr_metric_id rss = fdr_metric_define("rss", "bytes", FDR_U64, FDR_METRIC_GAUGE);
    fdr_event_type residual = fdr_event_define("residual", fields, 2);
    fdr_io_file file = fdr_io_file_define("/tmp/out");
    fdr_thread_name("main");
    for (unsigned i = 0; i < 9000; i++) FDR_REGION("step") {
        FDR_REGION("solve") FDR_REGION("solve") {}
        if (rank == 0) fdr_message_send_nth(1, 7, 0, 100, i);
        else fdr_message_recv_nth(0, 7, 0, 100, i);
        fdr_collective_begin_nth(13, 0, i);
        fdr_collective_end_nth(13, 0, -1, 8, 8, i);
        fdr_metric_u64(rss, 1000 + i * i);
        fdr_event(residual, &(struct fall){i, 1.0 / (i + 1)});
        uint64_t began = fdr_io_begin(file, FDR_IO_WRITE, 512, FDR_IO_NO_OFFSET);
        fdr_io_end(file, FDR_IO_WRITE, 512, 0, began);
        if (i == 8990) for (double end = cpu() + 0.05; cpu() < end;) {}
    }
    fdr_snapshot("now");
    printf("%s\n", fdr_last_snapshot());
    fdr_finalize();
    return 0;
}
"""
program = x.compiled(PROGRAM)
ranks = [x.record(program, OMPI_COMM_WORLD_RANK=str(r), FDR_BUFFER="256K", FDR_SAMPLE="1kHz") for r in (0, 1)]
with open(f"{x.SOURCE}/docs/SQL.md", encoding="utf-8") as f:
    page = f.read()


def ask(query, *paths):
    done = x.tool("sql", *(paths or ranks), query, "--json")
    x.check(done.returncode == 0, query[:70].replace("\n", " "), done.stderr)
    return json.loads(done.stdout or "[]")


answers = {}
for query in re.findall(r"```sql\n(.*?)```", page, re.S):
    answers[query.strip()] = rows = ask(query.strip())
    x.check(rows, "  has rows", query)
x.check(len(answers) >= 15, "queries of the page", len(answers))


def answer(word):
    return next(rows for query, rows in answers.items() if word in query)


x.check(answer("seconds desc")[0]["name"] in ("step", "solve"), "time", answer("seconds desc"))
x.check({r["calls"] for r in answer("seconds desc")} == {18000, 36000}, "totals are exact", answer("seconds desc"))
x.check({(r["rank"], r["thread"]) for r in answer("as thread")} >= {(0, "main"), (1, "main")}, "slow steps", answer("as thread"))
x.check({r["name"] for r in answer("with slow")} == {"step", "solve"}, "inside of the slowest step", answer("with slow"))
x.check([r["caller"] for r in answer("select caller")][:2] in (["solve", "step"], ["step", "solve"]), "callers", answer("select caller"))
pairs = json.loads(x.tool("messages", *ranks, "--json").stdout)["counts"]["matched"]
rows = answer("most_us")
x.check([(r["sender"], r["receiver"], r["tag"]) for r in rows] == [(0, 1, 7)] and rows[0]["messages"] == pairs > 0, "messages", rows, pairs)
x.check({r["rank"] for r in answer("waited_ms")} <= {0, 1}, "collectives", answer("waited_ms"))
x.check(answer("as grown")[0]["grown"] >= 2 * 8998 + 1, "growth", answer("as grown"))
rows = answer("as norm")
x.check(all(r["norm"] == 1 / (r["step"] + 1) for r in rows), "residuals", rows[:2])
x.check([(r["file"], r["operation"]) for r in answer("as began")] == [("/tmp/out", "write")], "io", answer("as began"))
x.check(answer("from samples")[0]["region"] == "step", "samples", answer("from samples"))
x.check([r["damage"] for r in answer("select path")] == [None, None], "damage", answer("select path"))

listed = subprocess.run([x.FDR, "sql", ranks[0]], input=".schema\n", capture_output=True, text=True, check=False).stdout
tables = dict(re.findall(r"^(\w+)\(recording, rank, (.*)\)$", listed, re.M))
for name, columns in tables.items():
    x.check(f"| `{name}` | {columns} |" in page, f"{name} is on the page", columns)
x.check(len(tables) == len(re.findall(r"^\| `", page, re.M)) == 17, "and no others", len(tables))

# ---- the extension ----

library = f"{x.BUILD}/lib/libfdr-sqlite"
if not shutil.which("sqlite3"):
    print("skipped: no sqlite3 to load the extension")
    sys.exit(x.bad != 0 or 77)
if not x.SANITIZED:
    def shell(text):
        return subprocess.run(["sqlite3", "-json", ":memory:"], input=f".load {library}\n{text}", capture_output=True, text=True, check=False)

    done = shell(f"select fdr_open('{ranks[0]}', '{ranks[1]}') as n;\n")
    x.check(json.loads(done.stdout) == [{"n": 2}], "fdr_open", done.stdout, done.stderr)
    for query, rows in answers.items():
        done = shell(f".output /dev/null\nselect fdr_open('{ranks[0]}', '{ranks[1]}');\n.output\n{query};\n")
        got = json.loads(done.stdout or "[]")
        same = len(got) == len(rows) and all(g.keys() == r.keys() for g, r in zip(got, rows))
        exact = [{k: v for k, v in r.items() if not isinstance(v, float)} for r in rows]
        x.check(same and exact == [{k: g[k] for k in e} for g, e in zip(got, exact)], "sqlite3: " + query[:60].replace("\n", " "), done.stderr)
    done = shell("select fdr_open('/dev/null');\nselect count(*) as n from calls;\n")
    x.check("/dev/null" in done.stderr and json.loads(done.stdout) == [{"n": 0}], "what is no recording", done.stdout, done.stderr)
    done = shell("create table calls(a); insert into calls values (7); select * from calls;\n")
    x.check(json.loads(done.stdout) == [{"a": 7}], "tables of the program come first", done.stdout, done.stderr)
    done = shell(f"create view v as select fdr_open('{ranks[0]}'); select * from v;\n")
    x.check("unsafe" in done.stderr, "no schema opens files", done.stdout, done.stderr)
x.end()
