/* SPDX-License-Identifier: MIT */
/* Cancellation of threads, turned off around code that writes or opens files. A thread that is cancelled there would
 * leave locks taken, and the next thread would wait for ever. The cancellation happens when the section is over.
 *
 * The type is set to deferred as well. glibc 2.36 looks at the type alone when its signal arrives, and the signal may
 * have been sent before cancellation was off. */
#ifndef FDRI_BASE_SYSTEM_CANCELLATION_H
#define FDRI_BASE_SYSTEM_CANCELLATION_H
#include <pthread.h>

struct fdri_system_cancel {
    int state, type;
};

static inline struct fdri_system_cancel fdri_system_cancel_off(void)
{
    struct fdri_system_cancel old = {PTHREAD_CANCEL_ENABLE, PTHREAD_CANCEL_DEFERRED};
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old.state);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &old.type);
    return old;
}
/* Allows cancellation again, still deferred, so this call itself is no place for it. */
static inline void fdri_system_cancel_defer(struct fdri_system_cancel old) { pthread_setcancelstate(old.state, NULL); }
static inline void fdri_system_cancel_restore(struct fdri_system_cancel old)
{
    pthread_setcanceltype(old.type, NULL);
    pthread_setcancelstate(old.state, NULL);
}
#endif
