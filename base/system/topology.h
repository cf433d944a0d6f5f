/* SPDX-License-Identifier: MIT */
/* Which NUMA nodes this process may use, and where a thread runs. topology_numa.c asks libnuma, topology_none.c knows
 * of one node; tests put a machine of their own in place. */
#ifndef FDRI_BASE_SYSTEM_TOPOLOGY_H
#define FDRI_BASE_SYSTEM_TOPOLOGY_H
#include <stdbool.h>
#include <stdint.h>

enum { FDRI_SYSTEM_NODES_MAX = 16, FDRI_SYSTEM_CPUS_MAX = 4096 };

struct fdri_system_topology {
    uint32_t nodes; /* at least 1; with 1 nothing else is looked at */
    uint32_t page_bytes;
    /* the kernel's numbers; where it has more nodes than fit here, the rest is not used */
    uint32_t id[FDRI_SYSTEM_NODES_MAX];
    uint8_t of_cpu[FDRI_SYSTEM_CPUS_MAX]; /* index into id: the node of a CPU, or the nearest one with memory */
    /* The CPU the caller runs on, or -1. Makes no system call. */
    int (*cpu)(void);
    /* Pages that the calling thread touches first come from node `id` while it has any; false: refused. UINT32_MAX puts
     * back what was before the first call. Not for two threads at once. */
    bool (*prefer)(uint32_t id);
    /* Pages in place stay there, also where the kernel moves those of others to whom it sees touching them (automatic
     * NUMA balancing), which it finds out by page faults. false: refused, errno says why. */
    bool (*stay)(void *memory, uint64_t bytes);
};

/* Read anew at each call, which is at the start of a recording. May allocate. */
void fdri_system_topology_read(struct fdri_system_topology *t);
/* Not NULL: fdri_system_topology_read copies this. For tests. */
extern const struct fdri_system_topology *fdri_system_topology_given;

/* Index of the node the caller runs on. No system call. */
static inline uint32_t fdri_system_topology_here(const struct fdri_system_topology *t)
{
    int cpu = t->cpu();
    return cpu >= 0 && cpu < FDRI_SYSTEM_CPUS_MAX ? t->of_cpu[cpu] : 0;
}
#endif
