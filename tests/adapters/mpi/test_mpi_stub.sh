#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=tools
# A made-up MPI library with the binary interface of MPI 5: its row of the table is chosen, statuses and constants are
# right. Its mpi_send_ calls MPI_Send: the call is recorded once, but a callback's calls are recorded, too.
set -euo pipefail
: "${FDR_BUILD:?}" "${FDR_SOURCE:?}"
fdr=$FDR_BUILD/bin/fdr
lib=$FDR_BUILD/lib
if [ -n "${FDR_SANITIZE:-}" ] || [ "${FDR_COVERAGE:-OFF}" = ON ]; then echo "skipped: not with sanitizers"; exit 77; fi
if [ ! -x "$fdr" ]; then echo "skipped: no $fdr (jansson or zstd missing)"; exit 77; fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset "${!FDR_@}"
cd "$work"
bad=0
fail() { echo "FAIL: $*"; bad=$((bad + 1)); }

cat >abi.h <<'END'
#include <stdint.h>
typedef struct { int source, tag, error, internal[5]; } MPI_Status;
typedef void *handle;
#define WORLD ((handle)0x101)
#define BYTE  ((handle)0x247)
enum { ANY_SOURCE = -1, PROC_NULL = -3 };
int MPI_Init(int *, char ***), MPI_Finalize(void);
int MPI_Send(const void *, int, handle, int, int, handle), MPI_Recv(void *, int, handle, int, int, handle, MPI_Status *);
int MPI_Allreduce(const void *, void *, int, handle, handle, handle), MPI_Type_size(handle, int *);
void mpi_send_(const void *, int *, int *, int *, int *, int *, int *);
END
cat >stub.c <<'END'
#include "abi.h"
static int runs, ended;
#define BOTH(name, parameters, ...) int P##name parameters; int P##name parameters __VA_ARGS__
BOTH(MPI_Abi_get_version, (int *major, int *minor), { *major = 1, *minor = 0; return 0; })
BOTH(MPI_Init, (int *c, char ***v), { runs = 1; return !!c + !!v; })
BOTH(MPI_Finalize, (void), { ended = 1; return 0; })
BOTH(MPI_Initialized, (int *f), { *f = runs; return 0; })
BOTH(MPI_Finalized, (int *f), { *f = ended; return 0; })
BOTH(MPI_Comm_rank, (handle c, int *r), { *r = 0; return c != WORLD; })
BOTH(MPI_Comm_size, (handle c, int *r), { *r = 1; return c != WORLD; })
BOTH(MPI_Comm_test_inter, (handle c, int *f), { *f = 0; return c != WORLD; })
BOTH(MPI_Comm_group, (handle c, handle *g), { *g = (handle)0x109; return c != WORLD; })
BOTH(MPI_Comm_remote_group, (handle c, handle *g), { *g = c; return 1; })
BOTH(MPI_Comm_get_name, (handle c, char *n, int *l), { *n = 0, *l = 0; return c != WORLD; })
BOTH(MPI_Group_free, (handle *g), { *g = 0; return 0; })
BOTH(MPI_Group_size, (handle g, int *n), { *n = 1; return !g; })
BOTH(MPI_Group_rank, (handle g, int *n), { *n = 0; return !g; })
BOTH(MPI_Group_translate_ranks, (handle g, int n, const int *a, handle h, int *b), { for (int i = 0; i < n; i++) b[i] = a[i]; return !g || !h; })
BOTH(MPI_Type_size, (handle t, int *n), { *n = 1; return t != BYTE; })
BOTH(MPI_Type_size_x, (handle t, int64_t *n), { *n = 1; return t != BYTE; })
BOTH(MPI_Get_elements_x, (const MPI_Status *s, handle t, int64_t *n), { *n = s->internal[2]; return t != BYTE; })
BOTH(MPI_Test_cancelled, (const MPI_Status *s, int *f), { *f = s->internal[0]; return 0; })
BOTH(MPI_Send, (const void *b, int n, handle t, int to, int tag, handle c), { return !b + !n + !t + (to == 99) + (tag == 99) + !c; })
BOTH(MPI_Recv, (void *b, int n, handle t, int from, int tag, handle c, MPI_Status *s), { if (s) *s = (MPI_Status){0, 7, 0, {0, 0, 21}}; return !b + !n + !t + (from == 99) + (tag == 99) + !c; })
BOTH(MPI_Allreduce, (const void *a, void *b, int n, handle t, handle op, handle c), { int size; return !a + !b + !n + !t + !op + !c + MPI_Type_size(t, &size); })
int MPI_Finalize(void) { return PMPI_Finalize(); } /* linkers pass over fdr's */
handle PMPI_Comm_f2c(int c), PMPI_Type_f2c(int t);
handle PMPI_Comm_f2c(int c) { return (handle)(intptr_t)c; }
handle PMPI_Type_f2c(int t) { return (handle)(intptr_t)t; }
void pmpi_send_(const void *b, int *n, int *t, int *to, int *tag, int *c, int *e);
void pmpi_send_(const void *b, int *n, int *t, int *to, int *tag, int *c, int *e) { *e = MPI_Send(b, *n, PMPI_Type_f2c(*t), *to, *tag, PMPI_Comm_f2c(*c)); }
END
cat >app.c <<'END'
#include "abi.h"
int main(void)
{
    char b[64];
    int n = 5, t = 0x247, to = 0, tag = 3, c = 0x101, e = 9;
    if (MPI_Init(0, 0)) return 1;
    if (MPI_Send(b, 11, BYTE, 0, 1, WORLD) || MPI_Send(b, 11, BYTE, PROC_NULL, 1, WORLD)) return 2;
    if (MPI_Recv(b, 64, BYTE, ANY_SOURCE, 1, WORLD, 0)) return 3;
    mpi_send_(b, &n, &t, &to, &tag, &c, &e);
    if (e || MPI_Allreduce((void *)1, b, 8, BYTE, (handle)0x21, WORLD)) return 4;
    return MPI_Finalize();
}
END
cc -g -shared -fPIC stub.c -o libstub.so
cc -g app.c -L "$lib" "-Wl,-rpath,$lib" -lfdr-mpi -lfdr ./libstub.so -o app
FDR_DIR=$work FDR_LIVE_DIR=$work FDR_LIVE_FORCE=1 FDR_BUFFER=4M FDR_FINALIZE=snapshot SLURM_JOB_ID=71 SLURM_RESTART_COUNT=2 ./app 2>err.txt ||
    fail "status $?: $(cat err.txt)"
"$fdr" dump --class message,collective ./*.fdr >dump.txt
"$fdr" stats --limit 0 ./*.fdr >stats.txt
"$fdr" info ./*.fdr | grep -q 'mpi.library = MPI ABI' || fail "the library is not known: $(head -12 <("$fdr" info ./*.fdr))"
"$fdr" info --json ./*.fdr >info.txt
grep -q '"job": "71' info.txt || fail "job: $(grep job info.txt)"
grep -q '"attempt": "2"' info.txt || fail "attempt: $(grep attempt info.txt)"
[ "$(grep -c ' send ' dump.txt)" = 2 ] || fail "not two sends: $(cat dump.txt)"
grep -q 'send .*peer=0 tag=1 .*bytes=11' dump.txt || fail "the send from C"
grep -q 'send .*peer=0 tag=3 .*bytes=5' dump.txt || fail "the send from Fortran"
grep -q 'recv .*peer=0 tag=7 .*bytes=21' dump.txt || fail "the receive: $(grep recv dump.txt)"
grep -q 'Allreduce.*sent=8 received=8' dump.txt || fail "the collective: $(grep Allreduce dump.txt)"
calls() { awk -v name="$1" 'NF > 7 && $(NF-1) == name { print $7 }' stats.txt; }
[ "$(calls MPI_Send)" = 3 ] || fail "$(calls MPI_Send) calls of MPI_Send: $(grep MPI_Send stats.txt)"
[ "$(calls MPI_Type_size)" = 1 ] || fail "$(calls MPI_Type_size) calls of MPI_Type_size from inside of MPI_Allreduce"
[ "$bad" = 0 ]
