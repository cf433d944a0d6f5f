/* SPDX-License-Identifier: MIT */
/* The recorded facts of a collective: shared by collectives.c and neighborhoods.c. */
#ifndef FDRI_MPI_COLLECTIVE_H
#define FDRI_MPI_COLLECTIVE_H
#include "adapters/mpi/adapter_parts.h"

struct fdri_mpi_collective {
    const struct fdri_mpi_members *group;
    bool is_root, takes_part; /* takes_part: false in the root's group of an intercommunicator, but for the root */
    int32_t root;             /* world rank, -1: none */
    uint64_t sent, received;
};

/* ---- neighborhoods.c ---- */
void fdri_mpi_neighborhood_volume(const struct fdri_mpi_call *c, struct fdri_mpi_collective *o);
#endif
