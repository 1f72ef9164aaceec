/* SPDX-License-Identifier: MIT */
/* idna.c - converts internationalized domain names with libidn2. */
#include "http/net/idna.h"

#include "base/ascii.h"

#include <idn2.h>

#define DOMAIN_MAX 1024 /* bytes; the longest that wr_url_parse passes */

/* Returns true if the domain has no byte from 0x80 on; A-labels have none. */
static bool is_ascii(struct wr_span domain)
{
    for (size_t i = 0; i < domain.bytes; i++)
        if ((unsigned char)domain.data[i] >= 0x80)
            return false;
    return true;
}

static int append_lower(struct wr_buf *buf, struct wr_span domain)
{
    for (size_t i = 0; i < domain.bytes; i++)
        wr_buf_append_char(buf, wr_ascii_lower(domain.data[i]));
    return 0;
}

/* Replaces the capital sharp s (U+1E9E) by the small one (U+00DF), as the URL standard requires.
 * Old versions of libidn2 make it "ss", which is another name. The text becomes shorter, so it is
 * done in place. */
static void lower_sharp_s(uint8_t *text)
{
    uint8_t *end = text;

    for (; *text != '\0'; text++) {
        if (text[0] == 0xe1 && text[1] == 0xba && text[2] == 0x9e) {
            *end++ = 0xc3;
            *end++ = 0x9f;
            text += 2;
        } else
            *end++ = *text;
    }
    *end = '\0';
}

static int to_ascii(void *context, struct wr_span domain, struct wr_buf *buf)
{
    uint8_t terminated[DOMAIN_MAX + 1];
    uint8_t *ascii = NULL;

    (void)context;
    if (domain.bytes > DOMAIN_MAX)
        return WEIR_E_INVAL;
    memcpy(terminated, domain.data, domain.bytes);
    terminated[domain.bytes] = '\0';
    lower_sharp_s(terminated);
    int result = idn2_lookup_u8(terminated, &ascii, IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL);
    /* An A-label of a symbol: valid, and many are registered. */
    if (result == IDN2_DISALLOWED && is_ascii(domain))
        return append_lower(buf, domain);
    if (result != IDN2_OK)
        return result == IDN2_MALLOC ? WEIR_E_NOMEM : WEIR_E_INVAL;
    wr_buf_append_string(buf, (const char *)ascii);
    idn2_free(ascii);
    return 0;
}

const struct wr_idna *wr_idna_libidn2(void)
{
    static const struct wr_idna idna = {.to_ascii = to_ascii};
    return &idna;
}
