#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools,slow timeout=600 excuse=MPI promise=P7
"""P7: fdr hang names the rank that is behind, in real programs that hang (hanging.c, hanging.f90), with each installed
MPI: from the live files of the ranks, and from what a kill would leave of them. No look at all accuses another rank, a
healthy job, or one that is just slow. The trigger "stuck in mpi" fires in ranks that spin inside MPI; fdr info tells what
each rank waits for; snapshots of a job prove what its processes did.

Ranks that wait spin, so a job costs both processors as long as it lives: one job serves all that can be seen of it."""
import concurrent.futures
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
from mpi_runs import FDR, bad, compiled, environment, in_turn, ranks, with_each  # noqa: E402

PATIENCE = 60
AT_ONCE = 2
SHORT = ["--after", "2s"]
# how, ranks; what must be said, one after the other: options, judgement, kind, behind
RUNS = [("compute", 3, [([], "slow", "computing", [1]), (SHORT, "hang", "computing", [1])]),
        ("poll", 3, [(SHORT, "slow", "computing", [1])]), ("pair", 3, [([], "hang", "cycle", [0, 1])]),
        ("circle", 4, [([], "hang", "cycle", [0, 1, 2, 3])]), ("waitall", 2, [([], "hang", "cycle", [0, 1])]),
        ("mismatch", 4, [([], "hang", "mismatch", [1])]), ("root", 2, [([], "hang", "mismatch", [0, 1])]),
        ("omit", 3, [([], "hang", "mismatch", [1])]), ("skip", 3, [([], "hang", "ended", [1])]),
        ("split", 3, [([], "slow", "computing", [1])]), ("service", 3, [(SHORT, "hang", "computing", [1])])]
FORTRAN = [("compute", 2, [(SHORT, "hang", "computing", [1])]), ("pair", 3, [([], "hang", "cycle", [0, 1])]),
           ("mismatch", 3, [([], "hang", "mismatch", [1])])]
# Rank 1 stands outside of MPI, whose library makes no difference; and many ranks: each with one of them, in turn.
OUTSIDE = [("pause", 3, [(SHORT, "hang", "computing", [1])]), ("stop", 3, [([], "hang", "stopped", [1])]),
           ("lock", 3, [(SHORT, "hang", "lock", [1])]), ("io", 2, [(SHORT, "hang", "io", [1])]),
           ("circle", 8, [([], "hang", "cycle", list(range(8)))])]
# jobs that go on, and jobs that a launcher ends because rank 1 died: who may be said to hang
GO_ON = [("healthy", 2), ("slow", 3)]
DIE = ["kill", "segv"]
TRIGGER = "late: stuck in mpi over 1s"


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


def let_others_run(processes):
    """Ranks that wait spin with the lowest priority. Rank 1 may have to show that it uses processor time."""
    for p in processes:
        if p["rank"] != 1 and p["state"] == "runs" and p["moves"] is False:
            os.setpriority(os.PRIO_PROCESS, p["pid"], 19)


def until_it_is_said(what, folder, count, options, judgement, kind, behind):
    deadline, seen = time.monotonic() + PATIENCE, None
    while time.monotonic() < deadline:
        time.sleep(0.3)
        if len(pids(folder)) < count - (kind == "ended"):
            continue
        seen, done = look(folder, options)
        if not seen or len(seen["processes"]) < count - (kind == "ended"):
            continue
        let_others_run(seen["processes"])
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


def files_prove(what, folder, behind):
    """Copies of the live files are what a kill would leave now. Once fdr's threads have given a sign of life after the
    ranks began to wait, they prove what the processes prove."""
    deadline, seen = time.monotonic() + PATIENCE, None
    while time.monotonic() < deadline:
        with tempfile.TemporaryDirectory() as left:
            for f in glob.glob(f"{folder}/*.live.fdr"):
                shutil.copy(f, left)
            seen, done = look(left, [])
        if not seen:
            bad.append(f"{what}, files: {done.stderr[-500:]}")
            return
        if accuses(seen, behind):
            bad.append(f"{what}, files: accuses {accuses(seen, behind)}: {seen['sentence']}")
            return
        if seen["judgement"] == "hang" and spread(seen["hangs"][0]["behind"]) == behind:
            return
        time.sleep(0.3)
    bad.append(f"{what}, files: {seen['sentence']}")


def start(names, program, how, count, folder, **more):
    env = environment(folder, FDR_FINALIZE=None, **more)
    return subprocess.Popen(ranks(names, count, program, how), env=env, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)


def hang(names, program, how, count, say, *then):
    """Then: functions of what else must be true of this job."""
    what = f"{names[1]} -n {count} {os.path.basename(program)} {how}"
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as taken:
        more = {"FDR_DIR": taken, "FDR_TRIGGERS": TRIGGER} if trigger_fires in then else {}
        job = start(names, program, how, count, folder, **more)
        if all(until_it_is_said(what, folder, count, *one) for one in say):
            for further in then:
                further(what, job, folder, taken)
        end(job, folder)


def files_of_pair(what, _, folder, __):
    files_prove(what, folder, [0, 1])


def files_of_mismatch(what, _, folder, __):
    files_prove(what, folder, [1])


def trigger_fires(what, _, __, taken):
    """In the ranks that wait, which spin inside MPI."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and not all(glob.glob(f"{taken}/*.r{r}.*.fdr") for r in (0, 2)):
        time.sleep(0.2)
    for r in (0, 2):
        files = glob.glob(f"{taken}/*.r{r}.*.fdr")
        info = files and json.loads(subprocess.run([FDR, "info", "--json", files[0]], capture_output=True, text=True,
                                                   check=True).stdout)
        if not files or not info["reason"].startswith(f"trigger {TRIGGER} (MPI_"):
            bad.append(f"{what}, stuck in mpi: rank {r}: {files and info['reason']}")


def state_is_shown(what, _, folder, __):
    """fdr info tells what each rank of the pair is in."""
    deadline, waits = time.monotonic() + PATIENCE, {}
    while len(waits) < 2 and time.monotonic() < deadline:
        for f in glob.glob(f"{folder}/*.live.fdr"):
            done = subprocess.run([FDR, "info", "--json", f], capture_output=True, text=True, check=False)
            mpi = json.loads(done.stdout)["mpi"] if done.stdout else {"threads": []}
            waits |= {t["peer"]: (t, mpi["communicators"][0]) for t in mpi["threads"] if t["wait"] == "receive"}
    for t, comm in waits.values():
        good = (t["tag"] == 7 and t["comm"]["name"] == "MPI_COMM_WORLD" and t["ordinal"] == 0 and t["calls"] >= 20 and
                t["region"] == "MPI_Recv" and (comm["begun"], comm["ended"], comm["operation"]) == (5, 5, None))
        if not good:
            bad.append(f"{what}, state: {t}, {comm}")
    if sorted(waits) != [0, 1]:
        bad.append(f"{what}, state: {waits}")


def all_ranks_at_once(what, job, folder, taken):
    """fdr snapshot --job takes all ranks of a launcher; the snapshots prove what the processes did."""
    done = subprocess.run([FDR, "snapshot", "--job", str(job.pid), "-o", taken], env=environment(folder),
                          capture_output=True, text=True, check=False)
    seen, _ = look(taken, [])
    if done.returncode or len(glob.glob(f"{taken}/*.fdr")) != 4 or not seen or seen["judgement"] != "hang":
        bad.append(f"{what}, snapshot --job: status {done.returncode}, {os.listdir(taken)}, {done.stderr}: {seen}")


THEN = {"compute": [trigger_fires], "pair": [state_is_shown, files_of_pair], "mismatch": [files_of_mismatch],
        "circle": [all_ranks_at_once]}


def goes_on(names, program, how, count):
    what = f"{names[1]} -n {count} {how}"
    with tempfile.TemporaryDirectory() as folder:
        job = start(names, program, how, count, folder)
        looks, deadline = 0, time.monotonic() + PATIENCE
        while looks < 2 and time.monotonic() < deadline:
            if len(pids(folder)) == count:
                seen, done = look(folder, [] if looks else SHORT)
                looks += seen is not None
                if seen and seen["judgement"] == "hang":
                    bad.append(f"{what}: {done.stdout[:1500]}")
            time.sleep(0.2)
        if looks < 2:
            bad.append(f"{what}: {looks} looks")
        end(job, folder)


def dies(names, program, how):
    """The launcher ends the job. What its files show accuses nobody but rank 1, which died."""
    what = f"{names[1]} -n 3 {how}"
    with tempfile.TemporaryDirectory() as folder:
        start(names, program, how, 3, folder, FDR_CRASH_DEADLINE="60s").wait(timeout=2 * PATIENCE)
        seen, done = look(folder, [])
        if not seen or len(glob.glob(f"{folder}/*.fdr")) != 3:
            bad.append(f"{what}: {os.listdir(folder)}: {done.stderr[-500:]}")
        elif accuses(seen, [1]):
            bad.append(f"{what}: accuses {accuses(seen, [1])}: {seen['sentence']}")
        else:
            print(f"{what}: {seen['sentence']} -- {seen['judgement']}: {seen['why']}")


def jobs_of(names, work):
    """What there is to try, as calls."""
    c = compiled(names, "hanging.c", work, "-O1", "-pthread")
    fortran = compiled(names, "hanging.f90", work, "-O1", by="mpif90")
    throwing = compiled(names, "hanging.c", work, "-O1", "-pthread", "-x", "c++", by="mpicxx")
    for run in RUNS:
        yield hang, names, c, *run, *THEN.get(run[0], [])
    for run in FORTRAN if fortran else []:
        yield hang, names, fortran, *run
    for run in in_turn(names, OUTSIDE):
        yield hang, names, c, *run
    for how, count in GO_ON:
        yield goes_on, names, c, how, count
    for how in DIE:
        yield dies, names, c, how
    for how in in_turn(names, ["throw"]) if throwing else []:
        yield dies, names, throwing, how


def with_library(names, work):
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(*call) for call in list(jobs_of(names, work))]:
            done.result()


with_each(with_library)
