/* SPDX-License-Identifier: MIT */
/* test_robots.c - tests robots.txt by RFC 9309: groups, and which rule decides. */
#include "robots_rig.h"

static int judge_as(const char *agent, const char *text, const char *path)
{
    struct robots_fixture rig;
    rig_read_as(&rig, agent, text, strlen(text));
    int result = verdict(&rig, path);
    rig_release(&rig);
    return result;
}

/* ---- groups (2.2.1) ---- */

static void own_group_counts_or_else_the_group_of_all_agents(void **state)
{
    static const char text[] = "User-agent: *\nDisallow: /all\n\nUser-agent: Weir\nDisallow: /weir\n"
                               "\nUser-agent: other\nDisallow: /other\n";
    (void)state;
    assert_int_equal(judge_as("weir", text, "/weir"), -5);
    assert_int_equal(judge_as("weir", text, "/all"), 0);
    assert_int_equal(judge_as("weir", text, "/other"), 0);
    assert_int_equal(judge_as("OTHER", text, "/other"), -8);
    assert_int_equal(judge_as("third", text, "/all"), -2);
    assert_int_equal(judge_as("third", text, "/weir"), 0);
    assert_int_equal(judge_as("", text, "/all"), -2);
    assert_int_equal(judge_as("*", text, "/all"), -2);
}

static void product_tokens_match_as_a_whole(void **state)
{
    static const char text[] =
        "User-agent: weirbot\nDisallow: /1\nUser-agent: wei\nDisallow: /2\n"
        "User-agent: weir-news\nDisallow: /3\nUser-agent: weir2\nDisallow: /4\nUser-agent: x weir\nDisallow: /5\n"
        "User-agent: *weir\nDisallow: /6\n";
    (void)state;
    for (char digit = '1'; digit <= '6'; digit++)
        assert_int_equal(judge(text, (const char[]){'/', digit, '\0'}), 0);
    assert_int_equal(judge_as("weir-news", text, "/3"), -6);
    assert_int_equal(judge_as("Weir2", text, "/4"), -8);
}

static void versions_and_comments_after_a_token_do_not_count(void **state)
{
    (void)state;
    assert_int_equal(judge("User-agent: weir/2.1\nDisallow: /a", "/a"), -2);
    assert_int_equal(judge("User-agent: weir (a crawler)\nDisallow: /a", "/a"), -2);
    assert_int_equal(judge("User-agent: weir#bot\nDisallow: /a", "/a"), -2);
    assert_int_equal(judge("User-agent: * # all\nDisallow: /a", "/a"), -2);
    assert_int_equal(judge("User-agent: * and all others\nDisallow: /a", "/a"), -2);
    assert_int_equal(judge_as("weir/1.0 (+https://example.org/)", "User-agent: WEIR\nDisallow: /a", "/a"), -2);
}

static void groups_of_one_agent_are_merged(void **state)
{
    static const char text[] = "User-agent: weir\nDisallow: /a\nUser-agent: *\nDisallow: /b\n"
                               "User-agent: WEIR\nDisallow: /c\nAllow: /a/d\n";
    (void)state;
    assert_int_equal(judge(text, "/a"), -2);
    assert_int_equal(judge(text, "/a/d"), 7);
    assert_int_equal(judge(text, "/b"), 0);
    assert_int_equal(judge(text, "/c"), -6);
    assert_int_equal(judge("User-agent: *\nDisallow: /a\nUser-agent: x\nUser-agent: *\nDisallow: /b", "/a"), -2);
    assert_int_equal(judge("User-agent: *\nDisallow: /a\nUser-agent: x\nUser-agent: *\nDisallow: /b", "/b"), -5);
}

static void a_group_may_name_several_agents(void **state)
{
    static const char text[] = "User-agent: a\nUser-agent: weir\n\nUser-agent: b\nDisallow: /x\nDisallow: /y\n"
                               "User-agent: c\nDisallow: /z\n";
    (void)state;
    assert_int_equal(judge(text, "/x"), -5);
    assert_int_equal(judge(text, "/y"), -6);
    assert_int_equal(judge(text, "/z"), 0);
    assert_int_equal(judge_as("b", text, "/x"), -5);
    assert_int_equal(judge_as("c", text, "/x"), 0);
}

static void other_robots_records_do_not_end_a_group(void **state)
{
    static const char text[] = "User-agent: weir\nSitemap: https://example.org/s.xml\nUnknown: x\n\nCrawl-delay: 1\n"
                               "User-agent: other\nDisallow: /a\nSitemap: /t\nHost: example.org\nDisallow: /b\n";
    (void)state;
    assert_int_equal(judge(text, "/a"), -7);
    assert_int_equal(judge(text, "/b"), -10);
    assert_int_equal(judge_as("other", text, "/a"), -7);
}

static void an_empty_rule_ends_the_list_of_agents_and_matches_nothing(void **state)
{
    static const char text[] = "User-agent: weir\nDisallow:\n\nUser-agent: *\nDisallow: /\n";
    (void)state;
    assert_int_equal(judge(text, "/a"), 0);
    assert_int_equal(judge_as("other", text, "/a"), -5);
    assert_int_equal(judge("User-agent: weir\nAllow:\nUser-agent: *\nDisallow: /\n", "/a"), 0);
}

static void rules_before_any_agent_do_not_count(void **state)
{
    (void)state;
    assert_int_equal(judge("Disallow: /\nUser-agent: *\nDisallow: /a", "/b"), 0);
    assert_int_equal(judge("Disallow: /", "/b"), 0);
    assert_int_equal(judge("", "/b"), 0);
}

/* ---- rules (2.2.2, 2.2.3) ---- */

static void the_longest_rule_that_matches_decides(void **state)
{
    static const struct judged cases[] = {
        {"Disallow: /", "/", -2},
        {"Disallow: /", "/a", -2},
        {"Allow: /", "/a", 2},
        {"Disallow: /a", "/a", -2},
        {"Disallow: /a", "/ab", -2},
        {"Disallow: /a", "/a/b?c", -2},
        {"Disallow: /a", "/", 0},
        {"Disallow: /a", "/b", 0},
        {"Disallow: /a/", "/a", 0},
        {"Disallow: /a/", "/a/", -2},
        {"Disallow: /A", "/a", 0}, /* paths are case-sensitive */
        {"Allow: /a\nDisallow: /", "/a/b", 2},
        {"Disallow: /\nAllow: /a", "/a/b", 3},
        {"Disallow: /\nAllow: /a", "/b", -2},
        {"Allow: /a/\nDisallow: /a/b.gif", "/a/b.gif", -3},
        {"Allow: /a/\nDisallow: /a/b.gif", "/a/c.gif", 2},
        {"Disallow: /a\nAllow: /a", "/a", 3}, /* if equal, Allow wins */
        {"Allow: /a\nDisallow: /a", "/a", 2},
        {"Disallow: /a\nDisallow: /a", "/a", -2},
        {"Disallow: /a*\nAllow: /a", "/a", -2},    /* '*' counts as an octet */
        {"Disallow: /ab$\nAllow: /ab", "/ab", -2}, /* '$' counts as an octet */
        {"Disallow: /a**\nAllow: /a*", "/a", 3},   /* "**" counts as one '*' */
        {"Disallow: /*.gif\nAllow: /a/", "/a/b.gif", -2},
        {"Disallow: /*.gif\nAllow: /images/", "/images/b.gif", 3},
        {"Allow: /p\nDisallow: /", "/page", 2},
        {"Allow: /folder\nDisallow: /folder", "/folder/page", 2},
        {"Allow: /page\nDisallow: /*.htm", "/page.htm", -3},
        {"Allow: /page\nDisallow: /*.ph", "/page.php5", 2},
        {"Allow: /$\nDisallow: /", "/", 2},
        {"Allow: /$\nDisallow: /", "/page.htm", -3},
        {"Disallow: foo", "/foo", 0}, /* no path begins like this */
        {"Disallow: http://example.org/a", "/a", 0},
    };
    (void)state;
    check_all_judged(cases);
}

static void star_matches_anything_and_a_final_dollar_the_end(void **state)
{
    static const struct judged cases[] = {
        {"Disallow: *", "/", -2},
        {"Disallow: *", "/a", -2},
        {"Disallow: /*", "/", -2},
        {"Disallow: *a", "/b/a", -2},
        {"Disallow: *a", "/b", 0},
        {"Disallow: /a*b", "/ab", -2},
        {"Disallow: /a*b", "/a/c/bd", -2},
        {"Disallow: /a*b", "/a", 0},
        {"Disallow: /a*b$", "/acb", -2},
        {"Disallow: /a*b$", "/acbc", 0},
        {"Disallow: /a*b$", "/abab", -2},
        {"Disallow: /a*b$", "/ab", -2},
        {"Disallow: /a*a$", "/a", 0}, /* the parts must not overlap */
        {"Disallow: /a*ab$", "/ab", 0},
        {"Disallow: /a*$", "/a", -2},
        {"Disallow: /a*$", "/abc", -2},
        {"Disallow: /*?", "/a", 0},
        {"Disallow: /*?", "/a?", -2},
        {"Disallow: /*?", "/a?b", -2},
        {"Disallow: /*?$", "/a?b", 0},
        {"Disallow: /*.php$", "/a.php", -2},
        {"Disallow: /*.php$", "/a.php?b", 0},
        {"Disallow: /*.php$", "/a.php/", 0},
        {"Disallow: /*.php$", "/a.php.php", -2},
        {"Disallow: /*/b/*/d", "/a/b/c/d", -2},
        {"Disallow: /*/b/*/d", "/a/b/d", 0},
        {"Disallow: /*a*a*a", "/aa", 0},
        {"Disallow: /*a*a*a", "/aaa", -2},
        {"Disallow: /***a***", "/ba", -2},
        {"Disallow: /a$", "/a", -2},
        {"Disallow: /a$", "/ab", 0},
        {"Disallow: $", "/", 0},
        {"Disallow: /a$b", "/a$b", -2}, /* only a '$' at the end is special */
        {"Disallow: /a$b", "/a", 0},
        {"Disallow: /a$$", "/a$", -2},
        {"Disallow: /a$$", "/a$b", 0},
        {"Disallow: /a*b*c*d", "/abcbcd", -2},
        {"Disallow: /*a*b$", "/xaxbxb", -2},
        {"Disallow: /a?b", "/a?b", -2}, /* '?' and '.' are literal */
        {"Disallow: /a?b", "/acb", 0},
        {"Disallow: /a.b", "/acb", 0},
        {"Disallow: /[ab]", "/a", 0},
    };
    (void)state;
    check_all_judged(cases);
}

/* B14 */
static void encoded_path_evades_no_robots_rule(void **state)
{
    static const struct judged cases[] = {
        {"Disallow: /bar", "/%62ar", -2},
        {"Disallow: /%62ar", "/bar", -2},
        {"Disallow: /%62%61%7A", "/baz", -2},
        {"Disallow: /a-._~z", "/%61%2d%2E%5f%7ez", -2},
        {"Disallow: /%2D", "/-", -2},
        {"Disallow: /a%2Fb", "/a%2fb", -2}, /* the case of hex digits is ignored */
        {"Disallow: /a%2fb", "/a%2Fb", -2},
        /* an encoded reserved character is different (RFC 9309 2.2.2) */
        {"Disallow: /a%2Fb", "/a/b", 0},
        {"Disallow: /a/b", "/a%2Fb", 0},
        {"Disallow: /a?b", "/a%3Fb", 0},
        {"Disallow: /%E3%83%84", "/\xe3\x83\x84", -2},
        {"Disallow: /\xe3\x83\x84", "/%e3%83%84", -2},
        {"Disallow: /\xe3\x83\x84", "/\xe3\x83\x84", -2},
        {"Disallow: /caf\xe9", "/caf%E9", -2},
        {"Disallow: /a b", "/a%20b", -2},
        {"Disallow: /a%20b", "/a%20b", -2},
        {"Disallow: /a|b", "/a|b", -2},
        {"Disallow: /a|b", "/a%7cb", -2},
        {"Disallow: /a%7Cb", "/a|b", -2},
        {"Disallow: /a\"<>^`{}\\b", "/a%22%3c%3e%5e%60%7b%7d%5cb", -2},
        {"Disallow: /%2A", "/*", -2}, /* a literal star (2.2.3) */
        {"Disallow: /%2A", "/%2a", -2},
        {"Disallow: /%2A", "/a", 0},
        {"Disallow: /a%24", "/a$", -2},
        {"Disallow: /a%24", "/a$b", -2},
        {"Disallow: /a%24", "/a", 0},
        {"Disallow: /a*b", "/a*b", -2},
        {"Disallow: /%", "/%", -2},
        {"Disallow: /%", "/%25", -2},
        {"Disallow: /%zz", "/%25zz", -2},
        {"Disallow: /%2", "/%2", -2},
        {"Disallow: /%%62", "/%25b", -2}, /* decoded only once */
        {"Disallow: /%2562", "/%2562", -2},
        {"Disallow: /b", "/%2562", 0},
        {"Disallow: /*%62$", "/ab", -2},
        {"Allow: /%62ar\nDisallow: /bar", "/bar", 2}, /* equal after normalisation */
        {"Disallow: /%62ar\nAllow: /bar/", "/bar/", 3},
        {"Disallow: /%C3%BC\nAllow: /\xc3\xbcx", "/%c3%bcx", 3},
    };
    (void)state;
    check_all_judged(cases);
}

static void robots_txt_itself_is_always_allowed(void **state)
{
    static const struct judged cases[] = {
        {"Disallow: /", "/robots.txt", 0},    {"Disallow: /robots.txt", "/robots.txt", 0},
        {"Disallow: /", "/%72obots.txt", 0},  {"Disallow: /", "/robots.txt/", -2},
        {"Disallow: /", "/robots.txt?a", -2}, {"Disallow: /", "/a/robots.txt", -2},
        {"Disallow: /", "/robots.txtx", -2},
    };
    (void)state;
    check_all_judged(cases);
}

static void robots_verdict_quotes_the_rule_as_written(void **state)
{
    struct robots_fixture rig;
    (void)state;
    rig_read(&rig, "# rules\n\nUser-agent: *\n  Disallow :  /a%2fb*\xc3\xbc$  # no\nAllow: /a\n");
    struct wr_fetch_deliver_robots answer = ask(&rig, "/a%2Fbcd\xc3\xbc");
    assert_true(!answer.allowed && !answer.gave_up);
    assert_int_equal(answer.line, 4);
    assert_int_equal(answer.path.bytes, 10);
    assert_memory_equal(answer.path.data, "/a%2fb*\xc3\xbc$", 10);
    assert_int_equal(ask(&rig, "/b").line, 0);
    assert_int_equal(wr_robots_facts(rig.robots)->rules, 2);
    uint32_t lines = 0;
    for (uint32_t i = 0; i < 2; i++)
        lines += wr_robots_rule(rig.robots, i).line;
    assert_int_equal(lines, 4 + 5);
    rig_release(&rig);
}

WEIR_TESTS(test(own_group_counts_or_else_the_group_of_all_agents), test(product_tokens_match_as_a_whole),
           test(versions_and_comments_after_a_token_do_not_count), test(groups_of_one_agent_are_merged),
           test(a_group_may_name_several_agents), test(other_robots_records_do_not_end_a_group),
           test(an_empty_rule_ends_the_list_of_agents_and_matches_nothing), test(rules_before_any_agent_do_not_count),
           test(the_longest_rule_that_matches_decides), test(star_matches_anything_and_a_final_dollar_the_end),
           test(encoded_path_evades_no_robots_rule), test(robots_txt_itself_is_always_allowed),
           test(robots_verdict_quotes_the_rule_as_written))
