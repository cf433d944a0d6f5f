/* SPDX-License-Identifier: MIT */
/* Presents the records of a stream to the recorder. */
#ifndef FDRI_TOOLS_REPLAY_PLAY_H
#define FDRI_TOOLS_REPLAY_PLAY_H

#include "tools/replay/event_stream.h"

/* Defines all regions, communicators, metrics, markers and event types with the recorder and puts its ids into the
 * records. The recorder must be running. False: out of memory. */
bool play_prepare(struct streams *streams);
/* Presents records [from, to), the first of them dt ns after `time_ns`. Returns the time reached. */
uint64_t play(const struct stream *stream, size_t from, size_t to, uint64_t time_ns);
/* Leaves all regions that are open at the end of the stream. */
void close_open(const struct stream *stream, uint64_t time_ns);

#endif
