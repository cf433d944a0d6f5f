/* SPDX-License-Identifier: MIT */
#include "base/system/topology.h"

#include <stddef.h>

const struct fdri_system_topology *fdri_system_topology_given;
