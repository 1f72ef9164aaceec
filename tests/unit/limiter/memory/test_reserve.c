/* SPDX-License-Identifier: MIT */
/* test_reserve.c - tests of the reserve of memory, and of the estimate of the memory that is left
 * (L2). */
#include "limiter/memory/reserve.h"

#include "lib/rig.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MB ((size_t)1 << 20)
#define BLOCK ((size_t)64 << 10)
#define BLOCKS 4096

static void memory_without_a_limit_is_endless_and_needs_no_reserve(void **state)
{
    (void)state;
    assert_true(wr_memory_left() == SIZE_MAX);
    void *block = wr_reserve_malloc(MB);
    block = wr_reserve_realloc(block, 2 * MB);
    assert_non_null(block);
    free(block);
    char *text = wr_reserve_strdup("text");
    assert_string_equal(text, "text");
    free(text);
    assert_true(wr_reserve_failures() == 0);
}

/* Returns the size of the address space in use, bytes. */
static size_t space_used(void)
{
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%zu", &pages) != 1)
        _exit(2);
    (void)fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Allocates until malloc fails, then until the reserve is empty. Returns an error message, or
 * NULL. */
static const char *use_up(void)
{
    static void *blocks[BLOCKS];
    size_t taken = 0, reserved = 0, space = space_used() + 24 * MB;
    const struct rlimit limit = {space, RLIM_INFINITY};
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        return "no limit";
    size_t left = wr_memory_left();
    if (left > 24 * MB || left < 16 * MB)
        return "wrong estimate of the memory left";
    while (taken < BLOCKS && (blocks[taken] = malloc(BLOCK)) != NULL)
        taken++;
    if (wr_memory_left() >= WR_MEMORY_LEAST || wr_reserve_failures() != 0)
        return "wrong estimate of little memory left";
    while (taken + reserved < BLOCKS && (blocks[taken + reserved] = wr_reserve_calloc(BLOCK, 1)) != NULL)
        reserved++;
    if (reserved * BLOCK < MB || wr_reserve_failures() != 1 || wr_memory_left() != 0)
        return "the reserve is not used, or has no limit";
    for (size_t i = 0; i < taken + reserved; i++)
        free(blocks[i]);
    return wr_memory_left() > 8 * MB ? NULL : "the memory is not free again";
}

/* A limit that does not fit in a size_t, as on 32-bit machines, must not be truncated. */
static const char *limit_far_above(void)
{
    const struct rlimit limit = {sizeof(size_t) < sizeof(rlim_t) ? (rlim_t)SIZE_MAX + 2 : (rlim_t)1 << 46,
                                 RLIM_INFINITY};
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        return "no limit";
    return wr_memory_left() > SIZE_MAX >> 20 ? NULL : "a high limit is truncated";
}

/* Runs `body` in a child process. Fails the test if it returns an error message. */
static void expect_in_child(const char *(*body)(void))
{
    int status;
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const char *wrong = body();
        if (wrong != NULL)
            (void)dprintf(STDERR_FILENO, "in the child: %s\n", wrong);
        _exit(wrong != NULL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void reserve_serves_allocations_when_malloc_fails(void **state)
{
    (void)state;
    test_skip_without_limit_of_memory();
    expect_in_child(use_up);
}

static void memory_limit_beyond_size_t_is_not_truncated(void **state)
{
    (void)state;
    test_skip_without_limit_of_memory();
    expect_in_child(limit_far_above);
}

WEIR_TESTS(test(reserve_serves_allocations_when_malloc_fails), test(memory_limit_beyond_size_t_is_not_truncated),
           test(memory_without_a_limit_is_endless_and_needs_no_reserve))
