/* SPDX-License-Identifier: MIT */
/* test_rules.c - configuration of shared rules: valid settings, and the errors for invalid ones. */
#include "cluster/limit/redis_address.h"
#include "lib/test.h"
#include "serve/rules/rules.h"

static void store_addresses_are_parsed_completely_or_refused(void **state)
{
    (void)state;
    static const struct {
        const char *url, *path, *host, *user, *password;
        int port;
    } good[] = {
        {"unix:/run/redis.sock", "/run/redis.sock", "", "", "", 6379},
        {"redis://10.0.0.5", "", "10.0.0.5", "", "", 6379},
        {"redis://store.example:7000/", "", "store.example", "", "", 7000},
        {"redis://[::1]:7000", "", "::1", "", "", 7000},
        {"redis://[2001:db8::1]", "", "2001:db8::1", "", "", 6379},
        {"redis://:se%40cret@a", "", "a", "", "se@cret", 6379},
        {"redis://me:a:b@a:1", "", "a", "me", "a:b", 1},
    };
    static const char *const bad[] = {
        "",           "redis",           "http://a",        "rediss://a",    "redis://",      "redis://a:0",
        "redis://a:", "redis://a:65536", "redis://a:x",     "redis://me@a",  "redis://me:@a", "redis://:%4@a",
        "redis://[a", "redis://[::1]x",  "redis://:%00x@a", "unix:relative", "unix:",
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct wr_redis_address address;
        assert_int_equal(wr_redis_address_parse(good[i].url, &address), 0);
        assert_string_equal(address.path, good[i].path);
        assert_string_equal(address.host, good[i].host);
        assert_string_equal(address.user, good[i].user);
        assert_string_equal(address.password, good[i].password);
        assert_int_equal(address.port, good[i].port);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct wr_redis_address address;
        if (wr_redis_address_parse(bad[i], &address) != WEIR_E_INVAL)
            fail_msg("%s was accepted", bad[i]);
    }
}

static void refused_store_addresses_get_advice_and_show_no_password(void **state)
{
    (void)state;
    static const struct {
        const char *url, *words;
    } bad[] = {
        {"rediss://:s3cret@a", "TLS is not supported"},
        {"redis://:s3cret@a/7", "a database cannot be chosen"},
        {"redis://:s3cret@a:x", "host or port is not well-formed"},
        {"redis://:s3cret%@a", "user or password is not well-formed"},
        {"mysql://:s3cret@a", "neither redis nor unix"},
        {":s3cret@a", "neither redis nor unix"},
        {"s3cret", "neither redis nor unix"},
        {"redis:s3cret", "neither redis nor unix"},
        {"unix:s3cret", "the path must begin with /"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct wr_redis_address address;
        assert_int_equal(wr_redis_address_parse(bad[i].url, &address), WEIR_E_INVAL);
        assert_non_null(strstr(weir_error_detail(), bad[i].words));
        assert_non_null(strstr(weir_error_detail(), "use redis://USER:PASSWORD@HOST:PORT"));
        assert_null(strstr(weir_error_detail(), "s3cret"));
    }
}

/* Returns the error for a rule's limit and share, and a store; "" if they are valid. */
static const char *why(const char *limit, const char *share, const char *store)
{
    static struct wr_rules_settings settings;
    static char text[512], words[WR_CONFIG_WHY_BYTES];

    snprintf(text, sizeof text, "rules:\n  - {name: r, limit: %s, share: %s}\n%s%s\n", limit, share,
             store[0] != '\0' ? "admission:\n  store: " : "", store);
    wr_rules_settings_init(&settings);
    words[0] = '\0';
    if (wr_config_parse(&wr_rules_schema, "t", text, strlen(text), weir_allocator_system(), &settings, words,
                        sizeof words) == 0)
        (void)wr_rules_check(&settings, words, sizeof words);
    return words;
}

static void rules_that_cannot_be_shared_are_refused_with_a_reason(void **state)
{
    (void)state;
    static const char store[] = "{url: 'unix:/nowhere', nodes: 3}";
    static const struct {
        const char *limit, *share, *store, *word;
    } bad[] = {
        {"10/s", "{overshoot: 1}", store, "percentage"},
        {"10/s", "{overshoot: 101%}", store, "percentage"},
        {"10/s", "{overshoot: -1%}", store, "percentage"},
        {"10/s", "{on_outage: open}", store, "overshoot"},
        {"10/s", "{overshoot: 1%, on_outage: perhaps}", store, "on_outage"},
        {"10/s", "{overshoot: 1%}", "", "there is no store"},
        {"10/s", "{overshoot: 1%}", "{url: 'unix:/nowhere'}", "nodes"},
        {"10/s", "{overshoot: 1%}", "{url: 'unix:/nowhere', nodes: 0}", "nodes"},
        {"10/s", "{overshoot: 1%}", "{url: 'http://a', nodes: 1}", "redis://"},
        {"10/s", "{overshoot: 1%}", "{url: 'unix:/nowhere', nodes: 1, prefix: '{a}'}", "braces"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *words = why(bad[i].limit, bad[i].share, bad[i].store);
        if (strstr(words, bad[i].word) == NULL)
            fail_msg("%s %s %s: \"%s\" without \"%s\"", bad[i].limit, bad[i].share, bad[i].store, words, bad[i].word);
    }
}

/* The store is not contacted: it may be reachable only for the daemon. */
static void valid_shared_rules_are_accepted_without_contacting_the_store(void **state)
{
    (void)state;
    static const char *const limits[] = {"10/s",
                                         "10/s burst=20",
                                         "1000/h fixed_window",
                                         "1000/h sliding_window",
                                         "100/m sliding_log",
                                         "5/s leaky_bucket",
                                         "concurrent=5",
                                         "[10/s, concurrent=5]",
                                         "[10/s burst=20, 1000/h fixed_window]"};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        assert_string_equal(why(limits[i], "{overshoot: 0.5%}", "{url: 'redis://127.0.0.1:1', nodes: 3}"), "");
    assert_string_equal(why("1/d", "{overshoot: 0%, on_outage: closed}", "{url: 'unix:/nowhere', nodes: 10}"), "");
}

WEIR_TESTS(test(store_addresses_are_parsed_completely_or_refused),
           test(refused_store_addresses_get_advice_and_show_no_password),
           test(rules_that_cannot_be_shared_are_refused_with_a_reason),
           test(valid_shared_rules_are_accepted_without_contacting_the_store))
