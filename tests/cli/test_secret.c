/* SPDX-License-Identifier: MIT */
/* test_secret.c - passwords on the command line are hidden from other users. */
#include "cli/kit/secret.h"
#include "lib/test.h"

/* V10. */
static void secrets_in_arguments_are_hidden_from_ps(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"postgres://me:s3cret@host/db", "postgres://me:xxxxxx@host/db"},
        {"--state=postgres://me:s3@cret@host/db?a=b@c", "--state=postgres://me:xxxxxxx@host/db?a=b@c"},
        {"postgres://me:s3/c?ret@host", "postgres://me:xxxxxxxx@host"},
        {"redis://:s3cret@host:1", "redis://:xxxxxx@host:1"},
        {"postgres:///db?password=s3cret&user=me", "postgres:///db?password=xxxxxx&user=me"},
        {"https://example.org:80/a", "https://example.org:80/a"},
        {"https://example.org/a:b", "https://example.org/a:b"},
        {"me:s3cret@host", "me:s3cret@host"},
        {"https://s3cret@host/a", "https://xxxxxx@host/a"},
        {"https://host/@a", "https://host/@a"},
        {"--header=Cookie: s3cret", "--header=xxxxxxxxxxxxxx"},
        {"--headers=s3cret", "--headers=s3cret"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char shown[64], *words[] = {shown};
        snprintf(shown, sizeof shown, "%s", cases[i][0]);
        wr_secrets_hide(1, words);
        assert_string_equal(shown, cases[i][1]);
        assert_string_equal(words[0], cases[i][0]);
        if (words[0] != shown)
            free(words[0]);
    }
}

static void header_value_in_its_own_argument_is_hidden(void **state)
{
    (void)state;
    char option[] = "--header", field[] = "X: http://s3cret", url[] = "http://host/", *words[] = {option, field, url};
    wr_secrets_hide(3, words);
    assert_string_equal(option, "--header");
    assert_string_equal(field, "xxxxxxxxxxxxxxxx");
    assert_string_equal(url, "http://host/");
    assert_string_equal(words[1], "X: http://s3cret");
    free(words[1]);
    free(words[2]);
}

WEIR_TESTS(test(secrets_in_arguments_are_hidden_from_ps), test(header_value_in_its_own_argument_is_hidden))
