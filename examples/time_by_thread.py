#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""time_by_thread.py FILE... OUT.svg: draws where the time of each thread went, a bar for each, by the exact totals.

An example of the Python package: columns, sums by numpy, names of regions and threads. docs/PYTHON.md explains it."""
import html
import sys

import numpy as np

import fdr

COLOURS = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee8866", "#bbbbbb"]
ROW, LEFT, WIDTH = 22, 190, 600


def shares(job):
    """Names of the regions with most own time, the last for all others; own seconds [thread, region]; threads."""
    totals = job.totals()
    names = np.array([region.name for region in job.regions], dtype=object)[np.where(totals.rest, 0, totals.region)]
    by_name = {name: int(totals.exclusive_ns[names == name].sum()) for name in set(names)}
    top = sorted(by_name, key=by_name.get, reverse=True)[:len(COLOURS) - 1]
    threads = [location for location in job.locations if location.id in totals.location]
    seconds = np.zeros((len(threads), len(COLOURS)))
    for row, thread in enumerate(threads):
        own = totals.location == thread.id
        for column, name in enumerate(top):
            seconds[row, column] = totals.exclusive_ns[own & (names == name)].sum() / 1e9
        seconds[row, -1] = max(totals.exclusive_ns[own].sum() / 1e9 - seconds[row].sum(), 0)
    return top + [""] * (len(COLOURS) - 1 - len(top)) + ["others"], seconds, threads


def svg(names, seconds, threads):
    """The drawing as text."""
    longest = max(seconds.sum(axis=1).max(initial=0), 1e-9)
    height = ROW * (len(threads) + len(names) + 2)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 90}" height="{height}" font-family="sans-serif"'
             f' font-size="12"><rect width="100%" height="100%" fill="white"/>']
    for row, thread in enumerate(threads):
        x, y = float(LEFT), ROW * (row + 0.5)
        lines.append(f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{html.escape(thread.name or str(thread.id))}</text>')
        for part, colour, name in zip(seconds[row] / longest * WIDTH, COLOURS, names):
            lines.append(f'<rect x="{x:.1f}" y="{y}" width="{part:.1f}" height="{ROW - 4}" fill="{colour}">'
                         f'<title>{html.escape(plain(name))}</title></rect>')
            x += part
        lines.append(f'<text x="{x + 6:.1f}" y="{y + 14}">{seconds[row].sum():.3f} s</text>')
    for i, (name, colour) in enumerate((n, c) for n, c in zip(names, COLOURS) if n):
        y = ROW * (len(threads) + 1.5 + i)
        lines.append(f'<rect x="{LEFT}" y="{y}" width="14" height="14" fill="{colour}"/>'
                     f'<text x="{LEFT + 20}" y="{y + 12}">{html.escape(plain(name)[:80])}</text>')
    return "\n".join(lines + ["</svg>\n"])


def plain(name):
    """Names may have any characters; XML has not."""
    return "".join(c if c.isprintable() else " " for c in name)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__.split(":")[0] + " is wanted: time_by_thread.py FILE... OUT.svg")
    with fdr.open(*sys.argv[1:-1]) as job, open(sys.argv[-1], "w", encoding="utf-8") as out:
        out.write(svg(*shares(job)))


if __name__ == "__main__":
    main()
