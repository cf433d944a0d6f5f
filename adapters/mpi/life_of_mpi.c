/* SPDX-License-Identifier: MIT */
/* MPI_Init, or the first session, starts the recording, unless the program has done so. Both may install signal
 * handlers, so fdr then checks its own. With FDR_CRASH=exit, MPI_Abort leaves a bundle before it ends the job.
 * Afterwards all processes of the job are killed, at once (MPICH) or within a second (Open MPI). */
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

static void note_number(const char *key, const char *function, word group)
{
    int (*ask)(word, int *) = (int (*)(word, int *))fdri_mpi_find(function);
    char text[16];
    int n = 0;
    if (!ask || ask(group, &n)) return;
    snprintf(text, sizeof text, "%d", n);
    fdr_note(key, text);
}

/* The launcher's name of the job, so that readers tell the recordings of several jobs apart. PMIx has one name for
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

/* How often the batch system has started the job again, under the same name: Slurm counts; LSF says Y. Neither says
 * anything of a job that was started once. */
static void note_attempt(void)
{
    const char *count = getenv("SLURM_RESTART_COUNT"), *again = getenv("LSB_RESTART");
    if (count && *count) fdr_note("mpi.attempt", count);
    else if (again && !strcmp(again, "Y")) fdr_note("mpi.attempt", "restarted");
}

static void note_place(void)
{
    int (*free_group)(word *) = (int (*)(word *))fdri_mpi_find("PMPI_Group_free");
    word group = 0;
    if (!fdri_mpi_world_group(&group)) return;
    note_number("mpi.rank", "PMPI_Group_rank", group);
    note_number("mpi.size", "PMPI_Group_size", group);
    if (free_group) free_group(&group);
}

/* Once, by MPI_Init or by the first session. */
static void start(const struct fdri_mpi_library *l, bool by_session)
{
    static uint32_t started;
    if (fdri_atomic_swap_relaxed(&started, 1)) return;
    fdr_note("mpi.library", l->name);
    note_job();
    note_attempt();
    note_place();
    fdri_mpi_numbers_start(by_session);
    fdri_mpi_request_events_start();
}

void fdri_mpi_life_after_init(int error)
{
    fdr_handlers_changed();
    const struct fdri_mpi_library *l = error ? NULL : fdri_mpi_library();
    if (!l) return;
    fdri_mpi_library_learn_threads();
    start(l, false);
    fdri_mpi_members(l->world);
    fdri_mpi_members(l->self);
}

void fdri_mpi_life_after_session_init(const struct fdri_mpi_call *c, int error)
{
    fdr_handlers_changed();
    const struct fdri_mpi_library *l = error ? NULL : fdri_mpi_library_known();
    if (!l) return;
    fdri_mpi_sessions_opened(c);
    fdri_mpi_library_begins();
    start(l, true);
}

static void ends(void (*library)(void))
{
    library();
    fdri_mpi_requests_forget();
}

void fdri_mpi_life_before_finalize(void)
{
    if (!fdri_mpi_sessions_any()) ends(fdri_mpi_library_ends);
}

void fdri_mpi_life_before_session_finalize(const struct fdri_mpi_call *c)
{
    if (!fdri_mpi_library_known()) return;
    fdri_mpi_sessions_closing(c);
    if (!fdri_mpi_sessions_any() && !fdri_mpi_library_has_world()) ends(fdri_mpi_library_pauses);
}

void fdri_mpi_life_before_abort(const struct fdri_mpi_call *c)
{
    fdr_ending("MPI_Abort", (int)fdri_mpi_int(c, FDRI_MPI_errorcode));
}
