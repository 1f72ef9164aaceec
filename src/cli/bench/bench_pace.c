/* SPDX-License-Identifier: MIT */
/* bench_pace.c - weir bench pace: measures the time of a request through a pacer and the memory per
 * host. */
#include <inttypes.h>
#include <stdlib.h>
#include <weir/pace.h>

#include "base/bits.h"
#include "cli/bench/bench.h"
#include "cli/bench/key_stream.h"
#include "cli/bench/resident.h"
#include "cli/bench/sample.h"
#include "cli/bench/threads.h"
#include "cli/kit/command_options.h"
#include "cli/kit/console.h"
#include "core/pace/gate.h"
#include "limiter/clock/clock.h"

#define ROUNDS 3
#define KEY_BYTES 24 /* length of a typical host name */
/* Factor by which the pacer's clock runs faster, so that nearly every request may start at once. */
#define LEAP 1000000
#define CHUNK (1 << 16)

struct bench_pace_settings {
    uint64_t hosts, threads, ops, seed;
    int profile;
    bool json;
};

static const char *const profiles[] = {
#define X(profile, name) [profile] = (name),
    WEIR_PROFILES(X)
#undef X
        NULL};

static const struct wr_option options[] = {
    {"hosts", WR_COUNT(struct bench_pace_settings, hosts), .value = "N", .min = 1, .max = 100000000,
     .help = "Hosts in the pacer"},
    {"threads", WR_COUNT(struct bench_pace_settings, threads), .value = "T", .min = 1, .max = WR_BENCH_THREADS_MAX,
     .help = "Number of concurrent threads"},
    {"ops", WR_COUNT(struct bench_pace_settings, ops), .value = "N", .min = 1, .max = 10000000,
     .help = "Requests per thread and round"},
    {"profile", WR_CHOICE(struct bench_pace_settings, profile), .choices = profiles,
     .help = "Profile whose strategy is measured"},
    {"seed", WR_COUNT(struct bench_pace_settings, seed), .value = "N", .min = 0, .max = UINT64_MAX,
     .help = "Seed of the sequence of hosts"},
    {"json", WR_FLAG(struct bench_pace_settings, json), .help = "Print JSON"},
};

static const struct wr_usage usage = {
    .who = "weir bench pace",
    .about = "Fills a pacer with hosts, then acquires permits and reports their outcomes, for one hot\n"
             "host and for all hosts equally. The profile has no maximum, and time runs a million\n"
             "times as fast as real time, so that nearly every request may start at once.\n"
             "\n"
             "  ns_per_request   acquire and finish, wall time over the requests of all threads, the\n"
             "                   clock read included; the median of 3 rounds\n"
             "  reported         the same with WEIR_REPORTS_SENT: acquire, sent and finish\n"
             "  gate_ns          a bare gate: ask, reserve, sent and finish, without clock, lock and key\n"
             "  bytes_per_host   growth of the resident memory while the pacer was filled\n",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

/* ---- accelerated clock ---- */

struct accelerated_clock {
    weir_clock clock;
    int64_t began_at;
};

static int64_t accelerated_now(const weir_clock *clock)
{
    const struct accelerated_clock *hasty = (const struct accelerated_clock *)clock; /* the clock is the first member */
    return (wr_clock_now(weir_clock_fast()) - hasty->began_at) * LEAP;
}

/* ---- measuring ---- */

struct pace_measured {
    /* Per mode: 0 reports the outcome only, 1 reports the start as well. */
    double ns[2], granted[2];
};

struct pace_bench_result {
    struct pace_measured hot, uniform;
    double fill_ns, bytes_per_host, gate_ns;
    size_t gate_bytes;
    weir_pacer_stats stats;
};

struct pace_bench {
    const struct bench_pace_settings *settings;
    weir_pacer *pacer;
    struct wr_key_stream *streams; /* key streams, one per thread */
    size_t *granted;               /* permits granted in the last round, one counter per thread */
    uint32_t flags;
};

/* Makes one request that is answered at once. Returns 1 if it could start, 0 if not, or an
 * error. */
static int make_pacer_request(weir_pacer *pacer, const char *key, uint32_t flags)
{
    weir_permit permit;
    weir_decision decision;
    weir_outcome outcome = {.size = sizeof outcome, .status = 200, .latency_ns = 50 * WEIR_MILLISECOND};
    int error = weir_pacer_try(pacer, key, KEY_BYTES, NULL, flags, &permit, &decision);
    if (error != 0 || decision.verdict != WEIR_GO)
        return error;
    if ((flags & WEIR_REPORTS_SENT) != 0 && weir_permit_sent(&permit) != 0)
        return 0;
    error = weir_permit_finish(&permit, &outcome);
    return error != 0 ? error : 1;
}

static void pass_pacer_stream(void *context, size_t thread)
{
    struct pace_bench *bench = context;
    const struct wr_key_stream *stream = &bench->streams[thread];
    size_t granted = 0;
    for (size_t i = 0; i < stream->count; i++)
        granted += make_pacer_request(bench->pacer, stream->texts + i * KEY_BYTES, bench->flags) == 1;
    bench->granted[thread] = granted;
}

static double pacer_granted_share(const struct pace_bench *bench, double requests)
{
    size_t granted = 0;
    for (size_t i = 0; i < bench->settings->threads; i++)
        granted += bench->granted[i];
    return (double)granted / requests;
}

/* Runs one round and adds its numbers to the samples. */
static int run_pacer_round(struct pace_bench *bench, struct wr_sample *ns, struct wr_sample *granted)
{
    int64_t wall_ns;
    double requests = (double)(bench->settings->ops * bench->settings->threads);
    int error = wr_bench_threads_run(wr_size_of(bench->settings->threads), pass_pacer_stream, bench, &wall_ns);
    if (error != 0)
        return error;
    wr_sample_add(ns, (double)wall_ns / requests);
    wr_sample_add(granted, pacer_granted_share(bench, requests));
    return 0;
}

static int draw_streams(struct pace_bench *bench, enum wr_key_distribution dist)
{
    const struct bench_pace_settings *settings = bench->settings;
    int error = 0;
    for (size_t i = 0; i < settings->threads && error == 0; i++)
        error = wr_key_stream_init(&bench->streams[i], wr_size_of(settings->ops), wr_size_of(settings->hosts),
                                   KEY_BYTES, dist, settings->seed + i);
    return error;
}

static void release_streams(struct pace_bench *bench)
{
    for (size_t i = 0; i < bench->settings->threads; i++) {
        wr_key_stream_release(&bench->streams[i]);
        bench->streams[i] = (struct wr_key_stream){.count = 0};
    }
}

static int measure_streams(struct pace_bench *bench, enum wr_key_distribution dist, struct pace_measured *ret_measured)
{
    static struct wr_sample ns[2], granted[2];
    int error = draw_streams(bench, dist);
    for (int i = 0; i < 2; i++)
        ns[i].count = granted[i].count = 0;
    for (int round = 0; round < ROUNDS && error == 0; round++) {
        for (int i = 0; i < 2 && error == 0; i++) {
            wr_progress("%s hosts, round %d", dist == WR_DIST_ONE ? "hot" : "uniform", round + 1);
            bench->flags = i == 0 ? 0 : WEIR_REPORTS_SENT;
            error = run_pacer_round(bench, &ns[i], &granted[i]);
        }
    }
    release_streams(bench);
    for (int i = 0; i < 2 && error == 0; i++) {
        ret_measured->ns[i] = wr_sample_median(&ns[i]);
        ret_measured->granted[i] = wr_sample_median(&granted[i]);
    }
    return error;
}

/* ---- a bare gate ---- */

/* Chooses the profile without its maxima, so that the pacer is measured and not the waiting. */
static int choose_pace(const struct bench_pace_settings *settings, weir_pace_options *ret_pace)
{
    int error = weir_pace_options_profile(ret_pace, (weir_profile)settings->profile);
    ret_pace->max_rate = 0;
    ret_pace->max_in_flight = 0;
    return error;
}

/* Makes `ops` requests at a distance of 1 s of virtual time. Each is answered after 50 ms. Returns
 * the time per request, ns. */
static double run_gate(struct wr_gate *gate, const weir_pace_options *pace, uint64_t ops, int64_t *now)
{
    const weir_outcome outcome = {.size = sizeof outcome, .status = 200, .latency_ns = 50 * WEIR_MILLISECOND};
    int64_t start_at = weir_clock_now(weir_clock_monotonic());
    for (uint64_t i = 0; i < ops; i++, *now += WEIR_SECOND) {
        if (wr_gate_ask(gate, pace, *now).verdict != WEIR_GO)
            continue;
        uint32_t seq = wr_gate_reserve(gate, pace, *now);
        struct wr_gate_start start = wr_gate_sent(gate, pace, seq, *now);
        (void)wr_gate_tell(gate, pace, &start, &outcome, *now + outcome.latency_ns, 0);
    }
    return (double)(weir_clock_now(weir_clock_monotonic()) - start_at) / (double)ops;
}

static int measure_gate(const struct bench_pace_settings *settings, struct pace_bench_result *result)
{
    weir_pace_options pace;
    static struct wr_sample ns;
    int64_t now = 0;
    int error = choose_pace(settings, &pace);
    if (error != 0)
        return error;
    result->gate_bytes = wr_gate_bytes(&pace);
    struct wr_gate *gate = calloc(1, result->gate_bytes);
    if (gate == NULL)
        return WEIR_E_NOMEM;
    wr_gate_init(gate, &pace, NULL, now, now);
    ns.count = 0;
    for (int round = 0; round < ROUNDS; round++)
        wr_sample_add(&ns, run_gate(gate, &pace, settings->ops, &now));
    result->gate_ns = wr_sample_median(&ns);
    free(gate);
    return 0;
}

/* ---- the pacer ---- */

static int make_bench_pacer(struct pace_bench *bench, const weir_clock *clock)
{
    weir_pace_options pace;
    weir_pacer_options pacer;
    weir_pacer_options_init(&pacer);
    pacer.max_hosts = wr_size_of(bench->settings->hosts);
    pacer.sweep_every_ns = -1;
    pacer.seed = bench->settings->seed + 1;
    pacer.clock = clock;
    int error = choose_pace(bench->settings, &pace);
    return error != 0 ? error : weir_pacer_new(&pace, &pacer, &bench->pacer);
}

/* Fills the pacer with hosts. Must run before other allocations, so that only the pacer adds to the
 * resident memory. */
static int fill_pacer(struct pace_bench *bench, const weir_clock *clock, struct pace_bench_result *result)
{
    char key[KEY_BYTES];
    uint64_t hosts = bench->settings->hosts;
    size_t before_bytes = wr_resident_bytes();
    int64_t start_at = weir_clock_now(weir_clock_monotonic());
    int error = make_bench_pacer(bench, clock);
    for (uint64_t i = 0; i < hosts && error >= 0; i++) {
        wr_key_stream_key(i, KEY_BYTES, key);
        error = make_pacer_request(bench->pacer, key, 0);
        if (i % CHUNK == 0)
            wr_progress("filling: %" PRIu64 " of %" PRIu64 " hosts", i, hosts);
    }
    if (error < 0)
        return error;
    result->fill_ns = (double)(weir_clock_now(weir_clock_monotonic()) - start_at) / (double)hosts;
    result->bytes_per_host = ((double)wr_resident_bytes() - (double)before_bytes) / (double)hosts;
    return weir_pacer_stats_get(bench->pacer, &result->stats);
}

static int run_pace_bench(const struct bench_pace_settings *settings, struct pace_bench_result *ret_result)
{
    struct accelerated_clock hasty = {.clock = {.now = accelerated_now}, .began_at = wr_clock_now(weir_clock_fast())};
    struct pace_bench bench = {.settings = settings,
                               .streams = calloc(wr_size_of(settings->threads), sizeof *bench.streams),
                               .granted = calloc(wr_size_of(settings->threads), sizeof *bench.granted)};
    int error = bench.streams == NULL || bench.granted == NULL ? WEIR_E_NOMEM : 0;
    error = error != 0 ? error : fill_pacer(&bench, &hasty.clock, ret_result);
    error = error != 0 ? error : measure_streams(&bench, WR_DIST_ONE, &ret_result->hot);
    error = error != 0 ? error : measure_streams(&bench, WR_DIST_UNIFORM, &ret_result->uniform);
    error = error != 0 ? error : measure_gate(settings, ret_result);
    wr_progress("%s", "");
    weir_pacer_free(bench.pacer);
    free(bench.streams);
    free(bench.granted);
    return error;
}

/* ---- printing ---- */

static void print_pace_json(const struct bench_pace_settings *settings, const struct pace_bench_result *result)
{
    wr_print("{\"hosts\": %" PRIu64 ", \"threads\": %" PRIu64 ", \"ops\": %" PRIu64 ", \"profile\": \"%s\",\n",
             settings->hosts, settings->threads, settings->ops, profiles[settings->profile]);
    wr_print(" \"hot_ns_per_request\": %.1f, \"hot_reported_ns_per_request\": %.1f, \"hot_granted\": %.4f,\n",
             result->hot.ns[0], result->hot.ns[1], result->hot.granted[0]);
    wr_print(" \"uniform_ns_per_request\": %.1f, \"uniform_reported_ns_per_request\": %.1f,"
             " \"uniform_granted\": %.4f,\n",
             result->uniform.ns[0], result->uniform.ns[1], result->uniform.granted[0]);
    wr_print(" \"gate_ns\": %.1f, \"gate_bytes\": %zu,\n", result->gate_ns, result->gate_bytes);
    wr_print(" \"hosts_held\": %zu, \"bytes_per_host\": %.1f, \"fill_ns_per_host\": %.1f}\n", result->stats.hosts,
             result->bytes_per_host, result->fill_ns);
}

static void print_pace_text(const struct bench_pace_settings *settings, const struct pace_bench_result *result)
{
    wr_print("%" PRIu64 " hosts, threads %" PRIu64 ", profile %s\n", settings->hosts, settings->threads,
             profiles[settings->profile]);
    wr_print("ns per request     acquire, finish acquire, sent, finish   granted\n");
    wr_print("  one hot host            %10.1f            %10.1f  %6.1f %%\n", result->hot.ns[0], result->hot.ns[1],
             100 * result->hot.granted[0]);
    wr_print("  all hosts alike         %10.1f            %10.1f  %6.1f %%\n", result->uniform.ns[0],
             result->uniform.ns[1], 100 * result->uniform.granted[0]);
    wr_print("  a bare gate             %10s            %10.1f\n", "", result->gate_ns);
    wr_print("memory  %zu bytes per gate, %.1f bytes per host, %zu hosts held\n", result->gate_bytes,
             result->bytes_per_host, result->stats.hosts);
}

int wr_bench_pace_run(int argc, char **argv)
{
    struct bench_pace_settings settings = {
        .hosts = 1000000, .threads = 1, .ops = 1000000, .seed = 1, .profile = WEIR_PROFILE_ADAPTIVE};
    struct pace_bench_result result = {.fill_ns = 0};
    int status;
    if (!wr_options_parse(&usage, &argc, argv, &settings, &status))
        return status;
    int error = run_pace_bench(&settings, &result);
    if (error != 0) {
        wr_complain("%s", weir_error_text(error));
        return WR_EXIT_FAILED;
    }
    (settings.json ? print_pace_json : print_pace_text)(&settings, &result);
    return WR_EXIT_OK;
}
