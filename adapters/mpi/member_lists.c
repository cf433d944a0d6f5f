/* SPDX-License-Identifier: MIT */
/* Lists of world ranks. Communicators of equal members share one list, which goes with the last of them. One lock;
 * communicators are made and freed rarely. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "adapters/mpi/adapter.h"

enum { CHAINS = 256 };
struct fdri_mpi_list {
    struct fdri_mpi_list *next;
    uint64_t hash;
    size_t size, users;
    uint32_t world[];
};
static struct fdri_mpi_list *chain[CHAINS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t hash_of(const uint32_t *world, size_t size)
{
    uint64_t h = size;
    for (size_t i = 0; i < size; i++) h = fdri_mpi_mix(h, world[i]);
    return h;
}

static struct fdri_mpi_list *find(const uint32_t *world, size_t size, uint64_t hash)
{
    struct fdri_mpi_list *l = chain[hash / CHAINS % CHAINS];
    while (l && (l->hash != hash || l->size != size || memcmp(l->world, world, size * sizeof *world))) l = l->next;
    return l;
}

static struct fdri_mpi_list *make(const uint32_t *world, size_t size, uint64_t hash)
{
    struct fdri_mpi_list *l = malloc(sizeof *l + size * sizeof *world);
    if (!l) return NULL;
    *l = (struct fdri_mpi_list){.next = chain[hash / CHAINS % CHAINS], .hash = hash, .size = size};
    memcpy(l->world, world, size * sizeof *world);
    return chain[hash / CHAINS % CHAINS] = l;
}

const uint32_t *fdri_mpi_list_use(const uint32_t *world, size_t size)
{
    uint64_t hash = hash_of(world, size);
    pthread_mutex_lock(&lock);
    struct fdri_mpi_list *l = find(world, size, hash);
    if (!l) l = make(world, size, hash);
    if (l) l->users++;
    pthread_mutex_unlock(&lock);
    return l ? l->world : NULL;
}

void fdri_mpi_list_leave(const uint32_t *world, size_t size)
{
    uint64_t hash = hash_of(world, size);
    pthread_mutex_lock(&lock);
    struct fdri_mpi_list *l = find(world, size, hash), **at = &chain[hash / CHAINS % CHAINS];
    if (l && --l->users == 0) {
        while (*at != l) at = &(*at)->next;
        *at = l->next;
        free(l);
    }
    pthread_mutex_unlock(&lock);
}
