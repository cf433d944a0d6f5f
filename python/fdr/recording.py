# SPDX-License-Identifier: MIT
"""Recordings as objects: what they contain, and their events one by one."""
import collections
import ctypes as c
import fnmatch
import numbers
import re
import struct

from . import reader_library as r

lib = r.load()

Location = collections.namedtuple("Location", "id name tid rank file id_in_file parent samples live from_ns to_ns start_ns end_ns")
Event = collections.namedtuple("Event", "time_ns location kind name id depth duration_ns fields repaired open reduced path")
Region = collections.namedtuple("Region", "id name file line")


class Error(Exception):
    """A file that cannot be read, or memory that ran out."""


def _rank_of(handle, path):
    """Of MPI itself, of the launcher, of the file's name; None: not known."""
    notes = c.POINTER(r.NoteInfo)()
    for i in range(lib.fdr_notes(handle, c.byref(notes))):
        if notes[i].key == b"mpi.rank":
            return int(notes[i].value)
    rank = lib.fdr_file_info(handle).contents.rank
    found = re.findall(r"\.r(\d+)\.", path.rsplit("/", 1)[-1])
    return rank if rank >= 0 else int(found[-1]) if found else None


def _real(bits):
    return struct.unpack("d", struct.pack("Q", bits))[0]


class Recording:
    """One recording, or those of all ranks of a job as one: Recording("a.fdr"), Recording("r0.fdr", "r1.fdr").

    Close it, or use it in a `with`. Columns stay usable afterwards."""

    def __init__(self, *paths):
        if not paths:
            raise TypeError("a path is needed")
        self.paths, self._parts, self._file = [str(p) for p in paths], [], None
        try:
            for path in self.paths:
                self._parts.append(self._open(path))
            self._file = self._parts[0] if len(paths) == 1 else self._join()
        except BaseException:
            self.close()
            raise

    @staticmethod
    def _open(path):
        handle, message = r.POINTER(), c.create_string_buffer(512)
        if lib.fdr_file_open(path.encode("utf-8", "surrogateescape"), c.byref(handle), message, 512) == 2:
            raise Error(f"{path}: {r.text(message.value)}")
        return handle

    def _join(self):
        ranks = [_rank_of(h, p) for h, p in zip(self._parts, self.paths)]
        if None in ranks or len(set(ranks)) < len(ranks):
            ranks = range(len(ranks))
        count = len(self._parts)
        handle = lib.fdr_files_join((r.POINTER * count)(*self._parts), (r.I32 * count)(*ranks), count)
        if not handle:
            raise Error("out of memory")
        return r.POINTER(handle)

    def close(self):
        if self._file is not None and len(self._parts) > 1:
            lib.fdr_file_close(self._file)
        for part in self._parts:
            lib.fdr_file_close(part)
        self._file, self._parts = None, []

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def __del__(self):
        if getattr(self, "_parts", None):
            self.close()

    @property
    def handle(self):
        if self._file is None:
            raise ValueError("the recording is closed")
        return self._file

    # ---- facts ----

    @property
    def info(self):
        """The fields of struct fdr_file_info as a dictionary; of a job, sums and facts of the first file."""
        i = lib.fdr_file_info(self.handle).contents
        return {name: r.text(getattr(i, name)) if kind is r.TEXT else getattr(i, name) for name, kind in i._fields_}

    @property
    def damage(self):
        """The damage of all files, one line each. Decodes everything."""
        lines = []
        for path, part in zip(self.paths, self._parts if self.handle else []):
            if lib.fdr_file_verify(part) == 2:
                raise Error(f"{path}: out of memory")
            count = lib.fdr_file_damage_count(part)
            lines += [f"{path}: {r.text(lib.fdr_file_damage(part, i))}" for i in range(count)]
        return lines

    @property
    def locations(self):
        """Threads, signal lanes and streams of samples, in order of their ids. rank None: not known."""
        rows, origin = [], r.Origin()
        for i in range(lib.fdr_location_count(self.handle)):
            l = lib.fdr_location_info(self.handle, i).contents
            joined = lib.fdr_location_origin(self.handle, l.id, c.byref(origin))
            file, rank, own = (origin.file, origin.rank, origin.id) if joined else (0, _rank_of(self.handle, self.paths[0]), l.id)
            rows.append(Location(l.id, r.text(l.name), l.tid, rank, self.paths[file], own,
                                 None if l.parent == r.NONE else l.parent, l.samples, l.live, l.from_ns, l.to_ns,
                                 l.start_ns, l.end_ns))
        return rows

    @property
    def regions(self):
        """Defined regions; [0] stands for no region, so that regions[id] is the one with this id."""
        rows = [Region(0, "", "", 0)]
        for i in range(1, lib.fdr_definition_count(self.handle, r.REGION_DEFINITION) + 1):
            d = lib.fdr_definition(self.handle, r.REGION_DEFINITION, i).contents
            rows.append(Region(i, r.text(d.name), r.text(d.file), d.line))
        return rows

    @property
    def notes(self):
        rows, found = c.POINTER(r.NoteInfo)(), {}
        for part in self._parts if self.handle else []:
            for i in range(lib.fdr_notes(part, c.byref(rows))):
                found.setdefault(r.text(rows[i].key), r.text(rows[i].value))
        return found

    # ---- events ----

    def _select(self, classes=None, location=None, depth=None, from_ns=0, to_ns=0, min_duration_ns=0, region=None,
                in_turn=False):
        """struct fdr_select, and what it points to."""
        names = [classes] if isinstance(classes, str) else classes or []
        unknown = [n for n in names if n not in r.CLASSES]
        if unknown:
            raise ValueError(f"no class {unknown[0]!r}; there are {', '.join(r.CLASSES)}")
        locations = [] if location is None else [location] if isinstance(location, numbers.Integral) else list(location)
        low, high = (depth, depth) if isinstance(depth, numbers.Integral) else depth or (0, 0)
        s = r.Select(classes=sum(1 << r.CLASSES.index(n) for n in set(names)), depth_min=low, depth_max=high, from_ns=from_ns,
                     to_ns=to_ns, min_duration_ns=min_duration_ns, one_location_after_another=in_turn)
        if location is not None:
            s.locations, s.location_count = (r.U32 * (len(locations) + 1))(*locations), len(locations)
        if region is not None:
            chosen = [fnmatch.fnmatchcase(d.name, region) for d in self.regions]
            s.regions, s.region_count = (r.U8 * len(chosen))(*chosen), len(chosen)
        return s

    def _fields(self, e):
        info = c.POINTER(r.FieldInfo)()
        count = min(lib.fdr_event_fields(self.handle, c.byref(e), c.byref(info)), e.field_count, 16)
        return {r.text(info[i].name): self._value(info[i], e.field[i]) for i in range(count)}

    @staticmethod
    def _value(field, bits):
        word = None
        for i in range(bits + 1 if field.word and bits < 64 else 0):
            word = field.word[i]
            if word is None:
                break
        if word is not None:
            return r.text(word)
        return _real(bits) if field.type == r.F64_VALUE else c.c_int64(bits).value if field.type == r.I64_VALUE else bits

    def _place(self, address, returns, time_ns):
        return r.text(lib.fdr_place_at(self.handle, address, returns, time_ns).contents.function)

    def _path(self, e):
        """Open regions, then functions, outermost first."""
        s = e.sample.contents
        names = [r.text(lib.fdr_definition(self.handle, r.REGION_DEFINITION, s.region[i]).contents.name)
                 for i in range(s.region_count)]
        names += [self._place(s.frame[i], True, e.time_ns) for i in range(s.frame_count)]
        return tuple(names + ([self._place(s.pc, False, e.time_ns)] if s.pc else []))

    def _event(self, e):
        fields, path = self._fields(e) if e.field_count else {}, None
        if e.kind == r.SAMPLE and e.sample:
            path, fields = self._path(e), {"weight": e.sample.contents.weight}
        if e.reduced:
            name = "[filtered]" if e.filtered else "[open]" if e.not_over else "[reduced]"
        else:
            name = r.text(lib.fdr_id_name(self.handle, e.class_, e.id)) if e.kind != r.SAMPLE else path[-1] if path else ""
        if e.ordinal_kind == r.ORDINAL_KNOWN:
            fields["ordinal"] = e.ordinal
        return Event(e.time_ns, e.location, r.text(lib.fdr_kind_info(e.kind).contents.name), name, e.id, e.depth,
                     e.duration_ns, fields, e.repaired, e.open, e.reduced, path)

    def events(self, classes=None, **select):
        """The events one by one, in order of time. Some 10 us each: for millions take columns.

        classes: a name or a list of fdr.CLASSES. Also location (an id, or several), depth (a number, or (least, most)),
        from_ns, to_ns, min_duration_ns, region (a pattern of names)."""
        chosen, e = self._select(classes, **select), r.Event()
        iterator = lib.fdr_iter_open(self.handle, c.byref(chosen))
        if not iterator:
            raise Error("out of memory")
        try:
            while self._file is not None and lib.fdr_iter_next(iterator, c.byref(e)):
                yield self._event(e)
        finally:
            if self._file is not None:
                lib.fdr_iter_close(iterator)

    # ---- columns and the call tree: with numpy ----

    def calls(self, **select):
        """Columns of the kept calls: location, enter_ns, duration_ns, exclusive_ns, depth, region, parent, open.

        parent: the index of the caller in these columns; -1: none is shown. Selections as for events."""
        from . import columns
        return columns.calls(self, **select)

    def messages(self, **select):
        """Columns of messages: location, time_ns, is_send, peer, tag, comm, bytes, ordinal (-1: not known for sure)."""
        from . import columns
        return columns.messages(self, **select)

    def metric(self, name, **select):
        """Columns of one metric: location, time_ns, value."""
        from . import columns
        return columns.metric(self, name, **select)

    def totals(self):
        """Columns of the exact totals of regions for the whole run."""
        from . import columns
        return columns.totals(self)

    def ledger(self):
        """Columns of the ledger."""
        from . import columns
        return columns.ledger(self)

    def tree(self, **select):
        """The kept calls, summed up by call path: a fdr.Node without a name, with the outermost calls below it."""
        from . import call_tree
        return call_tree.tree(self, **select)
