/* SPDX-License-Identifier: MIT */
/* A function of MPI as functions.txt describes it. cmake/FdrMpi.cmake reads the list of roles. */
#ifndef FDRI_MPI_FUNCTION_H
#define FDRI_MPI_FUNCTION_H
#include <stdint.h>
#include "adapters/mpi/mpi_operation.h"

typedef intptr_t word; /* an argument: a number, a pointer, or a handle, which is an int or a pointer */

/* Arguments that are read; they have the names of the standard. */
enum fdri_mpi_role {
    FDRI_MPI_count,
    FDRI_MPI_datatype,
    FDRI_MPI_dest,
    FDRI_MPI_source,
    FDRI_MPI_tag,
    FDRI_MPI_sendtag,
    FDRI_MPI_recvtag,
    FDRI_MPI_comm,
    FDRI_MPI_request,
    FDRI_MPI_array_of_requests,
    FDRI_MPI_incount,
    FDRI_MPI_indx,
    FDRI_MPI_outcount,
    FDRI_MPI_array_of_indices,
    FDRI_MPI_flag,
    FDRI_MPI_status,
    FDRI_MPI_array_of_statuses,
    FDRI_MPI_message,
    FDRI_MPI_root,
    FDRI_MPI_sendbuf,
    FDRI_MPI_recvbuf,
    FDRI_MPI_sendcount,
    FDRI_MPI_sendtype,
    FDRI_MPI_recvcount,
    FDRI_MPI_recvtype,
    FDRI_MPI_sendcounts,
    FDRI_MPI_recvcounts,
    FDRI_MPI_sendtypes,
    FDRI_MPI_recvtypes,
    FDRI_MPI_errorcode,
    FDRI_MPI_newcomm,
    FDRI_MPI_comm_cart,
    FDRI_MPI_comm_graph,
    FDRI_MPI_comm_dist_graph,
    FDRI_MPI_newintercomm,
    FDRI_MPI_newintracomm,
    FDRI_MPI_comm_old,
    FDRI_MPI_local_comm,
    FDRI_MPI_intercomm,
    FDRI_MPI_filename,
    FDRI_MPI_fh,
    FDRI_MPI_offset,
    FDRI_MPI_partitions,
    FDRI_MPI_win,
    FDRI_MPI_origin_count,
    FDRI_MPI_origin_datatype,
    FDRI_MPI_result_count,
    FDRI_MPI_result_datatype,
    FDRI_MPI_target_rank,
    FDRI_MPI_op,
    FDRI_MPI_rank,
    FDRI_MPI_lock_type,
    FDRI_MPI_stringtag,
    FDRI_MPI_session,
    FDRI_MPI_ROLES
};
enum fdri_mpi_kind {
    FDRI_MPI_region,
    FDRI_MPI_send,
    FDRI_MPI_recv,
    FDRI_MPI_sendrecv,
    FDRI_MPI_irecv,
    FDRI_MPI_isendrecv,
    FDRI_MPI_imrecv,
    FDRI_MPI_send_init,
    FDRI_MPI_recv_init,
    FDRI_MPI_psend_init,
    FDRI_MPI_precv_init,
    FDRI_MPI_start,
    FDRI_MPI_wait,
    FDRI_MPI_request_free,
    FDRI_MPI_mprobe,
    FDRI_MPI_mrecv,
    FDRI_MPI_coll,
    FDRI_MPI_icoll,
    FDRI_MPI_coll_init,
    FDRI_MPI_comm_free,
    FDRI_MPI_comm_new,
    FDRI_MPI_cancel,
    FDRI_MPI_file,
    FDRI_MPI_ifile,
    FDRI_MPI_file_begin,
    FDRI_MPI_file_end,
    FDRI_MPI_file_view,
    FDRI_MPI_win_new,
    FDRI_MPI_win_free,
    FDRI_MPI_rma,
    FDRI_MPI_rma_sync,
    FDRI_MPI_rma_lock,
    FDRI_MPI_init,
    FDRI_MPI_finalize,
    FDRI_MPI_session_init,
    FDRI_MPI_session_finalize,
    FDRI_MPI_abort
};
enum fdri_mpi_way { FDRI_MPI_C, FDRI_MPI_FORTRAN, FDRI_MPI_F08, FDRI_MPI_WAYS };

struct fdri_mpi_function {
    const char *name;  /* "MPI_Send" */
    const char *group; /* "mpi:p2p" */
    uint8_t kind, operation;
    uint8_t large;                     /* counts are MPI_Count */
    uint8_t words;                     /* arguments of C */
    uint8_t fortran_words;             /* of Fortran, without the error code and the lengths of texts */
    uint8_t at[FDRI_MPI_ROLES];        /* place of an argument, from 1 on; 0: it has none */
    void (*near[FDRI_MPI_WAYS])(void); /* the real function, if the linker found it */
    uintptr_t real[FDRI_MPI_WAYS];     /* the same after the first call; 0: not looked up */
    uint32_t region;
};
enum { FDRI_MPI_NOT_THERE = 16 }; /* an error code: other than MPI_SUCCESS in all libraries */

#endif
