/* SPDX-License-Identifier: MIT */
/* The words in tables of events: names and values. */
#ifndef FDRI_CONVERT_EVENT_TEXT_H
#define FDRI_CONVERT_EVENT_TEXT_H

#include <fdr/reader.h>

/* The name of the call, metric, file, ... ; of a sample its state, or the function. */
const char *fdri_convert_event_name(const struct fdr_file *file, const struct fdr_read_event *e);

#define FDRI_CONVERT_EVENT_VALUES 1200 /* enough for all fields */
/* The fields as "peer=1 tag=7"; of a sample its weight; "repaired=1". Returns the length. */
size_t fdri_convert_event_values(const struct fdr_file *file, const struct fdr_read_event *e, char *text);

#endif
