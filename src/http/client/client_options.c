/* SPDX-License-Identifier: MIT */
/* client_options.c - checks and copies a client's options and fills in their defaults. */
#include "base/alloc.h"
#include "base/error.h"
#include "core/pace/pace_options.h"
#include "http/client/client_internal.h"

#define AGENT "weir/" WEIR_VERSION
#define TEXT_MAX WR_POLICIES_AGENT_MAX /* longest agent or file name, bytes */
#define TEXTS_MAX ((size_t)1 << 20)
#define CONCURRENCY_MAX 10000
#define QUEUE_MAX 1000000
#define QUEUE_LIMIT ((size_t)100000000)

void weir_client_options_init(weir_client_options *ret_options)
{
    if (ret_options != NULL)
        *ret_options = (weir_client_options){.size = sizeof *ret_options};
}

void weir_fetch_options_init(weir_fetch_options *ret_options)
{
    if (ret_options != NULL)
        *ret_options = (weir_fetch_options){.size = sizeof *ret_options};
}

/* ---- checks ---- */

static bool is_duration(int64_t ns)
{
    return ns >= 0 && ns <= WEIR_DURATION_MAX;
}

static int check_times(const weir_client_options *options)
{
    if (!is_duration(options->connect_timeout_ns))
        return wr_invalid("connect_timeout_ns must be 1 ns to WEIR_DURATION_MAX, or 0 for 10 s");
    if (!is_duration(options->first_byte_timeout_ns))
        return wr_invalid("first_byte_timeout_ns must be 1 ns to WEIR_DURATION_MAX, or 0 for 30 s");
    if (!is_duration(options->total_timeout_ns))
        return wr_invalid("total_timeout_ns must be 1 ns to WEIR_DURATION_MAX, or 0 for 2 min");
    if (!is_duration(options->max_defer_ns))
        return wr_invalid("max_defer_ns must be 1 ns to WEIR_DURATION_MAX, or 0 for 30 min");
    if (options->deadline_ns != WEIR_FOREVER && !is_duration(options->deadline_ns))
        return wr_invalid("deadline_ns must be 1 ns to WEIR_DURATION_MAX, WEIR_FOREVER, or 0 for 10 min");
    return 0;
}

/* Checks a text of one line; NULL is valid. */
static int check_text(const char *text, const char *what)
{
    if (text == NULL || (text[0] != '\0' && strlen(text) <= TEXT_MAX && wr_header_value_ok(text)))
        return 0;
    return wr_invalid_text(what, text, strlen(text), "empty, too long, or with a control character", WR_NOWHERE,
                           "it must be one line of 1 ... 1024 bytes");
}

static int check_proxy(const char *proxy)
{
    if (proxy != NULL && !wr_header_value_ok(proxy))
        /* The message does not show the proxy, because it may contain a password. */
        return wr_invalid("proxy has a control character; it must be one line");
    return proxy != NULL ? wr_net_proxy_check(proxy) : 0;
}

static int check_numbers(const weir_client_options *options)
{
    if ((unsigned)options->robots > WEIR_ROBOTS_IGNORE)
        return wr_invalid("robots must be one of weir_robots_mode");
    double factor = options->robots_delay_factor;
    if (factor != 0 && !(factor >= 0.01 && factor <= 100))
        return wr_invalid("robots_delay_factor must be 0.01 to 100, or 0 for 1");
    if (options->max_robots > WR_POLICIES_HOSTS_MAX)
        return wr_invalid("max_robots must be 1 to 10000000, or 0 for 100000");
    if (options->concurrency > CONCURRENCY_MAX)
        return wr_invalid("concurrency must be 1 to 10000, or 0 for 64");
    if (options->queue_max > QUEUE_LIMIT)
        return wr_invalid("queue_max must be 1 to 100000000, or 0 for 1000000");
    if (options->min_bytes_per_s > UINT32_MAX)
        return wr_invalid("min_bytes_per_s must be 1 to 4294967295, or 0 for 64");
    if (options->max_header_bytes > WR_NET_HEAD_MAX)
        return wr_invalid("max_header_bytes must be 1 to 262144, or 0 for that");
    if (options->max_body_bytes > WR_NET_BODY_MAX)
        return wr_invalid("max_body_bytes must be 1 to 2^40, or 0 for 16 MiB");
    return 0;
}

static int check_client_options(const weir_client_options *options)
{
    if (options->size != sizeof *options)
        return wr_invalid("options->size is not that of weir_client_options; use weir_client_options_init");
    if (check_times(options) != 0 || check_numbers(options) != 0 || check_text(options->agent, "agent") != 0 ||
        check_proxy(options->proxy) != 0 || check_text(options->ca_file, "ca_file") != 0)
        return WEIR_E_INVAL;
    return 0;
}

/* ---- defaults ---- */

#define OR(value, otherwise) (value) = (value) != 0 ? (value) : (otherwise)

static void fill_defaults(weir_client_options *options)
{
    OR(options->robots_delay_factor, 1.0);
    OR(options->max_robots, 100000);
    OR(options->concurrency, 64);
    OR(options->queue_max, QUEUE_MAX);
    OR(options->connect_timeout_ns, 10 * WEIR_SECOND);
    OR(options->first_byte_timeout_ns, 30 * WEIR_SECOND);
    OR(options->total_timeout_ns, 2 * WEIR_MINUTE);
    OR(options->deadline_ns, 10 * WEIR_MINUTE);
    OR(options->max_defer_ns, 30 * WEIR_MINUTE);
    OR(options->min_bytes_per_s, 64);
    OR(options->max_header_bytes, WR_NET_HEAD_MAX);
    OR(options->max_body_bytes, (uint64_t)16 << 20);
    OR(options->max_redirects, 10);
    if (options->max_redirects == UINT32_MAX)
        options->max_redirects = 0;
}

/* ---- copies ---- */

/* Offsets of the texts in the block that is being filled. */
struct client_text_offsets {
    size_t agent, proxy, ca_file, headers;
};

static int pack_client_texts(struct wr_buf *buf, const weir_client_options *options,
                             struct client_text_offsets *ret_places)
{
    ret_places->agent = wr_text_append(buf, options->agent != NULL ? options->agent : AGENT);
    ret_places->proxy = wr_text_append(buf, options->proxy);
    ret_places->ca_file = wr_text_append(buf, options->ca_file);
    ret_places->headers = buf->length;
    return wr_headers_pack(buf, options->headers);
}

static int copy_texts(weir_client *client, const weir_client_options *options)
{
    struct wr_buf buf;
    struct client_text_offsets places;
    wr_buf_init(&buf, client->allocator, TEXTS_MAX);
    int error = pack_client_texts(&buf, options, &places);
    if (error == 0)
        error = wr_buf_take_string(&buf, &client->texts, &client->texts_bytes);
    wr_buf_release(&buf);
    if (error != 0)
        return error == WEIR_E_SPACE ? wr_invalid("headers have more than 1 MiB") : error;
    client->options.agent = client->texts + places.agent;
    client->options.proxy = wr_text_at(client->texts, places.proxy);
    client->options.ca_file = wr_text_at(client->texts, places.ca_file);
    client->headers = client->texts + places.headers;
    return 0;
}

int wr_client_options_copy(weir_client *client, const weir_client_options *options)
{
    weir_client_options defaults;
    weir_pace_options pace;
    weir_client_options_init(&defaults);
    options = options != NULL ? options : &defaults;
    if (check_client_options(options) != 0)
        return WEIR_E_INVAL;
    wr_statuses_init(&client->statuses, WR_STATUSES_JOBS);
    if (options->statuses != NULL && wr_statuses_parse(&client->statuses, options->statuses) != 0)
        return WEIR_E_INVAL;
    if (wr_pace_options_check(options->pace, &pace) != 0)
        return WEIR_E_INVAL;
    client->retry = pace.retry;
    client->options = *options;
    fill_defaults(&client->options);
    return copy_texts(client, options);
}
