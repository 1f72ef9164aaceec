/* SPDX-License-Identifier: MIT */
/* firewall.h - is this answer the site's, or a web application firewall's that does not let us in?
 *
 *     struct wr_firewall_look look = wr_firewall_begin(status);
 *     for each field of the head: wr_firewall_field(&look, name, value);
 *     if (wr_firewall_wants(&look)) … keep the first WR_FIREWALL_BYTES of the body …
 *     firewall = wr_firewall_judge(&look, first_bytes, body_bytes);
 *
 * Status, fields and words of the page have to agree: a site that is behind such a firewall answers 403 and 404 itself
 * as well, and people write articles about firewalls. Where in doubt it is the site's own answer. A page that asks us
 * to prove that we are people is a refusal like any other: we are not.
 */
#ifndef WR_CORE_RULES_HTTP_FIREWALL_H
#define WR_CORE_RULES_HTTP_FIREWALL_H

#include "base/span.h"

#define WR_FIREWALL_BYTES 16384 /* of a body that are looked at */

#define WR_FIREWALLS(X)                       \
    X(WR_FIREWALL_NONE, "")                   \
    X(WR_FIREWALL_CLOUDFLARE, "Cloudflare")   \
    X(WR_FIREWALL_IMPERVA, "Imperva")         \
    X(WR_FIREWALL_DATADOME, "DataDome")       \
    X(WR_FIREWALL_AKAMAI, "Akamai")           \
    X(WR_FIREWALL_AWS, "AWS WAF")             \
    X(WR_FIREWALL_SUCURI, "Sucuri")           \
    X(WR_FIREWALL_PERIMETERX, "PerimeterX")   \
    X(WR_FIREWALL_F5, "F5")                   \
    X(WR_FIREWALL_KASADA, "Kasada")           \
    X(WR_FIREWALL_AZURE, "Azure")             \
    X(WR_FIREWALL_VERCEL, "Vercel")           \
    X(WR_FIREWALL_DDOS_GUARD, "DDoS-Guard")   \
    X(WR_FIREWALL_WORDFENCE, "Wordfence")     \
    X(WR_FIREWALL_MODSECURITY, "ModSecurity") \
    X(WR_FIREWALL_FORTINET, "Fortinet")       \
    X(WR_FIREWALL_RADWARE, "Radware")         \
    X(WR_FIREWALL_OTHER, "another") /* that another weir knew */

enum wr_firewall {
#define X(firewall, name) firewall,
    WR_FIREWALLS(X)
#undef X
};
#define WR_FIREWALL_COUNT (WR_FIREWALL_OTHER + 1)

/* "Cloudflare", …; "" for none, and for a number that is none. */
const char *wr_firewall_name(enum wr_firewall firewall);
/* OTHER for a name that is none of them. */
enum wr_firewall wr_firewall_named(struct wr_span name);

struct wr_firewall_look {
    int status;
    uint32_t signs; /* seen in the fields */
};

static inline struct wr_firewall_look wr_firewall_begin(int status)
{
    return (struct wr_firewall_look){status, 0};
}

void wr_firewall_field(struct wr_firewall_look *look, struct wr_span name, struct wr_span value);

/* Whether the body may tell. */
bool wr_firewall_wants(const struct wr_firewall_look *look);

/* `first`: at most WR_FIREWALL_BYTES of a body of `body_bytes`. */
enum wr_firewall wr_firewall_judge(const struct wr_firewall_look *look, struct wr_span first, uint64_t body_bytes);

#endif
