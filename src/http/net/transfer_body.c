/* SPDX-License-Identifier: MIT */
/* transfer_body.c - passes bodies to their owners; coded ones are decoded a little in each round.
 *
 *     http1_response.c, easy.c ──▶ wr_transfer_body_take ──▶ decoder ──▶ wr_callback_body
 *                                    │              ▲
 *                                    └──▶ waiting ──┘  in later rounds, if time runs out
 *
 * Received bytes are decoded for AT_ONCE_NS, and for at most STEPS_MAX steps whatever the clock
 * says. The rest waits, and its connection is not read meanwhile; libcurl stops at FULL_BYTES.
 * Waiting transfers share WR_TIME_SLICE_NS of each round of the loop, in order. A body that its
 * owner holds is neither decoded nor read.
 */
#include "http/net/net_internal.h"

#include "http/loop/watchdog.h"
#include "limiter/clock/clock.h"

#define AT_ONCE_NS (200 * WEIR_MICROSECOND) /* a usual page takes 100 us to 500 us */
#define STEPS_MAX 256
/* libcurl reads up to 1.6 MB in one call if it may. */
#define FULL_BYTES ((size_t)512 << 10)
#define WAITING_MAX (2 * FULL_BYTES)

/* ---- the queue ---- */

static void enqueue_body(struct wr_transfer *transfer)
{
    struct wr_decode_queue *decode_queue = &transfer->net->decode_queue;
    struct wr_transfer_body *body = &transfer->body;

    body->next = NULL;
    body->prev = decode_queue->last;
    *(decode_queue->last != NULL ? &decode_queue->last->body.next : &decode_queue->first) = transfer;
    decode_queue->last = transfer;
    body->is_waiting = true;
}

static void dequeue_body(struct wr_transfer *transfer)
{
    struct wr_decode_queue *decode_queue = &transfer->net->decode_queue;
    struct wr_transfer_body *body = &transfer->body;

    if (!body->is_waiting)
        return;
    *(body->prev != NULL ? &body->prev->body.next : &decode_queue->first) = body->next;
    *(body->next != NULL ? &body->next->body.prev : &decode_queue->last) = body->prev;
    body->is_waiting = false;
}

bool wr_transfer_body_waits(const struct wr_transfer *transfer)
{
    return transfer->body.is_waiting || transfer->body.is_held;
}

bool wr_transfer_body_is_full(const struct wr_transfer *transfer)
{
    return transfer->body.is_held || transfer->body.waiting.length >= FULL_BYTES;
}

void wr_transfer_body_dequeue(struct wr_transfer *transfer)
{
    dequeue_body(transfer);
}

/* ---- decoding ---- */

static void note_fault(struct wr_transfer *transfer, enum wr_decode_result fault)
{
    static const char *const words[] = {
        [WR_DECODE_OK] = NULL,
        [WR_DECODE_BAD] = NULL,
        [WR_DECODE_UNKNOWN] = "a Content-Encoding that was not requested",
        [WR_DECODE_NESTED] = "more than one Content-Encoding",
        [WR_DECODE_LITTLE_OUTPUT] = "most of its bytes decode to no output",
        [WR_DECODE_MEMORY] = NULL,
    };

    wr_transfer_set_end(transfer, fault == WR_DECODE_MEMORY ? WR_NET_SCARCE : WR_NET_CODING, words[fault]);
}

static void deliver_output(struct wr_transfer *transfer)
{
    struct wr_span made = wr_decoder_take_output(transfer->body.decoder);

    if (made.bytes > 0)
        (void)wr_callback_body(transfer, made.data, made.bytes);
}

/* Decodes `in` until the share of time is used up, but at least one step. */
static void decode_some(struct wr_transfer *transfer, struct wr_span *in, const struct wr_time_slice *share)
{
    struct wr_decoder *decoder = transfer->body.decoder;
    enum wr_decode_result result = WR_DECODE_OK;
    int steps = 0;

    do {
        result = wr_decoder_step(decoder, in);
        if (wr_decoder_is_full(decoder))
            deliver_output(transfer);
    } while (result == WR_DECODE_OK && !transfer->has_end && !transfer->body.is_held &&
             wr_decoder_has_work(decoder, *in) && ++steps < STEPS_MAX && wr_time_slice_lasts(share));
    if (!transfer->has_end)
        deliver_output(transfer);
    if (result != WR_DECODE_OK)
        note_fault(transfer, result);
}

/* ---- rounds ---- */

static void on_decode_idle(uv_idle_t *no_wait)
{
    (void)no_wait;
}

void wr_transfer_body_init(struct wr_transfer *transfer)
{
    transfer->body.waiting_at = 0;
    wr_buf_init(&transfer->body.waiting, transfer->net->allocator, WAITING_MAX);
}

/* Continues a transfer with nothing left to decode: its connection is read again, or it ends. */
static void end_decode_wait(struct wr_transfer *transfer)
{
    struct wr_transfer_body *body = &transfer->body;

    wr_buf_release(&body->waiting);
    wr_transfer_body_init(transfer);
    if (transfer->bypasses_libcurl)
        wr_http1_decoded(transfer);
    else
        wr_easy_decoded(transfer);
}

static void on_decode_round(uv_prepare_t *turn);

static void begin_decode_wait(struct wr_transfer *transfer)
{
    struct wr_decode_queue *decode_queue = &transfer->net->decode_queue;

    enqueue_body(transfer);
    (void)uv_prepare_start(&decode_queue->turn, on_decode_round);
    (void)uv_idle_start(&decode_queue->no_wait, on_decode_idle);
}

/* Queues a transfer for the next round if anything is left to decode. */
static void continue_or_end(struct wr_transfer *transfer)
{
    struct wr_transfer_body *body = &transfer->body;
    struct wr_span rest = wr_buf_from(&body->waiting, body->waiting_at);

    if (!transfer->has_end && body->decoder != NULL && wr_decoder_has_work(body->decoder, rest))
        begin_decode_wait(transfer);
    else
        end_decode_wait(transfer);
}

static void decode_waiting(struct wr_transfer *transfer, const struct wr_time_slice *share)
{
    struct wr_transfer_body *body = &transfer->body;
    struct wr_span rest = wr_buf_from(&body->waiting, body->waiting_at);

    dequeue_body(transfer);
    transfer->is_busy = true;
    decode_some(transfer, &rest, share);
    transfer->is_busy = false;
    if (transfer->is_cancelled)
        wr_transfer_set_end(transfer, WR_NET_CANCELLED, NULL);
    body->waiting_at = body->waiting.length - rest.bytes;
    if (transfer->has_end || !body->is_held)
        continue_or_end(transfer);
}

/* Decodes waiting bodies, once in each round before the loop polls. */
static void on_decode_round(uv_prepare_t *turn)
{
    struct wr_net *net = turn->data;
    struct wr_decode_queue *decode_queue = &net->decode_queue;
    struct wr_time_slice share = wr_time_slice_begin(WR_TIME_SLICE_NS);
    bool was_in = net->in_settle;

    WR_DOING("bodies that wait");
    net->in_settle = true;
    while (decode_queue->first != NULL && wr_time_slice_lasts(&share))
        decode_waiting(decode_queue->first, &share);
    net->in_settle = was_in;
    if (decode_queue->first == NULL) {
        (void)uv_idle_stop(&decode_queue->no_wait);
        (void)uv_prepare_stop(&decode_queue->turn);
    }
    wr_net_finish(net);
}

/* Keeps bytes that do not fit into this round for the next one. */
static void keep_undecoded(struct wr_transfer *transfer, struct wr_span rest)
{
    struct wr_buf *waiting = &transfer->body.waiting;

    wr_buf_append_span(waiting, rest);
    if (waiting->error != 0) {
        wr_transfer_set_end(transfer, waiting->error == WEIR_E_NOMEM ? WR_NET_SCARCE : WR_NET_CODING,
                            "the body arrives faster than it can be decoded");
        return;
    }
    if (!wr_transfer_body_waits(transfer))
        begin_decode_wait(transfer);
}

/* ---- receiving ---- */

static bool has_decoder(struct wr_transfer *transfer)
{
    struct wr_transfer_body *body = &transfer->body;

    if (body->decoder != NULL)
        return true;
    enum wr_decode_result result = wr_decoder_new(transfer->net->allocator, &transfer->head, &body->decoder);
    if (result != WR_DECODE_OK)
        note_fault(transfer, result);
    return result == WR_DECODE_OK;
}

bool wr_transfer_body_take(struct wr_transfer *transfer, struct wr_span piece)
{
    struct wr_transfer_body *body = &transfer->body;

    body->wire += piece.bytes;
    if (transfer->head.codings == 0)
        return wr_callback_body(transfer, piece.data, piece.bytes);
    if (!has_decoder(transfer))
        return false;
    struct wr_time_slice share = wr_time_slice_begin(AT_ONCE_NS);
    if (!wr_transfer_body_waits(transfer))
        decode_some(transfer, &piece, &share);
    if (!transfer->has_end && wr_decoder_has_work(body->decoder, piece))
        keep_undecoded(transfer, piece);
    return !transfer->has_end;
}

/* ---- holding ---- */

void wr_net_pause_body(struct wr_transfer *transfer)
{
    if (!transfer->body.is_held)
        transfer->body.held_at = wr_clock_now(transfer->net->clock);
    transfer->body.is_held = true;
}

void wr_net_resume_body(struct wr_transfer *transfer)
{
    struct wr_net *net = transfer->net;
    bool was_in = net->in_settle;

    if (!transfer->body.is_held)
        return;
    int64_t held_ns = wr_clock_now(net->clock) - transfer->body.held_at;
    transfer->body.held_ns += held_ns;
    transfer->speed_at += held_ns;
    transfer->body.is_held = false;
    if (transfer->stage == WR_STAGE_ENDED)
        return;
    net->in_settle = true;
    continue_or_end(transfer);
    net->in_settle = was_in;
    if (!was_in)
        wr_net_finish(net);
}

void wr_transfer_body_clear(struct wr_transfer *transfer)
{
    struct wr_transfer_body *body = &transfer->body;

    wr_decoder_free(transfer->net->allocator, body->decoder);
    wr_buf_release(&body->waiting);
    *body = (struct wr_transfer_body){.wire = 0};
    wr_transfer_body_init(transfer);
}
