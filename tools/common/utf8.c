/* SPDX-License-Identifier: MIT */
/* Characters of UTF-8. */
#include "tools/common/utf8.h"

size_t character_bytes(const unsigned char *s)
{
    size_t count = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if ((s[0] >= 0x80 && s[0] < 0xc2) || s[0] > 0xf4) return 0;
    for (size_t i = 1; i < count; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f)) return 0;
    if ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f)) return 0;
    return count;
}
