/* SPDX-License-Identifier: MIT */
/* answer.c - parses a request to the control socket and calls the function that answers it. */
#include "base/error.h"
#include "shell/desk/ask.h"

#include <math.h>

static const struct {
    const char *name;
    int (*answer)(struct wr_desk_ask *ask);
} asks[] = {
    {"status", wr_ask_status}, {"hosts", wr_ask_hosts},   {"host", wr_ask_host},     {"why", wr_ask_why},
    {"jobs", wr_ask_jobs},     {"tasks", wr_ask_tasks},   {"events", wr_ask_events}, {"set", wr_ask_set},
    {"pause", wr_ask_pause},   {"resume", wr_ask_resume}, {"forget", wr_ask_forget}, {"cancel", wr_ask_cancel},
    {"drain", wr_ask_drain},
};

/* ---- members of the request ---- */

struct wr_span wr_ask_text(const struct wr_desk_ask *ask, const char *name)
{
    const json_t *value = json_object_get(ask->request, name);
    if (!json_is_string(value))
        return (struct wr_span){"", 0};
    return (struct wr_span){json_string_value(value), json_string_length(value)};
}

int64_t wr_ask_number(const struct wr_desk_ask *ask, const char *name, int64_t otherwise)
{
    const json_t *value = json_object_get(ask->request, name);
    return json_is_integer(value) ? (int64_t)json_integer_value(value) : otherwise;
}

int wr_ask_key(const struct wr_desk_ask *ask, char ret_key[WEIR_PACE_KEY_MAX + 1])
{
    struct wr_span text = wr_ask_text(ask, "host");
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

static void refuse(struct wr_buf *answer, const char *why)
{
    wr_buf_clear(answer);
    wr_append_json_word(answer, "{\"ok\":false,\"error\":", why);
}

static int find_answer(struct wr_desk_ask *ask)
{
    struct wr_span name = wr_ask_text(ask, "ask");
    for (size_t i = 0; i < sizeof asks / sizeof asks[0]; i++)
        if (wr_span_is(name, asks[i].name))
            return asks[i].answer(ask);
    return wr_invalid("nobody knows what is asked; \"ask\" is one of those that docs/internals/desk.md lists");
}

void wr_desk_answer(const struct wr_desk_source *source, struct wr_span request, struct wr_buf *answer)
{
    json_error_t mistake;
    json_t *root = json_loadb(request.data, request.bytes, JSON_REJECT_DUPLICATES, &mistake);
    struct wr_desk_ask ask = {source, root, answer};
    wr_buf_append_string(answer, "{\"ok\":true");
    if (!json_is_object(root)) {
        refuse(answer, "a request is one JSON object on one line");
    } else {
        int error = find_answer(&ask);
        error = error == 0 ? answer->error : error;
        bool has_detail = error == WEIR_E_INVAL || error == WEIR_E_SYSTEM || error == WEIR_E_FULL;
        if (error != 0)
            refuse(answer, has_detail ? wr_error_words(error) : weir_error_text(error));
    }
    wr_buf_append_string(answer, "}\n");
    json_decref(root);
}
