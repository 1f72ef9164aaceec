/* SPDX-License-Identifier: MIT */
/* memory_guard.c - checks that a process with limited memory has enough for one more libcurl
 * transfer.
 *
 * libcurl and OpenSSL do not handle a malloc that fails halfway. They report an invalid certificate
 * or a body that cannot be decoded, and libcurl 7.88 may divide by zero. So a transfer begins only
 * if there is memory for it and for all others, in any net, that may still grow; otherwise it ends
 * as scarce. A single transfer always begins, because waiting would not help it.
 */
#include "http/net/net_internal.h"

#include "limiter/memory/reserve.h"

#include <stdatomic.h>

#define EACH_BYTES ((size_t)192 << 10) /* a connection with TLS; some 110 KB were observed */

static atomic_uint under_way, young; /* young: before the first byte of the response */

static bool has_enough_memory(void)
{
    size_t left = wr_memory_left();

    return left >= WR_MEMORY_LEAST &&
           (left - WR_MEMORY_LEAST) / EACH_BYTES > atomic_load_explicit(&young, memory_order_relaxed);
}

bool wr_memory_guard_admit(struct wr_transfer *transfer)
{
    struct wr_net *net = transfer->net;

    net->is_short = !has_enough_memory();
    if (net->is_short && atomic_load_explicit(&under_way, memory_order_relaxed) > 0)
        return false;
    (void)atomic_fetch_add_explicit(&under_way, 1, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&young, 1, memory_order_relaxed);
    transfer->is_admitted = transfer->is_young = true;
    transfer->failures = wr_reserve_failures();
    return true;
}

void wr_memory_guard_mark_grown(struct wr_transfer *transfer)
{
    if (transfer->is_young)
        (void)atomic_fetch_sub_explicit(&young, 1, memory_order_relaxed);
    transfer->is_young = false;
}

void wr_memory_guard_release(struct wr_transfer *transfer)
{
    wr_memory_guard_mark_grown(transfer);
    if (transfer->is_admitted)
        (void)atomic_fetch_sub_explicit(&under_way, 1, memory_order_relaxed);
    transfer->is_admitted = false;
}

bool wr_memory_guard_alloc_failed(const struct wr_transfer *transfer)
{
    return wr_reserve_failures() != transfer->failures;
}
