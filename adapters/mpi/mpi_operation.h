/* SPDX-License-Identifier: MIT */
/* Operations of MPI, as recordings number them. */
#ifndef FDRI_MPI_OPERATION_H
#define FDRI_MPI_OPERATION_H

/* docs/FORMAT.md has the numbers. */
enum fdri_mpi_operation {
    FDRI_MPI_OP_open, /* of files: as enum fdr_io_operation */
    FDRI_MPI_OP_close,
    FDRI_MPI_OP_read,
    FDRI_MPI_OP_write,
    FDRI_MPI_OP_sync,
    FDRI_MPI_OP_Barrier = 10,
    FDRI_MPI_OP_Bcast,
    FDRI_MPI_OP_Reduce,
    FDRI_MPI_OP_Allreduce,
    FDRI_MPI_OP_Alltoall,
    FDRI_MPI_OP_Alltoallv,
    FDRI_MPI_OP_Allgather,
    FDRI_MPI_OP_Allgatherv,
    FDRI_MPI_OP_Gather,
    FDRI_MPI_OP_Gatherv,
    FDRI_MPI_OP_Scatter,
    FDRI_MPI_OP_Scatterv,
    FDRI_MPI_OP_Scan,
    FDRI_MPI_OP_Exscan,
    FDRI_MPI_OP_Reduce_scatter,
    FDRI_MPI_OP_Reduce_scatter_block,
    FDRI_MPI_OP_Alltoallw,
    FDRI_MPI_OP_Neighbor_allgather,
    FDRI_MPI_OP_Neighbor_allgatherv,
    FDRI_MPI_OP_Neighbor_alltoall,
    FDRI_MPI_OP_Neighbor_alltoallv,
    FDRI_MPI_OP_Neighbor_alltoallw,
    FDRI_MPI_OP_put = 1, /* one-sided: field `what` of fdr.rma */
    FDRI_MPI_OP_get,
    FDRI_MPI_OP_accumulate,
    FDRI_MPI_OP_get_accumulate,
    FDRI_MPI_OP_fetch_and_op,
    FDRI_MPI_OP_compare_and_swap,
    FDRI_MPI_OP_completed = 8, /* the request of such an operation */
    FDRI_MPI_OP_created,       /* a window */
    FDRI_MPI_OP_freed,
    FDRI_MPI_OP_lock, /* exclusive */
    FDRI_MPI_OP_lock_shared,
    FDRI_MPI_OP_lock_all,
    FDRI_MPI_OP_win_sync,
    FDRI_MPI_OP_fence = 16, /* from here on: synchronizations that complete operations */
    FDRI_MPI_OP_complete,
    FDRI_MPI_OP_unlock,
    FDRI_MPI_OP_unlock_all,
    FDRI_MPI_OP_flush,
    FDRI_MPI_OP_flush_all,
    FDRI_MPI_OP_flush_local,
    FDRI_MPI_OP_flush_local_all
};

#endif
