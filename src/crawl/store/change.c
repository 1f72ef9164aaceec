/* SPDX-License-Identifier: MIT */
/* change.c - checks changes before they are stored, and names job states. */
#include "base/error.h"
#include "crawl/store/store_state.h"

static const char *const status_names[] = {
#define X(status, name) name,
    WR_JOB_STATUSES(X)
#undef X
};

#define STATUS_COUNT (sizeof status_names / sizeof status_names[0])

const char *wr_job_status_name(enum wr_job_status status)
{
    return (size_t)status < STATUS_COUNT ? status_names[status] : NULL;
}

bool wr_job_status_parse(struct wr_span name, enum wr_job_status *ret_status)
{
    for (size_t i = 0; i < STATUS_COUNT; i++) {
        if (strlen(status_names[i]) == name.bytes && memcmp(status_names[i], name.data, name.bytes) == 0) {
            *ret_status = (enum wr_job_status)i;
            return true;
        }
    }
    return false;
}

bool wr_job_is_over(enum wr_job_status status)
{
    return status != WR_JOB_PENDING && status != WR_JOB_RUNNING;
}

/* ---- checking -------------------------------------------------------------------------------- */

static bool is_text(struct wr_span span, size_t least, size_t most)
{
    return span.bytes >= least && span.bytes <= most && wr_span_is_clean(span);
}

static int check_found(const struct wr_store_task_found *task)
{
    if (!is_text(task->host, 1, WEIR_PACE_KEY_MAX))
        return wr_invalid("a task's host must be clean text of 1 to WEIR_PACE_KEY_MAX bytes");
    if (!is_text(task->url, 1, WR_URL_MAX))
        return wr_invalid("a task's url must be clean text of 1 to WR_URL_MAX bytes");
    return 0;
}

static int check_ended(const struct wr_store_task_ended *ended)
{
    if (!is_text(ended->verdict, 1, WR_STORE_WORD_MAX))
        return wr_invalid("a verdict must be clean text of 1 to WR_STORE_WORD_MAX bytes");
    if (!is_text(ended->why, 0, WR_STORE_WHY_MAX))
        return wr_invalid("a task's why must be clean text of at most WR_STORE_WHY_MAX bytes");
    if (!is_text(ended->visit.validator, 0, WR_STORE_VALIDATOR_MAX))
        return wr_invalid("a page's validator must be clean text of at most WR_STORE_VALIDATOR_MAX bytes");
    if (!is_text(ended->visit.digest, 0, WR_STORE_DIGEST_MAX))
        return wr_invalid("a page's digest must be clean text of at most WR_STORE_DIGEST_MAX bytes");
    if (!is_text(ended->line, 0, WR_STORE_LINE_MAX))
        return wr_invalid("a line must be clean text of at most WR_STORE_LINE_MAX bytes");
    return ended->bytes <= INT64_MAX ? 0 : wr_invalid("a page has at most INT64_MAX bytes");
}

static int check_status(const struct wr_store_job_status *status)
{
    if (wr_job_status_name(status->status) == NULL)
        return wr_invalid("a job's status must be one of enum wr_job_status");
    if (!is_text(status->why, 0, WR_STORE_WHY_MAX))
        return wr_invalid("a job's why must be clean text of at most WR_STORE_WHY_MAX bytes");
    return 0;
}

static int check_robots(const struct wr_store_robots *robots)
{
    if (!is_text(robots->url, 1, WR_URL_MAX))
        return wr_invalid("a robots.txt's url must be clean text of 1 to WR_URL_MAX bytes");
    if (robots->kind > WR_STORE_ROBOTS_GONE)
        return wr_invalid("a robots.txt's kind must be one of enum wr_store_robots_kind");
    if (robots->text.bytes > WR_STORE_ROBOTS_MAX)
        return wr_invalid("a robots.txt must have at most WR_STORE_ROBOTS_MAX bytes");
    if (robots->etag.bytes > WR_STORE_VALIDATOR_MAX || robots->modified.bytes > WR_STORE_VALIDATOR_MAX)
        return wr_invalid("a validator must have at most WR_STORE_VALIDATOR_MAX bytes");
    return 0;
}

int wr_store_change_check(const struct wr_store_change *change)
{
    switch (change->kind) {
    case WR_STORE_TASK_FOUND:
        return check_found(&change->found);
    case WR_STORE_TASK_ENDED:
        return check_ended(&change->ended);
    case WR_STORE_TASK_RETRY:
    case WR_STORE_PAGE_CHANGED:
    case WR_STORE_DISMISS:
        return 0;
    case WR_STORE_JOB_STATUS:
        return check_status(&change->status);
    case WR_STORE_OUTPUT:
        if (!is_text(change->output.path, 1, WR_STORE_PATH_MAX) || change->output.bytes > INT64_MAX)
            return wr_invalid("an output has a path of clean text, and at most INT64_MAX bytes");
        return 0;
    case WR_STORE_ROBOTS:
        return check_robots(&change->robots);
    case WR_STORE_HOST_BLOCK:
        if (!is_text(change->block.key, 1, WEIR_PACE_KEY_MAX) ||
            !is_text(change->block.by, change->block.until_wall_at != 0, WR_STORE_WORD_MAX))
            return wr_invalid("a block has a host's key and the name of a firewall, both of clean text");
        return 0;
    case WR_STORE_HOST:
        if (!is_text(change->host.key, 1, WEIR_PACE_KEY_MAX))
            return wr_invalid("a host's key must be clean text of 1 to WEIR_PACE_KEY_MAX bytes");
        return 0;
    case WR_STORE_HOST_SETTING:
        if (!is_text(change->setting.key, 1, WEIR_PACE_KEY_MAX))
            return wr_invalid("a host's key must be clean text of 1 to WEIR_PACE_KEY_MAX bytes");
        if (change->setting.has_interval &&
            (change->setting.interval_ns < 0 || change->setting.interval_ns > WR_STORE_INTERVAL_MAX_NS))
            return wr_invalid("a host's interval must be 0 to WR_STORE_INTERVAL_MAX_NS");
        return 0;
    case WR_STORE_REPORT:
        if (change->report.text.bytes > WR_STORE_REPORT_MAX)
            return wr_invalid("a report must have at most WR_STORE_REPORT_MAX bytes");
        return 0;
    }
    return wr_invalid("a change's kind must be one of enum wr_store_change_kind");
}

size_t wr_store_change_spans(struct wr_store_change *change, struct wr_span *ret_spans[WR_CHANGE_SPANS])
{
    size_t count = 0;

    switch (change->kind) {
    case WR_STORE_TASK_FOUND:
        ret_spans[count++] = &change->found.host;
        ret_spans[count++] = &change->found.url;
        break;
    case WR_STORE_TASK_ENDED:
        ret_spans[count++] = &change->ended.verdict;
        ret_spans[count++] = &change->ended.why;
        ret_spans[count++] = &change->ended.visit.validator;
        ret_spans[count++] = &change->ended.visit.digest;
        ret_spans[count++] = &change->ended.line;
        break;
    case WR_STORE_TASK_RETRY:
    case WR_STORE_PAGE_CHANGED:
    case WR_STORE_DISMISS:
        break;
    case WR_STORE_JOB_STATUS:
        ret_spans[count++] = &change->status.why;
        break;
    case WR_STORE_OUTPUT:
        ret_spans[count++] = &change->output.path;
        break;
    case WR_STORE_ROBOTS:
        ret_spans[count++] = &change->robots.url;
        ret_spans[count++] = &change->robots.text;
        ret_spans[count++] = &change->robots.etag;
        ret_spans[count++] = &change->robots.modified;
        break;
    case WR_STORE_HOST_BLOCK:
        ret_spans[count++] = &change->block.key;
        ret_spans[count++] = &change->block.by;
        break;
    case WR_STORE_HOST:
        ret_spans[count++] = &change->host.key;
        break;
    case WR_STORE_HOST_SETTING:
        ret_spans[count++] = &change->setting.key;
        break;
    case WR_STORE_REPORT:
        ret_spans[count++] = &change->report.text;
        break;
    }
    return count;
}
