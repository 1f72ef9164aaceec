/* SPDX-License-Identifier: MIT */
/* hostile_tls.c - makes certificates with OpenSSL. All of them have the same key. */
#include "lib/test.h"

#include "lib/hostile_tls.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#define CHAIN 120 /* longer than the 100 that OpenSSL accepts */
#define DAY_S 86400L

static EVP_PKEY *key;
static X509 *authority;

static void add_extension(X509 *to, int kind, const char *value)
{
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, kind, value);
    assert_non_null(extension);
    assert_int_equal(X509_add_ext(to, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

/* Returns a certificate signed by `issuer`, or by itself if that is NULL. */
static X509 *certificate(const char *name, const X509 *issuer, const char *hosts, bool is_authority, long ends_in_s)
{
    static long serial;
    X509 *made = X509_new();

    assert_non_null(made);
    assert_int_equal(X509_set_version(made, X509_VERSION_3), 1);
    assert_int_equal(ASN1_INTEGER_set(X509_get_serialNumber(made), ++serial), 1);
    assert_non_null(X509_gmtime_adj(X509_getm_notBefore(made), -2 * DAY_S));
    assert_non_null(X509_gmtime_adj(X509_getm_notAfter(made), ends_in_s));
    assert_int_equal(X509_set_pubkey(made, key), 1);
    assert_int_equal(X509_NAME_add_entry_by_txt(X509_get_subject_name(made), "CN", MBSTRING_ASC,
                                                (const unsigned char *)name, -1, -1, 0),
                     1);
    assert_int_equal(X509_set_issuer_name(made, X509_get_subject_name(issuer != NULL ? issuer : made)), 1);
    add_extension(made, NID_basic_constraints, is_authority ? "critical,CA:TRUE" : "CA:FALSE");
    if (hosts != NULL)
        add_extension(made, NID_subject_alt_name, hosts);
    assert_true(X509_sign(made, key, EVP_sha256()) > 0);
    return made;
}

static void make_authority(void)
{
    if (key != NULL)
        return;
    key = EVP_EC_gen("P-256");
    assert_non_null(key);
    authority = certificate("weir test authority", NULL, NULL, true, DAY_S);
}

void hostile_tls_write_authority(const char *path)
{
    make_authority();
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(PEM_write_X509(file, authority), 1);
    assert_int_equal(fclose(file), 0);
}

/* Returns a certificate signed by the last of CHAIN authorities, and adds all of them to the
 * context. */
static X509 *chain(SSL_CTX *context)
{
    const X509 *issuer = authority;
    char name[32];

    for (int i = 0; i < CHAIN; i++) {
        snprintf(name, sizeof name, "authority %d", i);
        X509 *next = certificate(name, issuer, NULL, true, DAY_S);
        assert_int_equal(SSL_CTX_add_extra_chain_cert(context, next), 1); /* takes ownership */
        issuer = next;
    }
    return certificate("localhost", issuer, "DNS:localhost,IP:127.0.0.1", false, DAY_S);
}

static X509 *certificate_of(enum hostile_certificate kind, SSL_CTX *context)
{
    static const char here[] = "DNS:localhost,IP:127.0.0.1";

    switch (kind) {
    case HOSTILE_GOOD:
        break;
    case HOSTILE_SELF_SIGNED:
        return certificate("localhost", NULL, here, false, DAY_S);
    case HOSTILE_EXPIRED:
        return certificate("localhost", authority, here, false, -DAY_S);
    case HOSTILE_OTHER_HOST:
        return certificate("elsewhere.example", authority, "DNS:elsewhere.example", false, DAY_S);
    case HOSTILE_LONG_CHAIN:
        return chain(context);
    }
    return certificate("localhost", authority, here, false, DAY_S);
}

static int choose_protocol(SSL *tls, const unsigned char **ret_chosen, unsigned char *ret_bytes,
                           const unsigned char *offered, unsigned offered_bytes, void *context)
{
    const char *protocol = context;
    size_t bytes = strlen(protocol);

    (void)tls;
    for (unsigned at = 0; at < offered_bytes; at += 1U + offered[at])
        if (offered[at] == bytes && memcmp(offered + at + 1, protocol, bytes) == 0) {
            *ret_chosen = offered + at + 1;
            *ret_bytes = offered[at];
            return SSL_TLSEXT_ERR_OK;
        }
    return SSL_TLSEXT_ERR_NOACK;
}

void hostile_tls_init(struct hostile_tls *ret_tls, enum hostile_certificate kind, const char *protocol, bool is_old)
{
    make_authority();
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    assert_non_null(context);
    X509 *own = certificate_of(kind, context);
    assert_int_equal(SSL_CTX_use_certificate(context, own), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(context, key), 1);
    X509_free(own);
    if (protocol != NULL)
        SSL_CTX_set_alpn_select_cb(context, choose_protocol, (void *)(uintptr_t)protocol);
    if (is_old)
        assert_int_equal(SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION), 1);
    ret_tls->context = context;
}

void hostile_tls_release(struct hostile_tls *tls)
{
    SSL_CTX_free(tls->context);
    tls->context = NULL;
}
