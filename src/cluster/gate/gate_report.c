/* SPDX-License-Identifier: MIT */
/* gate_report.c - writes and reads the report of a request, as a line of numbers.
 *
 *     word seq in-flight age status latency retry-after limit remaining reset attempt
 *
 * -1 means "unknown". Clocks are not compared, so an instant is given as its age.
 */
#include "cluster/gate/shared_gate_state.h"

#include "base/ascii.h"

#define NUMBERS 11

static void append_report_number(struct wr_buf *text, int64_t number)
{
    if (number < 0)
        wr_buf_append_char(text, '-');
    wr_buf_append_u64(text, number < 0 ? 1 : (uint64_t)number);
    wr_buf_append_char(text, ' ');
}

/* Returns -1 if the number is unknown, 0 if it is negative. */
static int64_t number_or_unknown(bool is_said, int64_t number)
{
    return !is_said ? -1 : number < 0 ? 0 : number;
}

void wr_gate_report_write(struct wr_buf *text, const struct wr_gate_report *letter, int64_t now)
{
    const weir_outcome *outcome = &letter->outcome;
    int64_t age_ns = letter->start.seq != 0 && now > letter->start.sent_at ? now - letter->start.sent_at : 0;
    append_report_number(text, letter->word);
    append_report_number(text, letter->start.seq);
    append_report_number(text, letter->start.in_flight);
    append_report_number(text, age_ns);
    append_report_number(text, number_or_unknown(true, outcome->status));
    append_report_number(text, outcome->latency_ns > 0 ? outcome->latency_ns : age_ns);
    append_report_number(text, number_or_unknown(outcome->has_retry_after, outcome->retry_after_ns));
    append_report_number(text,
                         number_or_unknown(outcome->has_quota && outcome->quota_limit >= 0, outcome->quota_limit));
    append_report_number(
        text, number_or_unknown(outcome->has_quota && outcome->quota_remaining >= 0, outcome->quota_remaining));
    append_report_number(
        text, number_or_unknown(outcome->has_quota && outcome->quota_reset_ns >= 0, outcome->quota_reset_ns));
    append_report_number(text, outcome->attempt);
    wr_buf_append_char(text, '\n');
}

/* Reads a number and the space behind it. */
static bool read_report_number(struct wr_span *text, int64_t *ret_number)
{
    size_t end = wr_span_find(*text, ' ');
    bool is_none = end == 2 && text->data[0] == '-';
    uint64_t number = 0;
    if (end == 0 || end == text->bytes || end > 19)
        return false;
    for (size_t i = is_none; i < end; i++) {
        if (!wr_ascii_is_digit(text->data[i]))
            return false;
        number = number * 10 + (uint64_t)(text->data[i] - '0');
    }
    *ret_number = is_none ? -1 : number <= (uint64_t)WEIR_DURATION_MAX ? (int64_t)number : WEIR_DURATION_MAX;
    *text = wr_span_after(*text, end + 1);
    return true;
}

static uint32_t clamp_to_u32(int64_t number)
{
    return number < 0 ? 0 : number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
}

bool wr_gate_report_read(struct wr_span *text, int64_t age_ns, int64_t now, struct wr_gate_report *ret_letter)
{
    int64_t numbers[NUMBERS];
    for (size_t i = 0; i < NUMBERS; i++) {
        if (!read_report_number(text, &numbers[i]))
            return false;
    }
    if (text->bytes == 0 || text->data[0] != '\n' || numbers[0] < WR_REMOTE_ENDED || numbers[0] > WR_REMOTE_SENT_LATE)
        return false;
    *text = wr_span_after(*text, 1);
    *ret_letter = (struct wr_gate_report){
        .word = (enum wr_remote_report_kind)numbers[0],
        .start = {.seq = clamp_to_u32(numbers[1]),
                  .in_flight = clamp_to_u32(numbers[2]),
                  .sent_at = now - age_ns - numbers[3]},
        .outcome = {.size = sizeof(weir_outcome),
                    .status = numbers[4] > 0 && numbers[4] < 1000 ? (int)numbers[4] : 0,
                    .latency_ns = numbers[5],
                    .has_retry_after = numbers[6] >= 0,
                    .retry_after_ns = numbers[6],
                    .has_quota = numbers[7] >= 0 || numbers[8] >= 0 || numbers[9] >= 0,
                    .quota_limit = numbers[7],
                    .quota_remaining = numbers[8],
                    .quota_reset_ns = numbers[9],
                    .attempt = clamp_to_u32(numbers[10])},
    };
    return true;
}
