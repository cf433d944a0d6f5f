# SPDX-License-Identifier: MIT
"""Programs under the preloaded libfdr-mpi, with each installed MPI: what the tests of the adapter share."""
import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile

SOURCE, BUILD = os.environ["FDR_SOURCE"], os.environ["FDR_BUILD"]
FDR, LIBRARY = os.path.join(BUILD, "bin/fdr"), os.path.join(BUILD, "lib/libfdr-mpi.so")
# Debian's names where both can be installed: compiler, launcher
LIBRARIES = [("mpicc.openmpi", "mpirun.openmpi"), ("mpicc.mpich", "mpiexec.hydra")]
bad = []


def there(command):
    return subprocess.run(["sh", "-c", f"command -v {command}"], capture_output=True, check=False).returncode == 0


@functools.cache
def yielding():
    """The library with which ranks that wait give way (mpi_yield.c)."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, True)
    library = os.path.join(folder, "libyield.so")
    subprocess.run(["cc", "-O1", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", library,
                    os.path.join(SOURCE, "tests/support/mpi_yield.c"), "-ldl"], check=True)
    return library


def preload(library=LIBRARY):
    """Words of a command that begin a rank with the library."""
    return ["env", f"LD_PRELOAD={library}:{yielding()}"]


def environment(folder, **more):
    """All files of fdr lie in the folder; Open MPI starts as root, and more ranks than processors; ranks that wait give
    way. A variable that is None is not set."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("FDR_")}
    env |= {f"OMPI_{k}": "1" for k in ("ALLOW_RUN_AS_ROOT", "ALLOW_RUN_AS_ROOT_CONFIRM", "MCA_rmaps_base_oversubscribe",
                                       "MCA_mpi_yield_when_idle")}
    env |= {"FDR_LIVE_DIR": folder, "FDR_LIVE_FORCE": "1", "FDR_DIR": folder, "FDR_BUFFER": "4M",
            "FDR_FINALIZE": "snapshot", "LD_PRELOAD": yielding()} | more
    return {k: v for k, v in env.items() if v is not None}


def compiled(names, program, work, *options, by="mpicc"):
    """Path of the built program; None if this library has no such compiler (mpicc, mpicxx, mpif90)."""
    compiler = names[0].replace("mpicc", by)
    base = os.path.join(work, f"{program}.{compiler}")
    if not there(compiler) or (by == "mpif90" and not there("gfortran")):
        return None
    source = os.path.join(SOURCE, "tests/adapters/mpi", program)
    subprocess.run([compiler, "-g", "-w", *options, source, "-o", base], check=True)
    return base


def ranks(names, count, *command):
    return [names[1], "-n", str(count), *preload(), *command]


def grows(names, program, work, measure, most, rounds):
    """`measure` gives bytes by which a rank grows beyond the program alone. MPICH itself may grow by 24 KB once, where a
    rank gets far ahead. A leak is there in each of three runs."""
    more = []
    while not more or more[-1] > most and len(more) < 3:
        more.append(measure(names, program, work))
    if more[-1] > most:
        bad.append(f"{names[1]}: a rank grew by {more} bytes in {rounds} rounds")


def two_ranks(names, *command):
    return ranks(names, 2, *command)


def installed():
    return [n for n in LIBRARIES if there(n[0]) and there(n[1])]


def in_turn(names, cases):
    """Of cases that need to be tried with one MPI only, those of this one: the installed ones take turns."""
    every = installed()
    return cases[every.index(names)::len(every)]


def with_each(test):
    """Calls test(names, folder for all it makes) with each installed MPI; ends the program."""
    every = installed()
    if os.environ.get("FDR_SANITIZE") or not every or not os.path.exists(FDR):
        print("skipped: no MPI here, or with sanitizers")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as work:
        for names in every:
            test(names, work)
    for line in bad:
        print(line)
    print(f"{len(every)} libraries, {len(bad)} complaints")
    sys.exit(1 if bad else 0)
