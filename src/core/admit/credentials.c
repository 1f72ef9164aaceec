/* SPDX-License-Identifier: MIT */
/* credentials.c - extracts the secret of an Authorization field, if it has only one spelling.
 *
 * Services parse the field in many ways: they split at blanks and use the second word, ignore bytes
 * that are not Base64, strip quotes, or stop at a comma. So a value that has a second spelling for
 * one of them is rejected here.
 */
#include "core/admit/credentials.h"

#include "base/ascii.h"

bool wr_credentials_are_in(const char *header)
{
    return strcmp(header, "authorization") == 0 || strcmp(header, "proxy-authorization") == 0;
}

static bool is_space_or_tab(char c)
{
    return c == ' ' || c == '\t';
}

/* Takes a word, and the blanks after it, from the front of `rest`. */
static struct wr_span take_credential_word(struct wr_span *rest)
{
    size_t bytes = 0;

    while (bytes < rest->bytes && !is_space_or_tab(rest->data[bytes]))
        bytes++;
    struct wr_span word = {rest->data, bytes};
    while (bytes < rest->bytes && is_space_or_tab(rest->data[bytes]))
        bytes++;
    *rest = wr_span_after(*rest, bytes);
    return word;
}

/* Returns true for token68 of RFC 9110 11.2 and the other characters found in real tokens; '=' only
 * at the end. */
static bool is_token68(struct wr_span token)
{
    bool has_ended = false;

    for (size_t i = 0; i < token.bytes; i++) {
        char c = token.data[i];
        if (!wr_ascii_is_printable(c) || strchr("\"',;\\", c) != NULL || (has_ended && c != '='))
            return false;
        has_ended = c == '=';
    }
    return true;
}

/* Returns 0 ... 63, or -1. `last` has the two characters that differ between alphabets: "+/" or
 * "-_". */
static int base64_value(char c, const char *last)
{
    if (wr_ascii_is_digit(c))
        return c - '0' + 52;
    if (wr_ascii_is_alpha(c))
        return c == wr_ascii_lower(c) ? c - 'a' + 26 : c - 'A';
    return c == last[0] ? 62 : c == last[1] ? 63 : -1;
}

/* Returns true if all characters are Base64 digits, without padding, and no bit of the last one is
 * dropped (RFC 4648 3.5). Otherwise several texts would decode to the same bytes in most
 * parsers. */
static bool is_base64(struct wr_span text, const char *last)
{
    for (size_t i = 0; i < text.bytes; i++) {
        if (base64_value(text.data[i], last) < 0)
            return false;
    }
    int lost = text.bytes % 4 == 2 ? 0x0f : text.bytes % 4 == 3 ? 0x03 : 0;
    return text.bytes % 4 != 1 && (text.bytes == 0 || (base64_value(text.data[text.bytes - 1], last) & lost) == 0);
}

/* Checks the padded Base64 of user and password (RFC 7617). */
static bool is_basic_right(struct wr_span token)
{
    size_t bytes = token.bytes;

    while (bytes > 0 && token.data[bytes - 1] == '=')
        bytes--;
    return token.bytes % 4 == 0 && token.bytes - bytes <= 2 && is_base64((struct wr_span){token.data, bytes}, "+/");
}

/* Checks a JSON Web Token (RFC 7515 3.1), which begins with the Base64 of "{\"" and has no padding.
 * Returns true for any other token. */
static bool is_jwt_right(struct wr_span token)
{
    bool is_jwt = token.bytes >= 3 && memcmp(token.data, "eyJ", 3) == 0 && wr_span_find(token, '.') < token.bytes;

    while (is_jwt && token.bytes > 0) {
        struct wr_span part = {token.data, wr_span_find(token, '.')};
        if (!is_base64(part, "-_"))
            return false;
        token = wr_span_after(token, part.bytes < token.bytes ? part.bytes + 1 : part.bytes);
    }
    return true;
}

weir_request_fault wr_credentials_read(struct wr_span value, struct wr_span *ret_token)
{
    struct wr_span rest = wr_span_trim(value);
    struct wr_span scheme = take_credential_word(&rest), token = take_credential_word(&rest);
    bool is_basic = scheme.bytes == 5 && wr_ascii_same(scheme.data, "basic", 5);

    if (scheme.bytes == 0)
        return WEIR_FAULT_MISSING;
    if (token.bytes == 0)
        token = scheme;
    bool is_right = rest.bytes == 0 && is_token68(scheme) && is_token68(token);
    if (!is_right || !(is_basic ? is_basic_right(token) : is_jwt_right(token)))
        return WEIR_FAULT_CREDENTIALS;
    *ret_token = token;
    return WEIR_FAULT_NONE;
}
