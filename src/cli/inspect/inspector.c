/* SPDX-License-Identifier: MIT */
/* inspector.c - sends requests to a running crawl, or answers them from the state file. */
#include "cli/inspect/inspector.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/crawl/stored_args.h"
#include "cli/kit/console.h"
#include "cli/kit/format.h"
#include "cli/kit/sanitise.h"
#include "limiter/memory/memory.h"
#include "watch/control/control.h"

static void stored_agent(struct wr_span settings, char ret_agent[WR_CONTROL_AGENT_ROOM])
{
    wr_stored_args_agent(settings, ret_agent, WR_CONTROL_AGENT_ROOM);
}

static int open_crawl_store(struct wr_inspector *source)
{
    const struct wr_store_options options = {.path = source->state};
    int error = wr_store_open(&options, &source->store);
    if (error == WEIR_E_ABSENT && !wr_store_is_url(source->state))
        wr_complain("there is no state file %s; give --state FILE", source->state);
    else if (error != 0)
        wr_complain("--state: %s", wr_error_message(error));
    return error == 0 ? WR_EXIT_OK : error == WEIR_E_ABSENT ? WR_EXIT_USAGE : WR_EXIT_FAILED;
}

int wr_inspector_open(struct wr_inspector *ret_source, const char *state)
{
    *ret_source = (struct wr_inspector){.state = state, .fd = -1};
    wr_buf_init(&ret_source->answer, wr_allocator_or_system(NULL), WR_CONTROL_ANSWER_MAX);
    int error = wr_store_is_url(state) ? WEIR_E_ABSENT : wr_control_connect(state, &ret_source->fd);
    if (error == 0)
        return WR_EXIT_OK;
    if (error == WEIR_E_ABSENT)
        return open_crawl_store(ret_source);
    wr_complain("%s", wr_error_message(error));
    return WR_EXIT_FAILED;
}

void wr_inspector_close(struct wr_inspector *source)
{
    if (source->fd >= 0)
        (void)close(source->fd);
    wr_store_free(source->store);
    wr_buf_release(&source->answer);
}

static int send_request_text(struct wr_inspector *source, struct wr_span request)
{
    const struct wr_control_source file = {.store = source->store, .agent_of = stored_agent};
    wr_buf_clear(&source->answer);
    if (source->fd >= 0)
        return wr_control_call(source->fd, request, &source->answer);
    wr_control_answer(&file, request, &source->answer);
    wr_buf_cut(&source->answer, source->answer.length - 1);
    return source->answer.error;
}

json_t *wr_inspector_request(struct wr_inspector *source, json_t *request)
{
    char *text = json_dumps(request, JSON_COMPACT | JSON_ENSURE_ASCII);
    int error = text != NULL ? send_request_text(source, wr_span_of(text)) : WEIR_E_NOMEM;
    json_t *answer = error == 0 ? json_loadb(source->answer.bytes, source->answer.length, 0, NULL) : NULL;
    free(text);
    json_decref(request);
    if (error == WEIR_E_CLOSED)
        wr_complain("the crawl closed the connection: it has ended, or it has too many callers; try again");
    else if (answer == NULL)
        wr_complain("no response: %s", error != 0 ? weir_error_text(error) : "the response is not JSON");
    else if (!wr_json_is(answer, "ok"))
        wr_complain("%s", wr_json_text(answer, "error"));
    if (answer != NULL && wr_json_is(answer, "ok"))
        return answer;
    json_decref(answer);
    return NULL;
}

int wr_inspector_print(const struct wr_inspector *source, json_t *answer, bool as_json,
                       void (*show)(const json_t *answer))
{
    if (answer == NULL)
        return WR_EXIT_FAILED;
    if (as_json)
        wr_print("%s\n", source->answer.bytes);
    else
        show(answer);
    json_decref(answer);
    return WR_EXIT_OK;
}

int wr_inspector_run(const struct wr_inspector_flags *flags, json_t *request, void (*show)(const json_t *answer))
{
    struct wr_inspector source;
    int status = wr_inspector_open(&source, flags->state);
    if (status == WR_EXIT_OK)
        status = wr_inspector_print(&source, wr_inspector_request(&source, request), flags->json, show);
    else
        json_decref(request);
    wr_inspector_close(&source);
    return status;
}

/* ---- values of an answer ---- */

const char *wr_json_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

double wr_json_number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

bool wr_json_has(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return value != NULL && !json_is_null(value);
}

bool wr_json_is(const json_t *object, const char *name)
{
    return json_is_true(json_object_get(object, name));
}

void wr_print_processes(const json_t *answer, json_int_t job)
{
    const json_t *list = json_object_get(answer, "processes"), *process;
    size_t i, told = 0;
    json_array_foreach(list, i, process)
    {
        if (job != 0 && json_integer_value(json_object_get(process, "job")) != job)
            continue;
        wr_print("%-12s", told++ == 0 ? "processes" : "");
        wr_print_sanitised(wr_span_of(wr_json_text(process, "name")));
        wr_print(", job %.0f, %.0f hosts\n", wr_json_number(process, "job"), wr_json_number(process, "hosts"));
    }
    if (told == 0 && list != NULL)
        wr_print("%-12snone\n", "processes");
}

const char *wr_format_ms(const json_t *object, const char *name, char *text, size_t room)
{
    double ms = wr_json_number(object, name);
    if (ms > 0 && ms < 1e15)
        wr_format_duration((int64_t)(ms * 1e6), text, room);
    else
        (void)snprintf(text, room, "-");
    return text;
}

const char *wr_format_wall_time(const json_t *object, const char *name, char *text, size_t room)
{
    time_t seconds = (time_t)(wr_json_number(object, name) / 1000);
    struct tm local;
    if (seconds <= 0 || localtime_r(&seconds, &local) == NULL || strftime(text, room, "%F %T", &local) == 0)
        (void)snprintf(text, room, "-");
    return text;
}
