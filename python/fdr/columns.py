# SPDX-License-Identifier: MIT
"""Events and accounts as columns: arrays of numpy of equal length."""
import ctypes as c
import numbers

from . import reader_library as r
from .recording import Error, lib

try:
    import numpy as np
except ImportError as error:
    raise ImportError("columns need numpy (Debian: python3-numpy)") from error

BATCH = 1 << 16
_FORMATS = {r.U64: "u8", r.I64: "i8", r.U32: "u4", r.I32: "i4", r.U8: "u1", r.BOOL: "?", r.U64 * 16: ("u8", 16)}


def _dtype(structure, names):
    """The named fields of a structure, where they are in memory."""
    fields = dict(structure._fields_)
    return np.dtype({"names": names, "formats": [_FORMATS[fields[n]] for n in names],
                     "offsets": [getattr(structure, n).offset for n in names], "itemsize": c.sizeof(structure)})


class Columns(dict):
    """Arrays by name, also as attributes. pandas.DataFrame(columns) takes it."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def rows(self):
        """How many there are."""
        return len(next(iter(self.values()), ()))

    def where(self, mask):
        """The rows for which the mask is true."""
        return Columns({name: column[mask] for name, column in self.items()})


def _batches(recording, select, names):
    """The chosen events, some ten thousand at a time: as an array that is valid until the next one."""
    iterator = lib.fdr_iter_open(recording.handle, c.byref(select))
    if not iterator:
        raise Error("out of memory")
    events = (r.Event * BATCH)()
    view = np.frombuffer(events, dtype=_dtype(r.Event, names))
    try:
        count = BATCH
        while count == BATCH:
            count = lib.fdr_iter_take(iterator, events, BATCH)
            yield view[:count]
    finally:
        lib.fdr_iter_close(iterator)
    for part in recording._parts:
        if lib.fdr_file_met(part) == 2:
            raise Error("out of memory: events are missing")


def _taken(recording, select, names, rows):
    """Columns of those events for which rows(batch) is true."""
    parts = {n: [] for n in names}
    for batch in _batches(recording, select, names):
        chosen = batch[rows(batch)]
        for n in names:
            parts[n].append(chosen[n].copy())
    return {n: np.concatenate(p) for n, p in parts.items()}


def sums(index, values, size):
    """The sum of the values at each index."""
    if float(values.sum(dtype=np.float64)) < 1 << 53:  # exact in f64, and many times as fast
        return np.bincount(index, weights=values, minlength=size).astype(np.int64)
    total = np.zeros(size, np.int64)
    np.add.at(total, index, values)
    return total


# ---- calls ----

def _levels(depth):
    """The places of the calls of depth 1, 2, ..., each in order."""
    by_depth = np.argsort(depth.astype(np.uint16), kind="stable")  # 16 bits hold each depth, and sort fastest
    ends = np.cumsum(np.bincount(depth, minlength=1))
    return [by_depth[begin:end] for begin, end in zip(ends[:-1], ends[1:])]


def _parents(location, depth):
    """Calls are in order of their ends, so a caller is the next call one level up of its location."""
    parent = np.full(len(depth), -1, np.int64)
    outer = np.empty(0, np.int64)
    for own in _levels(depth):
        at = np.searchsorted(outer, own)
        there = at < len(outer)
        found = outer[at[there]]
        same = location[found] == location[own[there]]
        parent[own[there][same]] = found[same]
        outer = own
    return parent


def _exclusive(duration, reduced, parent, depth):
    """Less the calls inside; those inside of a call that is made up count for the one around it."""
    real = np.flatnonzero((parent >= 0) & ~reduced)
    inside = sums(parent[real], duration[real], len(duration))
    made_up = np.flatnonzero((parent >= 0) & reduced)
    for own in reversed(_levels(depth[made_up])):
        np.add.at(inside, parent[made_up[own]], inside[made_up[own]])
    return np.maximum(duration - inside, 0)


def _chosen(recording, k, depth=None, from_ns=0, to_ns=0, min_duration_ns=0, region=None):
    mask = np.ones(len(k["depth"]), bool)
    if depth is not None:
        low, high = (depth, depth) if isinstance(depth, numbers.Integral) else depth
        mask &= (k["depth"] >= low) & (k["depth"] <= (high or 1 << 31))
    if from_ns:
        mask &= k["leave_ns"] >= from_ns
    if to_ns:
        mask &= k["enter_ns"] <= to_ns
    if min_duration_ns:
        mask &= k["leave_ns"] - k["enter_ns"] >= min_duration_ns
    if region is not None:
        chosen = recording._select(region=region)
        ids = np.ctypeslib.as_array(chosen.regions, (chosen.region_count,)).astype(bool)
        mask &= ids[np.minimum(k["region"], len(ids) - 1)] & ~k["reduced"]
    return mask


def _renumbered(parent, mask):
    number = np.where(mask, np.cumsum(mask) - 1, -1)
    kept = parent[mask]
    return np.where(kept >= 0, number[kept], -1)


def _enters(ends, begins):
    """Times of enter. Of calls without a duration, the nth begin of a depth belongs to its nth end."""
    time = ends["time_ns"].astype(np.int64) - ends["duration_ns"].astype(np.int64)
    without = ends["open"] | ends["reduced"]
    for level in np.unique(begins["depth"]):
        own = np.flatnonzero(without & (ends["depth"] == level))
        time[own] = begins["time_ns"][begins["depth"] == level][:len(own)]
    return time


def _ends_and_begins(recording, select):
    """Columns of all ends of calls, and of those begins whose end has no duration."""
    names = ["time_ns", "location", "kind", "depth", "id", "duration_ns", "open", "reduced"]
    rows = _taken(recording, select, names, lambda e: (e["kind"] == r.LEAVE) | e["open"] | e["reduced"])
    is_end = rows.pop("kind") == r.LEAVE
    return ({n: column[part] for n, column in rows.items()} for part in (is_end, ~is_end))


def calls(recording, location=None, **select):
    ends, begins = _ends_and_begins(recording, recording._select("region", location, in_turn=True))
    k = Columns(location=ends["location"], enter_ns=_enters(ends, begins), depth=ends["depth"], open=ends["open"],
                reduced=ends["reduced"], leave_ns=ends["time_ns"].astype(np.int64))
    k["region"] = np.where(k.reduced, 0, ends["id"])
    k["parent"] = _parents(k.location, k.depth)
    duration = ends["duration_ns"].astype(np.int64)
    exclusive = _exclusive(duration, k.reduced, k.parent, k.depth)
    known = ~(k.open | k.reduced)
    k["duration_ns"], k["exclusive_ns"] = np.where(known, duration, -1), np.where(known, exclusive, -1)
    mask = _chosen(recording, k, **select)
    parent = k.parent if mask.all() else _renumbered(k.parent, mask)
    shown = k.where(mask) | {"parent": parent}
    return Columns({n: shown[n] for n in ("location", "enter_ns", "duration_ns", "exclusive_ns", "depth", "region", "parent",
                                          "open", "reduced")})


# ---- points ----

def messages(recording, **select):
    names = ["time_ns", "location", "kind", "field_count", "field", "ordinal_kind", "ordinal"]
    e = _taken(recording, recording._select("message", **select), names,
               lambda e: (e["kind"] == r.SEND) | (e["kind"] == r.RECV))
    field = e["field"].reshape(-1, 16)
    known = e["ordinal_kind"] == r.ORDINAL_KNOWN
    return Columns(location=e["location"], time_ns=e["time_ns"].astype(np.int64), is_send=e["kind"] == r.SEND,
                   peer=field[:, 0].astype(np.int64), tag=field[:, 1].view(np.int64) if len(field) else field[:, 1].astype(np.int64),
                   comm=field[:, 2].astype(np.int64), bytes=field[:, 3].astype(np.int64),
                   ordinal=np.where(known, e["ordinal"].astype(np.int64), -1))


def metric(recording, name, **select):
    kinds = {}
    for i in range(1, lib.fdr_definition_count(recording.handle, r.METRIC_DEFINITION) + 1):
        m = lib.fdr_metric_info(recording.handle, i).contents
        if r.text(m.name) == name:
            kinds[i] = m.type
    if not kinds:
        raise KeyError(f"no metric {name!r}")
    e = _taken(recording, recording._select("metric", **select), ["time_ns", "location", "id", "field"],
               lambda e: np.isin(e["id"], list(kinds)))
    bits = np.ascontiguousarray(e["field"].reshape(-1, 16)[:, 0])
    kind = next(iter(kinds.values()))
    value = bits.view(np.float64 if kind == r.F64_VALUE else np.int64 if kind == r.I64_VALUE else np.uint64)
    return Columns(location=e["location"], time_ns=e["time_ns"].astype(np.int64), value=value)


# ---- accounts ----

def _rows(structure, names, count, rows):
    if not count:
        return {n: np.empty(0, _FORMATS[dict(structure._fields_)[n]]) for n in names}
    memory = c.cast(rows, c.POINTER(structure * count)).contents
    view = np.frombuffer(memory, dtype=_dtype(structure, names))
    return {n: view[n].copy() for n in names}


def totals(recording):
    rows = c.POINTER(r.Total)()
    count = lib.fdr_totals(recording.handle, c.byref(rows))
    names = ["location", "class_", "id", "rest", "at_least", "calls", "untimed", "inclusive_ns", "exclusive_ns", "min_ns",
             "max_ns"]
    k = Columns(_rows(r.Total, names, count, rows))
    k = k.where(k.class_ == r.CLASSES.index("region"))
    k["region"] = k.pop("id")
    del k["class_"]
    return k


def ledger(recording):
    rows = c.POINTER(r.LedgerRow)()
    count = lib.fdr_ledger(recording.handle, c.byref(rows))
    return Columns(_rows(r.LedgerRow, [n for n, _ in r.LedgerRow._fields_], count, rows))
