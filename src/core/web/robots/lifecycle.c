/* SPDX-License-Identifier: MIT */
/* lifecycle.c - the state machine of one robots.txt. */
#include "core/web/robots/lifecycle.h"

#include "base/error.h"
#include "core/pace/refusal.h"
#include "core/web/url/redirect.h"

#define USE_NS (24 * WEIR_HOUR)
#define REFRESH_MIN_NS WEIR_HOUR
#define SERVE_NS (30 * WEIR_DAY)
#define RETRY_BASE_NS (5 * WEIR_SECOND)
#define RETRY_MAX_NS (15 * WEIR_MINUTE)
#define PARTIAL_CONTENT 206        /* never requested; the missing part may have rules */
#define RETRY_LEAST_NS WEIR_SECOND /* minimum of base_ns and max_ns, against busy loops */

/* ---- options ---- */

static int64_t nonzero_or(int64_t ns, int64_t otherwise_ns)
{
    return ns != 0 ? ns : otherwise_ns;
}

static bool is_within(int64_t ns, int64_t least_ns, int64_t most_ns)
{
    return ns >= least_ns && ns <= most_ns;
}

int wr_robots_lifecycle_options_check(const struct wr_robots_lifecycle_options *options,
                                      struct wr_robots_lifecycle_options *ret_options)
{
    struct wr_robots_lifecycle_options all = *options;
    all.use_ns = nonzero_or(all.use_ns, USE_NS);
    all.refresh_min_ns =
        nonzero_or(all.refresh_min_ns, REFRESH_MIN_NS < all.use_ns / 2 ? REFRESH_MIN_NS : all.use_ns / 2);
    all.serve_ns = nonzero_or(all.serve_ns, SERVE_NS > all.use_ns ? SERVE_NS : all.use_ns);
    all.retry.base_ns = nonzero_or(all.retry.base_ns, RETRY_BASE_NS);
    all.retry.max_ns =
        nonzero_or(all.retry.max_ns, RETRY_MAX_NS > all.retry.base_ns ? RETRY_MAX_NS : all.retry.base_ns);
    if ((unsigned)all.on_error > WR_ROBOTS_ON_ERROR_DENY)
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

static bool is_fetch_due(const struct wr_robots_lifecycle *life, int64_t now)
{
    if (life->fetching)
        return false;
    if (life->failures > 0)
        return now >= life->retry_at;
    return !life->has_copy || now - life->copied_at >= life->refresh_ns;
}

/* Returns true if the copy may be used: for use_ns, and while fetching fails for serve_ns. */
static bool copy_serves(const struct wr_robots_lifecycle *life, const struct wr_robots_lifecycle_options *options,
                        int64_t now)
{
    int64_t most_ns = life->failures > 0 ? options->serve_ns : options->use_ns;
    return life->has_copy && now - life->copied_at < most_ns;
}

static enum wr_robots_access current_access(const struct wr_robots_lifecycle *life,
                                            const struct wr_robots_lifecycle_options *options, int64_t now)
{
    if (copy_serves(life, options, now))
        return life->has_rules ? WR_ROBOTS_ACCESS_RULES : WR_ROBOTS_ACCESS_ALLOW;
    if (life->failures == 0 || life->was_refused)
        return WR_ROBOTS_ACCESS_WAIT;
    switch (options->on_error) {
    case WR_ROBOTS_ON_ERROR_ALLOW:
        return WR_ROBOTS_ACCESS_ALLOW;
    case WR_ROBOTS_ON_ERROR_DENY:
        return WR_ROBOTS_ACCESS_DENY;
    case WR_ROBOTS_ON_ERROR_RFC9309:
        break;
    }
    return WR_ROBOTS_ACCESS_WAIT;
}

static struct wr_robots_action complete_action(const struct wr_robots_lifecycle *life,
                                               const struct wr_robots_lifecycle_options *options,
                                               struct wr_robots_action told, int64_t now)
{
    bool fetches = life->fetching || is_fetch_due(life, now);
    told.holds = current_access(life, options, now);
    told.until = told.holds != WR_ROBOTS_ACCESS_WAIT ? now : fetches ? WEIR_FOREVER : life->retry_at;
    return told;
}

/* ---- the end of a fetch ---------------------------------------------------------------------- */

/* Returns true if the fetch was not redirected. The validators of another URL do not apply to this
 * one. */
static bool is_direct(const struct wr_robots_lifecycle *life)
{
    return life->hops == 0;
}

static enum wr_robots_copy_action copy_after(const struct wr_robots_lifecycle *life, int status)
{
    if (status >= 200 && status <= 299 && status != PARTIAL_CONTENT)
        return WR_ROBOTS_COPY_READ;
    if (status == 304 && life->conditional && is_direct(life))
        return WR_ROBOTS_COPY_CONFIRM;
    if (wr_status_redirects(status) || (status >= 400 && status <= 499 && !wr_status_refuses(status)))
        return WR_ROBOTS_COPY_DROP;
    return WR_ROBOTS_COPY_KEEP;
}

struct wr_robots_action wr_robots_lifecycle_preview(const struct wr_robots_lifecycle *life,
                                                    const struct wr_robots_event *event)
{
    struct wr_robots_action told = {.fetch = WR_ROBOTS_FETCH_NONE};
    if (!life->fetching || event->kind != WR_ROBOTS_EVENT_ANSWERED)
        return told;
    if (wr_status_redirects(event->status) && event->leads && life->hops < WR_ROBOTS_HOPS)
        told.fetch = WR_ROBOTS_FETCH_REDIRECT;
    else
        told.copy = copy_after(life, event->status);
    return told;
}

/* Makes the response that just arrived the current copy. */
static void renew_copy(struct wr_robots_lifecycle *life, const struct wr_robots_lifecycle_options *options,
                       int64_t max_age_ns)
{
    int64_t most_ns = options->use_ns - options->use_ns / 8;
    int64_t age_ns = max_age_ns >= 0 && max_age_ns < most_ns ? max_age_ns : most_ns;
    life->refresh_ns = age_ns > options->refresh_min_ns ? age_ns : options->refresh_min_ns;
    life->copied_at = life->started_at;
    life->has_copy = true;
    life->failures = 0;
    life->was_refused = life->named_time = false;
}

static void note_failed_fetch(struct wr_robots_lifecycle *life, const struct wr_robots_lifecycle_options *options,
                              const struct wr_robots_event *event, int64_t now)
{
    bool answered = event->kind == WR_ROBOTS_EVENT_ANSWERED;
    life->failures += life->failures < UINT32_MAX;
    int64_t longest_ns = weir_retry_delay_ns(&options->retry, life->failures, -1);
    int64_t wait_ns =
        longest_ns - longest_ns / 2 + weir_retry_delay_ns(&options->retry, life->failures, event->unit) / 2;
    int64_t named_ns = answered ? event->retry_after_ns : -1;
    named_ns = named_ns < WR_ROBOTS_RETRY_AFTER_MAX_NS ? named_ns : WR_ROBOTS_RETRY_AFTER_MAX_NS;
    life->named_time = named_ns > 0;
    life->retry_at = now + (named_ns > wait_ns ? named_ns : wait_ns);
    life->was_refused = (answered && wr_status_refuses(event->status)) || (!answered && event->lacks_room);
}

static struct wr_robots_action end_robots_fetch(struct wr_robots_lifecycle *life,
                                                const struct wr_robots_lifecycle_options *options,
                                                const struct wr_robots_event *event, int64_t now)
{
    struct wr_robots_action told = wr_robots_lifecycle_preview(life, event);
    if (told.fetch == WR_ROBOTS_FETCH_REDIRECT) {
        life->hops++;
        return told;
    }
    life->fetching = false;
    if (told.copy == WR_ROBOTS_COPY_KEEP) {
        note_failed_fetch(life, options, event, now);
        return told;
    }
    if (told.copy != WR_ROBOTS_COPY_CONFIRM) {
        life->has_rules = told.copy == WR_ROBOTS_COPY_READ;
        life->has_validators = life->has_rules && event->has_validators && is_direct(life);
    }
    renew_copy(life, options, event->max_age_ns);
    return told;
}

/* ---- the other events ---- */

static void start_robots_fetch(struct wr_robots_lifecycle *life, int64_t now)
{
    life->fetching = true;
    life->started_at = now;
    life->hops = 0;
    life->conditional = life->has_validators;
}

/* Takes a copy from a store. One that was stored in the future may be of any age: it is refetched
 * before use. */
static void load_copy(struct wr_robots_lifecycle *life, const struct wr_robots_lifecycle_options *options,
                      const struct wr_robots_event *event, int64_t now)
{
    int64_t age_ns = event->age_ns >= 0 && event->age_ns < options->serve_ns ? event->age_ns : options->serve_ns;
    life->started_at = now - age_ns;
    life->has_rules = event->has_rules;
    life->has_validators = event->has_rules && event->has_validators;
    renew_copy(life, options, event->max_age_ns);
}

/* Removes the copy. A pending 304 can no longer confirm it, and after failures pages wait, whatever
 * on_error says. */
static void drop_copy(struct wr_robots_lifecycle *life)
{
    if (!life->has_rules)
        return;
    life->has_copy = life->has_rules = life->has_validators = life->conditional = false;
    life->was_refused = life->failures > 0;
}

struct wr_robots_action wr_robots_lifecycle_step(struct wr_robots_lifecycle *life,
                                                 const struct wr_robots_lifecycle_options *options,
                                                 const struct wr_robots_event *event, int64_t now)
{
    struct wr_robots_action told = {.fetch = WR_ROBOTS_FETCH_NONE};
    switch (event->kind) {
    case WR_ROBOTS_EVENT_WANTED:
        if (is_fetch_due(life, now))
            told.fetch = life->has_validators ? WR_ROBOTS_FETCH_CONDITIONAL : WR_ROBOTS_FETCH_PLAIN;
        break;
    case WR_ROBOTS_EVENT_STARTED:
        if (!life->fetching)
            start_robots_fetch(life, now);
        break;
    case WR_ROBOTS_EVENT_ANSWERED:
    case WR_ROBOTS_EVENT_FAILED:
        if (life->fetching)
            told = end_robots_fetch(life, options, event, now);
        break;
    case WR_ROBOTS_EVENT_LOADED:
        if (!life->fetching && !life->has_copy && life->failures == 0)
            load_copy(life, options, event, now);
        break;
    case WR_ROBOTS_EVENT_DROPPED:
        drop_copy(life);
        break;
    }
    return complete_action(life, options, told, now);
}

/* ---- queries --------------------------------------------------------------------------------- */

enum wr_robots_state wr_robots_lifecycle_state(const struct wr_robots_lifecycle *life, int64_t now)
{
    if (life->failures > 0)
        return WR_ROBOTS_STATE_FAILING;
    if (life->has_copy)
        return now - life->copied_at < life->refresh_ns ? WR_ROBOTS_STATE_FRESH : WR_ROBOTS_STATE_STALE;
    return life->fetching ? WR_ROBOTS_STATE_FETCHING : WR_ROBOTS_STATE_UNKNOWN;
}

bool wr_robots_lifecycle_may_forget(const struct wr_robots_lifecycle *life, int64_t now)
{
    return !life->fetching && !(life->named_time && now < life->retry_at);
}

struct wr_robots_decision wr_robots_lifecycle_decide(const struct wr_robots_action *action,
                                                     const struct wr_robots *robots, struct wr_span target, int64_t now)
{
    static const struct wr_robots_decision go = {.decision = {WEIR_GO, WEIR_REASON_NONE, 0}};
    struct wr_robots_decision no = {.decision = {WEIR_DENY, WEIR_REASON_ROBOTS, WEIR_UNTIL_RELEASE}};
    if (action->holds == WR_ROBOTS_ACCESS_WAIT) {
        no.decision.verdict = WEIR_WAIT;
        if (action->until != WEIR_FOREVER)
            no.decision.wait_ns = action->until > now ? action->until - now : 0;
        return no;
    }
    if (action->holds != WR_ROBOTS_ACCESS_RULES || robots == NULL)
        return action->holds == WR_ROBOTS_ACCESS_DENY ? no : go;
    struct wr_fetch_deliver_robots answer = wr_robots_match(robots, target);
    struct wr_robots_decision ruling = answer.allowed ? go : no;
    ruling.line = answer.line;
    ruling.gave_up = answer.gave_up;
    return ruling;
}

bool wr_robots_lifecycle_ok(const struct wr_robots_lifecycle *life, const struct wr_robots_lifecycle_options *options)
{
    bool rules_ok = (!life->has_rules || life->has_copy) && (!life->has_validators || life->has_rules);
    bool waits_ok = life->failures > 0 || (!life->was_refused && !life->named_time);
    bool age_ok =
        !life->has_copy || (life->refresh_ns >= options->refresh_min_ns && life->refresh_ns <= options->use_ns);
    return rules_ok && waits_ok && age_ok && life->hops <= WR_ROBOTS_HOPS;
}
