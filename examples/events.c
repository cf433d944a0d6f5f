/* SPDX-License-Identifier: MIT */
/* Events that are not calls: messages, collectives, metrics, markers and user events, as one of four ranks of a solver
 * records them. Read them with `fdr dump --class message,collective,metric,marker,user events.*.fdr`. */
#include <fdr/fdr.h>
#include <stdio.h>

enum { ALLREDUCE = 13 }; /* number of this operation: docs/FORMAT.md */

struct residual {
    uint32_t iteration;
    double norm;
};

int main(void)
{
    static const struct fdr_field fields[] = {
        {"iteration", FDR_U32, offsetof(struct residual, iteration)},
        {"norm", FDR_F64, offsetof(struct residual, norm)},
    };
    static const uint32_t row[] = {0, 1}; /* world ranks of the communicator */
    fdr_init(NULL);
    fdr_metric_id memory = fdr_metric_define("memory", "bytes", FDR_U64, FDR_METRIC_GAUGE);
    fdr_marker_id checkpoint = fdr_marker_define("checkpoint");
    fdr_event_type residual = fdr_event_define("residual", fields, 2);
    fdr_comm_id half = fdr_comm_define("row 0", row, 2);

    double norm = 1;
    for (uint32_t i = 0; i < 100; i++) {
        FDR_REGION("iteration")
        {
            FDR_REGION("halo exchange")
            {
                fdr_message_send(1, 7, half, 8192);
                fdr_message_recv(1, 7, half, 8192);
            }
            FDR_REGION("dot product")
            {
                fdr_collective_begin(ALLREDUCE);
                fdr_collective_end(ALLREDUCE, 0, -1, 8, 8); /* communicator 0: the world; root -1: none */
            }
            norm *= 0.9;
            fdr_event(residual, &(struct residual){i, norm});
            fdr_metric_u64(memory, 1000000 + 1000 * i);
            if (i % 25 == 24) fdr_marker(checkpoint, i);
        }
    }
    if (fdr_snapshot("converged") == 0) printf("%s\n", fdr_last_snapshot());
    fdr_finalize();
    return 0;
}
