/* SPDX-License-Identifier: MIT */
/* The topology by libnuma. Libnuma's functions that place memory print errors to the program's stderr. So only its
 * query functions are used, and for memory the system calls themselves. */
#include "base/system/topology.h"

#include <numa.h>
#include <numaif.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

enum { MASK_BITS = 1024, WORD_BITS = 8 * sizeof(unsigned long) };

/* No system call: the kernel keeps the number in memory, or in the vDSO. */
static int cpu_here(void) { return sched_getcpu(); }

static bool prefer(uint32_t id)
{
    static unsigned long before[MASK_BITS / WORD_BITS];
    static int mode;
    static bool changed;
    if (id == UINT32_MAX) {
        bool back = changed && set_mempolicy(mode, before, MASK_BITS) == 0;
        changed = false;
        return back;
    }
    if (!changed) {
        memset(before, 0, sizeof before);
        if (get_mempolicy(&mode, before, MASK_BITS, NULL, 0)) return false;
        changed = true;
    }
    unsigned long mask[MASK_BITS / WORD_BITS] = {0};
    if (id >= MASK_BITS) return false;
    mask[id / WORD_BITS] = 1ul << id % WORD_BITS;
    return set_mempolicy(MPOL_PREFERRED, mask, MASK_BITS) == 0;
}

/* Balancing leaves memory with a policy of its own alone. This policy equals the default: the node of the thread that
 * touches a page first. */
static bool pin_policy(void *memory, uint64_t bytes) { return mbind(memory, bytes, MPOL_PREFERRED, NULL, 0, 0) == 0; }

static uint8_t nearest_node(const struct fdri_system_topology *t, int node)
{
    uint8_t best = 0;
    int least = 0;
    for (uint32_t i = 0; i < t->nodes; i++) {
        int far = (int)t->id[i] == node ? -1 : numa_distance((int)t->id[i], node);
        if (i && far >= least) continue;
        least = far;
        best = (uint8_t)i;
    }
    return best;
}

/* The nodes with memory that this process may use. A node without CPUs counts as well. */
static void find_nodes(struct fdri_system_topology *t)
{
    struct bitmask *allowed = numa_get_mems_allowed();
    long long size;
    t->nodes = 0;
    for (int n = 0; allowed && n <= numa_max_node() && t->nodes < FDRI_SYSTEM_NODES_MAX; n++)
        if (numa_bitmask_isbitset(allowed, (unsigned)n) && numa_node_size64(n, &size) > 0)
            t->id[t->nodes++] = (uint32_t)n;
    if (allowed) numa_bitmask_free(allowed);
}

void fdri_system_topology_read(struct fdri_system_topology *t)
{
    if (fdri_system_topology_given) {
        *t = *fdri_system_topology_given;
        return;
    }
    memset(t, 0, sizeof *t);
    t->page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
    t->cpu = cpu_here;
    t->prefer = prefer;
    t->stay = pin_policy;
    if (numa_available() >= 0 && numa_max_node() > 0) find_nodes(t);
    if (t->nodes < 2) {
        t->nodes = 1;
        return;
    }
    int cpus = numa_num_configured_cpus();
    for (int cpu = 0; cpu < cpus && cpu < FDRI_SYSTEM_CPUS_MAX; cpu++) {
        int node = numa_node_of_cpu(cpu);
        t->of_cpu[cpu] = node < 0 ? 0 : nearest_node(t, node);
    }
}
