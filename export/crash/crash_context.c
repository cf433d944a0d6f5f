/* SPDX-License-Identifier: MIT */
/* Facts for bundles that are known at start: command line and environment without secrets, and the machine. Also the
 * places where the C and C++ runtimes store the reason of an abort. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/system/static_tls.h"
#include "export/crash/crash_path.h"
#include "format/arena/crash_section.h"

enum { CMDLINE_BYTES = 4096, ENVIRONMENT_BYTES = 8192 };

static bool secret(const char *name, size_t bytes)
{
    static const char *const words[] = {"TOKEN", "SECRET", "PASS", "KEY", "JWT", "AUTH", "CREDENTIAL", "COOKIE", "PWD"};
    for (size_t w = 0; w < sizeof words / sizeof *words; w++)
        for (size_t n = strlen(words[w]), i = 0; i + n <= bytes; i++)
            if (!strncasecmp(name + i, words[w], n)) return true;
    return false;
}

static void add_entry(const char *name, const char *text, size_t bytes)
{
    struct fdri_arena_crash_entry e = {FDRI_ARENA_CRASH_TEXT, (uint32_t)(strlen(name) + 1 + bytes)};
    uint32_t used = fdri_crash.context_bytes, whole = (uint32_t)(sizeof e + e.bytes + 7) & ~7u;
    if (used + whole > FDRI_CRASH_CONTEXT_BYTES) return;
    uint8_t *to = fdri_crash.context + used;
    memset(to, 0, whole);
    memcpy(to, &e, sizeof e);
    memcpy(to + sizeof e, name, strlen(name));
    memcpy(to + sizeof e + strlen(name) + 1, text, bytes);
    fdri_crash.context_bytes += whole;
    fdri_crash.context_count++;
}

struct text {
    char *at, *end;
};
static void put_bytes(struct text *t, const char *from, size_t bytes)
{
    size_t room = (size_t)(t->end - t->at);
    if (bytes > room) bytes = room;
    memcpy(t->at, from, bytes);
    t->at += bytes;
}

/* Bytes of `text` that may be shown: up to the first '=' or ':' behind a name that suggests a secret. */
static size_t shown_of(const char *text)
{
    size_t n = strlen(text), from = 0;
    for (size_t i = strcspn(text, "=:"); i < n; i = from + strcspn(text + from, "=:")) {
        if (secret(text + from, i - from)) return i + 1;
        from = i + 1;
    }
    return n;
}

/* The password in an address "://user:password@host", or NULL. `address` begins with "://". */
static const char *password_of(const char *address, size_t *bytes)
{
    size_t authority = strcspn(address + 3, "/?#"), user;
    const char *at = memrchr(address + 3, '@', authority);
    if (!at || (user = strcspn(address + 3, ":")) >= (size_t)(at - address - 3)) return NULL;
    const char *from = address + 3 + user + 1;
    *bytes = (size_t)(at - from);
    return from;
}

/* The credentials behind "Bearer " or "Basic ", or NULL. */
static const char *credentials_of(const char *text, size_t *bytes)
{
    size_t word = !strncasecmp(text, "bearer ", 7) ? 7 : !strncasecmp(text, "basic ", 6) ? 6 : 0;
    if (!word) return NULL;
    text += word + strspn(text + word, " ");
    *bytes = strcspn(text, " \"',;");
    return *bytes ? text : NULL;
}

static bool in_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/* The first secret part of `text` that begins at p or later; NULL: none. */
static const char *hidden_in(const char *text, const char *p, size_t *bytes)
{
    const char *from = NULL;
    for (; !from && *p; p++) {
        if (!strncmp(p, "://", 3)) from = password_of(p, bytes);
        else if (p == text || !in_word(p[-1])) from = credentials_of(p, bytes);
    }
    return from;
}

static void put_text(struct text *t, const char *text)
{
    const char *p = text, *end = text + shown_of(text), *from;
    size_t bytes;
    while (p < end && (from = hidden_in(text, p, &bytes)) && from < end) {
        put_bytes(t, p, (size_t)(from - p)), put_bytes(t, "***", 3);
        p = from + bytes;
    }
    if (p < end) put_bytes(t, p, (size_t)(end - p));
    if (*end) put_bytes(t, "***", 3);
}

/* True if the next argument is this one's value: "--token VALUE", "Authorization: VALUE", "Bearer VALUE". */
static bool next_is_secret(const char *argument)
{
    size_t n = strlen(argument), is = strcspn(argument, "=:");
    const char *word = strrchr(argument, ' ') ? strrchr(argument, ' ') + 1 : argument;
    if (!strcasecmp(word, "bearer") || !strcasecmp(word, "basic")) return true;
    return (is == n && *argument == '-' && secret(argument, n)) || (is + 1 == n && secret(argument, is));
}

/* Hides the values of secrets: NAME=value, --name=value, --name value, --env=NAME=value, "Name: value", passwords in
 * addresses. */
static void put_argument(struct text *t, const char *argument, bool *hide)
{
    bool hidden = *hide;
    *hide = next_is_secret(argument);
    if (hidden) put_bytes(t, "***", 3);
    else put_text(t, argument);
    put_bytes(t, "", 1);
}

static void command_line(void)
{
    static char raw[CMDLINE_BYTES], shown[CMDLINE_BYTES];
    struct text t = {shown, shown + sizeof shown};
    bool hide = false;
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, raw, sizeof raw - 1) : 0;
    if (fd >= 0) close(fd);
    if (n <= 0) return;
    raw[n] = 0;
    for (const char *p = raw; p < raw + n; p += strlen(p) + 1) put_argument(&t, p, &hide);
    add_entry("cmdline", shown, (size_t)(t.at - shown));
}

static void environment(void)
{
    static const char *const prefixes[] = {"FDR_", "OMP_", "SLURM_", "OMPI_", "PMI_", "PMIX_"};
    static char shown[ENVIRONMENT_BYTES];
    struct text t = {shown, shown + sizeof shown};
    for (char **e = environ; e && *e; e++) {
        const char *is = strchr(*e, '=');
        bool listed = false;
        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
            listed |= !strncmp(*e, prefixes[i], strlen(prefixes[i]));
        if (!listed || !is) continue;
        put_text(&t, *e);
        put_bytes(&t, "\n", 1);
    }
    add_entry("environment", shown, (size_t)(t.at - shown));
}

static void find_abort(void)
{
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    void *at = dlsym(RTLD_DEFAULT, "abort");
    fdri_crash.abort_bytes = 0;
    if (!at || !dladdr1(at, &info, (void **)(void *)&symbol, RTLD_DL_SYMENT) || !symbol) return;
    fdri_crash.abort_at = (uint64_t)(uintptr_t)at;
    fdri_crash.abort_bytes = symbol->st_size;
}

/* True if the calling thread's exception state is in static thread-local memory. With a C++ library loaded by dlopen it
 * is allocated at a thread's first use. A handler that interrupted malloc or its abort() would then deadlock. */
static bool exceptions_at_hand(void)
{
    void *(*globals)(void);
    *(void **)(void *)&globals = dlsym(RTLD_DEFAULT, "__cxa_get_globals");
    return globals && fdri_system_is_static_tls(globals());
}

/* Finds the functions only if the C++ library was loaded at program start. */
static void find_exceptions(void)
{
    static const char *const whats[FDRI_CRASH_WHATS] = {"_ZNKSt13runtime_error4whatEv",
                                                        "_ZNKSt11logic_error4whatEv",
                                                        "_ZNKSt9exception4whatEv",
                                                        "_ZNKSt9bad_alloc4whatEv",
                                                        "_ZNKSt20bad_array_new_length4whatEv",
                                                        "_ZNKSt8bad_cast4whatEv",
                                                        "_ZNKSt10bad_typeid4whatEv",
                                                        "_ZNKSt13bad_exception4whatEv",
                                                        "_ZNKSt17bad_function_call4whatEv",
                                                        "_ZNKSt12bad_weak_ptr4whatEv",
                                                        "_ZNKSt12future_error4whatEv",
                                                        "_ZNKSt10filesystem7__cxx1116filesystem_error4whatEv"};
    fdri_crash.exception_type = NULL;
    fdri_crash.current_exception = NULL;
    if (!exceptions_at_hand()) return;
    *(void **)(void *)&fdri_crash.exception_type = dlsym(RTLD_DEFAULT, "__cxa_current_exception_type");
    *(void **)(void *)&fdri_crash.current_exception = dlsym(RTLD_DEFAULT, "_ZSt17current_exceptionv");
    const char *table = dlsym(RTLD_DEFAULT, "_ZTVN10__cxxabiv120__si_class_type_infoE");
    fdri_crash.single_base = table ? table + 2 * sizeof(void *) : NULL;
    for (int i = 0; i < FDRI_CRASH_WHATS; i++) fdri_crash.what_function[i] = dlsym(RTLD_DEFAULT, whats[i]);
}

void fdri_crash_context(void)
{
    struct utsname u;
    char text[sizeof u + 8];
    fdri_crash.context_bytes = fdri_crash.context_count = 0;
    command_line();
    environment();
    if (uname(&u) == 0) {
        snprintf(text, sizeof text, "%s %s %s %s %s", u.sysname, u.nodename, u.release, u.version, u.machine);
        add_entry("uname", text, strlen(text));
    }
    fdri_crash.abort_message = dlvsym(RTLD_DEFAULT, "__abort_msg", "GLIBC_PRIVATE");
    find_exceptions();
    find_abort();
}
