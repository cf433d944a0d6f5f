/* SPDX-License-Identifier: MIT */
/* For tests of thinned events (samples, readings): a recording with a small buffer. Tests include this file. */
#ifndef FDRI_TESTS_THINNED_H
#define FDRI_TESTS_THINNED_H

#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <unistd.h>

static char dir[64];

static inline void thinned_start(const char *name, const char *strategy, const char *buffer)
{
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .name = name,
                           .buffer = buffer,
                           .bin = "1K",
                           .arena = "anonymous",
                           .timer = "monotonic",
                           .signal = "none",
                           .dir = dir,
                           .strategy = strategy,
                           .crash = "0"};
    assert_int_equal(fdr_init(&c), 0);
}

static inline struct fdr_file *thinned_finish(void)
{
    struct fdr_file *f;
    char message[200];
    assert_int_equal(fdr_snapshot("test"), 0);
    assert_int_equal(fdr_file_open(fdr_last_snapshot(), &f, message, sizeof message), FDR_WHOLE);
    assert_int_equal(fdr_file_verify(f), FDR_WHOLE);
    unlink(fdr_last_snapshot());
    fdr_finalize();
    return f;
}
#endif
