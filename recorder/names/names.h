/* SPDX-License-Identifier: MIT */
/* Names: definitions, code addresses, modules, rules, notes.
 *
 *   define.c            definitions in the arena       address_region.c    code address to region
 *   address_cache.c     the same, for each thread      loaded_modules.c    where code lies
 *   filter_rules.c      include and exclude rules      note.c              facts about the run
 *
 * Neighbours: record/ looks regions up; watch/ hears of each definition. */
#ifndef FDRI_RECORDER_NAMES_NAMES_H
#define FDRI_RECORDER_NAMES_NAMES_H

#include <fdr/fdr.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "format/arena/arena.h"
#include "format/codec/record_codec.h"
#include "recorder/thread/thread_state.h"

struct fdri_record_function;

uint32_t fdri_names_define(enum fdri_arena_def_kind kind, const char *name, const char *file, uint32_t line,
                           uint64_t value, uint64_t value2, const void *payload, uint32_t payload_bytes);
/* The region of a code address; the name is for rules and triggers only. */
uint32_t fdri_names_define_function(uint64_t address, uint32_t module, const char *name);
/* A new arena: definitions made before come along with their ids, and then the recording runs. */
void fdri_names_define_reset(void);
void fdri_names_define_save(void);      /* before the arena goes */
void fdri_names_define_end(void);       /* the same, and nothing is defined any more: the recording does not run */
void fdri_names_define_fork(int phase); /* 0 prepare, 1 parent, 2 child; 3 before 0 in a child that no handler saw */
struct fdri_names_event_shape {
    uint8_t count;
    uint8_t type[FDRI_CODEC_FIELDS_MAX];
    uint16_t offset[FDRI_CODEC_FIELDS_MAX];
};
const struct fdri_names_event_shape *fdri_names_event_shape(uint32_t type);
uint32_t fdri_names_event_fields(void); /* of the type with the most */
uint32_t fdri_names_metric_type(uint32_t metric);

void fdri_names_define_modules(void);    /* what is loaded; asks the loader. Signals are blocked, or none may record */
void fdri_names_modules_reset(void);     /* a new recording */
void fdri_names_modules_fork(int phase); /* as fdri_names_define_fork */
uint32_t fdri_names_modules_look(void);  /* which modules are loaded now; asks the loader. The number of this look */
/* Those that were not loaded any more when it was made. */
void fdri_names_modules_forget(uint32_t look, void (*forget)(uint64_t from, uint64_t to));
uint32_t fdri_names_module_of(uint64_t address); /* module definition id, or 0 */

void fdri_names_note_reset(void);

/* Region of a code address, defined on first sight. The thread must be attached. */
fdr_region fdri_names_address_region(uint64_t address);
/* rises when addresses lose their meaning */
extern uint32_t fdri_names_address_version __attribute__((visibility("hidden")));
void fdri_names_address_reset(void);
bool fdri_names_address_room(void);        /* is there memory for one more thread that does? */
void fdri_names_address_thread(void);      /* this thread begins to look addresses up */
bool fdri_names_is_reader(void);           /* may it use fdri_life_read_begin? Not behind the destructor of liburcu's */
void fdri_names_address_resume(void);      /* it may, once more: all signals are blocked, and nothing is under way */
void fdri_names_address_thread_ends(void); /* called again by each of its destructors that comes round */
void fdri_names_address_fork(int phase);   /* as fdri_names_define_fork */

/* What a thread remembers of the functions it calls: one probe gives region and totals row, or a second one beside it.
 * A cache in the arena; what it says stands in fdri_names_address_region's table and in the row table. */
struct fdri_names_cached {
    uint64_t address;
    uint32_t row_off, region;
    uint32_t site, frame_bytes; /* entered from there its frame has at least so many bytes */
};
enum { FDRI_NAMES_LEAST_FRAME = 8 }; /* where a function returns to */
enum { FDRI_NAMES_HOOK_NEAR = 256 }; /* its hook is not called further from its beginning */
static inline uint32_t fdri_names_cache_slot(const struct fdri_thread *t, uint64_t address)
{
    return (uint32_t)address * 0x9E3779B1u >> t->known_shift;
}
enum { FDRI_NAMES_CACHE_WAYS = 2 }; /* a slot, and the one whose number differs in the lowest bit */
/* Where the function is, if it is known: then that has its address. */
static inline const struct fdri_names_cached *fdri_names_cache_find(const struct fdri_thread *t, uint64_t address)
{
    uint32_t slot = fdri_names_cache_slot(t, address);
    return FDRI_LIKELY(t->known[slot].address == address) ? &t->known[slot] : &t->known[slot ^ 1];
}
/* Of the place that f was entered from. */
struct fdri_names_place {
    uint64_t frame_bytes; /* 0: not known, or not always the same */
    bool whole;           /* f itself, not put into another function by the compiler; only that is sure */
};
struct fdri_names_place fdri_names_cache_place(struct fdri_thread *t, const struct fdri_record_function *f);
/* How many bytes the frame of f has; 0: not known. */
uint64_t fdri_names_cache_frame(const struct fdri_thread *t, const struct fdri_record_function *f);
void fdri_names_cache_start(struct fdri_thread *t);                  /* also: forget everything */
void fdri_names_cache_drop(struct fdri_thread *t, uint32_t row_off); /* that row gets another key */
void fdri_names_cache_add(struct fdri_thread *t, const struct fdri_record_function *f, fdr_region region,
                          const struct fdri_arena_row *row);

struct fdri_names_rule {
    uint8_t mode;
    uint32_t count;
    uint64_t min_ns;
};
enum {
    FDRI_NAMES_RULE_NONE = 0,
    FDRI_NAMES_RULE_EXCLUDE,
    FDRI_NAMES_RULE_FIRST,
    FDRI_NAMES_RULE_EVERY,
    FDRI_NAMES_RULE_MIN,
    FDRI_NAMES_RULE_COUNTERS
};
/* edges: counters are read at the edges of calls; edge_regions: of which. */
void fdri_names_rules_load(const char *path, bool edges, const char *edge_regions);
void fdri_names_rules_define(uint32_t region, const char *name, const char *file, bool by_address);
const struct fdri_names_rule *fdri_names_rule_of(uint32_t region); /* NULL: none */
bool fdri_names_rules_any(void);
bool fdri_names_rules_phases(void);
bool fdri_names_rules_phase(const char *name);

#endif
