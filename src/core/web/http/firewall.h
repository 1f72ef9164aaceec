/* SPDX-License-Identifier: MIT */
/* firewall.h - recognizes responses of web application firewalls that refuse the crawler.
 *
 *     struct wr_firewall_evidence look = wr_firewall_begin(status);
 *     for each field of the head: wr_firewall_field(&look, name, value);
 *     if (wr_firewall_needs_body(&look)) ... keep the first WR_FIREWALL_BYTES of the body ...
 *     firewall = wr_firewall_identify(&look, first_bytes, body_bytes);
 *
 * Status, fields and text of the page must agree, because a site behind a firewall sends 403 and
 * 404 of its own as well, and there are articles about firewalls. In doubt the response counts as
 * the site's own. A page that asks for a proof of being human is a refusal like any other.
 */
#ifndef WR_CORE_WEB_HTTP_FIREWALL_H
#define WR_CORE_WEB_HTTP_FIREWALL_H

#include "base/span.h"

#define WR_FIREWALL_BYTES 16384 /* bytes of a body that are searched */

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
    X(WR_FIREWALL_OTHER, "another") /* known to another version of weir */

enum wr_firewall {
#define X(firewall, name) firewall,
    WR_FIREWALLS(X)
#undef X
};
#define WR_FIREWALL_COUNT (WR_FIREWALL_OTHER + 1)

/* Returns the name of a firewall, such as "Cloudflare"; "" for NONE and for invalid numbers. */
const char *wr_firewall_name(enum wr_firewall firewall);
/* Returns the firewall with that name, OTHER if the name is unknown. */
enum wr_firewall wr_firewall_by_name(struct wr_span name);

struct wr_firewall_evidence {
    int status;
    uint32_t signs; /* set of enum sign in firewall.c, found in the fields */
};

static inline struct wr_firewall_evidence wr_firewall_begin(int status)
{
    return (struct wr_firewall_evidence){status, 0};
}

void wr_firewall_field(struct wr_firewall_evidence *look, struct wr_span name, struct wr_span value);

/* Returns true if the decision needs the body. */
bool wr_firewall_needs_body(const struct wr_firewall_evidence *look);

/* Returns the firewall that sent the response. `first` is the start of the body, at most
 * WR_FIREWALL_BYTES of `body_bytes`. */
enum wr_firewall wr_firewall_identify(const struct wr_firewall_evidence *look, struct wr_span first,
                                      uint64_t body_bytes);

#endif
