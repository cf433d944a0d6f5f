#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools,slow timeout=600 excuse=MPI promise=P7
"""P7: fdr hang names the rank that is behind, in real programs that hang (hanging.c), with each installed MPI: from the
live files of the ranks, also after they were killed. No look at all accuses another rank, or a healthy job."""
import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

SOURCE, BUILD = os.environ["FDR_SOURCE"], os.environ["FDR_BUILD"]
FDR, LIBRARY = os.path.join(BUILD, "bin/fdr"), os.path.join(BUILD, "lib/libfdr-mpi.so")
LIBRARIES = [("mpicc.openmpi", "mpirun.openmpi"), ("mpicc.mpich", "mpiexec.hydra")]
PATIENCE = 60 * (5 if os.environ.get("FDR_SANITIZE") else 1)
# how, ranks, options; what must be said: judgement, kind, behind
RUNS = [("compute", 3, [], "slow", "computing", [1]), ("compute", 2, ["--after", "2s"], "hang", "computing", [1]),
        ("stop", 3, [], "hang", "stopped", [1]), ("lock", 3, ["--after", "2s"], "hang", "lock", [1]),
        ("io", 2, ["--after", "2s"], "hang", "io", [1]), ("pair", 3, [], "hang", "cycle", [0, 1]),
        ("circle", 3, [], "hang", "cycle", [0, 1, 2]), ("waitall", 2, [], "hang", "cycle", [0, 1]),
        ("mismatch", 3, [], "hang", "mismatch", [1]), ("skip", 3, [], "hang", "ended", [1]),
        ("split", 3, [], "slow", "computing", [1])]
bad = []


def there(command):
    return subprocess.run(["sh", "-c", f"command -v {command}"], capture_output=True, check=False).returncode == 0


def environment(folder):
    env = {k: v for k, v in os.environ.items() if not k.startswith("FDR_")}
    env |= {f"OMPI_{k}": "1" for k in ("ALLOW_RUN_AS_ROOT", "ALLOW_RUN_AS_ROOT_CONFIRM", "MCA_rmaps_base_oversubscribe",
                                       "MCA_mpi_yield_when_idle")}
    return env | {"FDR_LIVE_DIR": folder, "FDR_LIVE_FORCE": "1", "FDR_DIR": folder, "FDR_BUFFER": "4M"}


def spread(ranges):
    return [r for low, high in ranges for r in range(low, high + 1)]


def look(folder, options):
    done = subprocess.run([FDR, "hang", "--json", *options, folder], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 3):
        return None, done
    return json.loads(done.stdout), done


def fits(seen, judgement, kind, behind):
    first = seen["hangs"][0] if seen["hangs"] else None
    return (seen["judgement"] == judgement and first and first["kind"] == kind and spread(first["behind"]) == behind)


def accuses(seen, behind):
    """Ranks that are said to hang and do not."""
    return [r for h in seen["hangs"] if h["judgement"] == "hang" for r in spread(h["behind"]) if r not in behind]


def pids(folder):
    name = re.compile(r"\.(\d+)(?:\.r\d+)?\.\d+\.live\.fdr$")
    return [int(name.search(f)[1]) for f in glob.glob(f"{folder}/*.live.fdr")]


def end(job, folder):
    for pid in pids(folder):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    job.send_signal(signal.SIGTERM)
    try:
        job.wait(timeout=30)
    except subprocess.TimeoutExpired:
        job.kill()
        job.wait()


def until_it_is_said(what, folder, ranks, options, judgement, kind, behind):
    deadline, seen = time.monotonic() + PATIENCE, None
    while time.monotonic() < deadline:
        time.sleep(0.3)
        if len(pids(folder)) < ranks - (kind == "ended"):
            continue
        seen, done = look(folder, options)
        if not seen:
            continue
        wrong = accuses(seen, behind)
        if wrong:
            bad.append(f"{what}: accuses {wrong}: {done.stdout[:1500]}")
            return None
        code = {"hang": 1, "undecided": 3}.get(seen["judgement"], 0)
        if code != done.returncode:
            bad.append(f"{what}: {seen['judgement']}, exit code {done.returncode}")
        if fits(seen, judgement, kind, behind):
            print(f"{what}: {seen['sentence']} -- {seen['judgement']}: {seen['why']}")
            return seen
    bad.append(f"{what}: not said in {PATIENCE} s: {json.dumps(seen)[:2500]}")
    return None


def after_the_kill(what, folder, judgement, behind):
    """What was proven while they lived, the files prove after all were killed."""
    seen, done = look(folder, [])
    if not seen:
        bad.append(f"{what}, killed: {done.stderr[-500:]}")
    elif accuses(seen, behind):
        bad.append(f"{what}, killed: accuses {accuses(seen, behind)}: {seen['sentence']}")
    elif judgement == "hang" and spread(seen["hangs"][0]["behind"]) != behind:
        bad.append(f"{what}, killed: {seen['sentence']}")


def hang(names, base, how, ranks, options, judgement, kind, behind):
    what = f"{names[1]} -n {ranks} {how}"
    with tempfile.TemporaryDirectory() as folder:
        job = subprocess.Popen([names[1], "-n", str(ranks), "env", f"LD_PRELOAD={LIBRARY}", base, how],
                               env=environment(folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               stdin=subprocess.DEVNULL)
        seen = until_it_is_said(what, folder, ranks, options, judgement, kind, behind)
        end(job, folder)
        if seen and kind in ("cycle", "mismatch"):
            after_the_kill(what, folder, judgement, behind)


def healthy(names, base):
    what = f"{names[1]} -n 2 healthy"
    with tempfile.TemporaryDirectory() as folder:
        job = subprocess.Popen([names[1], "-n", "2", "env", f"LD_PRELOAD={LIBRARY}", base, "healthy"],
                               env=environment(folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               stdin=subprocess.DEVNULL)
        looks = 0
        deadline = time.monotonic() + PATIENCE
        while looks < 3 and time.monotonic() < deadline:
            if len(pids(folder)) == 2:
                seen, done = look(folder, [])
                looks += seen is not None
                if seen and seen["judgement"] == "hang":
                    bad.append(f"{what}: {done.stdout[:1500]}")
            time.sleep(0.2)
        if looks < 3:
            bad.append(f"{what}: {looks} looks")
        end(job, folder)


def state_is_shown(names, base):
    """fdr info tells what each rank is in."""
    with tempfile.TemporaryDirectory() as folder:
        job = subprocess.Popen([names[1], "-n", "2", "env", f"LD_PRELOAD={LIBRARY}", base, "pair"],
                               env=environment(folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               stdin=subprocess.DEVNULL)
        deadline, waits = time.monotonic() + PATIENCE, {}
        while len(waits) < 2 and time.monotonic() < deadline:
            for f in glob.glob(f"{folder}/*.live.fdr"):
                done = subprocess.run([FDR, "info", "--json", f], capture_output=True, text=True, check=False)
                mpi = json.loads(done.stdout)["mpi"] if done.stdout else {"threads": []}
                waits |= {t["peer"]: (t, mpi["communicators"][0]) for t in mpi["threads"] if t["wait"] == "receive"}
            time.sleep(0.2)
        end(job, folder)
    for t, comm in waits.values():
        good = (t["tag"] == 7 and t["comm"]["name"] == "MPI_COMM_WORLD" and t["ordinal"] == 0 and t["calls"] >= 20 and
                t["region"] == "MPI_Recv" and (comm["begun"], comm["ended"], comm["operation"]) == (5, 5, None))
        if not good:
            bad.append(f"{names[1]}, state: {t}, {comm}")
    if sorted(waits) != [0, 1]:
        bad.append(f"{names[1]}, state: {waits}")


def all_ranks_at_once(names, base):
    """fdr snapshot --job takes all ranks of a launcher; the snapshots prove what the processes did."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as taken:
        job = subprocess.Popen([names[1], "-n", "3", "env", f"LD_PRELOAD={LIBRARY}", base, "circle"],
                               env=environment(folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               stdin=subprocess.DEVNULL)
        what = f"{names[1]} snapshot --job"
        if until_it_is_said(what, folder, 3, [], "hang", "cycle", [0, 1, 2]):
            done = subprocess.run([FDR, "snapshot", "--job", str(job.pid), "-o", taken], env=environment(folder),
                                  capture_output=True, text=True, check=False)
            seen, _ = look(taken, [])
            if done.returncode or len(glob.glob(f"{taken}/*.fdr")) != 3 or not seen or seen["judgement"] != "hang":
                bad.append(f"{what}: status {done.returncode}, {os.listdir(taken)}, {done.stderr}: {seen}")
        end(job, folder)


def main():
    installed = [n for n in LIBRARIES if there(n[0]) and there(n[1])]
    if not os.path.exists(LIBRARY) or not installed:
        print("skipped: no MPI")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as work:
        for names in installed:
            base = os.path.join(work, names[0])
            subprocess.run([names[0], "-O1", "-pthread", os.path.join(SOURCE, "tests/adapters/mpi/hanging.c"), "-o", base],
                           check=True)
            state_is_shown(names, base)
            healthy(names, base)
            all_ranks_at_once(names, base)
            for run in RUNS:
                hang(names, base, *run)
    for line in bad:
        print(f"FAIL: {line}")
    sys.exit(bool(bad))


main()
