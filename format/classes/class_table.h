/* SPDX-License-Identifier: MIT */
/* Classes of events: one row says what a class is. Its records, accounts, totals, names, tables and exports follow from
 * that row. A new class is a row in class_table.c, and a function of the recorder that presents its events.
 *
 * Neighbours: format/codec/ and recorder/ take the shape of records and keys of totals from here, reader/ the kinds and
 * fields of events (fdr_kind_info); below: format/arena/.
 *
 * The id of a record has up to three parts, low bits first:
 *   which kind of the class   (id - kind_first) & kind_mask
 *   a value                   (id >> value_shift) & value_mask: the first field that readers see; mask 0: none
 *   what the event is about   id >> id_shift: a region, a metric, an operation, a file
 * A row of totals has the key row_kind << 24 | id, so each combination that occurs has sums of its own. */
#ifndef FDRI_FORMAT_CLASSES_CLASS_TABLE_H
#define FDRI_FORMAT_CLASSES_CLASS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/definition_block.h"
#include "format/arena/event_class.h"

enum { FDRI_CLASSES_FIELDS_MOST = 4, FDRI_CLASSES_KINDS_MOST = 4, FDRI_CLASSES_WORDS_MOST = 8 };

/* The numbers of kinds, as readers see them (enum fdr_event_kind). */
enum fdri_classes_number {
    FDRI_CLASSES_ENTER = 1,
    FDRI_CLASSES_LEAVE,
    FDRI_CLASSES_SEND,
    FDRI_CLASSES_RECV,
    FDRI_CLASSES_COLL_BEGIN,
    FDRI_CLASSES_COLL_END,
    FDRI_CLASSES_METRIC,
    FDRI_CLASSES_MARKER,
    FDRI_CLASSES_SAMPLE,
    FDRI_CLASSES_EVENT,
    FDRI_CLASSES_IO_BEGIN,
    FDRI_CLASSES_IO_END,
    FDRI_CLASSES_RESOLVE,
    FDRI_CLASSES_NUMBERS
};

struct fdri_classes_field {
    const char *name, *unit; /* unit NULL: a number, or not given */
    uint8_t type;            /* enum fdri_arena_value_type */
    bool zigzag;             /* the record stores it in zigzag encoding */
    const char *const *word; /* NULL, or what its values stand for, ended by NULL */
};

enum fdri_classes_totals {
    FDRI_CLASSES_NO_ROW,     /* nothing is added to totals */
    FDRI_CLASSES_HIDDEN_ROW, /* a row that readers leave out: another kind stands for both */
    FDRI_CLASSES_ROW
};

struct fdri_classes_kind {
    const char *name;  /* in tables: "send" */
    const char *phase; /* "begin" or "end" of an operation, or NULL */
    uint8_t number;    /* enum fdri_classes_number */
    uint8_t totals;    /* enum fdri_classes_totals */
    uint8_t fields;    /* of the record; with own_fields: the most */
    struct fdri_classes_field field[FDRI_CLASSES_FIELDS_MOST];
};

struct fdri_classes_class {
    const char *name;
    uint8_t kinds, kind_first, kind_mask, value_shift, value_mask, id_shift;
    bool own_fields;    /* each record states how many fields it has */
    bool timed;         /* rows of totals have a time, in `exclusive` */
    uint8_t row_kind;   /* FDRI_CLASSES_NO_ROWS: the class has no totals of this form */
    uint8_t named_by;   /* enum fdri_arena_def_kind: its definitions name `id >> id_shift`; 0: the table does */
    uint8_t first_name; /* the number of name[0] */
    const char *const *name_of, *other_name; /* names of numbers, ended by NULL, and of all others */
    const char *sum_of; /* what `sum` of a row adds up: its unit; NULL: the value of the definition */
    struct fdri_classes_field value;
    struct fdri_classes_kind kind[FDRI_CLASSES_KINDS_MOST];
};

enum { FDRI_CLASSES_NO_ROWS = 0xff };

extern const struct fdri_classes_class fdri_classes[FDRI_ARENA_CLASS_COUNT] __attribute__((visibility("hidden")));

static inline const struct fdri_classes_kind *fdri_classes_kind(uint32_t class_, uint32_t id)
{
    const struct fdri_classes_class *c = &fdri_classes[class_];
    return &c->kind[(id - c->kind_first) & c->kind_mask];
}

/* The number of fields of a point of this class and id; UINT32_MAX: the record contains the number. */
static inline uint32_t fdri_classes_fields(uint32_t class_, uint32_t id)
{
    return fdri_classes[class_].own_fields ? UINT32_MAX : fdri_classes_kind(class_, id)->fields;
}

/* The most fields of any kind of the class, at least 1. User events have those of their definitions. */
uint32_t fdri_classes_fields_most(uint32_t class_);

static inline uint32_t fdri_classes_row_key(uint32_t class_, uint32_t id)
{
    return (uint32_t)fdri_classes[class_].row_kind << 24 | id;
}
/* The class of a key of totals; UINT32_MAX: of none. Row [rest] counts calls of regions. */
uint32_t fdri_classes_of_row(uint32_t key);

/* The class of this name, which need not end behind `length`; UINT32_MAX: none. */
uint32_t fdri_classes_named(const char *name, uint32_t length);

#endif
