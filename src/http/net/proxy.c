/* SPDX-License-Identifier: MIT */
/* proxy.c - parses the proxy's URL. Its name is resolved here; only the proxy gets the password. */
#include "http/net/net_internal.h"

#include "base/error.h"
#include "core/web/url/percent.h"

/* Decodes percent-encoding. Returns false if the result is too long or has a NUL. */
static bool decode_percent(struct wr_span text, char *ret_text, size_t room)
{
    struct wr_buf buf;

    wr_buf_init_fixed(&buf, ret_text, room);
    while (text.bytes > 0) {
        int byte = wr_percent_peek(text);
        if (byte == 0)
            return false;
        wr_buf_append_char(&buf, byte > 0 ? (char)byte : text.data[0]);
        text = wr_span_after(text, byte > 0 ? 3 : 1);
    }
    return buf.error == 0;
}

static bool take_userinfo(const struct wr_url *url, struct wr_proxy *proxy)
{
    size_t scheme = strlen(url->is_https ? "https://" : "http://");
    if (!wr_url_has_userinfo(url))
        return true;
    struct wr_span user = wr_url_part(url, scheme, (size_t)url->host_at - 1);
    size_t colon = wr_span_find(user, ':');
    struct wr_span password = wr_span_after(user, colon < user.bytes ? colon + 1 : colon);

    return decode_percent((struct wr_span){user.data, colon}, proxy->user, sizeof proxy->user) &&
           decode_percent(password, proxy->password, sizeof proxy->password);
}

int wr_proxy_parse(const char *text, struct wr_proxy *ret_proxy)
{
    char memory[WR_URL_ROOM];
    struct wr_proxy proxy = {.is_set = true};
    struct wr_url url;
    struct wr_buf buf;

    if (wr_url_parse(wr_span_of(text), NULL, NULL, memory, sizeof memory, &url) != WR_URL_OK || url.port == 0 ||
        url.bytes > url.path_at + 1 || !take_userinfo(&url, &proxy))
        return wr_invalid("a proxy is http://host:port or https://host:port, perhaps with user:password@ before the "
                          "host, and no path after it");
    struct wr_span host = wr_url_host(&url);
    wr_buf_init_fixed(&buf, proxy.url, sizeof proxy.url);
    wr_buf_append_string(&buf, url.is_https ? "https://" : "http://");
    wr_buf_append_span(&buf, host);
    wr_buf_append_char(&buf, ':');
    wr_buf_append_u64(&buf, url.port);
    wr_host_copy(host, proxy.host);
    proxy.port = url.port;
    proxy.is_https = url.is_https;
    *ret_proxy = proxy;
    return 0;
}

int wr_net_proxy_check(const char *proxy)
{
    struct wr_proxy parsed;
    return wr_proxy_parse(proxy, &parsed);
}
