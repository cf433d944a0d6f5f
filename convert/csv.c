/* SPDX-License-Identifier: MIT */
/* A table of all events, one a line, by RFC 4180: for spreadsheets, pandas, DuckDB. Fields of an event are one column,
 * "peer=1 tag=7". Times are those of fdr dump. */
#include <errno.h>

#include "convert/convert_text.h"
#include "convert/event_text.h"
#include "convert/exporters.h"

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

static void line(struct fdri_convert_text *out, struct fdr_file *file, size_t number_of_file,
                 const struct fdr_read_event *e)
{
    char values[FDRI_CONVERT_EVENT_VALUES];
    fdri_convert_event_values(file, e, values);
    fdri_convert_text_u64(out, number_of_file);
    number(out, e->location);
    number(out, e->time_ns);
    fdri_convert_text_string(out, ",");
    fdri_convert_text_string(out, fdr_kind_info(e->kind)->name);
    number(out, e->depth);
    quoted(out, fdri_convert_event_name(file, e));
    number(out, e->duration_ns);
    quoted(out, values);
    fdri_convert_text_string(out, "\r\n");
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
