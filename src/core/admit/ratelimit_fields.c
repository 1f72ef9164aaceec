/* SPDX-License-Identifier: MIT */
/* ratelimit_fields.c - formats the response headers that report quotas and the time to retry.
 *
 *     RateLimit-Policy: "per-ip";q=100;w=10, "at-once";q=8;qu="concurrent-requests"
 *     RateLimit: "per-ip";r=0;t=3, "at-once";r=7
 *     Retry-After: 3
 *
 * The format is that of draft-ietf-httpapi-ratelimit-headers-10 and Structured Fields (RFC 9651):
 * names are Strings (printable ASCII, '"' and '\' escaped), numbers are Integers. Times are whole
 * seconds, rounded up, so that a caller that waits for so long does not come too early. No key is
 * ever written (pk in the draft): it may be a secret or belong to another caller.
 */
#include "base/bits.h"
#include "base/buf.h"
#include "base/error.h"
#include "core/admit/admission_result.h"

#define INTEGER_MAX UINT64_C(999999999999999) /* maximum of Structured Fields: 15 digits */

/* ---- values ---------------------------------------------------------------------------------- */

static void append_parameter(struct wr_buf *buf, const char *name, uint64_t value)
{
    wr_buf_append_string(buf, name);
    wr_buf_append_u64(buf, value);
}

/* Appends what is left of a quota, as a member of RateLimit. */
static void append_limit(struct wr_buf *buf, const weir_ruling *ruling)
{
    int64_t until = wr_ruling_until_ns(ruling);

    append_parameter(buf, ";r=", ruling->quota.remaining);
    if (until != WR_NO_TIME)
        append_parameter(buf, ";t=", (uint64_t)wr_seconds_up(until));
}

/* Returns the permits that a quota grants in `window_s` seconds, which is at least its period: 2 in
 * 0.2 s are 10 in 1 s. Rounds down, so that a caller that relies on it stays within the quota. */
static uint64_t quota_in_window(const weir_quota *quota, int64_t window_s)
{
    wr_u128 scaled = (wr_u128)quota->limit * (uint64_t)window_s * (uint64_t)WEIR_SECOND / (uint64_t)quota->period_ns;

    return scaled < INTEGER_MAX ? (uint64_t)scaled : INTEGER_MAX;
}

/* Appends a rule over whole seconds, as a member of RateLimit-Policy. */
static void append_policy(struct wr_buf *buf, const weir_ruling *ruling)
{
    const weir_quota *quota = &ruling->quota;
    int64_t window_s = wr_seconds_up(quota->period_ns);

    append_parameter(buf, ";q=", window_s == 0 ? quota->limit : quota_in_window(quota, window_s));
    if (window_s == 0)
        wr_buf_append_string(buf, ";qu=\"concurrent-requests\"");
    else
        append_parameter(buf, ";w=", (uint64_t)window_s);
}

static void append_ruling_list(struct wr_buf *buf, const weir_admission_result *admission,
                               void (*append_member)(struct wr_buf *buf, const weir_ruling *ruling))
{
    const char *between = "\"";

    for (uint32_t i = 0; i < admission->count; i++) {
        const weir_ruling *ruling = &admission->rulings[i];
        if (!wr_ruling_is_shown(ruling))
            continue;
        wr_buf_append_string(buf, between);
        wr_buf_append_escaped(buf, wr_span_of(ruling->name), '"');
        wr_buf_append_char(buf, '"');
        append_member(buf, ruling);
        between = ", \"";
    }
}

static void append_x_ratelimit(struct wr_buf *buf, const weir_admission_result *admission, weir_field field,
                               int64_t wall_ns)
{
    const weir_ruling *ruling = weir_admission_result_decisive(admission);

    if (ruling == NULL || !wr_ruling_is_shown(ruling))
        return;
    int64_t until = wr_ruling_until_ns(ruling);
    if (field == WEIR_FIELD_X_LIMIT)
        wr_buf_append_u64(buf, ruling->quota.limit);
    else if (field == WEIR_FIELD_X_REMAINING)
        wr_buf_append_u64(buf, ruling->quota.remaining);
    else if (until != WR_NO_TIME)
        wr_buf_append_u64(buf, (uint64_t)wr_seconds_up(wall_ns + until));
}

static void append_field_value(struct wr_buf *buf, const weir_admission_result *admission, weir_field field,
                               int64_t wall_ns)
{
    switch (field) {
    case WEIR_FIELD_RETRY_AFTER:
        if (admission->retry_after_s > 0)
            wr_buf_append_u64(buf, (uint64_t)admission->retry_after_s);
        break;
    case WEIR_FIELD_RATELIMIT:
        append_ruling_list(buf, admission, append_limit);
        break;
    case WEIR_FIELD_RATELIMIT_POLICY:
        append_ruling_list(buf, admission, append_policy);
        break;
    default:
        append_x_ratelimit(buf, admission, field, wall_ns);
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

/* ---- public functions ------------------------------------------------------------------------ */

static bool arguments_ok(const weir_admission_result *admission, int64_t wall_ns, const char *buffer,
                         size_t buffer_bytes, const size_t *ret_bytes)
{
    const char *why = NULL;

    if (admission == NULL || admission->count > WEIR_RULINGS_MAX)
        why = "the admission is NULL or was never filled; give one that a counter has filled";
    else if (buffer == NULL || buffer_bytes == 0 || ret_bytes == NULL)
        why = "no buffer or no ret_bytes; give WEIR_FIELDS_BYTES_MAX bytes to be sure";
    else if (wall_ns < 0 || wall_ns > INT64_MAX - WEIR_DURATION_MAX)
        why = "wall_ns is not a time of day; give the result of weir_wall_now";
    if (why != NULL)
        (void)wr_invalid(why);
    return why == NULL;
}

static int finish_field(const struct wr_buf *buf, size_t *ret_bytes)
{
    if (buf->error == 0)
        *ret_bytes = buf->length;
    return buf->error;
}

int weir_field_format(const weir_admission_result *admission, weir_field field, int64_t wall_ns, char *buffer,
                      size_t buffer_bytes, size_t *ret_bytes)
{
    struct wr_buf buf;

    if (!arguments_ok(admission, wall_ns, buffer, buffer_bytes, ret_bytes))
        return WEIR_E_INVAL;
    if (weir_field_name(field) == NULL)
        return wr_invalid("no such field; use one of WEIR_FIELD_RETRY_AFTER ... WEIR_FIELD_X_RESET");
    wr_buf_init_fixed(&buf, buffer, buffer_bytes);
    append_field_value(&buf, admission, field, wall_ns);
    return finish_field(&buf, ret_bytes);
}

static void append_field_line(struct wr_buf *buf, const weir_admission_result *admission, weir_field field,
                              int64_t wall_ns)
{
    size_t start = buf->length;

    wr_buf_append_string(buf, weir_field_name(field));
    wr_buf_append_string(buf, ": ");
    size_t value = buf->length;
    append_field_value(buf, admission, field, wall_ns);
    if (buf->length == value)
        wr_buf_cut(buf, start); /* the field does not apply */
    else
        wr_buf_append_string(buf, "\r\n");
}

int weir_fields_format(const weir_admission_result *admission, unsigned fields, int64_t wall_ns, char *buffer,
                       size_t buffer_bytes, size_t *ret_bytes)
{
    struct wr_buf buf;

    if (!arguments_ok(admission, wall_ns, buffer, buffer_bytes, ret_bytes))
        return WEIR_E_INVAL;
    if ((fields & ~(unsigned)WEIR_FIELDS_ALL) != 0)
        return wr_invalid("fields has unknown bits; use bits of WEIR_FIELDS_ALL");
    wr_buf_init_fixed(&buf, buffer, buffer_bytes);
    for (unsigned bit = WEIR_FIELD_RETRY_AFTER; bit <= WEIR_FIELD_X_RESET; bit <<= 1)
        if ((fields & bit) != 0)
            append_field_line(&buf, admission, (weir_field)bit, wall_ns);
    return finish_field(&buf, ret_bytes);
}
