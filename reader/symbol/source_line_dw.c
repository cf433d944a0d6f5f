/* SPDX-License-Identifier: MIT */
/* Lines and inlined functions with elfutils. elfutils finds units by .debug_aranges, which clang does not write. It
 * finds inlined functions by source scopes, which are not calls. So each module gets a table of its units' ranges,
 * and each unit one of its functions, both on first use. The inlined functions of an address are the entries around
 * it in its function. */
#include "reader/file/file.h"
#include "reader/symbol/source_line.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 256 }; /* of scopes; bounds the recursion for hostile files */

struct range {
    uint64_t from, to;
    uint64_t of; /* index of a unit, or offset of a function's entry */
};
struct table {
    struct range *range;
    size_t count, room;
};
struct unit {
    Dwarf_Die die;
    bool placed; /* its entry gives its ranges */
    bool read;   /* its functions were read */
    struct table functions;
};
struct module {
    Dwarf *dwarf;
    Dwarf_Addr bias; /* address in the Dwfl minus address in the file */
    struct unit *unit;
    size_t count, room;
    struct table ranges;
};

/* ---- tables of ranges ---- */

static void add_ranges(struct table *t, Dwarf_Die *die, uint64_t of)
{
    Dwarf_Addr base, from, to;
    for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &from, &to)) > 0;) {
        if (from >= to) continue; /* linkers mark removed code this way */
        if (!fdri_file_grow(&t->range, t->count, &t->room, sizeof *t->range)) return;
        t->range[t->count++] = (struct range){from, to, of};
    }
}

static int by_start(const void *x, const void *y)
{
    const struct range *a = x, *b = y;
    if (a->from != b->from) return a->from < b->from ? -1 : 1;
    return a->of < b->of ? -1 : a->of > b->of;
}

static void sort(struct table *t)
{
    if (t->count) qsort(t->range, t->count, sizeof *t->range, by_start);
}

static const struct range *range_of(const struct table *t, uint64_t address)
{
    size_t low = 0, high = t->count; /* the last range that begins at or before the address is below `high` */
    while (low < high) {
        size_t i = low + (high - low) / 2;
        if (t->range[i].from <= address) low = i + 1;
        else high = i;
    }
    return low && address < t->range[low - 1].to ? &t->range[low - 1] : NULL;
}

/* ---- units ---- */

static void add_units(struct module *m)
{
    Dwarf_CU *unit = NULL;
    Dwarf_Die die;
    while (dwarf_get_units(m->dwarf, unit, &unit, NULL, NULL, &die, NULL) == 0) {
        if (!fdri_file_grow(&m->unit, m->count, &m->room, sizeof *m->unit)) break;
        size_t before = m->ranges.count;
        add_ranges(&m->ranges, &die, m->count);
        m->unit[m->count++] = (struct unit){.die = die, .placed = m->ranges.count > before};
    }
    sort(&m->ranges);
}

/* Returns NULL if the module has no debug information. */
static struct module *module_of(Dwfl_Module *dwfl_module)
{
    void **mine;
    Dwarf_Addr bias;
    dwfl_module_info(dwfl_module, &mine, NULL, NULL, NULL, NULL, NULL, NULL);
    if (*mine) return *mine;
    Dwarf *dwarf = dwfl_module_getdwarf(dwfl_module, &bias);
    struct module *m = dwarf ? fdri_file_calloc(1, sizeof *m) : NULL;
    if (!m) return NULL;
    *m = (struct module){.dwarf = dwarf, .bias = bias};
    add_units(m);
    return *mine = m;
}

static struct unit *unit_at(struct module *m, Dwfl_Module *dwfl_module, uint64_t address)
{
    Dwarf_Addr bias;
    const struct range *r = range_of(&m->ranges, address - m->bias);
    if (r) return &m->unit[r->of];
    Dwarf_Die *die = dwfl_module_addrdie(dwfl_module, address, &bias); /* takes gaps for part of the unit before */
    for (size_t i = 0; die && i < m->count; i++)
        if (m->unit[i].die.addr == die->addr)
            return m->unit[i].placed && dwarf_haspc(die, address - bias) <= 0 ? NULL : &m->unit[i];
    return NULL;
}

static const char *line_at(struct unit *u, Dwarf_Addr address, uint32_t *line)
{
    Dwarf_Lines *lines;
    size_t count;
    int number = 0;
    if (dwarf_getsrclines(&u->die, &lines, &count) || !count) return NULL;
    Dwarf_Line *at = dwarf_getsrc_die(&u->die, address);
    if (at && dwarf_lineno(at, &number) == 0 && number > 0) *line = (uint32_t)number;
    return at ? dwarf_linesrc(at, NULL, NULL) : NULL;
}

/* ---- functions ---- */

/* May functions with code stand inside of such an entry? Local functions, and the contained procedures of Fortran,
 * stand inside of others. */
static bool may_hold_functions(int tag)
{
    return tag == DW_TAG_subprogram || tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_class_type ||
           tag == DW_TAG_structure_type || tag == DW_TAG_union_type || tag == DW_TAG_lexical_block;
}

static void add_functions(struct table *t, Dwarf_Die *in, int depth)
{
    Dwarf_Die die;
    if (depth >= DEPTH_MAX || dwarf_child(in, &die)) return;
    do {
        int tag = dwarf_tag(&die);
        if (tag == DW_TAG_subprogram) add_ranges(t, &die, dwarf_dieoffset(&die));
        if (may_hold_functions(tag)) add_functions(t, &die, depth + 1);
    } while (dwarf_siblingof(&die, &die) == 0);
}

static bool function_at(const struct module *m, struct unit *u, Dwarf_Addr address, Dwarf_Die *die)
{
    if (!u->read) add_functions(&u->functions, &u->die, 0), sort(&u->functions);
    u->read = true;
    const struct range *r = range_of(&u->functions, address);
    return r && dwarf_offdie(m->dwarf, r->of, die);
}

static const char *name_of(Dwarf_Die *die)
{
    Dwarf_Attribute a;
    const char *linkage = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &a));
    return linkage ? linkage : dwarf_formstring(dwarf_attr_integrate(die, DW_AT_name, &a));
}

static uint32_t number_of(Dwarf_Die *die, unsigned attribute)
{
    Dwarf_Attribute a;
    Dwarf_Word v;
    return dwarf_formudata(dwarf_attr(die, attribute, &a), &v) == 0 ? (uint32_t)v : 0;
}

static void add_inlined(struct fdri_symbol_code *out, struct unit *u, Dwarf_Die *die)
{
    Dwarf_Files *files;
    size_t count;
    uint32_t file = number_of(die, DW_AT_call_file);
    if (out->count >= FDRI_SYMBOL_INLINED_MAX) return;
    struct fdri_symbol_inlined *i = &out->inlined[out->count++];
    *i = (struct fdri_symbol_inlined){.function = name_of(die), .line = number_of(die, DW_AT_call_line)};
    if (dwarf_getsrcfiles(&u->die, &files, &count) == 0 && file < count)
        i->file = dwarf_filesrc(files, file, NULL, NULL);
}

/* A block without an address range may hold entries that have one. */
static bool may_contain(Dwarf_Die *die, int tag, Dwarf_Addr address)
{
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_lexical_block && tag != DW_TAG_try_block &&
        tag != DW_TAG_catch_block)
        return false;
    return dwarf_haspc(die, address) > 0 ||
           (tag != DW_TAG_inlined_subroutine && !dwarf_hasattr(die, DW_AT_low_pc) && !dwarf_hasattr(die, DW_AT_ranges));
}

/* Entries nest like the calls. Returns true if an inlined function below `in` covers the address. */
static bool find_inlined(struct fdri_symbol_code *out, struct unit *u, Dwarf_Die *in, Dwarf_Addr address, int depth)
{
    Dwarf_Die die;
    if (depth >= DEPTH_MAX || dwarf_child(in, &die)) return false;
    do {
        int tag = dwarf_tag(&die);
        if (!may_contain(&die, tag, address)) continue;
        bool found = find_inlined(out, u, &die, address, depth + 1);
        if (tag == DW_TAG_inlined_subroutine) add_inlined(out, u, &die);
        if (found || tag == DW_TAG_inlined_subroutine) return true;
    } while (dwarf_siblingof(&die, &die) == 0);
    return false;
}

/* ---- for both ---- */

const char *fdri_symbol_code_line(Dwfl_Module *dwfl_module, uint64_t address, uint32_t *line)
{
    struct module *m = module_of(dwfl_module);
    struct unit *u = m ? unit_at(m, dwfl_module, address) : NULL;
    *line = 0;
    return u ? line_at(u, address - m->bias, line) : NULL;
}

void fdri_symbol_code_at(Dwfl_Module *dwfl_module, uint64_t address, struct fdri_symbol_code *out)
{
    Dwarf_Die function;
    struct module *m = module_of(dwfl_module);
    struct unit *u = m ? unit_at(m, dwfl_module, address) : NULL;
    out->function = out->file = NULL;
    out->line = out->count = 0;
    if (!u) return;
    out->file = line_at(u, address - m->bias, &out->line);
    if (!function_at(m, u, address - m->bias, &function)) return;
    out->function = name_of(&function);
    find_inlined(out, u, &function, address - m->bias, 0);
}

static int drop_units(Dwfl_Module *dwfl_module, void **mine, const char *name, Dwarf_Addr start, void *unused)
{
    struct module *m = *mine;
    (void)dwfl_module, (void)name, (void)start, (void)unused;
    for (size_t i = 0; m && i < m->count; i++) free(m->unit[i].functions.range);
    if (m) free(m->unit), free(m->ranges.range);
    free(m);
    *mine = NULL;
    return DWARF_CB_OK;
}

void fdri_symbol_code_end(Dwfl *dwfl)
{
    dwfl_getmodules(dwfl, drop_units, NULL, 0);
    dwfl_end(dwfl);
}
