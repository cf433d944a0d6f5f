/* SPDX-License-Identifier: MIT */
/* For LD_PRELOAD: ranks of MPICH that wait give way to others. They spin in UCX, and of three on two processors each
 * message otherwise costs a time slice. (Open MPI has a setting for it.) */
#include <dlfcn.h>
#include <sched.h>

unsigned ucp_worker_progress(void *worker);
unsigned ucp_worker_progress(void *worker)
{
    static unsigned (*real)(void *);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "ucp_worker_progress");
    unsigned progress = real(worker);
    if (!progress) sched_yield();
    return progress;
}
