/* SPDX-License-Identifier: MIT */
/* The buffered writer of the exporters. It keeps its first error: write on, and check at fdri_convert_text_close. */
#ifndef FDRI_CONVERT_CONVERT_TEXT_H
#define FDRI_CONVERT_CONVERT_TEXT_H

#include <stddef.h>
#include <stdint.h>

#define FDRI_CONVERT_TEXT_BYTES 262144u

struct fdri_convert_text {
    int fd;
    char *path, *part; /* part: temporary name until the file is whole, or NULL */
    int error;         /* 0 or the first errno */
    size_t used;
    char buffer[FDRI_CONVERT_TEXT_BYTES];
};

/* Opens `path`, or standard output for "-". Returns 0 or -errno. End with fdri_convert_text_close. */
int fdri_convert_text_open(struct fdri_convert_text **text, const char *path);
/* Flushes, closes and frees. The file gets its name if `status` is 0 and no write failed; otherwise it is removed.
 * Returns `status` if it is not 0; else 0 or the first error as -errno. */
int fdri_convert_text_close(struct fdri_convert_text *text, int status);
void fdri_convert_text_bytes(struct fdri_convert_text *text, const char *bytes, size_t count);
void fdri_convert_text_string(struct fdri_convert_text *text, const char *string);
void fdri_convert_text_u64(struct fdri_convert_text *text, uint64_t value);
void fdri_convert_text_i64(struct fdri_convert_text *text, int64_t value);
/* Writes the shortest decimal that reads back as the same double; "null" for values that JSON lacks. */
void fdri_convert_text_f64(struct fdri_convert_text *text, double value);
/* Writes a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD; characters that are not plain are
 * escaped. */
void fdri_convert_text_json(struct fdri_convert_text *text, const char *string);
/* Length of the well-formed UTF-8 sequence at `at`; 0: there is none. Overlong forms and surrogates are not
 * well-formed. */
size_t fdri_convert_text_sequence(const void *at);
/* The same, but 0 also for control characters (of one or two bytes) and for characters that change the direction of
 * text. */
size_t fdri_convert_text_plain(const void *at);

#endif
