/* SPDX-License-Identifier: MIT */
/* The differences between MPI libraries: a table with one row for each binary interface, chosen at run time. For all
 * other facts fdr asks the library itself. */
#include <stdio.h>
#include <string.h>
#include "adapters/mpi/adapter.h"
#include "base/atomic.h"

static struct fdri_mpi_library libraries[] = {
    {.name = "Open MPI",
     .handle_bytes = 8,
     .status_bytes = 24,
     .source_at = 0,
     .tag_at = 4,
     .proc_null = -2,
     .root = -4,
     .lock_shared = 2,
     .status_ignore = 0,
     .in_place = 1,
     .world_symbol = "ompi_mpi_comm_world",
     .self_symbol = "ompi_mpi_comm_self",
     .null_symbol = "ompi_mpi_comm_null",
     .byte_symbol = "ompi_mpi_byte",
     .no_op_symbol = "ompi_mpi_op_no_op",
     .fortran_status_ignore = "mpi_fortran_status_ignore_",
     .fortran_statuses_ignore = "mpi_fortran_statuses_ignore_"},
    {.name = "MPICH",
     .handle_bytes = 4,
     .status_bytes = 20,
     .source_at = 8,
     .tag_at = 12,
     .fortran_calls_c = true,
     .proc_null = -1,
     .root = -3,
     .lock_shared = 235,
     .status_ignore = 1,
     .in_place = -1,
     .world = 0x44000000,
     .self = 0x44000001,
     .comm_null = 0x04000000,
     .byte = 0x4c00010d,
     .no_op = 0x5800000e,
     .fortran_status_ignore = "MPIR_F08_MPI_STATUS_IGNORE_OBJ",
     .fortran_statuses_ignore = "MPIR_F08_MPI_STATUSES_IGNORE_OBJ"},
    {.name = "MPI ABI",
     .handle_bytes = 8,
     .status_bytes = 32,
     .source_at = 0,
     .tag_at = 4,
     .proc_null = -3,
     .root = -4,
     .lock_shared = 302,
     .status_ignore = 0,
     .in_place = 1,
     .world = 0x101,
     .self = 0x102,
     .comm_null = 0x100,
     .byte = 0x247,
     .no_op = 0x3d,
     .fortran_status_ignore = "mpi_fortran_status_ignore_",
     .fortran_statuses_ignore = "mpi_fortran_statuses_ignore_"},
};
enum { OPEN_MPI, MPICH, MPI_ABI };

/* Written once, before `known`. Two threads write the same. */
static struct {
    int (*initialized)(int *);
    int (*finalized)(int *);
    int (*type_size)(word, int64_t *);
    int (*elements)(const void *, word, int64_t *);
    int (*cancelled)(const void *, int *);
    word (*from_fortran[FDRI_MPI_HANDLES])(int);
    word in_place, status_ignore, statuses_ignore; /* of Fortran */
} ask;
static struct fdri_mpi_library *known;
static uint32_t strange; /* the library is of no known kind: its calls are regions only */
static enum { NOT_YET, RUNS, ENDED } state;
static uint32_t one_thread; /* MPI_Init says so */

static struct fdri_mpi_library *identify(void)
{
    int (*abi)(int *, int *) = (int (*)(int *, int *))fdri_mpi_find("PMPI_Abi_get_version");
    int major = 0, minor = 0;
    if (abi && !abi(&major, &minor) && major >= 1) return &libraries[MPI_ABI];
    if (fdri_mpi_find(libraries[OPEN_MPI].world_symbol)) return &libraries[OPEN_MPI];
    int (*version)(char *, int *) = (int (*)(char *, int *))fdri_mpi_find("PMPI_Get_library_version");
    static const char *const of_mpich[] = {"MPICH", "Intel(R) MPI", "MVAPICH", "CRAY MPICH"};
    char text[8192] = "";
    int length = 0;
    if (!version || version(text, &length)) return NULL;
    for (size_t i = 0; i < sizeof of_mpich / sizeof of_mpich[0]; i++)
        if (strncmp(text, of_mpich[i], strlen(of_mpich[i])) == 0) return &libraries[MPICH];
    return NULL;
}

static void look_up(struct fdri_mpi_library *l)
{
    static const char *const f2c[] = {"PMPI_Comm_f2c", "PMPI_Type_f2c", "PMPI_Request_f2c", "PMPI_Message_f2c",
                                      "PMPI_File_f2c", "PMPI_Win_f2c",  "PMPI_Op_f2c",      "PMPI_Session_f2c"};
    if (l->world_symbol) l->world = (word)fdri_mpi_find(l->world_symbol);
    if (l->self_symbol) l->self = (word)fdri_mpi_find(l->self_symbol);
    if (l->null_symbol) l->comm_null = (word)fdri_mpi_find(l->null_symbol);
    if (l->byte_symbol) l->byte = (word)fdri_mpi_find(l->byte_symbol);
    if (l->no_op_symbol) l->no_op = (word)fdri_mpi_find(l->no_op_symbol);
    ask.initialized = (int (*)(int *))fdri_mpi_find("PMPI_Initialized");
    ask.finalized = (int (*)(int *))fdri_mpi_find("PMPI_Finalized");
    ask.type_size = (int (*)(word, int64_t *))fdri_mpi_find("PMPI_Type_size_x");
    ask.elements = (int (*)(const void *, word, int64_t *))fdri_mpi_find("PMPI_Get_elements_x");
    ask.cancelled = (int (*)(const void *, int *))fdri_mpi_find("PMPI_Test_cancelled");
    for (int i = 0; i < FDRI_MPI_HANDLES; i++) ask.from_fortran[i] = (word(*)(int))fdri_mpi_find(f2c[i]);
    ask.in_place = (word)fdri_mpi_find("mpi_fortran_in_place_");
    ask.status_ignore = (word)fdri_mpi_find(l->fortran_status_ignore);
    ask.statuses_ignore = (word)fdri_mpi_find(l->fortran_statuses_ignore);
}

/* The library is loaded: one of its functions has been found. */
const struct fdri_mpi_library *fdri_mpi_library_known(void)
{
    struct fdri_mpi_library *l = fdri_atomic_load_acquire(&known); /* A:library */
    if (l || fdri_atomic_load_relaxed(&strange)) return l;
    l = identify();
    if (l) look_up(l);
    if (l && ask.initialized && ask.finalized && ask.type_size && ask.elements && ask.cancelled) {
        fdri_atomic_store_release(&known, l); /* R:library */
        return l;
    }
    fdri_atomic_store_relaxed(&strange, 1);
    fprintf(stderr, "fdr: MPI: the library is none of Open MPI, MPICH and the MPI ABI; its calls are regions, without "
                    "messages and collectives\n");
    return NULL;
}

bool fdri_mpi_library_has_world(void)
{
    int runs = 0, ended = 0;
    return !ask.initialized(&runs) && !ask.finalized(&ended) && runs && !ended;
}

const struct fdri_mpi_library *fdri_mpi_library(void)
{
    int now = fdri_atomic_load_relaxed(&state);
    if (now == RUNS) return fdri_mpi_library_known();
    const struct fdri_mpi_library *l = now == ENDED ? NULL : fdri_mpi_library_known();
    if (!l || !fdri_mpi_library_has_world()) return NULL;
    fdri_atomic_store_relaxed(&state, RUNS);
    return l;
}

void fdri_mpi_library_begins(void)
{
    fdri_atomic_store_relaxed(&one_thread, 0);
    fdri_atomic_store_relaxed(&state, RUNS);
}

/* The levels rise with what they allow. MPI_THREAD_SERIALIZED is 2 in Open MPI and MPICH; in the MPI ABI that and more
 * may be larger, so fdr takes them for several threads. */
void fdri_mpi_library_learn_threads(void)
{
    enum { SERIALIZED = 2 };
    int (*ask_level)(int *) = (int (*)(int *))fdri_mpi_find("PMPI_Query_thread");
    int level;
    if (ask_level && !fdri_mpi_sessions_any() && !ask_level(&level) && level <= SERIALIZED)
        fdri_atomic_store_relaxed(&one_thread, 1);
}

bool fdri_mpi_library_one_thread(void) { return fdri_atomic_load_relaxed(&one_thread); }

void fdri_mpi_library_pauses(void) { fdri_atomic_store_relaxed(&state, NOT_YET); }

void fdri_mpi_library_ends(void) { fdri_atomic_store_relaxed(&state, ENDED); }

/* ---- arguments as C has them ---- */

static word argument(const struct fdri_mpi_call *c, enum fdri_mpi_role role) { return c->arg[c->f->at[role] - 1]; }

bool fdri_mpi_has(const struct fdri_mpi_call *c, enum fdri_mpi_role role) { return c->f->at[role] != 0; }

int64_t fdri_mpi_int(const struct fdri_mpi_call *c, enum fdri_mpi_role role)
{
    return c->way == FDRI_MPI_C ? (int)argument(c, role) : *(const int *)argument(c, role);
}

int64_t fdri_mpi_count(const struct fdri_mpi_call *c, enum fdri_mpi_role role)
{
    return c->f->large ? (int64_t)argument(c, role) : fdri_mpi_int(c, role);
}

int64_t fdri_mpi_count_at(const struct fdri_mpi_call *c, enum fdri_mpi_role role, int i)
{
    word array = argument(c, role);
    return c->f->large ? ((const int64_t *)array)[i] : ((const int *)array)[i];
}

int64_t fdri_mpi_wide(const struct fdri_mpi_call *c, enum fdri_mpi_role role)
{
    return c->way == FDRI_MPI_C ? (int64_t)argument(c, role) : *(const int64_t *)argument(c, role);
}

void fdri_mpi_text(const struct fdri_mpi_call *c, enum fdri_mpi_role role, char *text, size_t bytes)
{
    const char *from = (const char *)argument(c, role);
    if (!from) from = "";
    size_t length = c->way == FDRI_MPI_C ? strlen(from) : (size_t)c->arg[c->f->fortran_words + 1];
    if (c->way != FDRI_MPI_C)
        while (length && from[length - 1] == ' ') length--;
    snprintf(text, bytes, "%.*s", (int)(length < bytes ? length : bytes - 1), from);
}

int fdri_mpi_out(const struct fdri_mpi_call *c, enum fdri_mpi_role role) { return *(const int *)argument(c, role); }

const int *fdri_mpi_ints(const struct fdri_mpi_call *c, enum fdri_mpi_role role)
{
    return (const int *)argument(c, role);
}

/* MPICH has pointers for files, and only for them. */
static bool is_narrow(enum fdri_mpi_handle what) { return known->handle_bytes == 4 && what != FDRI_MPI_FILE; }

word fdri_mpi_handle(const struct fdri_mpi_call *c, enum fdri_mpi_role role, enum fdri_mpi_handle what)
{
    if (c->way != FDRI_MPI_C) return fdri_mpi_handle_at(c, role, what, 0);
    return is_narrow(what) ? (word)(uint32_t)argument(c, role) : argument(c, role);
}

word fdri_mpi_handle_at(const struct fdri_mpi_call *c, enum fdri_mpi_role role, enum fdri_mpi_handle what, int i)
{
    word array = argument(c, role);
    if (is_narrow(what)) return (word)((const uint32_t *)array)[i]; /* also in Fortran */
    if (c->way == FDRI_MPI_C) return ((const word *)array)[i];
    return ask.from_fortran[what] ? ask.from_fortran[what](((const int *)array)[i]) : 0;
}

bool fdri_mpi_in_place(const struct fdri_mpi_call *c, enum fdri_mpi_role role)
{
    return argument(c, role) == (c->way == FDRI_MPI_C ? known->in_place : ask.in_place);
}

bool fdri_mpi_ignored(const struct fdri_mpi_call *c, enum fdri_mpi_role role)
{
    word status = argument(c, role);
    if (c->way == FDRI_MPI_C) return status == known->status_ignore;
    return status == (role == FDRI_MPI_status ? ask.status_ignore : ask.statuses_ignore);
}

uint64_t fdri_mpi_bytes(int64_t count, word datatype)
{
    int64_t size = 0;
    if (count <= 0 || ask.type_size(datatype, &size) || size < 0) return 0;
    return (uint64_t)count * (uint64_t)size;
}

struct fdri_mpi_status fdri_mpi_status(const void *status)
{
    struct fdri_mpi_status s = {0};
    const unsigned char *at = status;
    int cancelled = 0;
    int64_t bytes = 0;
    memcpy(&s.source, at + known->source_at, sizeof s.source);
    memcpy(&s.tag, at + known->tag_at, sizeof s.tag);
    s.cancelled = ask.cancelled(status, &cancelled) || cancelled;
    if (!ask.elements(status, known->byte, &bytes) && bytes > 0) s.bytes = (uint64_t)bytes;
    return s;
}
