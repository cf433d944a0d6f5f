/* SPDX-License-Identifier: MIT */
/* The topology that tests provide. */
#include "base/system/topology.h"

#include <stddef.h>

const struct fdri_system_topology *fdri_system_topology_given;
