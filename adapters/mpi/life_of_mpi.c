/* SPDX-License-Identifier: MIT */
/* MPI_Init starts the recording, unless the program has done so. MPI_Init may install signal handlers, so fdr then
 * checks its own. With FDR_CRASH=exit, MPI_Abort leaves a bundle before it ends the job. Afterwards all processes of
 * the job are killed, at once (MPICH) or within a second (Open MPI). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "adapters/mpi/adapter_parts.h"
#include "base/atomic.h"

/* Said once: such a program calls on. */
int fdri_mpi_life_not_there(const char *name)
{
    static uint32_t said;
    if (fdri_atomic_swap_relaxed(&said, 1)) return FDRI_MPI_NOT_THERE;
    fprintf(stderr,
            "fdr: %s: no MPI library behind libfdr-mpi has P%s; it does nothing, and an error is returned (a static "
            "library: link with -Wl,-u,P%s)\n",
            name, name, name);
    return FDRI_MPI_NOT_THERE;
}

void fdri_mpi_life_before_init(void) { fdr_init(NULL); }

static void note_number(const char *key, const char *function, word comm)
{
    int (*ask)(word, int *) = (int (*)(word, int *))fdri_mpi_find(function);
    char text[16];
    int n = 0;
    if (!ask || ask(comm, &n)) return;
    snprintf(text, sizeof text, "%d", n);
    fdr_note(key, text);
}

/* What the launcher calls the job, so that readers tell the recordings of several jobs apart. PMIx has one name for
 * each run; under Slurm's mpirun only some ranks know the step. */
static void note_job(void)
{
    static const char *const name[] = {"PMIX_NAMESPACE", "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PMI_JOBID"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        const char *job = getenv(name[i]), *step = strcmp(name[i], "SLURM_JOB_ID") ? NULL : getenv("SLURM_STEP_ID");
        char text[128];
        if (!job || !*job) continue;
        snprintf(text, sizeof text, "%s%s%s", job, step ? "." : "", step ? step : "");
        fdr_note("mpi.job", text);
        return;
    }
}

void fdri_mpi_life_after_init(int error)
{
    fdr_handlers_changed();
    const struct fdri_mpi_library *l = error ? NULL : fdri_mpi_library();
    if (!l) return;
    fdr_note("mpi.library", l->name);
    note_job();
    note_number("mpi.rank", "PMPI_Comm_rank", l->world);
    note_number("mpi.size", "PMPI_Comm_size", l->world);
    fdri_mpi_numbers_start();
    fdri_mpi_request_events_start();
    fdri_mpi_members(l->world);
    fdri_mpi_members(l->self);
}

void fdri_mpi_life_before_finalize(void)
{
    fdri_mpi_library_ends();
    fdri_mpi_requests_forget();
}

void fdri_mpi_life_before_abort(const struct fdri_mpi_call *c)
{
    fdr_ending("MPI_Abort", (int)fdri_mpi_int(c, FDRI_MPI_errorcode));
}
