/* SPDX-License-Identifier: MIT */
/* idna.h - internationalized domain names, by libidn2. */
#ifndef WR_SHELL_NET_IDNA_H
#define WR_SHELL_NET_IDNA_H

#include "core/rules/url/url.h"

/* For wr_url_parse. UTS 46 non-transitional, as browsers do it, but libidn2 also refuses what IDNA 2008 leaves out:
 * symbols and emoji are no names here, unless they come as A-labels ("xn--i-7iq.ws"), which are looked up as they are,
 * and names that are not ASCII have no '-' at the ends of their labels.
 * Any thread. */
const struct wr_idna *wr_idna_libidn2(void);

#endif
