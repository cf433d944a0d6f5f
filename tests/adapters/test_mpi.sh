#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=300 promise=P7,P10
# P7, P10: with FDR_CRASH=exit MPI_Abort leaves a bundle with its cause before the library ends the process. The test
# uses a made-up library and each installed MPI (Open MPI, MPICH), from C and Fortran, on one and two ranks. It also
# checks that fdr reports handlers of fatal signals that MPI_Init replaced.
set -euo pipefail
: "${FDR_BUILD:?}" "${FDR_SOURCE:?}"
fdr=$FDR_BUILD/bin/fdr
lib=$FDR_BUILD/lib
source=$FDR_SOURCE
if [ -n "${FDR_SANITIZE:-}" ] || [ "${FDR_COVERAGE:-OFF}" = ON ]; then echo "not with sanitizers"; exit 77; fi
if [ ! -x "$fdr" ]; then echo "no $fdr (jansson or zstd missing)"; exit 77; fi

work=$(mktemp -d)
trap 'rm -rf "$work" "$FDR_LIVE_DIR"' EXIT
unset "${!FDR_@}"
FDR_LIVE_DIR=$(mktemp -d /dev/shm/fdr-test-XXXXXX 2>/dev/null || mktemp -d)
export FDR_LIVE_DIR FDR_BUFFER=4M
cd "$work"
bad=0
fail() { echo "FAIL: $*"; bad=$((bad + 1)); }
bundles() { find "$1" -name '*.crash.fdr' | wc -l; }
cleared() { rm -rf out && mkdir out; rm -f "$FDR_LIVE_DIR"/*; }
link=(-L "$lib" "-Wl,-rpath,$lib" -lfdr-mpi -lfdr)

# says FILE CODE: the bundle's cause names this exit code
says()
{
    "$fdr" check -q "$1" || fail "$1: check"
    "$fdr" info "$1" >info.txt
    grep -q "why .*ended by MPI_Abort with status $2" info.txt || { fail "$1: $(sed -n 2p info.txt)"; }
    "$fdr" crash "$1" >crash.txt || true
    grep -q "died of .*MPI_Abort with status $2" crash.txt || fail "$1: $(grep 'died of' crash.txt)"
    grep -q 'give_up' crash.txt || fail "$1: no give_up on the stack or among the open regions"
}

# ---- a made-up library that ends the process as MPICH does ----
cat >app.c <<'END'
#include <fdr/fdr.h>
int MPI_Init(int *count, char ***words);
int MPI_Abort(void *communicator, int code);
int MPI_Finalize(void);
int main(void)
{
    if (fdr_init(0) || MPI_Init(0, 0)) return 90;
    FDR_REGION("give_up") MPI_Abort((void *)0x44000000, 7);
    return MPI_Finalize(); /* not fdr's: linkers leave out libraries that nothing is taken from */
}
END
cat >fake.c <<'END'
#include <signal.h>
int MPI_Init(int *count, char ***words);
int MPI_Finalize(void);
int MPI_Finalize(void) { return 91; }
int PMPI_Init(int *count, char ***words);
int PMPI_Init(int *count, char ***words)
{
    signal(SIGBUS, SIG_DFL); /* instead of what was there */
    return count || words;
}
int MPI_Init(int *count, char ***words) { return PMPI_Init(count, words); }
int MPI_Abort(void *communicator, int code);
int PMPI_Abort(void *communicator, int code);
int PMPI_Abort(void *communicator, int code)
{
    if (communicator == (void *)0x44000000 && code == 7) raise(SIGKILL);
    return code;
}
int MPI_Abort(void *communicator, int code) { return PMPI_Abort(communicator, code); }
END
cc -g -shared -fPIC fake.c -o libfake.so
cc -g app.c -I "$source/include" "${link[@]}" ./libfake.so -o app
for mode in exit 1; do
    cleared
    status=0
    FDR_DIR=out FDR_CRASH=$mode ./app 2>err.txt || status=$?
    [ "$status" = 137 ] || fail "FDR_CRASH=$mode: status $status"
    if [ "$mode" = 'exit' ]; then
        [ "$(bundles out)" = 1 ] || fail "$(bundles out) bundles"
        says out/*.crash.fdr 7
        [ -z "$(ls "$FDR_LIVE_DIR")" ] || fail "beside the bundle: $(ls "$FDR_LIVE_DIR")"
    else
        [ "$(bundles out)" = 0 ] || fail "a bundle that was not asked for"
        "$fdr" info "$FDR_LIVE_DIR"/*.live.fdr >info.txt
        grep -q '^handlers .*replaced fdr.*SIGBUS' info.txt || fail "what MPI_Init replaced is not told: $(grep handlers info.txt)"
    fi
done

# ---- a library that a plugin brings along, and none at all ----
cat >plugin.c <<'END'
int MPI_Init(int *count, char ***words);
int begins(void);
int begins(void) { return MPI_Init(0, 0); }
END
cat >host.c <<'END'
#include <dlfcn.h>
#include <signal.h>
int MPI_Init(int *count, char ***words);
int main(int argc, char **argv)
{
    struct sigaction now;
    if (argc < 2) return MPI_Init(0, 0) ? 40 : 0;
    signal(SIGBUS, SIG_IGN);
    void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    int (*begins)(void) = plugin ? (int (*)(void))dlsym(plugin, "begins") : 0;
    if (!begins || begins()) return 41;
    return sigaction(SIGBUS, 0, &now) || now.sa_handler != SIG_DFL ? 42 : 0; /* as the library's own leaves it */
}
END
cc -shared -fPIC plugin.c ./libfake.so -o plugin.so
cc host.c "${link[@]}" -o host
./host ./plugin.so 2>err.txt || fail "MPI of a plugin: status $?, $(head -1 err.txt)"
status=0
./host 2>err.txt || status=$?
[ "$status" = 40 ] || fail "MPI_Init without an MPI library: status $status"
grep -q 'MPI_Init: no MPI library' err.txt || fail "MPI_Init without an MPI library says: $(head -1 err.txt)"

# ---- the real ones ----
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
cat >real.c <<'END'
#include <fdr/fdr.h>
#include <mpi.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int rank, size;
    if (fdr_init(0)) return 90;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == size - 1) FDR_REGION("give_up") MPI_Abort(MPI_COMM_WORLD, 9);
    for (;;) pause();
}
END
for module in mpi mpi_f08; do
    cat >"f_$module.f90" <<END
program p
  use $module
  use fdr
  integer :: rank, ranks, e
  e = fdr_init()
  call mpi_init(e)
  call mpi_comm_rank(MPI_COMM_WORLD, rank, e)
  call mpi_comm_size(MPI_COMM_WORLD, ranks, e)
  if (rank == ranks - 1) call give_up()
  do
    call sleep(1)
  end do
contains
  subroutine give_up()
    integer :: er
    call mpi_abort(MPI_COMM_WORLD, 9, er)
  end subroutine
end program
END
done

# aborts LIBRARY PROGRAM RANKS RUN...: the program must leave a bundle with the cause
aborts()
{
    local library=$1 program=$2 ranks=$3 aborted n
    shift 3
    cleared
    if timeout 60 "$@" -n "$ranks" env FDR_DIR="$work/out" FDR_CRASH='exit' "./$program" >mpi.txt 2>&1; then fail "$library: $program: it ended with 0"; fi
    aborted=$(find out -name "*.r$((ranks - 1)).*.crash.fdr")
    if [ -z "$aborted" ]; then
        fail "$library: $program on $ranks: no bundle of the rank that aborted; $(head -c 300 mpi.txt)"
        return
    fi
    [ "$(wc -l <<<"$aborted")" = 1 ] || fail "$library: $program on $ranks: $aborted"
    says "$aborted" 9
    [ "$ranks" = 2 ] || return 0
    "$fdr" crash out/*.crash.fdr >who.txt || true
    n=$(bundles out)
    [ "$n" -le 1 ] || grep -q 'FIRST.*rank 1.*MPI_Abort' who.txt || fail "$library: $program: who was first: $(cat who.txt)"
}

# with LIBRARY CC FORTRAN RUN...: all checks for one MPI library
with()
{
    local library=$1 cc=$2 fortran=$3 programs=(real) program ranks module
    shift 3
    if ! command -v "$cc" >/dev/null || ! command -v "$1" >/dev/null; then return 0; fi
    "$cc" -g real.c -I "$source/include" "${link[@]}" -o real
    for module in mpi mpi_f08; do
        if ! command -v "$fortran" >/dev/null || ! command -v gfortran >/dev/null; then break; fi
        if "$fortran" -g "$source/include/fdr/fdr.f90" "f_$module.f90" "${link[@]}" -o "f_$module" 2>err.txt; then programs+=("f_$module")
        else fail "$library: f_$module is not compiled: $(grep -m1 Error err.txt)"; fi
    done
    for program in "${programs[@]}"; do
        for ranks in 1 2; do aborts "$library" "$program" "$ranks" "$@"; done
    done
    tried+=("$library: ${#programs[@]} programs")
}
tried=()
# Debian uses these names where both libraries can be installed; elsewhere the plain names mean the installed one.
with "Open MPI" mpicc.openmpi mpif90.openmpi mpirun.openmpi
with MPICH mpicc.mpich mpif90.mpich mpiexec.hydra
if [ ${#tried[@]} = 0 ]; then with "the MPI there is" mpicc mpif90 mpirun; fi
printf '%s\n' "${tried[@]:-no MPI here: tried with a made-up one only}"
[ "$bad" = 0 ]
