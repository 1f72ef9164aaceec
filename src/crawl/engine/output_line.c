/* SPDX-License-Identifier: MIT */
/* output_line.c - formats the outcome of one URL as a line of JSON. */
#include "crawl/engine/output_line.h"

#include "base/json.h"
#include "crawl/store/store.h"

const char *wr_page_verdict_name(enum wr_page_verdict verdict)
{
    static const char *const names[] = {
#define X(verdict, name) name,
        WR_VERDICTS(X)
#undef X
    };
    return (unsigned)verdict < sizeof names / sizeof names[0] ? names[verdict] : NULL;
}

bool wr_page_verdict_is_failure(enum wr_page_verdict verdict)
{
    return verdict == WR_VERDICT_FAILED || verdict == WR_VERDICT_EXPIRED || verdict == WR_VERDICT_BLOCKED ||
           verdict == WR_VERDICT_DAMAGED;
}

static struct wr_span null_if_empty(struct wr_span text)
{
    return text.bytes > 0 ? text : (struct wr_span){NULL, 0};
}

static bool ends_authority(char c)
{
    return c == '/' || c == '?' || c == '#' || c == '\\';
}

/* Returns the length of "user:password@" in the URL, and where it begins; 0 if it is missing. */
static size_t userinfo_bytes(struct wr_span url, size_t *ret_at)
{
    size_t at = 0, end;

    if (wr_span_find(url, '@') == url.bytes)
        return 0;
    while (at < url.bytes && url.data[at] != '/')
        at++;
    while (at < url.bytes && url.data[at] == '/')
        at++;
    for (end = at; end < url.bytes && !ends_authority(url.data[end]);)
        end++;
    while (end > at && url.data[end - 1] != '@')
        end--;
    *ret_at = at;
    return end - at;
}

/* Appends a URL without what may be a user and password. Invalid URLs are shown as well. */
static void append_url_without_user(struct wr_buf *buf, const char *before, struct wr_span url)
{
    size_t at, bytes = userinfo_bytes(url, &at);

    if (bytes == 0) {
        wr_append_json_text(buf, before, null_if_empty(url));
        return;
    }
    wr_buf_append_string(buf, before);
    wr_buf_append_char(buf, '"');
    wr_append_json_escaped(buf, (struct wr_span){url.data, at});
    wr_append_json_escaped(buf, wr_span_after(url, at + bytes));
    wr_buf_append_char(buf, '"');
}

/* Appends a duration as milliseconds with three decimals; null if it is negative. */
static void append_ms_or_null(struct wr_buf *buf, const char *before, int64_t ns)
{
    if (ns < 0)
        wr_append_json_null(buf, before);
    else
        wr_append_json_decimal(buf, before, (uint64_t)ns / 1000, 3);
}

static void append_waits(struct wr_buf *buf, const uint32_t *waited)
{
    bool is_first = true;

    wr_buf_append_string(buf, ", \"wait_ms\": {");
    for (int reason = WEIR_REASON_NONE + 1; waited != NULL && reason <= WEIR_REASON_QUEUE; reason++) {
        if (waited[reason] == 0)
            continue;
        wr_buf_append_string(buf, is_first ? "\"" : ", \"");
        wr_buf_append_string(buf, weir_reason_name((weir_reason)reason));
        wr_append_json_count(buf, "\": ", waited[reason]);
        is_first = false;
    }
    wr_buf_append_char(buf, '}');
}

static void append_count_or_null(struct wr_buf *buf, const char *before, int64_t count, int64_t least)
{
    if (count < least)
        wr_append_json_null(buf, before);
    else
        wr_append_json_count(buf, before, (uint64_t)count);
}

void wr_output_line_append(struct wr_buf *buf, const struct wr_output_line *line)
{
    append_url_without_user(buf, "{\"url\": ", line->url);
    append_url_without_user(buf, ", \"final_url\": ", line->final_url);
    append_count_or_null(buf, ", \"status\": ", line->status, 1);
    wr_append_json_count(buf, ", \"bytes\": ", line->bytes);
    wr_append_json_text(buf, ", \"digest\": ", null_if_empty(line->digest));
    wr_append_json_text(buf, ", \"body\": ", null_if_empty(line->body));
    wr_append_json_text(buf, ", \"content_type\": ", null_if_empty(line->content_type));
    wr_append_json_text(buf, ", \"title\": ", line->title);
    wr_append_json_count(buf, ", \"depth\": ", line->depth);
    append_url_without_user(buf, ", \"referrer\": ", line->referrer);
    wr_append_json_count(buf, ", \"attempts\": ", line->attempts);
    append_count_or_null(buf, ", \"links\": ", line->links, 0);
    wr_append_json_text(buf, ", \"verdict\": ", wr_span_of(wr_page_verdict_name(line->verdict)));
    wr_append_json_text(buf, ", \"error\": ", null_if_empty(line->error));
    wr_append_json_text(buf, ", \"error_text\": ", null_if_empty(line->error_text));
    append_waits(buf, line->waited);
    append_ms_or_null(buf, ", \"dns_ms\": ", line->dns_ns);
    append_ms_or_null(buf, ", \"connect_ms\": ", line->connect_ns);
    append_ms_or_null(buf, ", \"first_byte_ms\": ", line->first_byte_ns);
    append_ms_or_null(buf, ", \"total_ms\": ", line->total_ns);
    wr_buf_append_string(buf, "}\n");
}

static bool find_page_verdict(struct wr_span name, enum wr_page_verdict *ret_verdict)
{
    for (unsigned i = 0; wr_page_verdict_name((enum wr_page_verdict)i) != NULL; i++) {
        if (wr_span_is(name, wr_page_verdict_name((enum wr_page_verdict)i))) {
            *ret_verdict = (enum wr_page_verdict)i;
            return true;
        }
    }
    return false;
}

/* Appends the error word, as far as verdict and status define it. */
static void append_stored_error(struct wr_buf *buf, enum wr_page_verdict verdict, int status)
{
    if (verdict == WR_VERDICT_FETCHED || verdict == WR_VERDICT_REDIRECT || verdict == WR_VERDICT_UNCHANGED)
        return;
    if (status >= 400) {
        wr_buf_append_string(buf, "http_");
        wr_buf_append_u64(buf, (uint64_t)status);
    } else if (verdict != WR_VERDICT_FAILED) {
        wr_buf_append_string(buf, wr_page_verdict_name(verdict));
    }
}

void wr_output_line_append_task(struct wr_buf *buf, const struct wr_store_task *task)
{
    static const struct wr_span none = {NULL, 0};
    char memory[32];
    struct wr_buf error;
    enum wr_page_verdict verdict = WR_VERDICT_FAILED;
    bool is_sitemap = task->parent == task->fingerprint; /* a sitemap is its own parent */
    bool is_page =
        find_page_verdict(task->verdict, &verdict) &&
        (verdict == WR_VERDICT_FETCHED || verdict == WR_VERDICT_TOO_LARGE || verdict == WR_VERDICT_UNCHANGED);
    wr_buf_init_fixed(&error, memory, sizeof memory);
    append_stored_error(&error, verdict, task->status);
    wr_output_line_append(buf, &(const struct wr_output_line){.url = task->url,
                                                              .status = task->status,
                                                              .bytes = task->bytes,
                                                              .digest = is_page ? task->visit.digest : none,
                                                              .depth = task->depth,
                                                              .referrer = is_sitemap ? none : task->referrer,
                                                              .attempts = task->attempts,
                                                              .links = -1,
                                                              .verdict = verdict,
                                                              .error = wr_buf_from(&error, 0),
                                                              .error_text = task->why,
                                                              .dns_ns = -1,
                                                              .connect_ns = -1,
                                                              .first_byte_ns = -1,
                                                              .total_ns = -1});
}
