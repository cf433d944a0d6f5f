/* SPDX-License-Identifier: MIT */
/* The smallest user of the recorder: one region and one snapshot. */
#include <stdio.h>
#include <stdlib.h>
#include <fdr/fdr.h>

static double work(int n)
{
    double sum = 0;
    FDR_FUNCTION();
    for (int i = 1; i <= n; i++) sum += 1.0 / i;
    return sum;
}

int main(void)
{
    int status = fdr_init(NULL);
    if (status != 0) {
        fprintf(stderr, "fdr_init: %d\n", status);
        return EXIT_FAILURE;
    }
    double sum = 0;
    for (int i = 0; i < 100; i++) {
        FDR_REGION("x") { sum += work(i); }
    }
    struct fdr_usage usage = fdr_usage();
    if (usage.presented < 200) {
        fprintf(stderr, "presented: %llu calls, expected at least 200\n", (unsigned long long)usage.presented);
        return EXIT_FAILURE;
    }
    status = fdr_snapshot("why");
    if (status != 0 || fdr_last_snapshot()[0] == '\0') {
        fprintf(stderr, "fdr_snapshot: %d \"%s\"\n", status, fdr_last_snapshot());
        return EXIT_FAILURE;
    }
    printf("%.3f %s\n", sum, fdr_last_snapshot());
    fdr_finalize();
    return EXIT_SUCCESS;
}
