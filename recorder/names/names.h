/* SPDX-License-Identifier: MIT */
/* Names: definitions, code addresses, modules, rules, notes.
 *
 *   define.c            definitions in the arena       address_region.c    code address to region
 *   definition_kinds.c  those that programs make       wanted_definition.h what both of them know
 *   region_rules.h      rules and muted regions        module_symbols.h    symbols of functions
 *   address_cache.c     the same, for each thread      loaded_modules.c    where code lies
 *   module_symbols.c    names of code addresses        filter_rules.c      include and exclude rules
 *   demangle_worth.c    names that patterns may match  mutes.c             regions that the governor muted
 *   note.c              facts about the run
 *
 * Neighbours: record/ looks regions up; watch/ is called with each new definition; life/ starts, ends and forks all of
 * this. Fork functions take a phase: 0 before fork() in the parent, 1 after it in the parent, 2 in the child. Phase 3
 * makes the lock anew and precedes phase 0 in a child for which no atfork handler ran. */
#ifndef FDRI_RECORDER_NAMES_NAMES_H
#define FDRI_RECORDER_NAMES_NAMES_H

#include <fdr/fdr.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "format/arena/arena.h"
#include "format/codec/record_codec.h"
#include "recorder/thread/thread_state.h"

struct fdri_names_rule;
struct fdri_record_function;

/* Id of a definition, made if it is new; 0: nothing records, or no room (counted, and said once). Takes a lock. */
uint32_t fdri_names_define(enum fdri_arena_def_kind kind, const char *name, const char *file, uint32_t line,
                           uint64_t value, uint64_t value2, const void *payload, uint32_t payload_bytes);
/* The names of a region. A function has its symbol, the name that readers show, and that without result type and
 * parameters. A second symbol at its address has the same again. None: they are not known yet. */
enum { FDRI_NAMES_CALLED_MOST = 6 };
struct fdri_names_called {
    uint32_t count;
    const char *name[FDRI_NAMES_CALLED_MOST];
};
/* The region of a code address. Only rules and triggers use the names: readers find names offline. */
uint32_t fdri_names_define_function(uint64_t address, uint32_t module, const struct fdri_names_called *called);
/* The symbols of a module are known now: shows them to rules and triggers. Returns how many regions got a rule. */
uint32_t fdri_names_define_late(uint32_t module);
/* Walks over all definitions of the recording, oldest first. Those made meanwhile may be missing. Takes no lock. */
struct fdri_names_cursor {
    uint32_t block, at;
};
struct fdri_names_cursor fdri_names_definitions(void);
const struct fdri_arena_def *fdri_names_next(struct fdri_names_cursor *c); /* NULL: there are no more */
const struct fdri_arena_def *fdri_names_definition(enum fdri_arena_def_kind kind, uint32_t id); /* NULL: none */
/* In a new arena: makes the saved definitions again, with their old ids, then sets the recording running. */
void fdri_names_define_reset(void);
void fdri_names_define_save(void); /* copies all definitions to private memory, before the arena is dropped */
void fdri_names_define_end(void);  /* saves, and ends the recording: nothing is defined any more */
void fdri_names_define_fork(int phase);
/* Types and offsets of the fields of a user event, as the caller gave them. */
struct fdri_names_event_shape {
    uint8_t count;
    uint8_t type[FDRI_CODEC_FIELDS_MAX];
    uint16_t offset[FDRI_CODEC_FIELDS_MAX];
};
const struct fdri_names_event_shape *fdri_names_event_shape(uint32_t type);
uint32_t fdri_names_event_fields(void); /* number of fields of the type with the most */
uint32_t fdri_names_metric_type(uint32_t metric);

enum { FDRI_NAMES_MODULES_MAX = 768 };
void fdri_names_define_modules(void); /* defines all loaded modules; takes the loader's lock. Caller blocks signals */
void fdri_names_modules_reset(void);  /* a new recording */
void fdri_names_modules_fork(int phase);
uint32_t fdri_names_modules_look(void); /* the same; returns the number of this look */
/* Calls forget with the address range of each module that was no longer loaded at that look. */
void fdri_names_modules_forget(uint32_t look, void (*forget)(uint64_t from, uint64_t to));
uint32_t fdri_names_module_of(uint64_t address); /* module definition id, or 0 */

bool fdri_names_module_loaded(uint32_t module);

/* While this is held no function is defined. */
void fdri_names_address_hold(sigset_t *old);
void fdri_names_address_release(const sigset_t *old);

void fdri_names_note_reset(void);

/* Does the compiler hook the function at its first instruction (-mfentry)? Such a function is known by the last byte of
 * code before the hook's return, where no function begins. Its frame is its return address alone. Low halves are
 * enough. */
static inline bool fdri_names_at_entry(uint64_t address, uint64_t site)
{
    return (uint32_t)site - (uint32_t)address == 1;
}
/* Region of a code address, defined at its first use; 0: none. The thread must be attached. The second: the function
 * was entered from `site`, and may be hooked at its first instruction. */
fdr_region fdri_names_address_region(uint64_t address);
fdr_region fdri_names_function_region(uint64_t address, uint64_t site);
/* Atomic; rises when modules were unloaded: cached addresses are void then. */
extern uint32_t fdri_names_address_version __attribute__((visibility("hidden")));
void fdri_names_address_reset(void);  /* a new recording: the table starts empty */
bool fdri_names_address_room(void);   /* has liburcu memory for one more thread? */
void fdri_names_address_thread(void); /* registers this thread with liburcu, once */
bool fdri_names_is_reader(void);      /* may this thread use fdri_thread_read_begin? Not after liburcu's destructor */
void fdri_names_address_resume(void); /* registers it again. All signals are blocked, no operation is open */
void fdri_names_address_thread_ends(void); /* in each round of this thread's destructors */
void fdri_names_address_fork(int phase);

/* A thread's cache of the functions it calls, in the arena: one or two probes give region and totals row. The sources
 * are the table of fdri_names_address_region and the row table. */
struct fdri_names_cached {
    uint64_t address;
    uint32_t row_off, region;
    uint32_t site, frame_bytes; /* entered from site, its frame has at least frame_bytes */
};
/* Set in the address of a function that a rule `min` applies to: only calls that found the rule look for it. */
#define FDRI_NAMES_CACHED_RULED (1ull << 63)
enum { FDRI_NAMES_LEAST_FRAME = 8 }; /* bytes of the return address */
enum { FDRI_NAMES_HOOK_NEAR = 256 }; /* a function calls its enter hook within so many bytes of its begin */
static inline uint32_t fdri_names_cache_slot(const struct fdri_thread *t, uint64_t address)
{
    return (uint32_t)address * 0x9E3779B1u >> t->address_cache_shift;
}
enum { FDRI_NAMES_CACHE_WAYS = 2 }; /* a slot, and the slot whose number differs in the lowest bit */
/* The entry of a function if it is cached. The caller compares the entry's address. */
static inline const struct fdri_names_cached *fdri_names_cache_find(const struct fdri_thread *t, uint64_t address)
{
    uint32_t slot = fdri_names_cache_slot(t, address);
    return FDRI_LIKELY(t->address_cache[slot].address == address) ? &t->address_cache[slot]
                                                                  : &t->address_cache[slot ^ 1];
}
/* Facts about the place that f was entered from. */
struct fdri_names_place {
    uint64_t frame_bytes; /* 0: unknown, or not constant */
    bool whole;           /* true: f is surely not inlined there; false: unknown */
};
struct fdri_names_place fdri_names_cache_place(struct fdri_thread *t, const struct fdri_record_function *f);
/* Bytes of the frame of f; 0: unknown. */
uint64_t fdri_names_cache_frame(const struct fdri_thread *t, const struct fdri_record_function *f);
void fdri_names_cache_start(struct fdri_thread *t);                  /* an empty cache, or empties it */
void fdri_names_cache_drop(struct fdri_thread *t, uint32_t row_off); /* removes that row: it gets another key */
void fdri_names_cache_add(struct fdri_thread *t, const struct fdri_record_function *f, fdr_region region,
                          const struct fdri_arena_row *row, const struct fdri_names_rule *rule);

#endif
