/* SPDX-License-Identifier: MIT */
/* The output of fdr suggest: text, JSON, rules for FDR_FILTER, options for gcc. */
#include <stdio.h>
#include <string.h>

#include "tools/suggest.h"

static const char *plural(size_t count) { return count == 1 ? "" : "s"; }

/* "Leaving out 3 functions removes 92.0 % of the events and 3.1 % of the time shown." */
static void sentence(const char *before, const struct suggest_sum *sum)
{
    printf("%sLeaving out %zu function%s removes %.1f %% of the events and %.1f %% of the time shown.\n", before,
           sum->functions, plural(sum->functions), 100 * sum->events, 100 * sum->time);
}

static void name_lines(const char *before, const struct suggestion *s, const struct suggest_function *of_item, FILE *to)
{
    for (size_t i = s->chosen; i < s->count; i++)
        if (suggest_matches(of_item, &s->function[i])) fprintf(to, "%s%s\n", before, plain_name(s->function[i].shown));
}

static size_t count_matches(const struct suggestion *s, const struct suggest_function *of_item)
{
    size_t count = 0;
    for (size_t i = s->chosen; i < s->count; i++) count += suggest_matches(of_item, &s->function[i]);
    return count;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void table(const struct suggestion *s)
{
    char calls[HUMAN_BYTES], mean[HUMAN_BYTES], most[HUMAN_BYTES];
    double events = 0, time = 0;
    if (s->chosen)
        printf("\n          calls    events  together     time  together        mean     longest  function\n");
    for (size_t i = 0; i < s->chosen; i++) {
        const struct suggest_function *f = &s->function[i];
        double e = suggest_share(f->calls * 2, s->events), t = suggest_share(f->exclusive_ns, s->time_ns);
        events += e;
        time += t;
        printf("%15s %7.2f %%  %6.2f %% %6.2f %%  %6.2f %%  %10s  %10s  %s\n", human_count(calls, f->calls), 100 * e,
               100 * events, 100 * t, 100 * time, human_time(mean, f->inclusive_ns / f->calls),
               human_time(most, f->max_ns), plain_name(f->shown));
    }
}

static void gcc_notes(const struct suggestion *s, const char *before, FILE *to)
{
    if (s->gcc.functions)
        fprintf(
            to,
            "%sC++ optimised by g++ on x86-64: only -finstrument-functions knows gcc's list; with the list, g++ hooks "
            "inlined functions again\n",
            before);
    for (size_t i = 0; i < s->chosen; i++) {
        const struct suggest_function *f = &s->function[i];
        size_t also = f->by_gcc ? count_matches(s, f) : 0;
        if (f->why)
            fprintf(to, "%snot in gcc's list: %s: %s%s%s\n", before, plain_name(f->shown), f->why, f->harm ? ": " : "",
                    f->harm ? plain_name(f->harm) : "");
        if (!also) continue;
        fprintf(to, "%sgcc's '%s' also leaves out %zu function%s:\n", before, plain_name(f->item), also, plural(also));
        char indented[64];
        snprintf(indented, sizeof indented, "%s  ", before);
        name_lines(indented, s, f, to);
    }
}

static void rules_notes(const struct suggestion *s, const char *before, FILE *to)
{
    size_t count = 0;
    for (size_t i = 0; i < s->chosen; i++) count += !s->function[i].by_rules;
    if (count)
        fprintf(to, "%srules cannot name %zu of these functions: the program's file is stripped, or not here\n", before,
                count);
}

static void other_notes(const struct suggestion *s, const struct fdr_file *file, const char *before, FILE *to)
{
    char text[HUMAN_BYTES];
    if (s->chosen) fprintf(to, "%sthe time of a function that is left out counts for its callers\n", before);
    if (s->untimed)
        fprintf(to, "%s%s calls without a time are not counted here; if rules left them out, keep these rules\n",
                before, human_count(text, s->untimed));
    if (s->rest_calls)
        fprintf(to, "%sof %s calls the function is not known: they are in the row [rest]\n", before,
                human_count(text, s->rest_calls));
    const struct fdr_file_info *info = fdr_file_info(file);
    if (info->totals_lost || info->threads_gone || info->lost_unattached)
        fprintf(to, "%stotals of some threads are missing: fdr info\n", before);
}

int suggest_text(const struct suggestion *s, const struct fdr_file *file)
{
    if (s->unknown) printf("It cannot be known which functions to leave out: %s.\n", s->unknown);
    else if (!s->chosen) printf("No function is worth leaving out: none is short, frequent and alike.\n");
    else sentence("", &s->all);
    table(s);
    if (s->chosen) {
        printf("\n# at run time: rules for FDR_FILTER (--rules) name %zu of %zu functions\n", s->rules.functions,
               s->chosen);
        printf(
            "# at compile time, cheaper: gcc's list (--flags, --cmake) has %zu of %zu, with %.1f %% of the events and "
            "%.1f %% of the time\n",
            s->gcc.functions, s->chosen, 100 * s->gcc.events, 100 * s->gcc.time);
    }
    rules_notes(s, "# ", stdout);
    gcc_notes(s, "# ", stdout);
    other_notes(s, file, "# ", stdout);
    return finish_output();
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *json_matches(const struct suggestion *s, const struct suggest_function *f)
{
    json_t *names = json_array();
    for (size_t i = s->chosen; f->by_gcc && i < s->count; i++)
        if (suggest_matches(f, &s->function[i])) json_array_append_new(names, json_text(s->function[i].name));
    return names;
}

static json_t *json_symbols(const struct suggest_function *f, const struct fdr_file *file)
{
    if (!f->by_rules) return json_null();
    json_t *symbols = json_array();
    for (size_t i = 0; i < f->regions; i++)
        json_array_append_new(symbols, json_text(fdr_definition(file, FDR_REGION_DEFINITION, f->region[i])->symbol));
    return symbols;
}

static json_t *json_function(const struct suggestion *s, const struct suggest_function *f, const struct fdr_file *file)
{
    json_t *o = json_object();
    json_object_set_new(o, "name", json_text(f->name));
    json_object_set_new(o, "calls", json_u64(f->calls));
    json_object_set_new(o, "share_of_events", json_f64(suggest_share(f->calls * 2, s->events)));
    json_object_set_new(o, "share_of_time", json_f64(suggest_share(f->exclusive_ns, s->time_ns)));
    json_object_set_new(o, "mean_ns", json_u64(f->inclusive_ns / f->calls));
    json_object_set_new(o, "max_ns", json_u64(f->max_ns));
    json_object_set_new(o, "symbols", json_symbols(f, file));
    json_object_set_new(o, "gcc", f->by_gcc ? json_text(f->item) : json_null());
    json_object_set_new(o, "gcc_also", json_matches(s, f));
    json_object_set_new(o, "gcc_why_not", f->why ? json_text(f->why) : json_null());
    return o;
}

static json_t *json_sum(const struct suggest_sum *sum)
{
    json_t *o = json_object();
    json_object_set_new(o, "functions", json_u64(sum->functions));
    json_object_set_new(o, "removes_events", json_f64(sum->events));
    json_object_set_new(o, "loses_time", json_f64(sum->time));
    return o;
}

int suggest_json(const struct suggestion *s, const struct fdr_file *file)
{
    json_t *o = json_object(), *functions = json_array();
    for (size_t i = 0; i < s->chosen; i++) json_array_append_new(functions, json_function(s, &s->function[i], file));
    json_object_set_new(o, "functions", functions);
    json_object_set_new(o, "removes_events", s->unknown ? json_null() : json_f64(s->all.events));
    json_object_set_new(o, "loses_time", s->unknown ? json_null() : json_f64(s->all.time));
    json_object_set_new(o, "rules", s->unknown ? json_null() : json_sum(&s->rules));
    json_object_set_new(o, "flags", s->unknown ? json_null() : json_sum(&s->gcc));
    json_object_set_new(o, "unknown", s->unknown ? json_text(s->unknown) : json_null());
    return print_json(o);
}

/* ---- rules ------------------------------------------------------------------------------------------------------- */

int suggest_rules(const struct suggestion *s, const struct fdr_file *file)
{
    printf("# Rules for FDR_FILTER, by fdr suggest.\n");
    sentence("# ", &s->rules);
    rules_notes(s, "# ", stdout);
    other_notes(s, file, "# ", stdout);
    for (size_t i = 0; i < s->chosen; i++) {
        const struct suggest_function *f = &s->function[i];
        char calls[HUMAN_BYTES];
        if (!f->by_rules) continue;
        printf("\n# %s calls, %.2f %% of the events, %.2f %% of the time: %s\n", human_count(calls, f->calls),
               100 * suggest_share(f->calls * 2, s->events), 100 * suggest_share(f->exclusive_ns, s->time_ns),
               plain_name(f->shown));
        for (size_t k = 0; k < f->regions; k++) {
            const char *symbol = fdr_definition(file, FDR_REGION_DEFINITION, f->region[k])->symbol;
            bool again = false;
            for (size_t j = 0; j < k; j++)
                again |= !strcmp(symbol, fdr_definition(file, FDR_REGION_DEFINITION, f->region[j])->symbol);
            if (!again) printf("exclude exact %s\n", symbol);
        }
    }
    return finish_output();
}

/* ---- gcc --------------------------------------------------------------------------------------------------------- */

static void print_list(const struct suggestion *s)
{
    const char *before = "-finstrument-functions-exclude-function-list=";
    for (size_t i = 0; i < s->chosen; i++) {
        const char *item = s->function[i].item;
        bool again = false;
        for (size_t k = 0; s->function[i].by_gcc && k < i; k++)
            again |= s->function[k].by_gcc && !strcmp(s->function[k].item, item);
        if (!s->function[i].by_gcc || again) continue;
        printf("%s%s", before, item);
        before = ",";
    }
}

/* Several options are as good as one: gcc adds their lists. In quotes for a shell, and for gcc's @file. */
int suggest_flags(const struct suggestion *s)
{
    if (s->gcc.functions) {
        putchar('\'');
        print_list(s);
        fputs("'\n", stdout);
    }
    gcc_notes(s, "fdr: ", stderr);
    return finish_output();
}

int suggest_cmake(const struct suggestion *s)
{
    printf("# To include in a CMakeLists.txt before its targets, by fdr suggest.\n");
    sentence("# ", &s->gcc);
    gcc_notes(s, "# ", stdout);
    if (s->gcc.functions) {
        printf("if(CMAKE_C_COMPILER_ID STREQUAL \"GNU\" OR CMAKE_CXX_COMPILER_ID STREQUAL \"GNU\" OR "
               "CMAKE_Fortran_COMPILER_ID STREQUAL \"GNU\")\n    add_compile_options([==[");
        print_list(s);
        printf("]==])\nendif()\n");
    }
    return finish_output();
}
