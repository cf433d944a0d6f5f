/* SPDX-License-Identifier: MIT */
/* Opens ELF files, compares build ids, finds separate debug files. */
#define _GNU_SOURCE
#include "base/elf/elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/fd/open_high.h"

/* More sections have only files that are linked again. Notes longer than this are no build ids. */
enum { SECTIONS_MOST = 65536, NOTE_MOST = 4096, LINK_MOST = 256, ID_MOST = 64 };
#define DEBUG_ROOT "/usr/lib/debug"

size_t fdri_elf_read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
    size_t got = 0;
    while (got < bytes && offset + got <= INT64_MAX) {
        ssize_t n = pread(fd, (char *)to + got, fdri_bits_min(bytes - got, 1 << 20), (off_t)(offset + got));
        if (n <= 0) break; /* the end; no handler interrupts it with EINTR on a regular file */
        got += (size_t)n;
    }
    return got;
}

/* The result of a walk over the sections. */
struct found {
    struct fdri_elf_part symbols, symbols_text, dynamic, dynamic_text;
    char link[LINK_MOST]; /* .gnu_debuglink; "": none */
    char build_id[2 * ID_MOST + 1];
};

static bool read_header(int fd, ElfW(Ehdr) * h)
{
    static const unsigned char magic[] = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3};
    const unsigned char *native = (const unsigned char[]){sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32,
                                                          *(const uint8_t *)&(const uint16_t){1} ? ELFDATA2LSB
                                                                                                 : ELFDATA2MSB};
    return fdri_elf_read_at(fd, h, sizeof *h, 0) == sizeof *h && !memcmp(h->e_ident, magic, sizeof magic) &&
           h->e_ident[EI_CLASS] == native[0] && h->e_ident[EI_DATA] == native[1] &&
           h->e_shentsize == sizeof(ElfW(Shdr));
}

static bool read_section(int fd, const ElfW(Ehdr) * h, uint64_t i, ElfW(Shdr) * s)
{
    return i < SECTIONS_MOST && h->e_shoff <= INT64_MAX - SECTIONS_MOST * sizeof *s &&
           fdri_elf_read_at(fd, s, sizeof *s, h->e_shoff + i * sizeof *s) == sizeof *s;
}

static void take_table(int fd, const ElfW(Ehdr) * h, const ElfW(Shdr) * s, struct fdri_elf_part *table,
                       struct fdri_elf_part *text)
{
    ElfW(Shdr) strings;
    if (table->bytes || s->sh_entsize != sizeof(ElfW(Sym)) || !read_section(fd, h, s->sh_link, &strings) ||
        strings.sh_type != SHT_STRTAB)
        return;
    *table = (struct fdri_elf_part){s->sh_offset, s->sh_size};
    *text = (struct fdri_elf_part){strings.sh_offset, strings.sh_size};
}

static void take_build_id(int fd, const ElfW(Shdr) * s, struct found *to)
{
    char notes[NOTE_MOST];
    size_t bytes = fdri_elf_read_at(fd, notes, fdri_bits_min(s->sh_size, sizeof notes), s->sh_offset);
    for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= bytes && !to->build_id[0];) {
        ElfW(Nhdr) n;
        memcpy(&n, notes + at, sizeof n);
        uint64_t name = at + sizeof n, id = name + ((n.n_namesz + 3ull) & ~3ull);
        at = id + ((n.n_descsz + 3ull) & ~3ull);
        if (n.n_type != NT_GNU_BUILD_ID || n.n_namesz != 4 || at > bytes || n.n_descsz > ID_MOST ||
            memcmp(notes + name, "GNU", 4))
            continue;
        for (uint32_t i = 0; i < n.n_descsz; i++)
            snprintf(to->build_id + (size_t)2 * i, 3, "%02x", (unsigned char)notes[id + i]);
    }
}

static void take_link(int fd, const ElfW(Shdr) * s, const ElfW(Shdr) * names, struct found *to)
{
    static const char wanted[] = ".gnu_debuglink";
    char name[sizeof wanted];
    if (s->sh_size >= sizeof to->link ||
        fdri_elf_read_at(fd, name, sizeof name, names->sh_offset + s->sh_name) != sizeof name ||
        memcmp(name, wanted, sizeof name))
        return;
    size_t bytes = fdri_elf_read_at(fd, to->link, s->sh_size, s->sh_offset);
    to->link[bytes] = 0;
    if (strchr(to->link, '/')) to->link[0] = 0; /* a name, not a path */
}

static bool look(int fd, struct found *to)
{
    ElfW(Ehdr) h;
    ElfW(Shdr) s, names = {0};
    memset(to, 0, sizeof *to);
    if (!read_header(fd, &h)) return false;
    bool named = read_section(fd, &h, h.e_shstrndx, &names) && names.sh_type == SHT_STRTAB;
    uint64_t count = h.e_shnum;
    if (!count && h.e_shoff && read_section(fd, &h, 0, &s)) count = s.sh_size; /* too many for the header */
    for (uint64_t i = 0; i < count && read_section(fd, &h, i, &s); i++) {
        if (s.sh_type == SHT_SYMTAB) take_table(fd, &h, &s, &to->symbols, &to->symbols_text);
        if (s.sh_type == SHT_DYNSYM) take_table(fd, &h, &s, &to->dynamic, &to->dynamic_text);
        if (s.sh_type == SHT_NOTE) take_build_id(fd, &s, to);
        if (s.sh_type == SHT_PROGBITS && !(s.sh_flags & SHF_ALLOC) && named) take_link(fd, &s, &names, to);
    }
    return true;
}

/* Opens a regular file that has this build id; -1: there is none. Another kind of file could block. */
static int open_of_build(const char *path, const char *build_id, struct found *to)
{
    struct stat st;
    int fd = fdri_fd_open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0) return -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && look(fd, to) && (!*build_id || !strcmp(to->build_id, build_id)))
        return fd;
    close(fd);
    return -1;
}

static int open_debug_file(struct found *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int open_debug_file(struct found *to, const char *format, ...)
{
    char path[PATH_MAX], build_id[sizeof to->build_id];
    struct found other;
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(path, sizeof path, format, ap);
    va_end(ap);
    strcpy(build_id, to->build_id);
    int fd = n > 0 && (size_t)n < sizeof path ? open_of_build(path, build_id, &other) : -1;
    if (fd >= 0 && other.symbols.bytes) {
        *to = other;
        return fd;
    }
    if (fd >= 0) close(fd);
    return -1;
}

/* The places are those of gdb and elfutils. The file must have the build id: its name alone proves nothing. */
static int find_debug_file(const char *path, struct found *to)
{
    char real[PATH_MAX], link[LINK_MOST];
    int fd = -1;
    if (strlen(to->build_id) < 4) return -1;
    fd = open_debug_file(to, DEBUG_ROOT "/.build-id/%.2s/%s.debug", to->build_id, to->build_id + 2);
    if (fd >= 0 || !to->link[0] || !realpath(path, real)) return fd;
    *strrchr(real, '/') = 0;
    strcpy(link, to->link);
    fd = open_debug_file(to, "%s/%s", real, link);
    if (fd < 0) fd = open_debug_file(to, "%s/.debug/%s", real, link);
    return fd >= 0 ? fd : open_debug_file(to, DEBUG_ROOT "%s/%s", real, link);
}

bool fdri_elf_open(struct fdri_elf_file *f, const char *path, const char *build_id)
{
    struct found own;
    f->fd = open_of_build(path, build_id, &own);
    if (f->fd < 0) return false;
    int other = own.symbols.bytes ? -1 : find_debug_file(path, &own);
    if (other >= 0) {
        close(f->fd);
        f->fd = other;
    }
    f->dynamic = !own.symbols.bytes;
    f->symbols = f->dynamic ? own.dynamic : own.symbols;
    f->text = f->dynamic ? own.dynamic_text : own.symbols_text;
    return true;
}

void fdri_elf_close(struct fdri_elf_file *f)
{
    if (f->fd >= 0) close(f->fd);
    f->fd = -1;
}
