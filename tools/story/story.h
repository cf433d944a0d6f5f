/* SPDX-License-Identifier: MIT */
/* The story of a recording: what happened to whom and when, what stands out, where detail ends, what to ask next.
 *
 *   sentence.c  one sentence, and how sure it is    screen.c    fdr FILE: the story in a screen
 *   threads.c   what each thread did
 *
 * Neighbours: tools/html/ uses sentence.c; what stands out comes from tools/findings/. */
#ifndef FDRI_TOOLS_STORY_H
#define FDRI_TOOLS_STORY_H

#include "tools/crash.h"

/* Of several recordings together: the story is about one. */
struct story {
    const struct death *death; /* of the recording that it is about */
    bool died;                 /* it is the first death */
    size_t files;
};
/* About the first death; without one about the first recording. */
struct story story_of(struct death *death, size_t files);
/* The event, its victim and its time. */
void story_sentence(const struct story *story, char *text, size_t bytes);
/* How sure that is, and why. */
void story_sure(const struct story *story, char *text, size_t bytes);
/* "lua, rank 2", "lua, pid 17" */
void story_who(const struct fdr_file *file, char *text, size_t bytes);

/* Prints a line for each thread: how much of its life it worked, waited, and was in no call; where most of it went. */
void print_story_threads(struct fdr_file *file, const char *path, size_t most);

#endif
