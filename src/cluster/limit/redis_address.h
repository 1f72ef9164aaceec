/* SPDX-License-Identifier: MIT */
/* redis_address.h - parses the URL of a store. */
#ifndef WR_CLUSTER_LIMIT_REDIS_ADDRESS_H
#define WR_CLUSTER_LIMIT_REDIS_ADDRESS_H

struct wr_redis_address {
    char path[108]; /* path of a Unix socket; empty: `host` and `port` */
    char host[108]; /* name or address */
    int port;
    char user[256], password[256]; /* decoded credentials; empty: none */
};

/* Parses redis://[[USER]:PASSWORD@]HOST[:PORT] or unix:PATH. In user and password, %XX stands for a
 * byte. Returns WEIR_E_INVAL if it is invalid. */
int wr_redis_address_parse(const char *url, struct wr_redis_address *ret_address);

#endif
