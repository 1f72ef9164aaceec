/* SPDX-License-Identifier: MIT */
/* server_limits.c - reads rate limits from header fields and picks the tightest quota. */
#include "core/web/http/server_limits.h"

#include "base/bits.h"
#include "core/web/http/http_date.h"
#include "core/web/http/limit_field_name.h"
#include "core/web/http/number.h"
#include "core/web/http/structured.h"

#define NO_TIME INT64_MIN

/* A reset below EPOCH_S is a duration (up to 32 years); from EPOCH_S on it is an instant,
 * 2001-09-09 or later. */
#define EPOCH_S UINT64_C(1000000000)
#define EPOCH_MS (EPOCH_S * 1000)

/* FNV-1a seeds that keep the names of families, of members and of nameless quotas apart. */
#define FAMILY_SEED UINT64_C(0xcbf29ce484222325)
#define MEMBER_SEED (FAMILY_SEED + 1)
#define NAMELESS_POLICY (FAMILY_SEED + 2)
#define NAMELESS_QUOTA (FAMILY_SEED + 3)

void wr_server_limits_init(struct wr_server_limits *ret_limits, int64_t wall_now_ns)
{
    *ret_limits = (struct wr_server_limits){
        .now_ms = wall_now_ns / WEIR_MILLISECOND, .date_ms = NO_TIME, .retry = {WR_NOT_REPORTED, NO_TIME}};
}

/* ---- times ----------------------------------------------------------------------------------- */

static void note_after(struct wr_server_limit_time *time, int64_t after_ns)
{
    if (after_ns > time->after_ns)
        time->after_ns = after_ns;
}

static void note_at(struct wr_server_limit_time *time, int64_t at_ms)
{
    if (at_ms > time->at_ms)
        time->at_ms = at_ms;
}

static void note_date(struct wr_server_limit_time *time, struct wr_span value, int64_t now_ms)
{
    int64_t at;

    if (wr_http_date_parse(value, now_ms / 1000, &at))
        note_at(time, at * 1000);
    else if (wr_iso_date_parse(value, &at))
        note_at(time, at);
}

static int64_t instant_ms(const struct wr_number *seconds)
{
    return (int64_t)seconds->whole * 1000 + (seconds->nanos + 999999) / 1000000;
}

/* Records a number that may be a duration or an instant, in seconds or milliseconds. A larger
 * number, such as microseconds, becomes a far instant: the wait is too long, never too short. */
static void note_reset(struct wr_server_limit_time *time, const struct wr_number *number)
{
    if (number->whole < EPOCH_S)
        note_after(time, wr_number_ns(number, WEIR_SECOND, WR_SERVER_LIMITS_MAX_NS));
    else if (number->whole < EPOCH_MS)
        note_at(time, instant_ms(number));
    else
        note_at(time, (int64_t)number->whole);
}

static void note_reset_ms(struct wr_server_limit_time *time, const struct wr_number *number)
{
    if (number->whole < EPOCH_MS)
        note_after(time, wr_number_ns(number, WEIR_MILLISECOND, WR_SERVER_LIMITS_MAX_NS));
    else
        note_at(time, (int64_t)number->whole);
}

/* Records a wait in seconds or milliseconds. A number that is an instant within a month of now is
 * taken as that instant. */
static void note_retry(struct wr_server_limits *limits, const struct wr_number *number, bool is_ms)
{
    int64_t month_ms = WR_SERVER_LIMITS_MAX_NS / WEIR_MILLISECOND;
    int64_t at_ms = number->whole < EPOCH_MS ? instant_ms(number) : (int64_t)number->whole;
    int64_t distance_ms = at_ms - limits->now_ms;

    if (number->whole >= (is_ms ? EPOCH_MS : EPOCH_S) && distance_ms >= -month_ms && distance_ms <= month_ms)
        note_at(&limits->retry, at_ms);
    else
        note_after(&limits->retry,
                   wr_number_ns(number, is_ms ? WEIR_MILLISECOND : WEIR_SECOND, WR_SERVER_LIMITS_MAX_NS));
}

/* Parses a duration such as "6m0s", or a date. */
static void parse_duration_or_date(struct wr_server_limit_time *time, struct wr_span value, int64_t now_ms)
{
    int64_t after_ns;

    if (wr_number_duration(value, WR_SERVER_LIMITS_MAX_NS, &after_ns))
        note_after(time, after_ns);
    else
        note_date(time, value, now_ms);
}

static void parse_retry(struct wr_server_limits *limits, struct wr_span value, bool is_ms)
{
    struct wr_numbers numbers;

    if (wr_numbers_parse(value, &numbers))
        note_retry(limits, &numbers.most, is_ms);
    else
        parse_duration_or_date(&limits->retry, value, limits->now_ms);
}

static void parse_reset(struct wr_server_limit_time *time, const struct wr_limit_field_name *name, struct wr_span value,
                        int64_t now_ms)
{
    struct wr_numbers numbers;

    if (!wr_numbers_parse(value, &numbers))
        parse_duration_or_date(time, value, now_ms);
    else if (name->is_ms)
        note_reset_ms(time, &numbers.most);
    else if (name->role == WR_ROLE_RESET_AFTER)
        note_after(time, wr_number_ns(&numbers.most, WEIR_SECOND, WR_SERVER_LIMITS_MAX_NS));
    else
        note_reset(time, &numbers.most);
}

/* ---- quotas ---------------------------------------------------------------------------------- */

static const struct wr_server_quota nothing = {
    .limit = WR_NOT_REPORTED, .remaining = WR_NOT_REPORTED, .reset = {WR_NOT_REPORTED, NO_TIME}};

/* Returns the quota of that name, and adds it if it is new. Returns NULL if there are too many. */
static struct wr_server_quota *find_or_add_quota(struct wr_server_limits *limits, uint64_t name)
{
    for (uint32_t i = 0; i < limits->count; i++)
        if (limits->quotas[i].name == name)
            return &limits->quotas[i];
    if (limits->count == WR_SERVER_QUOTAS_MAX)
        return NULL;
    struct wr_server_quota *quota = &limits->quotas[limits->count++];
    *quota = nothing;
    quota->name = name;
    return quota;
}

static void note_least(int64_t *least, int64_t number)
{
    if (number >= 0 && (*least == WR_NOT_REPORTED || number < *least))
        *least = number;
}

/* Merges a reported quota. If a proxy and the server behind it report the same quota, the stricter
 * value counts. */
static void merge_quota(struct wr_server_limits *limits, const struct wr_server_quota *said)
{
    struct wr_server_quota *quota = find_or_add_quota(limits, said->name);

    if (quota == NULL)
        return;
    note_least(&quota->limit, said->limit);
    note_least(&quota->remaining, said->remaining);
    note_after(&quota->reset, said->reset.after_ns);
    note_at(&quota->reset, said->reset.at_ms);
    quota->unit = said->unit != WR_UNIT_REQUESTS ? said->unit : quota->unit;
}

/* Parses a limit or a remaining count. Returns false if the value is not a count. A limit with a
 * fraction is a rate, such as 0.5 per second of AWS. */
static bool parse_count(struct wr_server_quota *said, bool is_limit, struct wr_span value)
{
    struct wr_numbers numbers;

    if (!wr_numbers_parse(value, &numbers) || (is_limit && numbers.first.nanos > 0))
        return false;
    if (is_limit) /* `remaining` counts down the first of "1000, 10;w=1, 1000;w=3600" */
        said->limit = (int64_t)numbers.first.whole;
    else
        said->remaining = (int64_t)numbers.least.whole;
    return true;
}

static void parse_quota(struct wr_server_limits *limits, const struct wr_limit_field_name *name, struct wr_span value)
{
    struct wr_server_quota said = nothing;

    said.name = name->quota;
    said.unit = name->is_other_unit ? WR_UNIT_OTHER : WR_UNIT_REQUESTS;
    if (name->role == WR_ROLE_RESET || name->role == WR_ROLE_RESET_AFTER)
        parse_reset(&said.reset, name, value, limits->now_ms);
    else if (!parse_count(&said, name->role == WR_ROLE_LIMIT, value))
        return;
    merge_quota(limits, &said);
}

/* ---- structured fields ----------------------------------------------------------------------- */

static bool is_named_member(const struct wr_sf_value *value)
{
    return value->kind == WR_SF_STRING || value->kind == WR_SF_TOKEN;
}

/* Records a parameter of RateLimit (r, t) or RateLimit-Policy (q, qu), or an entry of the
 * Dictionary of draft -07. If a name occurs twice, the last one counts. */
static void note_parameter(struct wr_server_quota *said, struct wr_span name, const struct wr_sf_value *value)
{
    struct wr_number seconds = {(uint64_t)value->number, 0};

    if (wr_span_is(name, "qu") && is_named_member(value)) {
        bool at_once = wr_span_is(value->text, "concurrent-requests");
        said->unit = at_once ? WR_UNIT_AT_ONCE : wr_span_is(value->text, "requests") ? WR_UNIT_REQUESTS : WR_UNIT_OTHER;
    } else if (value->kind != WR_SF_INTEGER || value->number < 0) {
        return;
    } else if (wr_span_is(name, "r") || wr_span_is(name, "remaining")) {
        said->remaining = value->number;
    } else if (wr_span_is(name, "q") || wr_span_is(name, "limit")) {
        said->limit = value->number;
    } else if (wr_span_is(name, "t") || wr_span_is(name, "reset")) {
        said->reset = nothing.reset;
        note_reset(&said->reset, &seconds);
    }
}

/* Starts a quota from a list member. A policy without a name, "100;w=60", is the form of drafts up
 * to -07. */
static struct wr_server_quota quota_of_member(const struct wr_sf_value *item)
{
    struct wr_server_quota said = nothing;

    said.name = is_named_member(item) ? wr_limit_field_name_hash(MEMBER_SEED, item->text) : NAMELESS_POLICY;
    if (item->kind == WR_SF_INTEGER && item->number >= 0)
        said.limit = item->number;
    return said;
}

/* Parses a List. If `limits` is NULL it only checks the syntax. */
static bool parse_list(struct wr_server_limits *limits, struct wr_span value)
{
    struct wr_sf sf = {.rest = value};
    struct wr_sf_value item;
    struct wr_span name;
    int more;

    while ((more = wr_sf_member(&sf, &item)) > 0) {
        struct wr_server_quota said = quota_of_member(&item);
        bool is_quota = is_named_member(&item) || item.kind == WR_SF_INTEGER;
        while ((more = wr_sf_parameter(&sf, &name, &item)) > 0)
            note_parameter(&said, name, &item);
        if (more < 0)
            break;
        if (limits != NULL && is_quota)
            merge_quota(limits, &said);
    }
    return more == 0;
}

/* Parses the Dictionary of draft -07, "limit=100, remaining=50, reset=30", as one quota. */
static void parse_entries(struct wr_server_limits *limits, struct wr_span value)
{
    struct wr_server_quota said = nothing;
    struct wr_sf sf = {.rest = value};
    struct wr_sf_value item;
    struct wr_span name;
    int more;

    said.name = NAMELESS_QUOTA;
    while ((more = wr_sf_entry(&sf, &name, &item)) > 0) {
        note_parameter(&said, name, &item);
        while ((more = wr_sf_parameter(&sf, &name, &item)) > 0)
            continue;
        if (more < 0)
            break;
    }
    if (more == 0)
        merge_quota(limits, &said);
}

/* Parses a field in two passes, because a field that is malformed anywhere must be ignored as a
 * whole (RFC 9651 4.2). */
static void parse_structured(struct wr_server_limits *limits, struct wr_span value)
{
    if (parse_list(NULL, value))
        (void)parse_list(limits, value);
    else
        parse_entries(limits, value);
}

/* Removes the quotes of a number that is written as a string: "4". */
static struct wr_span strip_number_quotes(struct wr_span value)
{
    bool is_quoted = value.bytes >= 2 && value.data[0] == '"' && value.data[value.bytes - 1] == '"';

    return is_quoted ? (struct wr_span){value.data + 1, value.bytes - 2} : value;
}

/* ---- all fields ------------------------------------------------------------------------------ */

void wr_server_limits_field(struct wr_server_limits *limits, struct wr_span name, struct wr_span value)
{
    struct wr_limit_field_name known;
    int64_t date_s;

    value = wr_span_trim(value);
    if (!wr_limit_field_name_parse(name, FAMILY_SEED, &known))
        return;
    switch (known.role) {
    case WR_ROLE_DATE:
        if (wr_http_date_parse(value, limits->now_ms / 1000, &date_s))
            limits->date_ms = date_s * 1000;
        break;
    case WR_ROLE_RETRY:
        parse_retry(limits, strip_number_quotes(value), known.is_ms);
        break;
    case WR_ROLE_STRUCTURED:
    case WR_ROLE_POLICY:
        parse_structured(limits, value);
        break;
    default:
        parse_quota(limits, &known, strip_number_quotes(value));
        break;
    }
}

/* Returns the duration from now; 0 for a past instant. Instants are relative to the Date field, the
 * server's own clock. It is rounded down, so the result is up to a second too long, never too
 * short. */
static int64_t limit_time_to_duration(const struct wr_server_limits *limits, const struct wr_server_limit_time *time)
{
    int64_t now_ms = limits->date_ms != NO_TIME ? limits->date_ms : limits->now_ms;
    int64_t duration_ns = time->after_ns;

    if (time->at_ms != NO_TIME) {
        int64_t until_ms = time->at_ms > now_ms ? time->at_ms - now_ms : 0;
        int64_t until_ns = until_ms < WR_SERVER_LIMITS_MAX_NS / WEIR_MILLISECOND ? until_ms * WEIR_MILLISECOND
                                                                                 : WR_SERVER_LIMITS_MAX_NS;
        duration_ns = until_ns > duration_ns ? until_ns : duration_ns;
    }
    return duration_ns;
}

/* Returns the class of a quota for comparison: used up, rate known, remaining known, neither. */
static int quota_rank(const weir_server_limits *said)
{
    if (said->remaining < 0)
        return 0;
    if (said->remaining == 0)
        return 3;
    return said->reset_ns >= 0 ? 2 : 1;
}

static bool is_tighter(const weir_server_limits *a, const weir_server_limits *b)
{
    if (quota_rank(a) != quota_rank(b))
        return quota_rank(a) > quota_rank(b);
    switch (quota_rank(a)) {
    case 3:
        return a->reset_ns > b->reset_ns;
    case 2: /* a->remaining / a->reset < b->remaining / b->reset */
        return (wr_u128)a->remaining * (wr_u128)b->reset_ns < (wr_u128)b->remaining * (wr_u128)a->reset_ns;
    case 1:
        return a->remaining < b->remaining;
    default:
        return (uint64_t)a->limit < (uint64_t)b->limit; /* WR_NOT_REPORTED becomes the largest number */
    }
}

/* Converts a quota. Returns false if it tells nothing about requests per time. */
static bool quota_to_limits(const struct wr_server_limits *limits, const struct wr_server_quota *quota,
                            weir_server_limits *ret_said)
{
    bool used_up = quota->remaining == 0 || quota->limit == 0;

    if (quota->unit == WR_UNIT_AT_ONCE || (quota->unit == WR_UNIT_OTHER && !used_up))
        return false;
    ret_said->limit = quota->unit == WR_UNIT_OTHER ? WR_NOT_REPORTED : quota->limit;
    ret_said->remaining = used_up ? 0 : quota->remaining;
    ret_said->reset_ns = limit_time_to_duration(limits, &quota->reset);
    return ret_said->limit >= 0 || ret_said->remaining >= 0 || ret_said->reset_ns >= 0;
}

weir_server_limits wr_server_limits_result(const struct wr_server_limits *limits)
{
    weir_server_limits best = WR_NO_LIMITS_REPORTED, said = best;
    bool found = false;

    for (uint32_t i = 0; i < limits->count; i++)
        if (quota_to_limits(limits, &limits->quotas[i], &said) && (!found || is_tighter(&said, &best))) {
            best = said;
            found = true;
        }
    best.retry_after_ns = limit_time_to_duration(limits, &limits->retry);
    return best;
}

static int64_t remaining_wait_ns(int64_t named_ns, int64_t elapsed_ns)
{
    if (named_ns <= 0)
        return named_ns; /* the time was not reported, or is over */
    return named_ns - elapsed_ns > 1 ? named_ns - elapsed_ns : 1;
}

void wr_server_limits_to_outcome(const weir_server_limits *said, int64_t elapsed_ns, weir_outcome *outcome)
{
    outcome->has_retry_after = said->retry_after_ns >= 0;
    outcome->retry_after_ns = said->retry_after_ns >= 0 ? remaining_wait_ns(said->retry_after_ns, elapsed_ns) : 0;
    outcome->has_quota = said->limit >= 0 || said->remaining >= 0 || said->reset_ns >= 0;
    outcome->quota_limit = said->limit;
    outcome->quota_remaining = said->remaining;
    outcome->quota_reset_ns = remaining_wait_ns(said->reset_ns, elapsed_ns);
}
