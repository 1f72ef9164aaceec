/* SPDX-License-Identifier: MIT */
/* limit_trials.c - weir simulate --limit: shows which requests a limit grants, and when. */
#include "cli/simulate/limit_trials.h"

#include <inttypes.h>
#include <stdalign.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/kit/command_options.h"
#include "cli/kit/console.h"
#include "cli/kit/sanitise.h"
#include "cli/simulate/trace.h"
#include "core/admit/key_source.h"

#define TEXT_MAX 256

struct limit_stack {
    weir_limit list[WEIR_STACK_MAX];
    size_t count;
};

static int complain_limit_option(const char *option)
{
    wr_complain("--%s: %s", option, weir_error_detail());
    return WR_EXIT_USAGE;
}

static int parse_limits(const char *text, struct limit_stack *ret_limits)
{
    char part[TEXT_MAX];
    struct wr_span rest = wr_span_of(text);
    ret_limits->count = 0;
    for (bool more = true; more;) {
        size_t bytes = wr_span_find(rest, ',');
        more = bytes < rest.bytes;
        if (bytes >= sizeof part || ret_limits->count == WEIR_STACK_MAX) {
            wr_complain("--limit: more than %d limits, or one that is too long", WEIR_STACK_MAX);
            return WR_EXIT_USAGE;
        }
        memcpy(part, rest.data, bytes);
        part[bytes] = '\0';
        rest = wr_span_after(rest, bytes + more);
        if (weir_limit_parse(part, &ret_limits->list[ret_limits->count++]) != 0)
            return complain_limit_option("limit");
    }
    return WR_EXIT_OK;
}

/* ---- output ---- */

static void format_retry_after(const struct wr_trial_sum *sum, char *ret_text, size_t room)
{
    if (sum->retry_max_s == 0)
        snprintf(ret_text, room, "-");
    else if (sum->retry_min_s == sum->retry_max_s)
        snprintf(ret_text, room, "%" PRId64 " s", sum->retry_max_s);
    else
        snprintf(ret_text, room, "%" PRId64 " to %" PRId64 " s", sum->retry_min_s, sum->retry_max_s);
}

static void print_trials_text(const struct wr_limit_trials_table *table)
{
    int width = 5;
    char window[32], waited[32], retry[64];
    snprintf(window, sizeof window, "in any %g s", (double)table->window_ns * 1e-9);
    for (size_t i = 0; i < table->count; i++)
        width = (int)strlen(table->rows[i].text) > width ? (int)strlen(table->rows[i].text) : width;
    wr_print("%zu requests: %s\n\n", table->plan.traffic->requests, table->traffic_text);
    wr_print("%-*s %9s %9s %14s %9s %13s  %s\n", width, "limit", "granted", "refused", window, "at once",
             "longest wait", "Retry-After");
    for (size_t i = 0; i < table->count; i++) {
        const struct wr_trial_sum *sum = &table->rows[i].sum;
        snprintf(waited, sizeof waited, "%.3g s", (double)sum->longest_ns * 1e-9);
        format_retry_after(sum, retry, sizeof retry);
        wr_print("%-*s %9zu %9zu %14zu %9zu %13s  %s\n", width, table->rows[i].text, sum->granted,
                 sum->asked - sum->granted, sum->most_in_window, sum->most_in_flight,
                 sum->longest_ns > 0 ? waited : "-", retry);
    }
}

static void print_trials_json(const struct wr_limit_trials_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct wr_trial_sum *sum = &table->rows[i].sum;
        wr_print("{\"limit\": ");
        wr_print_json_string(wr_span_of(table->rows[i].text));
        wr_print(
            ", \"asked\": %zu, \"granted\": %zu, \"window_s\": %.9g, \"most_in_window\": %zu, \"most_in_flight\": %zu, "
            "\"longest_wait_s\": %.9g, \"retry_after_min_s\": %" PRId64 ", \"retry_after_max_s\": %" PRId64 "}\n",
            sum->asked, sum->granted, (double)table->window_ns * 1e-9, sum->most_in_window, sum->most_in_flight,
            (double)sum->longest_ns * 1e-9, sum->retry_min_s, sum->retry_max_s);
    }
}

/* ---- running ---- */

/* Returns the window in which grants are counted: the longest period of all limits, so that they
 * can be compared. It is at least a second, because the period of a leaky bucket is the time
 * between two requests. */
static int64_t longest_period(const struct limit_stack *limits, size_t count)
{
    int64_t longest_ns = WEIR_SECOND;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < limits[i].count; j++)
            if (limits[i].list[j].period_ns > longest_ns)
                longest_ns = limits[i].list[j].period_ns;
    return longest_ns;
}

static int output_limit_trials(const struct wr_limit_trials_settings *settings,
                               const struct wr_limit_trials_table *table)
{
    FILE *file = NULL;
    if (!wr_trace_file_open(settings->plot, &file))
        return WR_EXIT_FAILED;
    if (file != NULL)
        wr_limit_trials_plot(file, table);
    if (!wr_trace_file_close(settings->plot, file))
        return WR_EXIT_FAILED;
    (settings->json ? print_trials_json : print_trials_text)(table);
    return WR_EXIT_OK;
}

static int run_limit_trials(const struct wr_limit_trials_settings *settings, const struct limit_stack *limits,
                            struct wr_limit_trials_table table, struct wr_trial_answer *answers)
{
    struct wr_limit_trials_row rows[WR_OPTION_LIST_MAX];
    table.rows = rows;
    for (size_t i = 0; i < table.count; i++, answers += table.plan.traffic->requests) {
        int error = wr_trial_run(&table.plan, limits[i].list, limits[i].count, answers);
        if (error != 0) {
            wr_complain("%s", weir_error_text(error));
            return WR_EXIT_FAILED;
        }
        struct wr_trial_sum sum = wr_trial_sum(&table.plan, answers, table.window_ns);
        rows[i] = (struct wr_limit_trials_row){settings->limits[i], answers, sum};
    }
    return output_limit_trials(settings, &table);
}

int wr_limit_trials_run(const struct wr_limit_trials_settings *settings)
{
    const weir_allocator *allocator = weir_allocator_system();
    struct limit_stack limits[WR_OPTION_LIST_MAX];
    struct wr_traffic traffic;
    struct wr_limit_trials_table table = {
        .traffic_text = settings->traffic,
        .plan = {&traffic, settings->take_ns, settings->wait_ns},
        .count = settings->count,
    };
    if (wr_traffic_parse(settings->traffic, &traffic) != 0)
        return complain_limit_option("traffic");
    for (size_t i = 0; i < settings->count; i++)
        if (parse_limits(settings->limits[i], &limits[i]) != WR_EXIT_OK)
            return WR_EXIT_USAGE;
    table.window_ns = longest_period(limits, settings->count);
    size_t count = settings->count * traffic.requests;
    struct wr_trial_answer *answers =
        wr_alloc_array(allocator, count, sizeof *answers, alignof(struct wr_trial_answer));
    if (answers == NULL) {
        wr_complain("%s", weir_error_text(WEIR_E_NOMEM));
        return WR_EXIT_FAILED;
    }
    int status = run_limit_trials(settings, limits, table, answers);
    wr_free(allocator, answers, count * sizeof *answers, alignof(struct wr_trial_answer));
    return status;
}
