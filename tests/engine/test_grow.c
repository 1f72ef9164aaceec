/* SPDX-License-Identifier: MIT */
/* test_grow.c - tests that a crawl keeps almost no memory of pages that have ended (I7, V6). */
#include "engine/rig.h"

#include <fcntl.h>
#include <malloc.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#define FEW 4000
#define MANY 16000    /* the server logs 16384 requests at most */
#define MOST_BYTES 16 /* memory kept per page */

/* ---- the child process, whose heap does not hold the server ---- */

int __wrap_sqlite3_config(int option, ...);

/* Ignores SQLite's options: the store turns off the count of its memory, which the test needs. */
int __wrap_sqlite3_config(int option, ...)
{
    (void)option;
    return SQLITE_OK;
}

/* Prints the bytes of the heap in use when all pages have ended, without SQLite's cache. That cache
 * is bounded (8 MB), but these pages do not fill it. */
static int crawl(const char *port)
{
    static struct crawl_fixture rig;
    rig_set_up(&rig, NULL);
    rig.port = (int)strtol(port, NULL, 10);
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_seeded(&rig);
    bool has_ended = rig_await_end(&rig, 60 * WEIR_SECOND);
    struct mallinfo2 heap = mallinfo2();
    size_t bytes = heap.uordblks + heap.hblkhd - (size_t)sqlite3_memory_used();
    rig_finish(&rig);
    printf("%d %zu\n", rig_verdicts(&rig, "fetched"), bytes);
    rig_tear_down(&rig);
    return fflush(stdout) == 0 && has_ended ? 0 : 1;
}

/* ---- the parent process ---- */

static struct origin_reply answer(void *context, const struct origin_request *request)
{
    struct crawl_fixture *rig = context;
    const int *pages = rig->site;
    return rig_tree(rig, request, *pages, NULL);
}

/* Starts this program again as the crawl. Returns a stream of what it prints. */
static FILE *spawn(int port, pid_t *ret_child)
{
    int ends[2];
    char text[16];
    (void)snprintf(text, sizeof text, "%d", port);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    *ret_child = fork();
    assert_true(*ret_child >= 0);
    if (*ret_child == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)execl("/proc/self/exe", "crawl", "--grow", text, (char *)NULL);
        _exit(127);
    }
    (void)close(ends[1]);
    return fdopen(ends[0], "r");
}

static size_t heap_after(int pages)
{
    struct crawl_fixture rig;
    pid_t child;
    int fetched = 0, status = 0;
    size_t bytes = 0;
    rig_set_up(&rig, answer);
    rig.site = &pages;
    FILE *said = spawn(rig.port, &child);
    assert_non_null(said);
    assert_int_equal(fscanf(said, "%d %zu", &fetched, &bytes), 2);
    (void)fclose(said);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(fetched, pages);
    rig_tear_down(&rig);
    return bytes;
}

static void crawl_keeps_at_most_16_bytes_per_finished_page(void **state)
{
    (void)state;
    if (SANITIZED)
        SKIP("sanitizers have a heap of their own");
    size_t few = heap_after(FEW), many = heap_after(MANY);
    print_message("%zu bytes after %d pages, %zu after %d: %.1f for each\n", few, FEW, many, MANY,
                  (double)((long)many - (long)few) / (MANY - FEW));
    assert_true(many < few + (size_t)MOST_BYTES * (MANY - FEW));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {test(crawl_keeps_at_most_16_bytes_per_finished_page)};
    if (argc == 3 && strcmp(argv[1], "--grow") == 0)
        return crawl(argv[2]);
    return weir_tests_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
