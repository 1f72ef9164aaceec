/* SPDX-License-Identifier: MIT */
/* test_policy.c - tests of the rulings of the registry of policies: S4-5 to S4-16, R11, B5 to B9,
 * B13, U8, U9. */
#include "unit/http/net/policy_rig.h"

#define A "http://a.test/robots.txt"
#define B "http://b.test/robots.txt"

/* S4-9, K4 */
static void robots_is_fetched_when_first_needed_and_once(void **state)
{
    (void)state;
    struct site site;
    site_set_up(&site);
    assert_int_equal(atomic_load(&site.sent), 0);
    assert_said(&site, "http://a.test/x", "wait");
    assert_said(&site, "http://a.test/y", "wait");
    assert_int_equal(atomic_load(&site.sent), 1);
    assert_string_equal(site.log[0], A);
    assert_int_equal(look(&site, A).state, WR_ROBOTS_STATE_FETCHING);
    site_answer_with(&site, A, 200, "User-agent: *\nDisallow: /x\n");
    assert_said(&site, "http://a.test/x", "deny@2");
    assert_said(&site, "http://a.test/y", "go");
    pass(&site.pacing, 20 * H);
    assert_said(&site, "http://a.test/y", "go");
    assert_int_equal(atomic_load(&site.sent), 1);
    site_tear_down(&site);
}

/* S4-6, R12, B13 */
static void each_scheme_host_and_port_has_rules_of_its_own(void **state)
{
    (void)state;
    static const char *const urls[] = {"http://a.test/",       "https://a.test/",    "http://a.test:8080/",
                                       "https://a.test:8080/", "http://www.a.test/", "http://a.test:443/",
                                       "http://[::1]/",        "http://192.0.2.1/"};
    struct site site;
    site_set_up(&site);
    for (size_t i = 0; i < COUNT(urls); i++) {
        assert_said(&site, urls[i], "wait");
        assert_int_equal(atomic_load(&site.sent), i + 1);
        char robots[64];
        (void)snprintf(robots, sizeof robots, "%srobots.txt", urls[i]);
        assert_string_equal(site.log[i], robots);
        site_answer_with(&site, robots, 200, i == 0 ? "User-agent: *\nDisallow: /\n" : "");
    }
    for (size_t i = 0; i < COUNT(urls); i++)
        assert_said(&site, urls[i], i == 0 ? "deny@2" : "go");
    assert_said(&site, "HTTP://A.test.:80/x", "deny@2"); /* another spelling of the first URL */
    assert_int_equal(atomic_load(&site.sent), COUNT(urls));
    site_tear_down(&site);
}

/* S4-15, U9: only the group of our agent applies, or the group "*"; groups of other agents do
 * not. */
static void group_of_our_agent_decides_and_others_are_ignored(void **state)
{
    (void)state;
    static const struct page pages[] = {
        {A, 200,
         .body = "User-agent: other\nDisallow: /\n\nUser-agent: Weir\nDisallow: /mine\n\nUser-agent: *\nDisallow: "
                 "/all\nCrawl-delay: 9\n"},
        {B, 200, .body = "User-agent: other\nDisallow: /\nCrawl-delay: 9\n"},
    };
    struct site site;
    site_set_up(&site);
    site_serve_all(&site, pages);
    assert_said(&site, "http://a.test/mine", "deny@5");
    assert_said(&site, "http://a.test/all", "go");
    assert_said(&site, "http://b.test/", "go");
    assert_int_equal(look(&site, A).delay_ns, 0);
    assert_int_equal(look(&site, B).delay_ns, 0);
    site_tear_down(&site);
}

/* B5, R11: a body without rules forbids nothing, in every mode. */
static void body_that_is_not_a_robots_txt_forbids_nothing(void **state)
{
    (void)state;
    static const char *const bodies[] = {"<!DOCTYPE html><html><body>Disallow: /</body></html>", "",
                                         "\x89PNG\r\n\x1a\n"};
    for (int mode = WR_ROBOTS_ON_ERROR_RFC9309; mode <= WR_ROBOTS_ON_ERROR_DENY; mode++)
        for (size_t i = 0; i < COUNT(bodies); i++) {
            struct site site;
            struct page page = {A, 200, .body = bodies[i]};
            site_init(&site, WEIR_PROFILE_UNLIMITED);
            site.options.life.on_error = (enum wr_robots_on_error)mode;
            site_start(&site);
            site_serve(&site, &page, 1);
            assert_said(&site, "http://a.test/x", "go");
            site_tear_down(&site);
        }
}

/* B1: a file that is too long is truncated. The rules before the end apply, except a truncated
 * line. */
static void robots_txt_beyond_the_size_limit_is_truncated(void **state)
{
    (void)state;
    static const char head[] = "User-agent: *\nDisallow: /a\n";
    struct site site;
    char *body = malloc(WR_ROBOTS_MAX + 2);
    assert_non_null(body);
    memset(body, '#', WR_ROBOTS_MAX + 1);
    memcpy(body, head, sizeof head - 1);
    /* The file is cut after the slash, where the line would forbid everything. */
    memcpy(body + WR_ROBOTS_MAX - 12, "\nDisallow: /b", 13);
    body[WR_ROBOTS_MAX + 1] = '\0';
    struct page page = {A, 200, .body = body};
    site_set_up(&site);
    site_serve(&site, &page, 1);
    assert_said(&site, "http://a.test/a", "deny@2");
    assert_said(&site, "http://a.test/b", "go");
    assert_true(look(&site, A).is_cut);
    free(body);
    site_tear_down(&site);
}

/* ---- failures ---- */

/* B6, R11: the page waits, with reason robots, until the file is fetched. */
static void host_whose_robots_txt_fails_waits_and_is_retried(void **state)
{
    (void)state;
    struct site site;
    site_set_up(&site);
    static const int statuses[] = {500, 503, 0, 0, 999};
    int64_t waited_ns = 0;
    assert_said(&site, "http://a.test/", "wait");
    for (size_t i = 0; i < COUNT(statuses); i++) {
        site_answer_with(&site, A, statuses[i], "User-agent: *\nAllow: /\n");
        struct wr_robots_decision ruling = ask(&site, "http://a.test/");
        assert_int_equal(ruling.decision.verdict, WEIR_WAIT);
        assert_int_equal(ruling.decision.reason, WEIR_REASON_ROBOTS);
        assert_true(ruling.decision.wait_ns > waited_ns / 2 && ruling.decision.wait_ns <= (5 * S) << i);
        assert_int_equal(look(&site, A).retry_ns, ruling.decision.wait_ns);
        waited_ns = ruling.decision.wait_ns;
        pass(&site.pacing, waited_ns - 1);
        assert_int_equal(ask(&site, "http://a.test/").decision.wait_ns, 1);
        pass(&site.pacing, 1);
        assert_int_equal(atomic_load(&site.sent), i + 1);
        assert_said(&site, "http://a.test/", "wait");
        assert_int_equal(atomic_load(&site.sent), i + 2);
    }
    site_answer_with(&site, A, 200, "");
    assert_said(&site, "http://a.test/", "go");
    assert_int_equal(stats(&site).failures, COUNT(statuses));
    site_tear_down(&site);
}

/* B7 */
static void absent_file_allows_and_too_many_requests_waits(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *words;
    } rows[] = {{400, "go"}, {401, "go"}, {403, "go"}, {404, "go"}, {410, "go"}, {451, "go"}, {429, "wait+60000"}};
    for (int mode = WR_ROBOTS_ON_ERROR_RFC9309; mode <= WR_ROBOTS_ON_ERROR_DENY; mode++)
        for (size_t i = 0; i < COUNT(rows); i++) {
            struct site site;
            struct page page = {A, rows[i].status, .body = "User-agent: *\nDisallow: /\n",
                                .retry_after_ns = WEIR_MINUTE};
            site_init(&site, WEIR_PROFILE_UNLIMITED);
            site.options.life.on_error = (enum wr_robots_on_error)mode;
            site_start(&site);
            site_serve(&site, &page, 1);
            assert_said(&site, "http://a.test/x", rows[i].words);
            site_tear_down(&site);
        }
}

/* S4-16, R11: if robots.txt fails, all pages are allowed, but the pacer's gate still limits
 * requests. */
static void under_allow_a_host_with_failing_robots_txt_is_still_limited(void **state)
{
    (void)state;
    static const struct page pages[] = {{A, .status = 503}};
    struct site site;
    struct target target;
    struct wr_robots_decision ruling;
    weir_permit permit;
    site_init(&site, WEIR_PROFILE_STRICT);
    site.options.life.on_error = WR_ROBOTS_ON_ERROR_ALLOW;
    site_start(&site);
    site_serve_all(&site, pages);
    const struct wr_url *url = url_of(&target, "http://a.test/");
    for (int i = 0; i < 10; i++) {
        assert_int_equal(wr_policies_acquire(site.policies, url, 0, 0, NULL, &permit, &ruling), 0);
        assert_int_equal(ruling.decision.verdict, WEIR_GO);
        tell(&permit, 200);
        assert_int_equal(wr_policies_acquire(site.policies, url, 0, 0, NULL, &permit, &ruling), WEIR_E_TIMEOUT);
        assert_null(permit.pacer);
        pass(&site.pacing, S);
    }
    assert_in_range(atomic_load(&site.sent), 1, 3); /* robots.txt is retried with a backoff */
    site_tear_down(&site);
}

static void under_deny_a_host_with_failing_robots_txt_gets_no_request(void **state)
{
    (void)state;
    struct site site;
    struct target target;
    struct wr_robots_decision ruling;
    weir_permit permit;
    site_init(&site, WEIR_PROFILE_UNLIMITED);
    site.options.life.on_error = WR_ROBOTS_ON_ERROR_DENY;
    site_start(&site);
    assert_said(&site, "http://a.test/", "wait");
    site_answer_with(&site, A, 500, NULL);
    assert_said(&site, "http://a.test/", "deny");
    const struct wr_url *url = url_of(&target, "http://a.test/");
    assert_int_equal(wr_policies_acquire(site.policies, url, 0, 0, NULL, &permit, &ruling), 0);
    assert_int_equal(ruling.decision.verdict, WEIR_DENY);
    assert_null(permit.pacer);
    pass(&site.pacing, 5 * S);
    assert_said(&site, "http://a.test/", "deny");
    site_answer_with(&site, A, 200, "");
    assert_said(&site, "http://a.test/", "go");
    site_tear_down(&site);
}

/* ---- redirects ---- */

/* B8, R20: every hop is a separate request to the fetcher, which sends it through the gate of its
 * host. */
static void redirected_robots_txt_applies_to_the_host_that_was_asked(void **state)
{
    (void)state;
    static const struct page pages[] = {
        {A, 301, .location = "https://a.test/robots.txt"},
        {"https://a.test/robots.txt", 302, .location = "//b.test/one"},
        {"https://b.test/one", 303, .location = "two?x"},
        {"https://b.test/two?x", 307, .location = "/three#part"},
        {"https://b.test/three#part", 308, .location = "http://c.test:81/robots.txt"},
        {"http://c.test:81/robots.txt", 200, .body = "User-agent: *\nDisallow: /x\n", .etag = "\"5\""},
    };
    struct site site;
    site_set_up(&site);
    site_serve_all(&site, pages);
    assert_said(&site, "http://a.test/x", "deny@2");
    assert_int_equal(atomic_load(&site.sent), 6);
    for (int i = 0; i < 6; i++)
        assert_string_equal(site.log[i], pages[i].url);
    assert_int_equal(stats(&site).fetches, 6);
    assert_false(knows(&site, "http://c.test:81/"));
    assert_false(knows(&site, "https://a.test/"));
    site_serve(&site, NULL, 0);
    pass(&site.pacing, 22 * H);
    assert_said(&site, "http://a.test/x", "deny@2");
    assert_string_equal(site.log[6], A); /* without the ETag of the other host */
    site_answer_with(&site, A, 404, NULL);
    site_tear_down(&site);
}

static void validators_do_not_follow_a_redirect(void **state)
{
    (void)state;
    struct site site;
    site_set_up(&site);
    assert_said(&site, "http://a.test/", "wait");
    site_answer(&site, &(struct page){A, 200, .body = "", .etag = "\"1\""});
    pass(&site.pacing, 21 * H);
    assert_said(&site, "http://a.test/", "go");
    assert_string_equal(site.log[1], A "?\"1\",");
    site_answer(&site, &(struct page){A, 301, .location = B});
    assert_string_equal(site.log[2], B);
    site_answer_with(&site, B, 304, NULL); /* the request was not conditional */
    assert_int_equal(look(&site, A).state, WR_ROBOTS_STATE_FAILING);
    assert_said(&site, "http://a.test/", "go");
    site_tear_down(&site);
}

/* A10 to A13 */
static void password_in_a_robots_location_is_dropped(void **state)
{
    (void)state;
    struct site site;
    site_set_up(&site);
    assert_said(&site, "http://a.test/", "wait");
    site_answer(&site, &(struct page){A, 302, .location = "http://user:secret@b.test/robots.txt"});
    assert_string_equal(site.log[1], B);
    site_answer_with(&site, B, 200, "User-agent: *\nDisallow: /x\n");
    assert_said(&site, "http://a.test/x", "deny@2");
    site_tear_down(&site);
}

/* C11 */
static void robots_validators_with_bad_bytes_are_dropped(void **state)
{
    static const char *const etags[] = {"\"1\"\r\nX-Evil: 1", "\"\x01\"", "\"\x7f\"", "a\nb"};
    static char long_etag[1 << 20];
    (void)state;
    memset(long_etag, 'x', sizeof long_etag - 1);
    for (size_t i = 0; i <= COUNT(etags); i++) {
        struct site site;
        struct page page = {A, 200, .body = "", .etag = i < COUNT(etags) ? etags[i] : long_etag, .modified = "today\r"};
        site_set_up(&site);
        assert_said(&site, "http://a.test/", "wait");
        site_answer(&site, &page);
        pass(&site.pacing, 21 * H);
        assert_said(&site, "http://a.test/", "go");
        assert_string_equal(site.log[1], A); /* no '?': the request is not conditional */
        site_answer_with(&site, A, 304, NULL);
        assert_int_equal(look(&site, A).state, WR_ROBOTS_STATE_FAILING);
        site_tear_down(&site);
    }
}

static void endless_or_invalid_robots_redirects_count_as_an_absent_file(void **state)
{
    (void)state;
    static const char *const locations[] = {A, "", "ftp://a.test/", "http://", "http://exa mple.org/", NULL};
    for (size_t i = 0; i < COUNT(locations); i++) {
        struct site site;
        struct page page = {A, 301, .body = "User-agent: *\nDisallow: /\n", .location = locations[i]};
        site_set_up(&site);
        site_serve(&site, &page, 1);
        assert_said(&site, "http://a.test/x", "go");
        assert_int_equal(atomic_load(&site.sent), i == 0 ? 6 : 1);
        site_tear_down(&site);
    }
}

/* ---- time ---- */

/* B9: rules are refreshed while the old ones still apply. The request has the validators; a 304
 * keeps the rules. */
static void robots_rules_are_refreshed_with_validators_while_they_apply(void **state)
{
    (void)state;
    struct site site;
    struct page first = {A, 200, "User-agent: *\nDisallow: /x\n", .etag = "\"v1\"", .modified = "yesterday"};
    site_set_up(&site);
    assert_said(&site, "http://a.test/x", "wait");
    site_answer(&site, &first);
    pass(&site.pacing, 21 * H);
    assert_said(&site, "http://a.test/x", "deny@2");
    assert_int_equal(atomic_load(&site.sent), 2);
    assert_string_equal(site.log[1], A "?\"v1\",yesterday");
    assert_said(&site, "http://a.test/y", "go");
    assert_int_equal(atomic_load(&site.sent), 2);
    site_answer_with(&site, A, 304, NULL);
    assert_int_equal(look(&site, A).age_ns, 0);
    assert_said(&site, "http://a.test/x", "deny@2");
    pass(&site.pacing, 23 * H);
    assert_said(&site, "http://a.test/x", "deny@2");
    assert_string_equal(site.log[2], A "?\"v1\",yesterday");
    site_answer_with(&site, A, 200, "User-agent: *\nDisallow: /y\n");
    assert_said(&site, "http://a.test/x", "go");
    assert_said(&site, "http://a.test/y", "deny@2");
    pass(&site.pacing, 25 * H); /* rules older than a day are not used */
    assert_said(&site, "http://a.test/x", "wait");
    assert_string_equal(site.log[3], A);
    site_answer_with(&site, A, 500, NULL);
    assert_said(&site, "http://a.test/x", "go"); /* except if there is nothing newer */
    assert_said(&site, "http://a.test/y", "deny@2");
    site_tear_down(&site);
}

static void max_age_makes_the_robots_refresh_earlier(void **state)
{
    (void)state;
    static const struct page pages[] = {{A, 200, .cache_control = "public, max-age=7200"}};
    struct site site;
    site_set_up(&site);
    site_serve_all(&site, pages);
    assert_said(&site, "http://a.test/", "go");
    pass(&site.pacing, 2 * H - 1);
    assert_said(&site, "http://a.test/", "go");
    assert_int_equal(atomic_load(&site.sent), 1);
    pass(&site.pacing, 1);
    assert_said(&site, "http://a.test/", "go");
    assert_int_equal(atomic_load(&site.sent), 2);
    site_tear_down(&site);
}

/* ---- delays ---- */

/* Returns the time that the gate delays the second of two allowed requests. */
static int64_t spacing(struct site *site, const char *url)
{
    struct target target;
    struct wr_robots_decision ruling;
    weir_permit permit;
    assert_int_equal(wr_policies_acquire(site->policies, url_of(&target, url), 0, 0, NULL, &permit, &ruling), 0);
    assert_int_equal(ruling.decision.verdict, WEIR_GO);
    tell(&permit, 200);
    char key[64];
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, key, sizeof key);
    wr_url_append_key(&buf, &target.url);
    return host_wait(&site->pacing, key);
}

/* S4-14, U8, U9, B10: the delay of robots.txt applies at the gate, with fractions, a maximum and a
 * factor. */
static void crawl_delay_and_request_rate_space_the_starts(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        double factor;
        int64_t max_ns, spacing_ns;
    } rows[] = {
        {"Crawl-delay: 10", 0, 0, 10 * S},
        {"Crawl-delay: 0.5", 0, 0, S / 2},
        {"Crawl-delay: 10", 0.5, 0, 5 * S},
        {"Crawl-delay: 10", 2, 0, 20 * S},
        {"Request-rate: 1/5", 0, 0, 5 * S},
        {"Request-rate: 4/60s", 0, 0, 15 * S},
        {"Crawl-delay: 1e308", 0, 0, WEIR_DAY},
        {"Crawl-delay: 99999999999999999999", 0, 0, WEIR_DAY},
        {"Crawl-delay: 99999", 0, WEIR_MINUTE, WEIR_MINUTE},
        {"Crawl-delay: 50", 2, WEIR_MINUTE, WEIR_MINUTE},
        {"Crawl-delay: nan", 0, 0, 0},
        {"", 0, 0, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct site site;
        char body[128];
        (void)snprintf(body, sizeof body, "User-agent: *\n%s\nDisallow: /x\n", rows[i].line);
        struct page page = {A, 200, .body = body};
        site_init(&site, WEIR_PROFILE_UNLIMITED);
        site.options.delay_factor = rows[i].factor;
        site.options.delay_max_ns = rows[i].max_ns;
        site_start(&site);
        site_serve(&site, &page, 1);
        assert_int_equal(spacing(&site, "http://a.test/"), rows[i].spacing_ns);
        assert_int_equal(look(&site, A).delay_ns, rows[i].spacing_ns);
        site_tear_down(&site);
    }
}

/* U8: the pacer may forget a host, but not the Crawl-delay of its robots.txt. */
static void crawl_delay_outlives_the_pacers_memory_of_the_host(void **state)
{
    (void)state;
    static const struct page pages[] = {{A, 200, .body = "User-agent: *\nCrawl-delay: 10\n"}};
    struct site site;
    site_set_up(&site);
    site_serve_all(&site, pages);
    assert_int_equal(spacing(&site, "http://a.test/"), 10 * S);
    pass(&site.pacing, H);
    assert_int_equal(weir_pacer_forget(site.pacing.pacer, "a.test", 6), 0);
    assert_false(host_known(&site.pacing, "a.test"));
    assert_int_equal(spacing(&site, "http://a.test/"), 10 * S);
    assert_int_equal(atomic_load(&site.sent), 1);
    site_tear_down(&site);
}

/* R12: the two schemes of a host have separate rules but one gate. */
static void larger_crawl_delay_of_both_schemes_applies_to_the_host(void **state)
{
    (void)state;
    static const char secure[] = "https://a.test/robots.txt";
    struct site site;
    site_set_up(&site);
    assert_said(&site, "http://a.test/", "wait");
    assert_said(&site, "https://a.test/", "wait");
    site_answer_with(&site, A, 200, "User-agent: *\nCrawl-delay: 10\n");
    site_answer_with(&site, secure, 200, "User-agent: *\nCrawl-delay: 3\n");
    assert_int_equal(spacing(&site, "https://a.test/"), 10 * S);
    pass(&site.pacing, 21 * H);
    assert_int_equal(spacing(&site, "http://a.test/"), 10 * S); /* starts the refresh */
    pass(&site.pacing, WEIR_MINUTE);
    site_answer_with(&site, A, 200, "User-agent: *\nCrawl-delay: 1\n");
    assert_int_equal(spacing(&site, "http://a.test/"), 3 * S);
    pass(&site.pacing, WEIR_MINUTE);
    assert_said(&site, "https://a.test/", "go");
    site_answer_with(&site, secure, 404, NULL);
    assert_int_equal(spacing(&site, "https://a.test/"), 1 * S);
    site_tear_down(&site);
}

static void withdrawn_crawl_delay_is_removed_from_the_gate(void **state)
{
    (void)state;
    struct site site;
    site_set_up(&site);
    assert_said(&site, "http://a.test/", "wait");
    site_answer_with(&site, A, 200, "User-agent: *\nCrawl-delay: 100\n");
    assert_int_equal(spacing(&site, "http://a.test/"), 100 * S);
    pass(&site.pacing, 21 * H);
    assert_int_equal(spacing(&site, "http://a.test/"), 100 * S);
    site_answer_with(&site, A, 200, "User-agent: *\nDisallow:\n");
    assert_int_equal(host_wait(&site.pacing, "a.test"), 0);
    site_tear_down(&site);
}

/* U8: a page is not sent if the pacer has no room for its host. */
static void page_is_not_sent_if_the_pacer_cannot_take_its_delay(void **state)
{
    (void)state;
    static const struct page pages[] = {{A, 200, .body = "User-agent: *\nCrawl-delay: 10\n"}};
    struct site site;
    struct target target;
    struct wr_robots_decision ruling = {.line = 77};
    site_init(&site, WEIR_PROFILE_UNLIMITED);
    site.pacing.options.max_hosts = 1;
    site_start(&site);
    site_serve_all(&site, pages);
    weir_permit held = acquired(&site.pacing, "b.test", 0);
    assert_int_equal(wr_policies_ask(site.policies, url_of(&target, "http://a.test/"), &ruling), WEIR_E_FULL);
    assert_int_equal(ruling.line, 77);
    tell(&held, 200);
    pass(&site.pacing, H);
    assert_said(&site, "http://a.test/", "go");
    site_tear_down(&site);
}

/* ---- options ---- */

static void options_without_pacer_or_fetcher_or_out_of_bounds_are_refused(void **state)
{
    (void)state;
    struct site site;
    struct wr_policies *policies = NULL;
    site_set_up(&site);
    for (int i = 0; i < 9; i++) {
        struct wr_policies_options options = site.options;
        static const char *const why[] = {"pacer",        "fetch",     "agent",     "delay_max_ns", "delay_factor",
                                          "delay_factor", "max_hosts", "max_bytes", "on_error"};
        options.pacer = i == 0 ? NULL : options.pacer;
        options.fetch = i == 1 ? NULL : options.fetch;
        options.agent = i == 2 ? "" : NULL;
        options.delay_max_ns = i == 3 ? -1 : 0;
        options.delay_factor = i == 4 ? -1 : i == 5 ? 1e9 : 0;
        options.max_hosts = i == 6 ? SIZE_MAX : 0;
        options.max_bytes = i == 7 ? 1 : 0;
        options.life.on_error = i == 8 ? (enum wr_robots_on_error)7 : WR_ROBOTS_ON_ERROR_RFC9309;
        assert_int_equal(wr_policies_new(&options, &policies), WEIR_E_INVAL);
        assert_non_null(strstr(weir_error_detail(), why[i]));
    }
    assert_null(policies);
    site_tear_down(&site);
}

WEIR_TESTS(test(robots_is_fetched_when_first_needed_and_once), test(each_scheme_host_and_port_has_rules_of_its_own),
           test(group_of_our_agent_decides_and_others_are_ignored), test(body_that_is_not_a_robots_txt_forbids_nothing),
           test(robots_txt_beyond_the_size_limit_is_truncated), test(host_whose_robots_txt_fails_waits_and_is_retried),
           test(absent_file_allows_and_too_many_requests_waits),
           test(under_allow_a_host_with_failing_robots_txt_is_still_limited),
           test(under_deny_a_host_with_failing_robots_txt_gets_no_request),
           test(redirected_robots_txt_applies_to_the_host_that_was_asked), test(validators_do_not_follow_a_redirect),
           test(password_in_a_robots_location_is_dropped), test(robots_validators_with_bad_bytes_are_dropped),
           test(endless_or_invalid_robots_redirects_count_as_an_absent_file),
           test(robots_rules_are_refreshed_with_validators_while_they_apply),
           test(max_age_makes_the_robots_refresh_earlier), test(crawl_delay_and_request_rate_space_the_starts),
           test(crawl_delay_outlives_the_pacers_memory_of_the_host),
           test(larger_crawl_delay_of_both_schemes_applies_to_the_host),
           test(withdrawn_crawl_delay_is_removed_from_the_gate),
           test(page_is_not_sent_if_the_pacer_cannot_take_its_delay),
           test(options_without_pacer_or_fetcher_or_out_of_bounds_are_refused))
