/* SPDX-License-Identifier: MIT */
/* seed.c - takes seeds from the caller's thread, and knows the origins that get header lines. */
#include "base/alloc.h"
#include "base/error.h"
#include "crawl/engine/engine_state.h"

#include <unistd.h>

#define SEEDS_AT_ONCE 256
#define WAIT_US 1000
#define SEEDING_MAX 64 /* batches of seeds that are not stored yet; beyond it the caller waits */

static int send_seed_batch(struct wr_engine *engine, uint32_t index)
{
    while (atomic_load(&engine->seeding) > SEEDING_MAX && atomic_load(&engine->phase) == WR_PHASE_RUNS)
        (void)usleep(WAIT_US);
    if (atomic_load(&engine->phase) != WR_PHASE_RUNS)
        return WEIR_E_CLOSED;
    return wr_url_message_send_seeds(engine, index, &engine->seeds[index]);
}

/* Sends a full batch, or any batch if no other is on its way, so that the crawl starts at once. */
static int send_batch_if_enough(struct wr_engine *engine, uint32_t index)
{
    bool is_enough = engine->seeds[index].count >= SEEDS_AT_ONCE || atomic_load(&engine->seeding) == 0;
    return is_enough ? send_seed_batch(engine, index) : 0;
}

int wr_seed_batch_add(struct wr_engine *engine, const struct wr_url_batch *from, const struct wr_url_batch_entry *found)
{
    uint32_t index = wr_engine_loop_of(engine, wr_url_batch_key(from, found));
    if (!wr_url_batch_add_copy(&engine->seeds[index], from, found, found))
        return WEIR_E_NOMEM;
    return send_batch_if_enough(engine, index);
}

int wr_engine_add_seed(struct wr_engine *engine, const struct wr_url *url)
{
    char memory[WR_URL_ROOM];
    struct wr_url canonical;
    if (wr_url_canonical(url, memory, sizeof memory, &canonical) != WR_URL_OK)
        return wr_invalid("the URL is too long; at most 8192 bytes");
    wr_engine_register_seed(engine, &canonical, true);
    uint32_t index = wr_engine_loop_of_url(engine, &canonical);
    const struct wr_url_batch_entry seed = {.fingerprint = wr_engine_fingerprint(engine, wr_span_of(canonical.text)),
                                            .verdict = WR_ADD_URL_LATER,
                                            .is_seed = true};
    if (!wr_url_batch_add(&engine->seeds[index], &canonical, &seed))
        return WEIR_E_NOMEM;
    return send_batch_if_enough(engine, index);
}

/* Records that all seeds are stored and need not be given again. is_seeded is set first, because
 * the status at the end of the crawl depends on it. The crawl cannot end before this post. */
static int store_seeds_are_complete(struct wr_engine *engine)
{
    const struct wr_store_change change = {.kind = WR_STORE_JOB_STATUS,
                                           .status = {.job = engine->job, .status = WR_JOB_RUNNING}};
    int error = WEIR_E_FULL;
    (void)atomic_fetch_add(&engine->posts, 1);
    atomic_store(&engine->is_seeded, true);
    while (error == WEIR_E_FULL && atomic_load(&engine->phase) == WR_PHASE_RUNS) {
        error = wr_store_post(engine->store, &change, 1, wr_job_on_stored, engine);
        if (error == WEIR_E_FULL)
            (void)usleep(WAIT_US);
    }
    if (error != 0)
        wr_job_post_done(engine);
    return error == WEIR_E_FULL ? WEIR_E_CLOSED : error;
}

int wr_engine_end_seeds(struct wr_engine *engine)
{
    int error = 0;
    for (uint32_t i = 0; i < engine->loop_count && error == 0; i++)
        if (engine->seeds[i].count > 0)
            error = send_seed_batch(engine, i);
    while (error == 0 && atomic_load(&engine->phase) == WR_PHASE_RUNS && atomic_load(&engine->seeding) > 0)
        (void)usleep(WAIT_US);
    if (error == 0 && atomic_load(&engine->phase) != WR_PHASE_RUNS)
        error = WEIR_E_CLOSED; /* some seeds may not be stored */
    if (error == 0)
        error = store_seeds_are_complete(engine);
    if (error != 0)
        return error;
    wr_crawl_loop_wake(&engine->loops[0]);
    return 0;
}

/* Appends the origin of a URL, such as "https://example.org:8443". */
static void append_seed_origin(struct wr_buf *buf, const struct wr_url *url)
{
    wr_buf_append_string(buf, url->is_https ? "https://" : "http://");
    wr_url_append_key(buf, url);
}

/* Extends the scope by a seed or by the target of its redirect. The user's header lines go only to
 * origins that the user named. */
void wr_engine_register_seed(struct wr_engine *engine, const struct wr_url *url, bool is_given)
{
    struct wr_buf origin;
    char *text;
    size_t bytes;
    void *old = NULL;
    if (engine->options.on_seed != NULL)
        engine->options.on_seed(engine->options.scope_context, url);
    if (engine->field_count == 0 || !is_given)
        return;
    wr_buf_init(&origin, engine->allocator, WR_URL_MAX);
    append_seed_origin(&origin, url);
    (void)pthread_rwlock_wrlock(&engine->origins_lock);
    if (wr_map_get(&engine->origins, origin.bytes, origin.length) == NULL &&
        wr_buf_take_string(&origin, &text, &bytes) == 0 && wr_map_put(&engine->origins, text, bytes, text, &old) != 0)
        wr_free(engine->allocator, text, bytes + 1, 1);
    (void)pthread_rwlock_unlock(&engine->origins_lock);
    wr_buf_release(&origin);
}

bool wr_engine_is_seed_origin(struct wr_engine *engine, const struct wr_url *url)
{
    char memory[WEIR_PACE_KEY_MAX + 16];
    struct wr_buf origin;
    wr_buf_init_fixed(&origin, memory, sizeof memory);
    append_seed_origin(&origin, url);
    (void)pthread_rwlock_rdlock(&engine->origins_lock);
    bool is = wr_map_get(&engine->origins, memory, origin.length) != NULL;
    (void)pthread_rwlock_unlock(&engine->origins_lock);
    return is;
}

void wr_seed_origins_free(struct wr_engine *engine)
{
    const struct wr_map_slot *slot;
    for (size_t cursor = 0; (slot = wr_map_next(&engine->origins, &cursor)) != NULL;)
        wr_free(engine->allocator, slot->value, slot->key_bytes + 1, 1);
    if (engine->origins.allocator != NULL)
        wr_map_release(&engine->origins);
}
