/* SPDX-License-Identifier: MIT */
/* curl.h - puts a handler around your own CURL handles.
 *
 *     weir_curl_perform(handler, easy, NULL, NULL, &code, &said);
 *
 * does the same as curl_easy_perform(easy), but first waits until the request may start. It reports
 * the outcome to the handler's pacer, and reads the limits in the response. libcurl may send
 * further requests within one call (redirects that it follows, a second attempt with credentials, a
 * request sent again after a kept connection has died). Each of them waits until it may start. This
 * wait counts for CURLOPT_TIMEOUT, but the wait before the first request does not.
 *
 * CURLOPT_HEADERFUNCTION is yours, so fields are read when the transfer has ended. If a body takes
 * a minute, a Retry-After in its header binds other requests only after this minute. To bind them
 * with the last line of the header, use handler.h, and pass each line to weir_exchange_line from a
 * header callback of your own.
 *
 * The library itself does not need libcurl for this: all code is in this header. It uses
 * CURLOPT_PREREQFUNCTION during the call and changes nothing else of your handle. libcurl 7.84 or
 * later.
 *
 * With the multi interface, or if you use CURLOPT_PREREQFUNCTION yourself, use handler.h: begin,
 * then sent in that callback, lines as they come or the fields after the transfer, and end.
 */
#ifndef WEIR_CURL_H
#define WEIR_CURL_H

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include <weir/handler.h>

#if LIBCURL_VERSION_NUM < 0x075400
#error "weir/curl.h needs libcurl 7.84 or later"
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct weir_curl_run {
    weir_handler *handler;
    CURL *easy;
    const char *key; /* key of all requests; NULL: the host of each */
    weir_cancel *cancel;
    weir_exchange *exchange; /* exchange in progress, or NULL */
    size_t begun_bytes;      /* length of the key of the exchange */
    char begun[WEIR_PACE_KEY_MAX + 1];
    int requests; /* requests written so far */
    int error;    /* error that prevented a request */
};

/* Writes the key of the URL that libcurl is about to fetch. */
static inline int weir_curl_key(CURL *easy, char *ret_key, size_t key_size, size_t *ret_bytes)
{
    CURLU *url = curl_url();
    char *text = NULL, *host = NULL, *port = NULL;
    char name[WEIR_PACE_KEY_MAX + 1];
    int error = WEIR_E_INVAL;
    if (url != NULL && curl_easy_getinfo(easy, CURLINFO_EFFECTIVE_URL, &text) == CURLE_OK && text != NULL &&
        curl_url_set(url, CURLUPART_URL, text, CURLU_GUESS_SCHEME) == CURLUE_OK &&
        curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
        curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK) {
        int bytes = snprintf(name, sizeof name, "%s:%s", host, port);
        if (bytes > 0 && (size_t)bytes < sizeof name)
            error = weir_host_key(name, (size_t)bytes, ret_key, key_size, ret_bytes);
    }
    curl_free(host);
    curl_free(port);
    curl_url_cleanup(url);
    return error;
}

static inline int weir_curl_begin(struct weir_curl_run *run)
{
    if (run->key != NULL)
        return weir_handler_begin(run->handler, run->key, strlen(run->key), run->cancel, &run->exchange);
    int error = weir_curl_key(run->easy, run->begun, sizeof run->begun, &run->begun_bytes);
    if (error != 0)
        return error;
    return weir_handler_begin(run->handler, run->begun, run->begun_bytes, run->cancel, &run->exchange);
}

/* Returns whether the URL has another key than the exchange. A handle that followed a redirect in
 * an earlier call still reports the redirect's URL, until its next request starts. */
static inline bool weir_curl_is_elsewhere(struct weir_curl_run *run)
{
    char key[WEIR_PACE_KEY_MAX + 1];
    size_t bytes = 0;
    return run->key == NULL && weir_curl_key(run->easy, key, sizeof key, &bytes) == 0 &&
           (bytes != run->begun_bytes || memcmp(key, run->begun, bytes) != 0);
}

/* Reports the end of the current request. `request` counts from 0; -1: the last one. */
static inline void weir_curl_tell(struct weir_curl_run *run, int request, bool failed)
{
    long status = 0;
    struct curl_header *field = NULL;
    (void)curl_easy_getinfo(run->easy, CURLINFO_RESPONSE_CODE, &status);
    while ((field = curl_easy_nextheader(run->easy, CURLH_HEADER, request, field)) != NULL)
        weir_exchange_header(run->exchange, field->name, field->value);
    if (failed || status != 0)
        weir_exchange_end(run->exchange, failed ? 0 : (int)status);
}

/* Called by libcurl before each request; returns 0 if it may be written. */
static inline int weir_curl_prereq(void *context, char *to, char *from, int to_port, int from_port)
{
    struct weir_curl_run *run = (struct weir_curl_run *)context;
    (void)to, (void)from, (void)to_port, (void)from_port;
    if (run->requests > 0) /* libcurl sends another request by itself */
        weir_curl_tell(run, run->requests - 1, false);
    if (run->requests > 0 || weir_curl_is_elsewhere(run)) {
        weir_exchange_free(run->exchange);
        run->exchange = NULL;
    }
    run->error = run->exchange == NULL ? weir_curl_begin(run) : 0;
    while (run->error == 0 && (run->error = weir_exchange_sent(run->exchange)) == WEIR_E_WITHDRAWN) {
        weir_exchange_free(run->exchange);
        run->exchange = NULL;
        run->error = weir_curl_begin(run);
    }
    run->requests++;
    return run->error == 0 ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

/* Returns whether libcurl ended with success, or for a reason that is not the server's fault. */
static inline bool weir_curl_is_ours(CURLcode code)
{
    return code == CURLE_OK || code == CURLE_WRITE_ERROR || code == CURLE_ABORTED_BY_CALLBACK ||
           code == CURLE_HTTP_RETURNED_ERROR || code == CURLE_TOO_MANY_REDIRECTS || code == CURLE_FILESIZE_EXCEEDED ||
           code == CURLE_OUT_OF_MEMORY || code == CURLE_PROXY || code == CURLE_COULDNT_RESOLVE_PROXY ||
           code == CURLE_READ_ERROR || code == CURLE_FAILED_INIT || code == CURLE_URL_MALFORMAT ||
           code == CURLE_UNSUPPORTED_PROTOCOL;
}

/* Does the same as curl_easy_perform, when the request may start. `key` is the key by which the
 * server counts; NULL: the host, also after each redirect. `cancel` and `ret_said` may be NULL.
 * *ret_said gets the limits in the last response; -1: unknown. Returns 0 and the result of libcurl
 * in *ret_code. If weir_handler_begin fails, returns its error, and the request was not sent. */
static inline int weir_curl_perform(weir_handler *handler, CURL *easy, const char *key, weir_cancel *cancel,
                                    CURLcode *ret_code, weir_server_limits *ret_said)
{
    struct weir_curl_run run = {handler, easy, key, cancel, NULL, 0, "", 0, 0};
    weir_server_limits said = {-1, -1, -1, -1};
    int error = weir_curl_begin(&run);
    if (error != 0)
        return error;
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, weir_curl_prereq);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, &run);
    CURLcode code = curl_easy_perform(easy);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, NULL);
    if (run.error == 0) {
        weir_curl_tell(&run, -1, !weir_curl_is_ours(code));
        if (weir_exchange_limits(run.exchange) != NULL)
            said = *weir_exchange_limits(run.exchange);
        *ret_code = code;
        if (ret_said != NULL)
            *ret_said = said;
    }
    weir_exchange_free(run.exchange);
    return run.error;
}

#ifdef __cplusplus
}
#endif
#endif
