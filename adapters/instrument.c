/* SPDX-License-Identifier: MIT */
/* The compiler's function hooks (gcc and clang: -finstrument-functions). Each call of an instrumented function becomes
 * a call of the region that the reader later finds at its address.
 *
 * The recording starts in a constructor, not at the first hook. A hook may run in a signal handler, inside an allocator
 * or under a lock, where starting a recording is not safe. Objects linked with this library are initialised after it.
 * An object that finds the hooks without being linked may run constructors earlier; those are not recorded. Before the
 * start, after fdr_finalize and in a forked child the hooks find recording off and return.
 *
 * A hook is one jump. It saves nothing and has no stack frame. So it is as safe in signal handlers, in threads and
 * under exceptions as the recording function to which it jumps. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fdr/fdr.h>

#define HOOK FDR_API __attribute__((no_instrument_function, hot))

HOOK void __cyg_profile_func_enter(void *function, void *call_site);
HOOK void __cyg_profile_func_exit(void *function, void *call_site);

/* Jumps through the address table directly, not through a stub of the PLT. */
#if __has_attribute(noplt)
extern __typeof__(fdr_enter_function_) fdr_enter_function_ __attribute__((noplt));
extern __typeof__(fdr_leave_address) fdr_leave_address __attribute__((noplt));
#endif

void __cyg_profile_func_enter(void *function, void *call_site)
{
    fdr_enter_function_(function, call_site, __builtin_dwarf_cfa(), __builtin_return_address(0));
}

void __cyg_profile_func_exit(void *function, void *call_site)
{
    (void)call_site;
    fdr_leave_address(function);
}

static inline __attribute__((no_instrument_function)) int recording(void)
{
    return __atomic_load_n(&fdr_switch_.on, __ATOMIC_RELAXED) != 0;
}

/* The next loaded module may lie at the same addresses, with other functions. */
HOOK int dlclose(void *handle)
{
    static int (*real)(void *);
    int (*close)(void *) = __atomic_load_n(&real, __ATOMIC_RELAXED);
    if (!close) {
        *(void **)&close = dlsym(RTLD_NEXT, "dlclose");
        if (!close) return -1;
        __atomic_store_n(&real, close, __ATOMIC_RELAXED);
    }
    int status = close(handle);
    if (status == 0 && recording()) fdr_modules_changed();
    return status;
}

/* A Fortran main program first sets up libgfortran. That installs its own handlers of fault signals, which print a
 * backtrace and do not call the previous ones. fdr's handlers go back in front. Weak: libgfortran.a defines this in a
 * file with other names that are needed. */
HOOK __attribute__((weak)) void _gfortran_set_options(int count, int *options);
void _gfortran_set_options(int count, int *options)
{
    void (*real)(int, int *);
    *(void **)&real = dlsym(RTLD_NEXT, "_gfortran_set_options");
    if (real) real(count, options);
    if (recording()) fdr_handlers_chain();
}

/* 101 is the first priority that is not reserved: in a static program this runs before the program's own constructors.
 * fdr_init reports a failure in one line; the program then runs unrecorded. */
__attribute__((constructor(101), no_instrument_function, visibility("hidden"))) void fdr_instrument_start_(void);
void fdr_instrument_start_(void)
{
    int saved = errno;
    (void)fdr_init(NULL);
    errno = saved;
}
