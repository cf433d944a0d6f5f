/* SPDX-License-Identifier: MIT */
/* Code address to region, for compiler instrumentation: a hash table behind each thread's cache. The first call of a
 * function inserts. A reader is in a liburcu section for one probe. An insert writes the region, then the address. When
 * the table must grow, a larger one is published. Old tables, together no larger than the newest, stay until the
 * recording ends; then a helper thread frees them after a grace period. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fdr/fdr.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/stack/entry_hook.h"
#include "base/system/cancellation.h"
#include "base/system/signal_mask.h"
#include "recorder/names/module_symbols.h"
#include "recorder/names/names.h"
#include "recorder/thread/grace_period.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_state.h"

struct entry {
    uint64_t address;
    uint64_t region;
};
struct table {
    struct table *older;
    uint32_t log2, used;
    struct entry entry[];
};

enum { FIRST_LOG2 = 12 };
#define REFUSED                                                                                                        \
    (1ull << 32) /* no room for its definition, nor for any later one of this kind: region 0, without asking again */

static struct table *current;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint32_t slot_of(uint64_t address, uint32_t log2)
{
    return (uint32_t)(address * 0x9E3779B97F4A7C15u >> (64 - log2));
}

static uint64_t table_bytes(uint32_t log2) { return sizeof(struct table) + (sizeof(struct entry) << log2); }

static struct table *make(uint32_t log2)
{
    struct table *t = mmap(NULL, table_bytes(log2), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (t == MAP_FAILED) return NULL;
    t->log2 = log2;
    return t;
}

/* The region of an address, or REFUSED; 0: not in the table. */
static inline uint64_t probe(struct table *t, uint64_t address)
{
    uint32_t mask = (1u << t->log2) - 1;
    for (uint32_t i = slot_of(address, t->log2), n = 0; n <= mask; i = (i + 1) & mask, n++) {
        uint64_t a = fdri_atomic_load_acquire(&t->entry[i].address); /* A:address - pairs with R:address */
        if (a == address) return fdri_atomic_load_relaxed(&t->entry[i].region);
        if (!a) return 0;
    }
    return 0;
}

/* Under the lock, or in a table not published yet. */
static void table_insert(struct table *t, uint64_t address, uint64_t region)
{
    uint32_t mask = (1u << t->log2) - 1, i = slot_of(address, t->log2);
    while (t->entry[i].address && t->entry[i].address != address) i = (i + 1) & mask; /* at most 3/4 are used */
    t->used += !t->entry[i].address;
    fdri_atomic_store_relaxed(&t->entry[i].region, region);
    fdri_atomic_store_release(&t->entry[i].address, address); /* R:address - the region is stored before its address */
}

static void free_tables(void *newest)
{
    for (struct table *t = newest, *older; t; t = older) {
        older = t->older;
        munmap(t, table_bytes(t->log2));
    }
}

/* In a forked child this does nothing: the tables stay. */
static void free_after_grace(struct table *newest)
{
    if (newest) fdri_thread_after_grace(free_tables, newest);
}

/* The table, with room for one more entry; NULL: no memory. Under the lock. */
static struct table *writable(void)
{
    struct table *t = current;
    if (t && t->used < (1u << t->log2) * 3 / 4) return t;
    struct table *wider = make(t ? t->log2 + 1 : FIRST_LOG2);
    if (!wider) return t && t->used < (1u << t->log2) - 1 ? t : NULL;
    for (uint32_t i = 0; t && i < 1u << t->log2; i++)
        if (t->entry[i].address) table_insert(wider, t->entry[i].address, t->entry[i].region);
    wider->older = t;
    rcu_set_pointer(&current, wider);
    return wider;
}

/* The name in the dynamic symbol table, if there is one: known without its file. */
static struct fdri_names_called exported_name(uint64_t address)
{
    Dl_info info;
    bool found = dladdr((void *)(uintptr_t)address, &info) && info.dli_sname;
    return (struct fdri_names_called){.count = found, .name = {found ? info.dli_sname : ""}};
}

/* Defines the region of the function at `address`, whose key is not in the table. The loader's lock is taken and
 * released before ours: another thread may hold the loader's and wait for ours. */
static FDRI_NOINLINE fdr_region insert(uint64_t key, uint64_t address)
{
    struct fdri_names_called called = {.count = 1, .name = {""}};
    bool wanted = fdri_names_symbols_wanted();
    sigset_t old;
    if (fdri_thread_inside) return 0; /* called by an instrumented allocator from below here */
    int saved = errno;
    fdri_system_signals_block(&old);
    fdri_thread_inside++;
    uint32_t module = fdri_names_module_of(address);
    /* readers find names offline. Only rules and triggers need one now */
    if (wanted && !fdri_names_symbols_ready(module)) called = exported_name(address);
    pthread_mutex_lock(&lock);
    if (wanted) fdri_names_symbols_of(module, address, &called);
    struct table *t = writable();
    uint64_t found = t ? probe(t, key) : 0;
    fdr_region region = (fdr_region)found;
    if (t && !found) {
        region = fdri_names_define_function(address, module, &called);
        table_insert(t, key, region ? region : REFUSED);
    }
    pthread_mutex_unlock(&lock);
    fdri_thread_inside--;
    fdri_system_signals_restore(&old); /* last: a pending handler runs now and may leave by longjmp */
    errno = saved;
    return region;
}

/* liburcu's variable: the thread's entry in its list. A destructor of liburcu removes it, before or after ours. */
extern __thread struct urcu_bp_reader *urcu_bp_reader __attribute__((tls_model("global-dynamic")));

static __thread bool registered; /* by us, once */

bool fdri_names_is_reader(void)
{
    return fdri_atomic_load_relaxed(&fdri_thread_forked) || urcu_bp_reader || (!registered && !fdri_thread_is_ending());
}

/* For a thread that liburcu has removed from its list. A read-side section would register it again, under locks that
 * the thread may hold: liburcu's destructor may call an instrumented pthread_mutex_unlock of the program. */
static uint64_t probe_locked(uint64_t address)
{
    sigset_t old;
    fdri_system_signals_block(&old);
    fdri_thread_inside++;
    pthread_mutex_lock(&lock);
    uint64_t found = current ? probe(current, address) : 0;
    pthread_mutex_unlock(&lock);
    fdri_thread_inside--;
    fdri_system_signals_restore(&old);
    return found;
}

static uint64_t probe_shared(uint64_t address)
{
    fdri_thread_read_begin();
    struct table *t = rcu_dereference(current);
    uint64_t found = t ? probe(t, address) : 0;
    fdri_thread_read_end();
    return found;
}

/* The region in the table; 0: none. *may_insert: it can be defined now. */
static uint64_t look_up(uint64_t key, bool *may_insert)
{
    bool reader = fdri_names_is_reader();
    *may_insert = key && (reader || !fdri_thread_inside);
    if (!*may_insert) return 0;
    return reader ? probe_shared(key) : probe_locked(key);
}

fdr_region fdri_names_address_region(uint64_t address)
{
    bool may_insert;
    uint64_t found = look_up(address, &may_insert);
    return FDRI_LIKELY(found || !may_insert) ? (fdr_region)found : insert(address, address);
}

fdr_region fdri_names_function_region(uint64_t address, uint64_t site)
{
    bool may_insert;
    uint64_t found = look_up(address, &may_insert);
    if (FDRI_LIKELY(found || !may_insert)) return (fdr_region)found;
    return insert(address, fdri_names_at_entry(address, site) ? fdri_stack_hooked_function(address + 1) : address);
}

fdr_region fdr_region_define_address(const void *function)
{
    return fdri_thread_attached() ? fdri_names_address_region((uint64_t)(uintptr_t)function) : 0;
}

void fdri_names_address_hold(sigset_t *old)
{
    fdri_system_signals_block(old);
    fdri_thread_inside++;
    pthread_mutex_lock(&lock);
}

void fdri_names_address_release(const sigset_t *old)
{
    pthread_mutex_unlock(&lock);
    fdri_thread_inside--;
    fdri_system_signals_restore(old);
}

/* Clears the regions of addresses in [from, to); their next call looks them up and defines them again. Under the
 * lock. */
static void forget(uint64_t from, uint64_t to)
{
    struct table *t = current;
    for (uint32_t i = 0; t && i < 1u << t->log2; i++)
        if (t->entry[i].address >= from && t->entry[i].address < to)
            fdri_atomic_store_relaxed(&t->entry[i].region, (uint64_t)0);
    fdri_atomic_add_relaxed(&fdri_names_address_version, 1u);
}

void fdr_modules_changed(void)
{
    sigset_t old;
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    if (!on || fdri_thread_inside) return;
    int saved = errno;
    struct fdri_system_cancel cancel = fdri_system_cancel_off();
    fdri_system_signals_block(&old);
    fdri_thread_inside++;
    if (fdri_thread_hold_recording(on)) {          /* definitions state the time of its clock */
        uint32_t look = fdri_names_modules_look(); /* before our lock: it takes the loader's */
        pthread_mutex_lock(&lock);
        fdri_names_modules_forget(look, forget);
        pthread_mutex_unlock(&lock);
        fdri_thread_release_recording();
    }
    fdri_thread_inside--;
    fdri_system_cancel_restore(cancel);
    fdri_system_signals_restore(&old); /* last: a pending handler runs now and may leave by longjmp */
    errno = saved;
}

void fdri_names_address_reset(void)
{
    pthread_mutex_lock(&lock);
    struct table *t = current;
    rcu_set_pointer(&current, (struct table *)NULL);
    pthread_mutex_unlock(&lock);
    free_after_grace(t);
}

static uint32_t readers; /* atomic: threads registered with liburcu, of all recordings */

/* liburcu maps 256 bytes for each reader and doubles that when it is full. If the kernel refuses the mapping
 * (RLIMIT_AS, RLIMIT_DATA), liburcu aborts the program. So this maps that much first, as a test: enough for twice our
 * threads, and for some readers that do not record. */
bool fdri_names_address_room(void)
{
    enum { OTHERS = 64 << 10, EACH = 2 * 2 * 256 };
    if (fdri_atomic_load_relaxed(&fdri_thread_forked) || registered) return true;
    uint64_t room = OTHERS + EACH * (uint64_t)fdri_atomic_load_relaxed(&readers);
    void *m = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED) return false;
    munmap(m, room);
    return true;
}

/* Once for each thread, not for each recording, and not in its destructors; liburcu itself removes it at its end. In a
 * forked child no thread registers or waits for a grace period: the list still names the parent's threads. */
void fdri_names_address_thread(void)
{
    if (fdri_atomic_load_relaxed(&fdri_thread_forked) || registered || fdri_thread_is_ending()) return;
    urcu_bp_register_thread();
    registered = true;
    fdri_atomic_add_relaxed(&readers, 1u);
}

void fdri_names_address_resume(void)
{
    if (fdri_names_is_reader()) return;
    fdri_thread_inside++;
    urcu_bp_register_thread();
    fdri_thread_inside--;
}

void fdri_names_address_thread_ends(void)
{
    if (fdri_atomic_load_relaxed(&fdri_thread_forked) || !registered) return;
    registered = false;
    fdri_atomic_sub_relaxed(&readers, 1u);
}

void fdri_names_address_fork(int phase)
{
    if (phase == 3) pthread_mutex_init(&lock, NULL);
    else if (phase == 0) pthread_mutex_lock(&lock);
    else pthread_mutex_unlock(&lock);
    if (phase == 2) fdri_atomic_store_relaxed(&fdri_thread_forked, true);
}
