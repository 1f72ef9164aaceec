/* SPDX-License-Identifier: MIT */
/* test_robots_hostile.c - tests hostile robots.txt files: too long, too many rules, too slow (B1 -
 * B3, B12); and lack of memory. */
#include "robots_rig.h"

#include "core/web/url/url.h"

#define TEXT_ROOM ((size_t)4 << 20)

/* The text of the current test. */
static char *text;
static size_t text_bytes;

static int set_up(void **state)
{
    (void)state;
    text = malloc(TEXT_ROOM);
    text_bytes = 0;
    return text == NULL ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(text);
    return 0;
}

static void add(const char *line)
{
    size_t bytes = strlen(line);
    assert_true(text_bytes + bytes <= TEXT_ROOM);
    memcpy(text + text_bytes, line, bytes);
    text_bytes += bytes;
}

static void add_many(const char *line, size_t until_bytes)
{
    while (text_bytes + strlen(line) <= until_bytes)
        add(line);
}

static void read_text(struct robots_fixture *rig)
{
    rig_read_as(rig, "weir", text, text_bytes);
}

/* B1 */
static void text_beyond_the_cap_is_not_read_and_what_came_before_counts(void **state)
{
    struct robots_fixture rig;
    (void)state;
    add("User-agent: *\nDisallow: /first\n");
    add_many("# padding\n", (size_t)500 << 10); /* RFC 9309 2.5: at least 500 KiB are read */
    add("Disallow: /at500k\n");
    add_many("# padding\n", WR_ROBOTS_MAX - 8);
    add("Allow: /"); /* the rest of this line is beyond the cap */
    add_many("x", WR_ROBOTS_MAX);
    add("x/private-no-more\nDisallow: /beyond\n");
    add_many("Disallow: /beyond\n", TEXT_ROOM);
    read_text(&rig);
    assert_true(verdict(&rig, "/first") == -2);
    assert_true(verdict(&rig, "/at500k") < 0);
    assert_int_equal(verdict(&rig, "/beyond"), 0);
    assert_true(wr_robots_facts(rig.robots)->is_cut);
    assert_int_equal(wr_robots_facts(rig.robots)->rules, 2); /* the truncated line is dropped */
    assert_true(wr_robots_facts(rig.robots)->block_bytes < 4096);
    rig_release(&rig);
}

/* B2 */
static void a_line_of_a_megabyte_is_one_line(void **state)
{
    struct robots_fixture rig;
    (void)state;
    add("User-agent: *\nDisallow: /");
    add_many("a", WR_ROBOTS_MAX - 100);
    add("\nDisallow: /b\n");
    read_text(&rig);
    /* no path is that long, so that the rule can be dropped */
    assert_int_equal(wr_robots_facts(rig.robots)->rules, 1);
    assert_int_equal(verdict(&rig, "/b"), -3);
    rig_release(&rig);
    text_bytes = 0;
    add("User-agent: *\nDisallow: /b");
    add_many("*", WR_ROBOTS_MAX - 100);
    add("c\n");
    read_text(&rig);
    assert_int_equal(verdict(&rig, "/bxc"), -2); /* a row of stars is one star */
    rig_release(&rig);
}

/* B2 */
static void hundred_thousand_robots_groups_are_parsed(void **state)
{
    char line[64];
    struct robots_fixture rig;
    (void)state;
    for (int i = 0; text_bytes + 100 < WR_ROBOTS_MAX; i++) {
        snprintf(line, sizeof line, "User-agent:%s\nAllow:\n", i == 40000 ? "weir" : "b");
        add(line);
    }
    add("User-agent: WEIR\nDisallow: /a\n");
    add_many("#\n", WR_ROBOTS_MAX);
    for (int i = 50000; i < 100000; i++) /* beyond the cap */
        add("User-agent:weir\nDisallow:/b\n");
    read_text(&rig);
    assert_true(verdict(&rig, "/a") < -80000);
    assert_int_equal(verdict(&rig, "/b"), 0);
    assert_int_equal(wr_robots_facts(rig.robots)->rules, 1);
    rig_release(&rig);
}

/* B2 */
static void maximum_of_robots_rules_takes_bounded_memory(void **state)
{
    char line[64];
    struct robots_fixture rig;
    (void)state;
    add("User-agent:*\n");
    for (int i = 0; text_bytes + 64 < WR_ROBOTS_MAX; i++) {
        snprintf(line, sizeof line, "Allow:/%x\n", i);
        add(line);
    }
    add("Disallow:/zz\n");
    read_text(&rig);
    uint32_t rules = wr_robots_facts(rig.robots)->rules;
    assert_true(rules > 80000);
    assert_true(wr_robots_facts(rig.robots)->block_bytes < 54 * (size_t)rules + text_bytes + 4096);
    assert_int_equal(verdict(&rig, "/12345"), 0x12345 + 2);
    assert_true(verdict(&rig, "/zz") < 0);
    assert_int_equal(verdict(&rig, "/y"), 0);
    rig_release(&rig);
}

/* B3: the number of steps is bounded by WR_ROBOTS_WORK_MAX, about a ns each. */
static void patterns_made_to_be_slow_are_answered_at_once(void **state)
{
    static char path[5001];
    struct robots_fixture rig;
    (void)state;
    add("User-agent: *\nDisallow: /");
    for (int i = 0; i < 2000; i++)
        add("*a");
    read_text(&rig);
    memset(path, 'a', sizeof path - 1);
    path[0] = '/';
    assert_int_equal(verdict(&rig, path), -2);
    memset(path + 1000, 'b', 4000);
    assert_int_equal(verdict(&rig, path), 0);
    assert_false(ask(&rig, path).gave_up);
    rig_release(&rig);
}

/* B3 */
static void slow_robots_patterns_deny_paths_that_are_too_costly(void **state)
{
    static const char *const patterns[] = {
        "Disallow: /*aab\n",           "Disallow: /*aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\n",
        "Disallow: /*a*a*a*a*a*aab\n", "Allow: /*ab*c\n",
        "Disallow: *aab$\n",
    };
    static char path[8001];
    struct robots_fixture rig;
    (void)state;
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        text_bytes = 0;
        add("User-agent: *\n");
        add_many(patterns[i], WR_ROBOTS_MAX);
        read_text(&rig);
        memset(path, 'a', sizeof path - 1);
        memcpy(path, "/bcaba", 6);
        struct wr_fetch_deliver_robots answer = ask(&rig, path);
        assert_true(answer.gave_up ? !answer.allowed && answer.line > 1 : i >= 3);
        assert_int_equal(verdict(&rig, "/ordinary/path.html"), 0);
        rig_release(&rig);
    }
}

/* B3: at each position both ends match. */
static void patterns_that_nearly_match_everywhere_are_given_up(void **state)
{
    static char path[8001];
    struct robots_fixture rig;
    (void)state;
    add("User-agent: *\n");
    add_many("Disallow: /*abba\n", WR_ROBOTS_MAX);
    read_text(&rig);
    memset(path, 'a', sizeof path - 1);
    memcpy(path, "/bbaaba", 7);
    assert_true(ask(&rig, path).gave_up && !ask(&rig, path).allowed);
    assert_int_equal(verdict(&rig, "/xabbay"), -2);
    rig_release(&rig);
}

static void rules_with_one_prefix_are_no_slower_than_their_number(void **state)
{
    struct robots_fixture rig;
    (void)state;
    add("User-agent: *\n");
    add_many("Disallow: /a$\n", WR_ROBOTS_MAX);
    read_text(&rig);
    assert_int_equal(verdict(&rig, "/a"), -2);
    assert_int_equal(verdict(&rig, "/ab"), 0);
    assert_false(ask(&rig, "/ab").gave_up);
    rig_release(&rig);
}

static void robots_rules_with_prefixes_of_every_length_are_found(void **state)
{
    char line[1200] = "Disallow: /";
    struct robots_fixture rig;
    (void)state;
    add("User-agent: *\n");
    for (int i = 0; i < 1000; i++) {
        add(line);
        add("\n");
        strcat(line, "a");
    }
    read_text(&rig);
    for (int i = 0; i < 999; i++) {
        line[11 + i] = '\0';
        assert_int_equal(verdict(&rig, line + 10), -(i + 2));
        line[11 + i] = 'a';
    }
    rig_release(&rig);
}

/* B12 */
static void sitemaps_are_capped_and_judged_like_links(void **state)
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    struct robots_fixture rig;
    (void)state;
    add("Sitemap: file:///etc/passwd\nSitemap: http://127.1/s.xml\n");
    add_many("Sitemap: https://example.org/s.xml\n", WR_ROBOTS_MAX);
    read_text(&rig);
    assert_int_equal(wr_robots_facts(rig.robots)->sitemaps, WR_ROBOTS_SITEMAPS_MAX);
    assert_int_equal(wr_url_parse(wr_robots_sitemap(rig.robots, 0), NULL, NULL, memory, sizeof memory, &url),
                     WR_URL_SCHEME);
    assert_int_equal(wr_url_parse(wr_robots_sitemap(rig.robots, 1), NULL, NULL, memory, sizeof memory, &url),
                     WR_URL_OK);
    /* an inner address, which the guard will refuse */
    assert_string_equal(url.text, "http://127.0.0.1/s.xml");
    rig_release(&rig);
}

/* L1 */
static void parsing_robots_txt_reports_each_failed_allocation_and_leaks_nothing(void **state)
{
    static const char *const texts[] = {"User-agent: *\nDisallow: /a\n", "U\0s\0e\0r\0-\0a\0g\0e\0n\0t\0:\0*\0\n\0",
                                        ""};
    static const size_t sizes[] = {27, 26, 0};
    struct wr_robots_options options = {.agent = wr_span_of("weir"), .delay_max_ns = WEIR_DAY};
    test_allocator memory;
    (void)state;
    for (size_t i = 0; i < 3; i++)
        for (long fail_at = 1;; fail_at++) {
            struct wr_robots *robots = (struct wr_robots *)1;
            test_allocator_init(&memory);
            atomic_store(&memory.fail_at, fail_at);
            int error = wr_robots_parse((struct wr_span){texts[i], sizes[i]}, &options, &memory.allocator, &robots);
            if (error == 0) {
                assert_true(fail_at > 1);
                wr_robots_free(robots);
                assert_int_equal(atomic_load(&memory.live), 0);
                break;
            }
            assert_int_equal(error, WEIR_E_NOMEM);
            assert_ptr_equal(robots, (struct wr_robots *)1);
            assert_int_equal(atomic_load(&memory.live), 0);
        }
}

static void growing_robots_block_survives_failed_allocations(void **state)
{
    struct wr_robots_options options = {.agent = wr_span_of("weir"), .delay_max_ns = WEIR_DAY};
    struct wr_robots *robots;
    test_allocator memory;
    long fail_at = 1;
    (void)state;
    add("User-agent:*\n");
    add_many("Allow:/\n", 10000); /* shorter than expected, so that the block must grow */
    for (;; fail_at++) {
        test_allocator_init(&memory);
        atomic_store(&memory.fail_at, fail_at);
        if (wr_robots_parse((struct wr_span){text, text_bytes}, &options, &memory.allocator, &robots) == 0)
            break;
        assert_int_equal(atomic_load(&memory.live), 0);
    }
    assert_true(fail_at > 3);
    wr_robots_free(robots);
    wr_robots_free(NULL);
}

static void asking_robots_rules_allocates_no_memory(void **state)
{
    struct robots_fixture rig;
    (void)state;
    rig_read(&rig, "User-agent: *\nDisallow: /a*b%62$\nAllow: /\xc3\xbc\n");
    long takes = atomic_load(&rig.memory.takes);
    ask(&rig, "/a/bb");
    ask(&rig, "/%61/b%62");
    ask(&rig, "/\xc3\xbc*$");
    assert_int_equal(atomic_load(&rig.memory.takes), takes);
    rig_release(&rig);
}

#define fresh(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

WEIR_TESTS(fresh(text_beyond_the_cap_is_not_read_and_what_came_before_counts), fresh(a_line_of_a_megabyte_is_one_line),
           fresh(hundred_thousand_robots_groups_are_parsed), fresh(maximum_of_robots_rules_takes_bounded_memory),
           fresh(patterns_made_to_be_slow_are_answered_at_once),
           fresh(slow_robots_patterns_deny_paths_that_are_too_costly),
           fresh(patterns_that_nearly_match_everywhere_are_given_up),
           fresh(rules_with_one_prefix_are_no_slower_than_their_number),
           fresh(robots_rules_with_prefixes_of_every_length_are_found),
           fresh(sitemaps_are_capped_and_judged_like_links),
           fresh(parsing_robots_txt_reports_each_failed_allocation_and_leaks_nothing),
           fresh(growing_robots_block_survives_failed_allocations), fresh(asking_robots_rules_allocates_no_memory))
