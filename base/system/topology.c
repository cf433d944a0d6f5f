/* SPDX-License-Identifier: MIT */
#include "base/system/topology.h"

#include <stddef.h>

const struct fdr_topology *fdr_topology_given;
