/* SPDX-License-Identifier: MIT */
/* The layout of the arena, the one memory image of a recording. What is written here while the program runs is,
 * byte for byte, what a snapshot, a crash file and the file left after SIGKILL contain.
 *
 *   0                superblock (4096 bytes)
 *   bins_off ..      bins, bin_bytes each, handed out upwards
 *   .. arena_bytes   meta blocks (definitions, locations, levels, partitions, totals), handed out downwards
 *   arena_bytes ..   only in snapshots: the tail (struct fdri_arena_tail), at most 256 KiB
 *
 * All integers are little-endian and of fixed width. Positions are byte offsets from the start of the
 * arena (`off`, 0 = none); never pointers. A reader trusts none of it. docs/FORMAT.md is the specification.
 *
 * Words: a *tick* is the unit of the location's clock (TSC ticks, or ns); a *stored tick* is a tick
 * shifted right by `shift` (FDR_RESOLUTION). Every time below is a stored tick unless it says otherwise. */
#ifndef FDRI_FORMAT_ARENA_ARENA_H
#define FDRI_FORMAT_ARENA_ARENA_H

#include "format/arena/bin_header.h"
#include "format/arena/checksum.h"
#include "format/arena/definition_block.h"
#include "format/arena/epoch_table.h"
#include "format/arena/event_class.h"
#include "format/arena/fold_block.h"
#include "format/arena/frozen_stack.h"
#include "format/arena/ledger_line.h"
#include "format/arena/level.h"
#include "format/arena/location.h"
#include "format/arena/meta_block.h"
#include "format/arena/note_block.h"
#include "format/arena/numa_block.h"
#include "format/arena/partition_block.h"
#include "format/arena/sample_accounts.h"
#include "format/arena/spare.h"
#include "format/arena/superblock.h"
#include "format/arena/tail.h"
#include "format/arena/totals_row.h"

#endif
