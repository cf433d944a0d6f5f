/* SPDX-License-Identifier: MIT */
/* The words in tables of events: names and values. */
#include "convert/event_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/titles.h"

enum { ROOM = FDRI_CONVERT_EVENT_VALUES };

const char *fdri_convert_event_name(const struct fdr_file *file, const struct fdr_read_event *e)
{
    const struct fdr_sample_path *s = e->sample;
    if (e->class_ == FDR_IN_REGION) return fdri_convert_call(file, e);
    if (e->kind != FDR_SAMPLE) return fdr_id_name(file, e->class_, e->id);
    if (s && s->state != UINT32_MAX) return fdr_definition(file, FDR_REGION_DEFINITION, s->state)->name;
    return s && s->pc ? fdr_place_at(file, s->pc, false, e->time_ns)->function : "";
}

/* The shortest text that reads back as the same number, with a point in any locale. */
static int real(char *text, size_t room, double value)
{
    int n = snprintf(text, room, "null");
    for (int precision = 15; isfinite(value) && precision <= 17; precision++) {
        n = snprintf(text, room, "%.*g", precision, value);
        if (strtod(text, NULL) == value) break;
    }
    char *comma = strchr(text, ',');
    if (comma) *comma = '.';
    return n;
}

static int value(char *text, size_t room, const struct fdr_field_info *field, uint64_t bits)
{
    double number;
    for (uint64_t i = 0; field->word && field->word[i]; i++)
        if (i == bits) return snprintf(text, room, "%s", field->word[i]);
    memcpy(&number, &bits, sizeof number);
    if (field->type == FDR_VALUE_F64) return real(text, room, number);
    if (field->type == FDR_VALUE_I64) return snprintf(text, room, "%lld", (long long)bits);
    return snprintf(text, room, "%llu", (unsigned long long)bits);
}

size_t fdri_convert_event_values(const struct fdr_file *file, const struct fdr_read_event *e, char *text)
{
    const struct fdr_field_info *field;
    size_t count = fdr_event_fields(file, e, &field), used = 0;
    text[0] = 0;
    for (uint32_t i = 0; i < count && i < e->field_count && i < 16; i++) {
        used += (size_t)snprintf(text + used, ROOM - used, "%s%.28s=", i ? " " : "", field[i].name);
        used += (size_t)value(text + used, ROOM - used, &field[i], e->field[i]);
    }
    if (e->sample)
        used += (size_t)snprintf(text + used, ROOM - used, "weight=%llu", (unsigned long long)e->sample->weight);
    if (e->repaired) used += (size_t)snprintf(text + used, ROOM - used, "repaired=1");
    return used;
}
