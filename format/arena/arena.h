/* SPDX-License-Identifier: MIT */
/* The layout of the arena, the one memory image of a recording. A snapshot, a bundle and the file that SIGKILL leaves
 * contain the same bytes as the arena while the program runs. Files: this header includes the others, one for each kind
 * of block. crash_section.h lays out the section of a bundle; checks.h has the functions on spare and chunks.
 * Neighbours: bins/ and recorder/ write the arena, export/ copies it, reader/ reads it; format/codec/ fills the bins;
 * below: base/.
 *
 *   0                superblock (4096 bytes)
 *   bins_off ..      bins, bin_bytes each, handed out upwards
 *   .. arena_bytes   meta blocks (definitions, locations, levels, partitions, totals), handed out downwards
 *   arena_bytes ..   only in snapshots: the tail (struct fdri_arena_tail), at most 256 KiB
 *
 * All integers are little-endian and of fixed width. Positions are byte offsets from the start of the arena (`off`, 0 =
 * none), never pointers. A reader must trust no byte of it. docs/FORMAT.md is the specification.
 *
 * A *tick* is the unit of the location's clock (TSC ticks, or ns); a *stored tick* is a tick shifted right by `shift`
 * (FDR_RESOLUTION). Times in these structures are stored ticks unless a comment says full ticks. */
#ifndef FDRI_FORMAT_ARENA_ARENA_H
#define FDRI_FORMAT_ARENA_ARENA_H

#include "format/arena/bin_header.h"
#include "format/arena/checksum.h"
#include "format/arena/definition_block.h"
#include "format/arena/epoch_table.h"
#include "format/arena/event_class.h"
#include "format/arena/fold_block.h"
#include "format/arena/frozen_stack.h"
#include "format/arena/governor_block.h"
#include "format/arena/ledger_line.h"
#include "format/arena/level.h"
#include "format/arena/location.h"
#include "format/arena/meta_block.h"
#include "format/arena/note_block.h"
#include "format/arena/numa_block.h"
#include "format/arena/partition_block.h"
#include "format/arena/sample_accounts.h"
#include "format/arena/section.h"
#include "format/arena/spare.h"
#include "format/arena/superblock.h"
#include "format/arena/tail.h"
#include "format/arena/tally_block.h"
#include "format/arena/totals_row.h"

#endif
