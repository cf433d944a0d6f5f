/* SPDX-License-Identifier: MIT */
/* The text of an ask and of its answers. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/trigger/job_asks.h"

size_t fdri_trigger_ask_write(const struct fdri_trigger_ask *a, char *text, size_t bytes)
{
    int n = snprintf(text, bytes, "fdr-ask 1 %016" PRIx64 " %d %" PRIu64 " %.63s\n%.159s\n", a->id, a->rank, a->at_ns,
                     a->host, a->reason);
    return n > 0 && (size_t)n < bytes ? (size_t)n : 0;
}

bool fdri_trigger_ask_read(const char *text, struct fdri_trigger_ask *a)
{
    int used = 0;
    *a = (struct fdri_trigger_ask){0};
    if (sscanf(text, "fdr-ask 1 %" SCNx64 " %d %" SCNu64 " %63s%n", &a->id, &a->rank, &a->at_ns, a->host, &used) != 4 ||
        text[used] != '\n')
        return false;
    const char *reason = text + used + 1;
    size_t n = strcspn(reason, "\n");
    snprintf(a->reason, sizeof a->reason, "%.*s", (int)(n < sizeof a->reason ? n : sizeof a->reason - 1), reason);
    return true;
}

static void add_one(struct fdri_trigger_answers *a, unsigned long rank, bool failed)
{
    if (rank >= FDRI_TRIGGER_RANKS || a->answered[rank]) return;
    a->answered[rank] = failed ? 2 : 1;
    if (failed) a->failed++;
    else a->taken++;
}

void fdri_trigger_answers_add(struct fdri_trigger_answers *a, const char *text)
{
    static const char begin[] = "rank ";
    for (const char *line = text; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        char *end;
        if (strncmp(line, begin, sizeof begin - 1) != 0) continue;
        unsigned long rank = strtoul(line + sizeof begin - 1, &end, 10);
        if (end != line + sizeof begin - 1) add_one(a, rank, strncmp(end, " failed", 7) == 0);
    }
}

bool fdri_trigger_answers_all(const struct fdri_trigger_answers *a)
{
    return a->size && a->taken + a->failed >= a->size;
}

struct text {
    char *at, *end;
};
static void put(struct text *t, const char *before, uint32_t from, uint32_t to)
{
    int n = from == to ? snprintf(t->at, (size_t)(t->end - t->at), "%s%u", before, from)
                       : snprintf(t->at, (size_t)(t->end - t->at), "%s%u-%u", before, from, to);
    t->at += n > 0 && n < t->end - t->at ? n : 0;
    *t->at = 0; /* a number that does not fit is left out whole */
}

/* "; not reached: 3, 5-7": the ranks with this mark. */
static void put_ranks(struct text *t, const struct fdri_trigger_answers *a, uint8_t mark, const char *words)
{
    bool first = true;
    for (uint32_t i = 0; i < a->size && i < FDRI_TRIGGER_RANKS; i++) {
        uint32_t to = i;
        if (a->answered[i] != mark) continue;
        while (to + 1 < a->size && to + 1 < FDRI_TRIGGER_RANKS && a->answered[to + 1] == mark) to++;
        put(t, first ? words : ", ", i, to);
        first = false;
        i = to;
    }
}

void fdri_trigger_answers_say(const struct fdri_trigger_answers *a, char *text, size_t bytes)
{
    if (a->size) snprintf(text, bytes, "%u of %u ranks took a snapshot", a->taken, a->size);
    else snprintf(text, bytes, "%u ranks took a snapshot; the size of the job is not known", a->taken);
    struct text t = {text + strlen(text), text + bytes};
    put_ranks(&t, a, 0, "; not reached: ");
    put_ranks(&t, a, 2, "; could take none: ");
}
