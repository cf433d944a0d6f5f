/* SPDX-License-Identifier: MIT */
/* The smallest program that records: it names two regions, runs, and takes a snapshot.
 * Read the snapshot with `fdr info steps.*.fdr` and `fdr tree steps.*.fdr`. */
#include <fdr/fdr.h>
#include <stdio.h>

static double solve(int n)
{
    FDR_FUNCTION(); /* the region "solve" ends with this function */
    double sum = 0;
    for (int i = 1; i <= n; i++) sum += 1.0 / i;
    return sum;
}

int main(void)
{
    double sum = 0;
    fdr_init(NULL); /* settings: environment variables FDR_..., else defaults */
    for (int step = 0; step < 1000; step++) {
        FDR_REGION("step") { sum += solve(step); }
    }
    if (fdr_snapshot("after the last step") == 0)
        printf("%.1f; %s holds every call: try `fdr tree` on it\n", sum, fdr_last_snapshot());
    fdr_finalize();
    return 0;
}
