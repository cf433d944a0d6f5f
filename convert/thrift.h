/* SPDX-License-Identifier: MIT */
/* Bytes that grow, and structures of Thrift's compact protocol in them. */
#ifndef FDRI_CONVERT_THRIFT_H
#define FDRI_CONVERT_THRIFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialise; free `bytes` at the end. Set used to 0 to write anew. */
struct fdri_convert_thrift {
    char *bytes;
    size_t used, room;
    bool no_memory;   /* some bytes are missing */
    uint8_t field[8]; /* the newest field of each structure that is open */
    unsigned open;
};

void fdri_convert_thrift_raw(struct fdri_convert_thrift *t, const void *bytes, size_t count);
/* `bytes` bytes of the value, the lowest first. */
void fdri_convert_thrift_number(struct fdri_convert_thrift *t, uint64_t value, unsigned bytes);
void fdri_convert_thrift_varint(struct fdri_convert_thrift *t, uint64_t value);

/* A structure begins; the outermost one with field 0, one in a list too. */
void fdri_convert_thrift_begin(struct fdri_convert_thrift *t, unsigned field);
void fdri_convert_thrift_end(struct fdri_convert_thrift *t);
void fdri_convert_thrift_i32(struct fdri_convert_thrift *t, unsigned field, int32_t value);
void fdri_convert_thrift_i64(struct fdri_convert_thrift *t, unsigned field, int64_t value);
void fdri_convert_thrift_text(struct fdri_convert_thrift *t, unsigned field, const char *text);
/* A list of i32, of texts, or of structures; its elements follow. */
enum fdri_convert_thrift_type {
    FDRI_CONVERT_THRIFT_I32 = 5,
    FDRI_CONVERT_THRIFT_TEXT = 8,
    FDRI_CONVERT_THRIFT_STRUCT = 12
};
void fdri_convert_thrift_list(struct fdri_convert_thrift *t, unsigned field, enum fdri_convert_thrift_type type,
                              size_t count);
void fdri_convert_thrift_element_i32(struct fdri_convert_thrift *t, int32_t value);
void fdri_convert_thrift_element_text(struct fdri_convert_thrift *t, const char *text);

#endif
