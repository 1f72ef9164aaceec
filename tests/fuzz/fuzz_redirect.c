/* SPDX-License-Identifier: MIT */
/* fuzz_redirect.c - fuzzes Location: it leads to an http URL without a foreign password, or is
 * refused (A11 to A13, C12).
 *
 * The input is "URL NUL Location".
 */
#include "core/web/url/redirect.h"
#include "http/net/idna.h"

#include "fuzz/fuzz.h"

static char from_memory[WR_URL_ROOM], to_memory[WR_URL_ROOM], again_memory[WR_URL_ROOM];

static enum wr_url_fault parse(struct wr_span text, char memory[WR_URL_ROOM], struct wr_url *ret_url)
{
    return wr_url_parse(text, NULL, wr_idna_libidn2(), memory, WR_URL_ROOM, ret_url);
}

/* Checks that a URL without its password equals the parsed form of its text. */
static void check_target(const struct wr_url *to)
{
    struct wr_url again;

    fuzz_check(!wr_url_has_userinfo(to) && to->bytes <= WR_URL_MAX && strlen(to->text) == to->bytes);
    fuzz_check(parse(wr_span_of(to->text), again_memory, &again) == WR_URL_OK);
    fuzz_check(strcmp(again.text, to->text) == 0 && again.host_at == to->host_at && again.host_end == to->host_end);
    fuzz_check(again.path_at == to->path_at && again.query_at == to->query_at && again.fragment_at == to->fragment_at);
    fuzz_check(again.port == to->port && again.is_https == to->is_https);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const int statuses[] = {301, 302, 303, 307, 308};
    struct wr_span text = {(const char *)data, bytes};
    size_t divide = wr_span_find(text, '\0');
    struct wr_url from, to = {.bytes = 4711};

    if (divide == bytes || parse((struct wr_span){text.data, divide}, from_memory, &from) != WR_URL_OK)
        return 0;
    struct wr_span location = wr_span_after(text, divide + 1);
    struct wr_redirect redirect = wr_redirect_read(statuses[bytes % 5], wr_span_of("POST"), &from, location,
                                                   wr_idna_libidn2(), to_memory, sizeof to_memory, &to);
    if (redirect.kind == WR_REDIRECT_FOLLOW) {
        check_target(&to);
        fuzz_check(redirect.keeps_origin == wr_url_same_origin(&from, &to));
    } else {
        fuzz_check(to.bytes == 4711 && (redirect.kind == WR_REDIRECT_NOT) == (location.bytes == 0));
    }
    return 0;
}
