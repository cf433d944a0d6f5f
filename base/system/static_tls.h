/* SPDX-License-Identifier: MIT */
/* A test whether a thread-local variable exists from its thread's start on. */
#ifndef FDRI_BASE_SYSTEM_STATIC_TLS_H
#define FDRI_BASE_SYSTEM_STATIC_TLS_H
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True if `variable` lies in the calling thread's static block, which the C library allocates with the thread.
 * Variables of a library loaded by dlopen may lie in memory that is allocated at their first use. False if the C
 * library does not tell. Needs _GNU_SOURCE; not for signal handlers. */
static inline bool fdri_system_is_static_tls(const void *variable)
{
    void (*bounds)(size_t *, size_t *);
    size_t bytes = 0, align, self = (size_t)pthread_self(), at = (size_t)variable;
    *(void **)(void *)&bounds = dlvsym(RTLD_DEFAULT, "_dl_get_tls_static_info", "GLIBC_PRIVATE");
    if (!bounds) return false;
    bounds(&bytes, &align);
#if defined(__x86_64__)
    return at < self && self - at <= bytes; /* the block lies below the address in pthread_self() */
#else
    return at > self && at - self <= bytes;
#endif
}
#endif
