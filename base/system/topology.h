/* SPDX-License-Identifier: MIT */
/* The NUMA nodes that this process may use, and the node on which a thread runs. topology_numa.c asks libnuma;
 * topology_none.c knows one node; tests provide a machine of their own. */
#ifndef FDRI_BASE_SYSTEM_TOPOLOGY_H
#define FDRI_BASE_SYSTEM_TOPOLOGY_H
#include <stdbool.h>
#include <stdint.h>

enum { FDRI_SYSTEM_NODES_MAX = 16, FDRI_SYSTEM_CPUS_MAX = 4096 };

struct fdri_system_topology {
    uint32_t nodes; /* at least 1; if it is 1, nothing else is read */
    uint32_t page_bytes;
    /* the kernel's numbers; nodes beyond the array's size are not used */
    uint32_t id[FDRI_SYSTEM_NODES_MAX];
    uint8_t of_cpu[FDRI_SYSTEM_CPUS_MAX]; /* index into id: the node of a CPU, or the nearest one with memory */
    /* The CPU on which the caller runs, or -1. Makes no system call. */
    int (*cpu)(void);
    /* New pages that the calling thread touches come from node `id` as long as it has some. UINT32_MAX restores the
     * policy before the first call. False: the kernel refused. One thread at a time. */
    bool (*prefer)(uint32_t id);
    /* Pages of this memory stay on their node. Otherwise automatic NUMA balancing moves pages to the threads that touch
     * them, which it finds out by page faults. False: the kernel refused (errno). */
    bool (*stay)(void *memory, uint64_t bytes);
};

/* Reads the machine's topology, at the start of each recording. May allocate. */
void fdri_system_topology_read(struct fdri_system_topology *t);
/* For tests: if not NULL, fdri_system_topology_read copies this. */
extern const struct fdri_system_topology *fdri_system_topology_given;

/* Index of the node on which the caller runs. Makes no system call. */
static inline uint32_t fdri_system_topology_here(const struct fdri_system_topology *t)
{
    int cpu = t->cpu();
    return cpu >= 0 && cpu < FDRI_SYSTEM_CPUS_MAX ? t->of_cpu[cpu] : 0;
}
#endif
