/* SPDX-License-Identifier: MIT */
/* tls.c - closes connections to servers that never stop sending.
 *
 * libcurl 7.88 reads HTTP/2 frames until there is something for the transfer or nothing more has
 * arrived. A server that sends PING or SETTINGS as fast as they are read keeps it inside one call,
 * and so blocks the loop with all other hosts. OpenSSL reports every record, so the time is checked
 * there. A call that takes too long is ended as if the server had closed the connection.
 */
#include "http/net/net_internal.h"

#include "limiter/clock/clock.h"

#include <openssl/ssl.h>

#define RECORDS_PER_CHECK 256
#define CALL_MAX_NS (250 * WEIR_MILLISECOND)

static void on_record(int is_sent, int version, int kind, const void *data, size_t bytes, SSL *ssl, void *context)
{
    struct wr_net *net = context;

    (void)version;
    (void)data;
    (void)bytes;
    if (is_sent || kind != SSL3_RT_HEADER || ++net->records % RECORDS_PER_CHECK != 0)
        return;
    int64_t now = wr_clock_now(net->clock);
    if (net->records == RECORDS_PER_CHECK)
        net->records_since = now;
    else if (now - net->records_since > CALL_MAX_NS)
        SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
}

static CURLcode on_context(CURL *easy, void *ssl_context, void *context)
{
    (void)easy;
    SSL_CTX_set_msg_callback(ssl_context, on_record);
    SSL_CTX_set_msg_callback_arg(ssl_context, context);
    return CURLE_OK;
}

bool wr_tls_watch(struct wr_net *net, CURL *easy)
{
    return curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, net) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, on_context) == CURLE_OK;
}
