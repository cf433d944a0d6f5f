/* SPDX-License-Identifier: MIT */
/* Messages of Protocol Buffers, written field by field into memory. A message inside of another is made first, then
 * added as bytes. */
#ifndef FDRI_CONVERT_PROTOBUF_H
#define FDRI_CONVERT_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialise; free `bytes` at the end. Set used to 0 for the next message. */
struct fdri_convert_message {
    uint8_t *bytes;
    size_t used, room;
    bool no_memory; /* some field is missing */
};

void fdri_convert_message_u64(struct fdri_convert_message *m, uint32_t field, uint64_t value);
void fdri_convert_message_fixed64(struct fdri_convert_message *m, uint32_t field, uint64_t value);
void fdri_convert_message_bytes(struct fdri_convert_message *m, uint32_t field, const void *bytes, size_t count);
/* A text; characters that are not plain become spaces, as in fdr dump. So it is UTF-8. */
void fdri_convert_message_text(struct fdri_convert_message *m, uint32_t field, const char *text);
void fdri_convert_message_message(struct fdri_convert_message *m, uint32_t field,
                                  const struct fdri_convert_message *in);
/* A value without a field number, for packed fields. */
void fdri_convert_message_varint(struct fdri_convert_message *m, uint64_t value);

#endif
