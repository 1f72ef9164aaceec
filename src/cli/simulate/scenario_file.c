/* SPDX-License-Identifier: MIT */
/* scenario_file.c - the schema of scenario files and the fields in which values are stored. */
#include "cli/simulate/scenario_file.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define MONTH ((uint64_t)(30 * WEIR_DAY))

/* ---- an origin; each schema up to origin_schema is a group in struct wr_origin ---- */

static const char *const laws[] = {[WR_LAW_LOGNORMAL] = "lognormal", [WR_LAW_UNIFORM] = "uniform", NULL};
static const char *const limiters[] = {
    [WR_LIMITER_NONE] = "none",
    [WR_LIMITER_TOKEN_BUCKET] = "token_bucket",
    [WR_LIMITER_FIXED_WINDOW] = "fixed_window",
    [WR_LIMITER_SLIDING_BAN] = "sliding_ban",
    [WR_LIMITER_CONCURRENCY] = "concurrency",
    [WR_LIMITER_SLIDING_COUNTER] = "sliding_counter",
    [WR_LIMITER_SLOW_DOWN] = "slow_down",
    NULL,
};
static const char *const starts[] = {[WR_STARTS_BY_CLOCK] = "clock", [WR_STARTS_BY_REQUEST] = "request", NULL};
static const char *const hows[] = {
    [WR_REJECT_ANSWER] = "answer", [WR_REJECT_RESET] = "reset", [WR_REJECT_SILENCE] = "silence", NULL};
static const char *const varies[] = {
    [WR_VARY_NONE] = "none", [WR_VARY_STEP] = "step", [WR_VARY_JUMP] = "jump",
    [WR_VARY_SINE] = "sine", [WR_VARY_WALK] = "walk", NULL,
};

static const struct wr_config_field service_fields[] = {
    {"mean", WR_CONFIG_DURATION(struct wr_origin, service.mean_ns), .min = WEIR_MICROSECOND, .max = WEIR_HOUR,
     .what = "mean response time"},
    {"sigma", WR_CONFIG_NUMBER(struct wr_origin, service.sigma), .least = 0, .most = 3,
     .what = "sigma of the lognormal law"},
    {"law", WR_CONFIG_CHOICE(struct wr_origin, service.law), .choices = laws},
    {"tail", WR_CONFIG_NUMBER(struct wr_origin, service.tail), .least = 0, .most = 1,
     .what = "probability of a response that takes 20 times as long"},
};
static const struct wr_config_schema service_schema = {
    .name = "service", .fields = service_fields, .count = COUNT(service_fields)};

static const struct wr_config_field limiter_fields[] = {
    {"kind", WR_CONFIG_CHOICE(struct wr_origin, limiter.kind), .choices = limiters, .required = true},
    {"rate", WR_CONFIG_NUMBER(struct wr_origin, limiter.rate), .least = 1e-6, .most = 1e6, .what = "tokens per second"},
    {"burst", WR_CONFIG_NUMBER(struct wr_origin, limiter.burst), .least = 1, .most = 1e7, .what = "capacity in tokens"},
    {"quota", WR_CONFIG_COUNT(struct wr_origin, limiter.quota), .min = 1, .max = 10000000,
     .what = "requests per window"},
    {"window", WR_CONFIG_DURATION(struct wr_origin, limiter.window_ns), .min = WEIR_MILLISECOND, .max = MONTH},
    {"ban", WR_CONFIG_DURATION(struct wr_origin, limiter.ban_ns), .min = 0, .max = MONTH,
     .what = "how long all requests are refused"},
    {"status", WR_CONFIG_COUNT(struct wr_origin, limiter.status), .min = 400, .max = 599,
     .what = "status during a ban"},
    {"extend", WR_CONFIG_BOOL(struct wr_origin, limiter.extend), .what = "whether a request prolongs the ban or block"},
    {"starts", WR_CONFIG_CHOICE(struct wr_origin, limiter.starts), .choices = starts},
    {"block", WR_CONFIG_DURATION(struct wr_origin, limiter.block_ns), .max = MONTH,
     .what = "how long a request beyond the quota blocks the client; 0: until the window ends"},
    {"counts_refused", WR_CONFIG_BOOL(struct wr_origin, limiter.counts_refused),
     .what = "whether refused requests count too"},
    {"step", WR_CONFIG_DURATION(struct wr_origin, limiter.step_ns), .min = WEIR_MILLISECOND, .max = WEIR_HOUR,
     .what = "added delay for each request beyond the quota"},
    {"most", WR_CONFIG_DURATION(struct wr_origin, limiter.most_ns), .max = WEIR_HOUR,
     .what = "maximum of these delays"},
    {"max", WR_CONFIG_COUNT(struct wr_origin, limiter.max), .min = 1, .max = 65536,
     .what = "maximum of requests in flight"},
};
/* Rejects numbers that belong to another kind of limiter: they are mistakes, because they would be
 * ignored and defaults be used without notice. */
static const char *scenario_limiter_fault(const void *settings)
{
    const struct wr_origin *origin = settings;
    struct wr_scenario normal;
    wr_scenario_init(&normal);
    enum wr_limiter_kind kind = origin->limiter.kind;
    bool bans = kind == WR_LIMITER_SLIDING_BAN, is_window = kind == WR_LIMITER_FIXED_WINDOW;
    bool counts = kind == WR_LIMITER_SLIDING_COUNTER, slows = kind == WR_LIMITER_SLOW_DOWN;
#define SET(number) (origin->limiter.number != normal.origin.limiter.number)
    if (kind != WR_LIMITER_TOKEN_BUCKET && (SET(rate) || SET(burst)))
        return "rate and burst belong to a token_bucket; leave them out, or set kind to that";
    if (!bans && !is_window && !counts && !slows && (SET(quota) || SET(window_ns)))
        return "quota and window belong to a fixed_window, sliding_ban, sliding_counter or slow_down; leave them out, "
               "or "
               "set kind to one of them";
    if (!bans && (SET(ban_ns) || SET(status)))
        return "ban and status belong to a sliding_ban; leave them out, or set kind to that";
    if (!bans && origin->limiter.block_ns == 0 && SET(extend))
        return "extend belongs to a ban or block; leave it out, or set block or kind: sliding_ban";
    if (!is_window && SET(block_ns))
        return "block belongs to a fixed_window; leave it out, or set kind to that";
    if (!is_window && !counts && !slows && SET(starts))
        return "starts belongs to a fixed_window, sliding_counter or slow_down; leave it out, or set kind to one of "
               "them";
    if (!counts && SET(counts_refused))
        return "counts_refused belongs to a sliding_counter; leave it out, or set kind to that";
    if (!slows && (SET(step_ns) || SET(most_ns)))
        return "step and most belong to a slow_down; leave them out, or set kind to that";
    if (origin->limiter.kind != WR_LIMITER_CONCURRENCY && SET(max))
        return "max belongs to a concurrency limit; leave it out, or set kind: concurrency";
#undef SET
    return NULL;
}
static const struct wr_config_schema limiter_schema = {
    .name = "limiter", .fields = limiter_fields, .count = COUNT(limiter_fields), .wrong = scenario_limiter_fault};

static const struct wr_config_field station_fields[] = {
    {"servers", WR_CONFIG_COUNT(struct wr_origin, station.servers), .max = 4096,
     .what = "number of servers; 0: no queueing"},
    {"queue", WR_CONFIG_COUNT(struct wr_origin, station.queue), .max = 10000000,
     .what = "maximum of waiting requests; more get a 503"},
};
static const struct wr_config_schema station_schema = {
    .name = "station", .fields = station_fields, .count = COUNT(station_fields)};

static const struct wr_config_field reject_fields[] = {
    {"how", WR_CONFIG_CHOICE(struct wr_origin, reject.how), .choices = hows},
    {"status", WR_CONFIG_COUNT(struct wr_origin, reject.status), .min = 400, .max = 599,
     .what = "status of a rejection"},
    {"delay", WR_CONFIG_DURATION(struct wr_origin, reject.delay_ns), .max = WEIR_HOUR,
     .what = "delay of a rejection; with silence: until the client gives up (30s)"},
    {"wait", WR_CONFIG_DURATION(struct wr_origin, reject.wait_ns), .max = WEIR_DAY,
     .what = "value of Retry-After; 0: the true wait"},
    {"always", WR_CONFIG_BOOL(struct wr_origin, reject.always), .what = "whether successes carry Retry-After, too"},
    {"retry_after", WR_CONFIG_BOOL(struct wr_origin, reject.retry_after),
     .what = "whether a rejection carries Retry-After"},
    {"headers", WR_CONFIG_BOOL(struct wr_origin, reject.headers), .what = "whether responses carry X-RateLimit-*"},
};
static const struct wr_config_schema reject_schema = {
    .name = "reject", .fields = reject_fields, .count = COUNT(reject_fields)};

static const struct wr_config_field errors_fields[] = {
    {"p500", WR_CONFIG_NUMBER(struct wr_origin, errors.p500), .least = 0, .most = 0.99, .what = "probability of a 500"},
    {"p503", WR_CONFIG_NUMBER(struct wr_origin, errors.p503), .least = 0, .most = 0.99, .what = "probability of a 503"},
};
static const struct wr_config_schema errors_schema = {
    .name = "errors", .fields = errors_fields, .count = COUNT(errors_fields)};

static const struct wr_config_field outage_fields[] = {
    {"from", WR_CONFIG_DURATION(struct wr_origin, outage.from_ns), .max = MONTH, .required = true},
    {"to", WR_CONFIG_DURATION(struct wr_origin, outage.to_ns), .max = MONTH, .required = true},
};
static const char *scenario_outage_fault(const void *settings)
{
    const struct wr_origin *origin = settings;
    return origin->outage.to_ns <= origin->outage.from_ns ? "the outage ends before it begins; from must be before to"
                                                          : NULL;
}
static const struct wr_config_schema outage_schema = {
    .name = "outage", .fields = outage_fields, .count = COUNT(outage_fields), .wrong = scenario_outage_fault};

static const struct wr_config_field vary_fields[] = {
    {"kind", WR_CONFIG_CHOICE(struct wr_origin, vary.kind), .choices = varies, .required = true},
    {"period", WR_CONFIG_DURATION(struct wr_origin, vary.period_ns), .max = 365 * WEIR_DAY,
     .what = "period of sine and walk"},
};
static const char *scenario_vary_fault(const void *settings)
{
    const struct wr_origin *origin = settings;
    bool periodic = origin->vary.kind == WR_VARY_SINE || origin->vary.kind == WR_VARY_WALK;
    return periodic && origin->vary.period_ns == 0 ? "sine and walk need a period; add one, such as period: 10m" : NULL;
}
static const struct wr_config_schema vary_schema = {
    .name = "vary", .fields = vary_fields, .count = COUNT(vary_fields), .wrong = scenario_vary_fault};

static const struct wr_config_field origin_fields[] = {
    {"service", WR_CONFIG_GROUP(&service_schema)},
    {"limiter", WR_CONFIG_GROUP(&limiter_schema)},
    {"station", WR_CONFIG_GROUP(&station_schema)},
    {"reject", WR_CONFIG_GROUP(&reject_schema)},
    {"errors", WR_CONFIG_GROUP(&errors_schema)},
    {"outage", WR_CONFIG_GROUP(&outage_schema)},
    {"vary", WR_CONFIG_GROUP(&vary_schema)},
    {"cross", WR_CONFIG_NUMBER(struct wr_origin, cross), .least = 0, .most = 0.99,
     .what = "share of the rate that other clients use"},
};
static const struct wr_config_schema origin_schema = {
    .name = "origin", .fields = origin_fields, .count = COUNT(origin_fields)};

/* ---- the scenario ---- */

static const struct wr_config_field network_fields[] = {
    {"rtt", WR_CONFIG_DURATION(struct wr_scenario, network.rtt_ns), .max = WEIR_MINUTE, .what = "round-trip time"},
    {"jitter", WR_CONFIG_DURATION(struct wr_scenario, network.jitter_ns), .max = WEIR_MINUTE,
     .what = "standard deviation of the one-way time"},
};
static const struct wr_config_schema network_schema = {
    .name = "network", .fields = network_fields, .count = COUNT(network_fields)};

static const struct wr_config_field crowd_fields[] = {
    {"hosts", WR_CONFIG_COUNT(struct wr_scenario, crowd.hosts), .min = 1, .max = 100000, .required = true},
    {"zipf", WR_CONFIG_NUMBER(struct wr_scenario, crowd.zipf), .least = 0, .most = 5,
     .what = "the host of rank k has largest/k^zipf URLs"},
    {"largest", WR_CONFIG_COUNT(struct wr_scenario, crowd.largest), .min = 1, .max = 10000000,
     .what = "URLs of the first host"},
    {"seed", WR_CONFIG_COUNT(struct wr_scenario, crowd.seed), .max = UINT64_MAX,
     .what = "seed that assigns a kind to each host"},
};
static const struct wr_config_schema crowd_schema = {
    .name = "crowd", .fields = crowd_fields, .count = COUNT(crowd_fields)};

static void init_mix(void *settings)
{
    struct wr_scenario scenario;
    wr_scenario_init(&scenario);
    *(struct wr_mix *)settings = scenario.mix[0];
}
static const struct wr_config_field kind_fields[] = {
    {"weight", WR_CONFIG_NUMBER(struct wr_mix, weight), .least = 1e-6, .most = 1e6,
     .what = "relative number of hosts of this kind"},
    {"origin", WR_CONFIG_MAPPING(struct wr_mix, origin, &origin_schema), .required = true},
};
static const struct wr_config_schema kind_schema = {.name = "the mix",
                                                    .bytes = sizeof(struct wr_mix),
                                                    .fields = kind_fields,
                                                    .count = COUNT(kind_fields),
                                                    .init = init_mix};
static const struct wr_config_field mix_item = {.kind = WR_CONFIG_IS_MAPPING, .schema = &kind_schema};

static const struct wr_config_field fields[] = {
    {"name", WR_CONFIG_TEXT(struct wr_scenario, name), .required = true, .what = "name in tables"},
    {"duration", WR_CONFIG_DURATION(struct wr_scenario, duration_ns), .min = WEIR_SECOND, .max = MONTH,
     .what = "simulated time"},
    {"workers", WR_CONFIG_COUNT(struct wr_scenario, workers), .min = 1, .max = 65536,
     .what = "maximum of requests in flight"},
    {"seeds", WR_CONFIG_COUNT(struct wr_scenario, seeds), .min = 1, .max = 10000, .what = "runs"},
    {"network", WR_CONFIG_GROUP(&network_schema)},
    {"origin", WR_CONFIG_MAPPING(struct wr_scenario, origin, &origin_schema), .instead_of = "crowd"},
    {"backlog", WR_CONFIG_COUNT(struct wr_scenario, backlog), .max = 10000000, .what = "number of URLs; 0: unlimited"},
    {"crowd", WR_CONFIG_GROUP(&crowd_schema)},
    {"mix", WR_CONFIG_LIST(struct wr_scenario, mix, mix_count, &mix_item)},
};

static const char *scenario_fault(const void *settings)
{
    const struct wr_scenario *scenario = settings;
    if (scenario->mix_count > 0 && scenario->crowd.hosts == 0)
        return "a mix without a crowd; give the number of hosts in crowd:";
    return wr_scenario_wrong(scenario);
}
static const struct wr_config_schema schema = {
    .name = "a scenario",
    .bytes = sizeof(struct wr_scenario),
    .fields = fields,
    .count = COUNT(fields),
    .wrong = scenario_fault,
};

int wr_scenario_read(const char *path, const weir_allocator *allocator, struct wr_scenario *ret_scenario,
                     char ret_why[WR_CONFIG_WHY_BYTES])
{
    struct wr_scenario scenario;
    wr_scenario_init(&scenario);
    int error = wr_config_read(&schema, path, allocator, &scenario, ret_why, WR_CONFIG_WHY_BYTES);
    if (error == 0)
        *ret_scenario = scenario;
    return error;
}

int wr_scenario_parse(const char *file, const char *text, size_t text_bytes, const weir_allocator *allocator,
                      struct wr_scenario *ret_scenario, char ret_why[WR_CONFIG_WHY_BYTES])
{
    struct wr_scenario scenario;
    wr_scenario_init(&scenario);
    int error = wr_config_parse(&schema, file, text, text_bytes, allocator, &scenario, ret_why, WR_CONFIG_WHY_BYTES);
    if (error == 0)
        *ret_scenario = scenario;
    return error;
}
