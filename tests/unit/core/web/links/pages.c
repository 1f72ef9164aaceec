/* SPDX-License-Identifier: MIT */
/* pages.c - generates random pages with constructs of real pages and with constructs that
 * tokenisers get wrong. */
#include "pages.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct maker {
    struct wr_rng *rng;
    char *page;
    size_t used;
    int link; /* number of the next link, so that all links differ */
};

#define PICK(maker, list) ((list)[wr_rng_below((maker)->rng, sizeof(list) / sizeof(list)[0])])

static bool chance(struct maker *maker, unsigned percent)
{
    return wr_rng_below(maker->rng, 100) < percent;
}

__attribute__((format(printf, 2, 3))) static void put(struct maker *maker, const char *format, ...)
{
    va_list arguments;

    if (maker->used > PAGE_BYTES - 2048)
        return; /* the page is large enough */
    va_start(arguments, format);
    maker->used += (size_t)vsnprintf(maker->page + maker->used, PAGE_BYTES - maker->used, format, arguments);
    va_end(arguments);
}

static const char *space(struct maker *maker)
{
    static const char *const spaces[] = {" ", " ", " ", " ", "\n", "\t", "  ", "\r\n", "\f", " / ", "/"};
    return PICK(maker, spaces);
}

/* ---- text and attributes --------------------------------------------------------------------- */

static void put_text(struct maker *maker)
{
    static const char *const texts[] = {"some words",
                                        "a < b",
                                        "a <b",
                                        "&amp; &lt;a href=no&gt;",
                                        "x &amp y",
                                        "<",
                                        "<<",
                                        "< a href=no>",
                                        "</ a href=no>",
                                        "<3 you",
                                        "5 > 4",
                                        "\"quoted\"",
                                        "it's",
                                        "<>",
                                        "</>",
                                        "&",
                                        "&#",
                                        "\xc3\xa9t\xc3\xa9",
                                        "\n\n",
                                        "]]>",
                                        "-->",
                                        "--!>",
                                        "<=",
                                        "<-",
                                        "<\n",
                                        "\r\n",
                                        "<%% asp %%>",
                                        "<?php echo '<a href=no>' ?>",
                                        "<!>",
                                        "<!->",
                                        "<!x <a href=no>",
                                        "<?xml version=\"1.0\"?>"};
    put(maker, "%s ", PICK(maker, texts));
}

/* Endings of a URL. Those in `quoted` stand only within quotes. */
static const char *const tails[] = {"",
                                    "",
                                    "",
                                    "",
                                    "?a=1&amp;b=2",
                                    "?a=1&b=2",
                                    "?a=1&copy=2",
                                    "?a=1&copy",
                                    "?x=&lt",
                                    "?x=&lt;y",
                                    "#&num;f",
                                    "&#47;x",
                                    "&#x2f;x",
                                    "&#X2F;x",
                                    "&#47x",
                                    "&#128;",
                                    "&#0;",
                                    "&#xd800;",
                                    "&#1114112;",
                                    "&eacute;",
                                    "&Eacute",
                                    "&ampx",
                                    "&amp=",
                                    "&amp;amp;",
                                    "&notit;",
                                    "&unknown;",
                                    "&;",
                                    "&",
                                    "&#",
                                    "&#x",
                                    "&#x;",
                                    "&#;",
                                    "/../x",
                                    "//x",
                                    "\xc3\xa9",
                                    "%%20",
                                    "&sol;&period;&quest;",
                                    "&hellip;",
                                    "&AMP;",
                                    "&ltx",
                                    "&lt=",
                                    "&amp",
                                    "&yuml",
                                    "&thorn;",
                                    "=",
                                    "=x",
                                    "&colon;&Tab;&NewLine;",
                                    "`",
                                    "&frac12;",
                                    "&there4;",
                                    "&Alpha;&omega;"};
static const char *const quoted[] = {" x", "\nx", "\r\nx",       "\rx",  "\tx", "<x",
                                     ">x", "/>",  "<a href=no>", "<!--", "-->"};

/* Writes a URL with any text that an attribute value may have. `quote` is the quote around it, or
 * NUL. */
static void put_url(struct maker *maker, char quote)
{
    put(maker, "u%d%s", maker->link++, PICK(maker, tails));
    if (quote != '\0' && chance(maker, 25))
        put(maker, "%s", PICK(maker, quoted));
    if (quote == '"' && chance(maker, 5))
        put(maker, "it's");
    if (quote == '\'' && chance(maker, 5))
        put(maker, "\"q\"");
}

static const char *recased(struct maker *maker, const char *name)
{
    static char text[32];
    size_t bytes = strlen(name);

    memcpy(text, name, bytes + 1);
    if (chance(maker, 20))
        text[0] = text[0] >= 'a' && text[0] <= 'z' ? (char)(text[0] - 32) : text[0];
    if (chance(maker, 10) && bytes > 1)
        text[bytes - 1] =
            text[bytes - 1] >= 'a' && text[bytes - 1] <= 'z' ? (char)(text[bytes - 1] - 32) : text[bytes - 1];
    return text;
}

static void put_url_attribute(struct maker *maker, const char *name)
{
    static const char *const equals[] = {"=", "=", "=", "=", "=", " = ", "= ", " =", "\n=\n"};
    static const char quotes[] = {'"', '"', '"', '\'', '\'', '\0'};
    char quote = PICK(maker, quotes);

    put(maker, "%s%s", recased(maker, name), PICK(maker, equals));
    if (quote != '\0')
        put(maker, "%c", quote);
    put_url(maker, quote);
    if (quote != '\0')
        put(maker, "%c", quote);
}

static void put_odd_attribute(struct maker *maker)
{
    static const char *const attributes[] = {"class=x",
                                             "class=\"a b\"",
                                             "id='i'",
                                             "disabled",
                                             "data-x=\"<a href=no>\"",
                                             "title='>'",
                                             "=",
                                             "=x",
                                             "x=",
                                             "x==y",
                                             "\"",
                                             "'",
                                             "a\"b",
                                             "href2=no",
                                             "xhref=no",
                                             "data-href=no",
                                             "on=\"f('<a href=no>')\"",
                                             "x=\"a\"y=b",
                                             "x='a'y",
                                             "/",
                                             "x=a/",
                                             "x=\"a\"/",
                                             "x = 'a'",
                                             "x\n=\n'a'",
                                             "x=\"&quot;\"",
                                             "\xc3\xa9=\xc3\xa9",
                                             "<x",
                                             "x=<a",
                                             "a=b=c",
                                             "color=red",
                                             "alt=\"\"",
                                             "x=''",
                                             "style=\"background:url(no)\"",
                                             "rel=x",
                                             "name=n",
                                             "href"};
    put(maker, "%s", PICK(maker, attributes));
}

static void put_odd_attributes(struct maker *maker, int most)
{
    for (uint64_t i = wr_rng_below(maker->rng, (uint64_t)most + 1); i > 0; i--) {
        put_odd_attribute(maker);
        put(maker, "%s", space(maker));
    }
}

/* ---- elements -------------------------------------------------------------------------------- */

static void put_link(struct maker *maker)
{
    static const struct {
        const char *tag, *attribute;
    } links[] = {{"a", "href"},    {"a", "href"},    {"a", "href"},     {"a", "href"},
                 {"area", "href"}, {"link", "href"}, {"iframe", "src"}, {"img", "src"},
                 {"base", "href"}, {"img", "src"},   {"image", "src"},  {"a", "href"}};
    static const char *const rels[] = {"rel=nofollow",  "rel=\"x NoFollow\"", "rel='next'",
                                       "rel=canonical", "rel=stylesheet",     "REL=\" nofollow\tx\""};
    size_t i = (size_t)wr_rng_below(maker->rng, sizeof links / sizeof links[0]);

    put(maker, "<%s%s", recased(maker, links[i].tag), space(maker));
    put_odd_attributes(maker, 2);
    put_url_attribute(maker, links[i].attribute);
    put(maker, "%s", space(maker));
    if (chance(maker, 20))
        put(maker, "%s%s", PICK(maker, rels), space(maker));
    if (chance(maker, 10))
        put_url_attribute(maker, links[i].attribute); /* only the first counts */
    if (chance(maker, 20))
        put(maker, "%s", space(maker));
    put_odd_attributes(maker, 1);
    put(maker, chance(maker, 10) ? "/>" : ">");
    if (strcmp(links[i].tag, "iframe") == 0)
        put(maker, "<a href=no></iframe%s>", chance(maker, 20) ? " x='>'" : "");
    if (strcmp(links[i].tag, "a") == 0 && chance(maker, 80))
        put(maker, "x</a>");
}

static void put_meta(struct maker *maker)
{
    static const char *const metas[] = {
        "http-equiv=refresh content=\"0; url=u%d\"", "content='5;URL=\"u%d&amp;x\"' http-equiv=Refresh",
        "http-equiv=\"refresh\" content=\"0;u%d\"",  "http-equiv=refresh content='3 , url = u%d x'",
        "http-equiv=refresh content=\"url=no%d\"",   "http-equiv=refresh content=\".5; url='u%d'x\"",
        "name=robots content=nofollow x=%d",         "charset=utf-8 x=%d"};
    size_t i = (size_t)wr_rng_below(maker->rng, sizeof metas / sizeof metas[0]);
    char text[128];

    snprintf(text, sizeof text, "<meta %s>", metas[i]);
    for (char *mark = strstr(text, "%d"); mark != NULL; mark = strstr(text, "%d"))
        memcpy(mark, "7x", 2);
    put(maker, "%s", text);
}

static void put_srcset(struct maker *maker)
{
    int link = maker->link;

    maker->link += 4;
    put(maker, "<img srcset=\"u%d 1x, u%d 2x\" src=u%d><picture><source srcset='u%d 100w'></picture>", link, link + 1,
        link + 2, link + 3);
}

static void put_tag(struct maker *maker)
{
    static const char *const tags[] = {
        "div", "p",       "span",    "ul",       "li",         "b",      "i",     "em",
        "h1",  "table",   "tr",      "td",       "tbody",      "form",   "font",  "center",
        "pre", "section", "article", "code",     "dl",         "dd",     "dt",    "br",
        "hr",  "button",  "object",  "noscript", "blockquote", "label",  "input", "custom-element",
        "x:y", "a1",      "body",    "html",     "head",       "caption"};

    put(maker, "<%s", recased(maker, PICK(maker, tags)));
    if (chance(maker, 50)) {
        put(maker, "%s", space(maker));
        put_odd_attributes(maker, 3);
    }
    put(maker, ">");
}

static void put_end_tag(struct maker *maker)
{
    static const char *const tags[] = {"div",   "p",       "span", "ul",   "li",   "b",     "i",      "a",
                                       "table", "tr",      "td",   "svg",  "math", "form",  "h1",     "body",
                                       "html",  "section", "x:y",  "font", "br",   "style", "script", "title"};

    put(maker, "</%s%s>", recased(maker, PICK(maker, tags)),
        chance(maker, 20)   ? " x='>' y=\"<\""
        : chance(maker, 20) ? "\n"
                            : "");
}

static void put_comment(struct maker *maker)
{
    static const char *const comments[] = {"<!-- <a href=no> -->",
                                           "<!---->",
                                           "<!-->",
                                           "<!--->",
                                           "<!----->",
                                           "<!-- - -- --- -->",
                                           "<!-- x --!>",
                                           "<!-- x --!y <a href=no> -->",
                                           "<!-- > <a href=no> -->",
                                           "<!--><!-- <a href=no> -->",
                                           "<!---><!-- <a href=no> -->",
                                           "<!-- <!-- <a href=no> -->",
                                           "<!-- <a href=no> -- > <a href=no> -->",
                                           "<!--\n<a href=no>\n-->",
                                           "<!-a href=no>",
                                           "<!a href=no>",
                                           "</!a href=no>",
                                           "<!DOCTYPE html>",
                                           "<!doctype html PUBLIC \"a\" 'b'>",
                                           "<!DOCTYPE x [ <!ENTITY a \"b\"> ]>",
                                           "<![CDATA[ x ]]>",
                                           "<![CDATA[<a href=no>",
                                           "<!ELEMENT a>",
                                           "<?a href=no>",
                                           "</?a href=no>",
                                           "<!--[if IE]><a href=no><![endif]-->",
                                           "<!--[if !IE]><!-->x<!--<![endif]-->",
                                           "<!-- --!--><a href=no> -->",
                                           "<!--x--!-",
                                           "-->"};
    put(maker, "%s", PICK(maker, comments));
}

/* ---- raw text, svg, templates ---------------------------------------------------------------- */

static void put_raw(struct maker *maker)
{
    static const char *const tags[] = {"script", "script",  "style",    "textarea", "title",
                                       "xmp",    "noembed", "noframes", "iframe"};
    static const char *const inside[] = {"<a href=no>",
                                         "</a><a href=no>",
                                         "</x><a href=no>",
                                         "<!-- <a href=no> -->",
                                         "<!--<a href=no>-->",
                                         "&lt;",
                                         "<",
                                         "</",
                                         "</ ",
                                         "<![CDATA[ <a href=no> ]]>",
                                         "var a = '<a href=no>';",
                                         "if (a<b && c>d)",
                                         "</titlex>",
                                         "</scripts>",
                                         "</styl",
                                         "<p class=\"x\">",
                                         "'",
                                         "\"",
                                         "\n",
                                         "<!",
                                         "<!-",
                                         "--",
                                         "<!-- x -->"};
    const char *tag = PICK(maker, tags);

    put(maker, "<%s%s>", recased(maker, tag), chance(maker, 20) ? " x='>'" : "");
    for (uint64_t i = wr_rng_below(maker->rng, 5); i > 0; i--)
        put(maker, "%s", PICK(maker, inside));
    put(maker, "</%s%s>", recased(maker, tag),
        chance(maker, 20)   ? " x='>'"
        : chance(maker, 20) ? "\n"
        : chance(maker, 10) ? "/"
                            : "");
}

static void put_script(struct maker *maker)
{
    static const char *const scripts[] = {"<!-- <script> </script> <a href=no> --></script>",
                                          "<!-- <script> </script> <a href=no> </script>",
                                          "<!-- </script>",
                                          "<!-- <script </script> <a href=no> --></script>",
                                          "<!-- <script> --></script>",
                                          "<!--><script></script>",
                                          "<!---><a href=no></script>",
                                          "<!--<scrip></script>",
                                          "<!--<scriptx></script>",
                                          "<!-- <script>x</script x></script>",
                                          "<!-- <script/> </script> <a href=no> --> </script>",
                                          "<!- <script> </script>",
                                          "<!-- <ScRiPt> - -- </sCrIpT> -- > --></SCRIPT>",
                                          "<!-- - -- <script>-->x</script>",
                                          "<!-- <script>--</script>-<a href=no>-></script>",
                                          "document.write('<scr'+'ipt></scr'+'ipt>')</script>"};
    put(maker, "<script>%s", PICK(maker, scripts));
}

static void put_foreign(struct maker *maker)
{
    static const char *const svgs[] = {
        "<svg><path d='M0 0'/><a href=u%d>x</a></svg>",
        "<svg><a xlink:href=\"u%d\"></a></svg>",
        "<svg><title>t <a href=u%d></a></title></svg>",
        "<svg><style>a<a href=u%d></a></style></svg>",
        "<svg><script><a href=u%d></a></script></svg>",
        "<svg><![CDATA[<a href=no%d>]]></svg>",
        "<svg><![CDATA[ ] ]] ]> ]]]><a href=u%d></a></svg>",
        "<svg><foreignObject><div><a href=u%d>x</a><style><a href=no></style></div></foreignObject></svg>",
        "<svg><foreignObject><svg><style><a href=u%d></a></style></svg></foreignObject></svg>",
        "<svg><desc><style><a href=no%d></style></desc></svg>",
        "<svg><g><div><style><a href=no%d></style></div>",
        "<svg/><style><a href=no%d></style>",
        "<svg><style/><a href=u%d></a></svg>",
        "<svg><title/><style><a href=u%d></a></style></svg>",
        "<svg><font><style><a href=u%d></a></style></font></svg>",
        "<svg><font color=red><style><a href=no%d></style></font>",
        "<svg><p><style><a href=no%d></style></p>",
        "<math><mi><style><a href=no%d></style></mi></math>",
        "<math><mrow><style>x</style></mrow></math><a href=u%d></a>",
        "<math><annotation-xml encoding='text/html'><style><a href=no%d></style></annotation-xml></math>",
        "<math><annotation-xml><style>x</style></annotation-xml></math><a href=u%d></a>",
        "<math><![CDATA[<a href=no%d>]]></math>",
        "<math><a href=no%d></a></math>",
        "<svg><image href=no%d /><img src=u%d></svg>",
        "<svg><base href=no%d /><link href=no /><area href=no /></svg>",
        "<svg><iframe src=no%d /></svg>",
        "<svg><svg></svg><style><a href=u%d></a></style></svg><style><a href=no></style>",
        "<svg viewBox='0 0 1 1'><use href='#x'/><blockquote><a href=u%d></a></blockquote>",
        "<svg><textarea><a href=u%d></a></textarea></svg>",
        "<svg><template><a href=u%d></a></template></svg>"};
    const char *svg = PICK(maker, svgs);

    maker->link += 2;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    put(maker, svg, maker->link - 2, maker->link - 1);
#pragma GCC diagnostic pop
}

/* Elements that are left open, or closed in the wrong order. */
static void put_half(struct maker *maker)
{
    static const char *const halves[] = {"<svg>",        "<svg><g>", "<math>",   "<svg><foreignObject>", "<svg><desc>",
                                         "<svg><title>", "</svg>",   "</math>",  "</foreignObject>",     "</title>",
                                         "<math><mi>",   "</mi>",    "<svg><a>", "<math><mrow>"};
    put(maker, "%s", PICK(maker, halves));
}

static void put_template(struct maker *maker)
{
    static const char *const templates[] = {
        "<template><a href=no%d></a></template>",
        "<template><div><template><a href=no%d></template></div><a href=no></template>",
        "<template shadowrootmode=open><a href=u%d></a></template>",
        "</template><a href=u%d></a>",
        "<template><style></template></style><a href=no%d></template>",
        "<template><!-- </template> --><a href=no%d></template>",
        "<template><svg><g></svg></template><a href=u%d></a>",
        "<template><base href=no%d><link href=no></template>"};
    const char *text = PICK(maker, templates);

    maker->link++;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    put(maker, text, maker->link - 1);
#pragma GCC diagnostic pop
}

static void put_head(struct maker *maker)
{
    static const char *const titles[] = {
        "t",          "",
        " ",          "a\n\t b",
        " a  b ",     "a &amp; b",
        "&copy2026",  "&ampx;y",
        "&notit;",    "&unknown;",
        "x &lt y",    "&#65;&#x42",
        "&#128;",     "&#32;a&Tab;b",
        "a &nbsp; b", "<b>a</b>",
        "</titl>e",   "</ title>",
        "a < b",      "<<",
        "</titlex",   "<!-- a -->",
        "&",          "&#;",
        "&eacutex",   "\xc3\xa9t\xc3\xa9",
        "a\r\nb",
    };

    put(maker, "<!DOCTYPE html>\n<html><head><%s>", recased(maker, "title"));
    for (uint64_t i = 1 + wr_rng_below(maker->rng, 3); i > 0; i--)
        put(maker, "%s", PICK(maker, titles));
    put(maker, "</%s%s>\n", recased(maker, "title"), chance(maker, 20) ? "\n" : "");
}

/* ---- pages ----------------------------------------------------------------------------------- */

size_t make_page(struct wr_rng *rng, int pieces, bool halves, char ret_page[PAGE_BYTES])
{
    struct maker maker = {rng, ret_page, 0, 0};

    if (chance(&maker, 70))
        put_head(&maker);
    for (int i = 0; i < pieces; i++) {
        uint64_t dice = wr_rng_below(rng, 100);
        if (dice < 30)
            put_link(&maker);
        else if (dice < 45)
            put_tag(&maker);
        else if (dice < 55)
            put_end_tag(&maker);
        else if (dice < 65)
            put_text(&maker);
        else if (dice < 73)
            put_comment(&maker);
        else if (dice < 80)
            put_raw(&maker);
        else if (dice < 84)
            put_script(&maker);
        else if (dice < 91)
            put_foreign(&maker);
        else if (dice < 93 && halves)
            put_half(&maker);
        else if (dice < 95)
            put_template(&maker);
        else if (dice < 97)
            put_meta(&maker);
        else
            put_srcset(&maker);
    }
    if (chance(&maker, 25)) /* the page ends in the middle */
        maker.used -= (size_t)wr_rng_below(rng, maker.used / 4 + 1);
    return maker.used;
}
