#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""report.py table RAW: prints the one table of ./dev bench.  report.py details RAW: prints the tables behind it.
report.py write RAW FILE: puts both into FILE, between its lines "<!-- begin X -->" and "<!-- end X -->" (X: table, details).

RAW is the file of raw figures of run.sh: rows separated by tabs; the first column names the kind of row."""
import contextlib
import io
import json
import re
import sys
from statistics import median, quantiles

CALL_NAMES = [
    ("empty", "the workload alone"), ("clock", "two clock reads"), ("floor", "floor: two clock reads, two stores"),
    ("fdr", "fdr, 64 MiB, nothing reduced"), ("full", "fdr, 4 MiB, `whole`, reducing"),
    ("last", "fdr, 4 MiB, `last`, reducing"), ("short", "fdr, below the minimum duration"),
    ("deep", "fdr, below `FDR_DEPTH`"), ("excluded", "fdr, rule `exclude`"), ("every", "fdr, rule `every 1000`"),
    ("min", "fdr, rule `min` that stores all"), ("below-min", "fdr, rule `min` that stores none"),
    ("hook", "fdr, by code address"), ("excluded-hook", "fdr, by code address, rule `exclude`"),
    ("tally", "a tally: one `fdr_tally_add`"), ("io", "begin and end of an operation on a file"),
    ("off", "fdr, `FDR_ENABLE=0`"), ("otf2", "OTF2, whole run in memory"),
]
# steps of bench_encoding, the last three of a replay: key, title
STEPS = [
    ("fixed", "fixed records"), ("split", "time split from data"), ("zeros", "leading zeros left out"),
    ("delta", "delta time"), ("lengths", "lengths in the token"), ("ids", "small ids in the token, leave id implied"),
    ("calls", "one record a call"), ("region", "region foreseen"), ("bits", "to the bit, not the byte"),
    ("stored", "lengths foreseen, bands, bins, headers: as stored"), ("stored128", "timer at 128 ns: as stored"),
    ("stored10us", "timer at 10 us: as stored"),
]
# Wagner 2015, table 5.2: minimum, average, maximum reduction in percent against the step before
PUBLISHED = [
    ("time split from data (no metrics)", "fixed", "split", (-7.6, -7.4, -6.0)),
    ("leading zeros left out", "split", "zeros", (14.3, 41.5, 52.3)),
    ("delta time", "zeros", "delta", (22.2, 34.9, 50.0)),
    ("within the token (lengths, ids)", "delta", "ids", (17.2, 30.2, 39.9)),
    ("one record a call", "ids", "calls", None),
    ("region foreseen", "calls", "region", None),
    ("to the bit, not the byte", "region", "bits", None),
    ("lengths foreseen; bands, bins, headers", "bits", "stored", None),
    ("timer resolution of 128 ns", "stored", "stored128", None),
    ("timer resolution of 10 us", "stored", "stored10us", (14.4, 23.7, 39.9)),
    ("all lossless steps", "fixed", "stored", None),
    ("all steps, 128 ns", "fixed", "stored128", None),
    ("all steps, 10 us", "fixed", "stored10us", None),
]
# Wagner 2015, table 5.4: MB of a trace per process, complete and with a minimum duration of 1 us; percent
PUBLISHED_FILTER = {"npb-bt": ("4,000", "4.3", 0.1), "npb-cg": ("406", "11.9", 2.9), "npb-is": ("1,100", "2.0", 0.2),
                    "npb-lu": ("134", "24.8", 18.3)}


class Raw:
    def __init__(self, path):
        self.machine, self.calls, self.replay, self.info = {}, {}, {}, {}
        self.otf2, self.steps, self.filter, self.expected = {}, {}, {}, {}
        self.read, self.stats, self.whole, self.skipped, self.failed, self.full = {}, {}, [], {}, [], None
        self.cxx, self.counters = {}, {}
        self.overhead = {}  # program -> of each slice: the time added
        self.latency, self.stall_faults, self.steps_table, self.snapshot, self.rate = {}, [], [], [], []
        self.samples, self.repeats = {}, {}
        self.crash, self.crashpath, self.postmortem, self.trigger = {}, {}, [], {}
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                f = line.rstrip("\n").split("\t")
                getattr(self, "take_" + f[0])(*f[1:])

    def take_machine(self, key, value=""):
        self.machine[key] = value

    def take_call(self, rnd, mode, ns):
        self.calls.setdefault(mode, {})[int(rnd)] = float(ns)

    def take_replay(self, stream, variant, text):
        self.replay.setdefault(variant, {})[stream] = json.loads(text)

    def turns(self, variant):
        """Replays in several turns, noted as VARIANT 1, VARIANT 2 ...: {stream: [figures of each turn]}."""
        found = {}
        for name, streams in self.replay.items():
            if re.fullmatch(re.escape(variant) + r" \d+", name):
                for stream, said in streams.items():
                    found.setdefault(stream, []).append(said)
        return found

    def take_repeat(self, stream, variant, count):
        self.repeats.setdefault(variant, {})[stream] = int(count)

    def take_info(self, stream, text):
        self.info[stream] = json.loads(text)

    def take_full(self, text):
        self.full = json.loads(text)

    def take_otf2(self, stream, events, size):
        self.otf2[stream] = int(size) / int(events)

    def take_steps(self, stream, step, value):
        self.steps.setdefault(stream, {})[step] = float(value)

    def take_filter(self, stream, *numbers):
        self.filter[stream] = [int(n) for n in numbers]

    def take_expected(self, stream, events, kept):
        self.expected[stream] = int(events), int(kept)

    def take_read(self, rnd, name, events, seconds, opening):
        self.read.setdefault(name, []).append((int(events), float(seconds), float(opening)))

    def take_stats(self, rnd, name, ns):
        self.stats.setdefault(name, []).append(int(ns) / 1e9)

    def take_crash(self, place, threads, seconds, plain):
        self.crash.setdefault((place, int(threads)), []).append((float(seconds), float(plain)))

    def take_trigger(self, what, first, second):
        self.trigger.setdefault(what, []).append((float(first), float(second)))

    def take_crashpath(self, rnd, mode, ns):
        self.crashpath.setdefault(mode, {})[int(rnd)] = float(ns)

    def take_postmortem(self, ns):
        self.postmortem.append(int(ns) / 1e9)

    def take_whole(self, text):
        self.whole = json.loads(text)["whole"]

    def take_cxx(self, rnd, compiler, variant, ns):
        self.cxx.setdefault(compiler, {}).setdefault(variant, {})[rnd] = float(ns)

    def take_overhead(self, program, times):
        muted, governed = times.split()
        self.overhead.setdefault(program, []).append(float(governed) / float(muted) - 1)

    def take_stall_latency(self, rnd, strategy, percentile, *values):
        """values: ns of the floor, ns of fdr, the quotient, ns of the floor that lasts as long"""
        self.latency.setdefault(strategy, {}).setdefault(percentile, []).append(tuple(map(float, values)))

    def take_stall_faults(self, rnd, strategy, count):
        self.stall_faults.append(int(count))

    def take_stall_reductions(self, *unused):
        pass

    def take_stall_steps(self, rnd, word, *cells):
        self.steps_table.append(cells)

    def take_stall_snapshot(self, rnd, word, *numbers):
        self.snapshot.append([float(n) for n in numbers])

    def take_stall_rate(self, rnd, word, *numbers):
        self.rate.append([float(n) for n in numbers])

    def take_samples(self, name, value, unit, low, high, what):
        self.samples[name] = (float(value), low, high, what)

    def take_counters(self, text):
        self.counters = json.loads(text)

    def take_skip(self, part, why):
        self.skipped[part] = why

    def take_failed(self, part, what):
        self.failed.append((part, what))

    def net(self, mode):
        """(x - empty) / (floor - empty), round by round."""
        c = self.calls
        return [(x - c["empty"][r]) / (c["floor"][r] - c["empty"][r]) for r, x in c.get(mode, {}).items()
                if r in c.get("empty", {}) and r in c.get("floor", {}) and c["floor"][r] > c["empty"][r]]

    def plain(self, mode):
        return [x / self.calls["floor"][r] for r, x in self.calls.get(mode, {}).items()
                if r in self.calls.get("floor", {})]

    def per_event(self, variant):
        return {s: j["bytes_per_event"] for s, j in self.replay.get(variant, {}).items() if j["kept_events"]}


def spread(values, form="{:.2f}"):
    low, mid, high = (form.format(v) for v in (min(values), median(values), max(values)))
    return f"{mid} ({low} .. {high})"


def verdict(value, least, aim, more=False):
    good = (lambda v, bound: v >= bound) if more else (lambda v, bound: v <= bound)
    return "meets aim" if good(value, aim) else "meets at least" if good(value, least) else "misses"


def row(*cells):
    print("| " + " | ".join(str(c) for c in cells) + " |")


def head(*cells):
    row(*cells)
    print("|" + "---|" * len(cells))


def why(raw, *parts):
    for part in parts:
        if part in raw.skipped:
            return "skipped: " + raw.skipped[part]
        if any(p == part for p, _ in raw.failed):
            return "failed"
    return "not run"


# ---- the one table -------------------------------------------------------------------------------------------------

def call_rows(raw):
    for letter, what, mode, least, aim in (
            ("a", "call, lossless, totals on / floor", "fdr", 1.9, 1.5),
            ("b", "call dropped by minimum duration / floor", "short", 1.45, 1.2),
            ("c", "call deeper than `FDR_DEPTH` / floor", "deep", 0.35, 0.2),
            ("c", "call with recording disabled / floor", "off", 0.1, 0.05),
            ("c", "call that a rule excludes / floor", "excluded", 0.35, 0.2),
            ("c", "the same, by the compiler's hook / floor", "excluded-hook", 0.35, 0.2)):
        net = raw.net(mode)
        if not net:
            row(letter, what, why(raw, "call"), f"<= {least}", f"<= {aim}", "-")
            continue
        row(letter, f"{what}, net of the empty call [plain quotient {median(raw.plain(mode)):.2f}]", spread(net),
            f"<= {least}", f"<= {aim}", verdict(median(net), least, aim))


def thread_rows(raw):
    """Two threads. For fdr and the floor: ns of one thread after the other / ns of both at once, net of the empty call. The row
    is fdr's quotient over the floor's."""
    c, shares = raw.calls, []
    for r in c.get("fdr2", {}):
        if all(r in c.get(m, {}) for m in ("empty1", "floor1", "fdr1", "empty2", "floor2")):
            one, two = ((c["fdr" + n][r] - c["empty" + n][r]) / (c["floor" + n][r] - c["empty" + n][r]) for n in "12")
            shares.append(one / two)
    if shares:
        row("q", "two threads on two cores against one, as a share of how the floor scales", spread(shares), ">= 0.95", ">= 1.0",
            verdict(median(shares), 0.95, 1.0, True))
    else:
        row("q", "two threads on two cores against one", why(raw, "call"), ">= 0.95", ">= 1.0", "-")


def size_rows(raw):
    for letter, variant, what, top, mean_least, mean_aim in (
            ("d", "64M", "lossless, 64 MiB", 2.1, 1.7, 1.4), ("d", "1M", "lossless, 1 MiB after reductions", 2.1, 1.7, 1.4),
            ("e", "64M/128", "128 ns, 64 MiB", 1.05, 0.8, 0.5), ("e", "1M/128", "128 ns, 1 MiB after reductions", 1.05, 0.8, 0.5)):
        sizes = raw.per_event(variant)
        least, aim = f"each <= {top}, mean <= {mean_least}", f"mean <= {mean_aim}"
        if not sizes:
            row(letter, f"bytes per event, {what}", why(raw, "size"), least, aim, "-")
            continue
        worst = max(sizes, key=sizes.get)
        mean = sum(sizes.values()) / len(sizes)
        said = verdict(mean, mean_least, mean_aim) if sizes[worst] <= top else "misses"
        row(letter, f"bytes per event, {what}",
            f"mean {mean:.2f}, {min(sizes.values()):.2f} .. {sizes[worst]:.2f} ({worst})", least, aim, said)


def otf2_rows(raw):
    ours = raw.per_event("64M")
    ratio = [raw.otf2[s] / ours[s] for s in raw.otf2 if s in ours]
    if ratio:
        row("f", "bytes per event, OTF2 / ours, same streams, 64 MiB lossless", spread(ratio), ">= 7", ">= 9",
            verdict(median(ratio), 7, 9, True))
    else:
        row("f", "bytes per event, OTF2 / ours", why(raw, "size", "otf2"), ">= 7", ">= 9", "-")
    c = raw.calls
    cost = [(x - c["clock"][r]) / (c["fdr"][r] - c["clock"][r]) for r, x in c.get("otf2", {}).items()
            if r in c.get("clock", {}) and r in c.get("fdr", {}) and c["fdr"][r] > c["clock"][r]]
    if cost:
        row("f", "cost above the clock reads, OTF2 / ours", spread(cost), ">= 1.1", ">= 1.8",
            verdict(median(cost), 1.1, 1.8, True))
    else:
        row("f", "cost above the clock reads, OTF2 / ours", why(raw, "call", "otf2"), ">= 1.1", ">= 1.8", "-")


def rates(raw, name):
    return [events / seconds / 1e6 for events, seconds, _ in raw.read.get(name, []) if seconds > 0]


def reader_rows(raw):
    if not raw.read:
        row("g", "events decoded in time order", why(raw, "reader"), ">= 20 M/s", ">= 60 M/s", "-")
        return
    full = rates(raw, "full")
    if full:
        row("g", "events/s in time order, full 64 MiB snapshot", spread(full, "{:.1f}") + " M/s", ">= 20 M/s", ">= 60 M/s",
            verdict(median(full), 20, 60, True))
    slow = {n: median(rates(raw, n)) for n in raw.read if n != "full" and rates(raw, n)}
    if slow:
        name = min(slow, key=slow.get)
        row("g", "events/s in time order, snapshots of single streams",
            f"slowest {slow[name]:.1f} M/s ({name}), median {median(slow.values()):.1f} M/s", ">= 20 M/s", ">= 60 M/s",
            verdict(slow[name], 20, 60, True))
    if raw.stats.get("full"):
        row("g", "`fdr stats`, full 64 MiB snapshot", spread(raw.stats["full"], "{:.3f}") + " s", "<= 2 s", "<= 0.3 s",
            verdict(median(raw.stats["full"]), 2, 0.3))


def whole_rows(raw):
    if not raw.whole:
        row("h", "whole program: time added by fdr / by hooks that only read the clock", why(raw, "whole"), "<= 2.0",
            "<= 1.5", "-")
    for p in raw.whole:
        row("h", f"{p['program']}: time added by fdr / by hooks that only read the clock [net of empty hooks {p['net']:.2f}]",
            f"{p['ratio']:.2f} ({p['ratio_min']:.2f} .. {p['ratio_max']:.2f})", "<= 2.0", "<= 1.5",
            verdict(p["ratio"], 2.0, 1.5))


def over_none(variants, variant):
    none = variants.get("none", {})
    return [ns / none[r] for r, ns in variants.get(variant, {}).items() if r in none]


def cxx_rows(raw):
    """No bound: the standard library's share of a program's calls decides."""
    if not raw.cxx:
        row("s", "loop over std::vector and std::map, hooked / not hooked", why(raw, "cxx"), "-", "-", "-")
    for compiler, variants in raw.cxx.items():
        for variant, what in (("default", "hooks of fdr::instrument"), ("all", "hooks in everything")):
            ratios = over_none(variants, variant)
            if ratios:
                row("s", f"{compiler}: loop over std::vector and std::map, {what} / no hooks", spread(ratios), "-", "-", "-")


def overhead_rows(raw):
    if not raw.overhead:
        row("t", "FDR_OVERHEAD=5%: time added above muting everything", why(raw, "overhead"), "<= 7 %", "<= 5.5 %", "-")
    for program, added in raw.overhead.items():
        low, _, high = quantiles(added, n=4)
        row("t", f"FDR_OVERHEAD=5%, {program}: time added above muting everything, median of slices (quartiles)",
            f"{100 * median(added):.1f} % ({100 * low:.1f} .. {100 * high:.1f})", "<= 7 %", "<= 5.5 %",
            verdict(100 * median(added), 7, 5.5))


def counter_rows(raw):
    """These rows have no bound. They compare the trend with Ilsche et al. 2014, figures 6 and 4."""
    if not raw.counters:
        row("i", "counters sampled at 1 kHz / read at every edge", why(raw, "counters"), "-", "-", "-")
        return
    found = {r["variant"]: r for r in raw.counters["table"]}
    for base, what in (("all", "all functions"), ("chosen", "chosen functions")):
        sampled, edges = found[base + "-sampled"], found[base + "-edges"]
        row("i", f"counters, {what}: recording / without counters", f"sampled {sampled['size_over_base']:.2f}, at every edge "
            f"{edges['size_over_base']:.2f}", "sampled < edges", "-", trend(sampled["size_over_base"], edges["size_over_base"]))
        row("i", f"counters, {what}: CPU time / without counters", f"sampled {sampled['over_base']:.2f}, at every edge "
            f"{edges['over_base']:.2f}", "sampled < edges", "-", trend(sampled["over_base"], edges["over_base"]))


SAMPLE_ROWS = (("cost_cpu", "us", 25, 12, False), ("cost_wall", "us", 25, 12, False), ("cost_empty", "us", None, None, False),
               ("record_ratio", "", 1.02, 1.00, False), ("shares_inside", "%", 90, 95, True), ("shares_width", "", None, None, False),
               ("bytes_real", "", 24, 8, False), ("bytes_made", "", None, None, False))


def sample_rows(raw):
    if not raw.samples:
        row("o", "what a sample costs, how right samples are", why(raw, "samples"), "-", "-", "-")
    for name, unit, least, aim, more in SAMPLE_ROWS:
        if name not in raw.samples:
            continue
        value, low, high, what = raw.samples[name]
        between = f" (quartiles {low} .. {high})" if low else ""
        sign = ">=" if more else "<="
        row("o", f"samples: {name.replace('_', ' ')}, {what}", f"{value:g}{' ' + unit if unit else ''}{between}",
            f"{sign} {least}" if least else "-", f"{sign} {aim}" if aim else "-",
            verdict(value, least, aim, more) if least else "-")


BIN_SIZES, BIN_BUFFERS = ("512", "1K", "4K", "16K", "64K"), ("1M", "2M", "8M")


def per_mib(j):
    return j["reduction_ns"] / 1000 / (j["given_back_bytes"] / 1048576) if j["given_back_bytes"] else None


def memory_rows(raw):
    """Cost of giving back, cost of an event in a buffer of 1/100 of the run, memory balance."""
    cost = {s: median(map(per_mib, js)) for s, js in raw.turns("giving back").items() if all(map(per_mib, js))}
    if not raw.replay.get("never full"):
        row("m", "memory that ages", why(raw, "memory"), "-", "-", "-")
        return
    if cost:
        worst = max(cost, key=cost.get)
        row("m", "giving back, us per MiB, 8 MiB, bins of 4 KiB (published: 100 to 400)",
            f"median {median(cost.values()):.0f}, {min(cost.values()):.0f} .. {cost[worst]:.0f} ({worst})", "<= 20", "<= 2",
            verdict(cost[worst], 20, 2))
    slow = {s: median(j["ns_per_event"] / h["ns_per_event"] for j, h in zip(js, hs)) for s, js, hs in hundredths(raw)}
    if slow:
        worst = max(slow, key=slow.get)
        row("m", "an event with telescope into 1 MiB, 1/100 of the run / into a buffer that never fills",
            f"median {median(slow.values()):.2f}, {min(slow.values()):.2f} .. {slow[worst]:.2f} ({worst})", "<= 1.25", "<= 1.05",
            verdict(slow[worst], 1.25, 1.05))
    for buffer, what, least in (("1M", "1 MiB", 0.90), ("64M", "64 MiB", 0.98)):
        balance = {s: min(j["memory_balance"], j["memory_balance_first"] or 1)
                   for s, j in raw.replay.get("balance " + buffer, {}).items()}
        if balance:
            worst = min(balance, key=balance.get)
            row("m", f"memory balance, {what}, the lesser of at the first reduction and after 1,000 steps and more",
                f"median {median(balance.values()):.3f}, least {balance[worst]:.3f} ({worst})", f">= {least:.2f}", "-",
                "meets at least" if balance[worst] >= least else "misses")


def memory_details(raw):
    print("### Memory that ages: size of bins (telescope, every stream four times over)\n")
    streams = list(raw.replay["never full"])
    head("bins, buffer", *(f"{s}: events kept, ns per event, us per MiB given back, balance" for s in streams))
    for size in BIN_SIZES:
        for buffer in BIN_BUFFERS:
            found = raw.replay.get(f"bin {size} {buffer}", {})
            cells = []
            for s in streams:
                j = found.get(s)
                cost = per_mib(j) if j else None
                cells.append(f"{j['kept_events']:,}; {j['ns_per_event']:.1f}; {f'{cost:.0f}' if cost else '-'}; "
                             f"{j['memory_balance']:.3f}" if j else "-")
            row(f"{size}, {buffer}", *cells)
    row("4K, never full", *(f"{j['kept_events']:,}; {j['ns_per_event']:.1f}; -; {j['memory_balance']:.3f}"
                            for j in raw.replay["never full"].values()))
    print()
    hundredth_details(raw)
    balance_details(raw)


def hundredths(raw):
    """Triples: stream, its turns into 1 MiB, its turns into a buffer that never fills."""
    hundred = raw.turns("hundred")
    return [(s, js, hundred[s]) for s, js in raw.turns("hundredth").items() if s in hundred]


def hundredth_details(raw):
    print("### A buffer of 1/100 of the run (telescope, 1 MiB; a run of 100 MiB of bins, lossless)\n")
    head("stream", "times over", "events", "MiB of bins when nothing is reduced", "steps that gave bins back",
         "ns per event, 256 MiB", "ns per event, 1 MiB")
    for s, js, hs in hundredths(raw):
        row(s, raw.repeats["hundredth 1"][s], f"{js[0]['events']:,}", f"{hs[0]['bytes_stored'] / 1048576:.1f}",
            f"{js[0]['reductions']:,}", *(spread([j["ns_per_event"] for j in turns]) for turns in (hs, js)))
    print()


def balance_details(raw):
    print("### Memory balance: average use of the bins / greatest use of one\n")
    head("buffer", "stream", "times over", "when memory is given back for the first time", "in the end",
         "steps that gave bins back")
    for buffer in ("1M", "64M"):
        for s, j in raw.replay.get("balance " + buffer, {}).items():
            first = j["memory_balance_first"]
            row(buffer, s, raw.repeats["balance " + buffer][s], f"{first:.3f}" if first else "-",
                f"{j['memory_balance']:.3f}", f"{j['reductions']:,}")
    print()


# Wagner 2015, figures 5.7 and 5.8: the text has no more numbers than these
PUBLISHED_FILL = {("10M", "4K"): "most, for most applications", ("32M", "4K"): "most, for most applications (4 or 8 KiB)",
                  ("100M", "16K"): "most, for most applications"}
BYTES = {"512": 512, "1K": 1 << 10, "4K": 4 << 10, "16K": 16 << 10, "64K": 64 << 10}
FILLS = ("10M", "32M", "100M")


def model(size, buffer, partitions):
    """Wagner 2015, eq. 5.1 with its gap of 32 bytes, as a share of buffer / event size; partitions 1: the best case."""
    return (1 - 32 / size) * max(0, 1 - (partitions - 1) * size / buffer)


def three(values, form):
    return " / ".join(form.format(v) for v in (min(values), sum(values) / len(values), max(values))) if values else "-"


def fill_details(raw):
    fill = {(b, z): raw.replay.get(f"fill {z} {b}", {}) for b in FILLS for z in BIN_SIZES}
    print("### Size of bins: events that fit (figures 5.6 to 5.8), minimum / average / maximum over the streams\n")
    head("buffer", "bins", "streams", "events, millions", "of the best size of bins of each stream, %",
         "model (eq. 5.1, figure 5.6), %: best / 20 partitions / 80", "published")
    for b in FILLS:
        streams = [s for s in fill[b, "4K"] if all(s in fill[b, z] for z in BIN_SIZES)]
        best = {s: max(fill[b, z][s]["kept_events"] for z in BIN_SIZES) for s in streams}
        for z in BIN_SIZES:
            kept = {s: fill[b, z][s]["kept_events"] for s in streams}
            row(b, z, len(kept), three([k / 1e6 for k in kept.values()], "{:.2f}"),
                three([100 * k / best[s] for s, k in kept.items()], "{:.1f}"),
                " / ".join(f"{100 * model(BYTES[z], int(b[:-1]) << 20, p):.1f}" for p in (1, 20, 80)),
                PUBLISHED_FILL.get((b, z), "-"))
    print("""
One stream of each program, strategy `first`, repeated until 1.1 times the buffer would be written: what is kept is what fitted.
In the model, 100 % is the content of equal memory without rests and half-empty bins. A bin has the dissertation's gap of
32 bytes at its end. Published results are those of Wagner 2015; we have the text of figures 5.6 to 5.9, not the bars. Bins
of 1 to 16 KiB keep most for each of 21 applications. Bins of 64 bytes keep 51 to 61 % of that. Bins of 1 MiB in 32 MiB
keep from 1 % (127.wrf2, 159 levels deep) to 88 % (is). We did not measure bins of 64 bytes and 1 MiB. Bins never take the
last sixteenth of a buffer.
""")
    print("### Size of bins: cost of filling 32 MiB (figure 5.9), ms per million events\n")
    head("bins", "minimum / average / maximum over the streams", "published")
    for z in BIN_SIZES:
        row(z, three([j["ns_per_event"] for j in fill["32M", z].values()], "{:.1f}"),
            "the same for nearly all sizes from 128 bytes to 1 MiB")
    print()


def share_details(raw):
    print("### Giving back, by size of bins and of the buffer (figure 5.10)\n")
    streams = list(raw.replay["share 4K whole"])
    for s in streams:
        whole = {z: raw.replay.get(f"share {z} whole", {}).get(s) for z in BIN_SIZES}
        print(f"{s}, {raw.repeats['share 4K whole'][s]} times over, `telescope`. Lossless size by size of bins: "
              + ", ".join(f"{(w['bytes_stored'] + w['meta_bytes']) / 1048576:.1f} MiB ({z})" for z, w in whole.items() if w)
              + ". In the table: share of it given back; ms of reduction; % of the time of recording:\n")
        head("buffer, % of that", *BIN_SIZES, "published: given back, %", "ms of 100 MiB", "% of the time")
        for percent in range(100, 0, -10):
            cells = []
            for z in BIN_SIZES:
                j, w = raw.replay.get(f"share {z} {percent}", {}).get(s), whole[z]
                cells.append(f"{100 * j['given_back_bytes'] / w['bytes_stored']:.1f} %; {j['reduction_ns'] / 1e6:.2f}; "
                             f"{100 * j['reduction_ns'] / (j['ns_per_event'] * j['events']):.2f} %" if j and w else "-")
            gone = 100 - percent
            row(percent, *cells, gone, f"{gone * 0.1:g} to {gone * 0.4:g}", f"{gone * 0.014:.1f} to {gone * 0.051:.1f}")
        print()
    print("""Published results are those of Wagner 2015, section 5.3.2; we have the text of the figure. A synthetic run of 100 MiB has 100
levels; one level at a time is dropped. For bins of 512 bytes and above that takes 100 to 400 us per MiB. Of the time it takes
1.4 to 5.1 %, times the share given back (24 % with bins of 64 bytes). The published columns are these numbers times the share.
The time of recording here is that of `fdr replay`, reading the stream included. Bins never take the last sixteenth of a buffer
(names, totals, new threads), so some of the run is given back at 100 %, too.
""")


def trend(sampled, edges):
    return "as published" if sampled < edges else "not as published"


def crash_rows(raw):
    for (place, threads), runs in sorted(raw.crash.items()):
        ratio = [s / p for s, p in runs]
        many = "s" if threads > 1 else ""
        row("r", f"SIGSEGV to complete bundle, full 64 MiB, {threads} thread{many}, FDR_DIR in {place} / memcpy and write of as much",
            spread(ratio), "<= 2.0", "<= 2.0", verdict(median(ratio), 2.0, 2.0))
        row("r", "the same, seconds", spread([s for s, _ in runs], "{:.3f}"), "<= 1", "<= 1",
            verdict(median([s for s, _ in runs]), 1, 1))
    if raw.postmortem:
        row("r", "`fdr crash` on such a bundle, seconds", spread(raw.postmortem, "{:.3f}"), "<= 1", "<= 1",
            verdict(median(raw.postmortem), 1, 1))
    both = [x / raw.crashpath["bare"][r] for r, x in raw.crashpath.get("fdr", {}).items() if r in raw.crashpath.get("bare", {})]
    if both:
        row("r", "record path, handlers and mapped arena / none and anonymous", spread(both, "{:.3f}"), "<= 1.02", "<= 1.02",
            verdict(median(both), 1.02, 1.02))


def trigger_rows(raw):
    if "call" in raw.trigger:
        ratio = [b / a for a, b in raw.trigger["call"]]
        row("p", "a call with a trigger on its region / with none set", spread(ratio, "{:.3f}"), "<= 1.05", "<= 1.05",
            verdict(median(ratio), 1.05, 1.05))
    if "latency" in raw.trigger:
        row("p", "from what a trigger sees to the cut of its snapshot, full 64 MiB, us [greatest of 20 "
            f"{max(b for _, b in raw.trigger['latency']):.0f}]", spread([a for a, _ in raw.trigger["latency"]], "{:.0f}"), "-", "-", "-")
    if "outside" in raw.trigger:
        ratio = [a / b for a, b in raw.trigger["outside"]]
        row("p", "snapshot from outside of a stopped process, full 64 MiB / memcpy and write of as much", spread(ratio), "<= 1.5",
            "<= 1.5", verdict(median(ratio), 1.5, 1.5))


def stall_rows(raw):
    if not raw.latency and not raw.snapshot:
        row("j", "latency of single calls, steps, snapshots", why(raw, "stall"), "-", "-", "-")
        return
    for percentile in ("p99.9", "p99.99"):
        for strategy, at in raw.latency.items():
            quotients = [q for _, _, q, _ in at[percentile]]
            as_long = median(fdr / wait for _, fdr, _, wait in at[percentile])
            row("j", f"latency of a call, {percentile}, 4 MiB, `{strategy}`, reducing / floor [/ a floor that lasts as long {as_long:.2f}]",
                spread(quotients), "<= 4", "<= 2", verdict(median(quotients), 4, 2))
    if raw.steps_table:
        worst = max(raw.steps_table, key=lambda c: int(c[6]))
        row("k", f"worst step of a reduction, CPU time ({worst[0]}, `{worst[1]}`, {worst[2]}; at most {max(int(c[7]) for c in raw.steps_table)} bins)",
            f"{int(worst[6]) / 1000:.1f} us", "<= 100 us", "<= 20 us", verdict(int(worst[6]) / 1000, 100, 20))
    if raw.stall_faults:
        row("k", "page faults of the recording thread", f"{max(raw.stall_faults)}", "0", "0", "meets aim" if max(raw.stall_faults) == 0 else "misses")
    if raw.rate:
        quotients = [r[2] for r in raw.rate]
        row("l", f"recording rate beside snapshots back to back / alone [beside memcpy and write {median(r[4] for r in raw.rate):.2f}]",
            spread(quotients), ">= 0.9", ">= 0.98", verdict(median(quotients), 0.9, 0.98, True))
    if raw.snapshot:
        quotients = [r[2] for r in raw.snapshot]
        row("n", "snapshot of a full 64 MiB / memcpy and write of 64 MiB, CPU time", spread(quotients), "<= 1.5", "<= 1.1",
            verdict(median(quotients), 1.5, 1.1))


def machine_line(raw):
    m = raw.machine
    print(f"Machine: {m.get('cpu', '?')}, {m.get('cores', '?')} cores. System: {m.get('system', '?')}, {m.get('kernel', '?')}; "
          f"clock source {m.get('clock', '?')}; compiler {m.get('compiler', '?')}. Load at the start: {m.get('load', '?')}; "
          f"rounds: {m.get('rounds', '?')}.\n")


def table(raw):
    machine_line(raw)
    head("", "measure", "value: median (min .. max)", "at least", "aim", "verdict")
    call_rows(raw)
    thread_rows(raw)
    size_rows(raw)
    otf2_rows(raw)
    reader_rows(raw)
    whole_rows(raw)
    cxx_rows(raw)
    overhead_rows(raw)
    counter_rows(raw)
    sample_rows(raw)
    memory_rows(raw)
    stall_rows(raw)
    crash_rows(raw)
    trigger_rows(raw)


# ---- the tables behind it ------------------------------------------------------------------------------------------

def call_details(raw):
    print("### Calls: ns per call (enter + leave), thread CPU time\n")
    head("kind", "median (min .. max)", "net / floor, median", "plain / floor, median")
    for mode, what in CALL_NAMES:
        if raw.calls.get(mode):
            net, plain = raw.net(mode), raw.plain(mode)
            row(what, spread(list(raw.calls[mode].values()), "{:.1f}"), f"{median(net):.2f}" if net else "-",
                f"{median(plain):.2f}" if plain else "-")
    print()


def size_details(raw):
    print("### Bytes per event: whole bins and headers in use / events kept\n")
    variants = [v for v in ("64M", "4M", "1M", "256K", "64M/128", "4M/128", "1M/128", "256K/128") if raw.replay.get(v)]
    head("stream", "events", *variants, "64M with definitions, totals, ledger", "OTF2", "OTF2 / 64M")
    for s in raw.replay.get("64M", {}):
        j = raw.replay["64M"][s]
        sizes = [raw.per_event(v).get(s) for v in variants]
        meta = (j["bytes_stored"] + j.get("meta_bytes", 0)) / max(j["kept_events"], 1)
        o = raw.otf2.get(s)
        row(s, f"{j['events']:,}", *(f"{x:.2f}" if x else "-" for x in sizes), f"{meta:.2f}", f"{o:.2f}" if o else "-",
            f"{o / sizes[0]:.1f}" if o and sizes[0] else "-")
    mean = [raw.per_event(v).values() for v in variants]
    row("mean", "", *(f"{sum(m) / len(m):.2f}" if m else "-" for m in mean), "", "", "")
    row("max", "", *(f"{max(m):.2f}" if m else "-" for m in mean), "", "", "")
    print("\n64M, 4M, ... is the buffer; /128 at 128 ns, the others lossless. OTF2: its event file, Debian's library.\n")


def stored_steps(raw):
    """The models of each stream, with the stored sizes of fdr as the last three steps."""
    stored = {"stored": "64M", "stored128": "64M/128", "stored10us": "64M/10us"}
    return {s: {**steps, **{k: raw.per_event(v)[s] for k, v in stored.items() if s in raw.per_event(v)}}
            for s, steps in raw.steps.items()}


def step_details(raw):
    streams = stored_steps(raw)
    print("### Encoding steps: bytes per event, each step on top of those before\n")
    head("stream", *(what for _, what in STEPS))
    for s, steps in streams.items():
        row(s, *(f"{steps[k]:.2f}" if k in steps else "-" for k, _ in STEPS))
    print("\n### Reduction by each step, against the one before: minimum / average / maximum over the streams\n")
    head("step", "here", "published (Wagner 2015, table 5.2)")
    for what, before, after, published in PUBLISHED:
        r = [100 * (1 - v[after] / v[before]) for v in streams.values() if before in v and after in v]
        if r:
            row(what, f"{min(r):.1f} / {sum(r) / len(r):.1f} / {max(r):.1f} %",
                "{:.1f} / {:.1f} / {:.1f} %".format(*published) if published else "-")
    print()


def filter_details(raw):
    print("### Minimum duration of 1 us: events kept\n")
    head("stream", "events", "expected by the corpus", "plain count", "fdr", "ratio", "bytes/event kept", "agrees",
         "MB complete", "MB filtered", "ratio", "published: MB complete", "MB filtered", "ratio (Wagner 2015, table 5.4)")
    wrong = 0
    for s, (events, kept, opened, bookkeeping) in raw.filter.items():
        j = raw.replay.get("filter", {}).get(s)
        corpus = raw.expected.get(s)
        rest = opened + bookkeeping
        ours = j["kept_events"] if j else None
        # The corpus also counts enters of calls that never end, and requests, which are no events for fdr.
        same = ours == kept and (corpus is None or corpus[1] == kept + rest)
        wrong += not same
        whole = raw.replay.get("64M", {}).get(s)
        size = (whole["bytes_stored"] / 1e6, j["bytes_stored"] / 1e6) if whole and j else None
        published = PUBLISHED_FILTER.get(s.split()[0])
        row(s, f"{events:,}", f"{corpus[1]:,} = {corpus[1] - rest:,} + {rest}" if corpus else "-", f"{kept:,}",
            f"{ours:,}" if j else "-", f"{100 * (ours + rest) / (events + bookkeeping):.3f} %" if j else "-",
            f"{j['bytes_per_event']:.2f}" if j and ours else "-", "yes" if same else "**no**",
            *((f"{size[0]:.2f}", f"{size[1]:.3f}", f"{100 * size[1] / size[0]:.2f} %") if size else "---"),
            *((*published[:2], f"{published[2]} %") if published else "---"))
    print(f"\nA call of exactly 1000 ns is kept, one of 999 ns is not. {len(raw.filter) - wrong} of {len(raw.filter)} agree.\n")


def reader_details(raw):
    print("### Reader: one core, CPU time, median over the rounds\n")
    head("snapshot", "events", "M events/s", "ns per event", "opening, ms")
    for name, runs in raw.read.items():
        r = rates(raw, name)
        if r:
            row(name, f"{runs[0][0]:,}", spread(r, "{:.1f}"), f"{1000 / median(r):.1f}",
                f"{1000 * median(o for _, _, o in runs):.2f}")
    if raw.full:
        f = raw.full
        print(f"\nfull: {f['buffer_bytes'] >> 20} MiB, {f['bins'] - f['bins_free']:,} of {f['bins']:,} bins in use, "
              f"{len(f['locations'])} locations.")
    print()


def whole_details(raw):
    print("### Whole programs: user CPU time, medians\n")
    head("program", "calls", "plain", "empty hooks", "hooks that read the clock", "fdr", "ns per call, clock",
         "ns per call, fdr", "added by fdr / by the clock", "net of empty hooks")
    for p in raw.whole:
        row(p["program"], f"{p['calls']:,}", *(f"{p[k]:.2f} s" for k in ("plain_s", "empty_s", "clock_s", "fdr_s")),
            f"{p['clock_ns_per_call']:.1f}", f"{p['fdr_ns_per_call']:.1f}",
            *(f"{p[k]:.2f} ({p[k + '_min']:.2f} .. {p[k + '_max']:.2f})" for k in ("ratio", "net")))
    print("\nns per call: above the program with empty hooks.\n")


def cxx_details(raw):
    print("### C++, a loop over std::vector and std::map: ns of CPU time for an element\n")
    head("compiler", "no hooks", "hooks of fdr::instrument", "hooks in everything")
    for compiler, variants in raw.cxx.items():
        row(compiler, *(spread(variants[v].values(), "{:.1f}") if v in variants else "-" for v in ("none", "default", "all")))
    print()


COUNTER_NAMES = {
    "plain": "the program alone", "all": "calls of all functions", "all-sampled": "the same, counters sampled at 1 kHz",
    "all-edges": "the same, counters at every edge", "chosen": "calls of two functions",
    "chosen-sampled": "the same, counters sampled at 1 kHz", "chosen-edges": "the same, counters at every edge"}


def counter_details(raw):
    print(f"### Counters sampled by the monitor, or read at every edge: Lua, {raw.counters['counters']}\n")
    head("recorded", "CPU time, median", "/ without counters", "/ the program alone", "MiB", "/ without counters", "calls",
         "readings")
    for r in raw.counters["table"]:
        row(COUNTER_NAMES.get(r["variant"], r["variant"]), f"{r['cpu_s']:.2f} s",
            f"{r['over_base']:.2f} ({r['over_base_min']:.2f} .. {r['over_base_max']:.2f})", f"{r['over_plain']:.1f}",
            f"{r['bytes'] / 1048576:.2f}", f"{r['size_over_base']:.2f}" if r["bytes"] else "-", f"{r['calls']:,}", f"{r['readings']:,}")
    print("""
User and system time of the process, the monitor's included; sizes are of complete recordings. Published results are those of
Ilsche et al. 2014; we have their text, not the bars of the figures. With counters sampled at 1 kSa/s, traces of the NAS
benchmarks are significantly smaller than with counters at every event (figure 6). Run time with every function instrumented
is very high; sampling of call paths adds a marginal part (figure 4). The trend is the same here. A reading here is a system
call for three counters of the kernel; this machine has no counters of the processor.
""")


def stall_details(raw):
    print("### Latency of single calls, ns: floor / fdr / a floor that lasts as long, medians over the rounds\n")
    names = ("p50", "p99", "p99.9", "p99.99", "p99.999", "max")
    head("strategy, 4 MiB, reducing", *names)
    for strategy, at in raw.latency.items():
        row(strategy, *(" / ".join(f"{median(v[i] for v in at[n]):.0f}" for i in (0, 1, 3)) for n in names))
    if raw.steps_table:
        print("\n### Steps: room for the next record, reductions included; the thread's CPU time, the least of the rounds\n")
        head("calls", "strategy", "buffer", "steps", "median, us", "p99, us", "worst, us", "most bins", "bins, mean")
        for c in raw.steps_table:
            row(*c[:3], f"{int(c[3]):,}", *(f"{int(n) / 1000:.2f}" for n in c[4:7]), *c[7:])
    if raw.snapshot:
        print(f"\nA snapshot of 64 MiB takes {median(r[0] for r in raw.snapshot):.1f} ms of CPU, memcpy and write of as much "
              f"{median(r[1] for r in raw.snapshot):.1f} ms.")
    print()


def details(raw):
    machine_line(raw)
    if raw.calls:
        call_details(raw)
    if raw.replay.get("64M"):
        size_details(raw)
    if raw.steps:
        step_details(raw)
    if raw.filter:
        filter_details(raw)
    if raw.read:
        reader_details(raw)
    if raw.whole:
        whole_details(raw)
    if raw.cxx:
        cxx_details(raw)
    if raw.latency:
        stall_details(raw)
    if raw.counters:
        counter_details(raw)
    if raw.replay.get("never full"):
        memory_details(raw)
    if raw.replay.get("fill 4K 32M"):
        fill_details(raw)
    if raw.replay.get("share 4K whole"):
        share_details(raw)
    for part, reason in raw.skipped.items():
        print(f"Skipped: {part}: {reason}")
    for part, what in raw.failed:
        print(f"FAILED: {part}: {what}")


def text_of(what, raw):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        what(raw)
    return out.getvalue().strip("\n")


def write(raw, path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    for name, what in (("table", table), ("details", details)):
        block = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.S)
        if not block.search(text):
            sys.exit(f"report.py: {path} has no lines for {name}")
        text = block.sub(lambda m: m.group(1) + text_of(what, raw) + "\n" + m.group(2), text)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def main():
    arguments = sys.argv[1:]
    if len(arguments) == 3 and arguments[0] == "write":
        write(Raw(arguments[1]), arguments[2])
    elif len(arguments) == 2 and arguments[0] in ("table", "details"):
        (table if arguments[0] == "table" else details)(Raw(arguments[1]))
    else:
        sys.exit("usage: report.py table|details RAW, or report.py write RAW FILE")


main()
