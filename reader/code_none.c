/* SPDX-License-Identifier: MIT */
/* Without elfutils nobody asks. */
#include "reader/code.h"
