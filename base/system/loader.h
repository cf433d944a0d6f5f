/* SPDX-License-Identifier: MIT */
/* Access to the list of loaded modules, unless a fork has locked it for ever. Another thread of the parent process may
 * have been loading or closing a library during the fork. Then the child's copy of the C library's lock stays taken.
 * There, asking for the modules, loading a library and unwinding the stack wait for ever. */
#ifndef FDRI_BASE_SYSTEM_LOADER_H
#define FDRI_BASE_SYSTEM_LOADER_H
#include <link.h>
#include <stdbool.h>
#include <stddef.h>

/* True if the list can be asked. After a fork a helper thread tries once, for at most 1 s; the result is final. */
bool fdri_system_loader_works(void);

/* As dl_iterate_phdr. If that would wait for ever: 0, without calling `each`. */
int fdri_system_each_module(int (*each)(struct dl_phdr_info *, size_t, void *), void *argument);
#endif
