/* SPDX-License-Identifier: MIT */
/* Messages of Protocol Buffers, written field by field into memory. */
#include "convert/protobuf.h"

#include <stdlib.h>
#include <string.h>

#include "convert/convert_text.h"

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, VARINT_MOST = 10 };

static bool room(struct fdri_convert_message *m, size_t count)
{
    if (m->room - m->used >= count) return true;
    size_t more = (m->room + count) * 2 + 256;
    uint8_t *bytes = realloc(m->bytes, more);
    m->no_memory |= !bytes;
    if (!bytes) return false;
    m->bytes = bytes;
    m->room = more;
    return true;
}

void fdri_convert_message_varint(struct fdri_convert_message *m, uint64_t value)
{
    if (!room(m, VARINT_MOST)) return;
    for (; value >= 0x80; value >>= 7) m->bytes[m->used++] = (uint8_t)(value | 0x80);
    m->bytes[m->used++] = (uint8_t)value;
}

void fdri_convert_message_u64(struct fdri_convert_message *m, uint32_t field, uint64_t value)
{
    fdri_convert_message_varint(m, field << 3 | VARINT);
    fdri_convert_message_varint(m, value);
}

void fdri_convert_message_fixed64(struct fdri_convert_message *m, uint32_t field, uint64_t value)
{
    fdri_convert_message_varint(m, field << 3 | FIXED64);
    if (!room(m, 8)) return;
    for (unsigned i = 0; i < 8; i++) m->bytes[m->used++] = (uint8_t)(value >> 8 * i);
}

void fdri_convert_message_bytes(struct fdri_convert_message *m, uint32_t field, const void *bytes, size_t count)
{
    fdri_convert_message_varint(m, field << 3 | BYTES);
    fdri_convert_message_varint(m, count);
    if (!count || !room(m, count)) return;
    memcpy(m->bytes + m->used, bytes, count);
    m->used += count;
}

void fdri_convert_message_text(struct fdri_convert_message *m, uint32_t field, const char *text)
{
    size_t count = strlen(text), at = m->used;
    fdri_convert_message_bytes(m, field, text, count);
    if (m->no_memory || m->used < at + count) return;
    char *copy = (char *)m->bytes + m->used - count;
    for (size_t i = 0, n; i < count; i += n ? n : 1) {
        n = fdri_convert_text_plain(text + i);
        if (!n) copy[i] = ' ';
    }
}

void fdri_convert_message_message(struct fdri_convert_message *m, uint32_t field, const struct fdri_convert_message *in)
{
    fdri_convert_message_bytes(m, field, in->bytes, in->used);
    m->no_memory |= in->no_memory;
}
