/* SPDX-License-Identifier: MIT */
/* Without elfutils: nothing here, as symbols_none.c and unwind_none.c need no lines. */
#include "reader/symbol/source_line.h"
