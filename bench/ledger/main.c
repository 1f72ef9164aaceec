/* SPDX-License-Identifier: MIT */
/* main.c - runs the rounds of each figure under valgrind, and prints each figure's name and its
 * number of rounds:
 *
 *     valgrind --tool=callgrind --toggle-collect=cost_measured --dump-after=cost_measured ledger_costs
 */
#include "cost.h"

#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

/* ---- time ---- */

static int64_t clock_now(const weir_clock *clock)
{
    /* `clock` is the first member of struct cost_clock */
    const struct cost_clock *self = (const struct cost_clock *)clock;
    return self->now;
}

struct cost_clock cost_clock = {.clock = {.now = clock_now}, .now = WEIR_SECOND};

/* ---- for all figures ---- */

void cost_need(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "ledger_costs: %s\n", what);
    exit(1);
}

void cost_key(uint64_t number, char ret_key[COST_KEY_BYTES + 1])
{
    (void)snprintf(ret_key, COST_KEY_BYTES + 1, "key-%020llu", (unsigned long long)number);
}

/* Valgrind counts while this function runs. */
__attribute__((noinline)) static void cost_measured(const struct cost_figure *figure)
{
    for (uint32_t i = 0; i < figure->rounds; i++)
        figure->round(figure->rounds + i);
}

static void measure(const struct cost_figure *figure)
{
    figure->set_up();
    for (uint32_t i = 0; i < figure->rounds; i++)
        figure->round(i);
    cost_measured(figure);
    figure->tear_down();
    printf("%s %u\n", figure->name, (unsigned)figure->rounds);
}

/* Prints everything besides the code that the figures depend on. Valgrind presents a processor of
 * its own to programs. */
static void print_machine(void)
{
#ifdef __clang__
    printf("clang %d", __clang_major__);
#else
    printf("gcc %d", __GNUC__);
#endif
    printf(" %s, glibc %s,", WR_LEDGER_FLAGS, gnu_get_libc_version());
#ifdef __x86_64__
    printf(" x86_64%s%s\n", __builtin_cpu_supports("aes") ? " aes" : "", __builtin_cpu_supports("avx2") ? " avx2" : "");
#else
    struct utsname names;
    printf(" %s\n", uname(&names) == 0 ? names.machine : "unknown");
#endif
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--machine") == 0) {
        print_machine();
        return 0;
    }

    static const struct cost_figure *const lists[] = {cost_limits, cost_paces, cost_serves, cost_pages};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        for (const struct cost_figure *figure = lists[i]; figure->name != NULL; figure++)
            measure(figure);
    return 0;
}
