/* SPDX-License-Identifier: MIT */
/* test_known.c - what every backend stores of hosts, their robots.txt and output files. */
#include "store/rig.h"

/* ---- hosts ----------------------------------------------------------------------------------- */

static void learned_values_of_a_host_are_stored(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        struct wr_store_host seen, host = rig_known_host("a.example:8443");
        rig_open(rig);
        assert_false(rig_look_host(rig, "a.example:8443", &seen));
        assert_int_equal(wr_store_note_host(rig->store, &host), 0);
        rig_reopen(rig);
        assert_true(rig_look_host(rig, "a.example:8443", &seen));
        assert_int_equal(seen.memory.delay_ns, host.memory.delay_ns);
        assert_int_equal(seen.memory.floor_ns, host.memory.floor_ns);
        assert_int_equal(seen.memory.robots_delay_ns, host.memory.robots_delay_ns);
        assert_int_equal(seen.memory.saved_wall_at, host.memory.saved_wall_at);
        assert_true(seen.memory.rate == host.memory.rate);
        assert_int_equal(seen.memory.cap, host.memory.cap);
        assert_int_equal(seen.memory.traits, host.memory.traits);
        assert_int_equal(seen.memory.block_ns, host.memory.block_ns);
        assert_true(seen.memory.breaker_open);
    }
}

/* U7: half a second must not become zero, and rounding must not let a request start earlier. */
static void stored_durations_are_rounded_up_never_down(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        struct wr_store_host seen,
            host = {.key = wr_span_of("h"), .memory = {.delay_ns = 1, .retry_wall_at = 1700000000 * WEIR_SECOND + 1}};
        rig_open(rig);
        assert_int_equal(wr_store_note_host(rig->store, &host), 0);
        rig_reopen(rig);
        assert_true(rig_look_host(rig, "h", &seen));
        assert_int_equal(seen.memory.delay_ns, WEIR_MILLISECOND);
        assert_int_equal(seen.memory.retry_wall_at, 1700000000 * WEIR_SECOND + WEIR_MILLISECOND);
    }
}

static void tasks_and_learned_values_share_one_host_record(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        struct wr_store_host seen, host = rig_known_host("h");
        rig_open(rig);
        int64_t job = rig_job(rig, "");
        rig_post(rig, rig_found(rig, job, "h", "https://h/", NULL));
        assert_true(rig_look_host(rig, "h", &seen));
        assert_int_equal(seen.memory.delay_ns, 0);
        int64_t id = seen.id;
        rig_post(rig, (struct wr_store_change){.kind = WR_STORE_HOST, .host = host});
        assert_true(rig_look_host(rig, "h", &seen));
        assert_int_equal(seen.id, id); /* the host keeps its id, by which its tasks refer to it */
        assert_int_equal(seen.memory.delay_ns, host.memory.delay_ns);
        rig_check(rig);
    }
}

static void hosts_with_tasks_are_listed_in_pieces_with_their_values(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        char host[24], url[40];
        size_t count, seen = 0;
        rig_open(rig);
        int64_t job = rig_job(rig, ""), other = rig_job(rig, "");
        for (int i = 0; i < 50; i++) {
            snprintf(host, sizeof host, "h%d", i);
            for (int page = 0; page <= i % 3; page++) {
                snprintf(url, sizeof url, "https://h%d/%d", i, page);
                assert_int_equal(rig_post_later(rig, rig_found(rig, job, host, url, NULL)), 0);
            }
            struct wr_store_host known = rig_known_host(host);
            assert_int_equal(wr_store_note_host(rig->store, &known), 0);
        }
        assert_int_equal(rig_post_later(rig, rig_found(rig, other, "elsewhere", "https://elsewhere/", NULL)), 0);
        assert_int_equal(rig_post_later(rig, rig_ended(rig, job, "https://h0/0", false, "fetched")), 0);
        rig_reopen(rig);
        struct wr_store_query query = {.what = WR_STORE_HOSTS, .job = job, .limit = 7};
        do {
            struct rig_row *rows = rig_read(rig, query, &count);
            for (size_t i = 0; i < count; i++, seen++) {
                const struct wr_store_host *row = &rows[i].row.host;
                int number = (int)strtol(row->key.data + 1, NULL, 10);
                assert_true(row->id > query.after.id);
                assert_int_not_equal(number, 0); /* all of its tasks ended */
                assert_int_equal(row->queued, number % 3 + 1);
                assert_int_equal(row->memory.cap, 3);
                query.after.id = row->id;
            }
            free(rows);
        } while (count > 0);
        assert_int_equal(seen, 49);
    }
}

/* Stores the host, reopens the store, and returns a pacer of this profile with the stored values,
 * as after a restart. */
static weir_pacer *pacer_with(struct store_fixture *rig, const struct wr_store_host *host, weir_profile profile)
{
    weir_pace_options pace;
    weir_pacer *pacer;
    struct wr_store_host stored;

    assert_int_equal(wr_store_note_host(rig->store, host), 0);
    rig_reopen(rig);
    assert_true(rig_look_host(rig, "h", &stored));
    assert_int_equal(weir_pace_options_profile(&pace, profile), 0);
    assert_int_equal(weir_pacer_new(&pace, NULL, &pacer), 0);
    assert_int_equal(weir_pacer_seed(pacer, "h", 1, &stored.memory), 0);
    return pacer;
}

/* U3, S2-9: the part above the base delay halves in six hours. */
static void stored_learned_delay_decays_with_time(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        weir_pace_memory memory;
        struct wr_store_host host = {
            .key = wr_span_of("h"),
            .memory = {.delay_ns = 20500 * WEIR_MILLISECOND, .saved_wall_at = weir_wall_now() - 12 * WEIR_HOUR}};
        rig_open(rig);
        weir_pacer *pacer = pacer_with(rig, &host, WEIR_PROFILE_LEARNED);
        assert_int_equal(weir_pacer_memory(pacer, "h", 1, &memory), 0);
        assert_in_range(memory.delay_ns, 5400 * WEIR_MILLISECOND, 5500 * WEIR_MILLISECOND);
        weir_pacer_free(pacer);
    }
}

/* F2, V2, R23: a Retry-After time is kept. */
static void retry_after_time_holds_after_a_restart(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        weir_permit permit;
        weir_decision decision;
        int64_t now = weir_wall_now();
        struct wr_store_host host = {.key = wr_span_of("h"),
                                     .memory = {.retry_wall_at = now + WEIR_HOUR, .saved_wall_at = now}};
        rig_open(rig);
        weir_pacer *pacer = pacer_with(rig, &host, WEIR_PROFILE_UNLIMITED);
        assert_int_equal(weir_pacer_try(pacer, "h", 1, NULL, 0, &permit, &decision), 0);
        assert_int_equal(decision.verdict, WEIR_WAIT);
        assert_int_equal(decision.reason, WEIR_REASON_RETRY_AFTER);
        assert_in_range(decision.wait_ns, 59 * WEIR_MINUTE, 67 * WEIR_MINUTE);
        weir_pacer_free(pacer);
    }
}

static struct wr_store_change block_change(const char *key, int64_t until_wall_at)
{
    return (struct wr_store_change){
        .kind = WR_STORE_HOST_BLOCK,
        .block = {.key = wr_span_of(key), .until_wall_at = until_wall_at, .by = wr_span_of("Cloudflare")}};
}

/* U10: a block does not overwrite other values of the host, whichever was written first. */
static void firewall_block_of_a_host_is_stored(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        size_t count;
        int64_t until = weir_wall_now() / WEIR_SECOND * WEIR_SECOND + WEIR_DAY;
        rig_open(rig);
        int64_t job = rig_job(rig, "");
        rig_post(rig, rig_found(rig, job, "a.example", "https://a.example/", NULL));
        rig_post(rig, block_change("a.example", until));
        rig_post(rig, block_change("b.example", until));
        struct wr_store_change learned = {.kind = WR_STORE_HOST, .host = {.key = wr_span_of("a.example")}};
        learned.host.memory.delay_ns = WEIR_SECOND;
        rig_post(rig, learned);
        rig_reopen(rig);
        struct wr_store_query query = {.what = WR_STORE_ONE_HOST, .key = wr_span_of("a.example")};
        struct rig_row *rows = rig_read(rig, query, &count);
        assert_int_equal(count, 1);
        assert_int_equal(rows[0].row.host.blocked_until_wall_at, until);
        assert_true(rig_is(rows[0].row.host.blocked_by, "Cloudflare"));
        assert_int_equal(rows[0].row.host.memory.delay_ns, WEIR_SECOND);
        free(rows);
        query = (struct wr_store_query){.what = WR_STORE_HOSTS, .job = job};
        rows = rig_read(rig, query, &count);
        assert_int_equal(rows[0].row.host.blocked_until_wall_at, until);
        free(rows);
        struct wr_store_change bad = block_change("a.example", until);
        bad.block.by = wr_span_of("");
        assert_int_equal(wr_store_post(rig->store, &bad, 1, NULL, NULL), WEIR_E_INVAL);
    }
}

static void hosts_that_do_not_block_a_job_are_found(void **state)
{
    static const struct {
        const char *host, *url, *verdict;
    } pages[] = {{"a.example", "https://a.example/", "fetched"},
                 {"b.example", "https://b.example/", "redirect"},
                 {"c.example", "https://c.example/", "too_large"}};
    (void)state;
    EACH_BACKEND(rig)
    {
        size_t count;
        rig_open(rig);
        int64_t job = rig_job(rig, "");
        for (int i = 0; i < 3; i++) {
            rig_post(rig, rig_found(rig, job, pages[i].host, pages[i].url, NULL));
            rig_post(rig, rig_ended(rig, job, pages[i].url, false, pages[i].verdict));
        }
        struct wr_store_query query = {.what = WR_STORE_FETCHED_HOSTS, .job = job};
        free(rig_read(rig, query, &count));
        assert_int_equal(count, 2);
        rig_post(rig, block_change("a.example", weir_wall_now() + WEIR_DAY));
        struct rig_row *rows = rig_read(rig, query, &count);
        assert_int_equal(count, 1);
        assert_true(rig_is(rows[0].row.host.key, "c.example"));
        free(rows);
        rig_post(rig, block_change("c.example", weir_wall_now() + WEIR_DAY));
        free(rig_read(rig, query, &count));
        assert_int_equal(count, 0);
        /* the block is over */
        rig_post(rig, block_change("a.example", weir_wall_now() - WEIR_SECOND));
        free(rig_read(rig, query, &count));
        assert_int_equal(count, 1);
    }
}

/* ---- robots.txt and outputs ------------------------------------------------------------------ */

static struct wr_store_change robots_change(enum wr_store_robots_kind kind, struct wr_span text,
                                            int64_t fetched_wall_at)
{
    return (struct wr_store_change){.kind = WR_STORE_ROBOTS,
                                    .robots = {.url = wr_span_of("https://h/robots.txt"),
                                               .kind = kind,
                                               .text = text,
                                               .etag = wr_span_of("\"v1\""),
                                               .modified = wr_span_of("Sun, 15 Nov 2026 00:00:00 GMT"),
                                               .max_age_ns = kind == WR_STORE_ROBOTS_SAME ? -1 : WEIR_HOUR,
                                               .fetched_wall_at = fetched_wall_at}};
}

/* S4-19: text and validators of robots.txt are stored. */
static void robots_texts_survive_a_restart_with_their_validators(void **state)
{
    (void)state;
    static const char bytes[] = "User-agent: *\r\nDisallow: /\0\xff'; DROP TABLE robots; --";
    struct wr_span text = {bytes, sizeof bytes - 1};
    EACH_BACKEND(rig)
    {
        size_t count;
        struct wr_store_query query = {.what = WR_STORE_ONE_ROBOTS, .key = wr_span_of("https://h/robots.txt")};
        rig_open(rig);
        free(rig_read(rig, query, &count));
        assert_int_equal(count, 0);
        /* without a stored text there is nothing to refresh */
        rig_post(rig, robots_change(WR_STORE_ROBOTS_SAME, text, WEIR_SECOND));
        rig_post(rig, robots_change(WR_STORE_ROBOTS_TEXT, text, 2 * WEIR_SECOND));
        rig_post(rig, robots_change(WR_STORE_ROBOTS_SAME, (struct wr_span){NULL, 0}, 3 * WEIR_SECOND));
        rig_reopen(rig);
        struct rig_row *rows = rig_read(rig, query, &count);
        const struct wr_store_robots *robots = &rows[0].row.robots;
        assert_int_equal(count, 1);
        assert_int_equal(robots->kind, WR_STORE_ROBOTS_TEXT);
        assert_int_equal(robots->text.bytes, text.bytes);
        assert_memory_equal(robots->text.data, bytes, text.bytes);
        assert_true(rig_is(robots->etag, "\"v1\""));
        assert_true(rig_is(robots->modified, "Sun, 15 Nov 2026 00:00:00 GMT"));
        assert_int_equal(robots->max_age_ns, -1);
        assert_int_equal(robots->fetched_wall_at, 3 * WEIR_SECOND);
        free(rows);
        rig_post(rig, robots_change(WR_STORE_ROBOTS_NONE, (struct wr_span){NULL, 0}, 4 * WEIR_SECOND));
        rows = rig_read(rig, query, &count);
        assert_int_equal(rows[0].row.robots.kind, WR_STORE_ROBOTS_NONE);
        assert_int_equal(rows[0].row.robots.text.bytes, 0);
        assert_int_equal(rows[0].row.robots.max_age_ns, WEIR_HOUR);
        free(rows);
    }
}

#define BOUND ((size_t)1 << 20)
#define TEXT_BYTES ((size_t)64 << 10)
#define TEXTS 100 /* about a sixth of them fits into BOUND */

static struct wr_span robots_url(int number)
{
    static char url[64];
    (void)snprintf(url, sizeof url, "https://h%d/robots.txt", number);
    return wr_span_of(url);
}

static void take_bytes(void *context, const struct wr_store_row *row)
{
    *(long *)context = (long)row->robots.text.bytes;
}

/* Returns the length of the stored text; -1: none is stored. */
static long kept_bytes(struct store_fixture *rig, struct wr_span url)
{
    long bytes = -1;
    struct wr_store_query query = {.what = WR_STORE_ONE_ROBOTS, .key = url, .row = take_bytes, .context = &bytes};
    assert_int_equal(wr_store_read(rig->store, &query), 0);
    return bytes;
}

/* Returns the number of stored texts, and the oldest one. */
static int kept_robots(struct store_fixture *rig, int *ret_oldest)
{
    int kept = 0;
    *ret_oldest = TEXTS;
    for (int i = TEXTS - 1; i >= 0; i--) {
        long bytes = kept_bytes(rig, robots_url(i));
        assert_true(bytes == -1 || bytes == (long)TEXT_BYTES);
        *ret_oldest = bytes > 0 ? i : *ret_oldest;
        kept += bytes > 0;
    }
    return kept;
}

static void post_robots(struct store_fixture *rig, int number, enum wr_store_robots_kind kind, int64_t wall_at)
{
    static char text[TEXT_BYTES];
    bool has_text = kind == WR_STORE_ROBOTS_TEXT;
    struct wr_store_change change =
        robots_change(kind, (struct wr_span){has_text ? text : NULL, has_text ? sizeof text : 0}, wall_at);
    change.robots.url = robots_url(number);
    rig_post(rig, change);
}

/* M13: the texts of all servers together are limited, and the newest ones stay. */
static void total_size_of_robots_texts_is_bounded_and_the_oldest_go_first(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        int oldest, kept, most = (int)(BOUND / TEXT_BYTES);
        rig->options.robots_bytes = BOUND;
        rig_open(rig);
        /* the note that a host has no robots.txt takes no room */
        post_robots(rig, TEXTS, WR_STORE_ROBOTS_NONE, WEIR_SECOND);
        for (int i = 0; i < TEXTS; i++) {
            post_robots(rig, i, WR_STORE_ROBOTS_TEXT, (i + 2) * WEIR_SECOND);
            if (i % 10 == 9) {
                kept = kept_robots(rig, &oldest);
                assert_true(kept <= most && oldest + kept == i + 1);
                assert_true(kept > most / 2 || kept == i + 1);
            }
        }
        rig_reopen(rig);
        kept = kept_robots(rig, &oldest);
        /* a refresh makes the oldest text the newest */
        post_robots(rig, oldest, WR_STORE_ROBOTS_SAME, (TEXTS + 2) * WEIR_SECOND);
        for (int i = 0; i < most; i++) /* the limit also holds for another process */
            post_robots(rig, i, WR_STORE_ROBOTS_TEXT, (TEXTS + 3 + i) * WEIR_SECOND);
        assert_true(kept_robots(rig, &oldest) <= most);
        assert_int_equal(kept_bytes(rig, robots_url(TEXTS)), 0);
        assert_int_equal(kept_bytes(rig, robots_url(TEXTS - 1)), -1);
        rig_check(rig);
    }
}

/* Otherwise the old rules would be obeyed after a restart. */
static void robots_too_long_to_be_stored_removes_the_old_one(void **state)
{
    (void)state;
    static char text[WR_STORE_ROBOTS_MAX + 1];
    struct wr_span url = wr_span_of("https://h/robots.txt"), none = {NULL, 0};
    EACH_BACKEND(rig)
    {
        struct wr_store_change change = robots_change(WR_STORE_ROBOTS_TEXT, (struct wr_span){text, sizeof text}, 1);
        rig_open(rig);
        assert_int_equal(rig_post_later(rig, change), WEIR_E_INVAL);
        change.robots.text.bytes = WR_STORE_ROBOTS_MAX;
        rig_post(rig, change);
        assert_int_equal(kept_bytes(rig, url), WR_STORE_ROBOTS_MAX);
        rig_post(rig, robots_change(WR_STORE_ROBOTS_GONE, none, 2 * WEIR_SECOND));
        assert_int_equal(kept_bytes(rig, url), -1);
        rig_post(rig, robots_change(WR_STORE_ROBOTS_SAME, none, 3 * WEIR_SECOND));
        assert_int_equal(kept_bytes(rig, url), -1);
    }
}

static void outputs_are_stored_by_job_and_path(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        size_t count;
        rig_open(rig);
        int64_t job = rig_job(rig, "");
        rig_post(rig, rig_output(job, "crawl.jsonl", 100));
        rig_post(rig, rig_output(job, "crawl.warc", 7));
        rig_post(rig, rig_output(job, "crawl.jsonl", 250));
        rig_post(rig, rig_output(job + 1, "crawl.jsonl", 1));
        rig_reopen(rig);
        struct wr_store_query query = {.what = WR_STORE_OUTPUTS, .job = job};
        struct rig_row *rows = rig_read(rig, query, &count);
        assert_int_equal(count, 2);
        assert_true(rig_is(rows[0].row.output.path, "crawl.jsonl"));
        assert_int_equal(rows[0].row.output.bytes, 250);
        assert_int_equal(rows[1].row.output.bytes, 7);
        free(rows);
    }
}

WEIR_TESTS(test(firewall_block_of_a_host_is_stored), test(hosts_that_do_not_block_a_job_are_found),
           test(learned_values_of_a_host_are_stored), test(stored_durations_are_rounded_up_never_down),
           test(tasks_and_learned_values_share_one_host_record),
           test(hosts_with_tasks_are_listed_in_pieces_with_their_values), test(stored_learned_delay_decays_with_time),
           test(retry_after_time_holds_after_a_restart), test(robots_texts_survive_a_restart_with_their_validators),
           test(total_size_of_robots_texts_is_bounded_and_the_oldest_go_first),
           test(robots_too_long_to_be_stored_removes_the_old_one), test(outputs_are_stored_by_job_and_path))
