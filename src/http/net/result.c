/* SPDX-License-Identifier: MIT */
/* result.c - determines the result of a transfer. */
#include "http/net/net_internal.h"

#include "base/ascii.h"

#include <errno.h>

static const struct {
    const char *name, *words;
    enum wr_net_retry retry;
    enum wr_net_blame blame;
} ends[] = {
#define X(end, name, words, retry, blame) {name, words, retry, blame},
    WR_NET_ENDS(X)
#undef X
};

const char *wr_net_end_name(enum wr_net_end end)
{
    return ends[end].name;
}

const char *wr_net_end_text(enum wr_net_end end)
{
    return ends[end].words;
}

/* Appends text of libcurl, some of which the server chooses, as printable ASCII. */
static void append_printable(struct wr_buf *buf, const char *words)
{
    for (; *words != '\0'; words++)
        wr_buf_append_char(buf, wr_ascii_is_printable(*words) ? *words : '?');
}

void wr_transfer_set_end(struct wr_transfer *transfer, enum wr_net_end end, const char *words)
{
    struct wr_buf buf;

    if (transfer->has_end)
        return;
    transfer->has_end = true;
    transfer->result.end = end;
    transfer->result.retry = ends[end].retry;
    transfer->result.blame = ends[end].blame;
    wr_buf_init_fixed(&buf, transfer->words, sizeof transfer->words);
    wr_buf_append_string(&buf, ends[end].words);
    if (words != NULL && words[0] != '\0') {
        wr_buf_append_string(&buf, ": ");
        append_printable(&buf, words);
    }
    transfer->result.words = transfer->words;
}

/* ---- libcurl's results ---- */

bool wr_result_is_scarce(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM || error == EADDRNOTAVAIL;
}

/* Returns the end for a failure to connect. */
static enum wr_net_end connect_end(const struct wr_transfer *transfer)
{
    long system = 0;

    (void)curl_easy_getinfo(transfer->easy, CURLINFO_OS_ERRNO, &system);
    if (wr_result_is_scarce(transfer->socket_errno) || wr_result_is_scarce((int)system))
        return WR_NET_SCARCE;
    return transfer->net->proxy.is_set ? WR_NET_PROXY : WR_NET_CONNECT;
}

/* Separates broken connections from invalid chunks, for which libcurl has the same code. */
static enum wr_net_end receive_end(const struct wr_transfer *transfer)
{
    bool is_chunk = strstr(transfer->error_text, "hunk") != NULL || strstr(transfer->error_text, "Too large") != NULL;

    return is_chunk ? WR_NET_PROTOCOL : WR_NET_BROKEN;
}

/* Returns true if the proxy refused to connect to the target. */
static bool is_refused_by_proxy(const struct wr_transfer *transfer)
{
    long status = 0;

    (void)curl_easy_getinfo(transfer->easy, CURLINFO_HTTP_CONNECTCODE, &status);
    return transfer->net->proxy.is_set && transfer->result.sends == 0 && status / 100 != 2;
}

/* Returns true if libcurl lacked memory, which it may report as an invalid certificate or body. */
static bool is_out_of_memory(const struct wr_transfer *transfer, CURLcode code)
{
    static const char *const words[] = {"malloc failure", "ut of memory", "thread failed", "nsufficient randomness"};

    if (wr_memory_guard_alloc_failed(transfer))
        return true;
    for (size_t i = 0; code != CURLE_OUT_OF_MEMORY && i < sizeof words / sizeof words[0]; i++)
        if (strstr(transfer->error_text, words[i]) != NULL)
            return true;
    return false;
}

static enum wr_net_end end_of_curl_code(const struct wr_transfer *transfer, CURLcode code)
{
    switch (code) {
    case CURLE_OK:
        return WR_NET_DONE;
    case CURLE_COULDNT_RESOLVE_HOST:
        return WR_NET_NAME_FAILED;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_PROXY:
        return WR_NET_PROXY;
    case CURLE_COULDNT_CONNECT:
        return connect_end(transfer);
    case CURLE_OPERATION_TIMEDOUT: /* this code checks all other timeouts itself */
        return WR_NET_CONNECT_TIMEOUT;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
        return WR_NET_TLS;
    case CURLE_OUT_OF_MEMORY: /* memory, or a header line above libcurl's 100 KB */
        return transfer->result.sends > 0 && !transfer->is_head_reported ? WR_NET_PROTOCOL : WR_NET_SCARCE;
    case CURLE_BAD_CONTENT_ENCODING: /* since libcurl 8.14, for Transfer-Encoding only */
        return WR_NET_PROTOCOL;
    case CURLE_RECV_ERROR:
        return receive_end(transfer);
    case CURLE_SEND_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
        return WR_NET_BROKEN;
    default:
        return WR_NET_PROTOCOL;
    }
}

void wr_result_from_curl(struct wr_transfer *transfer, CURLcode code)
{
    enum wr_net_end end = end_of_curl_code(transfer, code);

    if (transfer->has_end)
        return;
    if (code == CURLE_OK && !transfer->is_head_reported) { /* libcurl accepts a truncated head */
        wr_transfer_set_end(transfer, WR_NET_BROKEN, "the header was truncated");
        return;
    }
    if (code == CURLE_COULDNT_CONNECT && transfer->judged != WR_GUARD_PUBLIC) {
        wr_transfer_set_end(transfer, WR_NET_BLOCKED, wr_guard_text(transfer->judged));
        return;
    }
    if (code != CURLE_OK && is_out_of_memory(transfer, code)) /* libcurl's code may mislead */
        end = WR_NET_SCARCE;
    if (end != WR_NET_SCARCE && code != CURLE_OK && is_refused_by_proxy(transfer))
        end = WR_NET_PROXY;
    wr_transfer_set_end(transfer, end,
                        transfer->error_text[0] != '\0' ? transfer->error_text
                        : code == CURLE_OK              ? ""
                                                        : curl_easy_strerror(code));
    if (code == CURLE_SSL_CONNECT_ERROR) /* the handshake broke; the certificate may be valid */
        transfer->result.retry = WR_NET_LATER;
}

/* ---- sizes and flags ---- */

static uint8_t http_version_of(CURL *easy)
{
    long version = 0;

    (void)curl_easy_getinfo(easy, CURLINFO_HTTP_VERSION, &version);
    switch (version) {
    case CURL_HTTP_VERSION_1_0:
        return 10;
    case CURL_HTTP_VERSION_1_1:
        return 11;
    case CURL_HTTP_VERSION_2_0:
        return 20;
    default:
        return 0;
    }
}

/* Without TLS a proxy may respond itself: it needs a login (407) or failed as a gateway. */
bool wr_net_is_proxy_response(const struct wr_transfer *transfer)
{
    int status = transfer->result.status;

    return transfer->net->proxy.is_set && !transfer->is_https && (status == 407 || status == 502 || status == 504);
}

static void fill_from_curl(struct wr_transfer *transfer)
{
    struct wr_net_result *result = &transfer->result;
    curl_off_t wire = 0;
    long connects = 0;

    if (result->sends == 0)
        return;
    (void)curl_easy_getinfo(transfer->easy, CURLINFO_SIZE_DOWNLOAD_T, &wire);
    (void)curl_easy_getinfo(transfer->easy, CURLINFO_NUM_CONNECTS, &connects);
    result->wire_bytes = (uint64_t)wire;
    result->is_reused = connects == 0;
    result->version = result->first_byte_at != 0 ? http_version_of(transfer->easy) : 0;
}

void wr_result_fill(struct wr_transfer *transfer)
{
    struct wr_net_result *result = &transfer->result;

    result->head_bytes = transfer->head.bytes;
    if (transfer->bypasses_libcurl) {
        result->wire_bytes = transfer->body.wire;
        result->version = transfer->http1.version;
    } else {
        fill_from_curl(transfer);
    }
    if (wr_net_is_proxy_response(transfer))
        result->blame = WR_NET_BLAME_PROXY;
    if (result->sends > 0 && !transfer->is_idempotent)
        result->retry = WR_NET_NEVER;
}
