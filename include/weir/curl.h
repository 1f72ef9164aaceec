/* SPDX-License-Identifier: MIT */
/* curl.h - a handler around your own CURL handles.
 *
 *     weir_curl_perform(handler, easy, NULL, NULL, &code, &said);
 *
 * does what curl_easy_perform(easy) does, but waits for its turn first, tells the handler's pacer how it ended, and
 * reads what the answer says of limits. What libcurl sends by itself within one call (redirects that it follows, a
 * second attempt with credentials, a request sent again because a kept connection had died) is a request of its own,
 * and waits for its own turn before it is written. That waiting counts against CURLOPT_TIMEOUT, though not that before
 * the first.
 *
 * Fields are read when the transfer has ended, for CURLOPT_HEADERFUNCTION is yours: a Retry-After at the head of a body
 * that trickles for a minute binds the other requests after that minute. Where that matters, use handler.h itself and
 * pass each line to weir_exchange_line from a header callback of your own; then it binds with the head's last line.
 *
 * This header is all there is: the library itself needs no libcurl for it. It uses CURLOPT_PREREQFUNCTION for the time
 * of the call; all else of your handle is left alone. libcurl 7.84 or later.
 *
 * With the multi interface, or callbacks of your own before the request, use handler.h itself: begin, then sent in the
 * callback, lines as they come or the fields after the transfer, and the end.
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
    const char *key; /* NULL: the host */
    weir_cancel *cancel;
    weir_exchange *exchange; /* NULL: none is under way */
    size_t begun_bytes;      /* of the key that it has */
    char begun[WEIR_PACE_KEY_MAX + 1];
    int requests; /* written so far */
    int error;    /* why one was not */
};

/* The key of the URL that is about to be fetched. */
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

/* A handle that was led elsewhere the last time says so still when it is used again, until it goes. */
static inline bool weir_curl_is_elsewhere(struct weir_curl_run *run)
{
    char key[WEIR_PACE_KEY_MAX + 1];
    size_t bytes = 0;
    return run->key == NULL && weir_curl_key(run->easy, key, sizeof key, &bytes) == 0 &&
           (bytes != run->begun_bytes || memcmp(key, run->begun, bytes) != 0);
}

/* Tells how the request that is under way ended. `request` counts from 0; -1: the last. */
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

/* Before each request: it may be written if this returns 0. */
static inline int weir_curl_prereq(void *context, char *to, char *from, int to_port, int from_port)
{
    struct weir_curl_run *run = (struct weir_curl_run *)context;
    (void)to, (void)from, (void)to_port, (void)from_port;
    if (run->requests > 0) /* libcurl goes on by itself */
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

/* What libcurl ends with although the server did nothing wrong. */
static inline bool weir_curl_is_ours(CURLcode code)
{
    return code == CURLE_OK || code == CURLE_WRITE_ERROR || code == CURLE_ABORTED_BY_CALLBACK ||
           code == CURLE_HTTP_RETURNED_ERROR || code == CURLE_TOO_MANY_REDIRECTS || code == CURLE_FILESIZE_EXCEEDED ||
           code == CURLE_OUT_OF_MEMORY || code == CURLE_PROXY || code == CURLE_COULDNT_RESOLVE_PROXY ||
           code == CURLE_READ_ERROR || code == CURLE_FAILED_INIT || code == CURLE_URL_MALFORMAT ||
           code == CURLE_UNSUPPORTED_PROTOCOL;
}

/* As curl_easy_perform, in its turn. `key` is what the server counts by; NULL: the host, for each hop its own. `cancel`
 * and `ret_said` may be NULL; *ret_said is what the last answer said, -1 for what it did not. Returns 0, and *ret_code
 * is libcurl's; or what weir_handler_begin returned, and the request was not sent. */
static inline int weir_curl_perform(weir_handler *handler, CURL *easy, const char *key, weir_cancel *cancel,
                                    CURLcode *ret_code, weir_said *ret_said)
{
    struct weir_curl_run run = {handler, easy, key, cancel, NULL, 0, "", 0, 0};
    weir_said said = {-1, -1, -1, -1};
    int error = weir_curl_begin(&run);
    if (error != 0)
        return error;
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, weir_curl_prereq);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, &run);
    CURLcode code = curl_easy_perform(easy);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, NULL);
    if (run.error == 0) {
        weir_curl_tell(&run, -1, !weir_curl_is_ours(code));
        if (weir_exchange_said(run.exchange) != NULL)
            said = *weir_exchange_said(run.exchange);
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
