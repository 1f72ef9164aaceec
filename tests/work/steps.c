/* SPDX-License-Identifier: MIT */
/* steps.c - counts the steps of code under test. */
#include "steps.h"

static uint64_t steps;

uint64_t steps_now(void)
{
    return steps;
}

/* ---- branches, counted by the compiler ---- */

void __sanitizer_cov_trace_pc(void);

void __sanitizer_cov_trace_pc(void)
{
    steps++;
}

/* ---- C library, wrapped by the linker (--wrap) ---- */

#define WRAPPED(returns, name, arguments, call, bytes) \
    returns __real_##name arguments;                   \
    returns __wrap_##name arguments;                   \
    returns __wrap_##name arguments                    \
    {                                                  \
        steps += 1 + (bytes) / 16;                     \
        return __real_##name call;                     \
    }

WRAPPED(void *, memcpy, (void *to, const void *from, size_t bytes), (to, from, bytes), bytes)
WRAPPED(void *, memmove, (void *to, const void *from, size_t bytes), (to, from, bytes), bytes)
WRAPPED(void *, memset, (void *to, int byte, size_t bytes), (to, byte, bytes), bytes)
WRAPPED(int, memcmp, (const void *a, const void *b, size_t bytes), (a, b, bytes), bytes)

void *__real_memchr(const void *text, int byte, size_t bytes);
void *__wrap_memchr(const void *text, int byte, size_t bytes);
size_t __real_strlen(const char *text);
size_t __wrap_strlen(const char *text);

/* Counts only the bytes up to the match. */
void *__wrap_memchr(const void *text, int byte, size_t bytes)
{
    void *found = __real_memchr(text, byte, bytes);
    steps += 1 + (found != NULL ? (size_t)((const char *)found - (const char *)text) : bytes) / 16;
    return found;
}

size_t __wrap_strlen(const char *text)
{
    size_t bytes = __real_strlen(text);
    steps += 1 + bytes / 16;
    return bytes;
}

/* ---- growth of costs ---- */

/* Returns `begin`, as many copies of `again` as fit, and `end`: `bytes` bytes in all. */
static char *make(const char *begin, const char *again, const char *end, size_t bytes)
{
    size_t begins = strlen(begin), each = strlen(again), ends = strlen(end);
    char *text = calloc(1, bytes + 1);
    assert_true(text != NULL && bytes > begins + ends);
    for (size_t i = 0; i < bytes; i++)
        text[i] = i < begins ? begin[i] : i < bytes - ends ? again[(i - begins) % each] : end[i - (bytes - ends)];
    return text;
}

static uint64_t cost(steps_work *work, const char *begin, const char *again, const char *end, size_t bytes)
{
    char *text = make(begin, again, end, bytes);
    uint64_t before = steps;
    work(text, bytes);
    uint64_t cost = steps - before;
    free(text);
    return cost;
}

void steps_grow_with(const char *name, steps_work *work, const char *begin, const char *again, const char *end,
                     size_t bytes, uint64_t each)
{
    uint64_t once = cost(work, begin, again, end, bytes), more = cost(work, begin, again, end, 4 * bytes);
    if (getenv("WEIR_TEST_STEPS") != NULL)
        print_message("%-10s %-40.40s %8zu bytes %5.1f steps each, and %5.1f of four times as many\n", name, again,
                      bytes, (double)once / (double)bytes, (double)more / (double)(4 * bytes));
    assert_true(once > 0);
    if (more > 7 * once || more > each * 4 * bytes)
        fail_msg("%s of \"%.40s\": %llu steps of %zu bytes, %llu of four times as many", name, again,
                 (unsigned long long)once, bytes, (unsigned long long)more);
}
