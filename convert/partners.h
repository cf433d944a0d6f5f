/* SPDX-License-Identifier: MIT */
/* Which messages and collectives have their other ends in the recordings at hand.
 *
 * Viewers pair the n-th send of an envelope with the n-th receive. After reductions that would pair wrong messages. So
 * formats let viewers pair only what has a partner here by its ordinal, in the same order on both sides. */
#ifndef FDRI_CONVERT_PARTNERS_H
#define FDRI_CONVERT_PARTNERS_H

#include <fdr/reader.h>

struct fdri_convert_partners;

/* Reads the messages and collectives that select[i] chooses of file i; select NULL: all. NULL: no memory. */
struct fdri_convert_partners *fdri_convert_partners_open(struct fdr_file *const *files, size_t count,
                                                         const struct fdr_select *select);
void fdri_convert_partners_close(struct fdri_convert_partners *p);

/* The world rank of a file; -1: not known, or two files say the same. */
int fdri_convert_partners_rank(const struct fdri_convert_partners *p, size_t file);
/* All world ranks: of files, of peers, of members of communicators; ascending. */
const uint32_t *fdri_convert_partners_ranks(const struct fdri_convert_partners *p, size_t *count);
/* The place of a rank among them; their number: it is none of them. */
size_t fdri_convert_partners_place(const struct fdri_convert_partners *p, uint32_t rank);

/* May a viewer pair this send or receive by the order of its envelope? */
bool fdri_convert_partners_message(const struct fdri_convert_partners *p, size_t file, const struct fdr_read_event *e);
/* The same for a collective of all members with recordings. */
bool fdri_convert_partners_collective(const struct fdri_convert_partners *p, size_t file,
                                      const struct fdr_read_event *e);
/* The ordinal of a message or collective, also of one that was open at first; false: it is not known for sure. */
bool fdri_convert_partners_ordinal(const struct fdri_convert_partners *p, size_t file, const struct fdr_read_event *e,
                                   uint64_t *ordinal);

#endif
