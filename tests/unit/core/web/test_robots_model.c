/* SPDX-License-Identifier: MIT */
/* test_robots_model.c - compares robots.txt verdicts with those of a naive matcher, for random
 * rules and paths. */
#include "robots_rig.h"

#include "base/rng.h"
#include "lib/robots_model.h"

#define RULES_MAX 24

struct round {
    struct wr_rng rng;
    char paths[RULES_MAX][64]; /* paths of the rules, as written */
    bool allows[RULES_MAX];
    size_t count;
};

/* Pieces of which few match each other and many nearly do. */
static const char *const pieces[] = {"/",   "a",   "b",  "ab",  "aa",       "*",      "*",   "$",   "%61", "%62",
                                     "%2F", "%2f", "%",  "%2A", "%24",      "?",      "=",   ".",   "..",  "-",
                                     "%2e", " ",   "|",  "%7C", "\xc3\xbc", "%C3%BC", "%c3", "/a/", "a*b", "*a$",
                                     "b*",  "**",  "/*", "aab", "%%",       "~",      "%7e", "A"};

static void make_path(struct wr_rng *rng, char *ret_path, size_t most)
{
    strcpy(ret_path, wr_rng_below(rng, 10) > 0 ? "/" : "");
    for (uint64_t left = wr_rng_below(rng, most); left > 0; left--)
        strcat(ret_path, pieces[wr_rng_below(rng, sizeof pieces / sizeof pieces[0])]);
}

static void make_rules(struct round *round, char *ret_text)
{
    strcpy(ret_text, "User-agent: *\n");
    round->count = (size_t)wr_rng_below(&round->rng, RULES_MAX + 1);
    for (size_t i = 0; i < round->count; i++) {
        make_path(&round->rng, round->paths[i], 8);
        round->allows[i] = wr_rng_below(&round->rng, 2) == 0;
        strcat(ret_text, round->allows[i] ? "Allow: " : "Disallow: ");
        strcat(ret_text, round->paths[i]);
        strcat(ret_text, "\n");
    }
}

/* Returns the line of the strongest rule with the sign of verdict(). If equal, the first one. */
static int expect(const struct round *round, const char *path)
{
    size_t best = SIZE_MAX, best_octets = 0;
    for (size_t i = 0; i < round->count; i++) {
        size_t octets;
        struct wr_span rule = wr_span_trim(wr_span_of(round->paths[i]));
        if (rule.bytes == 0 || !model_matches(rule, wr_span_of(path), &octets))
            continue;
        if (best == SIZE_MAX || octets > best_octets ||
            (octets == best_octets && round->allows[i] && !round->allows[best])) {
            best = i;
            best_octets = octets;
        }
    }
    return best == SIZE_MAX ? 0 : round->allows[best] ? (int)best + 2 : -((int)best + 2);
}

static void random_rules_are_judged_as_by_a_naive_matcher(void **state)
{
    static char text[RULES_MAX * 96];
    struct round round;
    size_t denied = 0, allowed = 0;
    (void)state;
    wr_rng_init(&round.rng, weir_test_seed());
    for (int i = 0; i < 6000; i++) {
        struct robots_fixture rig;
        make_rules(&round, text);
        rig_read(&rig, text);
        for (int j = 0; j < 10; j++) {
            char path[128] = "/";
            make_path(&round.rng, path + 1, 10);
            int expected = expect(&round, path), result = verdict(&rig, path);
            if (result != expected)
                fail_msg("round %d, \"%s\" on\n%s: %d and not %d", i, path, text, result, expected);
            denied += result < 0;
            allowed += result > 0;
        }
        rig_release(&rig);
    }
    assert_true(denied > 5000 && allowed > 5000);
}

static void robots_txt_of_any_bytes_judges_any_path(void **state)
{
    static char text[4096];
    struct wr_rng rng;
    (void)state;
    wr_rng_init(&rng, weir_test_seed());
    for (int i = 0; i < 20000; i++) {
        size_t bytes = 0;
        struct robots_fixture rig;
        while (bytes + 40 < sizeof text && wr_rng_below(&rng, 20) > 0) {
            static const char *const words[] = {
                "User-agent: *\n", "Disallow: /", "Allow: ", "Crawl-delay: 1", "\r", "\n", "#", "*", "$"};
            uint64_t word = wr_rng_below(&rng, 12);
            if (word < 9) {
                strcpy(text + bytes, words[word]);
                bytes += strlen(words[word]);
            } else
                text[bytes++] = (char)wr_rng_next(&rng);
        }
        rig_read_as(&rig, "weir", text, bytes);
        char path[64] = "/";
        make_path(&rng, path + 1, 6);
        assert_true(ask(&rig, path).allowed || ask(&rig, path).line > 0);
        rig_release(&rig);
    }
}

WEIR_TESTS(test(random_rules_are_judged_as_by_a_naive_matcher), test(robots_txt_of_any_bytes_judges_any_path))
