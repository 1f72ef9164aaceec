/* SPDX-License-Identifier: MIT */
/* limit_field_name.c - parses the names of header fields that report rate limits.
 *
 *     x-   ratelimit   -remaining  -requests           openai
 *     x-   ratelimit   -requests   -reset              linear
 *     anthropic-  ratelimit  -requests  -limit
 *     x-   rate-limit  -reset                          twitter
 *     \_ before _/     \_ words: one is the role, the others name the quota _/
 */
#include "core/web/http/limit_field_name.h"

#include "base/ascii.h"

#define NAME_MAX_BYTES 64 /* longer field names are not known */

uint64_t wr_limit_field_name_hash(uint64_t hash, struct wr_span text)
{
    for (size_t i = 0; i < text.bytes; i++)
        hash = (hash ^ (uint8_t)text.data[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Looks up the names that belong to no family. */
static bool find_single(struct wr_span name, struct wr_limit_field_name *ret_name)
{
    static const struct {
        const char *name;
        enum wr_limit_field_role role;
        bool is_ms;
    } singles[] = {
        {"date", WR_ROLE_DATE, false},
        {"retry-after", WR_ROLE_RETRY, false},
        {"x-retry-after", WR_ROLE_RETRY, false},
        {"retry-after-ms", WR_ROLE_RETRY, true},
        {"x-ms-retry-after-ms", WR_ROLE_RETRY, true},
        {"ratelimit", WR_ROLE_STRUCTURED, false},
    };

    for (size_t i = 0; i < sizeof singles / sizeof singles[0]; i++)
        if (wr_span_is(name, singles[i].name)) {
            *ret_name = (struct wr_limit_field_name){.role = singles[i].role, .is_ms = singles[i].is_ms};
            return true;
        }
    return false;
}

/* Finds "ratelimit" or "rate-limit" as a whole word. Returns false if the name does not contain
 * it. */
static bool find_stem(struct wr_span name, size_t *ret_at, size_t *ret_bytes)
{
    for (size_t i = 0; i + 9 <= name.bytes; i++) {
        struct wr_span rest = wr_span_after(name, i);
        if (rest.data[0] != 'r')
            continue;
        size_t bytes = memcmp(rest.data, "ratelimit", 9) == 0 ? 9 : 10;
        bool is_stem = bytes == 9 || (rest.bytes >= 10 && memcmp(rest.data, "rate-limit", 10) == 0);
        if (is_stem && (i == 0 || name.data[i - 1] == '-') && (rest.bytes == bytes || rest.data[bytes] == '-')) {
            *ret_at = i;
            *ret_bytes = bytes;
            return true;
        }
    }
    return false;
}

static bool is_other_unit(struct wr_span word)
{
    static const char *const units[] = {"tokens", "token", "complexity", "bytes", "cost", "points"};

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (wr_span_is(word, units[i]))
            return true;
    return false;
}

static bool is_milliseconds(struct wr_span word)
{
    return wr_span_is(word, "ms") || wr_span_is(word, "millis") || wr_span_is(word, "milliseconds");
}

/* Returns the length of the owner before the role in words like UserRemaining and UserPathReset
 * (hapi), 0 if there is no owner. */
static size_t owner_bytes(struct wr_span word)
{
    static const char *const owners[] = {"userpath", "user", "path"};

    for (size_t i = 0; i < sizeof owners / sizeof owners[0]; i++) {
        size_t bytes = strlen(owners[i]);
        if (word.bytes > bytes && memcmp(word.data, owners[i], bytes) == 0)
            return bytes;
    }
    return 0;
}

/* Returns true if the word is the role or adds to it. */
static bool note_role(struct wr_limit_field_name *name, struct wr_span word, bool *has_role)
{
    static const struct {
        const char *word;
        enum wr_limit_field_role role;
    } roles[] = {
        {"limit", WR_ROLE_LIMIT},    {"max", WR_ROLE_LIMIT},         {"remaining", WR_ROLE_REMAINING},
        {"reset", WR_ROLE_RESET},    {"next", WR_ROLE_RESET},        {"resettime", WR_ROLE_RESET},
        {"policy", WR_ROLE_POLICY},  {"retry", WR_ROLE_RETRY},       {"retryafter", WR_ROLE_RETRY},
        {"left", WR_ROLE_REMAINING}, {"after", WR_ROLE_RESET_AFTER},
    };

    if (is_milliseconds(word)) {
        name->is_ms = true;
        return true;
    }
    if (*has_role && wr_span_is(word, "after")) {
        name->role = name->role == WR_ROLE_RESET ? WR_ROLE_RESET_AFTER : name->role;
        return true;
    }
    for (size_t i = 0; !*has_role && i < sizeof roles / sizeof roles[0]; i++)
        if (wr_span_is(word, roles[i].word)) {
            name->role = roles[i].role;
            return *has_role = true;
        }
    return false;
}

static bool parse_family(struct wr_span before, struct wr_span words, uint64_t seed,
                         struct wr_limit_field_name *ret_name)
{
    struct wr_limit_field_name name = {.quota = wr_limit_field_name_hash(seed, before)};
    bool has_role = words.bytes == 0; /* X-Rate-Limit of Zendesk is a limit */

    name.role = WR_ROLE_LIMIT;
    while (words.bytes > 0) {
        words = wr_span_after(words, 1); /* skips the dash before the word */
        struct wr_span word = {words.data, wr_span_find(words, '-')};
        words = wr_span_after(words, word.bytes);
        size_t owner = owner_bytes(word);
        struct wr_span quota = word;
        if (note_role(&name, wr_span_after(word, owner), &has_role))
            quota.bytes = owner;
        if (quota.bytes == 0)
            continue;
        name.quota = wr_limit_field_name_hash(wr_limit_field_name_hash(name.quota, (struct wr_span){"-", 1}), quota);
        name.is_other_unit = name.is_other_unit || is_other_unit(quota);
    }
    if (has_role)
        *ret_name = name;
    return has_role;
}

bool wr_limit_field_name_parse(struct wr_span name, uint64_t seed, struct wr_limit_field_name *ret_name)
{
    char bytes[NAME_MAX_BYTES];
    struct wr_span lower = {bytes, name.bytes};
    size_t at, stem;

    if (name.bytes > NAME_MAX_BYTES)
        return false;
    for (size_t i = 0; i < name.bytes; i++)
        bytes[i] = wr_ascii_lower(name.data[i]);
    if (find_single(lower, ret_name))
        return true;
    if (!find_stem(lower, &at, &stem))
        return false;
    return parse_family((struct wr_span){bytes, at}, wr_span_after(lower, at + stem), seed, ret_name);
}
