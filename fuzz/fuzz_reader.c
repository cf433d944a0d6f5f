/* SPDX-License-Identifier: MIT */
/* P8: any bytes. This target calls every function of the public reader that takes a file, reads its results to the end,
 * and checks the contract of reader.h. Excluded are fdr_process_open and fdr_process_snapshot, whose input is a
 * process. Bytes that begin like an ELF file are searched for the arena of a core. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/arena/arena.h"
#include "format/arena/checks.h"
#include "format/arena/crash_section.h"

/* ---- the inputs ---- */

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

/* Corrects the check of a crash section for half of the inputs. Next to no input would pass it otherwise; the other
 * half keeps wrong checks in the test. */
static void check_crash(uint8_t *data, size_t size)
{
    struct fdri_arena_superblock s;
    struct fdri_arena_crash head;
    if (size < sizeof s) return;
    memcpy(&s, data, sizeof s);
    const uint64_t place[] = {s.arena_bytes, s.section_off};
    for (size_t i = 0; i < sizeof place / sizeof *place; i++) {
        if (place[i] > size || size - place[i] < sizeof head) continue;
        uint8_t *at = data + place[i];
        memcpy(&head, at, sizeof head);
        if (head.magic != FDRI_ARENA_CRASH_MAGIC || head.bytes > size - place[i]) continue;
        head.check = 0x243F6A8885A308D3u;
        for (uint64_t k = sizeof head, v; k + 8 <= head.bytes; k += 8) {
            memcpy(&v, at + k, 8);
            head.check = (head.check ^ v) * 0x9E3779B97F4A7C15u;
        }
        memcpy(at, &head, sizeof head);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    size = LLVMFuzzerMutate(data, size, max_size);
    if (seed % 2) check_crash(data, size);
    return size;
}

/* ---- results are readable memory ---- */

static volatile uint64_t sink;

static void claim(bool holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "fuzz_reader: does not hold: %s\n", what);
    abort();
}

static void look(const void *bytes, size_t count)
{
    const uint8_t *b = bytes;
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) sum += b[i];
    sink += sum;
}

static void text(const char *s)
{
    claim(s != NULL, "a text is never NULL");
    look(s, strlen(s) + 1);
}

/* Rows of fixed size. */
#define LOOK(rows, count) ((count) ? look((rows), (count) * sizeof *(rows)) : (void)0)

static void info(struct fdr_file *f)
{
    const struct fdr_file_info *i = fdr_file_info(f);
    const char *const words[] = {i->state,    i->reason, i->host,     i->exe,
                                 i->build_id, i->config, i->strategy, i->reason_kind};
    LOOK(i, 1);
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) text(words[k]);
    if (i->has_trigger) text(i->trigger_name);
    claim(i->clock_step_count <= 8, "steps of the clock");
    for (size_t k = 0; k < fdr_file_damage_count(f); k++) text(fdr_file_damage(f, k));
}

static void place(const struct fdr_place *p)
{
    claim(p != NULL, "a place is never NULL");
    text(p->function);
    text(p->file);
    text(p->module);
    for (uint32_t i = 0; i < p->inlined_count; i++) text(p->inlined[i].function), text(p->inlined[i].file);
}

static void typed_definition(struct fdr_file *f, uint32_t kind, uint32_t id)
{
    if (kind == FDR_METRIC_DEFINITION) {
        claim(fdr_metric_info(f, id)->id == id, "a metric by id");
        text(fdr_metric_info(f, id)->name);
        text(fdr_metric_info(f, id)->unit);
    } else if (kind == FDR_EVENT_DEFINITION) {
        const struct fdr_event_info *e = fdr_event_info(f, id);
        claim(e->id == id && e->field_count <= 16, "an event by id");
        text(e->name);
        for (uint32_t i = 0; i < e->field_count; i++) {
            text(e->field[i].name);
            text(e->field[i].unit);
            if (e->field[i].metric) text(fdr_metric_info(f, e->field[i].metric)->unit);
        }
    } else if (kind == FDR_COMM_DEFINITION) {
        const struct fdr_comm_info *c = fdr_comm_info(f, id);
        claim(c->id == id, "a communicator by id");
        text(c->name);
        LOOK(c->world_rank, c->size);
    }
}

static void definition(struct fdr_file *f, uint32_t kind, uint32_t id)
{
    const struct fdr_definition *d = fdr_definition(f, (enum fdr_definition_kind)kind, id);
    claim(d != NULL && d->id == id, "a definition by id");
    LOOK(d, 1);
    text(d->name);
    text(d->file);
    typed_definition(f, kind, id);
    if (!d->address) return;
    place(fdr_place(f, d->address, false));
    place(fdr_place_at(f, d->address, true, fdr_file_info(f)->last_ns));
}

static void definitions(struct fdr_file *f)
{
    for (uint32_t kind = 0; kind < 9; kind++) {
        size_t count = fdr_definition_count(f, (enum fdr_definition_kind)kind);
        for (uint32_t id = 0; id < 64 || id <= count; id++) {
            definition(f, kind, id);
            if (id > 4096) break;
        }
        definition(f, kind, UINT32_MAX);
    }
    fdr_file_symbolise(f); /* does nothing here: FDR_SYMBOLS=0 */
    for (uint32_t c = 0; c < 12; c++) text(fdr_class_name(c));
    text(fdr_reader_version());
}

static void locations(struct fdr_file *f)
{
    for (size_t i = 0; i < fdr_location_count(f); i++) {
        const struct fdr_location_info *l = fdr_location_info(f, i);
        LOOK(l, 1);
        text(l->name);
        LOOK(l->open, l->open_count);
        claim(!i || fdr_location_info(f, i - 1)->id < l->id, "locations by id");
    }
}

/* ---- events ---- */

struct open {
    uint32_t *id; /* by open shown calls */
    uint32_t *depth;
    uint64_t *duration;
    size_t count, room;
    uint64_t newest;
};
static struct open *stacks;

static void *more(void *old, size_t bytes)
{
    void *p = realloc(old, bytes);
    if (!p) abort();
    return p;
}

static void forget(struct fdr_file *f)
{
    for (size_t i = 0; stacks && i < fdr_location_count(f); i++)
        free(stacks[i].id), free(stacks[i].depth), free(stacks[i].duration);
    free(stacks);
    stacks = NULL;
}

static struct open *stack_of(struct fdr_file *f, uint32_t location)
{
    size_t low = 0, high = fdr_location_count(f);
    while (low < high) {
        size_t i = low + (high - low) / 2;
        if (fdr_location_info(f, i)->id < location) low = i + 1;
        else high = i;
    }
    claim(low < fdr_location_count(f) && fdr_location_info(f, low)->id == location, "an event's location is known");
    return &stacks[low];
}

static void enters(struct open *o, const struct fdr_read_event *e, bool all)
{
    claim(!o->count || o->depth[o->count - 1] < e->depth, "a call is deeper than the one around it");
    claim(!all || e->depth == o->count + 1, "no call is missing between a call and the one around it");
    if (o->count == o->room) {
        o->room = o->room ? 2 * o->room : 16;
        o->id = more(o->id, o->room * sizeof *o->id);
        o->depth = more(o->depth, o->room * sizeof *o->depth);
        o->duration = more(o->duration, o->room * sizeof *o->duration);
    }
    o->id[o->count] = e->id;
    o->depth[o->count] = e->depth;
    o->duration[o->count++] = e->duration_ns;
}

static void leaves(struct open *o, const struct fdr_read_event *e)
{
    claim(o->count > 0, "no leave without an enter");
    o->count--;
    claim(o->id[o->count] == e->id && o->depth[o->count] == e->depth, "a leave is of the innermost call");
    claim(o->duration[o->count] == e->duration_ns, "an enter's duration is its leave's");
}

static void sample(struct fdr_file *f, const struct fdr_read_event *e)
{
    const struct fdr_sample_path *p = e->sample;
    if (!p) return;
    LOOK(p, 1);
    LOOK(p->region, p->region_count);
    LOOK(p->frame, p->frame_count);
    place(fdr_place_at(f, p->pc, false, e->time_ns));
    for (uint32_t i = 0; i < p->frame_count && i < 8; i++) place(fdr_place_at(f, p->frame[i], true, e->time_ns));
}

/* True if the file was verified without a finding. In damaged files the call around an event may be lost. Then the
 * event may be shown behind another call's enter of the same tick. */
static bool whole;

static void point(struct fdr_file *f, const struct open *o, const struct fdr_read_event *e)
{
    claim(e->field_count <= 16, "fields");
    LOOK(e->field, e->field_count);
    if (e->kind == FDR_SAMPLE) sample(f, e);
    else if (e->kind != FDR_EVENT && whole) /* readings lie in no call */
        claim(!o->count || o->depth[o->count - 1] <= e->depth, "an event is in the calls that are open around it");
}

static void walk(struct fdr_file *f, const struct fdr_select *select)
{
    static const struct fdr_select everything;
    const struct fdr_select *s = select ? select : &everything;
    bool all = s->depth_min < 2 && !s->from_ns && !s->to_ns && !s->min_duration_ns && !s->regions;
    struct fdr_iter *it = fdr_iter_open(f, select);
    struct fdr_read_event e;
    uint64_t newest = 0, count = 0;
    if (!it) return;
    stacks = calloc(fdr_location_count(f) + 1, sizeof *stacks);
    if (!stacks) abort();
    while (fdr_iter_next(it, &e)) {
        struct open *o = stack_of(f, e.location);
        look(&e, offsetof(struct fdr_read_event, field));
        claim(e.time_ns >= o->newest, "time of a location does not go back");
        claim(e.time_ns >= newest || s->one_location_after_another, "time does not go back");
        newest = o->newest = e.time_ns;
        claim(fdr_kind_info(e.kind) != NULL, "a kind of event");
        if (e.kind == FDR_ENTER) enters(o, &e, all);
        else if (e.kind == FDR_LEAVE) leaves(o, &e);
        else point(f, o, &e);
        claim(!s->depth_max || e.kind > FDR_LEAVE || e.depth <= s->depth_max, "depth asked for");
        claim(!s->classes || s->classes >> e.class_ & 1, "class asked for");
        claim(++count < 20000000u, "an event needs at least a bit");
    }
    for (size_t i = 0; i < fdr_location_count(f); i++) claim(!stacks[i].count, "every call that entered leaves");
    forget(f);
    fdr_iter_close(it);
}

/* ---- calls ---- */

struct calls {
    uint64_t open, stop;
};

static void calls_of(void *context, uint32_t location)
{
    struct calls *c = context;
    (void)location;
    claim(!c->open, "the calls of the location before are complete");
}

static bool call_enters(void *context, const struct fdr_read_event *e)
{
    struct calls *c = context;
    claim(e->kind == FDR_ENTER, "only calls are visited");
    c->open++;
    return --c->stop > 0;
}

static void call_leaves(void *context, const struct fdr_call *call)
{
    struct calls *c = context;
    claim(c->open-- > 0, "no call ends that did not begin");
    claim(call->exclusive_ns <= call->duration_ns, "a call's own time is part of its time");
}

static void calls_looked_at(void *context, uint64_t events)
{
    (void)context;
    sink += events;
}

static void visit(struct fdr_file *f, const struct fdr_select *select, uint64_t stop)
{
    struct calls c = {.stop = stop};
    const struct fdr_call_visitor v = {&c, calls_of, call_enters, call_leaves, calls_looked_at};
    int status = fdr_visit_calls(f, select, &v);
    claim(status == 0 || status == -ENOMEM || (status == -ECANCELED && !c.stop), "what visiting returns");
    if (!status) claim(!c.open, "every call that is visited ends");
}

/* ---- accounts ---- */

/* As in fdr check: the ledger adds up for a whole file that was not written to while it was copied. */
static void ledger(struct fdr_file *f, bool adds_up)
{
    const struct fdr_ledger_row *r;
    size_t n = fdr_ledger(f, &r);
    uint64_t sum = 0, before = 0, after = 0;
    for (size_t i = 0; i < n; i++) {
        LOOK(&r[i], 1);
        if (i)
            claim(r[i - 1].location < r[i].location ||
                      (r[i - 1].location == r[i].location &&
                       (r[i - 1].class_ < r[i].class_ ||
                        (r[i - 1].class_ == r[i].class_ && r[i - 1].depth < r[i].depth))),
                  "ledger by location, class, depth");
        fdr_ledger_bounds(f, r[i].location, &before, &after);
        uint64_t right = r[i].kept + r[i].filtered + r[i].reduced + r[i].lost;
        sum += right;
        if (adds_up && before == after) claim(r[i].presented == right, "presented = kept + filtered + reduced + lost");
        if (i + 1 < n && r[i + 1].location == r[i].location) continue;
        bool dropped = fdr_file_info(f)->dropped_bins > 0;
        if (adds_up && before != after) claim(sum <= after && (sum >= before || dropped), "accounts in their bounds");
        sum = 0;
    }
    fdr_ledger_bounds(f, UINT32_MAX, &before, &after);
}

static void epochs(struct fdr_file *f)
{
    const struct fdr_epoch_info *e;
    const struct fdr_epoch_total *t;
    size_t n = fdr_epochs(f, &e), totals = fdr_epoch_totals(f, &t), k = 0;
    for (size_t i = 0; i < n; i++) {
        LOOK(&e[i], 1);
        claim(e[i].from_ns <= e[i].to_ns, "an epoch ends after it begins");
        if (i && e[i - 1].location == e[i].location)
            claim(e[i - 1].index + 1 == e[i].index && e[i - 1].to_ns == e[i].from_ns, "epochs without a gap");
        else claim(e[i].index == 0 && (!i || e[i - 1].location < e[i].location), "epochs by location");
        for (int b = 0; b < 4; b++) claim(e[i].complete_depth[b] <= e[i].deepest, "complete down to what there is");
        uint64_t calls = 0;
        for (; k < totals && t[k].location == e[i].location && t[k].epoch == e[i].index; k++) calls += t[k].calls;
        claim(calls == e[i].calls, "rows and rest of an epoch are its sums");
    }
    claim(k == totals, "every total of an epoch has its epoch");
    LOOK(t, totals);
}

static void sample_streams(struct fdr_file *f)
{
    const struct fdr_sample_stream *s;
    size_t n = fdr_sample_streams(f, &s);
    LOOK(s, n);
    for (size_t i = 0; i < n; i++) {
        text(s[i].name);
        claim(s[i].kept <= s[i].presented || !s[i].period, "no more samples are kept than were taken");
    }
}

static void accounts(struct fdr_file *f, bool adds_up)
{
    const struct fdr_total *totals;
    const struct fdr_reduction_info *r;
    size_t n = fdr_totals(f, &totals);
    LOOK(totals, n);
    n = fdr_reductions(f, &r);
    LOOK(r, n);
    for (size_t i = 0; i < n; i++) {
        text(r[i].step);
        claim(memchr(r[i].what, 0, sizeof r[i].what) != NULL, "a reduction's text ends");
    }
    ledger(f, adds_up);
    epochs(f);
    sample_streams(f);
}

/* ---- crash sections and notes ---- */

static void crash(struct fdr_file *f)
{
    const struct fdr_crash_cause_info *cause;
    const struct fdr_crash_thread_info *thread;
    const struct fdr_crash_frame *frame;
    const struct fdr_note_info *note;
    const char *name;
    size_t bytes, n = fdr_notes(f, &note);
    for (size_t i = 0; i < n; i++) text(note[i].key), text(note[i].value);
    n = fdr_crash_causes(f, &cause);
    LOOK(cause, n);
    n = fdr_crash_threads(f, &thread);
    LOOK(thread, n);
    for (size_t i = 0; i < n; i++) {
        text(thread[i].name);
        LOOK(thread[i].registers, thread[i].register_count);
        for (size_t k = 0; k < thread[i].register_count; k++)
            if ((name = fdr_crash_register_name(thread[i].machine, k))) text(name);
        for (size_t k = 0, frames = fdr_crash_frames(f, i, &frame); k < frames; k++) {
            LOOK(&frame[k], 1);
            text(frame[k].function);
            text(frame[k].file);
            text(frame[k].module);
        }
    }
    for (size_t i = 0; (name = fdr_crash_text_name(f, i)); i++) {
        const char *found = fdr_crash_text(f, name, &bytes);
        claim(found != NULL, "a text that is named is there");
        look(found, bytes + 1);
    }
    fdr_crash_text(f, "no such text", NULL);
}

/* ---- files that the reader writes ---- */

static char folder[64], path[96], other[96];

static void remove_folder(void)
{
    unlink(path);
    unlink(other);
    rmdir(folder);
}

static void make_folder(void)
{
    if (folder[0]) return;
    snprintf(folder, sizeof folder, "%s/fdr-fuzz-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    if (!mkdtemp(folder)) abort();
    snprintf(path, sizeof path, "%s/a.fdr", folder);
    snprintf(other, sizeof other, "%s/b.fdr", folder);
    atexit(remove_folder);
}

/* A recovered file is whole and its ledger adds up. It states how the process ended, if that was added. */
static void recover(struct fdr_file *f)
{
    struct fdr_file *g = NULL;
    char message[256];
    make_folder();
    int error = fdr_file_recover(f, path, message, sizeof message);
    text(message);
    claim(error == 0 || error == -ENOSPC, "what opens can be recovered");
    if (error) return;
    claim(fdr_file_add_end(path, 9, 1, 12345) == 0, "an end can be added");
    enum fdr_verdict opened = fdr_file_open(path, &g, message, sizeof message);
    unlink(path);
    if (opened != FDR_WHOLE) fprintf(stderr, "recovered: %s\n", message);
    claim(opened == FDR_WHOLE, "what was recovered opens as whole");
    claim(fdr_file_info(g)->has_end && fdr_file_info(g)->end_status == 9, "the end that was added is there");
    claim(fdr_file_info(g)->end_oom_kills == 1 && fdr_file_info(g)->end_realtime_ns == 12345, "all of the end");
    whole = false; /* the recovered file lacks the damaged bins */
    walk(g, NULL);
    if (fdr_file_verify(g) != FDR_WHOLE) fprintf(stderr, "recovered: %s\n", fdr_file_damage(g, 0));
    claim(fdr_file_damage_count(g) == 0, "no damage in what was recovered");
    accounts(g, true);
    crash(g);
    info(g);
    fdr_file_close(g);
}

static int remove_one(const char *name, const struct stat *s, int type, struct FTW *at)
{
    (void)s, (void)type, (void)at;
    return remove(name);
}

static void export(struct fdr_file *f, const struct fdr_select *select)
{
    struct fdr_file *twice[2] = {f, f};
    const struct fdr_select selects[2] = {select ? *select : (struct fdr_select){0}, {0}};
    const struct fdr_exporter *format;
    make_folder();
    for (size_t i = 0; (format = fdr_exporter(i)); i++) {
        const char *out = format->directory ? other : "/dev/null";
        int status = format->run(twice, 1 + !!select, select ? selects : NULL, NULL, out);
        claim(status == 0 || status == -ENOTSUP, format->name);
        if (format->directory) nftw(other, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    }
}

static void core(const uint8_t *data, size_t size)
{
    char message[256];
    struct fdr_file *g;
    make_folder();
    int fd = open(other, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool written = fd >= 0 && write(fd, data, size) == (ssize_t)size;
    if (fd >= 0) close(fd);
    if (written && fdr_core_extract(other, path, message, sizeof message) == 0 &&
        fdr_file_open(path, &g, message, sizeof message) != FDR_UNREADABLE) {
        walk(g, NULL);
        fdr_file_close(g);
    }
    unlink(path);
    unlink(other);
}

/* ---- one input ---- */

/* Hashes the whole input, so that equal inputs take the same path. */
static uint64_t hash_of(const uint8_t *data, size_t size)
{
    uint64_t h = size, v;
    for (size_t i = 0; i + 8 <= size; i += 8) {
        memcpy(&v, data + i, 8);
        h = (h ^ v) * 0x9E3779B97F4A7C15u;
        h ^= h >> 29;
    }
    return h;
}

/* Slow checks run for some inputs only, chosen by hash. FUZZ_READER_ALL=1: for all of them, as for the seeds. */
static bool every;

static void select_some(struct fdr_file *f, uint64_t h)
{
    const struct fdr_file_info *i = fdr_file_info(f);
    uint8_t regions[64];
    uint32_t locations[] = {fdr_location_count(f) ? fdr_location_info(f, h % fdr_location_count(f))->id : 3, 7};
    for (size_t k = 0; k < sizeof regions; k++) regions[k] = h >> k & 1;
    struct fdr_select s = {
        .depth_min = 2, .depth_max = 5, .from_ns = 1000, .min_duration_ns = 3, .one_location_after_another = true};
    walk(f, &s);
    s = (struct fdr_select){.depth_min = h >> 8 & 3, .depth_max = h >> 10 & 15};
    if (h >> 14 & 1) s.locations = locations, s.location_count = 2;
    if (h >> 15 & 1) s.regions = regions, s.region_count = sizeof regions;
    if (h >> 16 & 1) s.classes = h >> 20 & 511;
    if (h >> 17 & 1) s.min_duration_ns = h >> 30 & 4095;
    if (h >> 18 & 1) s.from_ns = i->first_ns / 2 + i->last_ns / 2;
    if (h >> 19 & 1) s.to_ns = i->last_ns - (i->last_ns - i->first_ns) / 4;
    walk(f, &s);
    visit(f, &s, h >> 32 & 1 ? UINT64_MAX : 1 + (h >> 33 & 255));
    if (every || h % 16 == 5) export(f, &s);
}

/* The file joined with itself. */
static void joined(struct fdr_file *f, uint64_t h)
{
    struct fdr_file *twice[] = {f, f};
    struct fdr_origin origin;
    const int ranks[] = {0, 1};
    struct fdr_file *job = fdr_files_join(twice, ranks, 2);
    size_t count = fdr_location_count(f);
    if (!job) return;
    claim(fdr_location_count(job) == 2 * count, "a joined file has all locations");
    for (size_t i = 0; i < 2 * count; i++) {
        claim(fdr_location_origin(job, (uint32_t)i, &origin) && origin.file == i / count, "each has its origin");
        claim(origin.id == fdr_location_info(f, i % count)->id, "and its id there");
    }
    walk(job, NULL);
    accounts(job, false);
    select_some(job, h);
    definitions(job);
    locations(job);
    info(job);
    claim(fdr_file_verify(job) == fdr_file_verify(f), "a joined file is as whole as its files");
    fdr_file_close(job);
}

/* A recovered or converted file of a larger arena would take longer than all the rest. */
static bool small(struct fdr_file *f) { return fdr_file_info(f)->buffer_bytes <= 1u << 20; }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fdr_file *f;
    char message[256];
    setenv("FDR_SYMBOLS", "0", 1);
    every = getenv("FUZZ_READER_ALL") != NULL;
    uint64_t h = hash_of(data, size);
    if (size > 4 && !memcmp(data, "\177ELF", 4)) core(data, size);
    enum fdr_verdict opened = fdr_file_open_memory(data, size, &f, message, sizeof message);
    text(message);
    claim((opened == FDR_UNREADABLE) == !f && (opened != FDR_UNREADABLE || message[0]), "what cannot be read is said");
    if (opened == FDR_UNREADABLE) return 0;
    whole = false;
    walk(f, NULL); /* before and after the bins are verified */
    enum fdr_verdict met = fdr_file_met(f), verdict = fdr_file_verify(f);
    whole = opened == FDR_WHOLE && verdict == FDR_WHOLE;
    claim(met == FDR_WHOLE || verdict != FDR_WHOLE, "what was damaged stays damaged");
    claim(verdict == FDR_WHOLE || fdr_file_damage_count(f), "damage is said");
    info(f);
    accounts(f, false);
    walk(f, NULL);
    visit(f, NULL, UINT64_MAX);
    select_some(f, h);
    definitions(f);
    locations(f);
    crash(f);
    if (every || h % 16 == 3) export(f, NULL);
    if (every || h % 8 == 2) joined(f, h);
    if ((every || h % 4 == 1) && small(f)) recover(f);
    fdr_file_close(f);
    return 0;
}
