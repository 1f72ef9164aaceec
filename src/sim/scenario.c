/* SPDX-License-Identifier: MIT */
/* scenario.c - Sets the defaults of a scenario, and validates it. */
#include "sim/sim.h"

#include <math.h>

#define DURATION_MAX (30 * WEIR_DAY) /* limited, because counts are per second */
#define WORKERS_MAX 65536
#define SERVERS_MAX 4096 /* limited, because the search is linear */
#define COUNT_MAX 10000000
#define RATE_MAX 1e6
#define PERIODS_MAX 1000000
#define HOSTS_MAX 100000
#define SEEDS_MAX 10000

static void origin_init(struct wr_origin *origin)
{
    *origin = (struct wr_origin){0};
    origin->service.mean_ns = 50 * WEIR_MILLISECOND;
    origin->service.sigma = 0.5;
    origin->limiter.rate = 1;
    origin->limiter.burst = 1;
    origin->limiter.quota = 60;
    origin->limiter.window_ns = WEIR_MINUTE;
    origin->limiter.ban_ns = WEIR_MINUTE;
    origin->limiter.status = 429;
    origin->limiter.max = 1;
    origin->limiter.step_ns = 500 * WEIR_MILLISECOND;
    origin->limiter.most_ns = 20 * WEIR_SECOND;
    origin->reject.status = 429;
}

void wr_scenario_init(struct wr_scenario *ret_scenario)
{
    *ret_scenario = (struct wr_scenario){
        .duration_ns = 30 * WEIR_MINUTE,
        .workers = 64,
        .seeds = 3,
        .network.rtt_ns = 50 * WEIR_MILLISECOND,
        .crowd = {.zipf = 0.7, .largest = 4000, .seed = 77},
    };
    origin_init(&ret_scenario->origin);
    for (size_t i = 0; i < WR_MIX_MAX; i++) {
        ret_scenario->mix[i].weight = 1;
        origin_init(&ret_scenario->mix[i].origin);
    }
}

/* Returns true if the number is in range; false for NAN. */
static bool is_real_within(double number, double least, double most)
{
    return number >= least && number <= most;
}

static bool is_count_between(int64_t number, int64_t least, int64_t most)
{
    return number >= least && number <= most;
}

static const char *service_wrong(const struct wr_origin *origin)
{
    if (!is_count_between(origin->service.mean_ns, WEIR_MICROSECOND, WEIR_HOUR))
        return "service mean is out of range; it must be 1us ... 1h";
    if (!is_real_within(origin->service.sigma, 0, 3))
        return "service sigma is out of range; it must be 0 ... 3";
    if (origin->service.law != WR_LAW_LOGNORMAL && origin->service.law != WR_LAW_UNIFORM)
        return "service law is unknown; use lognormal or uniform";
    if (!is_real_within(origin->service.tail, 0, 1))
        return "service tail is not a probability; it must be 0 ... 1";
    return NULL;
}

static const char *window_wrong(const struct wr_origin *origin)
{
    if (origin->limiter.starts != WR_STARTS_BY_CLOCK && origin->limiter.starts != WR_STARTS_BY_REQUEST)
        return "limiter starts is unknown; use clock or request";
    if (!is_count_between(origin->limiter.block_ns, 0, 30 * WEIR_DAY))
        return "limiter block is out of range; it must be 0s ... 30d";
    if (!is_count_between(origin->limiter.quota, 1, COUNT_MAX))
        return "limiter quota is out of range; it must be 1 ... 10000000";
    if (!is_count_between(origin->limiter.window_ns, WEIR_MILLISECOND, 30 * WEIR_DAY))
        return "limiter window is out of range; it must be 1ms ... 30d";
    return NULL;
}

static bool status_ok(int status)
{
    return is_count_between(status, 400, 599);
}

static const char *ban_wrong(const struct wr_origin *origin)
{
    if (!is_count_between(origin->limiter.ban_ns, 0, 30 * WEIR_DAY))
        return "limiter ban is out of range; it must be 0s ... 30d";
    if (!status_ok(origin->limiter.status))
        return "limiter status is not a rejection; it must be 400 ... 599";
    return window_wrong(origin);
}

static const char *slow_down_wrong(const struct wr_origin *origin)
{
    if (!is_count_between(origin->limiter.step_ns, WEIR_MILLISECOND, WEIR_HOUR))
        return "limiter step is out of range; it must be 1ms ... 1h";
    if (!is_count_between(origin->limiter.most_ns, 0, WEIR_HOUR))
        return "limiter most is out of range; it must be 0s ... 1h";
    return window_wrong(origin);
}

static const char *bucket_wrong(const struct wr_origin *origin)
{
    if (!is_real_within(origin->limiter.rate, 1e-6, RATE_MAX))
        return "limiter rate is out of range; it must be 0.000001 ... 1000000 per second";
    if (!is_real_within(origin->limiter.burst, 1, COUNT_MAX))
        return "limiter burst is out of range; it must be 1 ... 10000000";
    return NULL;
}

static const char *origin_limiter_wrong(const struct wr_origin *origin)
{
    switch (origin->limiter.kind) {
    case WR_LIMITER_NONE:
        return NULL;
    case WR_LIMITER_TOKEN_BUCKET:
        return bucket_wrong(origin);
    case WR_LIMITER_FIXED_WINDOW:
    case WR_LIMITER_SLIDING_COUNTER:
        return window_wrong(origin);
    case WR_LIMITER_SLOW_DOWN:
        return slow_down_wrong(origin);
    case WR_LIMITER_SLIDING_BAN:
        return ban_wrong(origin);
    case WR_LIMITER_CONCURRENCY:
        return is_count_between(origin->limiter.max, 1, WORKERS_MAX)
                   ? NULL
                   : "limiter max is out of range; it must be 1 ... 65536";
    }
    return "limiter kind is unknown; use token_bucket, fixed_window, sliding_ban, sliding_counter, concurrency, "
           "slow_down or none";
}

static const char *reject_wrong(const struct wr_origin *origin)
{
    if (!is_count_between((int)origin->reject.how, WR_REJECT_ANSWER, WR_REJECT_SILENCE))
        return "reject how is unknown; use answer, reset or silence";
    if (!status_ok(origin->reject.status))
        return "reject status is not a rejection; it must be 400 ... 599";
    if (!is_count_between(origin->reject.delay_ns, 0, WEIR_HOUR))
        return "reject delay is out of range; it must be 0s ... 1h";
    if (!is_count_between(origin->reject.wait_ns, 0, WEIR_DAY))
        return "reject wait is out of range; it must be 0s ... 1d";
    return NULL;
}

static const char *origin_vary_wrong(const struct wr_origin *origin, int64_t duration_ns)
{
    switch (origin->vary.kind) {
    case WR_VARY_NONE:
    case WR_VARY_STEP:
    case WR_VARY_JUMP:
        return NULL;
    case WR_VARY_SINE:
    case WR_VARY_WALK:
        return is_count_between(origin->vary.period_ns, duration_ns / PERIODS_MAX + 1, 365 * WEIR_DAY)
                   ? NULL
                   : "vary period is out of range; it must be from a millionth of the duration to 365d";
    }
    return "vary kind is unknown; use none, step, jump, sine or walk";
}

static const char *faults_wrong(const struct wr_origin *origin)
{
    if (!is_real_within(origin->errors.p500, 0, 0.99) || !is_real_within(origin->errors.p503, 0, 0.99))
        return "errors p500 or p503 is out of range; each must be 0 ... 0.99";
    if (origin->outage.from_ns < 0 || (origin->outage.to_ns != 0 && origin->outage.to_ns <= origin->outage.from_ns))
        return "outage ends before it begins; from must be less than to";
    if (!is_real_within(origin->cross, 0, 0.99))
        return "cross is out of range; it must be 0 ... 0.99";
    if (origin->cross > 0 && origin->limiter.kind != WR_LIMITER_TOKEN_BUCKET)
        return "cross needs a token bucket; set the limiter's kind to token_bucket or cross to 0";
    return NULL;
}

static const char *origin_wrong(const struct wr_origin *origin, int64_t duration_ns)
{
    const char *wrong = service_wrong(origin);
    if (wrong == NULL)
        wrong = origin_limiter_wrong(origin);
    if (wrong == NULL && !is_count_between(origin->station.servers, 0, SERVERS_MAX))
        wrong = "station servers is out of range; it must be 0 ... 4096";
    if (wrong == NULL && !is_count_between(origin->station.queue, 0, COUNT_MAX))
        wrong = "station queue is out of range; it must be 0 ... 10000000";
    if (wrong == NULL)
        wrong = reject_wrong(origin);
    if (wrong == NULL)
        wrong = origin_vary_wrong(origin, duration_ns);
    if (wrong == NULL)
        wrong = faults_wrong(origin);
    return wrong;
}

static const char *crowd_wrong(const struct wr_scenario *scenario)
{
    if (!is_count_between(scenario->crowd.hosts, 1, HOSTS_MAX))
        return "crowd hosts is out of range; it must be 1 ... 100000";
    if (!is_real_within(scenario->crowd.zipf, 0, 5))
        return "crowd zipf is out of range; it must be 0 ... 5";
    if (!is_count_between(scenario->crowd.largest, 1, COUNT_MAX))
        return "crowd largest is out of range; it must be 1 ... 10000000";
    if (!is_count_between(scenario->mix_count, 1, WR_MIX_MAX))
        return "a crowd needs a mix; list 1 ... 32 origins with their weights";
    for (uint32_t i = 0; i < scenario->mix_count; i++) {
        if (!is_real_within(scenario->mix[i].weight, 1e-6, 1e6))
            return "a weight in the mix is out of range; it must be 0.000001 ... 1000000";
        const char *wrong = origin_wrong(&scenario->mix[i].origin, scenario->duration_ns);
        if (wrong != NULL)
            return wrong;
    }
    return NULL;
}

const char *wr_scenario_wrong(const struct wr_scenario *scenario)
{
    if (scenario->name[0] == '\0')
        return "name is missing; give the scenario a name";
    if (!is_count_between(scenario->duration_ns, WEIR_SECOND, DURATION_MAX))
        return "duration is out of range; it must be 1s ... 30d";
    if (!is_count_between(scenario->workers, 1, WORKERS_MAX))
        return "workers is out of range; it must be 1 ... 65536";
    if (!is_count_between(scenario->seeds, 1, SEEDS_MAX))
        return "seeds is out of range; it must be 1 ... 10000";
    if (!is_count_between(scenario->network.rtt_ns, 0, WEIR_MINUTE) ||
        !is_count_between(scenario->network.jitter_ns, 0, WEIR_MINUTE))
        return "network rtt or jitter is out of range; each must be 0s ... 60s";
    if (scenario->backlog > COUNT_MAX)
        return "backlog is out of range; it must be 0 ... 10000000";
    if (scenario->crowd.hosts > 0)
        return crowd_wrong(scenario);
    return origin_wrong(&scenario->origin, scenario->duration_ns);
}
