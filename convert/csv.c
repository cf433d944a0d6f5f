/* SPDX-License-Identifier: MIT */
/* A table of all events, one a line, by RFC 4180: for spreadsheets, pandas, DuckDB. Fields of an event are one column,
 * "peer=1 tag=7". Times are those of fdr dump. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "convert/convert_text.h"
#include "convert/exporters.h"
#include "convert/titles.h"

/* Inside of quotes; a quote is doubled. Characters that are not plain become spaces. */
static void inside(struct fdri_convert_text *out, const char *text)
{
    for (size_t n; *text; text += n ? n : 1) {
        n = fdri_convert_text_plain(text);
        fdri_convert_text_bytes(out, *text == '"' ? "\"\"" : n ? text : " ", *text == '"' ? 2 : n ? n : 1);
    }
}

static void quoted(struct fdri_convert_text *out, const char *text)
{
    fdri_convert_text_string(out, ",\"");
    inside(out, text);
    fdri_convert_text_string(out, "\"");
}

static void number(struct fdri_convert_text *out, uint64_t value)
{
    fdri_convert_text_string(out, ",");
    fdri_convert_text_u64(out, value);
}

static void value(struct fdri_convert_text *out, const struct fdr_field_info *field, uint64_t bits)
{
    double real;
    for (uint64_t i = 0; field->word && field->word[i]; i++) {
        if (i != bits) continue;
        inside(out, field->word[i]);
        return;
    }
    memcpy(&real, &bits, sizeof real);
    if (field->type == FDR_VALUE_F64) fdri_convert_text_f64(out, real);
    else if (field->type == FDR_VALUE_I64) fdri_convert_text_i64(out, (int64_t)bits);
    else fdri_convert_text_u64(out, bits);
}

/* The last column. */
static void values(struct fdri_convert_text *out, struct fdr_file *file, const struct fdr_read_event *e)
{
    const struct fdr_field_info *field;
    size_t count = fdr_event_fields(file, e, &field);
    const char *before = "";
    fdri_convert_text_string(out, ",\"");
    for (uint32_t i = 0; i < count && i < e->field_count && i < 16; i++, before = " ") {
        fdri_convert_text_string(out, before);
        inside(out, field[i].name);
        fdri_convert_text_string(out, "=");
        value(out, &field[i], e->field[i]);
    }
    if (e->sample) {
        fdri_convert_text_string(out, "weight=");
        fdri_convert_text_u64(out, e->sample->weight);
    }
    if (e->repaired) fdri_convert_text_string(out, "repaired=1");
    fdri_convert_text_string(out, "\"\r\n");
}

static const char *name_of(const struct fdr_file *file, const struct fdr_read_event *e)
{
    const struct fdr_sample_path *s = e->sample;
    if (e->class_ == FDR_IN_REGION) return fdri_convert_call(file, e);
    if (e->kind != FDR_SAMPLE) return fdr_id_name(file, e->class_, e->id);
    if (s && s->state != UINT32_MAX) return fdr_definition(file, FDR_REGION_DEFINITION, s->state)->name;
    return s && s->pc ? fdr_place_at(file, s->pc, false, e->time_ns)->function : "";
}

static void line(struct fdri_convert_text *out, struct fdr_file *file, size_t number_of_file,
                 const struct fdr_read_event *e)
{
    fdri_convert_text_u64(out, number_of_file);
    number(out, e->location);
    number(out, e->time_ns);
    fdri_convert_text_string(out, ",");
    fdri_convert_text_string(out, fdr_kind_info(e->kind)->name);
    number(out, e->depth);
    quoted(out, name_of(file, e));
    number(out, e->duration_ns);
    values(out, file, e);
}

static int run(struct fdr_file *const *files, size_t count, const struct fdr_select *select, const char *const *options,
               const char *out_path)
{
    struct fdri_convert_text *out;
    (void)options;
    int status = fdri_convert_text_open(&out, out_path);
    if (status) return status;
    fdri_convert_text_string(out, "recording,location,time_ns,kind,depth,name,duration_ns,values\r\n");
    for (size_t i = 0; i < count && !status; i++) {
        struct fdr_read_event e;
        struct fdr_iter *iter = fdr_iter_open(files[i], select ? &select[i] : NULL);
        status = iter ? 0 : -ENOMEM;
        while (iter && !out->error && fdr_iter_next(iter, &e)) line(out, files[i], i + 1, &e);
        fdr_iter_close(iter);
    }
    return fdri_convert_text_close(out, status);
}

const struct fdr_exporter fdri_convert_csv = {
    .name = "csv",
    .help = "a table of all events, one a line",
    .call_bytes = 110,
    .run = run,
};
