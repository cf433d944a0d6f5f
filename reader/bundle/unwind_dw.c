/* SPDX-License-Identifier: MIT */
/* Call stacks with elfutils. The modules are laid out as in the process, each file only if it has the recorded build
 * id. The unwinder reads memory from the stored stack words. */
#include "format/arena/arena.h"
#include "reader/bundle/crash_bundle.h"
#include "reader/file/file.h"
#include "reader/symbol/source_line.h"
#include "reader/symbol/symbols.h"

#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_build_id_find_debuginfo,
    .section_address = dwfl_offline_section_address,
};

/* The unwinder is attached once; the thread it walks changes. */
struct walk {
    Dwfl *dwfl;
    bool attached;
    struct fdr_file *file;
    struct fdri_bundle_thread *thread;
    uint64_t pc, sp; /* the place where the walk begins */
    bool called;     /* the thread called a null or wild pointer: the walk begins at the caller */
};

/* ---- the process as it was ---- */

/* Is this the file that ran? Another file of its name must not give names. */
static bool is_file(int fd, const char *hex)
{
    const void *id;
    bool same = false;
    Elf *elf = elf_version(EV_CURRENT) ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
    ssize_t bytes = elf ? dwelf_elf_gnu_build_id(elf, &id) : 0;
    if (bytes > 0 && strlen(hex) == (size_t)bytes * 2) {
        same = true;
        for (ssize_t i = 0; i < bytes; i++) {
            char text[3];
            snprintf(text, sizeof text, "%02x", ((const unsigned char *)id)[i]);
            same &= !memcmp(text, hex + 2 * i, 2);
        }
    }
    elf_end(elf);
    return same;
}

static bool module_known(Dwfl *dwfl, uint64_t from, uint64_t to)
{
    return dwfl_addrmodule(dwfl, from) || dwfl_addrmodule(dwfl, to - 1);
}

/* Takes over the file descriptor. */
static void report(Dwfl *dwfl, const char *name, const char *path, int fd, uint64_t address)
{
    if (!dwfl_report_elf(dwfl, name, path, fd, address, true)) close(fd);
}

/* Reports the recorded modules, newest first: a later one may lie where an earlier one was unloaded. */
static void report_recorded(const struct fdr_file *f, Dwfl *dwfl)
{
    const struct fdri_file_definitions *all = &f->definitions[FDRI_ARENA_DEF_MODULE];
    bool *taken = fdri_symbol_modules_taken(f);
    for (size_t i = all->count; taken && i-- > 0;) {
        const struct fdri_file_definition *m = &all->row[i];
        int fd = m->d.name[0] == '/' && !taken[i] ? fdri_symbol_symbols_fd(m->d.name) : -1;
        if (fd < 0) continue;
        if (is_file(fd, m->d.file)) report(dwfl, m->d.file, m->d.name, fd, m->d.address);
        else close(fd);
    }
    free(taken);
}

/* Reports files that were loaded after the last recorded module. The memory map has their inodes, not their build
 * ids. */
static void report_mapped(const struct fdr_file *f, Dwfl *dwfl)
{
    const char *p = fdr_crash_text(f, "maps", NULL);
    while (p && *p) {
        unsigned long long from, to, off, inode;
        struct stat st;
        int path = 0;
        char name[512];
        size_t line = strcspn(p, "\n");
        if (sscanf(p, "%llx-%llx %*4s %llx %*s %llu %n", &from, &to, &off, &inode, &path) >= 4 && path &&
            (size_t)path < line && p[path] == '/' && off == 0 && line - (size_t)path < sizeof name) {
            memcpy(name, p + path, line - (size_t)path);
            name[line - (size_t)path] = 0;
            bool known = fdri_bundle_module_at(f, from) || module_known(dwfl, from, to);
            int fd = known ? -1 : fdri_symbol_symbols_fd(name);
            if (fd >= 0 && fstat(fd, &st) == 0 && st.st_ino == inode) report(dwfl, "", name, fd, from);
            else if (fd >= 0) close(fd);
        }
        p += line + (p[line] == '\n');
    }
}

static Dwfl *process_of(struct fdr_file *f)
{
    struct walk *w = f->bundle->unwinder;
    if (w) return w->dwfl;
    if (!fdri_symbol_symbols_allowed() || !(w = fdri_file_alloc(f, sizeof *w))) return NULL;
    f->bundle->unwinder = w;
    Dwfl *dwfl = w->dwfl = dwfl_begin(&callbacks);
    if (!dwfl) return NULL;
    dwfl_report_begin(dwfl);
    report_recorded(f, dwfl);
    dwfl_report_end(dwfl, NULL, NULL);
    dwfl_report_begin_add(dwfl);
    report_mapped(f, dwfl);
    dwfl_report_end(dwfl, NULL, NULL);
    return dwfl;
}

static Dwfl_Module *module_at(Dwfl *dwfl, uint64_t address) { return dwfl ? dwfl_addrmodule(dwfl, address) : NULL; }

void fdri_bundle_unwind_end(struct fdri_bundle *b)
{
    struct walk *w = b->unwinder;
    if (w && w->dwfl) fdri_symbol_code_end(w->dwfl);
    b->unwinder = NULL;
}

/* ---- names ---- */

static const char *keep_name(struct fdr_file *f, const char *text)
{
    char *plain = text ? fdri_symbol_demangle(text) : NULL;
    const char *use = plain ? plain : text ? text : "";
    char *copy = fdri_file_alloc(f, strlen(use) + 1);
    if (copy) strcpy(copy, use);
    free(plain);
    return copy ? copy : "";
}

static void add_frame(struct fdri_bundle_thread *t, const struct fdr_crash_frame *frame)
{
    struct fdr_crash_frame *r = fdri_bundle_frame(t);
    if (r) *r = *frame;
}

/* Adds a frame for each function inlined at this address, innermost first, then one for the function. */
static void put_all(struct fdr_file *f, struct fdri_bundle_thread *t, struct fdr_crash_frame *frame,
                    const struct fdri_symbol_code *code)
{
    const char *symbol = frame->function;
    for (uint32_t i = 0; i < code->count; i++) {
        const struct fdri_symbol_inlined *call = &code->inlined[i];
        frame->function = call->function ? keep_name(f, call->function) : "";
        frame->is_inline = true;
        add_frame(t, frame);
        frame->file = call->file ? keep_name(f, call->file) : "";
        frame->line = call->line;
    }
    frame->function = code->function ? keep_name(f, code->function) : symbol;
    frame->is_inline = false;
    add_frame(t, frame);
}

void fdri_bundle_frame_at(struct fdr_file *f, struct fdri_bundle_thread *t, uint64_t address, bool after, bool guessed)
{
    const struct fdri_file_definition *recorded = fdri_bundle_module_at(f, address);
    struct fdr_crash_frame frame = {.address = address, .function = "", .file = "", .module = "", .guessed = guessed};
    uint64_t at = address - after; /* the call, not the instruction after it */
    Dwfl_Module *m = module_at(process_of(f), at);
    Dwarf_Addr start = 0;
    if (recorded) {
        frame.module = recorded->d.name;
        frame.offset = address - recorded->d.address;
    } else if (m) {
        const char *path = NULL;
        dwfl_module_info(m, NULL, &start, NULL, NULL, NULL, &path, NULL);
        frame.module = path ? keep_name(f, path) : "";
        frame.offset = address - start;
    }
    if (!m) {
        add_frame(t, &frame);
        return;
    }
    GElf_Off offset;
    GElf_Sym symbol;
    struct fdri_symbol_code code;
    frame.function = keep_name(f, dwfl_module_addrinfo(m, at, &offset, &symbol, NULL, NULL, NULL));
    fdri_symbol_code_at(m, at, &code);
    if (code.file) frame.file = keep_name(f, code.file);
    frame.line = code.line;
    put_all(f, t, &frame, &code);
}

/* ---- unwinding ---- */

static pid_t next_thread(Dwfl *dwfl, void *argument, void **thread)
{
    (void)dwfl;
    struct walk *w = argument;
    if (*thread) return 0;
    *thread = w;
    return (pid_t)w->thread->raw.tid;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *result, void *argument)
{
    (void)dwfl;
    struct fdri_bundle_thread *t = ((struct walk *)argument)->thread;
    if (fdri_bundle_word(t, address, result)) return true;
    t->beyond |= address >= t->raw.sp && address - t->raw.sp >= fdri_bundle_kept_bytes(t);
    return false;
}

static bool set_registers(Dwfl_Thread *thread, void *argument)
{
    struct walk *w = argument;
    const uint64_t *r = w->thread->registers;
    if (w->thread->raw.machine == EM_X86_64 && w->thread->raw.registers >= 17) {
        /* the register numbers of DWARF */
        static const uint8_t from[16] = {13, 12, 14, 11, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7};
        Dwarf_Word v[17];
        for (int i = 0; i < 16; i++) v[i] = r[from[i]];
        v[7] = w->sp;
        v[16] = w->pc;
        return dwfl_thread_state_registers(thread, 0, 17, v);
    }
    if (w->thread->raw.machine == EM_AARCH64 && w->thread->raw.registers >= 33) {
        Dwarf_Word v[32];
        for (int i = 0; i < 32; i++) v[i] = r[i];
        dwfl_thread_state_register_pc(thread, w->pc);
        return dwfl_thread_state_registers(thread, 0, 32, v);
    }
    return false;
}

static int on_frame(Dwfl_Frame *state, void *argument)
{
    struct walk *w = argument;
    Dwarf_Addr pc;
    bool activation;
    if (!dwfl_frame_pc(state, &pc, &activation) || !pc) return DWARF_CB_ABORT;
    bool after = !activation || w->called;
    w->called = false;
    fdri_bundle_frame_at(w->file, w->thread, pc, after, false);
    return w->thread->frame_count < FDRI_BUNDLE_FRAMES_MAX ? DWARF_CB_OK : DWARF_CB_ABORT;
}

void fdri_bundle_unwind(struct fdr_file *f, struct fdri_bundle_thread *t)
{
    static const Dwfl_Thread_Callbacks ways = {next_thread, NULL, read_memory, set_registers, NULL, NULL};
    uint64_t back;
    Dwfl *dwfl = process_of(f);
    if (!dwfl) return;
    struct walk *w = f->bundle->unwinder;
    w->file = f;
    w->thread = t;
    w->pc = t->raw.pc;
    w->sp = t->raw.sp;
    w->called = false;
    if (!module_at(dwfl, w->pc) && fdri_bundle_word(t, w->sp, &back) && module_at(dwfl, back)) {
        fdri_bundle_frame_at(f, t, w->pc, false, false);
        w->pc = back;
        w->sp += 8;
        w->called = true;
    }
    if (!w->attached) w->attached = dwfl_attach_state(dwfl, NULL, (pid_t)f->sb.pid, &ways, w);
    if (!w->attached) return;
    /* also true if a stack word is missing */
    bool ended = dwfl_getthread_frames(dwfl, (pid_t)t->raw.tid, on_frame, w) == 0;
    t->whole = ended && !t->beyond;
}
