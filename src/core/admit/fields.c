/* SPDX-License-Identifier: MIT */
/* fields.c - tells callers what they have left, and when to come again.
 *
 *     RateLimit-Policy: "per-ip";q=100;w=10, "at-once";q=8;qu="concurrent-requests"
 *     RateLimit: "per-ip";r=0;t=3, "at-once";r=7
 *     Retry-After: 3
 *
 * as in draft-ietf-httpapi-ratelimit-headers-10 and Structured Fields (RFC 9651): names are Strings (printable ASCII,
 * '"' and '\' escaped), numbers are Integers. Times are whole seconds, rounded up: a caller that believes us must never
 * come too early. No key is ever written (the draft's pk): it may be a secret, or somebody else's.
 */
#include "core/admit/fields.h"

#include "base/bits.h"
#include "base/error.h"
#include "core/admit/writer.h"

#define NO_TIME (-1)
#define INTEGER_MAX UINT64_C(999999999999999) /* of Structured Fields: 15 digits */

static int64_t seconds_up(int64_t ns)
{
    return ns <= 0 ? 0 : (ns - 1) / WEIR_SECOND + 1;
}

/* Until when a ruling's numbers hold: for what was refused, until it may be granted, so that the time is the same as
 * that of Retry-After (draft, section 6); else until all is there again. NO_TIME if no clock tells. */
static int64_t until_ns(const weir_ruling *ruling)
{
    if (ruling->outcome != WEIR_OUTCOME_REFUSED)
        return ruling->quota.period_ns == 0 ? NO_TIME : ruling->quota.reset_ns;
    if (ruling->decision.verdict == WEIR_DENY || ruling->decision.wait_ns == WEIR_UNTIL_RELEASE)
        return NO_TIME;
    return ruling->decision.wait_ns;
}

int64_t wr_retry_after_s(const weir_ruling *ruling)
{
    if (ruling->outcome == WEIR_OUTCOME_FAILED)
        return 1; /* failures pass, but nobody knows when */
    if (ruling->outcome != WEIR_OUTCOME_REFUSED || ruling->decision.verdict == WEIR_DENY)
        return 0;
    int64_t seconds = seconds_up(until_ns(ruling));
    return seconds < 1 ? 1 : seconds;
}

/* Whether callers are told of it. */
static bool is_shown(const weir_ruling *ruling)
{
    return !ruling->shadow && ruling->quota.limit > 0;
}

const weir_ruling *weir_admission_decisive(const weir_admission *admission)
{
    const weir_ruling *least = NULL;

    if (admission == NULL)
        return NULL;
    if (!admission->allowed)
        return admission->count == 0 ? NULL : &admission->rulings[admission->count - 1];
    for (uint32_t i = 0; i < admission->count; i++) {
        const weir_ruling *ruling = &admission->rulings[i];
        if (!is_shown(ruling))
            continue;
        if (least == NULL || (uint64_t)ruling->quota.remaining * least->quota.limit <
                                 (uint64_t)least->quota.remaining * ruling->quota.limit)
            least = ruling;
    }
    return least;
}

int weir_admission_status(const weir_admission *admission)
{
    const weir_ruling *ruling = weir_admission_decisive(admission);

    if (admission == NULL || (!admission->allowed && ruling == NULL))
        return 503;
    if (admission->allowed)
        return 200;
    return ruling->outcome == WEIR_OUTCOME_MALFORMED ? 400 : ruling->outcome == WEIR_OUTCOME_FAILED ? 503 : 429;
}

/* ---- values -------------------------------------------------------------------------------------------- */

static void write_parameter(struct wr_writer *writer, const char *name, uint64_t value)
{
    wr_write_text(writer, name);
    wr_write_decimal(writer, value);
}

/* RateLimit's member: what is left. */
static void write_limit(struct wr_writer *writer, const weir_ruling *ruling)
{
    int64_t until = until_ns(ruling);

    write_parameter(writer, ";r=", ruling->quota.remaining);
    if (until != NO_TIME)
        write_parameter(writer, ";t=", (uint64_t)seconds_up(until));
}

/* What a quota lets pass in `window_s` seconds, which are its period or more: 2 in 0.2 s are 10 in 1 s. Rounded down:
 * who goes by it stays within the quota. */
static uint64_t quota_in(const weir_quota *quota, int64_t window_s)
{
    wr_u128 scaled = (wr_u128)quota->limit * (uint64_t)window_s * (uint64_t)WEIR_SECOND / (uint64_t)quota->period_ns;

    return scaled < INTEGER_MAX ? (uint64_t)scaled : INTEGER_MAX;
}

/* RateLimit-Policy's member: what the rule is, over whole seconds. */
static void write_policy(struct wr_writer *writer, const weir_ruling *ruling)
{
    const weir_quota *quota = &ruling->quota;
    int64_t window_s = seconds_up(quota->period_ns);

    write_parameter(writer, ";q=", window_s == 0 ? quota->limit : quota_in(quota, window_s));
    if (window_s == 0)
        wr_write_text(writer, ";qu=\"concurrent-requests\"");
    else
        write_parameter(writer, ";w=", (uint64_t)window_s);
}

static void write_list(struct wr_writer *writer, const weir_admission *admission,
                       void (*write_member)(struct wr_writer *writer, const weir_ruling *ruling))
{
    const char *between = "\"";

    for (uint32_t i = 0; i < admission->count; i++) {
        const weir_ruling *ruling = &admission->rulings[i];
        if (!is_shown(ruling))
            continue;
        wr_write_text(writer, between);
        wr_write_escaped(writer, wr_span_of(ruling->name), '"');
        wr_write_char(writer, '"');
        write_member(writer, ruling);
        between = ", \"";
    }
}

static void write_x(struct wr_writer *writer, const weir_admission *admission, weir_field field, int64_t wall_ns)
{
    const weir_ruling *ruling = weir_admission_decisive(admission);

    if (ruling == NULL || !is_shown(ruling))
        return;
    int64_t until = until_ns(ruling);
    if (field == WEIR_FIELD_X_LIMIT)
        wr_write_decimal(writer, ruling->quota.limit);
    else if (field == WEIR_FIELD_X_REMAINING)
        wr_write_decimal(writer, ruling->quota.remaining);
    else if (until != NO_TIME)
        wr_write_decimal(writer, (uint64_t)seconds_up(wall_ns + until));
}

static void write_value(struct wr_writer *writer, const weir_admission *admission, weir_field field, int64_t wall_ns)
{
    switch (field) {
    case WEIR_FIELD_RETRY_AFTER:
        if (admission->retry_after_s > 0)
            wr_write_decimal(writer, (uint64_t)admission->retry_after_s);
        break;
    case WEIR_FIELD_RATELIMIT:
        write_list(writer, admission, write_limit);
        break;
    case WEIR_FIELD_RATELIMIT_POLICY:
        write_list(writer, admission, write_policy);
        break;
    default:
        write_x(writer, admission, field, wall_ns);
        break;
    }
}

const char *weir_field_name(weir_field field)
{
    switch (field) {
    case WEIR_FIELD_RETRY_AFTER:
        return "Retry-After";
    case WEIR_FIELD_RATELIMIT:
        return "RateLimit";
    case WEIR_FIELD_RATELIMIT_POLICY:
        return "RateLimit-Policy";
    case WEIR_FIELD_X_LIMIT:
        return "X-RateLimit-Limit";
    case WEIR_FIELD_X_REMAINING:
        return "X-RateLimit-Remaining";
    case WEIR_FIELD_X_RESET:
        return "X-RateLimit-Reset";
    default:
        return NULL;
    }
}

/* ---- the public functions ------------------------------------------------------------------------------ */

static bool arguments_ok(const weir_admission *admission, int64_t wall_ns, const char *buffer, size_t buffer_bytes,
                         const size_t *ret_bytes)
{
    const char *why = NULL;

    if (admission == NULL || admission->count > WEIR_RULINGS_MAX)
        why = "the admission is NULL or was never filled; give one that a counter has filled";
    else if (buffer == NULL || buffer_bytes == 0 || ret_bytes == NULL)
        why = "no buffer or no ret_bytes; give WEIR_FIELDS_BYTES_MAX bytes to be sure";
    else if (wall_ns < 0 || wall_ns > INT64_MAX - WEIR_DURATION_MAX)
        why = "wall_ns is no time of day; give what weir_wall_now returns";
    if (why != NULL)
        (void)wr_invalid(why);
    return why == NULL;
}

/* Terminates and reports what was written. */
static int finish(struct wr_writer *writer, size_t *ret_bytes)
{
    size_t bytes = writer->bytes;

    wr_write_char(writer, '\0');
    if (wr_writer_full(writer))
        return WEIR_E_SPACE;
    *ret_bytes = bytes;
    return 0;
}

int weir_field_format(const weir_admission *admission, weir_field field, int64_t wall_ns, char *buffer,
                      size_t buffer_bytes, size_t *ret_bytes)
{
    struct wr_writer writer = {buffer, buffer_bytes, 0};

    if (!arguments_ok(admission, wall_ns, buffer, buffer_bytes, ret_bytes))
        return WEIR_E_INVAL;
    if (weir_field_name(field) == NULL)
        return wr_invalid("no such field; use one of WEIR_FIELD_RETRY_AFTER ... WEIR_FIELD_X_RESET");
    write_value(&writer, admission, field, wall_ns);
    return finish(&writer, ret_bytes);
}

int weir_fields_format(const weir_admission *admission, unsigned fields, int64_t wall_ns, char *buffer,
                       size_t buffer_bytes, size_t *ret_bytes)
{
    struct wr_writer writer = {buffer, buffer_bytes, 0};

    if (!arguments_ok(admission, wall_ns, buffer, buffer_bytes, ret_bytes))
        return WEIR_E_INVAL;
    if ((fields & ~(unsigned)WEIR_FIELDS_ALL) != 0)
        return wr_invalid("fields has bits that are no field; use WEIR_FIELDS_ALL or some of it");
    for (unsigned bit = WEIR_FIELD_RETRY_AFTER; bit <= WEIR_FIELD_X_RESET; bit <<= 1) {
        size_t start = writer.bytes;
        if ((fields & bit) == 0)
            continue;
        wr_write_text(&writer, weir_field_name((weir_field)bit));
        wr_write_text(&writer, ": ");
        size_t value = writer.bytes;
        write_value(&writer, admission, (weir_field)bit, wall_ns);
        if (writer.bytes == value)
            writer.bytes = start; /* does not apply */
        else
            wr_write_text(&writer, "\r\n");
    }
    return finish(&writer, ret_bytes);
}
