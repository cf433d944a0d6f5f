#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools excuse=mpi.h
"""The table of MPI functions (adapters/mpi/functions.txt) agrees with mpi.h of each installed MPI: it names every
function, with as many arguments, and those that fdr reads have the expected types. No function is unknown to both."""
import glob
import os
import re
import sys

PLACES = ["/usr/lib/*/openmpi/include", "/usr/include/*/mpich", "/usr/include", "/usr/lib64/mpi/gcc/openmpi*/include"]
HEADERS = ["mpi.h", "mpi_proto.h", "mpio.h"]
INT, COUNT, COUNTS, TYPE, TYPES = r"int \w+", r"(int|MPI_Count) \w+", r"(int|MPI_Count) \w+\[\]", r"MPI_Datatype \w+", r"MPI_Datatype \w+\[\]"
BUFFER, ADDRESS = r"void ?\*\w+", r"int ?\*\w+"
# What the adapter takes an argument for. Kinds in which a name means something else are left out.
TYPE_OF = {
    "count": COUNT, "datatype": TYPE, "dest": INT, "source": INT, "tag": INT, "sendtag": INT, "recvtag": INT,
    "comm": r"MPI_Comm ?\*?\w+", "request": r"(MPI|MPIO)_Request ?\*\w+", "array_of_requests": r"MPI_Request \w+\[\]",
    "incount": INT, "indx": ADDRESS, "outcount": ADDRESS, "array_of_indices": r"int \w+\[\]", "flag": ADDRESS,
    "status": r"MPI_Status ?\*\w+", "array_of_statuses": r"MPI_Status (\*\w+|\w+\[\])", "message": r"MPI_Message ?\*\w+",
    "root": INT, "sendbuf": BUFFER, "recvbuf": BUFFER, "sendcount": COUNT, "sendtype": TYPE, "recvcount": COUNT,
    "recvtype": TYPE, "sendcounts": COUNTS, "recvcounts": COUNTS, "sendtypes": TYPES, "recvtypes": TYPES,
    "origin_count": COUNT, "origin_datatype": TYPE, "result_count": COUNT, "result_datatype": TYPE, "target_rank": INT,
    "rank": INT, "op": r"MPI_Op \w+", "win": r"MPI_Win ?\*?\w+",
    "errorcode": INT, "fh": r"MPI_File ?\*?\w+", "offset": r"MPI_Offset \w+", "filename": r"char ?\*\w+",
}
# Their counts are large without a twin.
LARGE = ("Psend_init", "Precv_init")


def split(text):
    """The arguments of a prototype, without const."""
    depth, parts = 0, [""]
    for char in text:
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    parts = [re.sub(r"\bconst\b ?", "", " ".join(p.split())) for p in parts]
    return [] if parts in (["void"], [""]) else parts


def prototypes(folder):
    found = {}
    for name in HEADERS:
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            continue
        with open(path, encoding="utf-8", errors="replace") as f:
            text = re.sub(r"^\s*#.*$", "", re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S), flags=re.M)
        for m in re.finditer(r"\b(int|double|MPI_\w+)\s+MPI_(\w+)\s*\(((?:[^()]|\([^()]*\))*)\)", text):
            before = text[: m.start()].rsplit(";", 1)[-1]
            if "typedef" not in before:
                found.setdefault(m.group(2), split(m.group(3)))
    return found


def table(source):
    rows, out = {}, {}
    with open(os.path.join(source, "adapters/mpi/functions.txt"), encoding="utf-8") as f:
        for line in f:
            words = line.split()
            if not words or words[0] == "#":
                continue
            name = words[0].rstrip("+")
            assert name not in rows and name not in out, f"{name} is there twice"
            if words[1] == "-":
                out[name] = " ".join(words[2:])
                continue
            rows[name] = (words[2], [w.rstrip("$").removesuffix("/c") for w in words[3:]])
            if words[0].endswith("+"):
                rows[name + "_c"] = rows[name]
    return rows, out


def compare(library, name, kind, names, arguments, bad):
    if len(names) != len(arguments):
        bad.append(f"{library}: MPI_{name} has {len(arguments)} arguments, the table {len(names)}")
        return
    for role, argument in zip(names, arguments):
        if kind != "region" and role in TYPE_OF and not re.fullmatch(TYPE_OF[role], argument):
            bad.append(f"{library}: MPI_{name}: '{argument}' is no {role}")
        large = "MPI_Count" in argument and name not in LARGE
        if kind != "region" and re.search("counts?$", role) and large != name.endswith("_c"):
            bad.append(f"{library}: MPI_{name}: '{argument}' has another width than the adapter expects")


def main():
    source, bad, libraries = os.environ["FDR_SOURCE"], [], {}
    rows, out = table(source)
    for place in PLACES:
        for folder in glob.glob(place):
            if os.path.exists(os.path.join(folder, "mpi.h")):
                libraries[folder] = prototypes(folder)
    if not libraries:
        print("skipped: no mpi.h here")
        return 77
    for library, functions in libraries.items():
        if len(functions) < 300:
            bad.append(f"{library}: only {len(functions)} prototypes found")
        for name, arguments in functions.items():
            if name in rows:
                compare(library, name, *rows[name], arguments, bad)
            elif name not in out:
                bad.append(f"{library}: the table does not name MPI_{name}")
    if len(libraries) > 1:
        known = set().union(*libraries.values())
        bad += [f"no library has MPI_{n} of the table" for n in sorted((set(rows) | set(out)) - known)]
    for line in bad:
        print(line)
    print(f"{len(rows)} functions, {len(out)} left out; {', '.join(f'{k}: {len(v)}' for k, v in libraries.items())}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
