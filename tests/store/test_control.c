/* SPDX-License-Identifier: MIT */
/* test_control.c - replies of the control socket for a state file that no crawl uses. */
#include "limiter/memory/memory.h"
#include "store/rig.h"
#include "store/shim.h"
#include "watch/control/control.h"

#include <jansson.h>

/* Returns the agent of a job: here the settings are its name. */
static void agent_of(struct wr_span settings, char ret_agent[WR_CONTROL_AGENT_ROOM])
{
    (void)snprintf(ret_agent, WR_CONTROL_AGENT_ROOM, "%.*s", (int)settings.bytes, settings.data);
}

/* Returns the reply; the caller frees it with json_decref. */
static json_t *ask(struct store_fixture *rig, const char *request)
{
    const struct wr_control_source source = {.store = rig->store, .agent_of = agent_of};
    struct wr_buf answer;
    wr_buf_init(&answer, wr_allocator_or_system(NULL), WR_CONTROL_ANSWER_MAX);
    wr_control_answer(&source, wr_span_of(request), &answer);
    assert_int_equal(answer.error, 0);
    json_t *root = json_loadb(answer.bytes, answer.length, 0, NULL);
    assert_non_null(root);
    wr_buf_release(&answer);
    return root;
}

static bool is_ok(const json_t *answer)
{
    return json_is_true(json_object_get(answer, "ok"));
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

static void begin(struct store_fixture *rig)
{
    rig_set_up(rig, rig_backends);
    rig->options.retry_ns = WEIR_MILLISECOND;
    rig_open(rig);
}

/* ---- a full disk ---- */

static void assert_refused(struct store_fixture *rig, const char *request)
{
    json_t *answer = ask(rig, request);
    assert_false(is_ok(answer));
    assert_non_null(strstr(text_of(answer, "error"), "full"));
    json_decref(answer);
}

static void full_disk_blocks_no_control_request(void **state)
{
    (void)state;
    struct store_fixture rig;
    shim_install();
    begin(&rig);
    (void)rig_job(&rig, "");
    atomic_store(&shim.is_full, true);
    assert_refused(&rig, "{\"ask\":\"cancel\",\"job\":1}");
    assert_refused(&rig, "{\"ask\":\"pause\",\"host\":\"a.example\"}");
    assert_refused(&rig, "{\"ask\":\"host\",\"host\":\"a.example\"}");
    assert_refused(&rig, "{\"ask\":\"forget\",\"host\":\"a.example\"}");
    atomic_store(&shim.is_full, false);
    rig_tear_down(&rig);
    shim_clear();
}

/* ---- why ---- */

static void why_finds_a_url_in_any_spelling_and_shows_no_password(void **state)
{
    (void)state;
    struct store_fixture rig;
    begin(&rig);
    int64_t job = rig_job(&rig, "weir");
    rig_post(&rig, rig_found(&rig, job, "a.example", "http://a.example/~x", NULL));
    json_t *answer = ask(&rig, "{\"ask\":\"why\",\"url\":\"http://me:secret@A.example:80/%7Ex#there\"}");
    assert_true(is_ok(answer));
    assert_string_equal(text_of(answer, "url"), "http://a.example/~x");
    assert_string_equal(text_of(answer, "state"), "queued");
    json_decref(answer);
    rig_tear_down(&rig);
}

static const char *verdict_of(struct store_fixture *rig, const char *request)
{
    static char verdict[16];
    json_t *answer = ask(rig, request);
    (void)snprintf(verdict, sizeof verdict, "%s", text_of(json_object_get(answer, "robots"), "verdict"));
    json_decref(answer);
    return verdict;
}

static void why_reads_robots_as_the_agent_of_the_job(void **state)
{
    (void)state;
    struct store_fixture rig;
    begin(&rig);
    (void)rig_job(&rig, "weir/1");
    (void)rig_job(&rig, "Other/2 (+mail)");
    rig_post(&rig, (struct wr_store_change){
                       .kind = WR_STORE_ROBOTS,
                       .robots = {.url = wr_span_of("http://a.example/robots.txt"),
                                  .text = wr_span_of("User-agent: other\nDisallow: /x\n\nUser-agent: *\nAllow: /\n"),
                                  .max_age_ns = -1,
                                  .fetched_wall_at = WEIR_SECOND}});
    assert_string_equal(verdict_of(&rig, "{\"ask\":\"why\",\"url\":\"http://a.example/x\",\"job\":1}"), "allow");
    assert_string_equal(verdict_of(&rig, "{\"ask\":\"why\",\"url\":\"http://a.example/x\",\"job\":2}"), "deny");
    rig_tear_down(&rig);
}

static void why_reports_a_host_whose_firewall_blocks_all_requests(void **state)
{
    (void)state;
    struct store_fixture rig;
    begin(&rig);
    int64_t job = rig_job(&rig, "weir");
    rig_post(&rig, rig_found(&rig, job, "a.example", "http://a.example/", NULL));
    rig_post(&rig, (struct wr_store_change){.kind = WR_STORE_HOST_BLOCK,
                                            .block = {.key = wr_span_of("a.example"),
                                                      .until_wall_at = weir_wall_now() + WEIR_HOUR,
                                                      .by = wr_span_of("cloudflare")}});
    json_t *answer = ask(&rig, "{\"ask\":\"why\",\"url\":\"http://a.example/\"}");
    const json_t *bounds = json_object_get(answer, "bounds"), *bound = json_array_get(bounds, 0);
    assert_int_equal(json_array_size(bounds), 1);
    assert_string_equal(text_of(bound, "reason"), "breaker");
    assert_true(json_number_value(json_object_get(bound, "wait_ms")) > 3500e3);
    json_decref(answer);
    rig_tear_down(&rig);
}

/* ---- hosts ---- */

/* Returns the host names of the reply as "a,b,c". */
static const char *names_of(struct store_fixture *rig, const char *request)
{
    static char names[256];
    json_t *answer = ask(rig, request);
    size_t i, length = 0;
    const json_t *host;
    names[0] = '\0';
    json_array_foreach(json_object_get(answer, "hosts"), i, host) length +=
        (size_t)snprintf(names + length, sizeof names - length, "%s%s", i > 0 ? "," : "", text_of(host, "host"));
    json_decref(answer);
    return names;
}

static void stored_hosts_are_sorted_filtered_and_limited(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        bool is_paused;
        double rate;
        int64_t waits_ns;
    } hosts[] = {{"c.example", false, 1, 0}, {"a.example", false, 3, WEIR_HOUR}, {"b.other", true, 2, 0}};
    struct store_fixture rig;
    begin(&rig);
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        struct wr_store_host host = {.key = wr_span_of(hosts[i].key),
                                     .memory = {.saved_wall_at = WEIR_SECOND, .rate = hosts[i].rate}};
        host.memory.retry_wall_at = hosts[i].waits_ns > 0 ? weir_wall_now() + hosts[i].waits_ns : 0;
        assert_int_equal(wr_store_note_host(rig.store, &host), 0);
        rig_post(&rig, (struct wr_store_change){
                           .kind = WR_STORE_HOST_SETTING,
                           .setting = {.key = host.key, .has_paused = true, .is_paused = hosts[i].is_paused}});
    }
    rig_reopen(&rig);
    static const char *const cases[][2] = {
        {"{\"ask\":\"hosts\"}", "b.other,a.example,c.example"},
        {"{\"ask\":\"hosts\",\"sort\":\"name\"}", "a.example,b.other,c.example"},
        {"{\"ask\":\"hosts\",\"sort\":\"name\",\"reverse\":true}", "c.example,b.other,a.example"},
        {"{\"ask\":\"hosts\",\"sort\":\"rate\"}", "a.example,b.other,c.example"},
        {"{\"ask\":\"hosts\",\"sort\":\"rate\",\"reverse\":true,\"most\":2}", "c.example,b.other"},
        {"{\"ask\":\"hosts\",\"sort\":\"queue\"}", "a.example,b.other,c.example"},
        {"{\"ask\":\"hosts\",\"filter\":\"EXAMPLE\"}", "a.example,c.example"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(names_of(&rig, cases[i][0]), cases[i][1]);
    rig_tear_down(&rig);
}

/* ---- tasks ---- */

static void task_list_is_split_at_the_size_limit_of_a_reply(void **state)
{
    (void)state;
    enum {
        COUNT = 1500
    };
    struct store_fixture rig;
    static char url[2001];
    begin(&rig);
    int64_t job = rig_job(&rig, "weir");
    memset(url, '<', sizeof url - 1); /* six bytes each in JSON */
    for (int i = 0; i < COUNT; i++) {
        int bytes = snprintf(url, sizeof url, "http://a.example/%05d", i);
        url[bytes] = '<';
        assert_int_equal(rig_post_later(&rig, rig_found(&rig, job, "a.example", url, NULL)), 0);
    }
    rig_post_all(&rig, NULL, 0); /* waits until all posts are stored */
    size_t told = 0;
    json_int_t after = 0;
    for (bool is_end = false; !is_end;) {
        char request[96];
        (void)snprintf(request, sizeof request, "{\"ask\":\"tasks\",\"job\":1,\"after\":%lld}", (long long)after);
        json_t *answer = ask(&rig, request);
        assert_true(is_ok(answer) && json_array_size(json_object_get(answer, "tasks")) > 0);
        told += json_array_size(json_object_get(answer, "tasks"));
        after = json_integer_value(json_object_get(answer, "after"));
        is_end = json_is_true(json_object_get(answer, "end"));
        json_decref(answer);
    }
    assert_int_equal(told, COUNT);
    rig_tear_down(&rig);
}

WEIR_TESTS(test(full_disk_blocks_no_control_request), test(why_finds_a_url_in_any_spelling_and_shows_no_password),
           test(why_reads_robots_as_the_agent_of_the_job), test(why_reports_a_host_whose_firewall_blocks_all_requests),
           test(stored_hosts_are_sorted_filtered_and_limited), test(task_list_is_split_at_the_size_limit_of_a_reply))
