/* SPDX-License-Identifier: MIT */
/* test.h - cmocka, and a main() that can list its tests.
 *
 *     static void clock_going_back_never_grants_more(void **state) { ... }
 *     WEIR_TESTS(test(clock_going_back_never_grants_more), test(...))
 *
 * `PROGRAM --list` prints the names, which docs/requirements.md is checked against. `PROGRAM NAME`
 * runs one test; '*' in NAME matches anything.
 */
#ifndef WEIR_TEST_H
#define WEIR_TEST_H

/* cmocka.h needs these headers before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define test(function) cmocka_unit_test(function)

/* Runs the tests, or lists their names. */
static inline int weir_tests_main(int argc, char **argv, const struct CMUnitTest *tests, size_t count)
{
    if (argc > 1 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < count; i++)
            puts(tests[i].name);
        return 0;
    }
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return _cmocka_run_group_tests(argv[0], tests, count, NULL, NULL);
}

#define WEIR_TESTS(...)                                                            \
    int main(int argc, char **argv)                                                \
    {                                                                              \
        const struct CMUnitTest tests[] = {__VA_ARGS__};                           \
        return weir_tests_main(argc, argv, tests, sizeof tests / sizeof tests[0]); \
    }

/* Ends the test as skipped. `make test` shows the reason at its end. */
#define SKIP(why)                              \
    do {                                       \
        print_message("skipped: %s\n", (why)); \
        skip();                                \
    } while (0)

/* Skips the test because the machine lacks a program that tools/setup installs. In CI (CI=true) the
 * test fails instead. */
static inline void test_skip_missing(const char *what)
{
    const char *ci = getenv("CI");
    if (ci != NULL && (strcmp(ci, "true") == 0 || strcmp(ci, "1") == 0))
        fail_msg("%s is missing; tools/setup test installs it", what);
    print_message("skipped: %s is missing; tools/setup test installs it\n", what);
    skip();
}

/* Returns true if an emulator such as qemu-user runs this test. Meson sets this variable for tests
 * of a cross build that need one. */
static inline bool test_is_emulated(void)
{
    return getenv("MESON_EXE_WRAPPER") != NULL;
}

/* Returns the seed of a randomised test: WEIR_TEST_SEED, or a fixed one. Prints it, so that a
 * failure can be repeated. */
static inline uint64_t weir_test_seed(void)
{
    const char *text = getenv("WEIR_TEST_SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : UINT64_C(0x5eed0001);
    print_message("WEIR_TEST_SEED=0x%llx\n", (unsigned long long)seed);
    return seed;
}

#endif
