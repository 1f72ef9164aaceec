/* SPDX-License-Identifier: MIT */
/* headers.c - weir headers: reads header lines and prints the rate limits that weir finds in
 * them. */
#include "cli/headers/headers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "cli/kit/command_options.h"
#include "cli/kit/console.h"
#include "core/web/http/field.h"
#include "core/web/http/server_limits.h"

/* Maximum bytes of a response header, the same as in the HTTP client. */
#define HEAD_MAX ((size_t)256 * 1024)
/* Latest accepted time, in 2255: nanoseconds since 1970 fit into 64 bits. */
#define NOW_MAX_S UINT64_C(9000000000)

struct headers_settings {
    const char *now;
    bool json;
};

static const struct wr_option options[] = {
    {"now", WR_STRING(struct headers_settings, now), .value = "EPOCH",
     .help = "Time of the response in seconds since 1970 (default: now)"},
    {"json", WR_FLAG(struct headers_settings, json), .help = "Print JSON"},
};

static const struct wr_usage usage = {
    .who = "weir headers",
    .about = "Reads the header lines of a response from standard input, as curl -sI prints them, and\n"
             "shows what weir reads from Retry-After, RateLimit, X-RateLimit-* and similar fields:\n"
             "\n"
             "  retry_after_s   seconds until the next request may start\n"
             "  limit           requests per window of the tightest quota\n"
             "  remaining       requests left in it\n"
             "  reset_s         seconds until it is full again\n"
             "\n"
             "A missing value is null in JSON, and - otherwise. With several responses the last counts.\n",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

/* Joins continuation lines to the line before them (RFC 9112 5.2) by changing the line ends to
 * blanks. */
static void unfold_lines(char *text, size_t bytes)
{
    for (size_t i = 1; i + 1 < bytes; i++) {
        bool is_folded = text[i] == '\n' && (text[i + 1] == ' ' || text[i + 1] == '\t');
        bool is_empty = text[i - 1] == '\n' || (text[i - 1] == '\r' && (i == 1 || text[i - 2] == '\n'));
        if (is_folded && !is_empty) {
            text[i] = ' ';
            text[i - 1] = text[i - 1] == '\r' ? ' ' : text[i - 1];
        }
    }
}

static bool begins_status_line(struct wr_span text)
{
    return text.bytes >= 5 && memcmp(text.data, "HTTP/", 5) == 0;
}

static bool is_header_end(struct wr_span line)
{
    return line.bytes == 0 || (line.bytes == 1 && line.data[0] == '\r');
}

/* Reads up to the end of the last header and returns its limits. The bytes after it are a body. */
static weir_server_limits read_heads(struct wr_span text, int64_t now_ns)
{
    struct wr_server_limits limits;
    struct wr_span name, value;

    wr_server_limits_init(&limits, now_ns);
    while (text.bytes > 0) {
        size_t end = wr_span_find(text, '\n');
        struct wr_span line = {text.data, end};
        text = wr_span_after(text, end < text.bytes ? end + 1 : end);
        if (begins_status_line(line))
            wr_server_limits_init(&limits, now_ns);
        else if (wr_field_parse(line, &name, &value))
            wr_server_limits_field(&limits, name, value);
        if (is_header_end(line) && !begins_status_line(text))
            break;
    }
    return wr_server_limits_result(&limits);
}

/* ---- output --------------------------------------------------------------------------------- */

/* Formats seconds without trailing zeros, such as "1.25". */
static void format_seconds(int64_t ns, const char *absent, char *ret_text, size_t text_bytes)
{
    int digits = 9;
    int64_t fraction = ns % WEIR_SECOND;

    if (ns < 0) {
        snprintf(ret_text, text_bytes, "%s", absent);
        return;
    }
    for (; digits > 0 && fraction % 10 == 0; digits--)
        fraction /= 10;
    if (digits == 0)
        snprintf(ret_text, text_bytes, "%" PRId64, ns / WEIR_SECOND);
    else
        snprintf(ret_text, text_bytes, "%" PRId64 ".%0*" PRId64, ns / WEIR_SECOND, digits, fraction);
}

static void format_count(int64_t count, const char *absent, char *ret_text, size_t text_bytes)
{
    if (count < 0)
        snprintf(ret_text, text_bytes, "%s", absent);
    else
        snprintf(ret_text, text_bytes, "%" PRId64, count);
}

static void print_server_limits(const weir_server_limits *said, bool json)
{
    const char *absent = json ? "null" : "-";
    char retry_after[32], limit[32], remaining[32], reset[32];

    format_seconds(said->retry_after_ns, absent, retry_after, sizeof retry_after);
    format_count(said->limit, absent, limit, sizeof limit);
    format_count(said->remaining, absent, remaining, sizeof remaining);
    format_seconds(said->reset_ns, absent, reset, sizeof reset);
    wr_print(json ? "{\"retry_after_s\": %s, \"limit\": %s, \"remaining\": %s, \"reset_s\": %s}\n"
                  : "retry_after_s  %s\nlimit          %s\nremaining      %s\nreset_s        %s\n",
             retry_after, limit, remaining, reset);
}

/* ---- the command ---------------------------------------------------------------------------- */

static bool parse_now(const char *text, int64_t *ret_ns)
{
    uint64_t now_s;

    if (text == NULL) {
        *ret_ns = weir_wall_now();
        return true;
    }
    if (wr_parse_u64(text, strlen(text), 0, NOW_MAX_S, &now_s) < 0) {
        wr_complain("--now: %s", weir_error_detail());
        return false;
    }
    *ret_ns = (int64_t)now_s * WEIR_SECOND;
    return true;
}

int wr_headers_run(int argc, char **argv)
{
    static char text[HEAD_MAX + 1];
    struct headers_settings settings = {.now = NULL};
    int64_t now_ns;
    int status;

    if (!wr_options_parse(&usage, &argc, argv, &settings, &status))
        return status;
    if (!parse_now(settings.now, &now_ns))
        return WR_EXIT_USAGE;
    size_t bytes = fread(text, 1, sizeof text, stdin);
    if (ferror(stdin)) {
        wr_complain("cannot read standard input: %s", strerror(errno));
        return WR_EXIT_FAILED;
    }
    if (bytes > HEAD_MAX) {
        wr_complain("more than %zu bytes on standard input; give one response's header", HEAD_MAX);
        return WR_EXIT_FAILED;
    }
    unfold_lines(text, bytes);
    weir_server_limits said = read_heads((struct wr_span){text, bytes}, now_ns);
    print_server_limits(&said, settings.json);
    return WR_EXIT_OK;
}
