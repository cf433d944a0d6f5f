#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs a program of overhead_programs.c twice side by side, slice by slice in turn: with everything muted
(FDR_OVERHEAD=0%) and with a target. So both see the same state of the machine. Prints a line for each slice: the
processor time of both in ms, separated by a blank.

Usage: overhead.py PROGRAM NAME SIZE SLICES TARGET"""
import os
import subprocess
import sys


def start(program, name, size, target):
    return subprocess.Popen([program, name, size], env=dict(os.environ, FDR_OVERHEAD=target), stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)


def slice_of(process):
    process.stdin.write("\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        sys.exit(f"overhead.py: the program ended with status {process.wait()}")
    return line.strip()


def main():
    program, name, size, slices, target = sys.argv[1:]
    both = [start(program, name, size, "0%"), start(program, name, size, target)]
    for i in range(int(slices)):
        order = both if i % 2 else both[::-1]
        times = {p: slice_of(p) for p in order}
        print(times[both[0]], times[both[1]])
    for p in both:
        p.stdin.close()
        p.wait()


main()
