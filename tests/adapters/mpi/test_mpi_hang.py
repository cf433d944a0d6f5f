#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools,slow timeout=600 excuse=MPI promise=P7
"""P7: fdr hang names the rank that is behind, in real programs that hang (hanging.c, hanging.f90), with each installed
MPI: from the live files of the ranks, and from what a kill would leave of them. No look at all accuses another rank, a
healthy job, or one that is just slow. The trigger "stuck in mpi" fires in ranks that spin inside MPI."""
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

SOURCE, BUILD = os.environ["FDR_SOURCE"], os.environ["FDR_BUILD"]
FDR, LIBRARY = os.path.join(BUILD, "bin/fdr"), os.path.join(BUILD, "lib/libfdr-mpi.so")
# compilers of C, C++ and Fortran, and the launcher
LIBRARIES = [("mpicc.openmpi", "mpicxx.openmpi", "mpif90.openmpi", "mpirun.openmpi"),
             ("mpicc.mpich", "mpicxx.mpich", "mpif90.mpich", "mpiexec.hydra")]
PATIENCE = 60 * (5 if os.environ.get("FDR_SANITIZE") else 1)
AT_ONCE = 2
SHORT = ["--after", "2s"]
# how, ranks, options; what must be said: judgement, kind, behind
RUNS = [("compute", 3, [], "slow", "computing", [1]), ("compute", 2, SHORT, "hang", "computing", [1]),
        ("poll", 3, SHORT, "slow", "computing", [1]), ("pause", 3, SHORT, "hang", "computing", [1]),
        ("stop", 3, [], "hang", "stopped", [1]), ("lock", 3, SHORT, "hang", "lock", [1]),
        ("io", 2, SHORT, "hang", "io", [1]), ("pair", 3, [], "hang", "cycle", [0, 1]),
        ("circle", 8, [], "hang", "cycle", list(range(8))), ("waitall", 2, [], "hang", "cycle", [0, 1]),
        ("mismatch", 5, [], "hang", "mismatch", [1]), ("root", 2, [], "hang", "mismatch", [0, 1]),
        ("omit", 3, [], "hang", "mismatch", [1]), ("skip", 3, [], "hang", "ended", [1]),
        ("split", 3, [], "slow", "computing", [1])]
FORTRAN = [("compute", 2, SHORT, "hang", "computing", [1]), ("pair", 3, [], "hang", "cycle", [0, 1]),
           ("circle", 4, [], "hang", "cycle", [0, 1, 2, 3]), ("mismatch", 3, [], "hang", "mismatch", [1])]
# jobs that go on, and jobs that a launcher ends because rank 1 died: who may be said to hang
GO_ON = [("healthy", 2), ("slow", 3)]
DIE = ["kill", "segv", "throw"]
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


def start(names, base, how, ranks, env):
    return subprocess.Popen([names[-1], "-n", str(ranks), "env", f"LD_PRELOAD={LIBRARY}", base, how], env=env,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)


def hang(names, base, how, ranks, options, judgement, kind, behind):
    what = f"{names[-1]} -n {ranks} {os.path.basename(base)} {how}"
    with tempfile.TemporaryDirectory() as folder:
        job = start(names, base, how, ranks, environment(folder))
        seen = until_it_is_said(what, folder, ranks, options, judgement, kind, behind)
        if seen and kind in ("cycle", "mismatch"):
            files_prove(what, folder, behind)
        end(job, folder)


def goes_on(names, base, how, ranks):
    what = f"{names[-1]} -n {ranks} {how}"
    with tempfile.TemporaryDirectory() as folder:
        job = start(names, base, how, ranks, environment(folder))
        looks, deadline = 0, time.monotonic() + PATIENCE
        while looks < 3 and time.monotonic() < deadline:
            if len(pids(folder)) == ranks:
                seen, done = look(folder, [] if looks else SHORT)
                looks += seen is not None
                if seen and seen["judgement"] == "hang":
                    bad.append(f"{what}: {done.stdout[:1500]}")
            time.sleep(0.2)
        if looks < 3:
            bad.append(f"{what}: {looks} looks")
        end(job, folder)


def dies(names, base, how):
    """The launcher ends the job. What its files show accuses nobody but rank 1, which died."""
    what = f"{names[-1]} -n 3 {how}"
    with tempfile.TemporaryDirectory() as folder:
        job = start(names, base, how, 3, environment(folder) | {"FDR_CRASH_DEADLINE": "60s"})
        job.wait(timeout=2 * PATIENCE)
        seen, done = look(folder, [])
        if not seen or len(glob.glob(f"{folder}/*.fdr")) != 3:
            bad.append(f"{what}: {os.listdir(folder)}: {done.stderr[-500:]}")
        elif accuses(seen, [1]):
            bad.append(f"{what}: accuses {accuses(seen, [1])}: {seen['sentence']}")
        else:
            print(f"{what}: {seen['sentence']} -- {seen['judgement']}: {seen['why']}")


def trigger_fires(names, base):
    """In the ranks that wait, which spin inside MPI."""
    what = f"{names[-1]} stuck in mpi"
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as taken:
        env = environment(folder) | {"FDR_DIR": taken, "FDR_TRIGGERS": "late: stuck in mpi over 1s"}
        job = start(names, base, "compute", 3, env)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and not all(glob.glob(f"{taken}/*.r{r}.*.fdr") for r in (0, 2)):
            time.sleep(0.2)
        for r in (0, 2):
            files = glob.glob(f"{taken}/*.r{r}.*.fdr")
            info = files and json.loads(subprocess.run([FDR, "info", "--json", files[0]], capture_output=True, text=True,
                                                       check=True).stdout)
            if not files or not re.match(r"trigger late: stuck in mpi over 1s \(MPI_", info["reason"]):
                bad.append(f"{what}: rank {r}: {files and info['reason']}")
        end(job, folder)


def state_is_shown(names, base):
    """fdr info tells what each rank is in."""
    with tempfile.TemporaryDirectory() as folder:
        job = start(names, base, "pair", 2, environment(folder))
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
            bad.append(f"{names[-1]}, state: {t}, {comm}")
    if sorted(waits) != [0, 1]:
        bad.append(f"{names[-1]}, state: {waits}")


def all_ranks_at_once(names, base):
    """fdr snapshot --job takes all ranks of a launcher; the snapshots prove what the processes did."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as taken:
        job = start(names, base, "circle", 3, environment(folder))
        what = f"{names[-1]} snapshot --job"
        if until_it_is_said(what, folder, 3, [], "hang", "cycle", [0, 1, 2]):
            done = subprocess.run([FDR, "snapshot", "--job", str(job.pid), "-o", taken], env=environment(folder),
                                  capture_output=True, text=True, check=False)
            seen, _ = look(taken, [])
            if done.returncode or len(glob.glob(f"{taken}/*.fdr")) != 3 or not seen or seen["judgement"] != "hang":
                bad.append(f"{what}: status {done.returncode}, {os.listdir(taken)}, {done.stderr}: {seen}")
        end(job, folder)


def build(names, work):
    """The programs by language; those that cannot be built are left out."""
    source = os.path.join(SOURCE, "tests/adapters/mpi/hanging")
    programs = {"c": [names[0], "-O1", "-pthread", source + ".c"],
                "c++": [names[1], "-O1", "-pthread", "-x", "c++", source + ".c"],
                "fortran": [names[2], "-O1", source + ".f90"]}
    built = {}
    for language, command in programs.items():
        to = os.path.join(work, f"{language}.{names[0]}")
        if there(command[0]):
            subprocess.run([*command, "-o", to], check=True)
            built[language] = to
    return built


def jobs_of(names, base):
    """What there is to try, as calls."""
    c = base["c"]
    yield state_is_shown, names, c
    yield all_ranks_at_once, names, c
    yield trigger_fires, names, c
    for run in RUNS:
        yield hang, names, c, *run
    for run in FORTRAN if "fortran" in base else []:
        yield hang, names, base["fortran"], *run
    for how, ranks in GO_ON:
        yield goes_on, names, c, how, ranks
    for how in DIE:
        if how != "throw" or "c++" in base:
            yield dies, names, base.get("c++", c), how


def main():
    installed = [n for n in LIBRARIES if there(n[0]) and there(n[-1])]
    if not os.path.exists(LIBRARY) or not installed:
        print("skipped: no MPI")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as work, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        calls = [call for names in installed for call in jobs_of(names, build(names, work))]
        for done in [pool.submit(*call) for call in calls]:
            done.result()
    print(f"{len(calls)} jobs")
    for line in bad:
        print(f"FAIL: {line}")
    sys.exit(bool(bad))


main()
