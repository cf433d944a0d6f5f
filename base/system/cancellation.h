/* SPDX-License-Identifier: MIT */
/* A thread that is cancelled where it writes or opens a file would leave locks taken, and whoever comes next waiting.
 * So what may do either runs with cancellation off; it comes when that is over.
 *
 * And deferred, not asynchronous: glibc (2.36) looks at the type alone when its signal arrives, which may have been
 * sent before cancellation was off. */
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
/* It can be cancelled again, but by no means here. */
static inline void fdri_system_cancel_defer(struct fdri_system_cancel old) { pthread_setcancelstate(old.state, NULL); }
static inline void fdri_system_cancel_restore(struct fdri_system_cancel old)
{
    pthread_setcanceltype(old.type, NULL);
    pthread_setcancelstate(old.state, NULL);
}
#endif
