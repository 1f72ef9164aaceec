/* SPDX-License-Identifier: MIT */
/* test_callers.c - tests of the identity of callers: forged addresses, hostile keys and costs,
 * plans and lists. */
#include "rig.h"

#include "lib/test.h"

#include <weir/time.h>

/* ---- addresses ---- */

static void forged_forwarding_headers_are_ignored_unless_the_peer_is_trusted(void **state)
{
    (void)state;
    struct rules_fixture rig;
    rig_open(&rig, "admission: {trusted: [10.0.0.0/8, unix]}\n"
                   "rules:\n  - {name: ip, key: ip, limit: 1/m}\n");
    struct call direct = {.peer = "203.0.113.7",
                          .headers = {"X-Forwarded-For", "198.51.100.1", "X-Real-IP", "1.2.3.4"}};
    assert_true(rig_try(&rig, &direct));
    direct.headers[1] = "198.51.100.2"; /* another claim of the same caller */
    direct.headers[3] = "1.2.3.5";
    assert_false(rig_try(&rig, &direct));
    struct call proxied = {.peer = "10.1.1.1", .headers = {"X-Forwarded-For", "8.8.8.8, 198.51.100.9, 10.2.2.2"}};
    assert_true(rig_try(&rig, &proxied));
    proxied.headers[1] = "9.9.9.9, 198.51.100.9"; /* the caller can forge entries further left */
    assert_false(rig_try(&rig, &proxied));
    assert_memory_equal(rig.verdict.admission.keys, "198.51.100.9", 12);
    struct call local = {.peer = "unix:", .headers = {"X-Forwarded-For", "198.51.100.9"}};
    assert_false(rig_try(&rig, &local));
    rig_close(&rig);
}

static void ipv6_network_and_mapped_ipv4_address_are_each_one_caller(void **state)
{
    (void)state;
    struct rules_fixture rig;
    rig_open(&rig, "rules:\n  - {name: ip, key: ip, limit: 1/m}\n");
    struct call call = {.peer = "2001:db8:1:2::1"};
    assert_true(rig_try(&rig, &call));
    call.peer = "[2001:db8:1:2:ffff::9]:443";
    assert_false(rig_try(&rig, &call));
    call.peer = "2001:db8:1:3::1";
    assert_true(rig_try(&rig, &call));
    call.peer = "1.2.3.4";
    assert_true(rig_try(&rig, &call));
    call.peer = "::ffff:1.2.3.4";
    assert_false(rig_try(&rig, &call));
    assert_int_equal(rig_reload(&rig, "admission: {ipv4_prefix: 24, ipv6_prefix: 48}\n"
                                      "rules:\n  - {name: wide, key: ip, limit: 1/m}\n"),
                     0);
    call.peer = "2001:db8:1:2::1";
    assert_true(rig_try(&rig, &call));
    call.peer = "2001:db8:1:3::1";
    assert_false(rig_try(&rig, &call));
    call.peer = "1.2.3.4";
    assert_true(rig_try(&rig, &call));
    call.peer = "1.2.3.99";
    assert_false(rig_try(&rig, &call));
    rig_close(&rig);
}

/* ---- hostile keys ---- */

static void unusable_key_is_refused_or_shared_as_the_rule_says(void **state)
{
    (void)state;
    static char longest[1 << 20];
    memset(longest, 'k', sizeof longest - 1);
    const char *const hostile[] = {longest, "a\x01", "\xff\xfe", "\x1b[31m", "a\x7f"};
    struct rules_fixture rig;
    rig_open(&rig, "rules:\n"
                   "  - {name: strict, match: {path: /strict}, key: 'header:x-key', missing: refuse, limit: 9/s}\n"
                   "  - {name: usual, match: {path: /usual}, key: 'header:x-key', limit: 2/s}\n"
                   "  - {name: lax, match: {path: /lax}, key: 'header:x-key', malformed: share, limit: 2/s}\n");
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        struct call call = {.target = "/usual", .headers = {"x-key", hostile[i]}};
        assert_false(rig_try(&rig, &call));
        assert_int_equal(rig.verdict.cause, WR_CAUSE_MALFORMED);
        assert_int_equal(rig.verdict.status, 400);
        assert_int_not_equal(rig.verdict.fault, WEIR_FAULT_NONE);
        call.target = "/lax"; /* all of them share one limit */
        assert_int_equal(rig_try(&rig, &call), i < 2);
    }
    struct call without = {.target = "/strict"}, empty = {.target = "/strict", .headers = {"x-key", ""}};
    assert_false(rig_try(&rig, &without));
    assert_int_equal(rig.verdict.status, 400);
    assert_int_equal(rig.verdict.fault, WEIR_FAULT_MISSING);
    assert_false(rig_try(&rig, &empty));
    without.target = empty.target = "/usual"; /* both become the key "anonymous" */
    assert_true(rig_try(&rig, &without));
    assert_true(rig_try(&rig, &empty));
    assert_false(rig_try(&rig, &without));
    struct call twice = {.target = "/usual", .headers = {"x-key", "a", "X-Key", "b"}};
    assert_false(rig_try(&rig, &twice));
    assert_int_equal(rig.verdict.fault, WEIR_FAULT_REPEATED);
    rig_close(&rig);
}

static const char login_rules[] =
    "rules:\n"
    "  - {name: login, match: {method: POST, path: /login, host: '*.example.org'}, key: route, limit: 1/h}\n"
    "  - {name: any, key: global, limit: 1000/h}\n";

/* Any spelling that a service may take for /login is limited as /login, or refused. */
static void no_spelling_of_a_path_escapes_its_rule(void **state)
{
    (void)state;
    static const char *const limited[] = {
        "/login?x", "http://www.example.org/login", "/Login", "/LOGIN/", "/login;a=1", "/login//", "/login%3Bx",
        "/login%2F"};
    static const char *const refused[] = {"/%6Cogin",  "/a/../login", "/./login",  "/login%00",    "/login#x",
                                          "/x\\login", "*",           "login",     "/a/..;/login", "/%c0%afx",
                                          "//login",   "//x/login",   "/%2flogin", "/login\xa0",   "/x%5clogin"};
    struct rules_fixture rig;
    rig_open(&rig, login_rules);
    struct call call = {.method = "POST", .target = "/login", .host = "WWW.Example.org:443"};
    assert_true(rig_try(&rig, &call));
    for (size_t i = 0; i < sizeof limited / sizeof limited[0]; i++) {
        call.target = limited[i];
        if (rig_try(&rig, &call))
            fail_msg("%s", limited[i]);
        assert_string_equal(rig.verdict.rule, "login");
        assert_int_equal(rig.verdict.status, 429);
    }
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        call.target = refused[i];
        if (rig_try(&rig, &call))
            fail_msg("%s", refused[i]);
        assert_int_equal(rig.verdict.status, 400);
    }
    rig_close(&rig);
}

/* The same holds for rules with capitals, and for rules with a slash at the end. */
static void no_path_escapes_a_rule_with_capitals_or_a_slash_at_the_end(void **state)
{
    (void)state;
    static const char *const limited[] = {"/api/login",   "/API/Login",    "/api/login/", "/API/Login;a=1",
                                          "/api//login/", "/api%2Flogin/", "/Api/LOGIN?x"};
    struct rules_fixture rig;
    rig_open(&rig, "rules:\n"
                   "  - {name: login, match: {path: /API/Login/}, key: global, limit: 1/h}\n"
                   "  - {name: files, match: {path: /a/files/*}, key: global, limit: 1/h}\n");
    struct call call = {.method = "GET", .target = "/API/Login/"};
    assert_true(rig_try(&rig, &call));
    for (size_t i = 0; i < sizeof limited / sizeof limited[0]; i++) {
        call.target = limited[i];
        if (rig_try(&rig, &call))
            fail_msg("%s", limited[i]);
        assert_string_equal(rig.verdict.rule, "login");
    }
    call.target = "/a/files/"; /* a '*' may match nothing */
    assert_true(rig_try(&rig, &call));
    call.target = "/a//files/"; /* nginx merges the slashes */
    assert_false(rig_try(&rig, &call));
    rig_close(&rig);
}

static void no_spelling_of_a_method_or_host_escapes_its_rule(void **state)
{
    (void)state;
    static const char *const hosts[] = {"www.example.org",
                                        "WWW.EXAMPLE.ORG",
                                        "www.example.org:80",
                                        "www.example.org.",
                                        "www.example.org:",
                                        "www.example.org.:8443",
                                        "www.example.org:x",
                                        "www.example.org:-1",
                                        "www.example.org:80:80",
                                        "www.example.org..",
                                        "www.example.org,a",
                                        "u@www.example.org",
                                        "",
                                        "www.example.org:1e",
                                        "www.example.org:99999"};
    struct rules_fixture rig;
    rig_open(&rig, login_rules);
    struct call call = {.method = "POST", .target = "/login", .host = hosts[0]};
    assert_true(rig_try(&rig, &call));
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        call.method = i % 2 == 0 ? "post" : "PosT";
        call.host = hosts[i];
        if (rig_try(&rig, &call))
            fail_msg("%s", hosts[i]);
        assert_int_equal(rig.verdict.status, i < 6 ? 429 : 400);
    }
    /* without a Host field (HTTP/1.0) the target has the host */
    call.target = "http://www.example.org/login";
    call.host = NULL;
    assert_false(rig_try(&rig, &call));
    assert_int_equal(rig.verdict.status, 429);
    call.host = "other.example"; /* it is unknown which of the two a service uses */
    assert_false(rig_try(&rig, &call));
    assert_int_equal(rig.verdict.status, 400);
    rig_close(&rig);
}

/* A2, A3: a target without a path, or with an invalid port, does not bypass the rules for all
 * requests. */
static void odd_targets_and_ports_make_no_keys_and_bypass_no_rule(void **state)
{
    (void)state;
    static const char *const none[] = {"http://h?x", "http://h", "?x", "", "HTTP://H/", "/", "/?x"};
    static const char *const ports[] = {"h:1", "h:2", "h:", "H:65535", "h.", "h.:9"};
    struct rules_fixture rig;
    rig_open(&rig,
             "rules:\n"
             "  - {name: mallory, match: {path: '/**'}, key: 'header:x-user', limit: 9/h, deny_keys: [mallory]}\n");
    struct call call = {.method = "GET", .host = "h", .headers = {"x-user", "mallory"}};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        call.target = none[i];
        assert_false(rig_try(&rig, &call));
        assert_int_equal(rig.verdict.cause, WR_CAUSE_DENY_LIST);
    }
    call.target = "*";
    call.method = "OPTIONS";
    assert_false(rig_try(&rig, &call));
    assert_int_equal(rig.verdict.cause, WR_CAUSE_MALFORMED);
    assert_int_equal(rig.verdict.fault, WEIR_FAULT_TARGET);
    assert_int_equal(rig_reload(&rig, "rules:\n  - {name: by host, key: host, limit: 1/h}\n"), 0);
    assert_false(rig_try(&rig, &call)); /* whatever the rules are */
    call.target = "/";
    assert_true(rig_try(&rig, &call));
    for (size_t i = 0; i < sizeof ports / sizeof ports[0]; i++) {
        call.host = ports[i];
        if (rig_try(&rig, &call))
            fail_msg("%s", ports[i]);
        assert_int_equal(rig.verdict.status, 429);
    }
    rig_close(&rig);
}

/* A lenient rule for one reading of a path must not bypass a strict rule for another reading. */
static void every_reading_of_a_path_must_be_granted_by_its_rule(void **state)
{
    (void)state;
    static const char *const both[] = {"/MEDIA/a", "/media%2Fa", "/media;x/a"};
    struct rules_fixture rig;
    rig_open(&rig, "rules:\n"
                   "  - {name: media, match: {path: '/media/**'}, key: global, limit: 1000/h}\n"
                   "  - {name: site, key: global, limit: 1/h}\n");
    for (size_t i = 0; i < sizeof both / sizeof both[0]; i++) {
        struct call call = {.method = "GET", .target = "/media/a"}, odd = {.method = "GET", .target = both[i]};
        rig_advance(&rig, 2 * WEIR_HOUR);
        /* this spelling has one reading and one rule */
        assert_int_equal(rig_count(&rig, &call, 5), 5);
        assert_int_equal(rig.verdict.admission.count, 1);
        assert_int_equal(rig_count(&rig, &odd, 5), 1);
        assert_int_equal(rig.verdict.status, 429);
        assert_string_equal(rig.verdict.rule, "site");
    }
    assert_int_equal(rig_reload(&rig, "admission: {path_match: {case: exact, slash: exact, params: keep}}\n"
                                      "rules:\n"
                                      "  - {name: media, match: {path: '/media/**'}, key: global, limit: 1000/h}\n"
                                      "  - {name: site, key: global, limit: 1/h}\n"),
                     0);
    struct call call = {.method = "GET", .target = "/Media/"};
    assert_int_equal(rig_count(&rig, &call, 1), 0); /* the limit of "site" is used up */
    assert_int_equal(rig.verdict.admission.count, 1);
    rig_close(&rig);
}

/* A request is charged once per rule and key, however many readings its path has. */
static void readings_of_a_path_are_charged_once_per_rule(void **state)
{
    (void)state;
    struct rules_fixture rig;
    rig_open(&rig, "rules:\n"
                   "  - {name: ip, match: {path: '/a/**'}, limit: 10/h}\n"
                   "  - {name: route, match: {method: GET}, key: [ip, route, method], limit: 10/h}\n"
                   "  - {name: trial, key: global, limit: 10/h, shadow: true}\n");
    struct call call = {.method = "GET", .target = "/A/b%40c;d/", .peer = "192.0.2.1"};
    assert_true(rig_try(&rig, &call));
    assert_int_equal(rig.verdict.admission.count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(rig.verdict.admission.rulings[i].quota.remaining, 9);
    call.target = "/a/b@c";
    assert_true(rig_try(&rig, &call));
    assert_int_equal(rig.verdict.admission.rulings[1].quota.remaining, 8);
    rig_close(&rig);
}

static void parts_of_a_key_cannot_be_made_to_collide(void **state)
{
    (void)state;
    struct rules_fixture rig;
    rig_open(&rig, "rules:\n  - {name: pair, key: ['header:x-a', 'header:x-b', method, host], limit: 1/h}\n");
    struct call call = {.method = "GET", .host = "h", .headers = {"x-a", "a:b", "x-b", "c"}};
    assert_true(rig_try(&rig, &call));
    call.headers[1] = "a";
    call.headers[3] = "b:c";
    assert_true(rig_try(&rig, &call));
    call.method = "BREW";
    assert_true(rig_try(&rig, &call));
    call.method = "STEEP"; /* all unknown methods share one key */
    assert_false(rig_try(&rig, &call));
    rig_close(&rig);
}

static void token_is_stored_only_as_a_digest(void **state)
{
    (void)state;
    struct rules_fixture rig;
    rig_open(&rig, "rules:\n  - {name: t, key: 'token:authorization', limit: 1/h}\n");
    struct call call = {.headers = {"Authorization", "Bearer sesame"}};
    assert_true(rig_try(&rig, &call));
    assert_false(rig_try(&rig, &call));
    assert_int_equal(rig.verdict.admission.rulings[0].key_bytes, 33);
    assert_int_equal(rig.verdict.admission.keys[0], '#');
    assert_null(memmem(rig.verdict.admission.keys, 33, "sesame", 6));
    rig_close(&rig);
}

static void all_spellings_of_a_token_are_one_caller(void **state)
{
    (void)state;
    static const char *const spellings[] = {"Bearer sesame",   "bearer sesame",     "BEARER  sesame",
                                            "Bearer\tsesame",  " Bearer sesame ",   "Token sesame",
                                            "Bearer sesame x", "Bearer \"sesame\"", "Bearer sesame,"};
    struct rules_fixture rig;
    rig_open(&rig, "rules:\n"
                   "  - {name: t, key: 'token:authorization', limit: 1/h, deny_keys: ['Bearer  stolen', anonymous]}\n"
                   "  - {name: u, key: [ip, 'token:authorization'], limit: 1/h, deny_keys: ['192.0.2.1:bearer x']}\n");
    struct call call = {.headers = {"Authorization", "Bearer sesame"}};
    assert_true(rig_try(&rig, &call));
    for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++) {
        call.headers[1] = spellings[i];
        if (rig_try(&rig, &call))
            fail_msg("%s", spellings[i]);
        assert_int_equal(rig.verdict.status, i < 6 ? 429 : 400);
    }
    call.headers[1] = "bearer stolen";
    assert_false(rig_try(&rig, &call));
    assert_int_equal(rig.verdict.cause, WR_CAUSE_DENY_LIST);
    call.headers[0] = NULL;
    assert_false(rig_try(&rig, &call));
    assert_int_equal(rig.verdict.cause, WR_CAUSE_DENY_LIST);
    rig_close(&rig);
}

static void listed_keys_are_parsed_like_those_of_requests(void **state)
{
    (void)state;
    static const struct {
        const char *key, *listed;
        bool is_taken;
    } rows[] = {
        {"route", "/Login/", true},
        {"route", "/a/../b", false},
        {"host", "Example.org:80", true},
        {"host", "example.org:x", false},
        {"method", "post", true},
        {"'token:authorization'", "a b c", false},
        {"[ip, route]", "192.0.2.1:/Login/", true},
        {"[ip, route]", "2001\\:DB8\\:\\:1:/login", true},
        {"[ip, route]", "192.0.2.1", false},
        {"[ip, route]", "192.0.2.1:/login:x", false},
        {"[ip, route]", "192.0.2.0/24:/login", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char yaml[256], why[WR_CONFIG_WHY_BYTES];
        snprintf(yaml, sizeof yaml, "rules:\n  - {name: r, key: %s, limit: 1/h, deny_keys: ['%s']}\n", rows[i].key,
                 rows[i].listed);
        struct wr_rules_settings *settings = settings_of(yaml);
        int error = wr_rules_check(settings, why, sizeof why);
        free(settings);
        if (error != (rows[i].is_taken ? 0 : WEIR_E_INVAL))
            fail_msg("%s: %s", rows[i].listed, why);
    }
    struct rules_fixture rig;
    rig_open(&rig, "rules:\n  - {name: r, key: [ip, route, host], limit: 9/h,\n"
                   "     deny_keys: ['2001\\:DB8\\:\\:1:/Login/:Example.org.']}\n");
    struct call call = {.target = "/login;x", .host = "EXAMPLE.org:80", .peer = "2001:db8::2"};
    assert_false(rig_try(&rig, &call));
    assert_int_equal(rig.verdict.cause, WR_CAUSE_DENY_LIST);
    rig_close(&rig);
}

static void listed_keys_may_be_tokens_addresses_or_digests(void **state)
{
    (void)state;
    struct rules_fixture rig;
    rig_open(&rig,
             "admission: {secret: salt, ipv4_prefix: 24}\n"
             "rules:\n"
             "  - {name: t, match: {path: /t}, key: 'token:authorization', limit: 1/h, deny_keys: [Bearer stolen]}\n"
             "  - {name: ip, limit: 1/h, allow_keys: ['2001:DB8:0::1', 198.51.100.7, '::ffff:192.0.2.1', unknown]}\n");
    struct call token = {.target = "/t", .headers = {"Authorization", "Bearer stolen"}}, address = {.target = "/"};
    assert_int_equal(rig_count(&rig, &token, 2), 0);
    assert_int_equal(rig.verdict.cause, WR_CAUSE_DENY_LIST);
    char digest[40] = "", yaml[256];
    memcpy(digest, rig.verdict.admission.keys, rig.verdict.admission.rulings[0].key_bytes);
    token.headers[1] = "Bearer other";
    assert_int_equal(rig_count(&rig, &token, 2), 1);
    static const char *const allowed[] = {"2001:db8::1",  "2001:db8::ffff", "198.51.100.7",
                                          "198.51.100.8", "192.0.2.99",     ""};
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++) {
        address.peer = allowed[i];
        if (rig_count(&rig, &address, 3) != 3)
            fail_msg("%s", allowed[i]);
    }
    address.peer = "2001:db8:0:1::1"; /* another network */
    assert_int_equal(rig_count(&rig, &address, 3), 1);
    /* a digest, in the form in which keys are shown */
    snprintf(yaml, sizeof yaml,
             "admission: {secret: salt}\n"
             "rules:\n  - {name: t, key: 'token:authorization', limit: 1/h, allow_keys: ['%s']}\n",
             digest);
    assert_int_equal(rig_reload(&rig, yaml), 0);
    token.headers[1] = "Bearer stolen";
    assert_int_equal(rig_count(&rig, &token, 2), 2);
    rig_close(&rig);
}

/* ---- costs ---- */

static void cost_from_a_header_stays_within_its_bounds(void **state)
{
    (void)state;
    static const char *const hostile[] = {"0",   "-1", "1e18", "NaN", "1000000000000000000", "51", "", "1.5", "0x10",
                                          "inf", "+1", " 1 2", "１"};
    struct rules_fixture rig;
    rig_open(&rig, "rules:\n  - {name: q, key: global, limit: 100/h, cost: 2, cost_header: x-cost, cost_max: 50}\n");
    struct call call = {.headers = {"x-cost", ""}};
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        call.headers[1] = hostile[i];
        bool is_empty = hostile[i][0] == '\0'; /* an empty field counts as absent */
        assert_int_equal(rig_try(&rig, &call), is_empty);
        assert_int_equal(rig.verdict.status, is_empty ? 200 : 400);
        assert_true(is_empty || rig.verdict.fault == WEIR_FAULT_COST);
    }
    call.headers[1] = "50";
    assert_true(rig_try(&rig, &call));
    assert_int_equal(rig.verdict.admission.rulings[0].quota.remaining, 48);
    call.headers[0] = NULL;
    assert_true(rig_try(&rig, &call));
    assert_int_equal(rig.verdict.admission.rulings[0].quota.remaining, 46);
    call.cost = 47; /* the cost that the program sets */
    assert_false(rig_try(&rig, &call));
    call.cost = 46;
    assert_true(rig_try(&rig, &call));
    call.cost = UINT32_MAX;
    assert_false(rig_try(&rig, &call));
    assert_int_equal(rig.verdict.retry_after_ns, WEIR_UNTIL_RELEASE);
    rig_close(&rig);
}

/* ---- plans and lists ---- */

static const char plans[] = "rules:\n"
                            "  - name: api\n"
                            "    key: header:x-user-id\n"
                            "    limit: 1/s\n"
                            "    plan_header: x-plan\n"
                            "    allow_keys: [root]\n"
                            "    deny_keys: [mallory]\n"
                            "    plans:\n"
                            "      - {name: pro, limit: 3/s, keys: [alice]}\n"
                            "      - {name: big, limit: [5/s, concurrent=2]}\n";

static void key_list_or_header_puts_callers_on_a_plan(void **state)
{
    (void)state;
    struct rules_fixture rig;
    rig_open(&rig, plans);
    struct call call = {.headers = {"x-user-id", "bob"}};
    assert_int_equal(rig_count(&rig, &call, 9), 1);
    call.headers[1] = "alice";
    assert_int_equal(rig_count(&rig, &call, 9), 3);
    call.headers[1] = "carol";
    call.headers[2] = "x-plan";
    call.headers[3] = "pro";
    assert_int_equal(rig_count(&rig, &call, 9), 3);
    call.headers[1] = "dave";
    call.headers[3] = "platinum"; /* unknown plans are ignored, so callers cannot invent limits */
    assert_int_equal(rig_count(&rig, &call, 9), 1);
    call.headers[1] = "eve";
    call.headers[3] = "big";
    assert_int_equal(rig_count(&rig, &call, 9), 2);
    call.headers[1] = "alice"; /* the plan that lists her key takes precedence */
    rig_advance(&rig, WEIR_SECOND);
    assert_int_equal(rig_count(&rig, &call, 9), 3);
    rig_close(&rig);
}

static void listed_keys_are_allowed_or_denied_and_not_charged(void **state)
{
    (void)state;
    struct rules_fixture rig;
    rig_open(&rig, plans);
    struct call call = {.headers = {"x-user-id", "root"}};
    assert_int_equal(rig_count(&rig, &call, 50), 50);
    assert_int_equal(rig.verdict.cause, WR_CAUSE_ALLOW_LIST);
    call.headers[1] = "mallory";
    assert_int_equal(rig_count(&rig, &call, 5), 0);
    assert_int_equal(rig.verdict.cause, WR_CAUSE_DENY_LIST);
    assert_int_equal(rig.verdict.status, 403);
    assert_int_equal(rig.verdict.retry_after_ns, WEIR_UNTIL_RELEASE);
    assert_int_equal(rig_tally(&rig, "api", WR_CAUSE_ALLOW_LIST), 50);
    assert_int_equal(rig_tally(&rig, "api", WR_CAUSE_DENY_LIST), 5);
    rig_close(&rig);
}

static void listed_networks_are_allowed_or_denied_before_any_rule(void **state)
{
    (void)state;
    struct rules_fixture rig;
    struct wr_rules_view view;
    rig_open(&rig, "admission:\n"
                   "  trusted: 10.0.0.0/8\n"
                   "  allow: [192.0.2.0/24, '2001:db8::/32']\n"
                   "  deny: [203.0.113.0/24]\n"
                   "rules:\n  - {name: all, key: global, limit: 1/h}\n");
    struct call call = {.peer = "192.0.2.77"};
    assert_int_equal(rig_count(&rig, &call, 5), 5);
    assert_int_equal(rig.verdict.cause, WR_CAUSE_ALLOW_LIST);
    call.peer = "::ffff:203.0.113.9";
    assert_false(rig_try(&rig, &call));
    assert_int_equal(rig.verdict.status, 403);
    call.headers[0] = "x-forwarded-for"; /* ignored, as the peer is not trusted */
    call.headers[1] = "192.0.2.1";
    assert_false(rig_try(&rig, &call));
    call.peer = "10.0.0.1";
    assert_true(rig_try(&rig, &call));
    call.headers[1] = "203.0.113.5";
    assert_false(rig_try(&rig, &call));
    wr_rules_view_get(rig.book, &view);
    assert_int_equal(view.causes[WR_CAUSE_ALLOW_LIST], 6);
    assert_int_equal(view.causes[WR_CAUSE_DENY_LIST], 3);
    assert_int_equal(view.causes[WR_CAUSE_GRANTED], 0);
    rig_close(&rig);
}

/* A field on more lines than are read: 64 fillers, then the value that matters. */
struct crowd {
    const char *name, *filler, *last;
};

static const char *crowd_header(void *context, const char *name, size_t index, size_t *ret_bytes)
{
    const struct crowd *crowd = context;
    if (strcmp(name, crowd->name) != 0 || index > WEIR_HEADER_LINES_MAX)
        return NULL;
    const char *value = index < WEIR_HEADER_LINES_MAX ? crowd->filler : crowd->last;
    *ret_bytes = strlen(value);
    return value;
}

static void field_on_too_many_lines_bypasses_neither_rules_nor_lists(void **state)
{
    static const struct crowd crowds[] = {{"user-agent", "x", "bot"}, {"x-forwarded-for", "192.0.2.1", "203.0.113.9"}};
    (void)state;
    for (size_t i = 0; i < sizeof crowds / sizeof crowds[0]; i++) {
        struct rules_fixture rig;
        rig_open(&rig, "admission: {trusted: [unix], deny: [203.0.113.0/24]}\n"
                       "rules:\n"
                       "  - {name: bots, match: {header: [{name: user-agent, value: '*bot*'}]}, limit: 1/h}\n");
        weir_request request;
        weir_request_init(&request, "GET", "/", "unix:");
        request.header = crowd_header;
        request.header_context = (void *)(uintptr_t)&crowds[i];
        wr_rules_try(rig.book, &request, &rig.verdict);
        assert_int_equal(rig.verdict.status, 400);
        assert_int_equal(rig.verdict.fault, WEIR_FAULT_REPEATED);
        rig_close(&rig);
    }
}

WEIR_TESTS(test(field_on_too_many_lines_bypasses_neither_rules_nor_lists),
           test(forged_forwarding_headers_are_ignored_unless_the_peer_is_trusted),
           test(ipv6_network_and_mapped_ipv4_address_are_each_one_caller),
           test(unusable_key_is_refused_or_shared_as_the_rule_says), test(no_spelling_of_a_path_escapes_its_rule),
           test(no_path_escapes_a_rule_with_capitals_or_a_slash_at_the_end),
           test(no_spelling_of_a_method_or_host_escapes_its_rule),
           test(odd_targets_and_ports_make_no_keys_and_bypass_no_rule),
           test(every_reading_of_a_path_must_be_granted_by_its_rule),
           test(readings_of_a_path_are_charged_once_per_rule), test(all_spellings_of_a_token_are_one_caller),
           test(listed_keys_are_parsed_like_those_of_requests), test(parts_of_a_key_cannot_be_made_to_collide),
           test(token_is_stored_only_as_a_digest), test(listed_keys_may_be_tokens_addresses_or_digests),
           test(cost_from_a_header_stays_within_its_bounds), test(key_list_or_header_puts_callers_on_a_plan),
           test(listed_keys_are_allowed_or_denied_and_not_charged),
           test(listed_networks_are_allowed_or_denied_before_any_rule))
