/* SPDX-License-Identifier: MIT */
/* Which mangled names are worth demangling: those whose shown form a pattern of rules or triggers may match. Demangling
 * all names of a large program takes too long for the begin of a recording.
 *
 * A mangled name spells the identifiers of its shown form. So if a pattern has an identifier, a name without it cannot
 * match. Excepted are words that the mangled form abbreviates, such as "std" and "unsigned". */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "recorder/names/module_symbols.h"
#include "recorder/names/region_rules.h"
#include "recorder/names/names.h"

enum { KEYS_MOST = 64, KEY_BYTES = 64, KEY_LEAST = 3 };
/* Those of rules belong to the thread that reads symbols. Threads add those of triggers in turn, while it reads. */
static struct keys {
    char key[KEYS_MOST][KEY_BYTES];
    uint32_t count; /* atomic */
    uint32_t all;   /* atomic: a pattern without a key, or too many keys */
} of_rules, of_triggers;

static const char abbreviated[] =
    "std allocator basic_string char_traits string istream ostream iostream operator anonymous namespace lambda "
    "unnamed "
    "type const volatile restrict unsigned signed char short long double float bool wchar_t char8_t char16_t char32_t "
    "__int128 __float128 void decltype auto nullptr_t typeinfo vtable thunk guard variable construction virtual "
    "default "
    "arg true false clone transaction initializer constructor destructor delete new sizeof alignof typeid throw "
    "noexcept "
    "enable_if global keyed static transparent module requires template parameter object reference temporary co_await";

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

static bool is_abbreviated(const char *run, size_t bytes)
{
    char text[KEY_BYTES];
    snprintf(text, sizeof text, "%.*s", (int)bytes, run);
    return strstr(abbreviated, text) != NULL;
}

/* The longest identifier, or part of one, that every text matching the pattern has. NULL: none. */
static const char *key_of(const char *pattern, bool exact, size_t *bytes)
{
    const char *best = NULL;
    *bytes = 0;
    for (const char *p = pattern; *p && (exact || *p != '['); p++) { /* a set may end anywhere */
        size_t n = 0;
        while (is_word(p[n])) n++;
        bool escaped = p > pattern && p[-1] == '\\';
        if (n >= KEY_LEAST && n > *bytes && !isdigit((unsigned char)*p) && !escaped && !is_abbreviated(p, n)) {
            best = p;
            *bytes = n;
        }
        if (n) p += n - 1;
    }
    return best;
}

static void add_pattern(struct keys *to, const char *pattern, bool exact)
{
    size_t bytes;
    uint32_t count = fdri_atomic_load_relaxed(&to->count);
    /* these match the symbol, if anything */
    if (!strncmp(pattern, "_Z", 2) || (!exact && !pattern[strspn(pattern, "*")])) return;
    const char *key = key_of(pattern, exact, &bytes);
    if (!key || count == KEYS_MOST) {
        fdri_atomic_store_relaxed(&to->all, 1u);
        return;
    }
    snprintf(to->key[count], KEY_BYTES, "%.*s", (int)bytes, key);
    fdri_atomic_store_release(&to->count, count + 1); /* R:keys */
}

static void forget(struct keys *k)
{
    fdri_atomic_store_relaxed(&k->count, 0u);
    fdri_atomic_store_relaxed(&k->all, 0u);
}

static void add_rule(const char *pattern, bool exact) { add_pattern(&of_rules, pattern, exact); }
void fdri_names_worth_add(const char *pattern) { add_pattern(&of_triggers, pattern, false); }
void fdri_names_worth_reset(void) { forget(&of_triggers); }

uint32_t fdri_names_worth_collect(void)
{
    forget(&of_rules);
    fdri_names_rules_patterns(add_rule);
    return of_rules.count + fdri_atomic_load_relaxed(&of_triggers.count);
}

static bool has_key(const struct keys *k, const char *mangled)
{
    bool has = fdri_atomic_load_relaxed(&k->all);
    uint32_t count = fdri_atomic_load_acquire(&k->count); /* A:keys */
    for (uint32_t i = 0; !has && i < count; i++) has = strstr(mangled, k->key[i]) != NULL;
    return has;
}

bool fdri_names_worth(const char *mangled) { return has_key(&of_rules, mangled) || has_key(&of_triggers, mangled); }
