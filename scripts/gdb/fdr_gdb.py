# SPDX-License-Identifier: MIT
"""gdb shows fdr's memory: (gdb) source scripts/gdb/fdr_gdb.py

A location, a partition and a bin are printed in one line; `set print raw on` and `print/r` show their fields. Works on a
program that runs, and on a core file, if libfdr has its debug information.

  fdr locations       the locations of the recording, with open calls, bins and partitions
  fdr bins ID         the bins of a location, by partition, oldest first
  fdr at OFFSET       what lies at an offset of the arena
  $fdr_at(OFFSET)     a pointer to it: print *(struct fdri_arena_bin *) $fdr_at(4096)
"""
import gdb
import gdb.printing

BIN_MAGIC = 0x4E424446


def class_name(number):
    for field in gdb.lookup_type("enum fdri_arena_class").fields():
        if field.enumval == number:
            return field.name.replace("FDRI_ARENA_CLASS_", "").lower()
    return f"class {number}"


def records(commit):
    return commit >> 20 & 0xFFFFF


def arena():
    base = gdb.parse_and_eval("fdri_life_recording.arena.base")
    if not int(base):
        raise gdb.GdbError("no recording: fdri_life_recording.arena.base is NULL")
    return base


def at(offset, type_name):
    """The structure at an offset of the arena."""
    pointer = gdb.lookup_type(type_name).pointer()
    return (arena() + int(offset)).cast(pointer).dereference()


def chain(offset, type_name):
    """The structures that chain by `next`, with their offsets; a chain that leads into itself ends."""
    seen = set()
    while offset and offset not in seen:
        seen.add(offset)
        one = at(offset, type_name)
        yield offset, one
        offset = int(one["next"])


def locations():
    first = at(0, "struct fdri_arena_superblock")["location_first"]
    return chain(int(first), "struct fdri_arena_location")


def is_unused(location):
    """Its thread ended, or it waits for the first one."""
    return int(location["flags"]) & int(gdb.parse_and_eval("(int)FDRI_ARENA_LOCATION_FREE")) != 0


def partitions(location):
    return chain(int(location["parts_first"]), "struct fdri_arena_part")


def bins(partition):
    return chain(int(partition["list_head"]) & 0xFFFFFFFF, "struct fdri_arena_bin")


class BinPrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        b = self.value
        if int(b["magic"]) != BIN_MAGIC:
            return "bin without a header: free, or the middle of a bin"
        listed = "listed" if int(b["generation"]) & 1 else "given back"
        return (f"bin of location {int(b['location'])}, {class_name(int(b['class_']))} depth {int(b['depth'])} band "
                f"{int(b['band'])}, seq {int(b['seq'])}: {records(int(b['commit']))} records from {int(b['first_index'])}, "
                f"{1 << int(b['size_log2'])} bytes, {listed}")


class PartitionPrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        p = self.value
        head = int(p["list_head"])
        return (f"partition {class_name(int(p['class_']))} depth {int(p['depth'])} band {int(p['band'])}: {int(p['bins'])} "
                f"bins, {int(p['bytes']) << 9} bytes, oldest seq {head >> 32} at {head & 0xFFFFFFFF}, newest at "
                f"{int(p['open_off'])}")


class LocationPrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        l = self.value
        busy = ", unused" if is_unused(l) else ", inside an operation" if int(l["busy"]) else ""
        return (f"location {int(l['id'])}, thread {int(l['tid'])}: {int(l['depth'])} open calls, {int(l['bins_held'])} bins"
                f"{busy}")


class FdrCommand(gdb.Command):
    """Shows a recording of fdr: fdr locations, fdr bins ID, fdr at OFFSET."""

    def __init__(self):
        super().__init__("fdr", gdb.COMMAND_DATA)

    def invoke(self, text, from_tty):
        words = gdb.string_to_argv(text)
        if words == ["locations"]:
            self.locations()
        elif len(words) == 2 and words[0] == "bins":
            self.bins(int(gdb.parse_and_eval(words[1])))
        elif len(words) == 2 and words[0] == "at":
            self.at(int(gdb.parse_and_eval(words[1])))
        else:
            raise gdb.GdbError("usage: fdr locations | fdr bins ID | fdr at OFFSET")

    def locations(self):
        for offset, location in locations():
            count = sum(1 for _ in partitions(location))
            print(f"{offset:>10}  {LocationPrinter(location).to_string()}, {count} partitions")

    def bins(self, number):
        for _, location in locations():
            if int(location["id"]) != number or is_unused(location):
                continue
            for offset, partition in partitions(location):
                print(f"{offset:>10}  {PartitionPrinter(partition).to_string()}")
                for where, one in bins(partition):
                    print(f"{where:>12}  {BinPrinter(one).to_string()}")
            return
        raise gdb.GdbError(f"no location {number}")

    def at(self, offset):
        magic = int(at(offset, "unsigned int"))
        if magic == BIN_MAGIC:
            print(BinPrinter(at(offset, "struct fdri_arena_bin")).to_string())
        elif any(offset == where for where, _ in locations()):
            print(LocationPrinter(at(offset, "struct fdri_arena_location")).to_string())
        else:
            for _, location in locations():
                for where, partition in partitions(location):
                    if where == offset:
                        print(f"{PartitionPrinter(partition).to_string()}, of location {int(location['id'])}")
                        return
            print(f"{offset}: no bin, location or partition begins here; the first word is {magic:#x}")


class AtFunction(gdb.Function):
    """$fdr_at(OFFSET): a pointer to an offset of the arena."""

    def __init__(self):
        super().__init__("fdr_at")

    def invoke(self, offset):
        return arena() + int(offset)


printers = gdb.printing.RegexpCollectionPrettyPrinter("fdr")
printers.add_printer("bin", "^fdri_arena_bin$", BinPrinter)
printers.add_printer("partition", "^fdri_arena_part$", PartitionPrinter)
printers.add_printer("location", "^fdri_arena_location$", LocationPrinter)
gdb.printing.register_pretty_printer(None, printers, replace=True)
FdrCommand()
AtFunction()
