/* SPDX-License-Identifier: MIT */
/* test_host.c - tests the keys of hosts (S0-7, S0-83, D6, D7). */
#include "rig.h"

struct spelling {
    const char *host, *key; /* NULL: refused */
};

static void check(const struct spelling *spellings, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char key[WEIR_PACE_KEY_MAX + 1] = "untouched";
        size_t bytes = 99;
        int error = weir_host_key(spellings[i].host, strlen(spellings[i].host), key, sizeof key, &bytes);
        const char *wanted = spellings[i].key != NULL ? spellings[i].key : "untouched";
        if (strcmp(key, wanted) != 0 || (error == 0) != (spellings[i].key != NULL))
            fail_msg("\"%s\" is %d, \"%s\", not \"%s\"", spellings[i].host, error, key, wanted);
        assert_int_equal(error == 0 ? bytes : 99, error == 0 ? strlen(wanted) : 99);
        char again[WEIR_PACE_KEY_MAX + 1];
        if (error == 0) { /* the key of a key is the key itself */
            assert_int_equal(weir_host_key(key, bytes, again, sizeof again, NULL), 0);
            assert_string_equal(again, key);
        }
    }
}
#define CHECK(...)                                                   \
    do {                                                             \
        const struct spelling spellings_[] = {__VA_ARGS__};          \
        check(spellings_, sizeof spellings_ / sizeof spellings_[0]); \
    } while (0)

/* S0-7, S0-83 */
static void host_keys_are_lower_case_without_default_ports(void **state)
{
    (void)state;
    CHECK({"example.org", "example.org"}, {"Example.ORG", "example.org"}, {"example.org:80", "example.org"},
          {"example.org:443", "example.org"}, {"example.org:8080", "example.org:8080"}, {"localhost:1", "localhost:1"},
          {"192.0.2.1", "192.0.2.1"}, {"192.0.2.1:8443", "192.0.2.1:8443"}, {"a_b-c.example", "a_b-c.example"},
          {"xn--bcher-kva.example", "xn--bcher-kva.example"});
}

static void ipv6_stays_in_brackets_and_has_one_spelling(void **state)
{
    (void)state;
    CHECK({"[2001:DB8::1]", "[2001:db8::1]"}, {"[2001:db8:0:0:0:0:0:1]:443", "[2001:db8::1]"},
          {"[2001:db8::1]:8080", "[2001:db8::1]:8080"}, {"[::ffff:192.0.2.1]", "[::ffff:c000:201]"},
          {"2001:db8::1", NULL}, {"[2001:db8::1", NULL}, {"[::1]x", NULL}, {"[::1]80", NULL}, {"[]", NULL}, {"[", NULL},
          {"[example.org]", NULL}, {"[fe80::1%eth0]", NULL}, {"[192.0.2.1]", NULL});
}

/* S0-7 */
static void invalid_host_names_are_refused(void **state)
{
    (void)state;
    CHECK({"", NULL}, {":80", NULL}, {"invalid::domain", NULL}, {".", NULL}, {"..", NULL}, {"a..b", NULL}, {".a", NULL},
          {"a..", NULL}, {"http://example.org", NULL}, {"user@example.org", NULL}, {"example.org/", NULL});
    char key[8];
    assert_int_equal(weir_host_key(NULL, 5, key, sizeof key, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_host_key("a", 1, NULL, 5, NULL), WEIR_E_INVAL);
    assert_non_null(strstr(weir_error_detail(), "ret_key"));
}

static void refusal_of_a_host_says_what_is_wrong_and_what_is_valid(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"", "host \"\": no name; use at most 253 bytes, such as www.example.org"},
        {"a/b",
         "host \"a/b\": a character that host names cannot have; use letters, digits, '-' and '.'; others as xn--"},
        {"a..b", "host \"a..b\": a part that is empty or longer than 63 bytes; use for example www.example.org"},
        {"a..", "host \"a..\": an empty part; use for example www.example.org"},
        {"[::1", "host \"[::1\": no ]; use for example [2001:db8::1]"},
        {"[x]", "host \"[x]\": not an IPv6 address; use for example [2001:db8::1]"},
        {"a:0", "host \"a:0\": not a port; use host:1 ... host:65535, and IPv6 in brackets"},
    };
    char key[WEIR_PACE_KEY_MAX + 1], name[300];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(weir_host_key(rows[i][0], strlen(rows[i][0]), key, sizeof key, NULL), WEIR_E_INVAL);
        assert_string_equal(weir_error_detail(), rows[i][1]);
    }
    for (size_t i = 0; i < sizeof name; i++)
        name[i] = i % 50 == 49 ? '.' : 'a';
    assert_int_equal(weir_host_key(name, 254, key, sizeof key, NULL), WEIR_E_INVAL);
    assert_non_null(strstr(weir_error_detail(), "too long; use at most 253 bytes"));
    assert_int_equal(weir_host_key(name, 253, key, sizeof key, NULL), 0);
}

/* D6 */
static void ports_are_numbers_from_1_to_65535_and_spellings_of_one_host_are_one(void **state)
{
    (void)state;
    CHECK({"EXAMPLE.com.:80", "example.com"}, {"example.com.", "example.com"}, {"example.com:00080", "example.com"},
          {"example.com:", "example.com"}, {"example.com:65535", "example.com:65535"}, {"example.com:0", NULL},
          {"example.com:65536", NULL}, {"example.com:-1", NULL}, {"example.com:+1", NULL}, {"example.com:8o", NULL},
          {"example.com:99999999999999999999", NULL}, {"example.com:4294967376", NULL}, {"example.com:80:80", NULL});
}

/* D7 */
static void hostile_names_are_refused_before_they_become_keys(void **state)
{
    (void)state;
    CHECK({"a\"b", NULL}, {"a<b", NULL}, {"a'b", NULL}, {"a\nb", NULL}, {"a\rb", NULL}, {"../a", NULL},
          {"a/../b", NULL}, {"a\xff", NULL}, {"b\xc3\xbc.example", NULL}, {"a b", NULL}, {"a%20b", NULL}, {"a*b", NULL},
          {"a;b", NULL}, {"a\x1b[31m", NULL});
    char long_name[301], key[WEIR_PACE_KEY_MAX + 1];
    for (size_t i = 0; i < 300; i++)
        long_name[i] = i % 50 == 49 ? '.' : 'a';
    assert_int_equal(weir_host_key("a\0b", 3, key, sizeof key, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_host_key(long_name, 300, key, sizeof key, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_host_key(long_name, 254, key, sizeof key, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_host_key(long_name, 253, key, sizeof key, NULL), 0);
    memset(long_name, 'a', 64);
    assert_int_equal(weir_host_key(long_name, 64, key, sizeof key, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_host_key(long_name + 1, 63, key, sizeof key, NULL), 0);
}

static void host_key_that_does_not_fit_is_not_truncated(void **state)
{
    (void)state;
    char key[] = "untouched";
    assert_int_equal(weir_host_key("example.org:8080", 16, key, 5, NULL), WEIR_E_SPACE);
    assert_string_equal(key, "untouched");
    assert_int_equal(weir_host_key("example:81", 10, key, sizeof key, NULL), WEIR_E_SPACE);
    assert_int_equal(weir_host_key("example:80", 10, key, sizeof key, NULL), 0);
    assert_string_equal(key, "example");
}

WEIR_TESTS(test(host_keys_are_lower_case_without_default_ports), test(ipv6_stays_in_brackets_and_has_one_spelling),
           test(invalid_host_names_are_refused), test(refusal_of_a_host_says_what_is_wrong_and_what_is_valid),
           test(ports_are_numbers_from_1_to_65535_and_spellings_of_one_host_are_one),
           test(hostile_names_are_refused_before_they_become_keys), test(host_key_that_does_not_fit_is_not_truncated))
