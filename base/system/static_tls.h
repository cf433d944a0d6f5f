/* SPDX-License-Identifier: MIT */
/* Thread-local storage that is there since a thread's start. */
#ifndef FDRI_BASE_SYSTEM_STATIC_TLS_H
#define FDRI_BASE_SYSTEM_STATIC_TLS_H
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is this a variable of the calling thread in the block that the C library makes with every thread? Those of a library
 * that dlopen brought lie elsewhere, in memory that is allocated when a thread first uses one. False where it is not
 * known. Needs _GNU_SOURCE; not for signal handlers. */
static inline bool fdri_system_is_static_tls(const void *variable)
{
    void (*bounds)(size_t *, size_t *);
    size_t bytes = 0, align, self = (size_t)pthread_self(), at = (size_t)variable;
    *(void **)(void *)&bounds = dlvsym(RTLD_DEFAULT, "_dl_get_tls_static_info", "GLIBC_PRIVATE");
    if (!bounds) return false;
    bounds(&bytes, &align);
#if defined(__x86_64__)
    return at < self && self - at <= bytes; /* below what pthread_self() is the address of */
#else
    return at > self && at - self <= bytes;
#endif
}
#endif
