# SPDX-License-Identifier: MIT
"""Recordings of the flight data recorder fdr, in Python.

    import fdr
    with fdr.open("solver.r0.fdr", "solver.r1.fdr") as job:
        calls = job.calls(location=0)               # columns: arrays of numpy
        print(calls.duration_ns.max())
        print(job.tree().text(least=0.01))
        for event in job.events("marker"):          # one by one; without numpy, too
            print(event.time_ns, event.name, event.fields)

docs/PYTHON.md tells more. Needs libfdr-reader; columns and trees need numpy."""
from .reader_library import CLASSES, text as _text
from .recording import Error, Event, Location, Recording, Region, lib as _lib

open = Recording  # fdr.open(PATH...)
version = _text(_lib.fdr_reader_version())


def __getattr__(name):
    if name == "Columns":
        from .columns import Columns
        return Columns
    if name == "Node":
        from .call_tree import Node
        return Node
    raise AttributeError(f"module 'fdr' has no attribute {name!r}")


__all__ = ["CLASSES", "Columns", "Error", "Event", "Location", "Node", "Recording", "Region", "open", "version"]
