/* SPDX-License-Identifier: MIT */
/* fuzz_url.c - fuzzes URLs with any base: an accepted URL is printable, parses to itself, and has
 * one canonical form.
 *
 * The input is "base NUL reference", or a URL without a base.
 */
#include "core/web/url/url.h"
#include "http/net/idna.h"

#include "fuzz/fuzz.h"

static char base_memory[WR_URL_ROOM], memory[WR_URL_ROOM], again_memory[WR_URL_ROOM];
static char forms[2][3 * WR_URL_ROOM];

static void check_parts(const struct wr_url *url)
{
    fuzz_check(url->bytes <= WR_URL_MAX && url->text[url->bytes] == '\0');
    fuzz_check(url->host_at < url->host_end && url->host_end <= url->path_at && url->path_at < url->query_at);
    fuzz_check(url->query_at <= url->fragment_at && url->fragment_at <= url->bytes);
    for (size_t i = 0; i < url->bytes; i++)
        fuzz_check(url->text[i] > 0x20 && url->text[i] < 0x7f);
    struct wr_span host = wr_url_host(url);
    for (size_t i = 0; i < host.bytes; i++)
        fuzz_check(strchr("\"'<>\\/%@ ", host.data[i]) == NULL);
}

static void append_canonical(char *form, const struct wr_url *url)
{
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, form, sizeof forms[0]);
    wr_url_append_canonical(&buf, url);
    fuzz_check(buf.error == 0);
}

static void check_stable(const struct wr_url *url)
{
    struct wr_url again;
    fuzz_check(wr_url_parse(wr_span_of(url->text), NULL, wr_idna_libidn2(), again_memory, sizeof again_memory,
                            &again) == WR_URL_OK);
    fuzz_check(strcmp(again.text, url->text) == 0 && again.host_at == url->host_at && again.port == url->port &&
               again.path_at == url->path_at && again.query_at == url->query_at &&
               again.fragment_at == url->fragment_at);
    append_canonical(forms[0], url);
    if (wr_url_parse(wr_span_of(forms[0]), NULL, wr_idna_libidn2(), again_memory, sizeof again_memory, &again) !=
        WR_URL_OK) {
        fuzz_check(strlen(forms[0]) > WR_URL_MAX);
        return;
    }
    append_canonical(forms[1], &again);
    fuzz_check(strcmp(again.text, forms[0]) == 0 && strcmp(forms[0], forms[1]) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct wr_span input = {(const char *)data, bytes};
    struct wr_url base, url;
    bool has_base = false;
    size_t divide = wr_span_find(input, '\0');

    if (divide < bytes) {
        struct wr_span first = {input.data, divide};
        has_base = wr_url_parse(first, NULL, wr_idna_libidn2(), base_memory, sizeof base_memory, &base) == WR_URL_OK;
        if (has_base)
            input = wr_span_after(input, divide + 1);
    }
    if (wr_url_parse(input, has_base ? &base : NULL, wr_idna_libidn2(), memory, sizeof memory, &url) != WR_URL_OK)
        return 0;
    check_parts(&url);
    check_stable(&url);
    return 0;
}
