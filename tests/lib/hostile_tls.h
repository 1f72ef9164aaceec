/* SPDX-License-Identifier: MIT */
/* hostile_tls.h - valid and invalid certificates, made when the test runs. */
#ifndef WEIR_TEST_HOSTILE_TLS_H
#define WEIR_TEST_HOSTILE_TLS_H

#include <openssl/ssl.h>
#include <stdbool.h>

struct hostile_tls {
    SSL_CTX *context;
};

enum hostile_certificate {
    HOSTILE_GOOD, /* for "localhost" and 127.0.0.1, signed by the authority below */
    HOSTILE_SELF_SIGNED,
    HOSTILE_EXPIRED,
    HOSTILE_OTHER_HOST, /* for "elsewhere.example" */
    HOSTILE_LONG_CHAIN, /* signed by the last of 120 authorities, each signed by the one before */
};

/* `protocol` is offered by ALPN ("h2"; NULL: none). `is_old`: TLS 1.2 at most. */
void hostile_tls_init(struct hostile_tls *ret_tls, enum hostile_certificate kind, const char *protocol, bool is_old);
void hostile_tls_release(struct hostile_tls *tls);

/* Writes the authority's certificate to `path`. */
void hostile_tls_write_authority(const char *path);

#endif
