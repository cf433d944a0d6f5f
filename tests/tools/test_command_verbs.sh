#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=300 promise=P8 excuse=corpus
# P8: each verb of the fdr command on recordings of the corpus: the structure of --json and --tsv, exit codes and
# exports. Bad input gives a documented exit code and one clear line, never a crash.
set -u
: "${FDR_BUILD:?}" "${FDR_SOURCE:?}"
corpus=${FDR_CORPUS:-$FDR_SOURCE/../shared/corpus}
fdr=$FDR_BUILD/bin/fdr
if [ ! -d "$corpus" ]; then echo "test_command_verbs: no corpus at $corpus: skipped"; exit 77; fi
if [ ! -x "$fdr" ]; then echo "test_command_verbs: no $fdr (jansson or zstd missing): skipped"; exit 77; fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export FDR_LIVE_DIR=$work/live
export corpus
mkdir live
bad=0
fail() { echo "FAIL: $*"; bad=$((bad + 1)); }
ok() { echo "ok: $*"; }

# expect CODE WHAT COMMAND...: the command exits with CODE, never by a signal
expect()
{
    local code=$1 what=$2 got
    shift 2
    "$@" >out.txt 2>err.txt
    got=$?
    if [ "$got" = "$code" ]; then ok "$what"; else
        fail "$what: exit $got, not $code: $*"
        head -3 err.txt
    fi
}
# one_line WHAT: the last command printed one clear line on standard error
one_line()
{
    local lines
    lines=$(wc -l <err.txt)
    if [ "$lines" = 1 ] && grep -q '^fdr: ' err.txt; then ok "$1: $(cat err.txt)"; else
        fail "$1: $lines lines on stderr instead of one"
        head -5 err.txt
    fi
}
# python WHAT ARGUMENTS... <<script
python()
{
    local what=$1
    shift
    if python3 - "$@"; then ok "$what"; else fail "$what"; fi
}

# ---- usage -----------------------------------------------------------------------------------------------------
expect 64 "no verb" "$fdr"
expect 64 "unknown verb" "$fdr" nonsense
one_line "unknown verb"
expect 0 "help" "$fdr" --help
awk '/^  [a-z]/ {print $1}' out.txt >verbs.txt
while read -r verb; do
    expect 0 "$verb --help" "$fdr" "$verb" --help
    expect 64 "$verb --no-such-option" "$fdr" "$verb" --no-such-option
done <verbs.txt
for verb in info check dump stats tree suggest recover replay export; do expect 64 "$verb without a file" "$fdr" "$verb"; done
expect 64 "dump: bad class" "$fdr" dump --class nonsense x.fdr
expect 64 "dump: bad depth" "$fdr" dump --depth 5..2 x.fdr
expect 64 "dump: bad time" "$fdr" dump --from soon x.fdr
expect 64 "stats: bad --by" "$fdr" stats --by colour x.fdr
expect 64 "stats: --from without --events" "$fdr" stats --from 1ms x.fdr
for what in tree "stats --events" "stats --by path" samples; do
    # shellcheck disable=SC2086
    expect 64 "$what of other classes" "$fdr" $what --class marker,region x.fdr
done
expect 64 "samples: --min-duration" "$fdr" samples --min-duration 1us x.fdr
for what in "tree --class region" "samples --class sample"; do
    # shellcheck disable=SC2086
    expect 2 "$what" "$fdr" $what x.fdr
done
for by in depth class; do expect 64 "stats: --by $by of a region" "$fdr" stats --by $by --region 'a*' x.fdr; done
expect 2 "stats: --by depth of a region's events" "$fdr" stats --by depth --events --region 'a*' x.fdr
expect 64 "export: bad format" "$fdr" export --to smoke signals.fdr -o x
expect 64 "export: no output" "$fdr" export --to chrome x.fdr

# ---- replay ------------------------------------------------------------------------------------------------------
expect 0 "replay of one stream" "$fdr" replay "$corpus/npb-cg.r0.t0.evt.zst" --buffer 64M --json -o cg.fdr
cp out.txt cg.replay.json
expect 0 "replay of two streams" "$fdr" replay "$corpus"/npb-cg.r?.t0.evt.zst --buffer 64M --json -o two.fdr
expect 0 "info of two streams" "$fdr" info two.fdr
if grep -q "more than 4 locations\|besides" out.txt; then fail "info of two streams: says that there are more, or that something is missing"; fi
expect 0 "replay of few calls" "$fdr" replay "$corpus/npb-cg.r0.t0.evt.zst" --buffer 8M --min-duration 1us -o few.fdr
expect 0 "info of few calls" "$fdr" info --all few.fdr
for said in "of the calls made 566,195 were filtered" "every call not filtered is kept"; do
    grep -q "$said" out.txt || fail "info of few calls: no '$said' in the table of ages"
done
expect 0 "replay of a large program into little" "$fdr" replay "$corpus/sqlite.r0.t0.evt.zst" --buffer 256K -o tight.fdr
expect 0 "info of it" "$fdr" info --json tight.fdr
python "what was given back lies in the run" out.txt <<'END'
import json, sys
info = json.load(open(sys.argv[1]))
start = info["locations"][0]["start_ns"]
for r in info["reductions"]:
    assert start <= r["from_ns"] <= r["to_ns"] <= info["last_ns"], r
    assert start <= r["time_ns"] <= info["last_ns"], r
END
expect 0 "replay into a small buffer" "$fdr" replay "$corpus/npb-lu.r0.t0.evt.zst" --buffer 1M --json -o lu.fdr
cp out.txt lu.replay.json
expect 0 "replay without a snapshot" "$fdr" replay "$corpus/npb-cg.r0.t0.evt.zst" --buffer 8M --json
expect 0 "replay for people" "$fdr" replay "$corpus/npb-cg.r0.t0.evt.zst" --min-duration 1us --strategy whole --resolution 128ns
expect 0 "repeat" "$fdr" replay "$corpus/npb-cg.r0.t0.evt.zst" --repeat 3 --buffer 4M --json -o again.fdr
cp out.txt again.replay.json
python "replay --json" <<'END'
import json
keys = {"events", "calls", "kept_events", "bytes_stored", "bytes_per_event", "bins_used", "reductions", "ns_per_event", "snapshot"}
cg, lu, again = (json.load(open(n + ".replay.json")) for n in ("cg", "lu", "again"))
assert keys <= set(cg) and keys <= set(lu), keys - set(cg)
assert cg["events"] == 1151616 and lu["events"] == 2862333, (cg, lu)
assert cg["snapshot"] == "cg.fdr" and cg["reductions"] == 0 and lu["reductions"] > 0, (cg, lu)
assert cg["events"] - 80 <= cg["kept_events"] <= cg["events"], cg
assert 0 < lu["kept_events"] < lu["events"]
assert abs(cg["bytes_per_event"] - cg["bytes_stored"] / cg["kept_events"]) < 1e-6
assert again["calls"] == 3 * cg["calls"]
END
for f in cg two lu again; do expect 0 "check $f" "$fdr" check $f.fdr; done
expect 0 "check --json" "$fdr" check --json lu.fdr
python "check --json" <<'END'
import json
c = json.load(open("out.txt"))
assert c["verdict"] == "whole" and c["damage"] == [] and c["ledger"] == [], c
END

# ---- info -----------------------------------------------------------------------------------------------------------
for f in cg two lu; do
    expect 0 "info --all $f" "$fdr" info --all $f.fdr
    grep -q '^detail by age' out.txt || fail "info $f has no ages"
    ! grep -q 'more than . locations' out.txt || fail "info $f: locations are left out"
    expect 0 "info --json $f" "$fdr" info --json $f.fdr
    cp out.txt $f.info.json
done
expect 0 "info --ledger --config" "$fdr" info --ledger --config lu.fdr
python "info --json" <<'END'
import json
keys = set("format state reason cause pid rank exe build_id time_unit_ns buffer_bytes bin_bytes bins bins_free strategy first_ns last_ns "
           "common_from_ns locations ledger reductions".split())
for name, locations in ("cg", 1), ("two", 2), ("lu", 1):
    i = json.load(open(name + ".info.json"))
    assert keys <= set(i), (name, keys - set(i))
    assert i["cause"] is None and i["reason"] == "replay", (i["cause"], i["reason"])
    assert len(i["locations"]) == locations
    for l in i["locations"]:
        assert {"id", "name", "tid", "live", "from_ns", "to_ns", "open", "epochs"} <= set(l), l
    for r in i["ledger"]:
        assert {"location", "class", "depth", "presented", "kept", "filtered", "reduced", "lost"} <= set(r), r
        assert r["presented"] == r["kept"] + r["filtered"] + r["reduced"] + r["lost"], r
    for r in i["reductions"]:
        assert {"location", "time_ns", "step", "what", "events", "bytes", "from_ns", "to_ns"} <= set(r), r
        assert r["step"] in ("duration", "depth", "class", "epoch", "stop"), r
two = json.load(open("two.info.json"))
assert sorted(l["name"] for l in two["locations"]) == ["npb-cg.r0.t0", "npb-cg.r1.t0"], two["locations"]
assert [l["name"] for l in sorted(two["locations"], key=lambda l: l["id"])] == ["npb-cg.r0.t0", "npb-cg.r1.t0"]
lu = json.load(open("lu.info.json"))
assert sum(r["reduced"] for r in lu["ledger"]) > 0 and lu["reductions"]
END

expect 0 "replay of a deep program" "$fdr" replay "$corpus/lua-json.r0.t0.evt.zst" --buffer 1M -o deep.fdr
for f in deep lu; do
    expect 0 "info $f" "$fdr" info --all $f.fdr
    mv out.txt $f.info.txt
    expect 0 "info --json $f" "$fdr" info --json $f.fdr
    mv out.txt $f.info.json
done
python "the ledger for people is that of --json" <<'END'
import collections, json, re
runs = 0
for name in "deep", "lu":
    lines = open(name + ".info.txt").read().split("\nledger ", 1)[1].split("\n\n")[0].splitlines()[2:]
    shown = {}
    for line in lines:
        words = line.split()
        figures = tuple(int(w.replace(",", "")) for w in words[-5:])
        m = re.match(r"each of depth (\d+)\.\.(\d+)$|depth (\d+)$|outside any region$|(\w+)$", " ".join(words[:-5]))
        if m[4]:
            class_ = m[4]
            continue
        first, last = (int(m[1]), int(m[2])) if m[1] else (int(m[3] or 0),) * 2
        runs += first < last
        for depth in range(first, last + 1):
            assert (class_, depth) not in shown, line
            shown[class_, depth] = figures
    sums = collections.defaultdict(lambda: (0,) * 5)
    for r in json.load(open(name + ".info.json"))["ledger"]:
        of = tuple(r[k] for k in ("presented", "kept", "filtered", "reduced", "lost"))
        sums[r["class"], r["depth"]] = tuple(map(sum, zip(sums[r["class"], r["depth"]], of)))
    assert shown == sums, sorted(set(shown.items()) ^ set(sums.items()))
assert runs, "no depths are told of in one line"
END

# ---- dump: the stream itself -------------------------------------------------------------------------------------------
expect 0 "dump --tsv" "$fdr" dump --tsv cg.fdr
mv out.txt cg.tsv
zstd -qdc "$corpus/npb-cg.r0.t0.evt.zst" >cg.evt
python "dump --tsv is the stream" cg.evt cg.tsv <<'END'
import re, struct, sys
b = open(sys.argv[1], "rb").read()
n, nreg, npar, ncomm, nstr = struct.unpack_from("<QIIII", b, 16)
t = struct.unpack_from("<Q", b, 56)[0]
oreg, ostr, ocomm, opar, odt, oword = struct.unpack_from("<6Q", b, 88)
def text(o): return b[ostr + o:b.index(b"\0", ostr + o)].decode()
names = [text(struct.unpack_from("<I", b, oreg + 16 * i)[0]) for i in range(nreg)]
dts, words = struct.unpack_from("<%dI" % n, b, odt), struct.unpack_from("<%dI" % n, b, oword)
ops = dict(zip(range(10, 23), "Barrier Bcast Reduce Allreduce Alltoall Alltoallv Allgather Allgatherv Gather Gatherv Scatter Scatterv Scan".split()))
want, stack = [], []
for dt, w in zip(dts, words):
    t += dt
    kind, v = w >> 24, w & 0xffffff
    if kind == 1:
        stack.append(v)
        want.append("%d\tenter\t%d\t%s\t" % (t, len(stack), names[v]))
    elif kind == 2:
        want.append("%d\tleave\t%d\t%s\t" % (t, len(stack), names[v]))
        stack.pop()
    elif kind in (3, 4, 5, 8):
        peer, tag, comm, req, size, _ = struct.unpack_from("<iiIIQQ", b, opar + 32 * v)
        word = "send" if kind in (3, 5) else "recv"
        want.append("%d\t%s\t%d\t%s\tpeer=%d tag=%d comm=%d bytes=%d" % (t, word, len(stack), word, peer, tag, comm, size))
    elif kind == 9:
        want.append("%d\tcoll_begin\t%d\t%s\t" % (t, len(stack), ops[v]))
    elif kind == 10:
        peer, tag, comm, req, sent, got = struct.unpack_from("<iiIIQQ", b, opar + 32 * v)
        want.append("%d\tcoll_end\t%d\t%s\tcomm=%d root=%d sent=%d received=%d" % (t, len(stack), ops[tag], comm, peer, sent, got))
lines = open(sys.argv[2]).read().split("\n")
assert lines[0] == "location\ttime_ns\tkind\tdepth\tid\tname\tattributes", lines[0]
assert lines[-1] == ""
got = []
for line in lines[1:-1]:
    f = line.split("\t")
    assert len(f) == 7, line
    if "repaired=1" in f[6]: continue
    # fdr replay looks ahead: it numbers messages and collectives, and a begin has the communicator of its end
    if f[2] in ("send", "recv", "coll_begin", "coll_end"):
        f[6], numbered = re.subn(r" ordinal=\d+$", "", f[6])
        assert numbered == 1, line
    if f[2] == "coll_begin": f[6] = re.sub(r"^comm=\d+$", "", f[6])
    got.append("\t".join([f[1], f[2], f[3], f[5], f[6]]))
for i, (x, y) in enumerate(zip(want, got)):
    assert x == y, (i, x, y)
assert len(want) == len(got), (len(want), len(got))
END

# ---- dump: filters -------------------------------------------------------------------------------------------------------
expect 0 "dump for people" "$fdr" dump lu.fdr --from 1s --to 1010ms
expect 0 "dump of calls that are open" "$fdr" dump --from -1ms tight.fdr
"$fdr" dump --tsv --from -1ms tight.fdr >tight.tsv
python "calls that are open at the end are two lines, and one where no other is in it" <<'END'
import re
lines = [l for l in open("out.txt") if "(still open" in l]
between = re.fullmatch(r".*} main   \(still open, and (\d+) calls between\)\n", lines[-1])
leaves = [l for l in open("tight.tsv") if "\tleave\t" in l and "repaired=1" in l]
assert between and len(lines) + int(between[1]) == len(leaves) > 5, (lines, len(leaves))
END
expect 0 "dump --json" "$fdr" dump --json cg.fdr --class message,collective
mv out.txt points.json
expect 0 "dump --depth" "$fdr" dump --tsv cg.fdr --depth 1..3 --class region
mv out.txt depth.tsv
expect 0 "dump --region" "$fdr" dump --tsv cg.fdr --region 'MPI_*'
mv out.txt region.tsv
expect 0 "dump --min-duration" "$fdr" dump --tsv cg.fdr --class region --min-duration 1us
mv out.txt long.tsv
expect 0 "dump --location by name" "$fdr" dump --tsv two.fdr --location 'npb-cg.r1*' --depth 1..2
mv out.txt location.tsv
expect 0 "dump --from --to" "$fdr" dump --tsv cg.fdr --class message --from 1s --to 2s
mv out.txt window.tsv
expect 0 "dump --from, counted from the end" "$fdr" dump --tsv cg.fdr --class message --from -1s --to -500ms
mv out.txt back.tsv
expect 0 "dump of more than there is" "$fdr" dump --tsv cg.fdr --class message --from=-1000000s
mv out.txt all.tsv
expect 64 "dump: bad time before the end" "$fdr" dump --from -soon cg.fdr
expect 0 "dump of a location that is not there" "$fdr" dump --tsv cg.fdr --location 77
one_line "dump of a location that is not there"
if [ "$(wc -l <out.txt)" != 1 ]; then fail "a location that is not there shows events"; fi
python "filters show what they say" <<'END'
import json
def read(name): return [l.rstrip("\n").split("\t") for l in open(name)][1:]
cg = read("cg.tsv")
calls = [l for l in cg if l[2] in ("enter", "leave")]
assert read("depth.tsv") == [l for l in calls if int(l[3]) <= 3]
assert read("region.tsv") == [l for l in calls if l[5].startswith("MPI_")]
points = json.load(open("points.json"))
assert [p["kind"] for p in points] == [l[2] for l in cg if l[2] not in ("enter", "leave")]
assert set(points[0]) == {"location", "time_ns", "kind", "depth", "id", "name", "attributes"}
assert {l[0] for l in read("location.tsv")} == {"1"}
first = min(int(l[1]) for l in cg)
messages = [l for l in cg if l[2] in ("send", "recv")]
assert read("window.tsv") == [l for l in messages if first + 10**9 <= int(l[1]) <= first + 2 * 10**9]
last, back = max(int(l[1]) for l in cg), read("back.tsv")
assert back and back == [l for l in messages if last - 10**9 <= int(l[1]) <= last - 5 * 10**8]
assert read("all.tsv") == messages
stack, kept = [], set()
for i, l in enumerate(calls):
    if l[2] == "enter": stack.append(i)
    else:
        j = stack.pop()
        if int(l[1]) - int(calls[j][1]) >= 1000 or "repaired" in l[6]: kept |= {i, j}
long = read("long.tsv")
want = [calls[i] for i in sorted(kept)]
closed = lambda rows: [l for l in rows if "repaired" not in l[6]]
assert closed(long) == closed(want), (len(long), len(want))
END

# ---- stats and tree -------------------------------------------------------------------------------------------------------
for by in region path class depth location; do
    expect 0 "stats --by $by" "$fdr" stats --by $by lu.fdr
    expect 0 "stats --json --by $by" "$fdr" stats --json --by $by cg.fdr
    mv out.txt stats.$by.json
done
"$fdr" stats --all lu.fdr >all.txt
expect 0 "stats --limit 0" "$fdr" stats --limit 0 lu.fdr
cmp out.txt all.txt || fail "stats --limit 0: is not all"
expect 0 "stats --limit 2" "$fdr" stats --limit 2 lu.fdr
grep -q '^# and [0-9]* more rows: --all$' out.txt || fail "stats --limit 2: does not say that there are more"
expect 0 "stats --events" "$fdr" stats --events lu.fdr
if grep -q "edges of calls are rounded" out.txt; then fail "stats --events: speaks of rounding where there is none"; fi
expect 0 "replay at 128 ns" "$fdr" replay "$corpus/npb-cg.r0.t0.evt.zst" --resolution 128ns --buffer 16M -o coarse.fdr
expect 0 "stats --events of coarse times" "$fdr" stats --events coarse.fdr
grep -q "edges of calls are rounded to 128 ns" out.txt || fail "stats --events: does not say how times are rounded"
"$fdr" stats --json cg.fdr >exact.json
"$fdr" stats --json --events cg.fdr >events.json
python "where all is kept and lossless, both ways of counting agree" <<'END'
import json
rows = [{r["id"]: r for r in json.load(open(n + ".json")) if r["calls"] > r["untimed"]} for n in ("exact", "events")]
assert rows[0] == rows[1] and rows[0], [(a, rows[1].get(i)) for i, a in rows[0].items() if a != rows[1].get(i)][:1]
END
for by in region depth location; do
    expect 0 "stats --events --json --by $by" "$fdr" stats --events --json --by $by cg.fdr
    mv out.txt events.$by.json
done
expect 0 "stats of reduced" "$fdr" stats --json lu.fdr
mv out.txt lu.stats.json
expect 0 "tree" "$fdr" tree lu.fdr
expect 0 "tree --depth --min-share" "$fdr" tree lu.fdr --depth ..3 --min-share 1%
expect 0 "tree --json" "$fdr" tree --json cg.fdr
mv out.txt tree.json
python "stats --json" <<'END'
import json
keys = {"id", "name", "calls", "inclusive_ns", "exclusive_ns", "min_ns", "max_ns", "histogram"}
exact = json.load(open("stats.region.json"))
kept = {r["name"]: r for r in json.load(open("events.region.json"))}
for r in exact:
    assert keys <= set(r), r
    assert r["histogram"] is None or len(r["histogram"]) == 64
    assert r["histogram"] is None or sum(r["histogram"]) <= r["calls"]
stack, calls, inclusive = [], {}, {}
for line in open("cg.tsv"):
    f = line.rstrip("\n").split("\t")
    if f[2] == "enter": stack.append(int(f[1]))
    elif f[2] == "leave":
        d = int(f[1]) - stack.pop()
        if "repaired" in f[6]: continue
        calls[f[5]] = calls.get(f[5], 0) + 1
        inclusive[f[5]] = inclusive.get(f[5], 0) + d
for r in exact:
    closed = calls.get(r["name"], 0)
    assert closed <= r["calls"] <= closed + 5, (r["name"], r["calls"], closed)
    assert r["inclusive_ns"] == inclusive.get(r["name"], 0), r
    if not closed: continue
    k = kept[r["name"]]
    for key in "inclusive_ns", "exclusive_ns", "min_ns", "max_ns", "histogram":
        assert k[key] == r[key], (key, k, r)
lu = json.load(open("lu.stats.json"))
presented = sum(r["presented"] for r in json.load(open("lu.info.json"))["ledger"] if r["class"] == "region")
assert presented - 1100 <= sum(r["calls"] for r in lu) <= presented, "totals count what was reduced, too"
classes = {c["class"]: c for c in json.load(open("stats.class.json"))}
assert classes["message"]["presented"] == 3360, classes["message"]
assert sum(k["events"] for k in classes["message"]["kinds"]) == 3360
depths = json.load(open("stats.depth.json"))
assert sum(d["calls"] for d in depths) == classes["region"]["presented"]
tree = json.load(open("tree.json"))
def exclusive(n): return n["exclusive_ns"] + sum(exclusive(c) for c in n["children"])
for n in tree:
    assert {"name", "id", "calls", "inclusive_ns", "exclusive_ns", "children"} <= set(n)
    assert exclusive(n) == n["inclusive_ns"], n["name"]
END

# ---- exports -------------------------------------------------------------------------------------------------------------------
expect 0 "export chrome" "$fdr" export --to chrome lu.fdr -o lu.json
expect 0 "export chrome, up to a time" "$fdr" export --to chrome --from 1ms --to 2ms lu.fdr -o lu_part.json
if [ ! -s lu_part.json ] || [ "$(stat -c %s lu_part.json)" -ge "$(stat -c %s lu.json)" ]; then fail "export up to a time: $(stat -c %s lu_part.json) bytes"; fi
expect 0 "export chrome, up to a time before the end" "$fdr" export --to chrome --from -2ms --to -1ms lu.fdr -o lu_back.json
[ -s lu_back.json ] || fail "export up to a time before the end is empty"
expect 64 "export up to no time" "$fdr" export --to chrome --to 2parsecs lu.fdr -o none.json
expect 0 "export chrome, two files" "$fdr" export --to chrome lu.fdr two.fdr -o both.json --depth ..4
expect 0 "export folded" "$fdr" export --to folded cg.fdr -o cg.folded
# shellcheck disable=SC2016
expect 2 "export that finds no room" bash -c 'trap "" XFSZ; ulimit -f 4; exec "$0" export --to chrome lu.fdr -o none.json' "$fdr"
expect 0 "an export that failed leaves nothing" test -z "$(compgen -G 'none.json*' || true)"
expect 0 "an export that ended leaves its file only" test -z "$(compgen -G '*.part' || true)"
expect 0 "export folded to standard output" "$fdr" export --to folded lu.fdr -o -
expect 2 "export into nowhere" "$fdr" export --to folded cg.fdr -o "$PWD/nowhere/x"
one_line "export into nowhere"
"$fdr" dump --tsv lu.fdr >lu.tsv
python "chrome JSON nests; folded stacks sum up" <<'END'
import json
def stacks(name):
    stack, last, edges = {}, {}, 0
    for e in json.load(open(name))["traceEvents"]:
        key = e["pid"], e["tid"]
        assert e["ph"] in "BEiCM", e
        if e["ph"] == "M": continue
        assert e["ts"] >= last.get(key, 0), e
        last[key] = e["ts"]
        s = stack.setdefault(key, [])
        if e["ph"] == "B": s.append(e["name"]); edges += 1
        if e["ph"] == "E": s.pop(); edges += 1
    assert not any(stack.values())
    return stack, edges
one, edges = stacks("lu.json")
assert len(one) == 1
assert edges == sum(1 for l in open("lu.tsv") if "\tenter\t" in l or "\tleave\t" in l)
assert len(stacks("both.json")[0]) == 3
total = sum(int(l.rsplit(" ", 1)[1]) for l in open("cg.folded"))
tree = json.load(open("tree.json"))
assert total == sum(n["inclusive_ns"] for n in tree), (total, [n["inclusive_ns"] for n in tree])
assert all(";" in l or l.startswith(tree[0]["name"]) for l in open("cg.folded"))
END

# ---- list, version ---------------------------------------------------------------------------------------------------------------
expect 0 "list" "$fdr" list
expect 0 "list --json" "$fdr" list --json
python "list --json" <<'END'
import json
files = {e["name"]: e for e in json.load(open("out.txt"))}
assert {"cg.fdr", "lu.fdr", "two.fdr"} <= set(files), files.keys()
assert files["cg.fdr"]["live"] is False and files["cg.fdr"]["condition"] == "kept", files["cg.fdr"]
END
expect 2 "list of a directory that is not there" "$fdr" list "$PWD/nowhere"
expect 0 "version" "$fdr" version
expect 0 "version --build" "$fdr" version --build
expect 0 "version --json" "$fdr" version --json
python "version --json" <<'END'
import json
assert json.load(open("out.txt"))["version"]
END

# ---- a recording as a stream ---------------------------------------------------------------------------------------------------------
expect 0 "replay of a recording" "$fdr" replay cg.fdr --buffer 64M -o back.fdr
"$fdr" dump --tsv back.fdr | cut -f1-4,6- >back.tsv
cut -f1-4,6- cg.tsv >forth.tsv
if cmp -s back.tsv forth.tsv; then ok "a replayed recording is the recording"; else fail "a replayed recording differs: $(cmp back.tsv forth.tsv 2>&1)"; fi

# ---- bad input -------------------------------------------------------------------------------------------------------------------------
: >empty.fdr
head -c 5000 "$fdr" >foreign.fdr
mkdir folder.fdr
for verb in "info" "check" "dump" "stats" "tree" "suggest" "recover -o r.fdr" "export --to folded -o r.folded"; do
    for file in empty.fdr foreign.fdr missing.fdr folder.fdr; do
        # shellcheck disable=SC2086
        expect 2 "${verb%% *} $file" "$fdr" $verb $file
        one_line "${verb%% *} $file"
    done
done
rmdir folder.fdr
rm -f empty.fdr foreign.fdr
# a future version of the format: 8 bytes of magic, then the number
cp lu.fdr future.fdr
printf '\011\000\000\000' | dd of=future.fdr bs=1 seek=8 conv=notrunc status=none
for verb in info dump "stats --by region" "recover -o r.fdr"; do
    # shellcheck disable=SC2086
    expect 2 "$verb of a future version" "$fdr" $verb future.fdr
    one_line "$verb of a future version"
    grep -q "version 9" err.txt || { fail "$verb of a future version does not name it"; cat err.txt; }
done
rm -f future.fdr
size=$(stat -c %s lu.fdr)
head -c $((size / 2)) lu.fdr >cut.fdr
cp lu.fdr flip.fdr
# the middle of a full bin: some 256 bytes, few of them 0
at=$(python3 -c 'import sys; d = open("lu.fdr", "rb").read(); print(next(i for i in range(len(d) // 3, len(d), 256) if d.count(0, i, i + 256) < 16) + 128)')
printf '\377\377\377\377\377\377\377\377' | dd of=flip.fdr bs=1 seek="$at" conv=notrunc status=none
head -c 4096 lu.fdr >page.fdr # nothing but the superblock: no ledger
for verb in info "info --ledger" dump tree "stats --by class"; do
    # shellcheck disable=SC2086
    expect 1 "$verb of one page" "$fdr" $verb page.fdr
    one_line "$verb of one page"
done
for file in cut flip; do
    expect 1 "check $file" "$fdr" check $file.fdr
    for verb in info dump tree "stats --events" "stats --by class" "export --to folded -o x.folded"; do
        # shellcheck disable=SC2086
        expect 1 "$verb $file" "$fdr" $verb $file.fdr
        one_line "$verb $file"
    done
    expect 1 "replay $file" "$fdr" replay $file.fdr --buffer 16M -o s.fdr
    grep -q "^fdr: $file.fdr: .*\(damaged\|cut\)" err.txt || { fail "replay $file does not say what is wrong"; cat err.txt; }
    expect 0 "check of what replay $file gave" "$fdr" check s.fdr
    expect 1 "recover $file" "$fdr" recover $file.fdr -o whole.$file.fdr
    expect 0 "check of recovered $file" "$fdr" check whole.$file.fdr
done

# ---- bad streams ---------------------------------------------------------------------------------------------------------------------------
head -c $(($(stat -c %s cg.evt) - 2000000)) cg.evt >short.evt
head -c 390000 "$corpus/npb-cg.r0.t0.evt.zst" >short.evt.zst
head -c 4096 cg.tsv >foreign.evt
python3 - <<'END'
import struct
b = bytearray(open("cg.evt", "rb").read())
word = struct.unpack_from("<Q", b, 128)[0]
struct.pack_into("<I", b, word + 4 * 1000, 77 << 24)
open("kind.evt", "wb").write(b)
b = bytearray(open("cg.evt", "rb").read())
struct.pack_into("<Q", b, 56, 2**64 - 10**9)
open("time.evt", "wb").write(b)
END
for stream in short.evt short.evt.zst kind.evt time.evt; do
    expect 1 "replay $stream" "$fdr" replay $stream --buffer 16M -o s.fdr
    if grep -q "^fdr: $stream: " err.txt && [ "$(wc -l <err.txt)" -le 2 ]; then ok "$(head -1 err.txt)"; else fail "replay $stream: no clear line"; cat err.txt; fi
    expect 0 "check of what $stream gave" "$fdr" check s.fdr
done
for stream in foreign.evt missing.evt; do
    expect 2 "replay $stream" "$fdr" replay $stream -o s.fdr
    one_line "replay $stream"
done
# Input that is no stream is not read to its end, because it may be endless.
truncate -s 1T endless.evt
head -c 300000000 /dev/zero | zstd -q -1 -o zeros.evt.zst
head -c 100 cg.evt >header.evt
for stream in /dev/zero endless.evt zeros.evt.zst header.evt; do
    # shellcheck disable=SC2016
    expect 2 "replay $stream" bash -c '[ "$FDR_SANITIZE" ] || ulimit -v 400000; exec timeout 60 "$0" replay "$1" -o s.fdr' "$fdr" $stream
    one_line "replay $stream"
    grep -q "not begin with FDREVT1$\|inside the header" err.txt || fail "replay $stream: does not say what it is not"
done
rm endless.evt zeros.evt.zst
for value in "buffer xyz" "buffer 0" "bin 7" "strategy foo" "telescope 1,x" "reduce foo" "classes foo" "min-duration 5" "depth 0" \
    "resolution -5" "arena foo" "timer foo" "signal KILL" "enable 2" "disk x" "keep x" "holdoff x"; do
    expect 64 "replay --$value" "$fdr" replay kind.evt "--${value% *}" "${value#* }" -o never.fdr
    grep -q "^fdr: FDR_.*=${value#* }: " err.txt || fail "replay --$value: does not name the value"
    if grep -q using err.txt || [ -e never.fdr ]; then fail "replay --$value: goes on"; fi
done
# A finished recording is mapped. The test truncates it here, while dump waits for a reader of its output.
cp cg.fdr cut.fdr
python "a recording that is cut while it is read" "$fdr" <<'END'
import os, subprocess, sys
p = subprocess.Popen([sys.argv[1], "dump", "--tsv", "cut.fdr"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
assert p.stdout.read(1000)
os.truncate("cut.fdr", 4096)
_, said = p.communicate()
assert p.returncode == 2, p.returncode
assert said.count(b"\n") == 1 and said.startswith(b"fdr: "), said
END
for rules in /dev/null "$PWD"; do
    expect 64 "replay with rules in $rules" "$fdr" replay short.evt --filter "$rules"
    grep -q "^fdr: --filter: $rules: not a file$" err.txt || fail "replay with rules in $rules: $(cat err.txt)"
done
expect 2 "replay with rules that are not there" "$fdr" replay short.evt --filter "$PWD/missing.rules"
expect 2 "replay without a recorder" "$fdr" replay short.evt --enable 0
# A stream without events is valid. Its replay is a recording without events, which is a valid stream again.
python3 - <<'END'
import struct
b = bytearray(open("cg.evt", "rb").read())
struct.pack_into("<Q", b, 16, 0)
open("none.evt", "wb").write(b)
END
expect 0 "replay of no events" "$fdr" replay none.evt --buffer 4M --json -o none.fdr
one_line "replay of no events"
grep -q '"events": 0,' out.txt || fail "replay of no events: $(head -2 out.txt)"
expect 0 "check of a recording without events" "$fdr" check none.fdr
for verb in info dump stats tree; do expect 0 "$verb of a recording without events" "$fdr" $verb none.fdr; done
expect 0 "replay of a recording without events" "$fdr" replay none.fdr --buffer 4M --json -o nothing.fdr
expect 0 "check of that" "$fdr" check nothing.fdr
expect 1 "replay of a good and a bad stream" "$fdr" replay foreign.evt "$corpus/npb-cg.r0.t0.evt.zst" --buffer 16M -o s.fdr
one_line "replay of a good and a bad stream"
cp cg.fdr same.fdr
expect 64 "recover over what it reads" "$fdr" recover same.fdr -o same.fdr
cmp -s cg.fdr same.fdr || fail "recover changed what it reads"
cp cg.fdr beside.fdr.part # the name of an unfinished file of a killed writer
expect 0 "recover of what is called as its own file would be" "$fdr" recover beside.fdr.part -o beside.fdr
cmp -s cg.fdr beside.fdr.part || fail "recover took what it reads"
printf 'not ours' >other.fdr.part
expect 0 "recover beside a file of that name" "$fdr" recover cg.fdr -o other.fdr
grep -qx 'not ours' other.fdr.part || fail "recover took a file of another"
(
    ulimit -f 40 # KiB
    trap '' XFSZ
    expect 2 "recover without room" "$fdr" recover beside.fdr.part -o no.fdr
)
cmp -s cg.fdr beside.fdr.part || fail "recover without room took what it reads"
for left in no.fdr no.fdr.*.part beside.fdr.*.part other.fdr.*.part; do
    [ ! -e "$left" ] || fail "recover left half of a file: $left"
done
mkfifo pipe
expect 2 "recover in the place of a pipe" "$fdr" recover cg.fdr -o pipe
[ -p pipe ] || fail "the pipe is gone"
expect 2 "recover of a pipe" timeout 60 "$fdr" recover pipe -o p.fdr
expect 2 "replay into nowhere" "$fdr" replay "$corpus/npb-cg.r0.t0.evt.zst" -o "$PWD/nowhere/s.fdr"

mkdir odd
cp cg.fdr "$(printf 'odd/a\033]0;b\nc.fdr')"
for verb in list info check crash "gc --size 0 --unread --dry-run" nothing; do
    read -ra words <<<"$verb"
    if [ "$verb" = list ] || [[ $verb = gc* ]]; then "$fdr" "${words[@]}" odd; else "$fdr" "$verb" odd/*; fi >out.txt 2>&1
    ! grep -q $'\033' out.txt || fail "$verb: a file's name steers the terminal"
    [ "$verb" = nothing ] || grep -qF 'odd/a?]0;b?c.fdr' out.txt || fail "$verb: $(head -1 out.txt)"
done
rm -r odd

if [ $bad = 0 ]; then echo "test_command_verbs: all good"; else echo "test_command_verbs: $bad failed"; fi
[ $bad = 0 ]
