#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools,slow timeout=300 excuse=protoc
# What `fdr export --to perfetto` writes decodes with protoc, by the fields of perfetto.proto, without an unknown one.
# Each event of fdr dump is there, with its name, time, track and values. Arrows join the two ends of a message, and only
# those.
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import exported as x  # noqa: E402
import protoc_text  # noqa: E402

if not shutil.which("protoc"):
    print("skipped: no protoc here (Debian: protobuf-compiler)")
    sys.exit(77)

TYPES = {"TYPE_SLICE_BEGIN": "enter", "TYPE_SLICE_END": "leave", "TYPE_INSTANT": "instant", "TYPE_COUNTER": "metric"}


def packets(path):
    with open(path, "rb") as f:
        trace = protoc_text.decoded(f.read(), "Trace", f"{x.SOURCE}/tests/convert", "perfetto.proto")
    unknown = [k for p in trace.get("packet", []) for k in p if k.isdigit()]
    x.check(not unknown, "no unknown fields", unknown[:3])
    return trace.get("packet", [])


def values_of(event):
    """Name -> value, as fdr dump writes it."""
    values = {}
    for a in event.get("debug_annotations", []):
        kind = next(k for k in a if k != "name")
        values[a["name"][0]] = a[kind][0] if kind != "double_value" else float(a[kind][0])
    return values


def read(path):
    """(location, time, kind, name, values) of each event, in the order of the file."""
    names, defaults, tracks, events = {}, {}, {}, []
    for p in packets(path):
        if "track_descriptor" in p:
            track = p["track_descriptor"][0]
            tracks[track["uuid"][0]] = track
            continue
        sequence = p["trusted_packet_sequence_id"][0]
        for default in p.get("trace_packet_defaults", []):
            defaults[sequence] = default["track_event_defaults"][0]["track_uuid"][0]
        for interned in p.get("interned_data", []):
            for n in interned["event_names"]:
                names[sequence, n["iid"][0]] = n["name"][0]
        e = p["track_event"][0]
        kind = TYPES[e["type"][0]]
        name = names[sequence, e["name_iid"][0]] if "name_iid" in e else ""
        values, uuid = values_of(e), defaults[sequence]
        if kind == "metric":
            track = tracks[e["track_uuid"][0]]
            name, uuid = track["name"][0], track["parent_uuid"][0]
            values = {"value": float((e.get("counter_value") or e["double_counter_value"])[0])}
        x_flow = e.get("flow_ids", []), e.get("terminating_flow_ids", [])
        events.append(((int(uuid) & (1 << 40) - 1) - 1, int(p["timestamp"][0]), kind, name, values, x_flow))
        assert uuid in tracks
    return events


def expected(row):
    kind, name, a = row["kind"], row["name"], dict(row["attributes"])
    for gone in ("ordinal", "ambiguous", "token", "unit"):
        a.pop(gone, None)
    if kind in ("enter", "leave"):
        return row["location"], row["time"], kind, name if kind == "enter" else "", {"repaired": "1"} if "repaired" in a else {}
    if kind == "metric":
        return row["location"], row["time"], kind, name, {"value": float(a["value"])}
    if kind == "sample":
        return row["location"], row["time"], "instant", None, {"weight": a["weight"]}
    if kind.endswith(("_begin", "_end")):
        name += " " + kind.split("_")[1]
    return row["location"], row["time"], "instant", name, a


def shown(event, like):
    """The event, with what its line of fdr dump says too."""
    location, time, kind, name, values, _ = event
    if like[3] is None:  # a sample: its name is the innermost function
        return location, time, kind, None, {"weight": values.get("weight")}
    values = {k: (f"{v:.15g}" if isinstance(v, float) and kind != "metric" else v) for k, v in values.items()}
    return location, time, kind, name, {k.replace(" ", "_").replace('"', "_"): v for k, v in values.items()}


def simplified(row):
    """Zeros and unknown fields of io are left out by fdr dump; names of fields are one word there."""
    location, time, kind, name, values = row
    values = {k.replace(" ", "_").replace('"', "_"): (f"{float(v):.15g}" if "." in str(v) and kind != "metric" else v)
              for k, v in values.items()}
    return location, time, kind, name, values


def compare(name, path):
    out = x.export(path, "perfetto", f"{name.replace(' ', '-')}.pftrace")
    rows = sorted((expected(r) for r in x.dump(path) if r["kind"] != "resolve"), key=lambda r: r[0])
    got = sorted(read(out), key=lambda g: g[0])
    pairs = [(shown(g, r), simplified(r)) for g, r in zip(got, rows)]
    x.check(len(got) == len(rows), f"{name}: {len(rows)} events", len(got))
    differ = [(g, r) for g, r in pairs if g[:4] != r[:4]]
    x.check(not differ, f"{name}: times, kinds and names", *differ[:3])
    differ = [(g, r) for g, r in pairs if any(g[4].get(k) != v for k, v in r[4].items())]
    x.check(not differ, f"{name}: values", *differ[:3])


FLOWS = r"""
#include <fdr/fdr.h>
#include <stdio.h>
#include <stdlib.h>
/* Rank 0 sends to 1: numbers 0 to 9; rank 1 has received 0 to 7, and 20 from elsewhere. */
int main(int count, char **argument)
{
    int rank = count > 1 ? atoi(argument[1]) : 0;
    fdr_init(NULL);
    fdr_note("mpi.rank", rank ? "1" : "0");
    for (unsigned i = 0; i < 10u - 2u * (unsigned)rank; i++)
        FDR_REGION("exchange") {
            if (rank) fdr_message_recv_nth(0, 5, 0, 8, i);
            else fdr_message_send_nth(1, 5, 0, 8, i);
        }
    if (rank) fdr_message_recv_nth(7, 5, 0, 8, 20);
    fdr_snapshot("end");
    printf("%s\n", fdr_last_snapshot());
    fdr_finalize();
    return 0;
}
"""


def flows():
    program = x.compiled(FLOWS, "flows")
    files = [x.record(program, rank) for rank in "01"]
    done = x.tool("export", *files, "--to", "perfetto", "-o", "flows.pftrace")
    x.check(done.returncode == 0, "two ranks", done.stderr)
    events = read(f"{x.work}/flows.pftrace")
    begun = [e[5][0][0] for e in events if e[5][0]]
    ended = [e[5][1][0] for e in events if e[5][1]]
    x.check(len(begun) == len(set(begun)) == 8 and begun == ended, "8 arrows, for the 8 messages whose ends are both here",
            begun, ended)


if __name__ == "__main__":
    all_ = x.recordings()
    for name, path in all_.items():
        compare(name, path)
    flows()
    x.fails_whole(all_["given back"], "perfetto")
    x.end()
