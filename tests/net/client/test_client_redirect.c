/* SPDX-License-Identifier: MIT */
/* test_client_redirect.c - redirects: which are followed, and which headers go along (A10 to A13,
 * C12, V10). */
#include "rig.h"

#include "http/client/client_internal.h"

/* ---- targets ---- */

/* Redirects every path but /end to the Location in the context. */
static struct origin_reply lead_to(void *context, const struct origin_request *request)
{
    if (strcmp(request->path, "/end") == 0)
        return (struct origin_reply){.body = "the end"};
    if (strcmp(request->path, "/robots.txt") == 0)
        return (struct origin_reply){.status = 404};
    return (struct origin_reply){.status = 302, .fields = context, .body = "on and on"};
}

static void redirect_is_followed_to_its_target(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct origin *origin = origin_new(lead_to, "Location: end\r\n", NULL);
    rig_set_up(&rig);
    weir_response *response = get(&rig, url_at(origin_port(origin), "/start"));
    assert_int_equal(response->status, 200);
    assert_int_equal(response->hops, 1);
    assert_string_equal(response->url, url_at(origin_port(origin), "/end"));
    assert_string_equal(response->body, "the end");
    weir_response_free(response);
    rig_tear_down(&rig);
    origin_free(origin);
}

static void redirect_loop_ends_at_the_limit(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct origin *origin = origin_new(lead_to, "Location: /again\r\n", NULL);
    rig_set_up(&rig);
    weir_response *response = get(&rig, url_at(origin_port(origin), "/start"));
    assert_int_equal(response->failure, WEIR_FAILURE_REDIRECT);
    assert_int_equal(response->status, 302);
    assert_int_equal(response->hops, 10);
    assert_string_equal(response->detail, "too many redirects");
    assert_int_equal(origin_requests(origin), 11);
    weir_response_free(response);
    rig_tear_down(&rig);
    rig_init(&rig);
    rig.options.max_redirects = 3;
    rig_start(&rig);
    assert_int_equal(get_failure(&rig, url_at(origin_port(origin), "/start")), WEIR_FAILURE_REDIRECT);
    assert_int_equal(origin_requests(origin), 11 + 4);
    rig_tear_down(&rig);
    origin_free(origin);
}

/* Redirects /0 to /1, and so on up to /1000. */
static struct origin_reply lead_far(void *context, const struct origin_request *request)
{
    char *location = context;
    long hop = strtol(request->path + 1, NULL, 10);
    if (hop == 1000)
        return (struct origin_reply){.body = "the end"};
    (void)snprintf(location, 64, "Location: /%ld\r\n", hop + 1);
    return (struct origin_reply){.status = 301, .fields = location};
}

static void chain_of_a_thousand_redirects_ends_at_the_limit(void **state)
{
    (void)state;
    static const struct {
        uint32_t max, hops;
        weir_failure failure;
    } cases[] = {{0, 10, WEIR_FAILURE_REDIRECT}, {999, 999, WEIR_FAILURE_REDIRECT}, {1000, 1000, WEIR_FAILURE_NONE}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct client_fixture rig;
        char location[64];
        struct origin *origin = origin_new(lead_far, location, NULL);
        rig_init(&rig);
        rig.options.max_redirects = cases[i].max;
        rig_start(&rig);
        weir_response *response = get(&rig, url_at(origin_port(origin), "/0"));
        assert_int_equal(response->failure, cases[i].failure);
        assert_int_equal(response->hops, cases[i].hops);
        assert_int_equal(origin_requests(origin), cases[i].hops + 1);
        weir_response_free(response);
        rig_tear_down(&rig);
        origin_free(origin);
    }
}

static void redirects_can_be_left_to_the_caller(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct origin *origin = origin_new(lead_to, "Location: /end\r\n", NULL);
    rig_init(&rig);
    rig.options.max_redirects = UINT32_MAX;
    rig_start(&rig);
    weir_response *response = get(&rig, url_at(origin_port(origin), "/start"));
    assert_int_equal(response->status, 302);
    assert_int_equal(response->failure, WEIR_FAILURE_NONE);
    assert_string_equal(weir_response_header(response, "location"), "/end");
    assert_string_equal(response->body, "on and on");
    weir_response_free(response);
    rig_tear_down(&rig);
    origin_free(origin);
}

static void redirects_to_other_schemes_are_not_followed(void **state)
{
    (void)state;
    static const char *const fields[] = {
        "Location: file:///etc/passwd\r\n", "Location: ftp://127.0.0.1/\r\n",       "Location: gopher://127.0.0.1/\r\n",
        "Location: data:text/html,hi\r\n",  "Location: javascript:alert(1)\r\n",    "Location: http://\r\n",
        "Location: http://a b/\r\n",        "Location: http://127.0.0.1:0x50/\r\n",
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        struct client_fixture rig;
        struct origin *origin = origin_new(lead_to, (void *)fields[i], NULL);
        rig_set_up(&rig);
        weir_response *response = get(&rig, url_at(origin_port(origin), "/start"));
        assert_int_equal(response->failure, WEIR_FAILURE_REDIRECT);
        assert_int_equal(response->status, 302);
        assert_int_equal(origin_requests(origin), 1);
        weir_response_free(response);
        rig_tear_down(&rig);
        origin_free(origin);
    }
}

/* C12: relative, empty and odd Location values. */
static void odd_locations_are_resolved_or_refused(void **state)
{
    (void)state;
    static const struct {
        /* path of the next request; NULL: the response is not a redirect */
        const char *fields, *path;
    } cases[] = {
        {"Location: \r\n", NULL},         {"", NULL},
        {"Location: ?q\r\n", "/start?q"}, {"Location: ./a/../end\r\n", "/end"},
        {"Location: \\end\r\n", "/end"},  {"Location: /\xc3\xa4\r\n", "/%C3%A4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct client_fixture rig;
        struct origin *origin = origin_new(lead_to, (void *)cases[i].fields, NULL);
        rig_set_up(&rig);
        weir_response *response = get(&rig, url_at(origin_port(origin), "/start"));
        assert_int_equal(origin_requests(origin) > 1, cases[i].path != NULL);
        if (cases[i].path != NULL)
            assert_string_equal(origin_request(origin, 1).path, cases[i].path);
        else
            assert_int_equal(response->failure, WEIR_FAILURE_NONE);
        weir_response_free(response);
        rig_tear_down(&rig);
        origin_free(origin);
    }
}

static struct origin_reply lead_raw(void *context, const struct origin_request *request)
{
    (void)request;
    return (struct origin_reply){.raw = context};
}

static void a_location_of_64_kilobytes_is_refused(void **state)
{
    (void)state;
    static char huge[65600];
    struct client_fixture rig;
    int bytes = snprintf(huge, sizeof huge, "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /");
    memset(huge + bytes, 'a', 65000);
    strcpy(huge + bytes + 65000, "\r\n\r\n");
    struct origin *origin = origin_new(lead_raw, huge, NULL);
    rig_set_up(&rig);
    assert_int_equal(get_failure(&rig, url_at(origin_port(origin), "/")), WEIR_FAILURE_REDIRECT);
    assert_int_equal(origin_requests(origin), 1);
    rig_tear_down(&rig);
    origin_free(origin);
}

/* ---- A12: the address guard at every hop ---- */

static enum wr_guard_class judge(void *context, const struct wr_address *address)
{
    (void)context; /* in this test 127.0.0.1 is public and all other addresses are private */
    return address->bytes[15] == 1 ? WR_GUARD_PUBLIC : WR_GUARD_PRIVATE;
}

static void redirect_to_a_private_address_is_blocked(void **state)
{
    (void)state;
    static const struct wr_client_test_hooks guarded = {.judge = judge};
    const struct wr_client_test_hooks *before = wr_client_test_hooks;
    struct client_fixture rig;
    char location[100];
    struct origin *inner = origin_new(lead_to, NULL, "127.0.0.2");
    (void)snprintf(location, sizeof location, "Location: http://127.0.0.2:%d/end\r\n", origin_port(inner));
    struct origin *origin = origin_new(lead_to, location, NULL);
    rig_init(&rig);
    rig.options.allow_private = false;
    wr_client_test_hooks = &guarded;
    rig_start(&rig);
    wr_client_test_hooks = before;
    weir_response *response = get(&rig, url_at(origin_port(origin), "/start"));
    assert_int_equal(response->failure, WEIR_FAILURE_GUARD);
    assert_int_equal(response->hops, 1);
    assert_int_equal(origin_requests(origin), 1);
    assert_int_equal(origin_requests(inner), 0);
    weir_response_free(response);
    rig_tear_down(&rig);
    origin_free(origin);
    origin_free(inner);
}

static void loopback_is_refused_unless_allowed(void **state)
{
    (void)state;
    static const char *const urls[] = {"http://127.0.0.1/",
                                       "http://localhost/",
                                       "http://[::1]/",
                                       "http://0x7f.1/",
                                       "http://169.254.169.254/latest/meta-data",
                                       "http://[::ffff:10.0.0.1]/"};
    struct client_fixture rig;
    rig_init(&rig);
    rig.options.allow_private = false;
    rig_start(&rig);
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++)
        assert_int_equal(get_failure(&rig, urls[i]), WEIR_FAILURE_GUARD);
    rig_tear_down(&rig);
}

/* ---- robots.txt of every hop ---- */

static struct origin_reply forbid(void *context, const struct origin_request *request)
{
    (void)context;
    return (struct origin_reply){.body =
                                     strcmp(request->path, "/robots.txt") == 0 ? "User-agent: *\nDisallow: /\n" : NULL};
}

static void every_redirect_hop_checks_the_robots_of_its_host(void **state)
{
    (void)state;
    struct client_fixture rig;
    char location[100];
    struct origin *strict = origin_new(forbid, NULL, NULL);
    (void)snprintf(location, sizeof location, "Location: http://127.0.0.1:%d/page\r\n", origin_port(strict));
    struct origin *origin = origin_new(lead_to, location, NULL);
    rig_init(&rig);
    rig.options.robots = WEIR_ROBOTS_RFC9309;
    rig_start(&rig);
    weir_response *response = get(&rig, url_at(origin_port(origin), "/start"));
    assert_int_equal(response->failure, WEIR_FAILURE_ROBOTS);
    assert_int_equal(response->hops, 1);
    assert_int_equal(response->robots_line, 2);
    assert_int_equal(origin_requests(strict), 1);
    assert_int_equal(origin_asked(strict, "/robots.txt"), 1);
    weir_response_free(response);
    rig_tear_down(&rig);
    origin_free(origin);
    origin_free(strict);
}

/* ---- A13: headers ---- */

static const char *const secrets[] = {"Authorization: Bearer s3cret", "Cookie: id=s3cret", "X-Token: s3cret", NULL};

static void own_headers_are_sent_along_within_the_origin(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct origin *origin = origin_new(lead_to, "Location: /end\r\n", NULL);
    rig_init(&rig);
    rig.options.headers = secrets;
    rig_start(&rig);
    assert_int_equal(get_status(&rig, url_at(origin_port(origin), "/start")), 200);
    assert_non_null(strstr(origin_request(origin, 1).text, "Bearer s3cret"));
    assert_non_null(strstr(origin_request(origin, 1).text, "X-Token: s3cret"));
    rig_tear_down(&rig);
    origin_free(origin);
}

/* Redirects from origin to other and back: /start, /over, /back, /end. */
struct detour {
    int origin, other;
    char fields[100];
};

static struct origin_reply lead_there_and_back(void *context, const struct origin_request *request)
{
    struct detour *detour = context;
    if (strcmp(request->path, "/end") == 0)
        return (struct origin_reply){.status = 200};
    if (strcmp(request->path, "/start") == 0)
        (void)snprintf(detour->fields, sizeof detour->fields, "Location: http://127.0.0.1:%d/over\r\n", detour->other);
    else
        (void)snprintf(detour->fields, sizeof detour->fields, "Location: http://127.0.0.1:%d/%s\r\n", detour->origin,
                       strcmp(request->path, "/over") == 0 ? "back" : "end");
    return (struct origin_reply){.status = 307, .fields = detour->fields};
}

static void secrets_are_sent_only_to_their_origin(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct detour detour;
    char url[100];
    struct origin *origin = origin_new(lead_there_and_back, &detour, NULL);
    struct origin *other = origin_new(lead_there_and_back, &detour, NULL);
    weir_fetch_options options;
    detour = (struct detour){.origin = origin_port(origin), .other = origin_port(other)};
    rig_init(&rig);
    rig.options.headers = secrets;
    rig_start(&rig);
    weir_fetch_options_init(&options);
    options.headers = (const char *const[]){"X-More: s3cret", NULL};
    options.etag = "\"s3cret\"";
    weir_response *response = get_with(&rig, url_at(origin_port(origin), "/start"), &options);
    assert_int_equal(response->status, 200);
    assert_int_equal(response->hops, 3);
    weir_response_free(response);
    (void)snprintf(url, sizeof url, "http://user:s3cret@127.0.0.1:%d/start", origin_port(origin));
    weir_client_options plain = rig.options;
    weir_client *client;
    plain.headers = NULL;
    assert_int_equal(weir_client_new(&plain, &client), 0);
    assert_int_equal(weir_client_fetch(client, url, NULL, NULL, &response), 0);
    assert_int_equal(response->status, 200);
    weir_response_free(response);
    weir_client_free(client);
    for (int i = 0; i < origin_requests(other); i++) {
        assert_null(strstr(origin_request(other, i).text, "s3cret"));
        assert_null(strcasestr(origin_request(other, i).text, "Authorization"));
    }
    assert_int_equal(origin_requests(origin), 6);
    assert_non_null(strstr(origin_request(origin, 0).text, "X-More: s3cret"));
    /* any server may have sent this redirect */
    assert_null(strstr(origin_request(origin, 1).text, "s3cret"));
    assert_null(strstr(origin_request(origin, 2).text, "s3cret"));
    assert_non_null(strstr(origin_request(origin, 3).text, "Authorization: Basic "));
    assert_null(strstr(origin_request(origin, 4).text, "Authorization"));
    assert_null(strstr(origin_request(origin, 5).text, "Authorization"));
    rig_tear_down(&rig);
    origin_free(origin);
    origin_free(other);
}

static bool ignore(void *context, const char *bytes, size_t count)
{
    (void)context, (void)bytes, (void)count;
    return true;
}

static struct origin_reply lead_with_much_to_say(void *context, const struct origin_request *request)
{
    if (strcmp(request->path, "/end") == 0)
        return (struct origin_reply){.body = "the end"};
    return (struct origin_reply){.status = 302, .fields = "Location: /end\r\n", .body = context};
}

/* Up to 64 KiB of a redirect's body are skipped. For a longer body a new connection is cheaper. */
static void body_of_a_redirect_is_not_read_completely(void **state)
{
    (void)state;
    enum {
        BYTES = 8 << 20
    };
    struct client_fixture rig;
    weir_fetch_options options;
    char *body = malloc(BYTES);
    memset(body, 'x', BYTES - 1);
    body[BYTES - 1] = '\0';
    struct origin *origin = origin_new(lead_with_much_to_say, body, NULL);
    rig_set_up(&rig);
    weir_fetch_options_init(&options);
    options.on_body = ignore;
    weir_response *response = get_with(&rig, url_at(origin_port(origin), "/start"), &options);
    assert_int_equal(response->status, 200);
    assert_int_equal(response->body_bytes, strlen("the end"));
    weir_response_free(response);
    assert_int_equal(origin_connections(origin), 2);
    rig_tear_down(&rig);
    origin_free(origin);
    free(body);
}

static void redirect_hop_is_not_a_retry(void **state)
{
    (void)state;
    struct client_fixture rig;
    weir_client_stats stats;
    struct origin *origin = origin_new(lead_to, "Location: end\r\n", NULL);
    rig_set_up(&rig);
    weir_response *response = get(&rig, url_at(origin_port(origin), "/start"));
    assert_int_equal(response->attempts, 1);
    weir_response_free(response);
    assert_int_equal(weir_client_stats_get(rig.client, &stats), 0);
    assert_int_equal(stats.requests, 2);
    assert_int_equal(stats.retries, 0);
    rig_tear_down(&rig);
    origin_free(origin);
}

static uint64_t starts_of(struct client_fixture *rig, const char *key)
{
    weir_pace_entry entry;
    int error = weir_pacer_inspect(weir_client_pacer(rig->client), key, strlen(key), &entry, NULL, NULL);
    return error == 0 ? entry.starts : 0;
}

/* A key of the caller means a limit of that origin only. */
static void caller_key_applies_only_to_its_origin(void **state)
{
    (void)state;
    struct client_fixture rig;
    char location[100], there[64];
    weir_fetch_options options;
    struct origin *other = origin_new(lead_to, NULL, NULL);
    (void)snprintf(location, sizeof location, "Location: http://127.0.0.1:%d/end\r\n", origin_port(other));
    (void)snprintf(there, sizeof there, "127.0.0.1:%d", origin_port(other));
    struct origin *origin = origin_new(lead_to, location, NULL);
    rig_init(&rig);
    rig.pace.min_interval_ns = MS;
    rig_start(&rig);
    weir_fetch_options_init(&options);
    options.key = "token-7";
    weir_response *response = get_with(&rig, url_at(origin_port(origin), "/start"), &options);
    assert_int_equal(response->status, 200);
    weir_response_free(response);
    assert_int_equal(starts_of(&rig, "token-7"), 1);
    assert_int_equal(starts_of(&rig, there), 1);
    rig_tear_down(&rig);
    origin_free(origin);
    origin_free(other);
}

/* ---- methods ---- */

static struct origin_reply lead_by_path(void *context, const struct origin_request *request)
{
    int status = (int)strtol(request->path + 1, NULL, 10);
    if (status == 0)
        return (struct origin_reply){.status = 200};
    return (struct origin_reply){.status = status, .fields = context};
}

static void redirect_status_decides_method_and_body(void **state)
{
    (void)state;
    static const struct {
        const char *path, *method, *then;
        bool keeps_body;
    } cases[] = {
        {"/301", "POST", "GET", false}, {"/302", "POST", "GET", false}, {"/303", "PUT", "GET", false},
        {"/307", "POST", "POST", true}, {"/308", "PUT", "PUT", true},   {"/301", "HEAD", "HEAD", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct client_fixture rig;
        struct origin *origin = origin_new(lead_by_path, "Location: /end\r\n", NULL);
        weir_fetch_options options;
        rig_set_up(&rig);
        weir_fetch_options_init(&options);
        options.method = cases[i].method;
        if (strcmp(cases[i].method, "HEAD") != 0) {
            options.body = "data";
            options.body_bytes = 4;
        }
        weir_response *response = get_with(&rig, url_at(origin_port(origin), cases[i].path), &options);
        assert_int_equal(response->status, 200);
        struct origin_request second = origin_request(origin, 1);
        assert_string_equal(second.method, cases[i].then);
        assert_int_equal(strstr(second.text, "Content-Length: 4") != NULL, cases[i].keeps_body);
        weir_response_free(response);
        rig_tear_down(&rig);
        origin_free(origin);
    }
}

static void request_body_is_not_redirected_to_another_origin(void **state)
{
    (void)state;
    struct client_fixture rig;
    char location[100];
    weir_fetch_options options;
    struct origin *other = origin_new(lead_by_path, NULL, NULL);
    (void)snprintf(location, sizeof location, "Location: http://127.0.0.1:%d/end\r\n", origin_port(other));
    struct origin *origin = origin_new(lead_by_path, location, NULL);
    rig_set_up(&rig);
    weir_fetch_options_init(&options);
    options.method = "POST";
    options.body = "password";
    options.body_bytes = 8;
    weir_response *response = get_with(&rig, url_at(origin_port(origin), "/307"), &options);
    assert_int_equal(response->status, 307); /* a response: the caller decides */
    assert_int_equal(response->failure, WEIR_FAILURE_NONE);
    assert_int_equal(origin_requests(other), 0);
    weir_response_free(response);
    rig_tear_down(&rig);
    origin_free(origin);
    origin_free(other);
}

WEIR_TESTS(test(body_of_a_redirect_is_not_read_completely), test(redirect_hop_is_not_a_retry),
           test(caller_key_applies_only_to_its_origin), test(redirect_is_followed_to_its_target),
           test(redirect_loop_ends_at_the_limit), test(chain_of_a_thousand_redirects_ends_at_the_limit),
           test(redirects_can_be_left_to_the_caller), test(redirects_to_other_schemes_are_not_followed),
           test(odd_locations_are_resolved_or_refused), test(a_location_of_64_kilobytes_is_refused),
           test(redirect_to_a_private_address_is_blocked), test(loopback_is_refused_unless_allowed),
           test(every_redirect_hop_checks_the_robots_of_its_host), test(own_headers_are_sent_along_within_the_origin),
           test(secrets_are_sent_only_to_their_origin), test(redirect_status_decides_method_and_body),
           test(request_body_is_not_redirected_to_another_origin))
