# SPDX-License-Identifier: MIT
"""Streams of events as `fdr replay` reads them."""
import struct

ENTER, LEAVE, SEND, RECV = 1 << 24, 2 << 24, 3 << 24, 4 << 24


def stream(words, dts=None, names=(b"a", b"b"), messages=(), **claimed):
    """The bytes of a stream of these words, each `dts` ns after the one before. `messages`: (peer, tag, bytes), which
    SEND and RECV number. `claimed` replaces header fields."""
    dts = dts or [1] * len(words)
    text, regions = bytearray(b"f.c\0"), bytearray()
    for n in names:
        regions += struct.pack("<4I", len(text), 0, 1, 0)
        text += n + b"\0"
    head = {"regions": len(names), "comms": 0, "strings": len(text)} | claimed
    parts, offsets = bytearray(), []
    params = b"".join(struct.pack("<iiIIQQ", peer, tag, 0, 0, size, 0) for peer, tag, size in messages)
    for part in (regions, text, b"", params, struct.pack(f"<{len(dts)}I", *dts), struct.pack(f"<{len(words)}I", *words)):
        parts += bytes(-len(parts) % 8)
        offsets.append(136 + len(parts))
        parts += part
    data = b"FDREVT1\n" + struct.pack("<IIQIIII", 1, 136, len(words), head["regions"], len(messages), head["comms"], head["strings"])
    data += struct.pack("<IIIIQQQII", 0, 1, 0, 0, 1000, 0, 0, 0, 0) + struct.pack("<6Q", *offsets)
    return data + bytes(parts)


def nested(random, calls, regions, deepest):
    """Words and times of that many calls, of random regions, nested at random."""
    words, dts, path = [], [], []
    while calls or path:
        enter = calls and len(path) < deepest and (not path or random.random() < 0.55)
        if enter:
            path.append(random.randrange(regions))
            calls -= 1
        words.append((ENTER | path[-1]) if enter else (LEAVE | path.pop()))
        dts.append(random.choice((1, 5, 30, 200, 3000)))
    return words, dts
