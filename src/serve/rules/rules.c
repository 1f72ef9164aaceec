/* SPDX-License-Identifier: MIT */
/* rules.c - creates, reloads and frees a rulebook. */
#include "serve/rules/rules_internal.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "limiter/clock/clock.h"
#include "limiter/memory/memory.h"

#include <string.h>

/* ---- error messages -------------------------------------------------------------------------- */

/* Writes the message of `error` to `ret_why`, and returns `error`. */
static int write_rules_error(int error, char *ret_why, size_t why_bytes)
{
    struct wr_buf why;

    wr_buf_init_fixed(&why, ret_why, why_bytes);
    wr_buf_append_string(&why, wr_error_message(error));
    return error;
}

/* ---- create and free ------------------------------------------------------------------------- */

static int choose_secret(struct wr_rules *book, const struct wr_rules_settings *settings)
{
    uint8_t random[32];
    struct wr_buf secret;

    if (settings->secret[0] != '\0') {
        memcpy(book->secret, settings->secret, sizeof book->secret);
        return 0;
    }
    int error = wr_random(random, sizeof random);
    wr_buf_init_fixed(&secret, book->secret, sizeof book->secret);
    for (size_t i = 0; i < sizeof random && error == 0; i++)
        wr_buf_append_hex(&secret, random[i], 2, WR_HEX_SMALL);
    return error;
}

static void free_rules(struct wr_rules *book)
{
    wr_reservations_release(book);
    wr_rules_snapshot_unref(atomic_load(&book->snapshot));
    wr_redis_client_free(book->redis_client);
    while (book->rule_stats_list != NULL) {
        struct wr_rule_stats *rule_stats = book->rule_stats_list;
        book->rule_stats_list = rule_stats->next;
        wr_free(book->allocator, rule_stats, sizeof *rule_stats, _Alignof(struct wr_rule_stats));
    }
    (void)pthread_mutex_destroy(&book->changing);
    (void)pthread_mutex_destroy(&book->saving);
    wr_free(book->allocator, book, sizeof *book, _Alignof(struct wr_rules));
}

/* Connects to the store of shared limits, if a rule is shared. */
static int connect_limit_store(struct wr_rules *book)
{
    return book->redis_client != NULL ? wr_redis_client_start(book->redis_client) : 0;
}

static int init_rules(struct wr_rules *book, const struct wr_rules_settings *settings, uint32_t origins)
{
    struct wr_rules_snapshot *snapshot;
    int error = choose_secret(book, settings);

    if (error == 0)
        error = wr_reservations_init(&book->holds, settings->holds_max, origins, book->allocator);
    if (error == 0)
        error = wr_rules_snapshot_new(book, settings, NULL, &snapshot);
    if (error == 0)
        atomic_store(&book->snapshot, snapshot);
    return error;
}

static int make_rules(const struct wr_rules_settings *settings, const struct wr_rules_options *options, bool starts,
                      struct wr_rules **ret_book, char *ret_why, size_t why_bytes)
{
    const weir_allocator *allocator = wr_allocator_or_system(options != NULL ? options->allocator : NULL);
    struct wr_rules *book = wr_alloc(allocator, sizeof *book, _Alignof(struct wr_rules));

    if (book == NULL)
        return write_rules_error(WEIR_E_NOMEM, ret_why, why_bytes);
    book->allocator = allocator;
    book->clock = wr_clock_or_fast(options != NULL ? options->clock : NULL);
    book->moment_now = options != NULL && options->moment_now != NULL ? options->moment_now : wr_moment_now;
    (void)pthread_mutex_init(&book->changing, NULL); /* default attributes: cannot fail */
    (void)pthread_mutex_init(&book->saving, NULL);
    int error = init_rules(book, settings, options != NULL ? options->origins : 1);
    if (error == 0 && starts)
        error = connect_limit_store(book);
    if (error < 0) {
        (void)write_rules_error(error, ret_why, why_bytes);
        free_rules(book);
        return error;
    }
    *ret_book = book;
    return 0;
}

int wr_rules_new(const struct wr_rules_settings *settings, const struct wr_rules_options *options,
                 struct wr_rules **ret_book, char *ret_why, size_t why_bytes)
{
    return make_rules(settings, options, true, ret_book, ret_why, why_bytes);
}

void wr_rules_free(struct wr_rules *book)
{
    if (book != NULL)
        free_rules(book);
}

int wr_rules_check(const struct wr_rules_settings *settings, char *ret_why, size_t why_bytes)
{
    struct wr_rules *book;
    int error = make_rules(settings, NULL, false, &book, ret_why, why_bytes);

    if (error == 0)
        wr_rules_free(book);
    return error;
}

/* ---- reload ---------------------------------------------------------------------------------- */

static int replace_snapshot(struct wr_rules *book, const struct wr_rules_settings *settings)
{
    struct wr_rules_snapshot *old = atomic_load(&book->snapshot);
    struct wr_rules_snapshot *snapshot;
    int error = wr_rules_snapshot_new(book, settings, old, &snapshot);

    if (error < 0)
        return error;
    error = connect_limit_store(book);
    if (error == 0)
        error = wr_rules_snapshot_apply_limits(snapshot);
    if (error < 0) {
        wr_rules_snapshot_unref(snapshot);
        return error;
    }
    atomic_store(&book->snapshot, snapshot);
    wr_epoch_wait_for_readers(&book->epoch);
    wr_rules_snapshot_unref(old);
    return 0;
}

int wr_rules_reload(struct wr_rules *book, const struct wr_rules_settings *settings, char *ret_why, size_t why_bytes)
{
    (void)pthread_mutex_lock(&book->changing);
    int error = replace_snapshot(book, settings);
    (void)pthread_mutex_unlock(&book->changing);
    atomic_fetch_add(error == 0 ? &book->reloads : &book->reloads_failed, 1);
    return error < 0 ? write_rules_error(error, ret_why, why_bytes) : 0;
}

const char *wr_rules_secret(const struct wr_rules *book)
{
    return book->secret;
}

int wr_rules_adopt_secret(struct wr_rules *book, const struct wr_rules_settings *settings, const char *secret)
{
    size_t bytes = strlen(secret);

    if (settings->secret[0] != '\0' || bytes == 0 || bytes >= sizeof book->secret)
        return 0;
    (void)pthread_mutex_lock(&book->changing);
    memcpy(book->secret, secret, bytes + 1);
    int error = replace_snapshot(book, settings); /* listed token: keys are digests under the secret */
    (void)pthread_mutex_unlock(&book->changing);
    return error;
}

void wr_rules_count_failed_reload(struct wr_rules *book)
{
    atomic_fetch_add(&book->reloads_failed, 1);
}
