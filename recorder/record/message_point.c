/* SPDX-License-Identifier: MIT */
/* Messages and collectives, with and without ordinals. */
#include <fdr/fdr.h>
#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "format/codec/bit_length.h"
#include "format/codec/record_codec.h"
#include "recorder/record/point.h"
#include "recorder/totals/totals.h"

static uint64_t zigzag(int32_t v) { return fdri_codec_zigzag((uint64_t)(int64_t)v); }

static void set_ordinal(struct fdri_record_point *e, uint64_t ordinal)
{
    if (ordinal == FDR_ORDINAL_UNKNOWN) return;
    e->numbered = ordinal & FDR_ORDINAL_AMBIGUOUS ? FDRI_CODEC_NUMBER_AMBIGUOUS : FDRI_CODEC_NUMBER_STATED;
    e->ordinal = ordinal & ~FDR_ORDINAL_AMBIGUOUS;
}

static struct fdri_record_point message(uint32_t id, uint32_t peer, int32_t tag, uint32_t comm, uint64_t bytes)
{
    return (struct fdri_record_point){
        .class_ = FDRI_ARENA_CLASS_MESSAGE, .id = id, .count = 4, .field = {peer, zigzag(tag), comm, bytes}};
}

static void present(const struct fdri_record_point *e, bool live, uint64_t time_ns)
{
    fdri_record_present(e, FDRI_ARENA_VALUE_U64, e->field[3], live, time_ns);
}

static void numbered(uint32_t id, uint32_t peer, int32_t tag, uint32_t comm, uint64_t bytes, uint64_t ordinal,
                     bool live, uint64_t time_ns)
{
    struct fdri_record_point e = message(id, peer, tag, comm, bytes);
    set_ordinal(&e, ordinal);
    present(&e, live, time_ns);
}

void fdr_message_send(uint32_t peer, int32_t tag, fdr_comm_id comm, uint64_t bytes)
{
    numbered(FDRI_CODEC_SEND, peer, tag, comm, bytes, FDR_ORDINAL_UNKNOWN, true, 0);
}
void fdr_message_recv(uint32_t peer, int32_t tag, fdr_comm_id comm, uint64_t bytes)
{
    numbered(FDRI_CODEC_RECV, peer, tag, comm, bytes, FDR_ORDINAL_UNKNOWN, true, 0);
}
void fdr_message_send_at(uint32_t peer, int32_t tag, fdr_comm_id comm, uint64_t bytes, uint64_t time_ns)
{
    numbered(FDRI_CODEC_SEND, peer, tag, comm, bytes, FDR_ORDINAL_UNKNOWN, false, time_ns);
}
void fdr_message_recv_at(uint32_t peer, int32_t tag, fdr_comm_id comm, uint64_t bytes, uint64_t time_ns)
{
    numbered(FDRI_CODEC_RECV, peer, tag, comm, bytes, FDR_ORDINAL_UNKNOWN, false, time_ns);
}
void fdr_message_send_nth(uint32_t peer, int32_t tag, fdr_comm_id comm, uint64_t bytes, uint64_t ordinal)
{
    numbered(FDRI_CODEC_SEND, peer, tag, comm, bytes, ordinal, true, 0);
}
void fdr_message_recv_nth(uint32_t peer, int32_t tag, fdr_comm_id comm, uint64_t bytes, uint64_t ordinal)
{
    numbered(FDRI_CODEC_RECV, peer, tag, comm, bytes, ordinal, true, 0);
}
void fdr_message_send_nth_at(uint32_t peer, int32_t tag, fdr_comm_id comm, uint64_t bytes, uint64_t ordinal,
                             uint64_t time_ns)
{
    numbered(FDRI_CODEC_SEND, peer, tag, comm, bytes, ordinal, false, time_ns);
}
void fdr_message_recv_nth_at(uint32_t peer, int32_t tag, fdr_comm_id comm, uint64_t bytes, uint64_t ordinal,
                             uint64_t time_ns)
{
    numbered(FDRI_CODEC_RECV, peer, tag, comm, bytes, ordinal, false, time_ns);
}

/* ---- a number that is known later ---- */

static void open_receive(struct fdri_record_point e, uint64_t token, bool live, uint64_t time_ns)
{
    e.numbered = FDRI_CODEC_NUMBER_OPEN;
    e.ordinal = token;
    present(&e, live, time_ns);
}
void fdr_message_recv_open(uint32_t peer, int32_t tag, fdr_comm_id comm, uint64_t bytes, uint64_t token)
{
    open_receive(message(FDRI_CODEC_RECV, peer, tag, comm, bytes), token, true, 0);
}
void fdr_message_recv_open_at(uint32_t peer, int32_t tag, fdr_comm_id comm, uint64_t bytes, uint64_t token,
                              uint64_t time_ns)
{
    open_receive(message(FDRI_CODEC_RECV, peer, tag, comm, bytes), token, false, time_ns);
}

static void resolve(uint64_t token, uint64_t ordinal, bool live, uint64_t time_ns)
{
    const struct fdri_record_point e = {
        .class_ = FDRI_ARENA_CLASS_MESSAGE, .id = FDRI_CODEC_RESOLVE, .count = 2, .field = {token, ordinal}};
    fdri_record_present(&e, FDRI_ARENA_VALUE_U64, 0, live, time_ns);
}
void fdr_message_resolve(uint64_t token, uint64_t ordinal) { resolve(token, ordinal, true, 0); }
void fdr_message_resolve_at(uint64_t token, uint64_t ordinal, uint64_t time_ns)
{
    resolve(token, ordinal, false, time_ns);
}

/* ---- collectives: each operation has two ids, for its begin and its end ---- */

static uint32_t id_of(uint32_t operation, uint32_t end)
{
    return (operation < FDRI_CODEC_OPERATION_END ? operation : 0) << 1 | end;
}

static void present_collective(const struct fdri_record_point *e, uint64_t bytes, bool live, uint64_t time_ns)
{
    fdri_record_present(e, FDRI_ARENA_VALUE_U64, bytes, live, time_ns);
}

static void begin(uint32_t operation, bool live, uint64_t time_ns)
{
    const struct fdri_record_point e = {.class_ = FDRI_ARENA_CLASS_COLLECTIVE, .id = id_of(operation, 0)};
    present_collective(&e, 0, live, time_ns);
}
static void begin_nth(uint32_t operation, uint32_t comm, uint64_t ordinal, bool live, uint64_t time_ns)
{
    struct fdri_record_point e = {.class_ = FDRI_ARENA_CLASS_COLLECTIVE, .id = id_of(operation, 0), .field = {comm}};
    set_ordinal(&e, ordinal);
    e.count = e.numbered != FDRI_CODEC_NUMBER_NONE; /* without a number nothing says the communicator */
    present_collective(&e, 0, live, time_ns);
}
static void end(uint32_t operation, uint32_t comm, int32_t root, uint64_t sent, uint64_t received, uint64_t ordinal,
                bool live, uint64_t time_ns)
{
    struct fdri_record_point e = {.class_ = FDRI_ARENA_CLASS_COLLECTIVE,
                                  .id = id_of(operation, 1),
                                  .count = 4,
                                  .field = {comm, zigzag(root), sent, received}};
    uint64_t both = sent;
    fdri_totals_add_value(FDRI_ARENA_VALUE_U64, &both, received);
    set_ordinal(&e, ordinal);
    present_collective(&e, both, live, time_ns);
}
void fdr_collective_begin(uint32_t operation) { begin(operation, true, 0); }
void fdr_collective_begin_at(uint32_t operation, uint64_t time_ns) { begin(operation, false, time_ns); }
void fdr_collective_begin_nth(uint32_t operation, fdr_comm_id comm, uint64_t ordinal)
{
    begin_nth(operation, comm, ordinal, true, 0);
}
void fdr_collective_begin_nth_at(uint32_t operation, fdr_comm_id comm, uint64_t ordinal, uint64_t time_ns)
{
    begin_nth(operation, comm, ordinal, false, time_ns);
}
void fdr_collective_end(uint32_t operation, fdr_comm_id comm, int32_t root, uint64_t sent, uint64_t received)
{
    end(operation, comm, root, sent, received, FDR_ORDINAL_UNKNOWN, true, 0);
}
void fdr_collective_end_at(uint32_t operation, fdr_comm_id comm, int32_t root, uint64_t sent, uint64_t received,
                           uint64_t time_ns)
{
    end(operation, comm, root, sent, received, FDR_ORDINAL_UNKNOWN, false, time_ns);
}
void fdr_collective_end_nth(uint32_t operation, fdr_comm_id comm, int32_t root, uint64_t sent, uint64_t received,
                            uint64_t ordinal)
{
    end(operation, comm, root, sent, received, ordinal, true, 0);
}
void fdr_collective_end_nth_at(uint32_t operation, fdr_comm_id comm, int32_t root, uint64_t sent, uint64_t received,
                               uint64_t ordinal, uint64_t time_ns)
{
    end(operation, comm, root, sent, received, ordinal, false, time_ns);
}
