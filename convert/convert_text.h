/* SPDX-License-Identifier: MIT */
/* A buffered file writer with fast integers, for converters that write millions of lines. Errors stick: write on,
 * and ask once at text_close. */
#ifndef FDRI_CONVERT_CONVERT_TEXT_H
#define FDRI_CONVERT_CONVERT_TEXT_H

#include <stddef.h>
#include <stdint.h>

#define FDRI_CONVERT_TEXT_BYTES 262144u

struct fdri_convert_text {
    int fd;
    char *path, *part; /* part: what is written to until it is whole, or NULL */
    int error;         /* 0 or the first errno */
    size_t used;
    char buffer[FDRI_CONVERT_TEXT_BYTES];
};

/* `path` "-": standard output. 0 or -errno; *text belongs to the caller until fdri_convert_text_close. */
int fdri_convert_text_open(struct fdri_convert_text **text, const char *path);
/* Flushes, closes and frees; with `status` 0 and no error the file stands in its place, else it is removed. `status`,
 * or 0 or the first error as -errno. */
int fdri_convert_text_close(struct fdri_convert_text *text, int status);
void fdri_convert_text_bytes(struct fdri_convert_text *text, const char *bytes, size_t count);
void fdri_convert_text_string(struct fdri_convert_text *text, const char *string);
void fdri_convert_text_u64(struct fdri_convert_text *text, uint64_t value);
void fdri_convert_text_i64(struct fdri_convert_text *text, int64_t value);
/* The shortest decimal that reads back as the same double; "null" for what JSON cannot say. */
void fdri_convert_text_f64(struct fdri_convert_text *text, double value);
/* A JSON string with its quotes; bytes that are no UTF-8 become U+FFFD, what is not plain is escaped. */
void fdri_convert_text_json(struct fdri_convert_text *text, const char *string);
/* Length of the well-formed UTF-8 sequence at `at`, 0 if there is none (overlong forms and surrogates are none). */
size_t fdri_convert_text_sequence(const void *at);
/* The same, 0 also for control characters, those of two bytes as well, and what turns the direction of text. */
size_t fdri_convert_text_plain(const void *at);

#endif
