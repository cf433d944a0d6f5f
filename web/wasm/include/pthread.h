/* SPDX-License-Identifier: MIT */
/* The page's reader has one thread: locks do nothing. Stands before the C library's own header. */
#ifndef FDR_WEB_PTHREAD_H
#define FDR_WEB_PTHREAD_H

typedef unsigned long pthread_t;
typedef int pthread_mutex_t;
typedef int pthread_once_t;
#define PTHREAD_MUTEX_INITIALIZER 0
#define PTHREAD_ONCE_INIT         0
static inline int pthread_once(pthread_once_t *once, void (*run)(void))
{
    if (!*once) run();
    *once = 1;
    return 0;
}
static inline int pthread_mutex_init(pthread_mutex_t *m, const void *attributes)
{
    (void)attributes;
    return *m = 0;
}
static inline int pthread_mutex_lock(pthread_mutex_t *m)
{
    (void)m;
    return 0;
}
static inline int pthread_mutex_unlock(pthread_mutex_t *m)
{
    (void)m;
    return 0;
}
static inline int pthread_mutex_destroy(pthread_mutex_t *m)
{
    (void)m;
    return 0;
}
#endif
