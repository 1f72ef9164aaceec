/* SPDX-License-Identifier: MIT */
/* test_policy_room.c - tests of policies in bounded memory and in a store: S4-17 to S4-19, L1, L5,
 * R23. */
#include "unit/http/net/policy_rig.h"

#define A "http://a.test/robots.txt"
#define WALL (1000000000 * S) /* a day in 2001, which a fake clock can show */

static const char *host(int n)
{
    static char text[4][40];
    static int next;
    char *place = text[next++ % 4];
    (void)snprintf(place, sizeof text[0], "http://h%d.test/", n);
    return place;
}

/* ---- room ---- */

/* S4-18 */
static void least_recently_used_policy_makes_room(void **state)
{
    (void)state;
    static const struct page pages[] = {{"*", 200, .body = "User-agent: *\nDisallow: /x\n"}};
    struct site site;
    site_init(&site, WEIR_PROFILE_UNLIMITED);
    site.options.max_hosts = 3;
    site_start(&site);
    site_serve_all(&site, pages);
    for (int i = 0; i < 3; i++)
        assert_said(&site, host(i), "go");
    assert_said(&site, host(0), "go"); /* now host 1 is the least recently used */
    assert_said(&site, host(3), "go");
    assert_int_equal(stats(&site).hosts, 3);
    assert_int_equal(stats(&site).evicted, 1);
    assert_false(knows(&site, host(1)));
    assert_true(knows(&site, host(0)) && knows(&site, host(2)) && knows(&site, host(3)));
    assert_int_equal(atomic_load(&site.sent), 4);
    assert_said(&site, host(1), "go"); /* fetched again */
    assert_int_equal(atomic_load(&site.sent), 5);
    assert_false(knows(&site, host(2)));
    site_tear_down(&site);
}

static int ask_result(struct site *site, const char *url)
{
    struct target target;
    struct wr_robots_decision ruling;
    return wr_policies_ask(site->policies, url_of(&target, url), &ruling);
}

/* S4-18, L5: a policy that is being fetched, awaited, or held by a Retry-After is kept; new hosts
 * are refused. */
static void policy_in_use_is_never_evicted(void **state)
{
    (void)state;
    struct site site;
    struct target target;
    struct wr_policy_ticket *ticket;
    site_init(&site, WEIR_PROFILE_UNLIMITED);
    site.options.max_hosts = 3;
    site_start(&site);
    assert_said(&site, host(0), "wait"); /* is being fetched */
    assert_said(&site, host(1), "wait");
    site_answer(&site, &(struct page){.url = "http://h1.test/robots.txt", .status = 429, .retry_after_ns = H});
    assert_int_equal(
        wr_policies_enqueue(site.policies, url_of(&target, host(2)), WEIR_FOREVER, ignore_wake, NULL, &ticket), 0);
    assert_int_equal(ask_result(&site, host(3)), WEIR_E_FULL);
    assert_int_equal(stats(&site).evicted, 0);
    assert_said(&site, host(1), "wait+3600000");
    wr_policy_ticket_free(ticket);
    assert_int_equal(ask_result(&site, host(3)), 0); /* replaces host 2 */
    assert_int_equal(ask_result(&site, host(4)), WEIR_E_FULL);
    pass(&site.pacing, H);
    assert_int_equal(ask_result(&site, host(4)), 0); /* replaces host 1 */
    assert_false(knows(&site, host(1)) || knows(&site, host(2)));
    assert_int_equal(stats(&site).evicted, 2);
    for (int i = 0; i < 5; i++)
        if (i != 1 && i != 2) {
            char robots[64];
            (void)snprintf(robots, sizeof robots, "%srobots.txt", host(i));
            site_answer_with(&site, robots, 404, NULL);
        }
    site_tear_down(&site);
}

/* Many hosts whose robots.txt fails or is absent leave room for other hosts. */
static void hosts_with_failing_robots_txt_do_not_fill_the_table(void **state)
{
    (void)state;
    static const struct page pages[] = {{"http://h7.test/robots.txt", .status = 200}, {"*", .status = 0}};
    struct site site;
    site_init(&site, WEIR_PROFILE_UNLIMITED);
    site.options.max_hosts = 100;
    site.bare = true;
    site_start(&site);
    site_serve_all(&site, pages);
    for (int i = 100; i < 2000; i++)
        assert_int_equal(ask_result(&site, host(i)), 0);
    assert_said(&site, host(7), "go");
    assert_int_equal(stats(&site).hosts, 100);
    site_tear_down(&site);
}

/* Returns a robots.txt with this number of rules; for free(). */
static char *large_file(size_t rules)
{
    static const char head[] = "User-agent: *\n";
    size_t room = sizeof head + rules * 24, bytes = sizeof head - 1;
    char *text = malloc(room);
    assert_non_null(text);
    memcpy(text, head, sizeof head);
    for (size_t i = 0; i < rules; i++)
        bytes += (size_t)snprintf(text + bytes, room - bytes, "Disallow: /%zu\n", i);
    return text;
}

/* L5: many hosts with large files. */
static void policy_bytes_are_bounded_for_any_files(void **state)
{
    (void)state;
    struct site site;
    char *body = large_file(40000);
    struct page page = {"*", 200, .body = body};
    site_init(&site, WEIR_PROFILE_UNLIMITED);
    site.options.max_bytes = WR_POLICIES_BYTES_MIN;
    site_start(&site);
    site_serve(&site, &page, 1);
    size_t each = 0;
    for (int i = 0; i < 60; i++) {
        char url[40];
        (void)snprintf(url, sizeof url, "http://h%d.test/39999", i);
        assert_said(&site, url, "deny@40001");
        struct wr_policies_stats seen = stats(&site);
        each = i == 0 ? seen.bytes : each;
        assert_true(seen.bytes <= WR_POLICIES_BYTES_MIN);
        assert_true((size_t)atomic_load(&site.memory.live_bytes) <= WR_POLICIES_BYTES_MIN + 65536);
    }
    assert_in_range(stats(&site).hosts, WR_POLICIES_BYTES_MIN / each - 1, WR_POLICIES_BYTES_MIN / each);
    assert_true(stats(&site).evicted > 40);
    free(body);
    site_tear_down(&site);
}

/* Rules that do not fit because all others are in use count as a failed fetch. */
static void robots_rules_that_find_no_room_are_fetched_later(void **state)
{
    (void)state;
    struct site site;
    struct target target;
    struct wr_policy_ticket *tickets[30];
    char *body = large_file(40000);
    struct page page = {"*", 200, .body = body};
    site_init(&site, WEIR_PROFILE_UNLIMITED);
    site.options.max_bytes = WR_POLICIES_BYTES_MIN;
    site_start(&site);
    site_serve(&site, &page, 1);
    int count = 0;
    const char *words = "go";
    while (strcmp(words, "go") == 0 && count < 30) {
        const struct wr_url *url = url_of(&target, host(count));
        assert_int_equal(wr_policies_enqueue(site.policies, url, WEIR_FOREVER, ignore_wake, NULL, &tickets[count]), 0);
        words = said(ask(&site, host(count++)));
    }
    assert_in_range(count, 3, 29);
    assert_int_equal(look(&site, host(count - 1)).state, WR_ROBOTS_STATE_FAILING);
    wr_policy_ticket_free(tickets[0]);
    pass(&site.pacing, 5 * S);
    assert_said(&site, host(count - 1), "go");
    assert_true(stats(&site).bytes <= WR_POLICIES_BYTES_MIN);
    while (--count > 0)
        wr_policy_ticket_free(tickets[count]);
    free(body);
    site_tear_down(&site);
}

/* S4-17: bounds the memory per host, all included, for 10 000 hosts of three kinds. */
static void memory_of_a_policy_is_bounded_per_kind_of_file(void **state)
{
    (void)state;
    static const char usual[] =
        "User-agent: *\nDisallow: /wp-admin/\nAllow: /wp-admin/admin-ajax.php\nDisallow: /search\nDisallow: /cart\n"
        "Disallow: /checkout\nDisallow: /*?sort=\nDisallow: /tmp/\nDisallow: /private/\nDisallow: /*.pdf$\n"
        "Crawl-delay: 1\nSitemap: https://example.org/sitemap.xml\n";
    static const struct {
        struct page page;
        long most_bytes;
    } rows[] = {
        {{"*", .status = 404}, 320},
        {{"*", 200, .body = "User-agent: *\nDisallow:\n", .etag = "\"5f3-62a1\""}, 600},
        {{"*", 200, .body = usual, .etag = "\"5f3-62a1\"", .modified = "Tue, 14 Nov 2023 22:13:20 GMT"}, 1800},
    };
    enum {
        HOSTS = 10000
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct site site;
        site_init(&site, WEIR_PROFILE_UNLIMITED);
        site.bare = true;
        site_start(&site);
        site_serve(&site, &rows[i].page, 1);
        int64_t began_at = weir_clock_now(weir_clock_monotonic());
        for (int n = 0; n < HOSTS; n++)
            assert_int_equal(ask_result(&site, host(n)), 0);
        int64_t first_ns = (weir_clock_now(weir_clock_monotonic()) - began_at) / HOSTS;
        began_at = weir_clock_now(weir_clock_monotonic());
        for (int n = 0; n < HOSTS; n++)
            assert_int_equal(ask_result(&site, host(n)), 0);
        int64_t again_ns = (weir_clock_now(weir_clock_monotonic()) - began_at) / HOSTS;
        long bytes = atomic_load(&site.memory.live_bytes) / HOSTS;
        print_message("%zu: %ld bytes a host; %lld ns for the first visit, %lld ns for another\n", i, bytes,
                      (long long)first_ns, (long long)again_ns);
        assert_in_range(bytes, 100, rows[i].most_bytes);
        assert_true((long)stats(&site).bytes <= atomic_load(&site.memory.live_bytes));
        site_tear_down(&site);
    }
}

/* ---- a store ---- */

/* A record of a store: the last save for its key. */
struct stored {
    char key[64], text[256], etag[64], modified[64];
    enum wr_robots_record_kind kind;
    int64_t max_age_ns, fetched_wall_at;
};

struct shelf {
    struct stored records[8];
    size_t count, saves;
};

static void copy_span(char *memory, size_t bytes, struct wr_span span)
{
    (void)snprintf(memory, bytes, "%.*s", (int)span.bytes, span.bytes > 0 ? span.data : "");
}

static void save(void *context, const struct wr_robots_record *record)
{
    struct shelf *shelf = context;
    size_t i = 0;
    char key[64];
    copy_span(key, sizeof key, record->robots_url);
    while (i < shelf->count && strcmp(shelf->records[i].key, key) != 0)
        i++;
    shelf->count += i == shelf->count;
    shelf->saves++;
    copy_span(shelf->records[i].key, sizeof shelf->records[i].key, record->robots_url);
    shelf->records[i].fetched_wall_at = record->fetched_wall_at;
    shelf->records[i].max_age_ns = record->max_age_ns;
    if (record->kind == WR_ROBOTS_RECORD_SAME)
        return;
    shelf->records[i].kind = record->kind;
    copy_span(shelf->records[i].text, sizeof shelf->records[i].text, record->text);
    copy_span(shelf->records[i].etag, sizeof shelf->records[i].etag, record->etag);
    copy_span(shelf->records[i].modified, sizeof shelf->records[i].modified, record->modified);
}

static struct wr_robots_record record_of(const struct stored *stored)
{
    return (struct wr_robots_record){.robots_url = {stored->key, strnlen(stored->key, sizeof stored->key)},
                                     .kind = stored->kind,
                                     .text = {stored->text, strnlen(stored->text, sizeof stored->text)},
                                     .etag = {stored->etag, strnlen(stored->etag, sizeof stored->etag)},
                                     .modified = {stored->modified, strnlen(stored->modified, sizeof stored->modified)},
                                     .max_age_ns = stored->max_age_ns,
                                     .fetched_wall_at = stored->fetched_wall_at};
}

/* Starts a process that loads the records of the shelf. */
static void restart(struct site *site, struct shelf *shelf, int64_t wall_now)
{
    site_init(site, WEIR_PROFILE_UNLIMITED);
    assert_int_equal(weir_clock_fake_set(site->pacing.wall, wall_now), 0);
    site->options.save = save;
    site->options.save_context = shelf;
    site_start(site);
    for (size_t i = 0; i < shelf->count; i++) {
        struct wr_robots_record record = record_of(&shelf->records[i]);
        assert_int_equal(wr_policies_load(site->policies, &record), 0);
    }
}

static void save_length(void *context, const struct wr_robots_record *record)
{
    *(size_t *)context = record->text.bytes;
}

/* One byte more than the limit is saved, so that a load knows that the file was longer. */
static void saved_robots_txt_ends_at_the_size_limit(void **state)
{
    (void)state;
    struct site site;
    size_t saved = 0;
    char *body = calloc(2, WR_ROBOTS_MAX);
    assert_non_null(body);
    memset(body, '#', 2 * WR_ROBOTS_MAX - 1);
    const struct page page = {A, 200, .body = body};
    site_init(&site, WEIR_PROFILE_UNLIMITED);
    site.options.save = save_length;
    site.options.save_context = &saved;
    site_start(&site);
    site_serve(&site, &page, 1);
    (void)ask(&site, "http://a.test/x");
    assert_int_equal(saved, WR_ROBOTS_MAX + 1);
    site_tear_down(&site);
    free(body);
}

/* S4-19 */
static void fetched_robots_txt_is_saved_and_used_by_the_next_process(void **state)
{
    (void)state;
    static const struct page pages[] = {
        {A, 200, .body = "User-agent: *\nDisallow: /x\nCrawl-delay: 7\n", .etag = "\"1\"", .modified = "then"},
        {"http://b.test/robots.txt", .status = 404},
        {"http://c.test/robots.txt", .status = 503},
        {"http://d.test/robots.txt", 301, .location = "http://e.test/"},
        {"http://e.test/", 200, .body = "User-agent: *\nDisallow: /x\n", .etag = "\"e\""},
    };
    static const char *const urls[] = {"http://a.test/x", "http://b.test/x", "http://c.test/x", "http://d.test/x"};
    struct shelf shelf = {.count = 0};
    struct site site;
    restart(&site, &shelf, WALL);
    site_serve_all(&site, pages);
    for (size_t i = 0; i < COUNT(urls); i++)
        (void)ask(&site, urls[i]);
    assert_int_equal(shelf.saves, 3); /* a failure is not saved */
    assert_int_equal(shelf.count, 3);
    assert_string_equal(shelf.records[2].key, "http://d.test/robots.txt");
    assert_string_equal(shelf.records[2].etag, ""); /* the ETag belongs to another host */
    assert_int_equal(shelf.records[0].fetched_wall_at, WALL);
    site_tear_down(&site);

    restart(&site, &shelf, WALL + 22 * H);
    assert_said(&site, "http://a.test/x", "deny@2");
    assert_said(&site, "http://a.test/", "go");
    assert_int_equal(host_wait(&site.pacing, "a.test"), 0);
    /* set before the first page is fetched */
    assert_int_equal(look_at(&site.pacing, "a.test").delay_ns, 7 * S);
    assert_string_equal(site.log[0], A "?\"1\",then");
    assert_said(&site, "http://b.test/x", "go");
    assert_said(&site, "http://d.test/x", "deny@2");
    assert_string_equal(site.log[2], "http://d.test/robots.txt");
    site_answer_with(&site, A, 304, NULL);
    assert_int_equal(shelf.records[0].fetched_wall_at, WALL + 22 * H);
    assert_string_equal(shelf.records[0].etag, "\"1\"");
    /* the request was not conditional */
    site_answer_with(&site, "http://b.test/robots.txt", 304, NULL);
    site_answer_with(&site, "http://d.test/robots.txt", 404, NULL);
    assert_int_equal(shelf.records[1].fetched_wall_at, WALL);
    assert_int_equal(shelf.records[2].kind, WR_ROBOTS_RECORD_NONE);
    assert_int_equal(shelf.saves, 5);
    site_tear_down(&site);
}

/* S4-19, R23: the wall clock may have been set, and the store may be corrupt. */
static void age_of_a_stored_robots_txt_is_clamped(void **state)
{
    (void)state;
    static const struct {
        int64_t wall_at;
        const char *words;
        int fetches;
    } rows[] = {
        {WALL, "deny@2", 0},
        {WALL - 20 * H, "deny@2", 0},
        {WALL - 22 * H, "deny@2", 1},
        {WALL - 25 * H, "wait", 1},
        {WALL - 900 * WEIR_DAY, "wait", 1},
        {0, "wait", 1},
        {-1, "wait", 1},
        {INT64_MIN, "wait", 1},
        {WALL + 30 * S, "deny@2", 0}, /* the clock of another machine is slightly ahead */
        {WALL + 2 * WEIR_MINUTE, "wait", 1},
        {WALL + 900 * WEIR_DAY, "wait", 1}, /* the clock was wrong, so the age is unknown */
        {INT64_MAX, "wait", 1},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct site site;
        struct shelf shelf = {.count = 0};
        struct wr_robots_record record = {.robots_url = wr_span_of(A),
                                          .kind = WR_ROBOTS_RECORD_TEXT,
                                          .text = wr_span_of("User-agent: *\nDisallow: /x\n"),
                                          .etag = wr_span_of("\"1\""),
                                          .max_age_ns = -1,
                                          .fetched_wall_at = rows[i].wall_at};
        restart(&site, &shelf, WALL);
        assert_int_equal(wr_policies_load(site.policies, &record), 0);
        assert_said(&site, "http://a.test/x", rows[i].words);
        assert_int_equal(atomic_load(&site.sent), rows[i].fetches);
        if (rows[i].fetches > 0) {
            assert_string_equal(site.log[0], A "?\"1\",");
            site_answer_with(&site, A, 304, NULL); /* a confirmed record is fresh */
        }
        assert_said(&site, "http://a.test/x", "deny@2");
        site_tear_down(&site);
    }
}

static void loaded_record_is_checked_and_does_not_replace_known_rules(void **state)
{
    (void)state;
    struct site site;
    struct shelf shelf = {.count = 0};
    struct wr_robots_record record = {.robots_url = wr_span_of(A), .fetched_wall_at = WALL, .max_age_ns = -1};
    record.text = wr_span_of("User-agent: *\nDisallow: /\n");
    restart(&site, &shelf, WALL);
    assert_said(&site, "http://a.test/x", "wait");
    site_answer_with(&site, A, 200, "");
    assert_int_equal(wr_policies_load(site.policies, &record), 0);
    assert_said(&site, "http://a.test/x", "go");
    record.robots_url = wr_span_of("gopher://a.test/");
    assert_int_equal(wr_policies_load(site.policies, &record), WEIR_E_INVAL);
    record.robots_url = wr_span_of("http://b.test/robots.txt");
    record.kind = WR_ROBOTS_RECORD_SAME;
    assert_int_equal(wr_policies_load(site.policies, &record), WEIR_E_INVAL);
    assert_false(knows(&site, "http://b.test/"));
    char long_etag[WR_VALIDATOR_MAX + 2];
    memset(long_etag, 'e', sizeof long_etag - 1);
    long_etag[sizeof long_etag - 1] = '\0';
    record.kind = WR_ROBOTS_RECORD_TEXT;
    record.etag = wr_span_of(long_etag);
    record.fetched_wall_at = WALL - 22 * H;
    assert_int_equal(wr_policies_load(site.policies, &record), 0);
    assert_said(&site, "http://b.test/x", "deny@2");
    /* not conditional: the ETag is too long to keep */
    assert_string_equal(site.log[1], "http://b.test/robots.txt");
    site_answer_with(&site, "http://b.test/robots.txt", 404, NULL);
    wr_policies_close(site.policies);
    assert_int_equal(wr_policies_load(site.policies, &record), WEIR_E_CLOSED);
    site_tear_down(&site);
}

/* ---- failing allocations ---- */

/* Creates a registry, loads, asks, waits, follows a redirect and evicts. Returns false if no
 * allocation failed. */
static bool survives(long fail_at, bool for_ever)
{
    static const struct page pages[] = {
        {A, 301, .location = "/elsewhere"},
        {"http://a.test/elsewhere", 200, .body = "User-agent: *\nDisallow: /x\n"},
        {"*", 200, .body = "User-agent: *\nDisallow: /y\n", .etag = "\"1\""},
    };
    struct site site;
    struct target target;
    struct wr_robots_decision ruling;
    struct wr_policy_ticket *ticket;
    struct wr_robots_record record = {.robots_url = wr_span_of("http://b.test/robots.txt"),
                                      .text = wr_span_of("User-agent: *\nDisallow: /\n"),
                                      .etag = wr_span_of("\"b\""),
                                      .fetched_wall_at = WALL,
                                      .max_age_ns = -1};
    site_init(&site, WEIR_PROFILE_UNLIMITED);
    pacing_start(&site.pacing);
    site.options.pacer = site.pacing.pacer;
    site.options.max_hosts = 2;
    site_serve_all(&site, pages);
    atomic_store(&site.memory.fail_at, fail_at);
    atomic_store(&site.memory.fail_for_ever, for_ever);
    int result = wr_policies_new(&site.options, &site.policies);
    assert_true(result == 0 || result == WEIR_E_NOMEM);
    if (result == 0) {
        result = wr_policies_load(site.policies, &record);
        assert_true(result == 0 || result == WEIR_E_NOMEM);
        for (int i = 0; i < 3; i++) {
            const struct wr_url *url = url_of(&target, i == 0 ? "http://a.test/x" : host(i));
            result = wr_policies_ask(site.policies, url, &ruling);
            assert_true(result == 0 || result == WEIR_E_NOMEM);
            if (result == 0 && i == 0 && ruling.decision.verdict != WEIR_WAIT)
                /* a failed allocation never allows a page */
                assert_string_equal(said(ruling), "deny@2");
            result = wr_policies_enqueue(site.policies, url, S, ignore_wake, NULL, &ticket);
            assert_true(result == 0 || result == WEIR_E_NOMEM);
            if (result == 0)
                wr_policy_ticket_free(ticket);
        }
        bool failed = atomic_load(&site.memory.takes) >= fail_at;
        atomic_store(&site.memory.fail_at, 0);
        atomic_store(&site.memory.fail_for_ever, false);
        pass(&site.pacing, 5 * S); /* after the failure everything works */
        assert_said(&site, "http://a.test/x", "deny@2");
        site_tear_down(&site);
        return failed;
    }
    site.policies = NULL;
    site_tear_down(&site);
    return true;
}

/* L1 */
static void policy_allocation_failure_is_a_passing_error(void **state)
{
    (void)state;
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        long n = 1;
        while (survives(n, for_ever > 0))
            assert_true(++n < 1000);
        assert_true(n > 15);
    }
}

WEIR_TESTS(test(saved_robots_txt_ends_at_the_size_limit), test(least_recently_used_policy_makes_room),
           test(policy_in_use_is_never_evicted), test(hosts_with_failing_robots_txt_do_not_fill_the_table),
           test(policy_bytes_are_bounded_for_any_files), test(robots_rules_that_find_no_room_are_fetched_later),
           test(memory_of_a_policy_is_bounded_per_kind_of_file),
           test(fetched_robots_txt_is_saved_and_used_by_the_next_process), test(age_of_a_stored_robots_txt_is_clamped),
           test(loaded_record_is_checked_and_does_not_replace_known_rules),
           test(policy_allocation_failure_is_a_passing_error))
