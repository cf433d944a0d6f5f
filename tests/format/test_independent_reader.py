#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=house,slow promise=P6
# P6: docs/FORMAT.md suffices to read a recording. This reader was written from that page only, without a header or
# library of fdr. It decodes every record of small recordings, orders the events and adds up the accounts. Its result
# must equal the output of `fdr dump --tsv` and `fdr stats --json`. Section numbers are those of docs/FORMAT.md.
import json
import os
import struct
import subprocess
import sys
import tempfile

M64 = (1 << 64) - 1
NEVER = 1 << 70  # after every tick
OPEN = NEVER - 1  # the leave of an open call


class Image:
    """Little-endian integers at byte offsets."""

    def __init__(self, data):
        self.data = data

    def u8(self, at):
        return self.data[at]

    def u16(self, at):
        return struct.unpack_from("<H", self.data, at)[0]

    def u32(self, at):
        return struct.unpack_from("<I", self.data, at)[0]

    def u64(self, at):
        return struct.unpack_from("<Q", self.data, at)[0]

    def text(self, at, size):
        return self.data[at : at + size].split(b"\0")[0].decode()


def check32(data):  # section 2.3
    h = 0x9E3779B97F4A7C15 ^ len(data)
    for byte in data:
        h = ((h ^ byte) * 0x100000001B3 + (h >> 41)) & M64
    return (h ^ h >> 32) & 0xFFFFFFFF


class Bits:
    """The payload of a bin, and its running check (sections 9.1 and 9.6)."""

    def __init__(self, payload, count):
        self.value = int.from_bytes(payload, "little")
        self.at, self.count = 0, count
        self.hash = 0x243F6A8885A308D3

    def see(self, n):
        return self.value >> self.at & ((1 << n) - 1)

    def take(self, n):
        assert self.at + n <= self.count, "a record runs over the committed bits"
        v = self.see(n)
        self.at += n
        return v

    def mix(self, v):
        self.hash = (self.hash ^ v & M64) * 0x9E3779B97F4A7C15 & M64


def take_low(b, length):
    if length < 2:
        return length
    return b.take(length - 1) | 1 << (length - 1)


def take_length(b, predicted):
    w = b.see(3)
    if w & 1 == 0:
        b.take(1)
        return predicted
    if w & 2 == 0:
        b.take(2)
        return predicted - 1
    if w & 4 == 0:
        b.take(3)
        return predicted + 1
    return b.take(9) >> 3


def take_gamma(b):
    k = 0
    while not b.see(k + 1) >> k & 1:
        k += 1
    b.take(k + 1)
    return take_low(b, k + 1)


EMPTY = ((1 << 20) - 1, 0, 1)


def nearer(width, length):
    return min(width + (length > width) - (length < width), 27)


def entry_after(seen, known, ident, gap_length, length):
    """The table entry that a spelled-out record leaves: id, bits for the gap, length of the duration."""
    if known:
        gap_length = nearer(seen[1], gap_length)
        if length and seen[2]:
            length = nearer(seen[2] - 1, length - 1) + 1
    return ident, min(gap_length, 27), min(length, 28)


class Record:
    pass


class Bin:
    """One bin: its header (section 8) and its records (section 9)."""

    def __init__(self, image, at):
        assert image.u32(at) == 0x4E424446
        assert image.u32(at + 4) == check32(image.data[at + 8 : at + 48])
        self.location, self.seq = image.u32(at + 8), image.u32(at + 12)
        self.depth, self.class_, self.band = image.u16(at + 16), image.u8(at + 18), image.u8(at + 19)
        self.size, self.base_ordinal = 1 << image.u8(at + 20), image.u32(at + 28)
        self.base_tick, self.first_index = image.u64(at + 32), image.u64(at + 40)
        commit, self.next = image.u64(at + 48), image.u32(at + 56)
        self.bits, self.count, self.check = commit & 0xFFFFF, commit >> 20 & 0xFFFFF, commit >> 40
        self.payload = image.data[at + 64 : at + self.size]

    def records(self):
        b = Bits(self.payload, self.bits)
        contexts = min(64, self.size >> 6)
        slots = [[EMPTY, EMPTY] for _ in range(contexts)]
        values = [[0] * 16 for _ in range(8)]
        numbers = [[(0, 0)] * 4 for _ in range(contexts // 4)]
        context, last, newest = 0, self.base_tick, (0, 4, 4)
        zero_tick, zero_count = self.base_tick, self.base_ordinal
        call = self.class_ == 0
        out = []
        for _ in range(self.count):
            slot, said = slots[context], None
            if call and b.see(9) == 511:
                b.take(9)
                said = take_gamma(b) - 1
                b.mix(said << 32 | 1)
            ones = 0
            while ones < 4 and b.see(ones + 1) >> ones & 1:
                ones += 1
            which = (0, 1, 0, 1, 2)[ones]
            seen = slot[which] if which < 2 else newest
            if ones < 2:
                entry, start = seen, ones + 1
                chunk = b.take(start + entry[1] + max(entry[2] - 1, 0))
                b.mix(chunk)
                gap = chunk >> start & (1 << entry[1]) - 1
                duration = (chunk >> start + entry[1]) + 1 if entry[2] else 0
            else:
                ident = seen[0]
                if which < 2:
                    b.take(ones + 1)
                else:
                    ident = take_low(b, b.take(9) >> 4)
                gap_length = take_length(b, seen[1])
                length = take_length(b, seen[2]) if call else 0
                gap = take_low(b, gap_length)
                duration = take_low(b, length - 1) + 1 if length else 0
                b.mix((gap << 32 | gap >> 32) ^ duration ^ ident << 44)
                entry = entry_after(seen, which < 2, ident, gap_length, length)
                slot[0:2] = [entry, slot[1] if which == 0 else slot[0]]
            assert entry[0] != EMPTY[0]
            r = Record()
            r.id, r.class_, r.depth = entry[0], self.class_, self.depth
            r.enter = last + gap
            r.leave = r.enter
            r.ordinal, r.fields = said, []
            if call:
                r.leave += duration
                if r.leave == r.enter:
                    if zero_tick != r.enter:
                        zero_tick, zero_count = r.enter, 0
                    if said is None:
                        r.ordinal = zero_count
                    zero_count = r.ordinal + 1
                    self.tie(b, r, self.depth > 1)
                    if self.depth > 1:
                        b.mix(r.in_tick | r.parent << 1)
            else:
                r.tied = b.take(1)
                r.links, r.cut = [], False
                while r.tied and not r.cut and b.take(1):
                    r.links.append(take_gamma(b) - 1)
                    r.cut = r.links[-1] == 0x7FFFFFFF
                r.sibling = take_gamma(b) - 1 if r.tied else 0
                r.point = take_gamma(b) - 1 if r.tied else 0
                for ordinal in r.links:
                    b.mix(ordinal << 1 | 1)
                b.mix(r.tied | r.sibling << 1 | r.point << 33)
                if r.cut:
                    r.links.pop()
                shift = {1: 2, 2: 18}.get(self.class_, 31)
                numbered, r.id = r.id >> shift, r.id & (1 << shift) - 1
                self.fields(b, r, values[r.id % 8], numbered)
                for v in r.fields:
                    b.mix(v)
                r.said = self.number(b, r, values[r.id % 8], numbers, numbered)
            last = r.leave
            context, newest = (context << 3 ^ entry[0]) & (contexts - 1), entry
            out.append(r)
        assert b.at == self.bits and (not out or b.hash >> 40 == self.check), "not what the commit word says"
        return out

    @staticmethod
    def tie(b, r, there):
        r.in_tick = b.take(1) if there else 0
        r.parent = take_gamma(b) - 1 if r.in_tick else 0

    def number(self, b, r, newest, numbers, numbered):
        """Section 9.4: the number of a message or collective, as fdr dump has it behind the fields."""
        if not numbered:
            return ["?"] if self.class_ == 2 or (self.class_ == 1 and r.id != 3) else []
        if numbered == 3:
            newest[4] = take_value(b, newest[4])
            b.mix(newest[4])
            return ["?", newest[4]]
        h, key = (r.id, r.fields[:3]) if self.class_ == 1 else (r.id & 1, r.fields[:1])
        for v in key:
            h = ((h ^ v) * 0x9E3779B97F4A7C15 & M64) ^ h >> 32
        h = h * 0x9E3779B97F4A7C15 & M64
        ways = numbers[(h >> 40) % len(numbers)]
        at = next((i for i in range(3) if ways[i][0] == h >> 48), 3)
        tag, foreseen = ways.pop(at)
        foreseen = foreseen if tag == h >> 48 else 0
        value = foreseen if numbered == 1 else take_value(b, foreseen)
        b.mix(value)
        ways.insert(0, (h >> 48, value + 1 & (1 << 48) - 1))
        return [value] if numbered < 4 else [value, 1]

    def fields(self, b, r, newest, numbered):
        if self.class_ == 1:
            count = 2 if r.id == 3 else 4
        elif self.class_ == 2:
            count = 4 if r.id & 1 else numbered > 0
        elif self.class_ in (3, 4):
            count = 1
        else:
            count = b.take(5)
        for i in range(count):
            newest[i] = take_value(b, newest[i])
            r.fields.append(newest[i])


def take_value(b, reference):
    if b.see(1) == 0:
        b.take(1)
        return reference
    z = take_low(b, (b.take(7) >> 1) + 1)
    return reference + (z >> 1 ^ -(z & 1)) & M64


class Partition:
    """The list of bins of one class, depth and band (section 7)."""

    def __init__(self, image, at, location):
        assert image.u32(at) == 0x4D524446 and image.u16(at + 4) == 4
        head = image.u64(at + 16)
        self.total, self.floor_tick = image.u64(at + 24), image.u64(at + 32)
        self.next = image.u32(at + 40)
        self.depth, self.class_, self.band = image.u16(at + 48), image.u8(at + 50), image.u8(at + 51)
        self.pinned = bool(image.u8(at + 53) & 32)
        self.bins = []
        seq, off = head >> 32, head & 0xFFFFFFFF
        while off:
            one = Bin(image, off)
            assert (one.location, one.seq) == (location, seq)
            assert (one.class_, one.depth, one.band) == (self.class_, self.depth, self.band)
            if self.bins:
                assert one.first_index == self.bins[-1].first_index + self.bins[-1].count
            self.bins.append(one)
            seq, off = seq + 1, one.next
        self.reduced = self.bins[0].first_index if self.bins else self.total
        unaccounted = image.u8(at + 53) & 4
        self.floor = self.bins[0].base_tick if self.bins and self.reduced else 0 if self.bins else self.floor_tick
        if unaccounted: self.floor = self.floor_tick
        self.least = 0  # section 7.3
        self.records = []

    def decode(self):
        for one in self.bins:
            for r in one.records():
                if r.leave >= self.least:
                    self.records.append(r)
                else:
                    self.reduced += 1


class Call:
    def __init__(self, enter, leave, ident, ordinal, place):
        self.enter, self.leave, self.id, self.ordinal, self.place = enter, leave, ident, ordinal, place


class Location:
    """One location (section 5): its stack, partitions and rows."""

    def __init__(self, image, at, shift):
        assert image.u32(at) == 0x4D524446 and image.u16(at + 4) == 2
        self.id, self.next = image.u32(at + 16), image.u32(at + 20)
        self.ns = image.u32(at + 28) & 4
        self.image, self.at = image, at
        self.frames = []
        for depth in range(1, image.u32(at + 72) + 1):
            level = self.level(depth)
            flags = image.u32(level + 12)
            enter = image.u64(level) >> shift
            ordinal = (image.u32(level + 96) if image.u64(level + 88) == enter else 0) if flags & 16 else None
            self.frames.append((enter, image.u32(level + 8), flags, ordinal))
        self.parts = []
        off, floor = image.u32(at + 348), image.u64(at + 584)
        while off:
            self.parts.append(Partition(image, off, self.id))
            off = self.parts[-1].next
        self.parts.sort(key=lambda p: not p.pinned)
        for p in self.parts:  # a call counts as kept only if its ancestors' partitions still reach back to it
            others = [q.floor for q in self.parts if p.class_ == q.class_ == 0 and q is not p and not q.pinned
                      and q.depth <= p.depth and q.band >= p.band]
            floor_of = max([floor] + others)
            p.least = floor_of + 1 if floor_of and not p.pinned else 0
            p.decode()

    def level(self, depth):
        if depth == 0:
            return self.image.u32(self.at + 344)
        block, entry = divmod(depth - 1, 7) if depth <= 252 else divmod(depth - 253, 28)
        return self.image.u32(self.at + 88 + (block + 36 * (depth > 252)) * 4) + 64 + entry * 128

    def accounts(self):
        """(class, depth) -> [presented, kept, filtered, reduced, lost], section 13.1."""
        image, rows = self.image, {}
        blocks = image.u32(self.at + 84)
        for depth in range((blocks * 7 if blocks <= 36 else blocks * 28 - 756) + 1):
            level = self.level(depth)
            if depth:
                rows[0, depth] = [image.u64(level + 24), 0, *(image.u64(level + 64 + 8 * i) for i in range(3))]
            points = image.u32(level + 100)
            for c in range(1, 9 if points else 1):
                at = points + 16 + 40 * c
                rows[c, depth] = [image.u64(at), 0, *(image.u64(at + 8 + 8 * i) for i in range(3))]
        for p in self.parts:
            rows[p.class_, p.depth][1] += len(p.records)
            rows[p.class_, p.depth][3] += p.reduced
        for i, (_, _, flags, _) in enumerate(self.frames):
            rows[0, i + 1][1] += not flags & 3
        return rows

    def totals(self):
        """region -> (calls, inclusive ticks), section 11"""
        image, table, rows = self.image, self.image.u32(self.at + 352), {}
        for i in range(1 << image.u32(table + 16)):
            row = image.u32(table + 64 + 4 * i)
            if row and image.u32(row) >> 24 == 1 and image.u64(row + 8):
                rows[image.u32(row) & 0xFFFFFF] = (image.u64(row + 8), image.u64(row + 16))
        return rows

    def events(self):
        """Section 10: all events in order, as (tick, kind, depth, id, fields)."""
        calls, points = {}, []
        for p in self.parts:
            if p.class_ == 0:
                calls.setdefault(p.depth, []).extend(p.records)
            else:
                points.extend(p.records)
        for depth in calls:
            calls[depth].sort(key=lambda r: (r.enter, r.leave))  # stable: zero-length calls keep their order
        for depth, (enter, ident, flags, ordinal) in enumerate(self.frames, 1):
            if flags & 3:
                continue
            r = Record()
            r.id, r.enter, r.leave, r.in_tick, r.parent, r.ordinal = ident, enter, OPEN, 0, 0, ordinal
            calls.setdefault(depth, []).append(r)
        points.sort(key=lambda r: (r.enter, r.point))
        newest = [r.leave for d in calls.values() for r in d if r.leave < OPEN] + [r.enter for r in points]
        end = max(newest + [r.enter for d in calls.values() for r in d], default=0)
        at = {d: 0 for d in calls}
        zero = {}  # depth -> (tick, number of its zero-length calls entered so far)
        stack, out, done = [Call(-1, NEVER, 0, 0, 0)], [], 0

        def fits(top, r, tick):
            if top.leave < tick:
                return False
            return (top.enter == tick and top.ordinal == r.parent) if r.in_tick else top.enter < tick

        def head(depth):
            return calls[depth][at[depth]] if at.get(depth, 0) < len(calls.get(depth, [])) else None

        def place_in(r):  # no point names a longer call without an ordinal
            return r.ordinal + 1 if r.ordinal is not None else NEVER

        def ordinal_of(r, depth):
            if r.ordinal is not None:
                return r.ordinal
            return zero[depth][1] if zero.get(depth, (None,))[0] == r.enter else 0

        def place(p, depth):  # of the call around p: 0 = it began before the tick, None = unknown, else its ordinal + 1
            i = p.depth - depth
            return p.links[i] + 1 if i < len(p.links) else None if p.cut else 0

        def before(p, tick, entering):
            k = len(stack) - 1
            for depth in range(1, min(k, p.depth) + 1):
                top, want = stack[depth], place(p, depth)
                have = top.place if top.enter == tick else 0
                if want is not None and want != have:
                    return want < have
            longer = entering is not None and entering.enter != entering.leave
            if p.depth < k:
                sibling = stack[p.depth + 1]
                return longer or sibling.enter == tick and sibling.place > p.sibling
            if p.depth == k:
                return entering is None or longer or entering.ordinal >= p.sibling
            want = place(p, k + 1)
            if entering is None and k and place(p, k) is None:
                return want is not None and not to_come(p, tick, k)
            return want is not None and (entering is None or want < place_in(entering))

        def to_come(p, tick, k):
            for depth, link in zip(range(p.depth, k, -1), p.links):
                r = head(depth)
                if r is not None and r.enter == tick and ordinal_of(r, depth) <= link:
                    return True
            return False

        def due(tick, entering):
            if done == len(points) or points[done].enter > tick:
                return False
            if points[done].enter < tick:
                return True
            for p in points[done:]:
                if p.enter != tick:
                    return False
                if not p.tied or before(p, tick, entering):
                    return True
            return False

        now = 0
        while True:
            top, r = stack[-1], head(len(stack))
            child = r is not None and r.enter >= now and r.leave <= top.leave and (
                r.enter != r.leave or len(stack) == 1 or fits(top, r, r.enter))
            assert child or r is None or r.enter >= top.leave, "neither inside nor after"
            tick = r.enter if child else top.leave
            if due(tick, r if child else None):
                p = points[done]
                done, now = done + 1, p.enter
                out.append((p.enter, p.class_, p.depth, p.id, p.fields + p.said))
            elif child:
                depth = len(stack)
                at[depth] += 1
                ordinal = ordinal_of(r, depth)
                if r.enter == r.leave:
                    zero[depth] = (r.enter, r.ordinal + 1)
                stack.append(Call(r.enter, r.leave, r.id, ordinal, place_in(r)))
                now = r.enter
                out.append((now, "enter", depth, r.id, []))
            elif len(stack) > 1:
                stack.pop()
                now = max(now, end) if top.leave == OPEN else top.leave
                out.append((now, "leave", len(stack), top.id, []))
            else:
                return out


class Recording:
    """Superblock, definitions, locations (sections 3 to 5)."""

    def __init__(self, path):
        with open(path, "rb") as f:
            image = Image(bytearray(f.read()))
        assert image.data[:8] == b"FDRAREN1" and image.u32(8) == 2
        self.checks(image)
        self.image, self.shift, self.clock_kind = image, image.u32(68), image.u32(64)
        self.tick0, self.ns0 = image.u64(80), image.u64(88)
        ticks, ns, rate = image.u64(112) - self.tick0, image.u64(120) - self.ns0, image.u64(72)
        measured = ticks > 0 and ns >= 10_000_000 and 0.99 < (ns / ticks) / (1e9 / rate) < 1.01
        self.num, self.den = (ns, ticks) if measured else (1_000_000_000, rate)
        self.names, self.types, off = {}, {}, image.u32(152)
        while off:
            self.definitions(off)
            off = image.u32(off + 20)
        undo = image.u32(2408)
        words = image.u32(undo + 16) if undo else 0
        for i in reversed(range(words)):  # the process was killed while it changed these words
            where, was = image.u64(undo + 64 + 16 * i), image.u64(undo + 72 + 16 * i)
            image.data[where:where + 8] = struct.pack("<Q", was)
        self.locations, off = [], image.u32(144)
        while off:
            if image.u32(off + 28) & 16:  # a free location
                off = image.u32(off + 20)
                continue
            self.locations.append(Location(image, off, self.shift))
            off = self.locations[-1].next

    @staticmethod
    def checks(image):  # sections 3.1 and 16; only some of the chunks, because this is slow
        data, at, arena, virgin = image.data, 4096 - 512, image.u64(16), image.u64(40)
        assert data[at : at + 4] == b"SPAR" and image.u32(at + 4) == check32(data[at : at + 4] + bytes(4) + data[at + 8 : at + 440])
        size, count, tail = 1 << image.u32(at + 20), image.u32(at + 24), image.u32(at + 16)
        if count == 0:
            return
        assert data[at + 40 : at + 440] == data[:400]
        assert image.u32(at + 8) == check32(data[:at]) and image.u32(at + 12) == check32(data[arena : arena + tail])
        start = image.u64(at + 32)
        assert image.u32(at + 28) == check32(data[start : start + 8 * count]) and start + 8 * count == len(data)
        assert size * count >= arena - 64 * (virgin >> 32)
        for i in range(0, count, count // 50 + 1):
            off = image.u32(start + 8 * i)
            assert off % size == 0 and image.u32(start + 8 * i + 4) == check32(data[off : min(off + size, arena)])

    def definitions(self, block):
        image, at = self.image, block + 32
        while at < block + 32 + image.u32(block + 16):
            size = image.u32(at)
            assert image.u32(at + 40) == check32(image.data[at : at + 40] + bytes(4) + image.data[at + 44 : at + size])
            kind, ident, name = image.u16(at + 4), image.u32(at + 8), image.u16(at + 32)
            if kind == 9:  # a later name
                kind, ident = image.u64(at + 24), image.u64(at + 16)
            self.names[kind, ident] = image.text(at + 48, name)
            payload = at + 48 + (name + image.u16(at + 34) + 2 + 7) // 8 * 8
            if kind == 2:
                self.types[kind, ident] = [image.u64(at + 16)]
            elif kind == 5:
                self.types[kind, ident] = [image.u16(payload + 32 * i) for i in range(image.u32(at + 36) // 32)]
            at += size

    def ns(self, location, stored):
        tick = stored << self.shift
        if location.ns or self.clock_kind == 1:
            return tick
        mult, bits = 1 << 64, 64  # section 2.2
        while mult >> 64:
            bits -= 1
            mult = (self.num << bits) // self.den
        return self.ns0 + ((tick - self.tick0) * mult >> bits)

    def lines(self):
        """The expected output of fdr dump --tsv for each location: time, kind, depth, id, name, values."""
        kinds = {2: ("coll_begin", "coll_end"), 3: "metric", 4: "marker", 8: "event"}
        definition = {"enter": 1, "leave": 1, 3: 2, 4: 3, 8: 5}
        for l in self.locations:
            for tick, kind, depth, ident, fields in l.events():
                name = self.names.get((definition.get(kind), ident))
                types = self.types.get((definition.get(kind), ident), [])
                fields = [value(v, t) for v, t in zip(fields, types)] if types else fields
                if kind == 1:
                    kind = ("send", "recv", "resolve")[ident - 1]
                elif kind == 2:
                    kind, ident = kinds[2][ident & 1], ident >> 1
                elif kind == 6:
                    name, fields = self.names.get((8, ident >> 4)), [ident >> 1 & 7, *fields]
                    kind, ident = ("io_begin", "io_end")[ident & 1], ident >> 4
                else:
                    kind = kinds.get(kind, kind)
                if kind in ("send", "recv", "coll_end"):
                    z = fields[1]
                    fields = [fields[0], z >> 1 ^ -(z & 1), *fields[2:]]
                yield l.id, self.ns(l, tick), kind, depth, ident, name, fields


OPERATIONS = ["open", "close", "read", "write", "sync", "other"]


def value(bits, value_type):
    return struct.unpack("<" + "Qqd"[value_type], struct.pack("<Q", bits))[0]


def number(text):
    return text if text == "?" else int(text) if text.lstrip("-").isdigit() else float(text)


def dumped(fdr, path):
    text = subprocess.run([fdr, "dump", "--tsv", path], check=True, capture_output=True, text=True).stdout
    for line in text.splitlines()[1:]:
        location, time, kind, depth, ident, name, attributes = line.split("\t")
        words = [w.split("=") for w in attributes.split()]
        assert not any(w[0] == "reduced" for w in words), "the example must not need made-up ancestors"
        values = [OPERATIONS.index(w[1]) if w[0] == "op" else number(w[1]) for w in words if w[0] != "repaired"]
        known = kind in ("enter", "leave", "metric", "marker", "event", "io_begin", "io_end")
        yield int(location), int(time), kind, int(depth), int(ident), name if known else None, values


def compare(fdr, path, what):
    ours = Recording(path)
    mine = {l.id: [] for l in ours.locations}
    theirs = {l.id: [] for l in ours.locations}
    for line in ours.lines():
        mine[line[0]].append(line)
    for line in dumped(fdr, path):
        theirs[line[0]].append(line)
    count = 0
    for ident, lines in mine.items():
        for i, (a, b) in enumerate(zip(lines, theirs[ident])):
            if a != b:
                sys.exit(f"{what}: location {ident}, event {i}:\n  the stranger reads {a}\n  fdr dump says      {b}")
        if len(lines) != len(theirs[ident]):
            sys.exit(f"{what}: location {ident}: {len(lines)} events, fdr dump has {len(theirs[ident])}")
        count += len(lines)
    for l in ours.locations:
        for place, (presented, *parts) in l.accounts().items():
            if parts[3]:
                sys.exit(f"{what}: {parts[3]} events were lost: the buffer is too small for this walk")
            if presented != sum(parts):
                sys.exit(f"{what}: location {l.id}, class and depth {place}: {presented} presented, {parts}")
    rows = json.loads(subprocess.run([fdr, "stats", "--json", path], check=True, capture_output=True, text=True).stdout)
    if any(l.ns for l in ours.locations):
        calls, ticks = {}, {}
        for l in ours.locations:
            for ident, (n, sum_) in l.totals().items():
                calls[ident], ticks[ident] = calls.get(ident, 0) + n, ticks.get(ident, 0) + sum_
        for row in rows:
            if (calls.get(row["id"]), ticks.get(row["id"])) != (row["calls"], row["inclusive_ns"]):
                sys.exit(f"{what}: totals of region {row['id']} differ")
    given_back = sum(p.reduced for l in ours.locations for p in l.parts)
    print(f"{what}: {count} events, {given_back} records given back")
    return count, given_back


# Random calls and points of all classes: deep stacks, many events in one tick, zero-length calls. The last calls stay
# open.
PROGRAM = r"""
#include <fdr/fdr.h>
#include <stdio.h>
#include <stdlib.h>

struct payload { double x; int32_t n; };
static uint64_t seed = 42, now = 1000;
static uint32_t draw(uint32_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}
static void point(fdr_metric_id metric, fdr_marker_id marker, fdr_event_type event, int live)
{
    struct payload p = {(double)draw(100) / 4, (int32_t)draw(9) - 4};
    uint64_t t = now;
    static uint64_t began;
    uint32_t operation = draw(3);
    uint64_t offset = operation ? FDR_IO_NO_OFFSET : draw(1u << 20);
    static uint64_t sent[4], begun;
    uint32_t peer = draw(4);
    switch (draw(13)) {
    case 7: began = live ? fdr_io_begin(1 + draw(2), operation, draw(3) * 512, offset)
                         : fdr_io_begin_at(1 + draw(2), operation, draw(3) * 512, offset, t); break;
    case 8: live ? fdr_io_end(1 + draw(2), operation, draw(512), draw(9) / 8 * 28, began)
                 : fdr_io_end_at(1 + draw(2), operation, draw(512), draw(9) / 8 * 28, began, t); break;
    case 0: live ? fdr_metric_i64(metric, -(int64_t)draw(50)) : fdr_metric_i64_at(metric, -(int64_t)draw(50), t); break;
    case 1: live ? fdr_marker(marker, draw(3)) : fdr_marker_at(marker, draw(3), t); break;
    case 2: live ? fdr_message_send(draw(4), -1, 0, draw(5000)) : fdr_message_send_at(draw(4), -1, 0, draw(5000), t); break;
    case 3: live ? fdr_message_recv(draw(4), 7, 0, draw(5000)) : fdr_message_recv_at(draw(4), 7, 0, draw(5000), t); break;
    case 4: live ? fdr_collective_begin(11) : fdr_collective_begin_at(11, t); break;
    case 5: live ? fdr_collective_end(11, 0, -1, 8, 8) : fdr_collective_end_at(11, 0, -1, 8, 8, t); break;
    case 9: live ? fdr_message_send_nth(peer, 5, 0, 8, sent[peer]++) : fdr_message_send_nth_at(peer, 5, 0, 8, sent[peer]++, t); break;
    case 10: live ? fdr_message_recv_nth(peer, 5, 0, 8, draw(9)) : fdr_message_recv_nth_at(peer, 5, 0, 8, draw(9) | (uint64_t)draw(2) << 63, t); break;
    case 11: live ? fdr_message_recv_open(peer, 5, 0, 8, now) : fdr_message_resolve_at(now, draw(3), t); break;
    case 12: live ? fdr_collective_begin_nth(11, 0, begun++) : fdr_collective_end_nth_at(11, 0, -1, 8, 8, begun++, t); break;
    default: live ? fdr_event(event, &p) : fdr_event_at(event, &p, t); break;
    }
}
int main(int argc, char **argv)
{
    static const uint32_t step[] = {0, 0, 0, 1, 3, 40, 700, 9000};
    int live = argc > 2 && argv[2][0] == 'l';
    uint32_t deepest = argc > 2 && !live ? 200 : 12;
    if (argc < 2 || fdr_init(NULL)) return 1;
    struct fdr_field field[] = {{"x", FDR_F64, offsetof(struct payload, x)}, {"n", FDR_I32, offsetof(struct payload, n)}};
    fdr_metric_id metric = fdr_metric_define("level", "", FDR_I64, FDR_METRIC_GAUGE);
    fdr_marker_id marker = fdr_marker_define("mark");
    if (fdr_io_file_define("input.h5") != 1 || fdr_io_file_define("log") != 2) return 1;
    fdr_event_type event = fdr_event_define("pair", field, 2);
    fdr_region region[40], open[200];
    uint32_t depth = 0;
    for (int i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        region[i] = fdr_region_define(name, "walk.c", (unsigned)i);
    }
    for (long n = atol(argv[1]); n; n--) {
        now += step[draw(8)];
        uint32_t what = draw(deepest > 12 ? 9 : 10);
        if (what == 0) {
            point(metric, marker, event, live);
        } else if (depth && (what < 5 || depth == deepest)) {
            depth--;
            if (live) fdr_leave(open[depth]);
            else fdr_leave_at(open[depth], now);
        } else {
            open[depth] = region[(draw(4) * 7 + depth) % 40];
            if (live) fdr_enter(open[depth]);
            else fdr_enter_at(open[depth], now);
            depth++;
        }
    }
    return fdr_snapshot("walk") != 0;
}
"""


def main():
    build, source = os.environ.get("FDR_BUILD", ""), os.environ.get("FDR_SOURCE", "")
    fdr, library = os.path.join(build, "bin", "fdr"), os.path.join(build, "lib")
    if not os.path.exists(fdr) or not os.path.exists(os.path.join(library, "libfdr.so")):
        print("fdr is not built")
        return 77
    if not source:
        print("FDR_SOURCE is not set")
        return 77
    sanitize = os.environ.get("FDR_SANITIZE", "")
    with tempfile.TemporaryDirectory() as work:
        program, path = os.path.join(work, "walk"), os.path.join(work, "walk.c")
        with open(path, "w", encoding="utf-8") as f:
            f.write(PROGRAM)
        command = ["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I", os.path.join(source, "include"), path]
        command += ["-fsanitize=" + sanitize] if sanitize else []
        subprocess.run(command + ["-o", program, "-L", library, "-Wl,-rpath," + library, "-lfdr"], check=True)
        plain = {"FDR_ARENA": "anonymous", "FDR_SIGNAL": "none", "FDR_TIMER": "monotonic", "FDR_BUFFER": "4M"}
        runs = [
            ("lossless", ["30000"], {}),
            ("bins of 512 bytes", ["30000"], {"FDR_BIN": "512"}),
            ("128 ns", ["30000"], {"FDR_RESOLUTION": "128ns"}),
            ("the beginning pinned", ["30000"], {"FDR_PIN": "10ms"}),
            ("the beginning pinned, 128 ns", ["30000"], {"FDR_PIN": "10ms", "FDR_RESOLUTION": "128ns"}),
            ("reduced", ["150000"], {"FDR_BUFFER": "512K", "FDR_BIN": "1K"}),
            ("reduced, 128 ns", ["150000"], {"FDR_BUFFER": "512K", "FDR_BIN": "1K", "FDR_RESOLUTION": "128ns"}),
            ("the newest", ["150000"], {"FDR_BUFFER": "512K", "FDR_STRATEGY": "last"}),
            ("200 levels in a tick", ["4000", "deep"], {"FDR_RESOLUTION": "10ms", "FDR_BUFFER": "16M"}),
            ("live clock", ["20000", "live"], {"FDR_TIMER": "tsc"}),
        ]
        for what, arguments, settings in runs:
            here = os.path.join(work, what.replace(" ", "-").replace(",", ""))
            os.mkdir(here)
            environment = {k: v for k, v in os.environ.items() if not k.startswith("FDR_")}
            environment.update(plain, FDR_DIR=here, **settings)
            subprocess.run([program, *arguments], check=True, env=environment, timeout=100)
            [name] = [n for n in os.listdir(here) if n.endswith(".fdr")]
            count, given_back = compare(fdr, os.path.join(here, name), what)
            if count < 200 or ("FDR_STRATEGY" in settings or "reduced" in what) != (given_back > 0):
                sys.exit(f"{what}: {count} events, {given_back} given back: not what this run is for")
    return 0


if __name__ == "__main__":
    sys.exit(main())
