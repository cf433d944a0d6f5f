/* SPDX-License-Identifier: MIT */
/* Hosts, processes and threads, with the accounts of fdr as their properties. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "convert/otf2/otf2.h"
#include "convert/titles.h"

enum { MACHINE };

static uint32_t host_node(struct fdri_otf2 *o, const char *host)
{
    bool is_new;
    uint32_t number = fdri_convert_intern(&o->hosts, host, strlen(host), &is_new) + 1;
    if (!is_new) return number;
    fdri_otf2_check(o, OTF2_GlobalDefWriter_WriteSystemTreeNode(o->def, number, fdri_otf2_string(o, host),
                                                                fdri_otf2_string(o, "node"), MACHINE));
    fdri_otf2_check(
        o, OTF2_GlobalDefWriter_WriteSystemTreeNodeDomain(o->def, number, OTF2_SYSTEM_TREE_DOMAIN_SHARED_MEMORY));
    return number;
}

void fdri_otf2_hosts(struct fdri_otf2 *o)
{
    fdri_otf2_check(o, OTF2_GlobalDefWriter_WriteSystemTreeNode(o->def, MACHINE, fdri_otf2_string(o, "machine"),
                                                                fdri_otf2_string(o, "machine"),
                                                                OTF2_UNDEFINED_SYSTEM_TREE_NODE));
    for (size_t i = 0; i < o->processes; i++)
        o->process[i].node = host_node(o, fdr_file_info(o->process[i].file)->host);
}

/* ---- properties ---- */

static void of_group(struct fdri_otf2 *o, uint32_t group, const char *name, const char *text)
{
    const OTF2_AttributeValue value = {.stringRef = fdri_otf2_string(o, text)};
    fdri_otf2_check(o, OTF2_GlobalDefWriter_WriteLocationGroupProperty(o->def, group, fdri_otf2_string(o, name),
                                                                       OTF2_TYPE_STRING, value));
}

static void of_location(struct fdri_otf2 *o, OTF2_LocationRef location, const char *name, const char *text)
{
    const OTF2_AttributeValue value = {.stringRef = fdri_otf2_string(o, text)};
    fdri_otf2_check(o, OTF2_GlobalDefWriter_WriteLocationProperty(o->def, location, fdri_otf2_string(o, name),
                                                                  OTF2_TYPE_STRING, value));
}

static void describe_process(struct fdri_otf2 *o, uint32_t group)
{
    const struct fdr_file_info *info = fdr_file_info(o->process[group].file);
    char text[200];
    of_group(o, group, "FDR::EXECUTABLE", info->exe);
    of_group(o, group, "FDR::STATE", info->state);
    if (info->reason[0]) of_group(o, group, "FDR::REASON", info->reason);
    snprintf(text, sizeof text, "%u", info->pid);
    of_group(o, group, "FDR::PID", text);
    if (info->has_cause) {
        snprintf(text, sizeof text, "signal %d, thread %u, at %llu ns", info->cause_signal, info->cause_tid,
                 (unsigned long long)info->cause_time_ns);
        of_group(o, group, "FDR::CAUSE", text);
    }
    snprintf(text, sizeof text, "locations=%llu events=%llu definitions=%llu", (unsigned long long)info->lost_locations,
             (unsigned long long)info->lost_unattached, (unsigned long long)info->lost_definitions);
    of_group(o, group, "FDR::LOST", text);
}

static void describe_ledger(struct fdri_otf2 *o, const struct fdri_otf2_process *p)
{
    const struct fdr_ledger_row *row;
    for (size_t i = 0, n = fdr_ledger(p->file, &row); i < n && !o->error; i++) {
        char name[80], text[200];
        snprintf(name, sizeof name, "FDR::LEDGER::%s::%u", fdr_class_name(row[i].class_), row[i].depth);
        snprintf(text, sizeof text, "presented=%llu kept=%llu filtered=%llu reduced=%llu lost=%llu",
                 (unsigned long long)row[i].presented, (unsigned long long)row[i].kept,
                 (unsigned long long)row[i].filtered, (unsigned long long)row[i].reduced,
                 (unsigned long long)row[i].lost);
        of_location(o, p->first + row[i].location, name, text);
    }
}

/* ---- processes and threads ---- */

static void name_location(const struct fdri_otf2_process *p, const struct fdr_location_info *l, char *text,
                          size_t bytes)
{
    if (l->samples)
        snprintf(text, bytes, "samples of %s", fdri_convert_sampled(p->file, fdri_convert_stream(p->file, l->id)));
    else if (l->parent != UINT32_MAX) snprintf(text, bytes, "signal handlers of location %u", l->parent);
    else if (l->ended_threads) snprintf(text, bytes, "%s", l->name);
    else fdri_convert_thread(l, text, bytes);
}

static void write_process(struct fdri_otf2 *o, uint32_t group, const uint64_t *written)
{
    const struct fdri_otf2_process *p = &o->process[group];
    char text[700];
    fdri_convert_process(p->file, text, sizeof text);
    fdri_otf2_check(o, OTF2_GlobalDefWriter_WriteLocationGroup(o->def, group, fdri_otf2_string(o, text),
                                                               OTF2_LOCATION_GROUP_TYPE_PROCESS, p->node,
                                                               OTF2_UNDEFINED_LOCATION_GROUP));
    for (size_t i = 0; i < fdr_location_count(p->file) && !o->error; i++) {
        const struct fdr_location_info *l = fdr_location_info(p->file, i);
        name_location(p, l, text, sizeof text);
        fdri_otf2_check(o, OTF2_GlobalDefWriter_WriteLocation(o->def, p->first + l->id, fdri_otf2_string(o, text),
                                                              OTF2_LOCATION_TYPE_CPU_THREAD, written[i], group));
    }
    if (!fdr_location_count(p->file))
        fdri_otf2_check(o, OTF2_GlobalDefWriter_WriteLocation(o->def, p->first, fdri_otf2_string(o, "no thread"),
                                                              OTF2_LOCATION_TYPE_CPU_THREAD, 0, group));
    describe_process(o, group);
    describe_ledger(o, p);
}

/* A rank without a recording. */
static void write_absent(struct fdri_otf2 *o, uint32_t group, OTF2_LocationRef location, uint32_t rank)
{
    char text[60] = "a process outside of the world";
    if (rank != UINT32_MAX) snprintf(text, sizeof text, "rank %u (no recording)", rank);
    uint32_t name = fdri_otf2_string(o, text);
    fdri_otf2_check(o, OTF2_GlobalDefWriter_WriteLocationGroup(o->def, group, name, OTF2_LOCATION_GROUP_TYPE_PROCESS,
                                                               MACHINE, OTF2_UNDEFINED_LOCATION_GROUP));
    fdri_otf2_check(
        o, OTF2_GlobalDefWriter_WriteLocation(o->def, location, name, OTF2_LOCATION_TYPE_CPU_THREAD, 0, group));
}

void fdri_otf2_processes(struct fdri_otf2 *o)
{
    size_t ranks, done = 0;
    const uint32_t *rank = fdri_convert_partners_ranks(o->partners, &ranks);
    for (size_t i = 0; i < o->processes && !o->error; i++) {
        write_process(o, (uint32_t)i, o->written + done);
        done += fdr_location_count(o->process[i].file);
    }
    uint32_t group = (uint32_t)o->processes; /* readers want them in order, without a gap */
    for (size_t i = 0; i < ranks && !o->error; i++)
        if (!fdri_otf2_process_of(o, rank[i])) write_absent(o, group++, o->end + i, rank[i]);
}

/* ---- markers ---- */

enum { GIVEN_BACK, CRASH };

static void mark(struct fdri_otf2 *o, OTF2_MarkerWriter *writer, const struct fdri_otf2_process *p,
                 const struct fdr_reduction_info *r)
{
    char text[200];
    snprintf(text, sizeof text, "%s: %s: %llu events given back", r->step, r->what, (unsigned long long)r->events);
    fdri_otf2_check(o, OTF2_MarkerWriter_WriteMarker(writer, r->from_ns + p->shift_ns,
                                                     r->to_ns > r->from_ns ? r->to_ns - r->from_ns : 0, GIVEN_BACK,
                                                     OTF2_MARKER_SCOPE_LOCATION, p->first + r->location, text));
}

static void mark_crash(struct fdri_otf2 *o, OTF2_MarkerWriter *writer, uint32_t group)
{
    const struct fdri_otf2_process *p = &o->process[group];
    const struct fdr_file_info *info = fdr_file_info(p->file);
    char text[80];
    if (!info->has_cause) return;
    snprintf(text, sizeof text, "signal %d in thread %u", info->cause_signal, info->cause_tid);
    fdri_otf2_check(o, OTF2_MarkerWriter_WriteMarker(writer, info->cause_time_ns + p->shift_ns, 0, CRASH,
                                                     OTF2_MARKER_SCOPE_LOCATION_GROUP, group, text));
}

void fdri_otf2_reductions(struct fdri_otf2 *o)
{
    OTF2_MarkerWriter *writer = OTF2_Archive_GetMarkerWriter(o->archive);
    if (!writer) {
        if (!o->error) o->error = -EIO;
        return;
    }
    fdri_otf2_check(o, OTF2_MarkerWriter_WriteDefMarker(writer, GIVEN_BACK, "fdr", "given back", OTF2_SEVERITY_LOW));
    fdri_otf2_check(o, OTF2_MarkerWriter_WriteDefMarker(writer, CRASH, "fdr", "crash", OTF2_SEVERITY_HIGH));
    for (size_t i = 0; i < o->processes && !o->error; i++) {
        const struct fdr_reduction_info *row;
        size_t count = fdr_reductions(o->process[i].file, &row);
        for (size_t k = 0; k < count && !o->error; k++) mark(o, writer, &o->process[i], &row[k]);
        mark_crash(o, writer, (uint32_t)i);
    }
    if (!o->error) fdri_otf2_check(o, OTF2_Archive_CloseMarkerWriter(o->archive, writer));
}
