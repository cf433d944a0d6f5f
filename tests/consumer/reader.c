/* SPDX-License-Identifier: MIT */
/* The smallest user of the reader: it opens a file that is no recording, and gets a line of text. */
#include <stdio.h>
#include <stdlib.h>
#include <fdr/reader.h>
#include <fdr/version.h>

int main(void)
{
    static const char junk[] = "this is no recording";
    char message[256] = "";
    struct fdr_file *file = NULL;
    enum fdr_verdict verdict = fdr_file_open_memory(junk, sizeof junk, &file, message, sizeof message);
    if (verdict != FDR_UNREADABLE || file != NULL || message[0] == '\0') {
        fprintf(stderr, "verdict %d, message \"%s\"\n", (int)verdict, message);
        return EXIT_FAILURE;
    }
    printf("%s: %s\n", FDR_VERSION_STRING, message);
    return EXIT_SUCCESS;
}
