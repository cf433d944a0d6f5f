/* SPDX-License-Identifier: MIT */
/* The kinds of events, and their fields: the table of classes as readers see it. */
#include "format/classes/class_table.h"
#include "reader/events/events.h"

#include <assert.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

static_assert((int)FDRI_CLASSES_SEND == (int)FDR_SEND && (int)FDRI_CLASSES_RESOLVE == (int)FDR_RESOLVE,
              "kinds of events");
static_assert((int)FDRI_ARENA_CLASS_COUNT == (int)FDR_IN_USER + 1, "classes");

const char *fdr_class_name(uint32_t class_)
{
    return class_ < FDRI_ARENA_CLASS_COUNT ? fdri_classes[class_].name : "unknown";
}

enum { FIELDS = FDRI_CLASSES_FIELDS_MOST + 1 };
static struct fdr_kind_info kinds[FDRI_CLASSES_NUMBERS];
static struct fdr_field_info fields[FDRI_CLASSES_NUMBERS][FIELDS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static struct fdr_field_info shown(const struct fdri_classes_field *f)
{
    return (struct fdr_field_info){
        .name = f->name, .type = (enum fdr_value_type)f->type, .unit = f->unit ? f->unit : "", .word = f->word};
}

static void take(uint32_t class_, const struct fdri_classes_kind *k)
{
    const struct fdri_classes_class *c = &fdri_classes[class_];
    struct fdr_kind_info *info = &kinds[k->number];
    struct fdr_field_info *field = fields[k->number];
    if (info->name) return; /* classes that nothing writes show their events as user events */
    *info = (struct fdr_kind_info){
        .name = k->name, .phase = k->phase ? k->phase : "", .class_ = class_, .named_by = c->named_by, .field = field};
    if (c->value_mask) field[info->field_count++] = shown(&c->value);
    for (uint32_t i = 0; i < k->fields; i++) field[info->field_count++] = shown(&k->field[i]);
}

static void take_all(void)
{
    take(FDRI_ARENA_CLASS_USER, &fdri_classes[FDRI_ARENA_CLASS_USER].kind[0]);
    for (uint32_t c = 0; c < FDRI_ARENA_CLASS_COUNT; c++)
        for (uint32_t i = 0; i < fdri_classes[c].kinds; i++) take(c, &fdri_classes[c].kind[i]);
}

const struct fdr_kind_info *fdr_kind_info(uint32_t kind)
{
    pthread_once(&once, take_all);
    return kind < FDRI_CLASSES_NUMBERS && kinds[kind].name ? &kinds[kind] : NULL;
}

const char *fdr_id_name(const struct fdr_file *file, uint32_t class_, uint32_t id)
{
    if (class_ >= FDRI_ARENA_CLASS_COUNT) return "unknown";
    const struct fdri_classes_class *c = &fdri_classes[class_];
    if (c->named_by) return fdr_definition(file, (enum fdr_definition_kind)c->named_by, id)->name;
    for (uint32_t i = 0; c->name_of && c->name_of[i]; i++)
        if (c->first_name + i == id) return c->name_of[i];
    return c->other_name ? c->other_name : c->name;
}

size_t fdr_event_fields(const struct fdr_file *file, const struct fdr_read_event *event,
                        const struct fdr_field_info **field)
{
    static const struct fdr_field_info value[] = {{.name = "value", .type = FDR_VALUE_U64, .unit = ""},
                                                  {.name = "value", .type = FDR_VALUE_I64, .unit = ""},
                                                  {.name = "value", .type = FDR_VALUE_F64, .unit = ""}};
    const struct fdr_kind_info *kind = fdr_kind_info(event->kind);
    *field = NULL;
    if (!kind) return 0;
    if (event->kind == FDR_METRIC) {
        *field = &value[fdr_metric_info(file, event->id)->type];
        return 1;
    }
    if (event->kind == FDR_EVENT) {
        const struct fdr_event_info *info = fdr_event_info(file, event->id);
        *field = info->field;
        return info->field_count;
    }
    *field = kind->field;
    return kind->field_count;
}
