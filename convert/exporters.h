/* SPDX-License-Identifier: MIT */
/* Conversion of recordings to formats of other tools. A format is one file and one row of the table below; the command,
 * its help, the man page and README.md know it from there. Files beside the formats:
 *
 *   exporters.c         the table for <fdr/reader.h>
 *   convert_text.c      a buffered writer with fast integers, for millions of lines
 *   output_directory.c  the same for formats that are a directory
 *   titles.c            names of calls, threads and processes, as all formats show them
 *   interned.c          numbers for strings, functions, stacks
 *   time_line.c         one time line for recordings of several hosts
 *   protobuf.c          messages of Protocol Buffers
 *   event_text.c        names and values of events, for tables
 *   thrift.c            structures of Thrift's compact protocol
 *   paths.c             calls and samples, summed up by call path, for profiles
 *   partners.c          which messages and collectives viewers may pair
 *
 * Neighbours: reads recordings through <fdr/reader.h>; tools/ above. */
#ifndef FDRI_CONVERT_EXPORTERS_H
#define FDRI_CONVERT_EXPORTERS_H

#include <fdr/reader.h>

/* A row is the name of a format: FILE.c defines `const struct fdr_exporter fdri_convert_FILE`. */
#define FDRI_CONVERT_EXPORTERS(ROW)                                                                                    \
    ROW(chrome)                                                                                                        \
    ROW(folded)                                                                                                        \
    ROW(otf2)                                                                                                          \
    ROW(perfetto)                                                                                                      \
    ROW(pprof)                                                                                                         \
    ROW(callgrind)                                                                                                     \
    ROW(firefox)                                                                                                       \
    ROW(ctf)                                                                                                           \
    ROW(csv)                                                                                                           \
    ROW(parquet)                                                                                                       \
    ROW(speedscope)

#define FDRI_CONVERT_DECLARE(name) extern const struct fdr_exporter fdri_convert_##name;
FDRI_CONVERT_EXPORTERS(FDRI_CONVERT_DECLARE)
#undef FDRI_CONVERT_DECLARE

#endif
