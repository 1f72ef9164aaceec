/* SPDX-License-Identifier: MIT */
/* random_scenario.c - Draws random scenarios from the ranges of the scenario families.
 *
 * Families take turns, so that any number of scenarios is a fair mix. Numbers that span decades are
 * drawn evenly by their logarithm. Rates and service times are such that 64 workers suffice: the
 * limit that matters is the origin's.
 */
#include "base/buf.h"
#include "sim/chance.h"
#include "sim/sim.h"
#include "sim/vary.h"

#include <math.h>

#define REAL_S 600 /* duration of scenarios with real limiters, s */

struct draw {
    struct wr_chance chance;
    struct wr_scenario *scenario;
    struct wr_origin *origin;
    struct wr_buf name;
};

/* Rounds to two significant digits: exact enough for a limit, and short in a name. */
static double rounded(double number)
{
    double unit = pow(10, floor(log10(number)) - 1);
    return unit < 1 ? round(number / unit) / round(1 / unit) : round(number / unit) * unit;
}

static double draw_in_decades(struct draw *draw, double least, double most)
{
    return rounded(least * exp(wr_chance_unit(&draw->chance) * log(most / least)));
}

static uint32_t draw_whole(struct draw *draw, uint32_t least, uint32_t most)
{
    return least + (uint32_t)wr_rng_below(&draw->chance.rng, most - least + 1);
}

static bool draw_bool(struct draw *draw)
{
    return wr_rng_below(&draw->chance.rng, 2) == 1;
}

static int64_t ns_of_ms(double number)
{
    return (int64_t)(number * 1e6);
}

static void append_named_number(struct draw *draw, const char *word, double number)
{
    wr_buf_append_string(&draw->name, word);
    wr_buf_append_number(&draw->name, number);
}

static void append_if_true(struct draw *draw, const char *word, bool is)
{
    if (is)
        wr_buf_append_string(&draw->name, word);
}

static void set_service(struct draw *draw, double mean_ms, double sigma)
{
    draw->origin->service.mean_ns = ns_of_ms(mean_ms);
    draw->origin->service.sigma = sigma;
}

/* Sets a service without a limit: only the number of workers bounds it. */
static void set_unlimited_service(struct draw *draw)
{
    draw->scenario->workers = 16;
    set_service(draw, draw_in_decades(draw, 100, 400), 0.5);
    append_named_number(draw, "-free", (double)draw->origin->service.mean_ns / 1e6);
    append_if_true(draw, "ms", true);
}

static void set_bucket(struct draw *draw, double least, double most, double most_burst)
{
    draw->origin->limiter.kind = WR_LIMITER_TOKEN_BUCKET;
    draw->origin->limiter.rate = draw_in_decades(draw, least, most);
    draw->origin->limiter.burst = round(draw_in_decades(draw, 1, most_burst));
    append_named_number(draw, "-tb", draw->origin->limiter.rate);
    append_named_number(draw, "-b", draw->origin->limiter.burst);
}

static void set_station(struct draw *draw, uint32_t servers, double rate)
{
    draw->origin->station.servers = servers;
    draw->origin->station.queue = draw_whole(draw, 10, 50);
    set_service(draw, servers / rate * 1000, 0.01 * draw_whole(draw, 50, 90));
    append_named_number(draw, "-q", servers);
    append_named_number(draw, "-", rounded(rate));
    append_if_true(draw, "rps", true);
}

/* Sets a station of 1 ... 8 servers; fewer at low rates, to keep the service below 1.5 s. */
static void set_queue(struct draw *draw, double least, double most)
{
    double rate = draw_in_decades(draw, least, most);
    uint32_t servers = draw_whole(draw, 1, 8);
    set_station(draw, (uint32_t)fmin(servers, fmax(1, floor(1.5 * rate))), rate);
}

/* ---- the families ---------------------------------------------------------------------------- */

static void bare_bucket(struct draw *draw)
{
    set_bucket(draw, 0.2, 200, 100);
}

static void bucket_with_retry_after(struct draw *draw)
{
    draw->origin->reject.retry_after = true;
    set_bucket(draw, 0.2, 200, 100);
    append_if_true(draw, "-ra", true);
}

/* Draws a fixed window, from 1000 an hour to 600 a minute. */
static void fixed_window(struct draw *draw)
{
    static const int windows_s[] = {60, 60, 300, 600, 3600};
    int window_s = windows_s[draw_whole(draw, 0, 4)];
    double rate = draw_in_decades(draw, 0.28, 10);
    draw->origin->limiter.kind = WR_LIMITER_FIXED_WINDOW;
    draw->origin->limiter.window_ns = window_s * WEIR_SECOND;
    draw->origin->limiter.quota = (uint32_t)fmax(10, rounded(rate * window_s));
    draw->origin->reject.headers = draw_bool(draw);
    draw->origin->reject.retry_after = draw_bool(draw);
    if (window_s == 3600)
        draw->scenario->duration_ns = 2 * WEIR_HOUR;
    append_named_number(draw, "-fw", draw->origin->limiter.quota);
    append_named_number(draw, "-", window_s);
    append_if_true(draw, "s", true);
    append_if_true(draw, "-hdr", draw->origin->reject.headers);
    append_if_true(draw, "-ra", draw->origin->reject.retry_after);
}

static void sliding_ban(struct draw *draw)
{
    static const int windows_s[] = {10, 20, 30, 60};
    int window_s = windows_s[draw_whole(draw, 0, 3)];
    double ban_s = draw_whole(draw, 30, 120);
    draw->origin->limiter.kind = WR_LIMITER_SLIDING_BAN;
    draw->origin->limiter.window_ns = window_s * WEIR_SECOND;
    draw->origin->limiter.quota = (uint32_t)fmax(10, rounded(draw_in_decades(draw, 1, 10) * window_s));
    draw->origin->limiter.ban_ns = (int64_t)ban_s * WEIR_SECOND;
    draw->origin->limiter.status = draw_bool(draw) ? 403 : 429;
    draw->origin->reject.retry_after = draw_bool(draw);
    append_named_number(draw, "-sw", draw->origin->limiter.quota);
    append_named_number(draw, "-", window_s);
    append_named_number(draw, "s-ban", ban_s);
    append_if_true(draw, "-403", draw->origin->limiter.status == 403);
    append_if_true(draw, "-ra", draw->origin->reject.retry_after);
}

static void queue_family(struct draw *draw)
{
    set_queue(draw, 2, 80);
}

static void varying(struct draw *draw)
{
    static const enum wr_vary_kind kinds[] = {WR_VARY_NONE, WR_VARY_STEP, WR_VARY_STEP, WR_VARY_SINE, WR_VARY_WALK};
    uint32_t kind = draw_whole(draw, 0, 4);
    draw->origin->vary.kind = kinds[kind];
    if (kind == 1)
        set_queue(draw, 10, 80);
    else
        set_bucket(draw, 5, 50, 30);
    if (kind == 0)
        draw->origin->cross = 0.01 * draw_whole(draw, 10, 50);
    if (kind == 3)
        draw->origin->vary.period_ns = draw_whole(draw, 300, 900) * WEIR_SECOND;
    if (kind == 4)
        draw->origin->vary.period_ns = draw_whole(draw, 30, 120) * WEIR_SECOND;
    static const char *const words[] = {"-cross", "-step", "-step", "-sine", "-walk"};
    append_if_true(draw, words[kind], true);
    if (kind == 0)
        wr_buf_append_number(&draw->name, draw->origin->cross);
    if (kind >= 3)
        wr_buf_append_number(&draw->name, (double)draw->origin->vary.period_ns / 1e9);
}

static void flaky(struct draw *draw)
{
    double percent = draw_whole(draw, 1, 5);
    bool busy = draw_bool(draw);
    if (draw_bool(draw))
        set_unlimited_service(draw);
    else
        set_bucket(draw, 5, 50, 30);
    *(busy ? &draw->origin->errors.p503 : &draw->origin->errors.p500) = percent / 100;
    append_named_number(draw, busy ? "-503x" : "-500x", percent);
}

static void unlimited(struct draw *draw)
{
    bool tail = draw_bool(draw);
    set_service(draw, draw_in_decades(draw, 100, 400), tail ? 0.7 : 0.01 * draw_whole(draw, 100, 180));
    if (tail)
        draw->origin->service.tail = 0.001 * draw_whole(draw, 5, 30);
    append_named_number(draw, "-free", (double)draw->origin->service.mean_ns / 1e6);
    append_named_number(draw, tail ? "ms-tail" : "ms-sig",
                        tail ? draw->origin->service.tail : draw->origin->service.sigma);
}

static void outage(struct draw *draw)
{
    uint32_t length_s = draw_whole(draw, 60, 300);
    if (draw_bool(draw))
        set_unlimited_service(draw);
    else
        set_bucket(draw, 2, 50, 30);
    draw->origin->outage.from_ns = 300 * WEIR_SECOND;
    draw->origin->outage.to_ns = (300 + length_s) * WEIR_SECOND;
    draw->scenario->duration_ns = (900 + length_s) * WEIR_SECOND;
    append_named_number(draw, "-out", length_s);
}

static void concurrency(struct draw *draw)
{
    draw->origin->limiter.kind = WR_LIMITER_CONCURRENCY;
    draw->origin->limiter.max = draw_whole(draw, 2, 32);
    set_service(draw, draw_in_decades(draw, 100, 800), 0.01 * draw_whole(draw, 30, 90));
    append_named_number(draw, "-conc", draw->origin->limiter.max);
    append_named_number(draw, "-", (double)draw->origin->service.mean_ns / 1e6);
    append_if_true(draw, "ms", true);
}

static void slow(struct draw *draw)
{
    /* The law is uniform between a third and five thirds of the mean: 1 ... 10 s. */
    double mean_s = draw_whole(draw, 3, 6);
    uint32_t servers = draw_whole(draw, 2, 8);
    draw->scenario->duration_ns = WEIR_HOUR;
    draw->origin->service.law = WR_LAW_UNIFORM;
    set_service(draw, mean_s * 1000, 0.5);
    if (draw_bool(draw))
        set_station(draw, servers, servers / mean_s);
    append_named_number(draw, "-", mean_s);
    append_if_true(draw, "s", true);
}

/* ---- families of real limiters, which the models above do not cover -------------------------- */

static void draw_window(struct draw *draw, enum wr_limiter_kind kind, double least_s, double most_s)
{
    double window_s = draw_in_decades(draw, least_s, most_s);
    draw->origin->limiter.kind = kind;
    draw->origin->limiter.window_ns = ns_of_ms(window_s * 1000);
    draw->origin->limiter.quota = (uint32_t)fmax(5, rounded(draw_in_decades(draw, 2, 20) * window_s));
    append_named_number(draw, "-", draw->origin->limiter.quota);
    append_named_number(draw, "in", window_s);
    append_if_true(draw, "s", true);
}

static void set_starts(struct draw *draw)
{
    draw->origin->limiter.starts = draw_bool(draw) ? WR_STARTS_BY_REQUEST : WR_STARTS_BY_CLOCK;
}

/* Models HAProxy's http_req_rate, which also counts refused requests. */
static void counter(struct draw *draw)
{
    draw->origin->limiter.starts = WR_STARTS_BY_REQUEST;
    draw->origin->limiter.counts_refused = true;
    draw_window(draw, WR_LIMITER_SLIDING_COUNTER, 5, 30);
}

static void tarpit(struct draw *draw)
{
    counter(draw);
    draw->origin->reject.status = 500;
    draw->origin->reject.delay_ns = draw_whole(draw, 2, 8) * WEIR_SECOND;
    append_if_true(draw, "-tarpit", true);
}

static void silence(struct draw *draw)
{
    counter(draw);
    draw->origin->reject.how = WR_REJECT_SILENCE;
    draw->origin->reject.delay_ns = draw_whole(draw, 5, 30) * WEIR_SECOND;
    append_if_true(draw, "-silent", true);
}

/* Models a limit of connections or requests in flight. Excess requests are reset, or get 500
 * (mod_qos) or 503. */
static void crowding(struct draw *draw)
{
    static const int statuses[] = {0, 500, 503};
    int status = statuses[draw_whole(draw, 0, 2)];
    draw->origin->limiter.kind = WR_LIMITER_CONCURRENCY;
    draw->origin->limiter.max = draw_whole(draw, 2, 12);
    set_service(draw, draw_in_decades(draw, 50, 500), 0.01 * draw_whole(draw, 10, 60));
    draw->origin->reject.how = status == 0 ? WR_REJECT_RESET : WR_REJECT_ANSWER;
    draw->origin->reject.status = status == 0 ? 429 : status;
    append_named_number(draw, "-conc", draw->origin->limiter.max);
    append_named_number(draw, "-", status);
}

/* Models mod_evasive, where each request prolongs the ban. */
static void prolonged(struct draw *draw)
{
    draw->origin->limiter.starts = WR_STARTS_BY_REQUEST;
    draw->origin->limiter.extend = true;
    draw->origin->limiter.block_ns = draw_whole(draw, 5, 20) * WEIR_SECOND;
    draw->origin->reject.status = 403;
    draw_window(draw, WR_LIMITER_FIXED_WINDOW, 1, 5);
    append_named_number(draw, "-evasive", wr_seconds(draw->origin->limiter.block_ns));
}

static void blocked(struct draw *draw)
{
    draw->origin->limiter.starts = WR_STARTS_BY_REQUEST;
    draw->origin->limiter.block_ns = draw_whole(draw, 5, 20) * WEIR_SECOND;
    draw->origin->reject.retry_after = draw_bool(draw);
    draw_window(draw, WR_LIMITER_FIXED_WINDOW, 1, 10);
    append_named_number(draw, "-block", wr_seconds(draw->origin->limiter.block_ns));
    append_if_true(draw, "-ra", draw->origin->reject.retry_after);
}

/* Models the examples of two widely used libraries. */
static void always_told(struct draw *draw)
{
    set_starts(draw);
    draw->origin->reject.headers = draw->origin->reject.retry_after = draw->origin->reject.always = true;
    draw_window(draw, WR_LIMITER_FIXED_WINDOW, 1, 60);
    append_if_true(draw, "-always", true);
}

static void bare_window(struct draw *draw)
{
    set_starts(draw);
    draw_window(draw, WR_LIMITER_FIXED_WINDOW, 1, 30);
}

static void told_window(struct draw *draw)
{
    set_starts(draw);
    draw->origin->reject.headers = true;
    draw->origin->reject.retry_after = draw_bool(draw);
    draw_window(draw, WR_LIMITER_FIXED_WINDOW, 1, 30);
    append_if_true(draw, "-hdr", true);
}

static void fixed_wait(struct draw *draw)
{
    draw->origin->reject.retry_after = true;
    draw->origin->reject.wait_ns = draw_whole(draw, 2, 10) * WEIR_SECOND;
    set_bucket(draw, 2, 20, 20);
    append_named_number(draw, "-ra", wr_seconds(draw->origin->reject.wait_ns));
}

/* Models the moving window of Flask-Limiter and Django REST framework, a log of requests. */
static void moving_window(struct draw *draw)
{
    draw->origin->limiter.ban_ns = 0;
    draw->origin->reject.retry_after = draw_bool(draw);
    draw_window(draw, WR_LIMITER_SLIDING_BAN, 5, 60);
    append_if_true(draw, "-moving", true);
    append_if_true(draw, "-ra", draw->origin->reject.retry_after);
}

static void slower(struct draw *draw)
{
    draw->origin->limiter.starts = WR_STARTS_BY_REQUEST;
    draw->origin->limiter.step_ns = draw_whole(draw, 1, 10) * 100 * WEIR_MILLISECOND;
    draw_window(draw, WR_LIMITER_SLOW_DOWN, 10, 60);
    append_if_true(draw, "-slower", true);
}

/* Models refusals by other statuses or a reset, such as nginx's "return 444" and mod_qos. */
static void without_words(struct draw *draw)
{
    static const int statuses[] = {0, 500, 503};
    int status = statuses[draw_whole(draw, 0, 2)];
    set_starts(draw);
    draw->origin->reject.how = status == 0 ? WR_REJECT_RESET : WR_REJECT_ANSWER;
    draw->origin->reject.status = status == 0 ? 429 : status;
    if (draw_bool(draw))
        set_bucket(draw, 2, 20, 20);
    else
        draw_window(draw, WR_LIMITER_FIXED_WINDOW, 5, 30);
    append_named_number(draw, "-", status);
}

/* ---- all families ---------------------------------------------------------------------------- */

typedef void family(struct draw *draw);

static family *const modelled[] = {
    bare_bucket,  bucket_with_retry_after,
    fixed_window, sliding_ban,
    queue_family, varying,
    flaky,        unlimited,
    outage,       concurrency,
    slow,
};

static family *const real[] = {
    counter,     tarpit,      silence,    crowding, prolonged,     blocked,       always_told,
    bare_window, told_window, fixed_wait, slower,   without_words, moving_window,
};

static void draw_one(struct draw *draw, const char *letter, family *const *families, size_t count, uint32_t index)
{
    wr_buf_init_fixed(&draw->name, draw->scenario->name, sizeof draw->scenario->name);
    append_named_number(draw, letter, (double)(index % count) + 1);
    append_named_number(draw, "-r", index);
    draw->scenario->network.rtt_ns = ns_of_ms(draw_in_decades(draw, 10, 100));
    set_service(draw, draw_in_decades(draw, 20, 100), 0.01 * draw_whole(draw, 30, 80));
    families[index % count](draw);
}

void wr_scenario_random(uint64_t seed, uint32_t index, struct wr_scenario *ret_scenario)
{
    struct draw draw = {.scenario = ret_scenario, .origin = &ret_scenario->origin};
    wr_scenario_init(ret_scenario);
    wr_chance_init(&draw.chance, (seed << 32) + index, WR_STREAM_DRAW);
    draw_one(&draw, "P", modelled, sizeof modelled / sizeof *modelled, index);
}

void wr_scenario_random_real(uint64_t seed, uint32_t index, struct wr_scenario *ret_scenario)
{
    struct draw draw = {.scenario = ret_scenario, .origin = &ret_scenario->origin};
    wr_scenario_init(ret_scenario);
    ret_scenario->duration_ns = REAL_S * WEIR_SECOND;
    wr_chance_init(&draw.chance, (seed << 32) + index, WR_STREAM_DRAW);
    draw_one(&draw, "R", real, sizeof real / sizeof *real, index);
}
