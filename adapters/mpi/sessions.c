/* SPDX-License-Identifier: MIT */
/* Sessions. A program may use MPI without MPI_Init: the world is then the process set mpi://WORLD of an open session.
 * One lock, not held around MPI; sessions begin and end rarely. */
#include <pthread.h>
#include "adapters/mpi/adapter_parts.h"

enum { KNOWN = 64 };
static word session[KNOWN];
static int begun, known; /* sessions of the process; those of them in `session` */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static word handle_of(const struct fdri_mpi_call *c)
{
    return fdri_mpi_handle_at(c, FDRI_MPI_session, FDRI_MPI_SESSION, 0);
}

void fdri_mpi_sessions_opened(const struct fdri_mpi_call *c)
{
    word handle = handle_of(c);
    pthread_mutex_lock(&lock);
    begun++;
    if (known < KNOWN) session[known++] = handle;
    pthread_mutex_unlock(&lock);
}

void fdri_mpi_sessions_closing(const struct fdri_mpi_call *c)
{
    word handle = handle_of(c);
    pthread_mutex_lock(&lock);
    if (begun > 0) begun--;
    for (int i = 0; i < known; i++)
        if (session[i] == handle) session[i--] = session[--known];
    pthread_mutex_unlock(&lock);
}

bool fdri_mpi_sessions_any(void)
{
    pthread_mutex_lock(&lock);
    bool any = begun > 0;
    pthread_mutex_unlock(&lock);
    return any;
}

bool fdri_mpi_sessions_world(word *group)
{
    typedef int group_of_set(word, const char *, word *);
    group_of_set *ask = (group_of_set *)fdri_mpi_find("PMPI_Group_from_session_pset");
    pthread_mutex_lock(&lock);
    word of = known ? session[known - 1] : 0;
    pthread_mutex_unlock(&lock);
    return ask && of && !ask(of, "mpi://WORLD", group);
}
