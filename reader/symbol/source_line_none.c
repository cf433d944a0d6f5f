/* SPDX-License-Identifier: MIT */
/* Without elfutils nobody asks. */
#include "reader/symbol/source_line.h"
