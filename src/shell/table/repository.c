/* SPDX-License-Identifier: MIT */
/* repository.c - makes a table usable as a repository of admission rules. */
#include "shell/table/table.h"

static int repository_attempt(void *context, const char *key, size_t key_bytes, uint32_t permits,
                              weir_decision *ret_decision)
{
    return weir_table_try(context, key, key_bytes, permits, ret_decision);
}

static int repository_acquire(void *context, const char *key, size_t key_bytes, uint32_t permits, int64_t timeout_ns,
                              weir_cancel *cancel, weir_receipt *ret_receipt, weir_decision *ret_decision)
{
    return weir_table_acquire(context, key, key_bytes, permits, timeout_ns, cancel, ret_receipt, ret_decision);
}

static int repository_reserve(void *context, const char *key, size_t key_bytes, uint32_t permits,
                              weir_receipt *ret_receipt, weir_decision *ret_decision)
{
    return weir_table_reserve(context, key, key_bytes, permits, ret_receipt, ret_decision);
}

static int repository_reserve_peek(void *context, const char *key, size_t key_bytes, uint32_t permits,
                                   weir_receipt *ret_receipt, weir_decision *ret_decision, weir_quota *ret_quota)
{
    return wr_table_reserve_peek(context, key, key_bytes, permits, ret_receipt, ret_decision, ret_quota);
}

static int repository_settle(void *context, const char *key, size_t key_bytes, weir_receipt *receipt, uint32_t used)
{
    return weir_table_settle(context, key, key_bytes, receipt, used);
}

static int repository_release(void *context, const char *key, size_t key_bytes, uint32_t permits)
{
    return weir_table_release(context, key, key_bytes, permits);
}

static int repository_peek(void *context, const char *key, size_t key_bytes, weir_quota *ret_quota)
{
    return weir_table_peek(context, key, key_bytes, ret_quota);
}

static int repository_remove(void *context, const char *key, size_t key_bytes)
{
    return weir_table_remove(context, key, key_bytes);
}

static size_t repository_remove_where(void *context, weir_table_wanted *wanted, void *wanted_context)
{
    return weir_table_remove_where(context, wanted, wanted_context);
}

static int repository_enqueue(void *context, const char *key, size_t key_bytes, uint32_t permits, int64_t timeout_ns,
                              weir_wake *wake, void *wake_context, weir_ticket **ret_ticket)
{
    return weir_table_enqueue(context, key, key_bytes, permits, timeout_ns, wake, wake_context, ret_ticket);
}

static void repository_free(void *context)
{
    weir_table_free(context);
}

weir_repository weir_table_repository(weir_table *table)
{
    return (weir_repository){.size = sizeof(weir_repository),
                             .context = table,
                             .attempt = repository_attempt,
                             .acquire = repository_acquire,
                             .reserve = repository_reserve,
                             .settle = repository_settle,
                             .release = repository_release,
                             .peek = repository_peek,
                             .remove = repository_remove,
                             .remove_where = repository_remove_where,
                             .free = repository_free,
                             .enqueue = repository_enqueue,
                             .reserve_peek = repository_reserve_peek};
}
