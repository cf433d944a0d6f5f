/* SPDX-License-Identifier: MIT */
/* Standard output for millions of lines: one buffer, integers formatted here. Not to be mixed with stdio. */
#ifndef FDRI_TOOLS_COMMON_FAST_OUTPUT_H
#define FDRI_TOOLS_COMMON_FAST_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define OUT_BYTES (256u << 10)
#define OUT_SHORT 64u /* every short piece fits into this many bytes */

struct out {
    size_t used;
    bool failed;
    char buffer[OUT_BYTES + OUT_SHORT];
};
extern struct out out;

void out_flush(void);
/* Flushes. Returns DONE, or COULD_NOT after a message. */
int out_finish(void);
void out_long(const char *bytes, size_t count);

/* Room for one short piece. */
static inline char *out_room(void)
{
    if (out.used >= OUT_BYTES) out_flush();
    return out.buffer + out.used;
}
static inline void out_char(char c)
{
    *out_room() = c;
    out.used++;
}
static inline void out_bytes(const char *bytes, size_t count)
{
    if (count > OUT_SHORT) {
        out_long(bytes, count);
        return;
    }
    memcpy(out_room(), bytes, count);
    out.used += count;
}
static inline void out_text(const char *text) { out_bytes(text, strlen(text)); }

void out_u64(uint64_t value);
void out_i64(int64_t value);
/* Prints the shortest text that reads back as the same double. */
void out_f64(double value);
/* Right-aligned in `width` columns, at most 40. */
void out_u64_wide(uint64_t value, unsigned width);
void out_text_wide(const char *text, unsigned width);
/* Prints value with exactly `digits` digits, with leading zeros. */
void out_zeros(uint64_t value, unsigned digits);
/* Prints "1.234 us" right-aligned in 12 columns. */
void out_time(uint64_t ns);
void out_spaces(unsigned count);
/* Prints one cell of a table: tabs, line ends, other control characters and bytes that are not UTF-8 become spaces. */
void out_cell(const char *text);
/* Prints a JSON string. */
void out_json(const char *text);

#endif
