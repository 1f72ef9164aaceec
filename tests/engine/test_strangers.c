/* SPDX-License-Identifier: MIT */
/* test_strangers.c - tests of what a crawl must protect: inner addresses, secret headers, and one
 * machine behind many names. */
#include "engine/rig.h"

/* ---- many names ---- */

#define NAMES 10
#define INTERVAL_NS (60 * MS)

/* Resolves "a.one.test" to 127.0.0.1, and "1.same.test", "2.same.test", ... to an address each. */
static void look_up(void *context, const char *name, struct wr_dns_answer *ret_answer)
{
    struct wr_address address;
    char text[32];
    (void)context;
    long number = strstr(name, ".same.test") != NULL ? strtol(name, NULL, 10) : 1;
    (void)snprintf(text, sizeof text, "127.0.0.%ld", number);
    if (!wr_address_parse(wr_span_of(text), &address))
        abort();
    ret_answer->kind = WR_DNS_FOUND;
    wr_dns_answer_add(ret_answer, &address);
}

static struct origin_reply answer_small(void *context, const struct origin_request *request)
{
    return rig_tree(context, request, 3, NULL);
}

static void crawl_names(struct crawl_fixture *rig, enum wr_engine_group group, const char *format)
{
    char name[64];
    rig_set_up(rig, answer_small);
    rig->options.loops = 2;
    rig->options.group = group;
    rig->options.lookup = look_up;
    rig_space(rig, INTERVAL_NS);
    rig_start(rig);
    for (int i = 1; i <= NAMES; i++) {
        (void)snprintf(name, sizeof name, format, i);
        rig_seed(rig, "http://%s:%d/", name, rig->port);
    }
    rig_finish(rig);
    assert_int_equal(rig->result.end, WR_END_COMPLETED);
    assert_int_equal(rig_verdicts(rig, "fetched"), 3 * NAMES);
    assert_int_equal(origin_requests(rig->origin), 4 * NAMES);
}

/* D8. */
static void hosts_of_one_domain_are_paced_together(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    crawl_names(&rig, WR_GROUP_DOMAIN, "%d.same.test");
    rig_assert_spaced(&rig, -1, INTERVAL_NS);
    rig_tear_down(&rig);
}

/* D8. */
static void names_of_one_address_are_paced_together(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    crawl_names(&rig, WR_GROUP_IP, "www.name-%d.test");
    rig_assert_spaced(&rig, -1, INTERVAL_NS);
    rig_tear_down(&rig);
}

/* Control case of the two tests above: without a group the hosts do not wait for each other. */
static void names_without_a_group_are_paced_alone(void **state)
{
    struct crawl_fixture rig;
    int count;
    (void)state;
    crawl_names(&rig, WR_GROUP_HOST, "www.name-%d.test");
    int64_t *times = rig_arrivals(&rig, -1, &count);
    assert_true(SANITIZED || times[count - 1] - times[0] < (count - 1) * INTERVAL_NS);
    free(times);
    rig_tear_down(&rig);
}

/* ---- secrets ---- */

static struct origin_reply answer_curious(void *context, const struct origin_request *request)
{
    struct crawl_fixture *rig = context;
    if (rig_is_robots(request))
        return (struct origin_reply){.status = 404};
    if (strcmp(request->path, "/away") == 0)
        return (struct origin_reply){.status = 302,
                                     .fields = rig_text(rig, "Location: %s\r\n", rig_url(rig, 3, "/led"))};
    if (strcmp(request->path, "/") == 0 && rig_host(request) == 1)
        return rig_html(rig_text(rig, "<a href=\"%s\">x</a><a href=\"/more\">y</a>", rig_url(rig, 2, "/linked")));
    if (strcmp(request->path, "/led") == 0)
        return rig_html("<a href=\"/further\">z</a>");
    return rig_html("here");
}

static void assert_secrets_kept(const struct crawl_fixture *rig)
{
    int told = 0;
    for (int i = 0; i < origin_requests(rig->origin); i++) {
        struct origin_request request = origin_request(rig->origin, i);
        bool has_secret = strstr(request.text, "hush") != NULL;
        told += has_secret;
        if (has_secret && rig_host(&request) != 1)
            fail_msg("host %d received a secret with %s", rig_host(&request), request.path);
    }
    assert_int_equal(told, 3); /* "/", "/away" and "/more" */
}

/* V10: links and redirects of the seeds lead to other hosts. */
static void header_lines_go_to_the_seeds_origins_only(void **state)
{
    static const char *const lines[] = {"Authorization: Bearer hush", NULL};
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_curious);
    rig.options.loops = 2;
    rig.options.headers = lines;
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/away"));
    rig_finish(&rig);
    assert_int_equal(rig_asked(&rig, 2, "/linked") + rig_asked(&rig, 3, "/led") + rig_asked(&rig, 3, "/further"), 3);
    assert_secrets_kept(&rig);
    rig_tear_down(&rig);
}

/* V10: after a restart the store has the targets of the seeds' redirects. */
static void header_lines_go_to_the_seeds_origins_only_after_a_restart(void **state)
{
    static const char *const lines[] = {"Authorization: Bearer hush", NULL};
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_curious);
    rig.options.headers = lines;
    rig_space(&rig, 150 * MS);
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/away"));
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_seeded(&rig);
    while (rig_asked(&rig, 3, "/led") == 0)
        sleep_ns(MS);
    wr_engine_drain(rig.engine);
    rig_finish(&rig);
    rig_start(&rig);
    rig_finish(&rig);
    assert_int_equal(rig_asked(&rig, 3, "/further"), 1);
    assert_secrets_kept(&rig);
    rig_tear_down(&rig);
}

/* ---- inner addresses ---- */

static void private_addresses_get_no_request(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_small);
    rig.options.allows_private = false;
    rig.options.lookup = look_up;
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_seed(&rig, "http://inner.one.test:%d/", rig.port);
    rig_finish(&rig);
    assert_int_equal(origin_requests(rig.origin), 0);
    assert_int_equal(origin_connections(rig.origin), 0);
    assert_int_equal(rig.line_count, 2);
    assert_string_equal(rig_word(&rig, rig_url(&rig, 1, "/"), "verdict"), "blocked");
    rig_tear_down(&rig);
}

/* Resolves all names except those with "nobody" in them. */
static void look_up_some(void *context, const char *name, struct wr_dns_answer *ret_answer)
{
    if (strstr(name, "nobody") == NULL)
        look_up(context, name, ret_answer);
    else
        ret_answer->kind = WR_DNS_ABSENT;
}

/* S2-15: of many hosts some never exist; their failures do not end the job. */
static void hosts_that_do_not_exist_fail_at_once(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_small);
    rig.options.lookup = look_up_some;
    rig_start(&rig);
    for (int i = 0; i < 40; i++)
        rig_seed(&rig, "http://nobody-%d.test/", i);
    rig_seed(&rig, "http://a.one.test:%d/", rig.port);
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    assert_int_equal(rig_verdicts(&rig, "failed"), 40);
    assert_int_equal(rig_verdicts(&rig, "fetched"), 3);
    assert_string_equal(rig_word(&rig, "http://nobody-7.test/", "error"), "no_name");
    rig_tear_down(&rig);
}

ENGINE_TESTS(test(hosts_of_one_domain_are_paced_together), test(names_of_one_address_are_paced_together),
             test(names_without_a_group_are_paced_alone), test(header_lines_go_to_the_seeds_origins_only),
             test(header_lines_go_to_the_seeds_origins_only_after_a_restart), test(private_addresses_get_no_request),
             test(hosts_that_do_not_exist_fail_at_once))
