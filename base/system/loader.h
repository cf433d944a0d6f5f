/* SPDX-License-Identifier: MIT */
/* What is loaded. A process that was forked while another thread of its parent loaded a library, or closed one, has the
 * C library's lock of these as it was, for ever: whoever asks there, loads anything or unwinds the stack waits for
 * it. */
#ifndef FDRI_BASE_SYSTEM_LOADER_H
#define FDRI_BASE_SYSTEM_LOADER_H
#include <link.h>
#include <stdbool.h>
#include <stddef.h>

/* Can it be asked? After a fork a thread of its own tries, and is waited for a second; what came of it holds. */
bool fdri_system_loader_works(void);

/* As dl_iterate_phdr; 0, and nobody is called, where that would wait for ever. */
int fdri_system_each_module(int (*each)(struct dl_phdr_info *, size_t, void *), void *argument);
#endif
