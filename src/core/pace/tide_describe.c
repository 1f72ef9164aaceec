/* SPDX-License-Identifier: MIT */
/* tide_describe.c - Describes in words which limit tide assumes, and why. */
#include "core/pace/tide.h"
#include <math.h>

static float round_to_whole(float number)
{
    return floorf(number + 0.5f);
}

/* Appends `before` and a number with three significant digits. */
static void append_rounded(struct wr_buf *buf, const char *before, float number)
{
    double unit = number > 0 ? pow(10, floor(log10((double)number)) - 2) : 1;
    wr_buf_append_string(buf, before);
    if (unit < 1)
        wr_buf_append_number(buf, floor((double)number / unit + 0.5) / floor(1 / unit + 0.5));
    else
        wr_buf_append_number(buf, floor((double)number / unit + 0.5) * unit);
}

static void describe_age(struct wr_buf *buf, const struct wr_tide *tide, int64_t now)
{
    if (tide->block_at <= 0) {
        wr_buf_append_string(buf, "; known from an earlier run");
        return;
    }
    append_rounded(buf, "; last refused ", wr_tide_most(1, round_to_whole(wr_tide_seconds(now - tide->block_at))));
    wr_buf_append_string(buf, " s ago");
}

static void describe_concurrency(struct wr_buf *buf, const struct wr_tide *tide)
{
    append_rounded(buf, "at most ", floorf(tide->cap));
    append_rounded(buf, " in flight: of ", (float)tide->crowd_ok);
    append_rounded(buf, " accepted since a refusal, ", (float)tide->crowd_past);
    append_rounded(buf, " had ", (float)tide->crowd_at);
    wr_buf_append_string(buf, " or more");
}

static void describe_cruise(struct wr_buf *buf, const struct wr_tide *tide)
{
    if (tide->traits & WR_TIDE_WINDOWED && tide->quota > 0) {
        append_rounded(buf, "", round_to_whole(tide->quota));
        append_rounded(buf, " in ", tide->quota / tide->centre);
        wr_buf_append_string(buf, " s: nothing was accepted from the end of one window to the next");
        return;
    }
    append_rounded(buf, "", tide->centre);
    wr_buf_append_string(buf, " a second");
    if (tide->burst >= 1)
        append_rounded(buf, ", and a burst of ", round_to_whole(tide->burst));
    wr_buf_append_string(buf, ": accepted between two refusals");
}

static const char *describe_hold(struct wr_buf *buf, const struct wr_tide *tide)
{
    if (tide->testing) {
        append_rounded(buf, "accepted nothing for ", tide->block_most);
        append_rounded(buf, " s after ", tide->quota);
        wr_buf_append_string(buf, ": a window, a ban or a slow bucket, which is being tested");
        return "unknown";
    }
    bool bans = tide->traits & WR_TIDE_BANS;
    append_rounded(buf, bans ? "a ban of " : "a ban, or the rest of a window, of ", tide->block_most);
    append_rounded(buf, " s: met ", wr_tide_most(1, (float)tide->blocks));
    append_rounded(buf, " times; held below it at ", tide->rate);
    wr_buf_append_string(buf, " a second");
    return "ban";
}

static const char *describe_no_limit(struct wr_buf *buf, const struct wr_tide *tide)
{
    bool is_queue = tide->cap_found && tide->base > 0;
    append_rounded(buf, "nothing is refused at ", tide->rate);
    wr_buf_append_string(buf, " a second");
    if (is_queue)
        append_rounded(buf, "; responses slow down with more in flight than ", floorf(tide->cap));
    return is_queue ? "queue" : "none";
}

const char *wr_tide_describe_limit(const void *state, int64_t now, struct wr_buf *buf)
{
    const struct wr_tide *tide = state;
    const char *kind = "rate";
    if (tide->mode == WR_TIDE_BLOCKED) {
        append_rounded(buf, "nothing was accepted for ", round_to_whole(wr_tide_seconds(now - tide->block_at)));
        wr_buf_append_string(buf, tide->outage ? " s; the host may be down" : " s");
        return "blocked";
    }
    if (tide->traits & WR_TIDE_CONCURRENCY) {
        kind = "concurrency";
        describe_concurrency(buf, tide);
    } else if (tide->mode == WR_TIDE_CRUISE) {
        kind = tide->traits & WR_TIDE_WINDOWED ? "window" : "rate";
        describe_cruise(buf, tide);
    } else if (tide->mode == WR_TIDE_HOLD) {
        kind = describe_hold(buf, tide);
    } else if (tide->mode == WR_TIDE_SEARCH) {
        append_rounded(buf, "between ", tide->rate);
        append_rounded(buf, " and ", tide->bad);
        wr_buf_append_string(buf, " a second: the lower rate is accepted, the higher was refused");
    } else {
        kind = describe_no_limit(buf, tide);
        if (tide->block_at <= 0)
            return kind;
    }
    describe_age(buf, tide, now);
    return kind;
}
