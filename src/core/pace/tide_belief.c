/* SPDX-License-Identifier: MIT */
/* tide_belief.c - Describes in words which limit tide assumes, and why. */
#include "core/pace/tide.h"
#include <math.h>

static float nearest(float number)
{
    return floorf(number + 0.5f);
}

/* Appends `before` and a number with three significant digits. */
static void say(struct wr_buf *buf, const char *before, float number)
{
    double unit = number > 0 ? pow(10, floor(log10((double)number)) - 2) : 1;
    wr_buf_append_string(buf, before);
    if (unit < 1)
        wr_buf_append_number(buf, floor((double)number / unit + 0.5) / floor(1 / unit + 0.5));
    else
        wr_buf_append_number(buf, floor((double)number / unit + 0.5) * unit);
}

static void say_when(struct wr_buf *buf, const struct wr_tide *tide, int64_t now)
{
    if (tide->block_at <= 0) {
        wr_buf_append_string(buf, "; known from an earlier run");
        return;
    }
    say(buf, "; last refused ", wr_tide_most(1, nearest(wr_tide_seconds(now - tide->block_at))));
    wr_buf_append_string(buf, " s ago");
}

static void say_crowd(struct wr_buf *buf, const struct wr_tide *tide)
{
    say(buf, "at most ", floorf(tide->cap));
    say(buf, " in flight: of ", (float)tide->crowd_ok);
    say(buf, " accepted since a refusal, ", (float)tide->crowd_past);
    say(buf, " had ", (float)tide->crowd_at);
    wr_buf_append_string(buf, " or more");
}

static void say_cruise(struct wr_buf *buf, const struct wr_tide *tide)
{
    if (tide->traits & WR_TIDE_WINDOWED && tide->quota > 0) {
        say(buf, "", nearest(tide->quota));
        say(buf, " in ", tide->quota / tide->centre);
        wr_buf_append_string(buf, " s: nothing was accepted from one's end to the next");
        return;
    }
    say(buf, "", tide->centre);
    wr_buf_append_string(buf, " a second");
    if (tide->burst >= 1)
        say(buf, ", and a burst of ", nearest(tide->burst));
    wr_buf_append_string(buf, ": as many were accepted between refusals");
}

static const char *say_hold(struct wr_buf *buf, const struct wr_tide *tide)
{
    if (tide->testing) {
        say(buf, "accepted nothing for ", tide->block_most);
        say(buf, " s after ", tide->quota);
        wr_buf_append_string(buf, ": a window, a ban or a slow bucket, which is being tested");
        return "unknown";
    }
    bool bans = tide->traits & WR_TIDE_BANS;
    say(buf, bans ? "a ban of " : "a ban, or the rest of a window, of ", tide->block_most);
    say(buf, " s: met ", wr_tide_most(1, (float)tide->blocks));
    say(buf, " times; held below it at ", tide->rate);
    wr_buf_append_string(buf, " a second");
    return "ban";
}

static const char *say_none(struct wr_buf *buf, const struct wr_tide *tide)
{
    bool is_queue = tide->cap_found && tide->base > 0;
    say(buf, "nothing is refused at ", tide->rate);
    wr_buf_append_string(buf, " a second");
    if (is_queue)
        say(buf, "; answers take longer with more in flight than ", floorf(tide->cap));
    return is_queue ? "queue" : "none";
}

const char *wr_tide_believe(const void *state, int64_t now, struct wr_buf *buf)
{
    const struct wr_tide *tide = state;
    const char *kind = "rate";
    if (tide->mode == WR_TIDE_BLOCKED) {
        say(buf, "nothing was accepted for ", nearest(wr_tide_seconds(now - tide->block_at)));
        wr_buf_append_string(buf, tide->outage ? " s; the host may be down" : " s");
        return "blocked";
    }
    if (tide->traits & WR_TIDE_CONCURRENCY) {
        kind = "concurrency";
        say_crowd(buf, tide);
    } else if (tide->mode == WR_TIDE_CRUISE) {
        kind = tide->traits & WR_TIDE_WINDOWED ? "window" : "rate";
        say_cruise(buf, tide);
    } else if (tide->mode == WR_TIDE_HOLD) {
        kind = say_hold(buf, tide);
    } else if (tide->mode == WR_TIDE_SEARCH) {
        say(buf, "between ", tide->rate);
        say(buf, " and ", tide->bad);
        wr_buf_append_string(buf, " a second: the first is accepted, the second was refused");
    } else {
        kind = say_none(buf, tide);
        if (tide->block_at <= 0)
            return kind;
    }
    say_when(buf, tide, now);
    return kind;
}
