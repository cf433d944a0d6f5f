/* SPDX-License-Identifier: MIT */
/* Bytes that grow, and structures of Thrift's compact protocol in them. */
#include "convert/thrift.h"

#include <stdlib.h>
#include <string.h>

enum { I64 = 6, LIST = 9 };

void fdri_convert_thrift_raw(struct fdri_convert_thrift *t, const void *bytes, size_t count)
{
    if (t->room - t->used < count) {
        size_t room = (t->room + count) * 2 + 256;
        char *more = realloc(t->bytes, room);
        t->no_memory |= !more;
        if (!more) return;
        t->bytes = more;
        t->room = room;
    }
    if (count) memcpy(t->bytes + t->used, bytes, count);
    t->used += count;
}

void fdri_convert_thrift_number(struct fdri_convert_thrift *t, uint64_t value, unsigned bytes)
{
    char text[8];
    for (unsigned i = 0; i < bytes; i++) text[i] = (char)(value >> 8 * i);
    fdri_convert_thrift_raw(t, text, bytes);
}

void fdri_convert_thrift_varint(struct fdri_convert_thrift *t, uint64_t value)
{
    char text[10];
    size_t used = 0;
    for (; value >= 0x80; value >>= 7) text[used++] = (char)(value | 0x80);
    text[used++] = (char)value;
    fdri_convert_thrift_raw(t, text, used);
}

static void zigzag(struct fdri_convert_thrift *t, int64_t value)
{
    fdri_convert_thrift_varint(t, (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0));
}

/* Fields ascend, and no two neighbours are more than 15 apart. */
static void head(struct fdri_convert_thrift *t, unsigned field, unsigned type)
{
    uint8_t *newest = &t->field[t->open - 1];
    fdri_convert_thrift_number(t, (field - *newest) << 4 | type, 1);
    *newest = (uint8_t)field;
}

void fdri_convert_thrift_begin(struct fdri_convert_thrift *t, unsigned field)
{
    if (field) head(t, field, FDRI_CONVERT_THRIFT_STRUCT);
    t->field[t->open++] = 0;
}

void fdri_convert_thrift_end(struct fdri_convert_thrift *t)
{
    fdri_convert_thrift_number(t, 0, 1);
    t->open--;
}

void fdri_convert_thrift_i32(struct fdri_convert_thrift *t, unsigned field, int32_t value)
{
    head(t, field, FDRI_CONVERT_THRIFT_I32);
    zigzag(t, value);
}

void fdri_convert_thrift_i64(struct fdri_convert_thrift *t, unsigned field, int64_t value)
{
    head(t, field, I64);
    zigzag(t, value);
}

void fdri_convert_thrift_text(struct fdri_convert_thrift *t, unsigned field, const char *text)
{
    head(t, field, FDRI_CONVERT_THRIFT_TEXT);
    fdri_convert_thrift_element_text(t, text);
}

void fdri_convert_thrift_list(struct fdri_convert_thrift *t, unsigned field, enum fdri_convert_thrift_type type,
                              size_t count)
{
    head(t, field, LIST);
    fdri_convert_thrift_number(t, (count < 15 ? count : 15) << 4 | type, 1);
    if (count >= 15) fdri_convert_thrift_varint(t, count);
}

void fdri_convert_thrift_element_i32(struct fdri_convert_thrift *t, int32_t value) { zigzag(t, value); }

void fdri_convert_thrift_element_text(struct fdri_convert_thrift *t, const char *text)
{
    size_t count = strlen(text);
    fdri_convert_thrift_varint(t, count);
    fdri_convert_thrift_raw(t, text, count);
}
