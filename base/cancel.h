/* SPDX-License-Identifier: MIT */
/* A thread that is cancelled where it writes or opens a file would leave locks taken, and whoever comes next waiting.
 * So what may do either runs with cancellation off; it comes when that is over. */
#ifndef FDR_BASE_CANCEL_H
#define FDR_BASE_CANCEL_H
#include <pthread.h>

static inline int fdr_cancel_off(void)
{
    int old = PTHREAD_CANCEL_ENABLE;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    return old;
}
static inline void fdr_cancel_restore(int old) { pthread_setcancelstate(old, NULL); }
#endif
