/* SPDX-License-Identifier: MIT */
/* address.h - where a store is, out of a URL. */
#ifndef WR_SHELL_SHARE_ADDRESS_H
#define WR_SHELL_SHARE_ADDRESS_H

struct wr_store_address {
    char path[108]; /* of a Unix socket; empty: */
    char host[108]; /* a name or an address */
    int port;
    char user[256], password[256]; /* empty: none */
};

/* redis://[[USER]:PASSWORD@]HOST[:PORT] or unix:PATH. What is not a letter or digit of user and password may be written
 * %XX. WEIR_E_INVAL. */
int wr_store_address_parse(const char *url, struct wr_store_address *ret_address);

#endif
