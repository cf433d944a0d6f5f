/* SPDX-License-Identifier: MIT */
/* MPI_Pcontrol: a marker with its level. The library gets the level alone. Further arguments mean something to
 * profiling libraries only, and MPI libraries do nothing in this call. */
#include "adapters/mpi/adapter.h"

static int control(int level)
{
    static uint32_t marker;
    static int (*real)(int, ...);
    if (!real) real = (int (*)(int, ...))fdri_mpi_find("PMPI_Pcontrol");
    if (fdr_switch_.on) {
        if (!marker) marker = fdr_marker_define("MPI_Pcontrol");
        fdr_marker(marker, (uint64_t)(int64_t)level);
    }
    return real ? real(level) : 0;
}

FDR_API int MPI_Pcontrol(const int level, ...);
FDR_API int MPI_Pcontrol(const int level, ...) { return control(level); }
FDR_API void mpi_pcontrol_(const int *level);
FDR_API void mpi_pcontrol_(const int *level) { control(*level); }
FDR_API void mpi_pcontrol_f08_(const int *level);
FDR_API void mpi_pcontrol_f08_(const int *level) { control(*level); }
