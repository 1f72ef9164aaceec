/* SPDX-License-Identifier: MIT */
/* lifecycle.c - the state machine of one robots.txt. */
#include "core/rules/robots/lifecycle.h"

#include "base/error.h"
#include "core/pace/refusal.h"
#include "core/rules/url/redirect.h"

#define USE_NS (24 * WEIR_HOUR)
#define REFRESH_MIN_NS WEIR_HOUR
#define SERVE_NS (30 * WEIR_DAY)
#define RETRY_BASE_NS (5 * WEIR_SECOND)
#define RETRY_MAX_NS (15 * WEIR_MINUTE)
#define PARTIAL_CONTENT 206        /* never requested; the missing part may have rules */
#define RETRY_LEAST_NS WEIR_SECOND /* minimum of base_ns and max_ns, against busy loops */

/* ---- options ---- */

static int64_t or_else(int64_t ns, int64_t otherwise_ns)
{
    return ns != 0 ? ns : otherwise_ns;
}

static bool is_within(int64_t ns, int64_t least_ns, int64_t most_ns)
{
    return ns >= least_ns && ns <= most_ns;
}

int wr_life_options_check(const struct wr_life_options *options, struct wr_life_options *ret_options)
{
    struct wr_life_options all = *options;
    all.use_ns = or_else(all.use_ns, USE_NS);
    all.refresh_min_ns = or_else(all.refresh_min_ns, REFRESH_MIN_NS < all.use_ns / 2 ? REFRESH_MIN_NS : all.use_ns / 2);
    all.serve_ns = or_else(all.serve_ns, SERVE_NS > all.use_ns ? SERVE_NS : all.use_ns);
    all.retry.base_ns = or_else(all.retry.base_ns, RETRY_BASE_NS);
    all.retry.max_ns = or_else(all.retry.max_ns, RETRY_MAX_NS > all.retry.base_ns ? RETRY_MAX_NS : all.retry.base_ns);
    if ((unsigned)all.on_error > WR_ON_ERROR_DENY)
        return wr_invalid("on_error must be rfc9309, allow or deny");
    if (!is_within(all.use_ns, WEIR_MINUTE, WEIR_DURATION_MAX))
        return wr_invalid("robots.txt must be used for 1 minute to WEIR_DURATION_MAX, or 0 for 24 hours");
    if (!is_within(all.refresh_min_ns, WEIR_SECOND, all.use_ns))
        return wr_invalid("refresh_min_ns must be 1 s to use_ns, or 0 for an hour");
    if (!is_within(all.serve_ns, all.use_ns, WEIR_DURATION_MAX))
        return wr_invalid("serve_ns must be use_ns to WEIR_DURATION_MAX, or 0 for 30 days");
    if (!is_within(all.retry.base_ns, RETRY_LEAST_NS, WEIR_DAY) ||
        !is_within(all.retry.max_ns, all.retry.base_ns, WEIR_DAY))
        return wr_invalid("retries of robots.txt must be 1 s to 24 h apart, and max_ns at least base_ns");
    *ret_options = all;
    return 0;
}

/* ---- what applies to pages ------------------------------------------------------------------- */

static bool is_due(const struct wr_lifecycle *life, int64_t now)
{
    if (life->fetching)
        return false;
    if (life->failures > 0)
        return now >= life->retry_at;
    return !life->has_copy || now - life->copied_at >= life->refresh_ns;
}

/* Returns true if the copy may be used: for use_ns, and while fetching fails for serve_ns. */
static bool copy_serves(const struct wr_lifecycle *life, const struct wr_life_options *options, int64_t now)
{
    int64_t most_ns = life->failures > 0 ? options->serve_ns : options->use_ns;
    return life->has_copy && now - life->copied_at < most_ns;
}

static enum wr_life_holds holds(const struct wr_lifecycle *life, const struct wr_life_options *options, int64_t now)
{
    if (copy_serves(life, options, now))
        return life->has_rules ? WR_HOLDS_RULES : WR_HOLDS_ALLOW;
    if (life->failures == 0 || life->told_to_wait)
        return WR_HOLDS_WAIT;
    switch (options->on_error) {
    case WR_ON_ERROR_ALLOW:
        return WR_HOLDS_ALLOW;
    case WR_ON_ERROR_DENY:
        return WR_HOLDS_DENY;
    case WR_ON_ERROR_RFC9309:
        break;
    }
    return WR_HOLDS_WAIT;
}

static struct wr_life_action action_of(const struct wr_lifecycle *life, const struct wr_life_options *options,
                                       struct wr_life_action told, int64_t now)
{
    bool fetches = life->fetching || is_due(life, now);
    told.holds = holds(life, options, now);
    told.until = told.holds != WR_HOLDS_WAIT ? now : fetches ? WEIR_FOREVER : life->retry_at;
    return told;
}

/* ---- the end of a fetch ---------------------------------------------------------------------- */

/* Returns true if the fetch was not redirected. The validators of another URL do not apply to this
 * one. */
static bool is_direct(const struct wr_lifecycle *life)
{
    return life->hops == 0;
}

static enum wr_life_copy copy_after(const struct wr_lifecycle *life, int status)
{
    if (status >= 200 && status <= 299 && status != PARTIAL_CONTENT)
        return WR_COPY_READ;
    if (status == 304 && life->conditional && is_direct(life))
        return WR_COPY_CONFIRM;
    if (wr_status_leads(status) || (status >= 400 && status <= 499 && !wr_status_refuses(status)))
        return WR_COPY_DROP;
    return WR_COPY_KEEP;
}

struct wr_life_action wr_lifecycle_foresee(const struct wr_lifecycle *life, const struct wr_life_event *event)
{
    struct wr_life_action told = {.fetch = WR_FETCH_NOT};
    if (!life->fetching || event->kind != WR_LIFE_ANSWERED)
        return told;
    if (wr_status_leads(event->status) && event->leads && life->hops < WR_ROBOTS_HOPS)
        told.fetch = WR_FETCH_ON;
    else
        told.copy = copy_after(life, event->status);
    return told;
}

/* Makes the response that just arrived the current copy. */
static void renew(struct wr_lifecycle *life, const struct wr_life_options *options, int64_t max_age_ns)
{
    int64_t most_ns = options->use_ns - options->use_ns / 8;
    int64_t age_ns = max_age_ns >= 0 && max_age_ns < most_ns ? max_age_ns : most_ns;
    life->refresh_ns = age_ns > options->refresh_min_ns ? age_ns : options->refresh_min_ns;
    life->copied_at = life->started_at;
    life->has_copy = true;
    life->failures = 0;
    life->told_to_wait = life->named_time = false;
}

static void fail(struct wr_lifecycle *life, const struct wr_life_options *options, const struct wr_life_event *event,
                 int64_t now)
{
    bool answered = event->kind == WR_LIFE_ANSWERED;
    life->failures += life->failures < UINT32_MAX;
    int64_t longest_ns = weir_retry_delay_ns(&options->retry, life->failures, -1);
    int64_t wait_ns =
        longest_ns - longest_ns / 2 + weir_retry_delay_ns(&options->retry, life->failures, event->unit) / 2;
    int64_t named_ns = answered ? event->retry_after_ns : -1;
    named_ns = named_ns < WR_ROBOTS_RETRY_AFTER_MAX_NS ? named_ns : WR_ROBOTS_RETRY_AFTER_MAX_NS;
    life->named_time = named_ns > 0;
    life->retry_at = now + (named_ns > wait_ns ? named_ns : wait_ns);
    life->told_to_wait = (answered && wr_status_refuses(event->status)) || (!answered && event->lacks_room);
}

static struct wr_life_action end(struct wr_lifecycle *life, const struct wr_life_options *options,
                                 const struct wr_life_event *event, int64_t now)
{
    struct wr_life_action told = wr_lifecycle_foresee(life, event);
    if (told.fetch == WR_FETCH_ON) {
        life->hops++;
        return told;
    }
    life->fetching = false;
    if (told.copy == WR_COPY_KEEP) {
        fail(life, options, event, now);
        return told;
    }
    if (told.copy != WR_COPY_CONFIRM) {
        life->has_rules = told.copy == WR_COPY_READ;
        life->has_validators = life->has_rules && event->has_validators && is_direct(life);
    }
    renew(life, options, event->max_age_ns);
    return told;
}

/* ---- the other events ---- */

static void start(struct wr_lifecycle *life, int64_t now)
{
    life->fetching = true;
    life->started_at = now;
    life->hops = 0;
    life->conditional = life->has_validators;
}

/* Takes a copy from a store. One that was stored in the future may be of any age: it is refetched
 * before use. */
static void load(struct wr_lifecycle *life, const struct wr_life_options *options, const struct wr_life_event *event,
                 int64_t now)
{
    int64_t age_ns = event->age_ns >= 0 && event->age_ns < options->serve_ns ? event->age_ns : options->serve_ns;
    life->started_at = now - age_ns;
    life->has_rules = event->has_rules;
    life->has_validators = event->has_rules && event->has_validators;
    renew(life, options, event->max_age_ns);
}

/* Removes the copy. A pending 304 can no longer confirm it, and after failures pages wait, whatever
 * on_error says. */
static void drop(struct wr_lifecycle *life)
{
    if (!life->has_rules)
        return;
    life->has_copy = life->has_rules = life->has_validators = life->conditional = false;
    life->told_to_wait = life->failures > 0;
}

struct wr_life_action wr_lifecycle_step(struct wr_lifecycle *life, const struct wr_life_options *options,
                                        const struct wr_life_event *event, int64_t now)
{
    struct wr_life_action told = {.fetch = WR_FETCH_NOT};
    switch (event->kind) {
    case WR_LIFE_WANTED:
        if (is_due(life, now))
            told.fetch = life->has_validators ? WR_FETCH_CONDITIONAL : WR_FETCH_PLAIN;
        break;
    case WR_LIFE_STARTED:
        if (!life->fetching)
            start(life, now);
        break;
    case WR_LIFE_ANSWERED:
    case WR_LIFE_FAILED:
        if (life->fetching)
            told = end(life, options, event, now);
        break;
    case WR_LIFE_LOADED:
        if (!life->fetching && !life->has_copy && life->failures == 0)
            load(life, options, event, now);
        break;
    case WR_LIFE_DROPPED:
        drop(life);
        break;
    }
    return action_of(life, options, told, now);
}

/* ---- queries --------------------------------------------------------------------------------- */

enum wr_life_state wr_lifecycle_state(const struct wr_lifecycle *life, int64_t now)
{
    if (life->failures > 0)
        return WR_LIFE_FAILING;
    if (life->has_copy)
        return now - life->copied_at < life->refresh_ns ? WR_LIFE_FRESH : WR_LIFE_STALE;
    return life->fetching ? WR_LIFE_FETCHING : WR_LIFE_UNKNOWN;
}

bool wr_lifecycle_forgettable(const struct wr_lifecycle *life, int64_t now)
{
    return !life->fetching && !(life->named_time && now < life->retry_at);
}

struct wr_ruling wr_lifecycle_rule(const struct wr_life_action *action, const struct wr_robots *robots,
                                   struct wr_span target, int64_t now)
{
    static const struct wr_ruling go = {.decision = {WEIR_GO, WEIR_REASON_NONE, 0}};
    struct wr_ruling no = {.decision = {WEIR_DENY, WEIR_REASON_ROBOTS, WEIR_UNTIL_RELEASE}};
    if (action->holds == WR_HOLDS_WAIT) {
        no.decision.verdict = WEIR_WAIT;
        if (action->until != WEIR_FOREVER)
            no.decision.wait_ns = action->until > now ? action->until - now : 0;
        return no;
    }
    if (action->holds != WR_HOLDS_RULES || robots == NULL)
        return action->holds == WR_HOLDS_DENY ? no : go;
    struct wr_robots_answer answer = wr_robots_match(robots, target);
    struct wr_ruling ruling = answer.allowed ? go : no;
    ruling.line = answer.line;
    ruling.gave_up = answer.gave_up;
    return ruling;
}

bool wr_lifecycle_ok(const struct wr_lifecycle *life, const struct wr_life_options *options)
{
    bool rules_ok = (!life->has_rules || life->has_copy) && (!life->has_validators || life->has_rules);
    bool waits_ok = life->failures > 0 || (!life->told_to_wait && !life->named_time);
    bool age_ok =
        !life->has_copy || (life->refresh_ns >= options->refresh_min_ns && life->refresh_ns <= options->use_ns);
    return rules_ok && waits_ok && age_ok && life->hops <= WR_ROBOTS_HOPS;
}
