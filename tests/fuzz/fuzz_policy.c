/* SPDX-License-Identifier: MIT */
/* fuzz_policy.c - fuzzes the registry of policies with any record of a store and any responses of a
 * server. It stays within its bounds, fetches a robots.txt at most six times in a row, and allows
 * no page while no rules are known (V3).
 *
 * The input is struct knobs and then, separated by NUL: URL of robots.txt, ETag, Last-Modified,
 * Location, Cache-Control, and the text.
 */
#include "core/web/http/field.h"
#include "http/net/idna.h"
#include "http/net/policy/policy.h"

#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <weir/time.h>

#define WALL_NOW (INT64_C(1000000000) * WEIR_SECOND) /* 2001-09-09; the clocks end in 2006 */

struct knobs {
    int64_t max_age_ns, fetched_wall_at, retry_after_ns;
    uint16_t status;
    uint8_t kind;     /* kind of the record */
    uint8_t on_error; /* mode on errors, and whether the record is loaded */
};

struct world {
    struct knobs knobs;
    struct wr_span url, etag, modified, location, cache_control, text;
    unsigned sent;
};

static struct wr_span take_part(struct wr_span *rest)
{
    struct wr_span part = {rest->data, wr_span_find(*rest, '\0')};

    *rest = wr_span_after(*rest, part.bytes < rest->bytes ? part.bytes + 1 : part.bytes);
    return part;
}

static bool read_world(const uint8_t *data, size_t bytes, struct world *world)
{
    if (bytes < sizeof world->knobs)
        return false;
    struct wr_span rest = wr_span_after((struct wr_span){(const char *)data, bytes}, sizeof world->knobs);
    memcpy(&world->knobs, data, sizeof world->knobs);
    world->url = take_part(&rest);
    world->etag = take_part(&rest);
    world->modified = take_part(&rest);
    world->location = take_part(&rest);
    world->cache_control = take_part(&rest);
    world->text = rest;
    return true;
}

static void fetch(void *context, struct wr_robots_fetch *fetch)
{
    struct world *world = context;
    struct wr_robots_fetched fetched = {.status = world->knobs.status % 700,
                                        .body = world->text,
                                        .location = world->location,
                                        .etag = world->etag,
                                        .modified = world->modified,
                                        .cache_control = world->cache_control,
                                        .retry_after_ns = world->knobs.retry_after_ns};

    world->sent++;
    fuzz_check(fetch->hop <= WR_ROBOTS_HOPS && !wr_url_has_userinfo(&fetch->url));
    fuzz_check(wr_field_is_sound(wr_span_of("ETag"), fetch->etag) && fetch->etag.bytes <= WR_VALIDATOR_MAX);
    wr_robots_fetch_end(fetch, &fetched);
}

static bool load(struct wr_policies *policies, const struct world *world)
{
    struct wr_robots_record record = {.robots_url = world->url,
                                      .kind = (enum wr_robots_record_kind)(world->knobs.kind % 4),
                                      .text = world->text,
                                      .etag = world->etag,
                                      .modified = world->modified,
                                      .max_age_ns = world->knobs.max_age_ns,
                                      .fetched_wall_at = world->knobs.fetched_wall_at};
    int error = wr_policies_load(policies, &record);

    fuzz_check(error == 0 || error == WEIR_E_INVAL);
    return error == 0;
}

/* Returns true if a response with this status to an unconditional request determines the rules. */
static bool is_known(int status)
{
    return (status >= 200 && status <= 299 && status != 206) || (status >= 301 && status <= 303) || status == 307 ||
           status == 308 || (status >= 400 && status <= 499 && status != 429);
}

static void check_page(struct wr_policies *policies, const struct world *world, const struct wr_url *url, bool loaded)
{
    struct wr_robots_decision ruling;
    struct wr_policy_info look;

    fuzz_check(wr_policies_ask(policies, url, &ruling) == 0);
    fuzz_check(world->sent <= WR_ROBOTS_HOPS + 1);
    if (!loaded && world->knobs.on_error % 3 == WR_ROBOTS_ON_ERROR_RFC9309)
        fuzz_check((ruling.decision.verdict == WEIR_WAIT) == !is_known(world->knobs.status % 700));
    fuzz_check(wr_policies_inspect(policies, url, &look) == 0);
    fuzz_check(look.delay_ns >= 0 && look.delay_ns <= WR_ROBOTS_DELAY_MAX_NS);
    fuzz_check(look.retry_ns >= 0 && look.retry_ns <= WR_ROBOTS_RETRY_AFTER_MAX_NS);
    struct wr_policies_stats stats = wr_policies_stats(policies);
    fuzz_check(stats.hosts == 1 && stats.bytes <= WR_POLICIES_BYTES_MIN && stats.fetching == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static char memory[WR_URL_ROOM];
    struct world world = {.sent = 0};
    struct wr_policies *policies;
    struct wr_url url;
    weir_pacer *pacer;
    weir_clock *clock;

    if (!read_world(data, bytes, &world) ||
        wr_url_parse(world.url, NULL, wr_idna_libidn2(), memory, sizeof memory, &url) != WR_URL_OK)
        return 0;
    fuzz_check(weir_pacer_new(NULL, NULL, &pacer) == 0);
    fuzz_check(weir_clock_fake_new(WALL_NOW, NULL, &clock) == 0);
    struct wr_policies_options options = {.pacer = pacer,
                                          .fetch = fetch,
                                          .fetch_context = &world,
                                          .life.on_error = (enum wr_robots_on_error)(world.knobs.on_error % 3),
                                          .max_bytes = WR_POLICIES_BYTES_MIN,
                                          .seed = 1,
                                          .clock = clock,
                                          .wall = clock};
    fuzz_check(wr_policies_new(&options, &policies) == 0);
    bool loaded = world.knobs.on_error >= 128 && load(policies, &world);
    check_page(policies, &world, &url, loaded);
    wr_policies_free(policies);
    weir_pacer_free(pacer);
    weir_clock_fake_free(clock);
    return 0;
}
