/* SPDX-License-Identifier: MIT */
/* forms.c - derives from a URL its host key, the URL of its robots.txt, and its canonical form. */
#include "core/web/url/url.h"

#include "base/ascii.h"
#include "core/web/url/percent.h"

/* Returns the host without the trailing dot. Almost all servers treat both spellings alike. */
static struct wr_span host_without_dot(const struct wr_url *url)
{
    struct wr_span host = wr_url_host(url);
    if (host.data[host.bytes - 1] == '.')
        host.bytes--;
    return host;
}

static bool has_port(const struct wr_url *url)
{
    return url->port != (url->is_https ? 443 : 80);
}

bool wr_url_same_origin(const struct wr_url *a, const struct wr_url *b)
{
    struct wr_span host_a = wr_url_host(a), host_b = wr_url_host(b);
    return a->is_https == b->is_https && a->port == b->port && host_a.bytes == host_b.bytes &&
           memcmp(host_a.data, host_b.data, host_a.bytes) == 0;
}

void wr_url_append_key(struct wr_buf *buf, const struct wr_url *url)
{
    wr_buf_append_span(buf, host_without_dot(url));
    if (has_port(url)) {
        wr_buf_append_char(buf, ':');
        wr_buf_append_u64(buf, url->port);
    }
}

static void append_url_origin(struct wr_buf *buf, const struct wr_url *url)
{
    wr_buf_append_string(buf, url->is_https ? "https://" : "http://");
    wr_url_append_key(buf, url);
}

void wr_url_append_robots(struct wr_buf *buf, const struct wr_url *url)
{
    append_url_origin(buf, url);
    wr_buf_append_string(buf, "/robots.txt");
}

void wr_url_append_canonical(struct wr_buf *buf, const struct wr_url *url)
{
    static const struct wr_percent_set nothing = {{0}};

    append_url_origin(buf, url);
    wr_percent_append_normal(buf, wr_url_target(url), &nothing);
}

enum wr_url_fault wr_url_canonical(const struct wr_url *url, char *memory, size_t memory_bytes, struct wr_url *ret_url)
{
    size_t host_at = url->is_https ? strlen("https://") : strlen("http://");
    size_t host_end = host_at + host_without_dot(url).bytes;
    size_t path_at = host_end + (size_t)(url->path_at - url->host_end); /* after the port */
    struct wr_buf buf;

    wr_buf_init_fixed(&buf, memory, memory_bytes < WR_URL_ROOM ? memory_bytes : WR_URL_ROOM);
    wr_url_append_canonical(&buf, url);
    if (buf.error != 0)
        return WR_URL_LONG;
    struct wr_span target = {memory + path_at, buf.length - path_at};
    *ret_url = (struct wr_url){.text = memory,
                               .bytes = (uint16_t)buf.length,
                               .host_at = (uint16_t)host_at,
                               .host_end = (uint16_t)host_end,
                               .path_at = (uint16_t)path_at,
                               .query_at = (uint16_t)(path_at + wr_span_find(target, '?')),
                               .fragment_at = (uint16_t)buf.length,
                               .port = url->port,
                               .is_https = url->is_https};
    return WR_URL_OK;
}

/* Returns true for controls and blanks, which the parser may skip. */
static bool is_ignored_char(char c)
{
    return c > '\0' && c <= ' ';
}

/* Returns the offset of the authority: after "https:", slashes of either kind, or both. */
static size_t authority_at(struct wr_span text)
{
    size_t at = 0;
    while (at < text.bytes && (wr_ascii_is_alnum(text.data[at]) || is_ignored_char(text.data[at])))
        at++;
    at = at < text.bytes && text.data[at] == ':' ? at + 1 : 0;
    while (at < text.bytes && (text.data[at] == '/' || text.data[at] == '\\' || is_ignored_char(text.data[at])))
        at++;
    return at;
}

void wr_url_hide_user(char *text)
{
    size_t at = authority_at(wr_span_of(text)), bytes = strcspn(text + at, "/\\?#"), end = bytes;
    while (end > 0 && text[at + end - 1] != '@')
        end--;
    memmove(text + at, text + at + end, strlen(text + at + end) + 1);
}

/* Returns the offset of a port that is not a number, or the length of the text if there is no such
 * port. */
static size_t bad_port_at(struct wr_span text, size_t host_at)
{
    size_t at = host_at;
    while (at < text.bytes && strchr(":/\\?#[", text.data[at]) == NULL)
        at++;
    if (at == text.bytes || text.data[at] != ':')
        return text.bytes;
    size_t end = at + 1;
    while (end < text.bytes && wr_ascii_is_digit(text.data[end]))
        end++;
    return end == text.bytes || strchr("/\\?#", text.data[end]) != NULL ? text.bytes : at + 1;
}

/* Returns the offset of the end of the authority that starts at `at`. */
static size_t authority_end(struct wr_span text, size_t at)
{
    while (at < text.bytes && strchr("/\\?#", text.data[at]) == NULL)
        at++;
    return at;
}

void wr_url_redact_invalid(struct wr_span text, char *ret_shown, size_t room)
{
    struct wr_buf buf;
    size_t at = authority_at(text), host_at = text.bytes;
    while (host_at > at && text.data[host_at - 1] != '@')
        host_at--;
    size_t authority = authority_end(text, at);
    if (bad_port_at(text, at) == text.bytes && memchr(text.data + at, '@', authority - at) == NULL)
        host_at = at; /* the last '@' belongs to the path */
    size_t end = bad_port_at(text, host_at);
    wr_buf_init_fixed(&buf, ret_shown, room);
    wr_buf_append(&buf, text.data, at);
    wr_buf_append(&buf, text.data + host_at, end - host_at);
    wr_buf_append_string(&buf, end < text.bytes ? "..." : "");
}
