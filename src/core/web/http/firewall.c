/* SPDX-License-Identifier: MIT */
/* firewall.c - recognizes firewalls by two tables: signs in the head, and rules that combine
 * them. */
#include "core/web/http/firewall.h"

#include "base/ascii.h"
#include "core/web/http/field.h"

#define SMALL 8192 /* most bytes of a small body; an article that quotes a refusal is longer */
#define MARKS 4    /* maximum number of marks of a rule */

const char *wr_firewall_name(enum wr_firewall firewall)
{
    static const char *const names[] = {
#define X(firewall, name) name,
        WR_FIREWALLS(X)
#undef X
    };
    return (unsigned)firewall < sizeof names / sizeof names[0] ? names[firewall] : "";
}

enum wr_firewall wr_firewall_by_name(struct wr_span name)
{
    for (int i = WR_FIREWALL_NONE + 1; i < WR_FIREWALL_OTHER; i++)
        if (wr_span_is(name, wr_firewall_name((enum wr_firewall)i)))
            return (enum wr_firewall)i;
    return WR_FIREWALL_OTHER;
}

/* ---- signs in the head ---- */

enum firewall_sign {
    CLOUDFLARE = 1 << 0,
    CLOUDFLARE_ASKS = 1 << 1,
    IMPERVA = 1 << 2,
    DATADOME = 1 << 3,
    AKAMAI = 1 << 4,
    AMAZON = 1 << 5,
    AMAZON_ASKS = 1 << 6,
    SUCURI = 1 << 7,
    SUCURI_BLOCKS = 1 << 8,
    F5 = 1 << 9,
    KASADA = 1 << 10,
    AZURE = 1 << 11,
    VERCEL_ASKS = 1 << 12,
    DDOS_GUARD = 1 << 13,
    RADWARE_ASKS = 1 << 14,
};

/* Signs of firewalls in header fields. Names and parts are in small letters. */
static const struct {
    const char *name, *part; /* `part` of the field's value; "": any value */
    enum firewall_sign sign;
} signs[] = {
    {"server", "cloudflare", CLOUDFLARE},
    {"server", "datadome", DATADOME},
    {"server", "akamaighost", AKAMAI},
    {"server", "cloudfront", AMAZON},
    {"server", "awselb", AMAZON},
    {"server", "sucuri", SUCURI},
    {"server", "bigip", F5},
    {"server", "big-ip", F5},
    {"server", "ddos-guard", DDOS_GUARD},
    {"set-cookie", "incap_ses_", IMPERVA},
    {"set-cookie", "visid_incap_", IMPERVA},
    {"set-cookie", "datadome=", DATADOME},
    {"set-cookie", "bigipserver", F5},
    {"set-cookie", "ts01", F5},
    {"cf-mitigated", "challenge", CLOUDFLARE_ASKS},
    {"x-iinfo", "", IMPERVA},
    {"x-cdn", "imperva", IMPERVA},
    {"x-cdn", "incapsula", IMPERVA},
    {"x-datadome", "", DATADOME},
    {"x-dd-b", "", DATADOME},
    {"x-amzn-waf-action", "", AMAZON_ASKS},
    {"x-sucuri-id", "", SUCURI},
    {"x-sucuri-block", "", SUCURI_BLOCKS},
    {"x-kpsdk-ct", "", KASADA},
    {"x-azure-ref", "", AZURE},
    {"x-vercel-mitigated", "", VERCEL_ASKS},
    {"location", "validate.perfdrive.com", RADWARE_ASKS},
};

/* Returns true if `text` contains `part`, ignoring case. `part` is in small letters. */
static bool contains_lowercase(struct wr_span text, const char *part)
{
    size_t bytes = strlen(part);
    for (size_t at = 0; at + bytes <= text.bytes; at++) {
        if (bytes > 0 && wr_ascii_lower(text.data[at]) != part[0])
            continue;
        if (wr_ascii_same(text.data + at, part, bytes))
            return true;
    }
    return false;
}

void wr_firewall_field(struct wr_firewall_evidence *look, struct wr_span name, struct wr_span value)
{
    char first = name.bytes > 0 ? wr_ascii_lower(name.data[0]) : '\0'; /* rules out most signs */
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
        if (signs[i].name[0] == first && wr_field_is(name, signs[i].name) && contains_lowercase(value, signs[i].part))
            look->signs |= (uint32_t)signs[i].sign;
}

/* ---- rules ---- */

enum status_bits {
    ANY = 1 << 0,
    S200 = 1 << 1,
    S202 = 1 << 2,
    S403 = 1 << 3,
    S405 = 1 << 4,
    S406 = 1 << 5,
    S429 = 1 << 6,
    S503 = 1 << 7,
};

/* A rule matches if the status is one of `statuses`, all `signs` were seen, and the body contains
 * one of the marks, if there are any. A bare 429 asks for a slower rate and is not a refusal. */
static const struct firewall_rule {
    enum wr_firewall firewall;
    int statuses;
    uint32_t signs;
    bool is_small;
    const char *marks[MARKS]; /* texts in the body, in small letters */
} rules[] = {
    {WR_FIREWALL_CLOUDFLARE, ANY, CLOUDFLARE_ASKS, false, {NULL}},
    {WR_FIREWALL_CLOUDFLARE, S403 | S503, CLOUDFLARE, false, {"cf-error-details", "_cf_chl_opt", "error code: 10"}},
    {WR_FIREWALL_IMPERVA, S403, IMPERVA, false, {"incapsula incident id", "_incapsula_resource?"}},
    {WR_FIREWALL_IMPERVA, S200 | S503, IMPERVA, true, {"incapsula incident id"}},
    {WR_FIREWALL_DATADOME, S403 | S405, DATADOME, false, {"captcha-delivery.com", "var dd="}},
    {WR_FIREWALL_AKAMAI, S403, AKAMAI, false, {"reference&#32;&#35;", "reference #", "edgesuite.net"}},
    {WR_FIREWALL_AKAMAI, S403, 0, true, {"errors.edgesuite.net/"}},
    {WR_FIREWALL_AWS, S202 | S403 | S405, AMAZON_ASKS, false, {NULL}},
    {WR_FIREWALL_AWS, S403, AMAZON, true, {"request blocked."}},
    {WR_FIREWALL_SUCURI, S403 | S503, SUCURI_BLOCKS, false, {NULL}},
    {WR_FIREWALL_SUCURI, S403 | S503, SUCURI, false, {"sucuri website firewall", "cloudproxy@sucuri.net"}},
    {WR_FIREWALL_PERIMETERX, S403 | S429, 0, false, {"px-captcha"}},
    {WR_FIREWALL_F5, S200, F5, true, {"the requested url was rejected. please consult with your administrator"}},
    {WR_FIREWALL_F5, S403, 0, true, {"the requested url was rejected. please consult with your administrator"}},
    {WR_FIREWALL_KASADA, S403 | S429, KASADA, false, {NULL}},
    {WR_FIREWALL_AZURE, S403, AZURE, true, {"the request is blocked."}},
    {WR_FIREWALL_VERCEL, S403 | S429, VERCEL_ASKS, false, {NULL}},
    {WR_FIREWALL_DDOS_GUARD, S403, DDOS_GUARD, false, {"ddos-guard"}},
    {WR_FIREWALL_WORDFENCE, S403 | S503, 0, false, {"generated by wordfence"}},
    {WR_FIREWALL_MODSECURITY, S403 | S406, 0, true, {"generated by mod_security", "modsecurity action"}},
    {WR_FIREWALL_FORTINET, S403, 0, false, {"fgd_icon", "fortiweb"}},
    {WR_FIREWALL_RADWARE, ANY, RADWARE_ASKS, false, {NULL}},
};

static int status_bits_of(int status)
{
    static const struct {
        int status, class;
    } classes[] = {{200, S200}, {202, S202}, {403, S403}, {405, S405}, {406, S406}, {429, S429}, {503, S503}};
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (classes[i].status == status)
            return classes[i].class | ANY;
    return ANY;
}

static bool fits_head(const struct firewall_rule *rule, const struct wr_firewall_evidence *look, int class)
{
    return (rule->statuses & class) != 0 && (rule->signs & ~look->signs) == 0;
}

bool wr_firewall_needs_body(const struct wr_firewall_evidence *look)
{
    int class = status_bits_of(look->status);
    if (look->status == 200 && look->signs == 0) /* true for nearly all responses */
        return false;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].marks[0] != NULL && fits_head(&rules[i], look, class))
            return true;
    return false;
}

static bool fits_body(const struct firewall_rule *rule, struct wr_span first, uint64_t body_bytes)
{
    if (rule->marks[0] == NULL)
        return true;
    if (rule->is_small && body_bytes > SMALL)
        return false;
    for (size_t i = 0; i < MARKS && rule->marks[i] != NULL; i++)
        if (contains_lowercase(first, rule->marks[i]))
            return true;
    return false;
}

enum wr_firewall wr_firewall_identify(const struct wr_firewall_evidence *look, struct wr_span first,
                                      uint64_t body_bytes)
{
    int class = status_bits_of(look->status);
    if (look->status == 200 && look->signs == 0)
        return WR_FIREWALL_NONE;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (fits_head(&rules[i], look, class) && fits_body(&rules[i], first, body_bytes))
            return rules[i].firewall;
    return WR_FIREWALL_NONE;
}
