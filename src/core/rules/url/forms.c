/* SPDX-License-Identifier: MIT */
/* forms.c - what is made of a URL: its key, its robots.txt, its canonical form. */
#include "core/rules/url/url.h"

#include "base/ascii.h"
#include "core/rules/url/percent.h"

/* "example.org." and "example.org" are the same name to everybody but a few servers. */
static struct wr_span bare_host(const struct wr_url *url)
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
    wr_buf_append_span(buf, bare_host(url));
    if (has_port(url)) {
        wr_buf_append_char(buf, ':');
        wr_buf_append_u64(buf, url->port);
    }
}

static void append_origin(struct wr_buf *buf, const struct wr_url *url)
{
    wr_buf_append_string(buf, url->is_https ? "https://" : "http://");
    wr_url_append_key(buf, url);
}

void wr_url_append_robots(struct wr_buf *buf, const struct wr_url *url)
{
    append_origin(buf, url);
    wr_buf_append_string(buf, "/robots.txt");
}

void wr_url_append_canonical(struct wr_buf *buf, const struct wr_url *url)
{
    static const struct wr_percent_set nothing = {{0}};

    append_origin(buf, url);
    wr_percent_append_normal(buf, wr_url_target(url), &nothing);
}

/* Whether the parser passes over it, wherever it stands. */
static bool is_nothing(char c)
{
    return c > '\0' && c <= ' ';
}

/* Where the authority begins, if there is one: behind "https:", slashes of either kind, or both. */
static size_t authority_at(const char *text)
{
    size_t at = 0;
    while (wr_ascii_is_alnum(text[at]) || is_nothing(text[at]))
        at++;
    at = text[at] == ':' ? at + 1 : 0;
    while (text[at] == '/' || text[at] == '\\' || is_nothing(text[at]))
        at++;
    return at;
}

void wr_url_hide_user(char *text)
{
    size_t at = authority_at(text), bytes = strcspn(text + at, "/\\?#"), end = bytes;
    while (end > 0 && text[at + end - 1] != '@')
        end--;
    memmove(text + at, text + at + end, strlen(text + at + end) + 1);
}
