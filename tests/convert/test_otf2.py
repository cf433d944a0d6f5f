#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools,slow timeout=300 serial excuse=OTF2
# What `fdr export --to otf2` writes is read by OTF2's own library: each event of fdr dump is there, with its name, time
# and values, nested and in order, and otf2-print finds no fault. A viewer that pairs messages by their order pairs none
# wrongly, also of ranks that gave messages back.
import collections
import itertools
import json
import os
import re
import resource
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
try:
    import otf2
    from otf2 import events as ev
except ImportError:
    if sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    print("skipped: no bindings of OTF2 for Python (Debian: python3-otf2)")
    sys.exit(77)
import exported as x  # noqa: E402

if "otf2" not in x.tool("version", "--build").stdout:
    print("skipped: this build has no OTF2")
    sys.exit(77)

IO = {"open": None, "close": None, "other": None, "read": "READ", "write": "WRITE", "sync": "FLUSH"}


def number(text):
    return float(text) if any(c in text for c in ".en") else int(text)


def values(row):
    return [number(v) for k, v in row["attributes"].items() if k != "unit"]


def expected(row):
    """What has to become of a line of fdr dump: (location, time, kind, name, values)."""
    kind, name, a = row["kind"], row["name"], row["attributes"]
    if kind in ("enter", "leave"):
        more = (kind, name, [1] if "repaired" in a else [])
    elif kind in ("send", "recv"):
        more = (kind, "", [int(a["peer"]), int(a["tag"]), int(a["bytes"])])
    elif kind == "coll_begin":
        more = (kind, "", [])
    elif kind == "coll_end":
        more = (kind, name.upper(), [int(a["root"]), int(a["sent"]), int(a["received"])])
    elif kind == "metric":
        more = (kind, name, [number(a["value"])])
    elif kind == "marker":
        more = (kind, name, [int(a["value"])])
    elif kind in ("io_begin", "io_end") and IO[a["op"]]:
        more = (kind, name, [int(a.get("bytes", 0)), int(a.get("offset" if kind == "io_begin" else "error", 0))])
    elif kind in ("io_begin", "io_end"):
        more = ("other", f"io {a['op']} {kind[3:]}", [name])
    elif kind == "sample":
        more = (kind, "", [int(a["weight"])])
    else:
        more = ("event", name, values(row)) if a else ("other", name, [""])
    return (row["location"], row["time"], *more)


def attribute(event, name):
    return [v for k, v in (event.attributes or {}).items() if k.name == name]


def rank_in(comm, place, ranks):
    """The world rank of a member: the name of its process begins with it."""
    member = comm.group.members[place]
    location = ranks[member] if isinstance(member, int) else member
    return int(re.match(r"rank (\d+)", location.group.name)[1])


def read(path):
    """The same of an archive; and for each message its communicator, in the order of the events."""
    with otf2.reader.open(path) as trace:
        groups = [g for g in trace.definitions.groups if g.group_type == otf2.GroupType.COMM_LOCATIONS]
        locations = list(groups[0].members) if groups else []
        if not trace.definitions.locations:
            return
        for location, e in trace.events:
            yield location, one(e, location, locations), e


def one(e, location, locations):
    at = (location._ref, e.time)
    if isinstance(e, (ev.Enter, ev.Leave)):
        more = ("enter" if isinstance(e, ev.Enter) else "leave", e.region.name, attribute(e, "fdr.repaired"))
    elif isinstance(e, (ev.MpiSend, ev.MpiIsend)):
        more = ("send", "", [rank_in(e.communicator, e.receiver, locations), signed(e.msg_tag), e.msg_length])
    elif isinstance(e, (ev.MpiRecv, ev.MpiIrecv)):
        more = ("recv", "", [rank_in(e.communicator, e.sender, locations), signed(e.msg_tag), e.msg_length])
    elif isinstance(e, ev.MpiCollectiveBegin):
        more = ("coll_begin", "", [])
    elif isinstance(e, ev.MpiCollectiveEnd):
        root = -1 if e.root == 2**32 - 1 else rank_in(e.communicator, e.root, locations)
        more = ("coll_end", str(e.collective_op).split(".")[-1], [root, e.size_sent, e.size_received])
    elif isinstance(e, ev.Metric):
        members, described = e.metric.members, e.metric.members[0].description
        kind = "event" if described else "metric"
        more = (kind, described or members[0].name, e.values)
    elif isinstance(e, ev.ParameterUnsignedInt):
        more = ("marker", e.parameter.name, [e.value])
    elif isinstance(e, ev.ParameterString):
        more = ("other", e.parameter.name, [e.string])
    elif isinstance(e, ev.IoOperationBegin):
        more = ("io_begin", e.handle.file.name, [e.bytes_request, *(attribute(e, "fdr.offset") or [0])])
    elif isinstance(e, ev.IoOperationComplete):
        more = ("io_end", e.handle.file.name, [e.bytes_result, *(attribute(e, "fdr.errno") or [0])])
    elif isinstance(e, ev.CallingContextSample):
        more = ("sample", "", attribute(e, "fdr.weight") or [1])
    else:
        more = (type(e).__name__, "", [])
    return (*at, *more)


def signed(tag):
    return tag - 2**32 if tag >= 2**31 else tag


def compare(name, path):
    out = x.export(path, "otf2", name.replace(" ", "-"))
    rows = [expected(r) for r in x.dump(path) if r["kind"] != "resolve"]
    got = [g for _, g, _ in read(f"{out}/traces.otf2")]
    # both are merged by time; ties between locations may be in another order
    x.same(f"{name}: events", sorted(got, key=lambda g: g[0]), sorted(rows, key=lambda r: r[0]))
    for arguments in (["-G"], [], ["-M"]):
        done = subprocess.run(["otf2-print", *arguments, f"{out}/traces.otf2"], capture_output=True, text=True, errors="replace")
        x.check(done.returncode == 0 and not done.stderr, f"{name}: otf2-print {arguments}", done.stderr[:500])
    return out


def nested(name, out):
    stacks = collections.defaultdict(list)
    wrong = 0
    for location, _, e in read(f"{out}/traces.otf2"):
        if isinstance(e, ev.Enter):
            stacks[location].append(e.region)
        elif isinstance(e, ev.Leave):
            wrong += not stacks[location] or stacks[location].pop() is not e.region
    x.check(not wrong and not any(stacks.values()), f"{name}: calls are nested and closed", wrong)


def ledger(name, path, out):
    with otf2.reader.open(f"{out}/traces.otf2") as trace:
        properties = {(p.location._ref, p.name): p.value for p in trace.definitions.location_properties}
    rows = json.loads(x.tool("info", "--json", path).stdout)["ledger"]
    want = {(r["location"], f"FDR::LEDGER::{r['class']}::{r['depth']}"):
            " ".join(f"{k}={r[k]}" for k in ("presented", "kept", "filtered", "reduced", "lost")) for r in rows}
    x.check(properties == want, f"{name}: the ledger is in its properties", properties, want)


MARKERS = r"""
#include <otf2/otf2.h>
#include <stdio.h>
static OTF2_CallbackCode on_marker(void *data, OTF2_TimeStamp at, OTF2_TimeStamp duration, OTF2_MarkerRef marker,
                                   OTF2_MarkerScope scope, uint64_t where, const char *text)
{
    (void)data, (void)marker, (void)scope;
    printf("%llu\t%llu\t%llu\t%s\n", (unsigned long long)where, (unsigned long long)at, (unsigned long long)(at + duration), text);
    return OTF2_CALLBACK_SUCCESS;
}
int main(int count, char **argument)
{
    OTF2_Reader *reader = OTF2_Reader_Open(argument[count - 1]);
    OTF2_MarkerReader *markers = OTF2_Reader_GetMarkerReader(reader);
    OTF2_MarkerReaderCallbacks *callbacks = OTF2_MarkerReaderCallbacks_New();
    uint64_t read = 0;
    OTF2_MarkerReaderCallbacks_SetMarkerCallback(callbacks, on_marker);
    OTF2_Reader_RegisterMarkerCallbacks(reader, markers, callbacks, NULL);
    return OTF2_Reader_ReadAllMarkers(reader, markers, &read) != OTF2_SUCCESS;
}
"""


def markers(name, path, out):
    """otf2-print shows no markers, so a program reads them with OTF2's library."""
    source, program = f"{x.work}/markers.c", f"{x.work}/markers"
    with open(source, "w") as f:
        f.write(MARKERS)
    if subprocess.run(["cc", source, "-o", program, "-lopen-trace-format2"], check=False).returncode:
        x.check(False, "the reader of markers compiles")
        return
    done = subprocess.run([program, f"{out}/traces.otf2"], capture_output=True, text=True, check=True)
    got = [line.split("\t") for line in done.stdout.splitlines()]
    rows = json.loads(x.tool("info", "--json", path).stdout)["reductions"]
    want = [[str(r["location"]), str(r["from_ns"]), str(max(r["from_ns"], r["to_ns"])),
             f"{r['step']}: {r['what']}: {r['events']} events given back"] for r in rows]
    x.same(f"{name}: reductions are markers", got, want)


def hosts():
    """Two hosts whose clocks began at different times: OTF2's reader puts them on one line, by the offset in the archive."""
    program = x.compiled(x.PROGRAM)
    other = f"{x.work}/other-host"
    with open(other, "w") as f:
        f.write(f"#!/bin/sh\nexec unshare -u -T --monotonic 5000 sh -c 'hostname other && exec {program} 3'\n")
    os.chmod(other, 0o755)
    if subprocess.run([other], capture_output=True, check=False, cwd=x.work, env=os.environ | {"FDR_DIR": x.work}).returncode:
        print("note: no time namespaces here, so no second host")
        return
    files = [x.record(program, "3"), x.record(other)]
    x.tool("export", *files, "--to", "otf2", "-o", "hosts")
    second = 1 + max(r["location"] for r in x.dump(files[0]))
    got = [[g[1] for _, g, _ in read(f"{x.work}/hosts/traces.otf2") if (g[0] >= second) == late] for late in (False, True)]
    rows = [[r["time"] for r in x.dump(f) if r["kind"] != "resolve"] for f in files]
    shifts = [{g - r for g, r in zip(sorted(got[i]), sorted(rows[i]))} for i in range(2)]
    x.check([len(g) for g in got] == [len(r) for r in rows], "two hosts: all events")
    x.check(all(len(s) == 1 for s in shifts) and abs(max(shifts[0]) - min(shifts[1]) - 5000 * 10**9) < 10**9,
            "two hosts on one line of time", shifts)


OPEN_MPI = (("mpicc.openmpi", "mpicc"), ("mpirun.openmpi", "mpirun"))
MPICH = (("mpicc.mpich",), ("mpiexec.hydra",))


def job(program, work, ranks, buffer, *arguments, mpi=OPEN_MPI):
    """The recordings of all ranks of an MPI program of tests/adapters/mpi; none where there is no MPI."""
    cc, run = (next(filter(None, map(shutil.which, names)), None) for names in mpi)
    if not run or not cc:
        print(f"note: no {mpi[0][0]} here, so no ranks of a job")
        return []
    folder, base = f"{x.work}/{work}", f"{x.work}/{program}"
    os.mkdir(folder)
    subprocess.run([cc, "-O1", f"{x.SOURCE}/tests/adapters/mpi/{program}.c", "-o", base], check=True)
    env = {k: v for k, v in os.environ.items() if not k.startswith("FDR_")}
    env |= {f"OMPI_{k}": "1" for k in ("ALLOW_RUN_AS_ROOT", "ALLOW_RUN_AS_ROOT_CONFIRM",
                                       "MCA_rmaps_base_oversubscribe", "MCA_mpi_yield_when_idle")}
    env |= {"FDR_LIVE_DIR": folder, "FDR_LIVE_FORCE": "1", "FDR_DIR": folder, "FDR_BUFFER": buffer,
            "FDR_FINALIZE": "snapshot", "FDR_MPI_REQUESTS": "1"}
    subprocess.run([run, "-n", str(ranks), "env", f"LD_PRELOAD={x.BUILD}/lib/libfdr-mpi.so", base, *arguments], env=env,
                   check=True, capture_output=True, timeout=200)
    return sorted((f"{folder}/{f}" for f in os.listdir(folder)), key=lambda f: re.search(r"\.r(\d+)\.", f)[1])


def messages():
    """Message n of a sender has n bytes: so pairs by order, as a viewer makes them, show their truth."""
    for buffer, rounds in (("8M", "60"), ("128K", "900")):
        files = job("random_traffic", f"ranks{buffer}", 3, buffer, "11", rounds)
        if files:
            pairs_of(files, f"job{buffer}")


ONE_SIDED = {1: ev.RmaPut, 2: ev.RmaGet, 3: ev.RmaAtomic, 4: ev.RmaAtomic, 5: ev.RmaAtomic, 6: ev.RmaAtomic}
ATOMIC = {3: "ACCUMULATE", 4: "FETCH_AND_ACCUMULATE", 5: "FETCH_AND_ACCUMULATE", 6: "COMPARE_AND_SWAP"}


def completion(i, rows):
    """When the rules of MPI say that operation i is complete at its origin, and at its target; None: they do not say."""
    o, at_origin, at_target, number = rows[i], None, None, rows[i]["completing"]
    for r in rows[i + 1:]:
        if r["what"] == 8 and o["request"] and r["request"] == o["request"]:
            at_origin = r["time"]
        if r["what"] < 16 or r["window"] != o["window"] or number is None:
            continue
        if r["completing"] != number:
            number = None  # one is missing: from here on nothing is certain
            continue
        number += 1
        if r["target"] in (o["target"], 2**32 - 1):
            if not o["request"] and not at_origin:
                at_origin = r["time"]
            if 18 <= r["what"] <= 21:
                at_target = r["time"]
            if r["what"] < 22:
                number = None
    return at_origin, at_target


def locked(i, rows):
    """When the process has lock i for certain, and when it gives it back; None: nothing shows that."""
    lock, acquired, released, number, used = rows[i], None, None, rows[i]["completing"], False
    for r in rows[i + 1:]:
        if r["window"] != lock["window"]:
            continue
        used |= r["what"] <= 6 and r["target"] == lock["target"]
        if r["what"] < 16:
            continue
        if r["completing"] != number:
            break
        number += 1
        mine = r["target"] in (lock["target"], 2**32 - 1)
        ends = r["what"] == (19 if lock["what"] == 13 else 18) and r["target"] == lock["target"]
        if ends or used and mine and 18 <= r["what"] <= 21:
            acquired = acquired or r["time"]
        if ends:
            released = r["time"]
            break
    return acquired, released


def locks_of(rows):
    for i, r in enumerate(rows):
        if 11 <= r["what"] <= 13:
            kind = "EXCLUSIVE" if r["what"] == 11 else "SHARED"
            acquired, released = locked(i, rows)
            yield r["time"], "RmaRequestLock", r["target"], kind
            if acquired:
                yield acquired, "RmaAcquireLock", r["target"], kind
            if released:
                yield released, "RmaReleaseLock", r["target"], ""


def wanted(path):
    rows = [{"time": r["time"]} | {k: int(v) for k, v in r["attributes"].items()} for r in x.dump(path) if r["name"] == "fdr.rma"]
    made = {r["window"] for r in rows if r["what"] == 9}
    operations = [(r["time"], ONE_SIDED[r["what"]].__name__, r["target"], r["sent"], r["received"],
                   ATOMIC.get(r["what"], ""), *completion(i, rows)) for i, r in enumerate(rows) if r["what"] <= 6]
    others = [(r["time"], {9: "RmaWinCreate", 10: "RmaWinDestroy", 16: "RmaGroupSync"}[r["what"]], None, "") for r in rows
              if r["what"] in (9, 16) or r["what"] == 10 and r["window"] in made]
    others += [(r["time"], "RmaSync", r["target"], "MEMORY") for r in rows if r["what"] == 14]
    return operations, sorted([*others, *locks_of(rows)], key=str)


def one_sided_in(trace, ranks):
    """The same of an archive, by location; matching ids are those of one operation."""
    groups = [g for g in trace.definitions.groups if g.group_type == otf2.GroupType.COMM_LOCATIONS]
    locations, done, wrong = list(groups[0].members), {}, 0
    found, others, rest = [[] for _ in range(ranks)], [[] for _ in range(ranks)], [0] * ranks
    for location, e in trace.events:
        kind, at = type(e).__name__, location._ref
        if isinstance(e, (ev.RmaPut, ev.RmaGet, ev.RmaAtomic)):
            atomic = isinstance(e, ev.RmaAtomic)
            sent = e.bytes_sent if atomic else e.bytes if isinstance(e, ev.RmaPut) else 0
            received = e.bytes_received if atomic else e.bytes if isinstance(e, ev.RmaGet) else 0
            found[at].append([e.time, kind, rank_in(e.win.comm, e.remote, locations), sent, received,
                              str(e.type).split(".")[-1] if atomic else "", None, None])
            wrong += e.matching_id in done
            done[e.matching_id] = found[at][-1]
        elif isinstance(e, (ev.RmaOpCompleteNonBlocking, ev.RmaOpCompleteRemote)):
            place = 6 if isinstance(e, ev.RmaOpCompleteNonBlocking) else 7
            wrong += done[e.matching_id][place] is not None
            done[e.matching_id][place] = e.time
        elif kind.startswith("Rma"):
            remote, of = getattr(e, "remote", None), getattr(e, "lock_type", getattr(e, "sync_type", ""))
            if remote not in (None, 2**32 - 1):
                remote = rank_in(e.win.comm, remote, locations)
            others[at].append((e.time, kind, remote, str(of).split(".")[-1]))
        else:
            rest[at] += 1
    x.check(not wrong, "one-sided: each operation has its number, and completes once", wrong)
    return [[tuple(f) for f in rows] for rows in found], [sorted(o, key=str) for o in others], rest


def one_sided():
    """Operations, windows and completions are what MPI's rules make of the recording; where synchronizations are missing,
    no completion is made up."""
    for (way, buffer, arguments), mpi in itertools.product((("every-way", "8M", []), ("flushes", "128K", ["flushes", "4000"])),
                                                           (OPEN_MPI, MPICH)):
        name = f"{way}-{mpi[0][0]}"
        files = job("rma", name, 2, buffer, *arguments, mpi=mpi)
        if not files:
            continue
        done = x.tool("export", *files, "--to", "otf2", "-o", f"{name}-otf2")
        x.check(done.returncode == 0, f"one-sided, {name}: exported", done.stderr)
        with otf2.reader.open(f"{x.work}/{name}-otf2/traces.otf2") as trace:
            operations, others, rest = one_sided_in(trace, 2)
        shown = subprocess.run(["otf2-print", f"{x.work}/{name}-otf2/traces.otf2"], capture_output=True, text=True)
        x.check(shown.returncode == 0 and not shown.stderr, f"one-sided, {name}: otf2-print", shown.stderr[:500])
        for rank, path in enumerate(files):
            want, want_others = wanted(path)
            x.same(f"one-sided, {name}: operations of rank {rank}", operations[rank], want)
            x.same(f"one-sided, {name}: windows, locks and fences of rank {rank}", others[rank], want_others)
            dumped = sum(r["name"] != "fdr.rma" for r in x.dump(path))
            x.check(rest[rank] == dumped, f"one-sided, {name}: all other events", rest[rank], dumped)
            lost = sum(o[6] is None for o in want)
            if mpi is OPEN_MPI or way == "flushes":  # MPICH's requests that are complete at once have one handle
                x.check(len(want) > 50 and bool(lost) == (way == "flushes") and lost < len(want) / 2,
                        f"one-sided, {name}: {lost} of {len(want)} operations have no completion, as planned")
            kinds = {o[1] for o in want_others}
            x.check(way == "flushes" or {"RmaRequestLock", "RmaAcquireLock", "RmaReleaseLock", "RmaSync", "RmaGroupSync"} <= kinds,
                    f"one-sided, {name}: locks of all kinds", kinds)


def pairs_of(files, name):
    done = x.tool("export", *files, "--to", "otf2", "-o", name)
    x.check(done.returncode == 0, f"{name}: three ranks in one archive", done.stderr)
    sends, receives, got = collections.defaultdict(list), collections.defaultdict(list), []
    requests = collections.defaultdict(list)
    with otf2.reader.open(f"{x.work}/{name}/traces.otf2") as trace:
        x.check([l.group.name[:6] for l in trace.definitions.locations] == ["rank 0", "rank 1", "rank 2"], "ranks are named")
        groups = [g for g in trace.definitions.groups if g.group_type == otf2.GroupType.COMM_LOCATIONS]
        locations = list(groups[0].members)
        for location, e in trace.events:
            requests[location._ref].append(e)
            if isinstance(e, (ev.MpiIsendComplete, ev.MpiIrecvRequest, ev.MpiRequestCancelled)):
                continue
            got.append(one(e, location, locations))
            own = locations.index(location)
            if isinstance(e, (ev.MpiSend, ev.MpiIsend)):
                peer = rank_in(e.communicator, e.receiver, locations)
                sends[e.communicator._ref, own, peer, e.msg_tag].append(e.msg_length)
            elif isinstance(e, (ev.MpiRecv, ev.MpiIrecv)):
                peer = rank_in(e.communicator, e.sender, locations)
                receives[e.communicator._ref, peer, own, e.msg_tag].append(e.msg_length)
    wrong = sum(s != r for key in sends for s, r in zip(sends[key], receives.get(key, [])))
    paired = sum(len(receives.get(key, [])) for key in sends)
    loose = [key for key in sends if key in receives and len(sends[key]) != len(receives[key])]
    x.check(paired > 100 and not wrong and not loose, f"{name}: {paired} pairs by order, none wrong", wrong, loose)
    given_back = any(r["reduced"] and r["class"] == "message" for f in files
                     for r in json.loads(x.tool("info", "--json", f).stdout)["ledger"])
    x.check(given_back == (name == "job128K"), f"{name}: messages were given back, as planned: {given_back}")
    all_rows = [x.dump(f) for f in files]
    for i, rows in enumerate(all_rows):
        requests_of(rows, requests[i], name, given_back)
    rows = [(i, *expected(r)[1:]) for i, rows in enumerate(all_rows) for r in rows
            if r["kind"] != "resolve" and r["name"] != "fdr.request"]
    x.same(f"{name}: events", sorted(got, key=lambda g: g[0]), rows)


REQUESTS = {"1": ev.MpiIsend, "2": ev.MpiIsendComplete, "3": ev.MpiIrecvRequest, "4": ev.MpiIrecv}


def requests_of(rows, events, name, given_back):
    """All requests of the recording, in order; or, where messages were given back, ends with their begins only."""
    want = [(REQUESTS[r["attributes"]["what"]], int(r["attributes"]["id"])) for r in rows if r["name"] == "fdr.request"]
    got = [(type(e), e.request_id) for e in events if isinstance(e, tuple(REQUESTS.values()))]
    if not given_back:
        x.same(f"{name}: requests", got, want)
        return
    at, begun = iter(want), set()
    x.check(0 < len(got) < len(want) and all(g in at for g in got), f"{name}: {len(got)} of {len(want)} requests, in order")
    lone = 0
    for kind, number in got:
        if kind in (ev.MpiIsend, ev.MpiIrecvRequest):
            begun.add((kind, number))
        else:
            lone += (ev.MpiIsend if kind is ev.MpiIsendComplete else ev.MpiIrecvRequest, number) not in begun
    x.check(not lone, f"{name}: no end without its begin", lone)


THREADS = r"""
#include <fdr/fdr.h>
#include <pthread.h>
#include <stdio.h>
static void *work(void *p) { for (int i = 0; i < 20; i++) FDR_REGION("work") {} return p; }
int main(void)
{
    fdr_init(NULL);
    for (int i = 0; i < 20; i++) {
        pthread_t t[50];
        for (int k = 0; k < 50; k++) pthread_create(&t[k], NULL, work, NULL);
        for (int k = 0; k < 50; k++) pthread_join(t[k], NULL);
    }
    fdr_snapshot("end");
    printf("%s\n", fdr_last_snapshot());
    fdr_finalize();
    return 0;
}
"""


def many_locations():
    """A thousand locations, written one after another: within 200 MiB of memory of its own."""
    path = x.record(x.compiled(THREADS, "threads"), FDR_BUFFER="32M")
    limit = 200 << 20
    done = x.tool("export", path, "--to", "otf2", "-o", "threads-otf2",
                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)))
    x.check(done.returncode == 0, "a thousand locations in 200 MiB", done.stderr)
    with otf2.reader.open(f"{x.work}/threads-otf2/traces.otf2") as trace:
        locations = {l._ref for l in trace.definitions.locations}
        events = sum(1 for _ in trace.events)
    rows = x.dump(path)
    x.check(len(locations) >= 1000 and events == len(rows) == 40000, "... all of them, with all events",
            len(locations), events, len(rows))


if __name__ == "__main__":
    all_ = x.recordings()
    written = {name: compare(name, path) for name, path in all_.items()}
    for name, out in written.items():
        nested(name, out)
    ledger("given back", all_["given back"], written["given back"])
    for name in ("given back", "nothing"):
        markers(name, all_[name], written[name])
    x.check(x.tool("export", all_["nothing"], "--to", "otf2", "-o", "nothing").returncode == 2, "what is there is not replaced")
    x.fails_whole(all_["given back"], "otf2")
    # more than OTF2 holds back: its first write fails among the events, not as it closes the file
    x.fails_whole(x.record(f"{x.work}/program", "20000", FDR_BUFFER="32M"), "otf2", 1000000)
    x.check(x.tool("export", all_["nothing"], "--to", "otf2", "-o", "-").returncode == 64, "an archive is no stream")
    many_locations()
    hosts()
    messages()
    one_sided()
    x.end()
