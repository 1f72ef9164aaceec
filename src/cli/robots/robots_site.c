/* SPDX-License-Identifier: MIT */
/* robots_site.c - weir robots: fetches the robots.txt of a site. */
#include <stdlib.h>
#include <string.h>
#include <weir/client.h>

#include "cli/kit/console.h"
#include "cli/kit/given_url.h"
#include "cli/robots/robots_command.h"
#include "core/pace/refusal.h"
#include "core/web/robots/lifecycle.h"

#define DEADLINE_NS WEIR_MINUTE

/* Sets ret_url to the URL of the site's robots.txt. Returns false after printing an error. */
static bool make_robots_url(const char *site, char ret_url[WR_URL_ROOM])
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    struct wr_buf buf;

    if (!wr_given_url("--url ", site, NULL, memory, &url))
        return false;
    wr_buf_init_fixed(&buf, ret_url, WR_URL_ROOM);
    wr_url_append_robots(&buf, &url);
    return true;
}

bool wr_robots_is_absent(const weir_response *response)
{
    if (response->failure == WEIR_FAILURE_REDIRECT)
        return true;
    return response->failure == WEIR_FAILURE_NONE && response->status >= 300 && response->status <= 499 &&
           !wr_status_refuses(response->status);
}

static bool copy_robots_text(const char *url, const weir_response *response, char **ret_text, size_t *ret_bytes)
{
    bool is_there = response->failure == WEIR_FAILURE_NONE && response->status >= 200 && response->status <= 299;
    size_t bytes = is_there ? response->body_bytes : 0;
    char *text;

    if (!is_there && !wr_robots_is_absent(response)) {
        if (response->failure != WEIR_FAILURE_NONE)
            wr_complain("cannot read %s: %s%s", url, response->detail,
                        response->failure == WEIR_FAILURE_GUARD ? "; --allow-private allows it" : "");
        else
            wr_complain(
                "cannot read %s: the response has status %d; until it can be read, nothing there may be fetched", url,
                response->status);
        return false;
    }
    text = malloc(bytes + 1);
    if (text == NULL) {
        wr_complain("out of memory");
        return false;
    }
    memcpy(text, response->body, bytes);
    *ret_text = text;
    *ret_bytes = bytes;
    return true;
}

static int fetch_site_robots(const struct wr_robots_input *source, const char *url, weir_response **ret_response)
{
    weir_client_options how;
    weir_client *client;

    weir_client_options_init(&how);
    how.agent = source->agent;
    how.robots = WEIR_ROBOTS_IGNORE; /* robots.txt itself may always be fetched */
    how.allow_private = source->allow_private;
    how.max_redirects = WR_ROBOTS_HOPS;
    how.max_body_bytes = WR_ROBOTS_MAX + 1;
    how.deadline_ns = DEADLINE_NS;
    int error = weir_client_new(&how, &client);
    if (error != 0)
        return error;
    error = weir_client_fetch(client, url, NULL, NULL, ret_response);
    weir_client_free(client);
    return error;
}

bool wr_robots_fetch_text(const struct wr_robots_input *source, char **ret_text, size_t *ret_bytes)
{
    char url[WR_URL_ROOM];
    weir_response *response;

    if (!make_robots_url(source->url, url))
        return false;
    int error = fetch_site_robots(source, url, &response);
    if (error != 0) {
        wr_complain("%s", error == WEIR_E_INVAL ? weir_error_detail() : weir_error_text(error));
        return false;
    }
    bool well = copy_robots_text(url, response, ret_text, ret_bytes);
    weir_response_free(response);
    return well;
}
