/* SPDX-License-Identifier: MIT */
/* idna.c - internationalized domain names, by libidn2. */
#include "shell/net/idna.h"

#include "base/ascii.h"

#include <idn2.h>

#define DOMAIN_MAX 1024 /* bytes; wr_url_parse gives no more */

/* Bytes from 0x80 on are in no A-label. */
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

/* The capital sharp s (U+1E9E) is the small one (U+00DF), says the URL standard; old versions of libidn2 make it "ss",
 * which is another name. The text becomes shorter, so this happens in place. */
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
    if (result == IDN2_DISALLOWED && is_ascii(domain)) /* an A-label of a symbol: sound, and registered by many */
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
