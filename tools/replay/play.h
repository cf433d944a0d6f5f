/* SPDX-License-Identifier: MIT */
#ifndef FDRI_TOOLS_REPLAY_PLAY_H
#define FDRI_TOOLS_REPLAY_PLAY_H

#include "tools/replay/event_stream.h"

/* Defines all regions, communicators, metrics, markers and event types with the recorder, which must be running, and
 * puts its ids into the records. False: out of memory. */
bool play_prepare(struct streams *streams);
/* Presents records [from, to), the first of them dt ns after `time_ns`; returns the time reached. */
uint64_t play(const struct stream *stream, size_t from, size_t to, uint64_t time_ns);
/* Leaves what is open at the end of the stream. */
void close_open(const struct stream *stream, uint64_t time_ns);

#endif
