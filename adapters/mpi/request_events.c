/* SPDX-License-Identifier: MIT */
/* Requests as events: FDR_MPI_REQUESTS=1. Exports then show which messages do not block, and when requests complete. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "adapters/mpi/adapter_parts.h"
#include "base/atomic.h"

struct request {
    uint64_t what, id;
};

static fdr_event_type type; /* 0: requests are no events */
static uint64_t newest;

void fdri_mpi_request_events_start(void)
{
    static const struct fdr_field fields[] = {{"what", FDR_U64, offsetof(struct request, what)},
                                              {"id", FDR_U64, offsetof(struct request, id)}};
    const char *v = secure_getenv("FDR_MPI_REQUESTS");
    if (!v || !*v || !strcmp(v, "0")) return;
    if (strcmp(v, "1") != 0) fprintf(stderr, "fdr: FDR_MPI_REQUESTS='%.40s': known: 0, 1; using 0\n", v);
    else fdri_atomic_store_relaxed(&type, fdr_event_define("fdr.request", fields, 2));
}

uint64_t fdri_mpi_request_new(void)
{
    return fdri_atomic_load_relaxed(&type) ? fdri_atomic_add_relaxed(&newest, (uint64_t)1) + 1 : 0;
}

void fdri_mpi_request_event(enum fdri_mpi_request_event what, uint64_t request)
{
    if (request) fdr_event(fdri_atomic_load_relaxed(&type), &(struct request){what, request});
}
