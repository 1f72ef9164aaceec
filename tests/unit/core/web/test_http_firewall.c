/* SPDX-License-Identifier: MIT */
/* test_http_firewall.c - tests that pages of firewalls are recognised, and that ordinary pages are
 * not. */
#include "core/web/http/firewall.h"
#include "lib/test.h"

struct answer {
    enum wr_firewall firewall;
    int status;
    const char *fields; /* lines "Name: value\n" */
    const char *body;
    uint64_t more; /* size of the body beyond `body` */
};

static enum wr_firewall judge(const struct answer *answer)
{
    struct wr_firewall_evidence look = wr_firewall_begin(answer->status);
    struct wr_span rest = wr_span_of(answer->fields);
    while (rest.bytes > 0) {
        struct wr_span line = {rest.data, wr_span_find(rest, '\n')};
        size_t colon = wr_span_find(line, ':');
        rest = wr_span_after(rest, line.bytes + 1);
        wr_firewall_field(&look, (struct wr_span){line.data, colon}, wr_span_trim(wr_span_after(line, colon + 1)));
    }
    struct wr_span body = wr_firewall_needs_body(&look) ? wr_span_of(answer->body) : (struct wr_span){NULL, 0};
    return wr_firewall_identify(&look, body, strlen(answer->body) + answer->more);
}

static void assert_judged(const struct answer *answers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        enum wr_firewall found = judge(&answers[i]);
        if (found != answers[i].firewall)
            fail_msg("answer %zu, %d \"%s\": taken for \"%s\", is \"%s\"", i, answers[i].status, answers[i].body,
                     wr_firewall_name(found), wr_firewall_name(answers[i].firewall));
    }
}

#define F5_TEXT                                                                                                    \
    "<html><head><title>Request Rejected</title></head><body>The requested URL was rejected. Please consult with " \
    "your administrator.<br><br>Your support ID is: 123</body></html>"
#define AKAMAI_TEXT                                                                                                 \
    "<HTML><HEAD>\n<TITLE>Access Denied</TITLE>\n</HEAD><BODY>\n<H1>Access Denied</H1>\n You don't have "           \
    "permission to access \"http&#58;&#47;&#47;a&#46;example&#47;\" on this server.<P>\nReference&#32;&#35;18&#46;" \
    "dead\n<P>https&#58;&#47;&#47;errors&#46;edgesuite&#46;net&#47;18&#46;dead</P>\n</BODY></HTML>"

/* U10 */
static void pages_of_firewalls_are_recognised(void **state)
{
    static const struct answer answers[] = {
        {WR_FIREWALL_CLOUDFLARE, 403, "Server: cloudflare\nCF-Mitigated: challenge\n",
         "<title>Just a moment...</title>", 0},
        {WR_FIREWALL_CLOUDFLARE, 503, "server: cloudflare\n", "<script>window._cf_chl_opt={cvId:'2'}</script>", 99999},
        {WR_FIREWALL_CLOUDFLARE, 403, "SERVER: cloudflare\n",
         "<title>Attention Required! | Cloudflare</title><div id=\"cf-error-details\">", 0},
        {WR_FIREWALL_CLOUDFLARE, 403, "Server: cloudflare\n", "error code: 1020", 0},
        {WR_FIREWALL_IMPERVA, 403, "X-Iinfo: 1-2-3\n",
         "<iframe id=\"main-iframe\" src=\"/_Incapsula_Resource?CWUDNSAI=9\">Request unsuccessful. Incapsula incident "
         "ID: 1-2</iframe>",
         0},
        {WR_FIREWALL_IMPERVA, 200, "Set-Cookie: visid_incap_1=x; path=/\n",
         "<html>Request unsuccessful. Incapsula incident ID: 1-2</html>", 0},
        {WR_FIREWALL_IMPERVA, 200, "X-CDN: Imperva\n", "Request unsuccessful. Incapsula incident ID: 1-2", 0},
        {WR_FIREWALL_DATADOME, 403, "X-DataDome: protected\nServer: nginx\n",
         "<script>var dd={'rt':'c'}</script><script src=\"https://ct.captcha-delivery.com/c.js\">", 0},
        {WR_FIREWALL_DATADOME, 405, "Set-Cookie: datadome=abc\n", "{\"url\":\"https://geo.captcha-delivery.com/c/\"}",
         0},
        {WR_FIREWALL_AKAMAI, 403, "Server: AkamaiGHost\n", AKAMAI_TEXT, 0},
        {WR_FIREWALL_AKAMAI, 403, "", "<a href=\"https://errors.edgesuite.net/18.dead\">", 0},
        {WR_FIREWALL_AWS, 202, "x-amzn-waf-action: challenge\n", "", 0},
        {WR_FIREWALL_AWS, 405, "x-amzn-waf-action: captcha\n", "Human Verification", 0},
        {WR_FIREWALL_AWS, 403, "Server: CloudFront\n",
         "<H1>403 ERROR</H1><H2>The request could not be satisfied.</H2>Request blocked.\nWe can't connect", 0},
        {WR_FIREWALL_SUCURI, 403, "Server: Sucuri/Cloudproxy\n",
         "<title>Sucuri WebSite Firewall - Access Denied</title>", 0},
        {WR_FIREWALL_SUCURI, 403, "X-Sucuri-Block: 1\n", "", 0},
        {WR_FIREWALL_PERIMETERX, 403, "", "<div id=\"px-captcha\"></div>", 0},
        {WR_FIREWALL_PERIMETERX, 429, "Server: nginx\n", "<div id=\"px-captcha\"></div>", 0},
        {WR_FIREWALL_F5, 200, "Set-Cookie: TS0101=x\n", F5_TEXT, 0},
        {WR_FIREWALL_F5, 200, "Set-Cookie: BIGipServerpool=x\n", F5_TEXT, 0},
        {WR_FIREWALL_F5, 403, "", F5_TEXT, 0},
        {WR_FIREWALL_KASADA, 429, "x-kpsdk-ct: abc\n", "", 0},
        {WR_FIREWALL_AZURE, 403, "x-azure-ref: 20260101T\n", "<h2>The request is blocked.</h2>", 0},
        {WR_FIREWALL_VERCEL, 403, "x-vercel-mitigated: deny\n", "", 0},
        {WR_FIREWALL_DDOS_GUARD, 403, "Server: ddos-guard\n", "<title>DDoS-Guard</title>", 0},
        {WR_FIREWALL_WORDFENCE, 503, "", "Your access is limited. <p>Generated by Wordfence at Sun</p>", 0},
        {WR_FIREWALL_MODSECURITY, 406, "Server: Apache\n", "Not Acceptable! This error was generated by Mod_Security.",
         0},
        {WR_FIREWALL_FORTINET, 403, "", "<title>Web Page Blocked!</title><img class=\"fgd_icon\">", 0},
        {WR_FIREWALL_RADWARE, 302, "Location: https://validate.perfdrive.com/x?ssa=1\n", "", 0},
    };
    (void)state;
    assert_judged(answers, sizeof answers / sizeof answers[0]);
}

#define ARTICLE                                                                                              \
    "<h1>How Cloudflare, Incapsula incident ID pages and px-captcha work</h1> cf-error-details _cf_chl_opt " \
    "captcha-delivery.com Request blocked. The request is blocked. Generated by Wordfence " F5_TEXT AKAMAI_TEXT

static void ordinary_pages_are_not_taken_for_firewall_pages(void **state)
{
    static const struct answer answers[] = {
        /* pages that describe firewalls */
        {WR_FIREWALL_NONE, 200, "", ARTICLE, 0},
        {WR_FIREWALL_NONE, 200, "Server: cloudflare\nSet-Cookie: __cf_bm=x\n", ARTICLE, 0},
        {WR_FIREWALL_NONE, 404, "Server: cloudflare\n", ARTICLE, 0},
        {WR_FIREWALL_NONE, 200, "X-Iinfo: 1\nSet-Cookie: incap_ses_1=x\n", ARTICLE, 50000},
        {WR_FIREWALL_NONE, 200, "Set-Cookie: TS0101=x\n", ARTICLE, 50000},
        {WR_FIREWALL_NONE, 200, "Server: AkamaiGHost\n", ARTICLE, 0},
        /* sites behind a firewall that answer themselves */
        {WR_FIREWALL_NONE, 403, "Server: cloudflare\n", "<h1>403 Forbidden</h1>nginx", 0},
        {WR_FIREWALL_NONE, 403, "Server: cloudflare\n",
         "Members only. <script src=\"/cdn-cgi/challenge-platform/scripts/jsd/main.js\">", 0},
        {WR_FIREWALL_NONE, 503, "Server: cloudflare\nRetry-After: 5\n", "Back soon", 0},
        {WR_FIREWALL_NONE, 200, "X-Iinfo: 1-2\n", "<script src=\"/_Incapsula_Resource?SWJIYLWA=1\"></script>hello", 0},
        {WR_FIREWALL_NONE, 403, "X-DataDome: protected\n", "You have no account here", 0},
        {WR_FIREWALL_NONE, 403, "x-azure-ref: 1\n", "Forbidden", 0},
        {WR_FIREWALL_NONE, 403, "Server: CloudFront\n", "<Code>AccessDenied</Code>", 0},
        {WR_FIREWALL_NONE, 404, "Server: AkamaiGHost\n", AKAMAI_TEXT, 0},
        {WR_FIREWALL_NONE, 403, "X-Sucuri-ID: 11\n", "Forbidden", 0},
        /* requests to slow down */
        {WR_FIREWALL_NONE, 429, "Server: cloudflare\nRetry-After: 60\n", "error code: 1015", 0},
        {WR_FIREWALL_NONE, 429, "Server: AkamaiGHost\n", AKAMAI_TEXT, 0},
        {WR_FIREWALL_NONE, 403, "", "", 0},
        {WR_FIREWALL_NONE, 0, "", "", 0},
        {WR_FIREWALL_NONE, 403, "Server:\nx-cdn:\nlocation:\n", "", 0},
    };
    (void)state;
    assert_judged(answers, sizeof answers / sizeof answers[0]);
}

static void firewall_check_needs_no_body_of_ordinary_responses(void **state)
{
    struct wr_firewall_evidence look = wr_firewall_begin(200);
    (void)state;
    assert_false(wr_firewall_needs_body(&look));
    wr_firewall_field(&look, wr_span_of("Server"), wr_span_of("cloudflare"));
    assert_false(wr_firewall_needs_body(&look));
    look = wr_firewall_begin(404);
    assert_false(wr_firewall_needs_body(&look));
    look = wr_firewall_begin(403);
    assert_true(wr_firewall_needs_body(&look));
}

static void every_firewall_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(wr_firewall_name(WR_FIREWALL_NONE), "");
    assert_string_equal(wr_firewall_name(WR_FIREWALL_AWS), "AWS WAF");
    assert_string_equal(wr_firewall_name((enum wr_firewall)WR_FIREWALL_COUNT), "");
    for (int i = 1; i < WR_FIREWALL_COUNT; i++)
        assert_int_equal(wr_firewall_by_name(wr_span_of(wr_firewall_name((enum wr_firewall)i))), i);
    assert_int_equal(wr_firewall_by_name(wr_span_of("Zyx")), WR_FIREWALL_OTHER);
    assert_int_equal(wr_firewall_by_name((struct wr_span){NULL, 0}), WR_FIREWALL_OTHER);
}

WEIR_TESTS(test(pages_of_firewalls_are_recognised), test(ordinary_pages_are_not_taken_for_firewall_pages),
           test(firewall_check_needs_no_body_of_ordinary_responses), test(every_firewall_has_a_name))
