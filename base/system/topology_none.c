/* SPDX-License-Identifier: MIT */
/* The topology without libnuma: one node. */
#include <string.h>
#include <unistd.h>

#include "base/system/topology.h"

void fdri_system_topology_read(struct fdri_system_topology *t)
{
    if (fdri_system_topology_given) {
        *t = *fdri_system_topology_given;
        return;
    }
    memset(t, 0, sizeof *t);
    t->nodes = 1;
    t->page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
}
