/* SPDX-License-Identifier: MIT */
/* A program linked with fdr::io: it knows nothing of fdr. */
#include <stdio.h>

int main(void)
{
    FILE *f = fopen("written.txt", "w");
    if (!f) return 1;
    fputs("hello\n", f);
    return fclose(f) != 0;
}
