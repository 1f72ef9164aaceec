/* SPDX-License-Identifier: MIT */
/* warm_operand.c - classifies the operands of weir warm and decides which site a URL belongs to. */
#include "cli/warm/warm_operand.h"

#include "base/ascii.h"
#include <weir/web.h>

/* Usual sitemap paths, by the systems that create them: most systems; WordPress with and without
 * its plugins; static sites; feeds last, because they list only new pages. */
const char *const wr_warm_usual_sitemaps[] = {
    "/sitemap.xml",
    "/sitemap_index.xml",
    "/sitemap-index.xml",
    "/wp-sitemap.xml",
    "/sitemap.xml.gz",
    "/sitemap.txt",
    "/sitemap/sitemap.xml",
    "/feed",
    "/rss.xml",
    "/atom.xml",
    NULL,
};

static bool path_ends_with(struct wr_span text, const char *end)
{
    size_t bytes = strlen(end);
    return text.bytes >= bytes && wr_ascii_same(text.data + text.bytes - bytes, end, bytes);
}

static bool contains_word(struct wr_span text, const char *word)
{
    size_t bytes = strlen(word);
    for (size_t i = 0; i + bytes <= text.bytes; i++)
        if (wr_ascii_same(text.data + i, word, bytes))
            return true;
    return false;
}

enum wr_warm_operand wr_warm_operand_kind(const struct wr_url *url)
{
    static const char *const endings[] = {".xml", ".gz", ".rss", ".atom", ".rdf", ".txt"};
    struct wr_span path = wr_url_part(url, url->path_at, url->query_at);
    if (path.bytes <= 1 && url->query_at == url->fragment_at)
        return WR_WARM_SITE;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (path_ends_with(path, endings[i]))
            return WR_WARM_SITEMAP;
    return contains_word(path, "sitemap") ? WR_WARM_SITEMAP : WR_WARM_PAGE;
}

/* Returns the registrable domain of the URL, or its host without a trailing dot. */
static struct wr_span site_domain(const struct wr_url *url)
{
    struct wr_span host = wr_url_host(url);
    if (host.bytes > 0 && host.data[host.bytes - 1] == '.')
        host.bytes--;
    size_t bytes = weir_registrable_domain(NULL, host.data, host.bytes);
    return bytes > 0 ? (struct wr_span){host.data + host.bytes - bytes, bytes} : host;
}

bool wr_warm_is_same_site(const struct wr_url *home, const struct wr_url *url)
{
    struct wr_span ours = site_domain(home), other = site_domain(url);
    if (url->port != home->port && url->port != (url->is_https ? 443 : 80))
        return false;
    return ours.bytes == other.bytes && memcmp(ours.data, other.data, ours.bytes) == 0;
}
