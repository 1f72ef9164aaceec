/* SPDX-License-Identifier: MIT */
/* key_store.c - makes a table usable as a repository of admission rules. */
#include "limiter/table/table.h"

static int key_store_attempt(void *context, const char *key, size_t key_bytes, uint32_t permits,
                             weir_decision *ret_decision)
{
    return weir_table_try(context, key, key_bytes, permits, ret_decision);
}

static int key_store_acquire(void *context, const char *key, size_t key_bytes, uint32_t permits, int64_t timeout_ns,
                             weir_cancel *cancel, weir_receipt *ret_receipt, weir_decision *ret_decision)
{
    return weir_table_acquire(context, key, key_bytes, permits, timeout_ns, cancel, ret_receipt, ret_decision);
}

static int key_store_reserve(void *context, const char *key, size_t key_bytes, uint32_t permits,
                             weir_receipt *ret_receipt, weir_decision *ret_decision)
{
    return weir_table_reserve(context, key, key_bytes, permits, ret_receipt, ret_decision);
}

static int key_store_reserve_peek(void *context, const char *key, size_t key_bytes, uint32_t permits,
                                  weir_receipt *ret_receipt, weir_decision *ret_decision, weir_quota *ret_quota)
{
    return wr_table_reserve_peek(context, key, key_bytes, permits, ret_receipt, ret_decision, ret_quota);
}

static int key_store_settle(void *context, const char *key, size_t key_bytes, weir_receipt *receipt, uint32_t used)
{
    return weir_table_settle(context, key, key_bytes, receipt, used);
}

static int key_store_release(void *context, const char *key, size_t key_bytes, uint32_t permits)
{
    return weir_table_release(context, key, key_bytes, permits);
}

static int key_store_peek(void *context, const char *key, size_t key_bytes, weir_quota *ret_quota)
{
    return weir_table_peek(context, key, key_bytes, ret_quota);
}

static int key_store_remove(void *context, const char *key, size_t key_bytes)
{
    return weir_table_remove(context, key, key_bytes);
}

static size_t key_store_remove_where(void *context, weir_table_wanted *wanted, void *wanted_context)
{
    return weir_table_remove_where(context, wanted, wanted_context);
}

static int key_store_enqueue(void *context, const char *key, size_t key_bytes, uint32_t permits, int64_t timeout_ns,
                             weir_wake *wake, void *wake_context, weir_ticket **ret_ticket)
{
    return weir_table_enqueue(context, key, key_bytes, permits, timeout_ns, wake, wake_context, ret_ticket);
}

static void key_store_free(void *context)
{
    weir_table_free(context);
}

weir_key_store weir_table_key_store(weir_table *table)
{
    return (weir_key_store){.size = sizeof(weir_key_store),
                            .context = table,
                            .attempt = key_store_attempt,
                            .acquire = key_store_acquire,
                            .reserve = key_store_reserve,
                            .settle = key_store_settle,
                            .release = key_store_release,
                            .peek = key_store_peek,
                            .remove = key_store_remove,
                            .remove_where = key_store_remove_where,
                            .free = key_store_free,
                            .enqueue = key_store_enqueue,
                            .reserve_peek = key_store_reserve_peek};
}
