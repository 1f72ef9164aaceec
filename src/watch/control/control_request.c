/* SPDX-License-Identifier: MIT */
/* control_request.c - parses a request to the control socket and calls the function that answers
 * it. */
#include "watch/control/control_request.h"
#include "base/error.h"

#include <math.h>

static const struct {
    const char *name;
    int (*answer)(struct wr_control_request *ask);
} asks[] = {
    {"status", wr_control_answer_status}, {"hosts", wr_control_answer_hosts},   {"host", wr_control_answer_host},
    {"why", wr_control_answer_why},       {"jobs", wr_control_answer_jobs},     {"tasks", wr_control_answer_tasks},
    {"events", wr_control_answer_events}, {"set", wr_control_answer_set},       {"pause", wr_control_answer_pause},
    {"resume", wr_control_answer_resume}, {"forget", wr_control_answer_forget}, {"cancel", wr_control_answer_cancel},
    {"drain", wr_control_answer_drain},
};

/* ---- members of the request ---- */

struct wr_span wr_control_request_text(const struct wr_control_request *ask, const char *name)
{
    const json_t *value = json_object_get(ask->request, name);
    if (!json_is_string(value))
        return (struct wr_span){"", 0};
    return (struct wr_span){json_string_value(value), json_string_length(value)};
}

int64_t wr_control_request_number(const struct wr_control_request *ask, const char *name, int64_t otherwise)
{
    const json_t *value = json_object_get(ask->request, name);
    return json_is_integer(value) ? (int64_t)json_integer_value(value) : otherwise;
}

int wr_control_request_host_key(const struct wr_control_request *ask, char ret_key[WEIR_PACE_KEY_MAX + 1])
{
    struct wr_span text = wr_control_request_text(ask, "host");
    return weir_host_key(text.data, text.bytes, ret_key, WEIR_PACE_KEY_MAX + 1, NULL);
}

/* ---- values ---- */

void wr_append_json_ms(struct wr_buf *buf, const char *before, int64_t ns)
{
    if (ns < 0 || ns == WEIR_UNTIL_RELEASE)
        wr_append_json_null(buf, before);
    else
        wr_append_json_decimal(buf, before, (uint64_t)ns / WEIR_MICROSECOND, 3);
}

void wr_append_json_wall(struct wr_buf *buf, const char *before, int64_t wall_at)
{
    if (wall_at <= 0)
        wr_append_json_null(buf, before);
    else
        wr_append_json_count(buf, before, (uint64_t)(wall_at / WEIR_MILLISECOND));
}

void wr_append_json_rate(struct wr_buf *buf, const char *before, double rate)
{
    if (isfinite(rate) && rate >= 0 && rate < 1e12)
        wr_append_json_decimal(buf, before, (uint64_t)(rate * 1e6 + 0.5), 6);
    else
        wr_append_json_null(buf, before);
}

void wr_append_json_bool(struct wr_buf *buf, const char *before, bool is_true)
{
    wr_buf_append_string(buf, before);
    wr_buf_append_string(buf, is_true ? "true" : "false");
}

void wr_append_json_word(struct wr_buf *buf, const char *before, const char *word)
{
    wr_append_json_text(buf, before, wr_span_of(word));
}

/* ---- responses ---- */

static void write_refusal(struct wr_buf *answer, const char *why)
{
    wr_buf_clear(answer);
    wr_append_json_word(answer, "{\"ok\":false,\"error\":", why);
}

static int answer_by_name(struct wr_control_request *ask)
{
    struct wr_span name = wr_control_request_text(ask, "ask");
    for (size_t i = 0; i < sizeof asks / sizeof asks[0]; i++)
        if (wr_span_is(name, asks[i].name))
            return asks[i].answer(ask);
    return wr_invalid("unknown request; docs/internals/control.md lists the values of \"ask\"");
}

void wr_control_answer(const struct wr_control_source *source, struct wr_span request, struct wr_buf *answer)
{
    json_error_t mistake;
    json_t *root = json_loadb(request.data, request.bytes, JSON_REJECT_DUPLICATES, &mistake);
    struct wr_control_request ask = {source, root, answer};
    wr_buf_append_string(answer, "{\"ok\":true");
    if (!json_is_object(root)) {
        write_refusal(answer, "a request is one JSON object on one line");
    } else {
        int error = answer_by_name(&ask);
        error = error == 0 ? answer->error : error;
        bool has_detail = error == WEIR_E_INVAL || error == WEIR_E_SYSTEM || error == WEIR_E_FULL;
        if (error != 0)
            write_refusal(answer, has_detail ? wr_error_message(error) : weir_error_text(error));
    }
    wr_buf_append_string(answer, "}\n");
    json_decref(root);
}
