/* SPDX-License-Identifier: MIT */
/* Return addresses of a thread: by frame pointers, or by libgcc's unwinder. */
#ifndef FDRI_SAMPLER_SAMPLES_FRAME_WALK_H
#define FDRI_SAMPLER_SAMPLES_FRAME_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/stack/context.h"

/* Working memory for a sample. It is not on the stack, because an alternate stack of the program may have little room
 * besides the kernel's frame. */
enum { FDRI_SAMPLES_FRAMES_MAX = 128, FDRI_SAMPLES_WINDOW = 2048 };
struct fdri_samples_frames {
    uint32_t count;
    bool cut;
    uint64_t address[FDRI_SAMPLES_FRAMES_MAX];
};
struct fdri_samples_window { /* a copied piece of the thread's stack */
    uint64_t from, to;
    uint64_t word[FDRI_SAMPLES_WINDOW / 8];
};
/* A cache of direct calls in the program's code, by return address: reading code costs a system call. */
enum { FDRI_SAMPLES_CALLS = 16 };
struct fdri_samples_calls {
    uint32_t tables; /* number of the table of loaded files for which it is valid */
    struct fdri_samples_call {
        uint64_t address, target;
    } call[FDRI_SAMPLES_CALLS];
};

/* ---- frame_walk.c ---- */
/* Follows frame pointers upwards; never touches unmapped memory. Async-signal-safe. */
void fdri_samples_walk(struct fdri_samples_frames *f, struct fdri_samples_window *w, const struct fdri_stack_context *c,
                       struct fdri_samples_calls *known);
/* True if the address lies in code of a loaded file. */
bool fdri_samples_walk_is_code(uint64_t address);
/* True if `address` is the return address of a direct call to the function at `pc`. A function that calls nothing may
 * have no frame, and only this test finds its caller. */
bool fdri_samples_walk_is_caller(struct fdri_samples_calls *known, uint64_t address, uint64_t pc);
/* Reports if this process may not read its own stacks. */
void fdri_samples_walk_probe(void);
/* Updates the table of loaded code. True: it has changed. Asks the loader, so not for handlers. */
bool fdri_samples_walk_modules(void);

/* ---- unwind.c ---- */
void fdri_samples_unwind_warm(void); /* loads the unwinder, before a handler needs it */
/* Return addresses of the calling thread above `pc`, by libgcc's unwinder. For the handler. */
void fdri_samples_unwind(struct fdri_samples_frames *f, uint64_t pc);

#endif
