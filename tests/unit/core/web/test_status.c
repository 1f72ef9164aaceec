/* SPDX-License-Identifier: MIT */
/* test_status.c - tests the table of status classes (S0-45, S0-46, R4). */
#include "lib/test.h"

#include "core/web/http/status.h"

#include <weir/error.h>

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])

static enum wr_status_class class_of(enum wr_statuses_preset preset, int status)
{
    struct wr_statuses statuses;
    wr_statuses_init(&statuses, preset);
    return wr_status_class(&statuses, status);
}

/* R4: in a crawl, a refusal is not a failure of the page. */
static void jobs_take_403_429_and_503_as_blocking(void **state)
{
    (void)state;
    assert_int_equal(class_of(WR_STATUSES_JOBS, 403), WR_STATUS_BLOCKING);
    assert_int_equal(class_of(WR_STATUSES_JOBS, 429), WR_STATUS_BLOCKING);
    assert_int_equal(class_of(WR_STATUSES_JOBS, 503), WR_STATUS_BLOCKING);
    for (int status = 0; status <= WR_STATUS_MAX; status++)
        if (class_of(WR_STATUSES_JOBS, status) != WR_STATUS_BLOCKING)
            assert_int_equal(class_of(WR_STATUSES_JOBS, status), class_of(WR_STATUSES_API, status));
}

/* N6-6 */
static void statuses_that_stand_for_429_count_like_429(void **state)
{
    static const int refusals[] = {420, 429, 430, 509, 529, 999};

    (void)state;
    for (size_t i = 0; i < COUNT(refusals); i++) {
        assert_int_equal(class_of(WR_STATUSES_JOBS, refusals[i]), WR_STATUS_BLOCKING);
        assert_int_equal(class_of(WR_STATUSES_API, refusals[i]), WR_STATUS_TRANSIENT);
    }
}

/* S0-45, S0-46 */
static void timeouts_and_gateway_errors_are_transient_client_errors_permanent(void **state)
{
    static const int transient[] = {0, 429, 502, 503, 504, 408, 425, 500, 520, 524};
    static const int permanent[] = {400, 401, 403, 404, 410, 418, 451, 501, 505, 599, 1, 99, -1, 600, 998, INT32_MAX};
    static const int done[] = {200, 201, 204, 206, 301, 302, 304, 308};

    (void)state;
    for (size_t i = 0; i < COUNT(transient); i++)
        assert_int_equal(class_of(WR_STATUSES_API, transient[i]), WR_STATUS_TRANSIENT);
    for (size_t i = 0; i < COUNT(permanent); i++)
        assert_int_equal(class_of(WR_STATUSES_API, permanent[i]), WR_STATUS_PERMANENT);
    for (size_t i = 0; i < COUNT(done); i++)
        assert_int_equal(class_of(WR_STATUSES_API, done[i]), WR_STATUS_DONE);
}

static void classes_can_be_overridden_in_words(void **state)
{
    struct wr_statuses statuses;

    (void)state;
    wr_statuses_init(&statuses, WR_STATUSES_JOBS);
    assert_int_equal(wr_statuses_parse(&statuses, "403=permanent, 404 = transient,0=permanent,500=done"), 0);
    assert_int_equal(wr_status_class(&statuses, 403), WR_STATUS_PERMANENT);
    assert_int_equal(wr_status_class(&statuses, 404), WR_STATUS_TRANSIENT);
    assert_int_equal(wr_status_class(&statuses, 0), WR_STATUS_PERMANENT);
    assert_int_equal(wr_status_class(&statuses, 500), WR_STATUS_DONE);
    assert_int_equal(wr_status_class(&statuses, 429), WR_STATUS_BLOCKING);
}

/* R4: the table for APIs replaces that for jobs. */
static void table_for_apis_can_be_chosen(void **state)
{
    struct wr_statuses statuses, api;

    (void)state;
    wr_statuses_init(&api, WR_STATUSES_API);
    wr_statuses_init(&statuses, WR_STATUSES_JOBS);
    assert_int_equal(wr_statuses_parse(&statuses, "api"), 0);
    assert_memory_equal(&statuses, &api, sizeof statuses);
    assert_int_equal(wr_statuses_parse(&statuses, "403=done, api ,500=permanent"), 0);
    assert_int_equal(wr_status_class(&statuses, 403), WR_STATUS_PERMANENT);
    assert_int_equal(wr_status_class(&statuses, 500), WR_STATUS_PERMANENT);
}

static void invalid_status_class_texts_are_refused_and_change_nothing(void **state)
{
    static const char *const texts[] = {
        "",        "403",    "403=",     "=permanent",     "403=never",          "403=Permanent",           "4xx=done",
        "-1=done", "7=done", "600=done", "404=transient,", "404=done,,500=done", "404=transient,403=maybe", "API",
        "api=done"};
    struct wr_statuses statuses, before;

    (void)state;
    wr_statuses_init(&statuses, WR_STATUSES_JOBS);
    before = statuses;
    for (size_t i = 0; i < COUNT(texts); i++) {
        assert_int_equal(wr_statuses_parse(&statuses, texts[i]), WEIR_E_INVAL);
        assert_non_null(strstr(weir_error_detail(), "403=permanent"));
    }
    assert_memory_equal(&statuses, &before, sizeof statuses);
}

WEIR_TESTS(test(jobs_take_403_429_and_503_as_blocking), test(statuses_that_stand_for_429_count_like_429),
           test(timeouts_and_gateway_errors_are_transient_client_errors_permanent),
           test(classes_can_be_overridden_in_words), test(table_for_apis_can_be_chosen),
           test(invalid_status_class_texts_are_refused_and_change_nothing))
