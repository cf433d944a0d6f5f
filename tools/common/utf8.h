/* SPDX-License-Identifier: MIT */
/* Characters of UTF-8. */
#ifndef FDRI_TOOLS_COMMON_UTF8_H
#define FDRI_TOOLS_COMMON_UTF8_H

#include <stddef.h>

/* Bytes of the UTF-8 character at s; 0: none, which includes overlong forms and surrogates. */
size_t character_bytes(const unsigned char *s);

#endif
