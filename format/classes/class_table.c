/* SPDX-License-Identifier: MIT */
/* The table of classes, and searches in it. */
#include "format/classes/class_table.h"

#include <string.h>

#include "format/arena/totals_row.h"

static const char *const directions[] = {"send", "recv", "resolve", NULL};
static const char *const operations[] = {"Barrier",
                                         "Bcast",
                                         "Reduce",
                                         "Allreduce",
                                         "Alltoall",
                                         "Alltoallv",
                                         "Allgather",
                                         "Allgatherv",
                                         "Gather",
                                         "Gatherv",
                                         "Scatter",
                                         "Scatterv",
                                         "Scan",
                                         "Exscan",
                                         "Reduce_scatter",
                                         "Reduce_scatter_block",
                                         "Alltoallw",
                                         "Neighbor_allgather",
                                         "Neighbor_allgatherv",
                                         "Neighbor_alltoall",
                                         "Neighbor_alltoallv",
                                         "Neighbor_alltoallw",
                                         NULL};

static const char *const io_operations[] = {"open", "close", "read", "write", "sync", "other", NULL};

/* clang-format off */
#define ENVELOPE {{.name = "peer"}, {.name = "tag", .type = FDRI_ARENA_VALUE_I64, .zigzag = true}, {.name = "comm"}, \
                  {.name = "bytes", .unit = "bytes"}}
/* clang-format on */

const struct fdri_classes_class fdri_classes[FDRI_ARENA_CLASS_COUNT] = {
    [FDRI_ARENA_CLASS_REGION] = {.name = "region",
                                 .kinds = 2,
                                 .row_kind = FDRI_ARENA_DEF_REGION,
                                 .named_by = FDRI_ARENA_DEF_REGION,
                                 .kind = {{"enter", NULL, FDRI_CLASSES_ENTER, FDRI_CLASSES_ROW, 0, {{0}}},
                                          {"leave", NULL, FDRI_CLASSES_LEAVE, FDRI_CLASSES_ROW, 0, {{0}}}}},
    [FDRI_ARENA_CLASS_MESSAGE] =
        {.name = "message",
         .kinds = 3,
         .kind_first = 1,
         .kind_mask = 3,
         .first_name = 1,
         .name_of = directions,
         .other_name = "message",
         .sum_of = "bytes",
         .kind =
             {{"send", NULL, FDRI_CLASSES_SEND, FDRI_CLASSES_ROW, 4, ENVELOPE},
              {"recv", NULL, FDRI_CLASSES_RECV, FDRI_CLASSES_ROW, 4, ENVELOPE},
              {"resolve", NULL, FDRI_CLASSES_RESOLVE, FDRI_CLASSES_NO_ROW, 2, {{.name = "token"}, {.name = "ordinal"}}},
              /* id 0, which nothing writes */
              {"recv", NULL, FDRI_CLASSES_RECV, FDRI_CLASSES_ROW, 4, ENVELOPE}}},
    [FDRI_ARENA_CLASS_COLLECTIVE] =
        {.name = "collective",
         .kinds = 2,
         .kind_mask = 1,
         .id_shift = 1,
         .row_kind = FDRI_ARENA_DEF_COLLECTIVE,
         .first_name = 10,
         .name_of = operations,
         .other_name = "collective",
         .sum_of = "bytes",
         .kind = {{"coll_begin", "begin", FDRI_CLASSES_COLL_BEGIN, FDRI_CLASSES_HIDDEN_ROW, 1, {{.name = "comm"}}},
                  {"coll_end",
                   "end",
                   FDRI_CLASSES_COLL_END,
                   FDRI_CLASSES_ROW,
                   4,
                   {{.name = "comm"},
                    {.name = "root", .type = FDRI_ARENA_VALUE_I64, .zigzag = true},
                    {.name = "sent", .unit = "bytes"},
                    {.name = "received", .unit = "bytes"}}}}},
    [FDRI_ARENA_CLASS_METRIC] =
        {.name = "metric",
         .kinds = 1,
         .row_kind = FDRI_ARENA_DEF_METRIC,
         .named_by = FDRI_ARENA_DEF_METRIC,
         .kind = {{"metric", NULL, FDRI_CLASSES_METRIC, FDRI_CLASSES_ROW, 1, {{.name = "value"}}}}},
    [FDRI_ARENA_CLASS_MARKER] =
        {.name = "marker",
         .kinds = 1,
         .row_kind = FDRI_ARENA_DEF_MARKER,
         .named_by = FDRI_ARENA_DEF_MARKER,
         .sum_of = "",
         .kind = {{"marker", NULL, FDRI_CLASSES_MARKER, FDRI_CLASSES_ROW, 1, {{.name = "value"}}}}},
    [FDRI_ARENA_CLASS_SAMPLE] = {.name = "sample",
                                 .kinds = 1,
                                 .own_fields = true,
                                 .row_kind = FDRI_CLASSES_NO_ROWS,
                                 .kind = {{"sample", NULL, FDRI_CLASSES_SAMPLE, FDRI_CLASSES_NO_ROW, 0, {{0}}}}},
    [FDRI_ARENA_CLASS_IO] = {.name = "io",
                             .kinds = 2,
                             .kind_mask = 1,
                             .value_shift = 1,
                             .value_mask = 7,
                             .id_shift = 4,
                             .own_fields = true,
                             .timed = true,
                             .row_kind = FDRI_ARENA_DEF_FILE,
                             .named_by = FDRI_ARENA_DEF_FILE,
                             .sum_of = "bytes",
                             .value = {.name = "op", .word = io_operations},
                             .kind = {{"io_begin",
                                       "begin",
                                       FDRI_CLASSES_IO_BEGIN,
                                       FDRI_CLASSES_NO_ROW,
                                       2,
                                       {{.name = "bytes", .unit = "bytes"}, {.name = "offset", .unit = "bytes"}}},
                                      {"io_end",
                                       "end",
                                       FDRI_CLASSES_IO_END,
                                       FDRI_CLASSES_ROW,
                                       2,
                                       {{.name = "bytes", .unit = "bytes"}, {.name = "error"}}}}},
    [FDRI_ARENA_CLASS_TASK] = {.name = "task",
                               .kinds = 1,
                               .own_fields = true,
                               .row_kind = FDRI_CLASSES_NO_ROWS,
                               .kind = {{"event", NULL, FDRI_CLASSES_EVENT, FDRI_CLASSES_NO_ROW, 0, {{0}}}}},
    [FDRI_ARENA_CLASS_USER] = {.name = "user",
                               .kinds = 1,
                               .own_fields = true,
                               .row_kind = FDRI_ARENA_DEF_EVENT,
                               .named_by = FDRI_ARENA_DEF_EVENT,
                               .sum_of = "",
                               .kind = {{"event", NULL, FDRI_CLASSES_EVENT, FDRI_CLASSES_ROW, 0, {{0}}}}},
};

uint32_t fdri_classes_fields_most(uint32_t class_)
{
    uint32_t most = 1;
    for (uint32_t i = 0; i < fdri_classes[class_].kinds; i++)
        if (fdri_classes[class_].kind[i].fields > most) most = fdri_classes[class_].kind[i].fields;
    return most;
}

uint32_t fdri_classes_of_row(uint32_t key)
{
    if (key == FDRI_ARENA_ROW_KEY_REST) return FDRI_ARENA_CLASS_REGION;
    for (uint32_t c = 0; c < FDRI_ARENA_CLASS_COUNT; c++) {
        if (fdri_classes[c].row_kind != key >> 24) continue;
        bool known = c != FDRI_ARENA_CLASS_MESSAGE || (key & 0xffffffu) - 1 < fdri_classes[c].kinds;
        return known ? c : UINT32_MAX;
    }
    return UINT32_MAX;
}

uint32_t fdri_classes_named(const char *name, uint32_t length)
{
    for (uint32_t c = 0; c < FDRI_ARENA_CLASS_COUNT; c++)
        if (strlen(fdri_classes[c].name) == length && !memcmp(fdri_classes[c].name, name, length)) return c;
    return UINT32_MAX;
}
