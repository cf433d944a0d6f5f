/* SPDX-License-Identifier: MIT */
/* MPI_File_...: operations of class io. A non-blocking one begins where it is posted and ends with its request. A split
 * one (_begin, _end) begins in its first call and ends in its second; a file has one of these under way at most. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "adapters/mpi/adapter_parts.h"
#include "base/atomic.h"

_Static_assert((int)FDRI_MPI_OP_open == FDR_IO_OPEN && (int)FDRI_MPI_OP_close == FDR_IO_CLOSE &&
                   (int)FDRI_MPI_OP_read == FDR_IO_READ && (int)FDRI_MPI_OP_write == FDR_IO_WRITE &&
                   (int)FDRI_MPI_OP_sync == FDR_IO_SYNC,
               "operations of fdr");

/* ---- names: at most so many; all others share one ---- */

enum { NAMES = 1024, NAME_PLACES = 2 * NAMES };

static bool is_known(uint64_t hash)
{
    static uint64_t known[NAME_PLACES];
    static uint32_t count;
    for (uint32_t i = 0;; i++) {
        uint64_t *at = &known[(hash + i) % NAME_PLACES], none = 0;
        if (fdri_atomic_load_relaxed(at) == hash) return true;
        if (fdri_atomic_load_relaxed(at)) continue;
        if (fdri_atomic_load_relaxed(&count) >= NAMES) return false;
        if (!fdri_atomic_cas_acq_rel_u64(at, &none, hash)) return none == hash; /* L:file */
        fdri_atomic_add_relaxed(&count, 1u);
        return true;
    }
}

static fdr_io_file named(const char *name)
{
    uint64_t hash = 1;
    for (const char *c = name; *c; c++) hash = fdri_mpi_mix(hash, (uint8_t)*c);
    return fdr_io_file_define(is_known(hash) ? name : "[other files]");
}

/* As it is opened: a relative path made absolute. "ufs:NAME" names a file system of the library. */
static fdr_io_file opened_file(const struct fdri_mpi_call *c)
{
    char name[1024], path[2048];
    fdri_mpi_text(c, FDRI_MPI_filename, name, sizeof name);
    if (*name == '/' || strchr(name, ':') || !getcwd(path, sizeof path - sizeof name - 1)) return named(name);
    snprintf(path + strlen(path), sizeof name + 1, "/%s", name);
    return named(path);
}

/* ---- which file a handle is ---- */

enum { FILES = 1024, PROBES = 16, TAKEN = 1 }; /* TAKEN: no handle has this value */

static struct open_file {
    uint64_t handle; /* 0: free */
    fdr_io_file file;
    uint64_t began; /* of the operation in two calls that is under way */
    bool view;      /* MPI_File_set_view was called */
} files[FILES];

static struct open_file *probe(word handle, int i)
{
    return &files[(((uint64_t)handle * 0x9e3779b97f4a7c15u >> 32) + (uint64_t)i) % FILES];
}

static struct open_file *find(word handle)
{
    for (int i = 0; i < PROBES; i++)
        if (fdri_atomic_load_acquire(&probe(handle, i)->handle) == (uint64_t)handle) /* A:file */
            return probe(handle, i);
    return NULL;
}

static void keep(word handle, fdr_io_file file)
{
    for (int i = 0; i < PROBES; i++) {
        struct open_file *at = probe(handle, i);
        uint64_t none = 0;
        if (!fdri_atomic_cas_acq_rel_u64(&at->handle, &none, TAKEN)) continue; /* L:file */
        at->file = file, at->began = 0, at->view = false;
        fdri_atomic_store_release(&at->handle, (uint64_t)handle); /* R:file */
        return;
    }
}

static void forget(word handle)
{
    struct open_file *at = find(handle);
    if (at) fdri_atomic_store_release(&at->handle, 0); /* R:file */
}

static word handle_of(const struct fdri_mpi_call *c)
{
    bool by_address = c->f->operation == FDRI_MPI_OP_open || c->f->operation == FDRI_MPI_OP_close;
    return by_address ? fdri_mpi_handle_at(c, FDRI_MPI_fh, FDRI_MPI_FILE, 0)
                      : fdri_mpi_handle(c, FDRI_MPI_fh, FDRI_MPI_FILE);
}

static fdr_io_file file_of(word handle)
{
    const struct open_file *at = find(handle);
    return at ? at->file : fdr_io_file_define("[MPI file]"); /* opened before fdr recorded */
}

/* ---- operations ---- */

/* In bytes of the file; unknown if the file has a view, which sets another unit. */
static uint64_t offset_of(const struct fdri_mpi_call *c, const struct open_file *at)
{
    bool plain = fdri_mpi_has(c, FDRI_MPI_offset) && at && !at->view;
    return plain ? (uint64_t)fdri_mpi_wide(c, FDRI_MPI_offset) : FDR_IO_NO_OFFSET;
}

/* Arguments may be wrong until MPI has accepted them. So fdr does not ask MPI about them here. */
void fdri_mpi_files_begin(const struct fdri_mpi_call *c, struct fdri_mpi_posting *p)
{
    if (c->f->operation == FDRI_MPI_OP_open) {
        p->file = opened_file(c);
        p->began = fdr_io_begin(p->file, FDR_IO_OPEN, 0, FDR_IO_NO_OFFSET);
        return;
    }
    word handle = handle_of(c);
    p->file = file_of(handle);
    if (c->f->operation == FDRI_MPI_OP_close) forget(handle); /* another thread may get it at once */
    const struct open_file *at = find(handle);
    if (c->f->kind == FDRI_MPI_file_end) p->began = at ? at->began : 0;
    else p->began = fdr_io_begin(p->file, c->f->operation, 0, offset_of(c, at));
}

void fdri_mpi_files_view(const struct fdri_mpi_call *c)
{
    struct open_file *at = find(fdri_mpi_handle(c, FDRI_MPI_fh, FDRI_MPI_FILE));
    if (at) at->view = true;
}

static void post(const struct fdri_mpi_call *c, const struct fdri_mpi_posting *p)
{
    struct fdri_mpi_pending pending = {
        .kind = FDRI_MPI_PENDING_FILE, .operation = c->f->operation, .file = p->file, .began = p->began};
    fdri_mpi_requests_open(FDRI_MPI_OF_REQUESTS, fdri_mpi_handle_at(c, FDRI_MPI_request, FDRI_MPI_REQUEST, 0),
                           &pending);
}

void fdri_mpi_files_end(const struct fdri_mpi_call *c, const struct fdri_mpi_posting *p, int error)
{
    uint64_t bytes = 0;
    struct open_file *at;
    if (!error && c->f->kind == FDRI_MPI_ifile) {
        post(c, p);
        return;
    }
    if (!error && c->f->kind == FDRI_MPI_file_begin) {
        if ((at = find(handle_of(c)))) at->began = p->began;
        return;
    }
    if (!error && fdri_mpi_has(c, FDRI_MPI_status)) bytes = fdri_mpi_status(fdri_mpi_ints(c, FDRI_MPI_status)).bytes;
    fdr_io_end(p->file, c->f->operation, bytes, error ? EIO : 0, p->began);
    if (!error && c->f->operation == FDRI_MPI_OP_open) keep(handle_of(c), p->file);
}

void fdri_mpi_files_completed(const struct fdri_mpi_pending *p, const void *status)
{
    fdr_io_end(p->file, p->operation, status ? fdri_mpi_status(status).bytes : 0, status ? 0 : EIO, p->began);
}
