/* SPDX-License-Identifier: MIT */
/* Which file a descriptor is: by the path it was opened with, else as /proc/self/fd names it, once. The tables are of
 * fixed size and without locks. Descriptors are forgotten when they are closed or replaced through the C library.
 *
 * A program may open files without end. So only the first 1,024 names are files of their own. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "adapters/io/io_adapter.h"

enum { DESCRIPTORS = 65536, NAMES = 1024, PLACES = 2 * NAMES, PATH = 1024 };
#define NOT_NAMED UINT32_MAX /* there was no room for its definition */

static uint32_t of_descriptor[DESCRIPTORS]; /* atomic: file, 0: not looked up, NOT_NAMED */

/* ---- names: found by their hash ---- */

static struct {
    uint64_t hash; /* atomic; 0: free. Set once */
    uint32_t file; /* atomic; 0: not known yet */
} place[PLACES];
static uint32_t names;

static uint64_t hash_of(const char *name)
{
    uint64_t h = 0xCBF29CE484222325u;
    while (*name) h = (h ^ (uint8_t)*name++) * 0x100000001B3u;
    h ^= h >> 31;
    return h ? h : 1;
}

/* The place of this name; PLACES: it has none, and there are enough names. */
static unsigned place_of(uint64_t hash)
{
    for (unsigned i = hash % PLACES;; i = (i + 1) % PLACES) {
        uint64_t there = __atomic_load_n(&place[i].hash, __ATOMIC_RELAXED);
        if (there == hash) return i;
        if (there) continue;
        if (__atomic_load_n(&names, __ATOMIC_RELAXED) >= NAMES) return PLACES;
        if (__atomic_compare_exchange_n(&place[i].hash, &there, hash, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            __atomic_fetch_add(&names, 1, __ATOMIC_RELAXED);
            return i;
        }
        if (there == hash) return i;
    }
}

static fdr_io_file other_files(void)
{
    static uint32_t others; /* atomic. Definitions take a lock */
    fdr_io_file file = __atomic_load_n(&others, __ATOMIC_RELAXED);
    if (file) return file;
    file = fdr_io_file_define("[other files]");
    __atomic_store_n(&others, file, __ATOMIC_RELAXED);
    return file;
}

fdr_io_file fdri_io_file_named(const char *name)
{
    unsigned i = place_of(hash_of(name));
    if (i == PLACES) return other_files();
    fdr_io_file file = __atomic_load_n(&place[i].file, __ATOMIC_RELAXED);
    if (file) return file;
    file = fdr_io_file_define(name); /* two threads get the same */
    if (file) __atomic_store_n(&place[i].file, file, __ATOMIC_RELAXED);
    return file;
}

/* ---- descriptors ---- */

/* Appends decimal digits: no function of the C library that formats may be called in a handler. */
static void number(char *to, unsigned n)
{
    char digits[12], *from = digits + sizeof digits;
    do *--from = (char)('0' + n % 10);
    while (n /= 10);
    while (from < digits + sizeof digits) *to++ = *from++;
    *to = 0;
}

/* Writes the name of an open descriptor. False: it is not open, or /proc is not there. */
static bool name_of(int fd, char name[PATH])
{
    char link[32] = "/proc/self/fd/";
    number(link + strlen(link), (unsigned)fd);
    long n = syscall(SYS_readlinkat, AT_FDCWD, link, name, PATH - 1);
    if (n <= 0) return false;
    name[n] = 0;
    /* each one has a number of its own */
    if (!strncmp(name, "pipe:", 5)) strcpy(name, "[pipe]");
    if (!strncmp(name, "socket:", 7)) strcpy(name, "[socket]");
    return true;
}

static fdr_io_file look_up(int fd)
{
    char name[PATH];
    int error = errno;
    bool open = name_of(fd, name);
    /* one name for all: daemons close thousands that are not open */
    fdr_io_file file = fdri_io_file_named(open ? name : fd < 0 ? "[no descriptor]" : "[not open]");
    if (open) fdri_io_file_is(fd, file);
    errno = error;
    return file;
}

fdr_io_file fdri_io_file_of(int fd)
{
    uint32_t known = (unsigned)fd < DESCRIPTORS ? __atomic_load_n(&of_descriptor[fd], __ATOMIC_RELAXED) : 0;
    if (__builtin_expect(known != 0, 1)) return known == NOT_NAMED ? 0 : known;
    return look_up(fd);
}

/* A child of vfork() has descriptors of its own, but its parent's memory, where the recording is on. */
static bool of_this_process(void)
{
    return !__atomic_load_n(&fdr_switch_.on, __ATOMIC_RELAXED) ||
           (uint32_t)getpid() == __atomic_load_n(&fdr_switch_.pid, __ATOMIC_RELAXED);
}

void fdri_io_file_is(int fd, fdr_io_file file)
{
    if ((unsigned)fd >= DESCRIPTORS || !of_this_process()) return;
    __atomic_store_n(&of_descriptor[fd], file ? file : NOT_NAMED, __ATOMIC_RELAXED);
}

void fdri_io_forget(unsigned from, unsigned to)
{
    for (unsigned fd = from; fd <= to && fd < DESCRIPTORS; fd++) {
        if (!__atomic_load_n(&of_descriptor[fd], __ATOMIC_RELAXED)) continue;
        if (!of_this_process()) return;
        __atomic_store_n(&of_descriptor[fd], 0, __ATOMIC_RELAXED);
    }
}

/* ---- paths ---- */

static long folder(int directory, char name[PATH])
{
    if (directory == AT_FDCWD) return syscall(SYS_getcwd, name, PATH) > 0 ? (long)strlen(name) : -1;
    return name_of(directory, name) ? (long)strlen(name) : -1;
}

fdr_io_file fdri_io_file_at(int directory, const char *path)
{
    char name[PATH];
    int error = errno;
    if (!path) return fdri_io_file_named("[no path]");
    if (*path == '/') return fdri_io_file_named(path);
    while (path[0] == '.' && path[1] == '/') path += 2;
    long n = folder(directory, name);
    errno = error;
    if (n < 0 || n + 1 + (long)strlen(path) >= PATH) return fdri_io_file_named(path);
    if (n && name[n - 1] != '/') name[n++] = '/';
    strcpy(name + n, path);
    return fdri_io_file_named(name);
}
