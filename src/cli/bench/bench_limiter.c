/* SPDX-License-Identifier: MIT */
/* bench_limiter.c - weir bench limiter: measures one decision of each algorithm and one reading of
 * each clock. */
#include <inttypes.h>
#include <stdlib.h>
#include <weir/limit.h>

#include "cli/bench/bench.h"
#include "cli/bench/sample.h"
#include "cli/kit/command_options.h"
#include "cli/kit/console.h"

#define ROUNDS 7
/* Virtual time between two decisions of the pure core, which takes the time as an argument. */
#define STEP_NS 25

struct bench_limiter_settings {
    uint64_t ops;
    bool json;
};

static const struct wr_option options[] = {
    {"ops", WR_COUNT(struct bench_limiter_settings, ops), .value = "N", .min = 1, .max = 1000000000,
     .help = "Decisions per round"},
    {"json", WR_FLAG(struct bench_limiter_settings, json), .help = "Print JSON"},
};

static const struct wr_usage usage = {
    .who = "weir bench limiter",
    .about = "Measures what one decision costs, in nanoseconds (the median of 7 rounds):\n"
             "\n"
             "  limiter   weir_limiter_try, which is safe for threads and reads the fast clock\n"
             "  stack     weir_stack_try, the pure core, which gets the time as an argument\n"
             "\n"
             "The limits are so wide that nearly all requests are granted, and the sliding log has\n"
             "its maximum length. Bytes are those of one key's state. The cost of reading each clock\n"
             "is shown too.\n",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

/* Number of algorithms. Each gets a limit so wide that one processor can hardly use it up. */
enum {
    ALGORITHMS = 6
};

static int make_limits(weir_limit ret_limits[ALGORITHMS])
{
    int error = weir_limit_token_bucket(&ret_limits[0], 1000000, 1000000000, WEIR_SECOND);
    error = error != 0 ? error : weir_limit_fixed_window(&ret_limits[1], 1000000000, WEIR_SECOND);
    error = error != 0 ? error : weir_limit_sliding_window(&ret_limits[2], 1000000000, WEIR_SECOND);
    error = error != 0 ? error : weir_limit_sliding_log(&ret_limits[3], WEIR_LOG_MAX, WEIR_MILLISECOND);
    error = error != 0 ? error : weir_limit_leaky_bucket(&ret_limits[4], 1, WEIR_NANOSECOND);
    return error != 0 ? error : weir_limit_concurrency(&ret_limits[5], WEIR_PERMITS_MAX);
}

struct algorithm_row {
    const char *name;
    double limiter_ns, stack_ns, granted;
    uint32_t state_bytes;
};

static int64_t limiter_bench_now_ns(void)
{
    return weir_clock_now(weir_clock_monotonic());
}

static double measure_clock(const weir_clock *clock, uint64_t ops)
{
    struct wr_sample sample = {.count = 0};
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start_at = limiter_bench_now_ns();
        for (uint64_t i = 0; i < ops; i++)
            (void)weir_clock_now(clock);
        wr_sample_add(&sample, (double)(limiter_bench_now_ns() - start_at) / (double)ops);
    }
    return wr_sample_median(&sample);
}

static int measure_limiter(const weir_limit *limit, uint64_t ops, struct algorithm_row *row)
{
    struct wr_sample sample = {.count = 0};
    weir_limiter *limiter;
    weir_decision decision;
    uint64_t granted = 0;
    int error = weir_limiter_new(limit, 1, NULL, &limiter);
    if (error != 0)
        return error;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start_at = limiter_bench_now_ns();
        for (uint64_t i = 0; i < ops; i++)
            granted += weir_limiter_try(limiter, 1, &decision) == 0 && decision.verdict == WEIR_GO;
        wr_sample_add(&sample, (double)(limiter_bench_now_ns() - start_at) / (double)ops);
    }
    weir_limiter_free(limiter);
    row->limiter_ns = wr_sample_median(&sample);
    row->granted = (double)granted / (double)ops / ROUNDS;
    return 0;
}

static int measure_stack(const weir_limit *limit, uint64_t ops, struct algorithm_row *row)
{
    struct wr_sample sample = {.count = 0};
    weir_stack stack;
    int error = weir_stack_init(&stack, limit, 1);
    if (error != 0)
        return error;
    void *state = calloc(1, stack.state_bytes);
    if (state == NULL)
        return WEIR_E_NOMEM;
    int64_t now = 0;
    weir_stack_start(&stack, state, now);
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start_at = limiter_bench_now_ns();
        for (uint64_t i = 0; i < ops; i++)
            weir_stack_try(&stack, state, now += STEP_NS, 1, NULL);
        wr_sample_add(&sample, (double)(limiter_bench_now_ns() - start_at) / (double)ops);
    }
    free(state);
    row->stack_ns = wr_sample_median(&sample);
    row->state_bytes = stack.state_bytes;
    return 0;
}

static int measure_algorithms(uint64_t ops, struct algorithm_row ret_rows[ALGORITHMS])
{
    weir_limit limits[ALGORITHMS];
    int error = make_limits(limits);
    for (size_t i = 0; i < ALGORITHMS && error == 0; i++) {
        ret_rows[i].name = weir_limit_name(&limits[i]);
        wr_progress("%s", ret_rows[i].name);
        error = measure_limiter(&limits[i], ops, &ret_rows[i]);
        error = error != 0 ? error : measure_stack(&limits[i], ops, &ret_rows[i]);
    }
    wr_progress("%s", "");
    return error;
}

static void print_limiter_text(const struct algorithm_row rows[ALGORITHMS], double monotonic_ns, double fast_ns)
{
    wr_print("ns per decision         limiter     stack   granted    bytes\n");
    for (size_t i = 0; i < ALGORITHMS; i++)
        wr_print("  %-20s%9.1f %9.1f %8.1f %% %8" PRIu32 "\n", rows[i].name, rows[i].limiter_ns, rows[i].stack_ns,
                 100 * rows[i].granted, rows[i].state_bytes);
    wr_print("ns per clock reading\n  %-20s%9.1f\n  %-20s%9.1f\n", "monotonic", monotonic_ns, "fast", fast_ns);
}

static void print_limiter_json(const struct algorithm_row rows[ALGORITHMS], double monotonic_ns, double fast_ns)
{
    wr_print("{\"clock_monotonic_ns\": %.2f, \"clock_fast_ns\": %.2f, \"algorithms\": [", monotonic_ns, fast_ns);
    for (size_t i = 0; i < ALGORITHMS; i++)
        wr_print("%s\n  {\"name\": \"%s\", \"limiter_ns\": %.2f, \"stack_ns\": %.2f, \"granted\": %.4f, "
                 "\"state_bytes\": %" PRIu32 "}",
                 i > 0 ? "," : "", rows[i].name, rows[i].limiter_ns, rows[i].stack_ns, rows[i].granted,
                 rows[i].state_bytes);
    wr_print("\n]}\n");
}

int wr_bench_limiter_run(int argc, char **argv)
{
    struct bench_limiter_settings settings = {.ops = 1000000};
    struct algorithm_row rows[ALGORITHMS];
    int status;
    if (!wr_options_parse(&usage, &argc, argv, &settings, &status))
        return status;
    int error = measure_algorithms(settings.ops, rows);
    if (error != 0) {
        wr_complain("%s", weir_error_text(error));
        return WR_EXIT_FAILED;
    }
    double monotonic_ns = measure_clock(weir_clock_monotonic(), settings.ops);
    double fast_ns = measure_clock(weir_clock_fast(), settings.ops);
    (settings.json ? print_limiter_json : print_limiter_text)(rows, monotonic_ns, fast_ns);
    return WR_EXIT_OK;
}
