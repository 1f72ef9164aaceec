/* SPDX-License-Identifier: MIT */
/* test_view_turns.c - what the live view does at each key. The crawl and the terminal are stubs
 * that only count. */
#include "lib/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/view/view_state.h"

static struct {
    int looks, pauses, error;
    bool is_paused;
    int64_t interval_ns;
    const char *typed;
} crawl;

int __wrap_wr_engine_inspect_hosts(struct wr_engine *engine, const struct wr_host_view_query *query,
                                   struct wr_host_views **ret_look);
int __wrap_wr_engine_pause(struct wr_engine *engine, struct wr_span key, bool paused);
int __wrap_wr_engine_set_pace(struct wr_engine *engine, struct wr_span key, int64_t interval_ns);
size_t __wrap_wr_engine_events(struct wr_engine *engine, uint64_t after, struct wr_engine_event *ret_events,
                               size_t most);
int __wrap_wr_terminal_key(struct wr_terminal *terminal);

/* The stub of a crawl with two hosts. */
int __wrap_wr_engine_inspect_hosts(struct wr_engine *engine, const struct wr_host_view_query *query,
                                   struct wr_host_views **ret_look)
{
    (void)engine;
    (void)query;
    crawl.looks++;
    struct wr_host_views *look = calloc(1, sizeof *look + 2 * sizeof look->hosts[0]);
    assert_non_null(look);
    look->count = 2;
    look->sums.matched = 2;
    memcpy(look->hosts[0].key, "a.example", sizeof "a.example");
    memcpy(look->hosts[1].key, "b.example", sizeof "b.example");
    look->hosts[0].is_paused = crawl.is_paused;
    *ret_look = look;
    return 0;
}

int __wrap_wr_engine_pause(struct wr_engine *engine, struct wr_span key, bool paused)
{
    (void)engine;
    assert_true(wr_span_is(key, "a.example"));
    crawl.pauses++;
    if (crawl.error == WEIR_E_INVAL)
        return wr_invalid("pacing is off");
    crawl.is_paused = crawl.error == 0 ? paused : crawl.is_paused;
    return crawl.error;
}

int __wrap_wr_engine_set_pace(struct wr_engine *engine, struct wr_span key, int64_t interval_ns)
{
    (void)engine;
    assert_true(wr_span_is(key, "a.example"));
    crawl.interval_ns = interval_ns;
    return crawl.error;
}

size_t __wrap_wr_engine_events(struct wr_engine *engine, uint64_t after, struct wr_engine_event *ret_events,
                               size_t most)
{
    (void)engine;
    (void)after;
    (void)ret_events;
    (void)most;
    return 0;
}

int __wrap_wr_terminal_key(struct wr_terminal *terminal)
{
    (void)terminal;
    return *crawl.typed == '\0' ? WR_KEY_NONE : *crawl.typed++;
}

static struct wr_view *view;
static struct wr_engine_stats stats;

/* Types these keys and runs one turn of the view at the time `at`. */
static void turn(const char *typed, int64_t at)
{
    crawl.typed = typed;
    stats.elapsed_ns = at;
    int to = open("/dev/null", O_WRONLY | O_CLOEXEC), before = dup(STDERR_FILENO);
    assert_true(to >= 0 && before >= 0 && dup2(to, STDERR_FILENO) == STDERR_FILENO);
    wr_view_update(view, &(struct wr_view_totals){.stats = &stats, .left = "?"});
    (void)dup2(before, STDERR_FILENO);
    (void)close(before);
    (void)close(to);
}

static void begin(void)
{
    memset(&crawl, 0, sizeof crawl);
    view = calloc(1, sizeof *view);
    assert_non_null(view);
    (void)pthread_mutex_init(&view->lock, NULL);
    turn("", 0);
    assert_int_equal(crawl.looks, 1);
}

static void end(void)
{
    wr_host_views_free(view->look);
    (void)pthread_mutex_destroy(&view->lock);
    free(view);
}

static void key_redraws_the_view_without_another_query(void **state)
{
    (void)state;
    begin();
    for (int i = 1; i < 100; i++) {
        turn(i % 2 == 1 ? "j" : "k", i * WEIR_MILLISECOND);
        assert_int_equal(view->chosen, i % 2);
        assert_int_equal(crawl.looks, 1);
    }
    turn("", 500 * WEIR_MILLISECOND);
    assert_int_equal(crawl.looks, 2);
    assert_int_equal(view->chosen, 1);
    end();
}

static void host_can_be_paused_and_resumed_between_two_queries(void **state)
{
    (void)state;
    begin();
    turn("p", 1);
    assert_true(crawl.is_paused);
    turn("p", 2);
    assert_true(!crawl.is_paused && crawl.pauses == 2 && crawl.looks == 1);
    end();
}

static void live_view_shows_the_reason_of_a_failed_command(void **state)
{
    static const struct {
        int error;
        const char *words;
    } cases[] = {{WEIR_E_INVAL, "pacing is off"},
                 {WEIR_E_CLOSED, "the crawl is ending"},
                 {WEIR_E_ABSENT, "this host has no more URLs"}};
    (void)state;
    begin();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        crawl.error = cases[i].error;
        turn("p", 1);
        assert_string_equal(view->reply, cases[i].words);
    }
    end();
}

static void live_view_shows_a_refusal_until_the_next_key(void **state)
{
    char line[WR_VIEW_LINE];
    (void)state;
    begin();
    wr_view_say(view, "the disk is full");
    turn("isoon\r", 1);
    assert_non_null(strstr(view->reply, "not a duration"));
    turn("", 2);
    assert_non_null(strstr(view->reply, "not a duration"));
    assert_int_equal(crawl.interval_ns, 0);
    turn("i2s\r", 3);
    assert_string_equal(view->reply, "");
    assert_int_equal(crawl.interval_ns, 2 * WEIR_SECOND);
    wr_view_last_message(view, line);
    assert_string_equal(line, "the disk is full"); /* still the last message */
    end();
}

static void live_view_notes_that_other_processes_hold_all_hosts(void **state)
{
    (void)state;
    begin();
    stats.has_no_hosts = true;
    turn("", WEIR_SECOND);
    const struct wr_text_frame_line *note = &view->frame.lines[2];
    assert_non_null(memmem(note->text, note->bytes, WR_VIEW_NO_HOSTS_LEFT, strlen(WR_VIEW_NO_HOSTS_LEFT)));
    stats.has_no_hosts = false;
    turn("", 2 * WEIR_SECOND);
    assert_null(memmem(note->text, note->bytes, WR_VIEW_NO_HOSTS_LEFT, strlen(WR_VIEW_NO_HOSTS_LEFT)));
    end();
}

WEIR_TESTS(test(key_redraws_the_view_without_another_query), test(host_can_be_paused_and_resumed_between_two_queries),
           test(live_view_shows_the_reason_of_a_failed_command), test(live_view_shows_a_refusal_until_the_next_key),
           test(live_view_notes_that_other_processes_hold_all_hosts))
