/* SPDX-License-Identifier: MIT */
/* robots_line.c - parses the lines of robots.txt one by one: "Disallow: /private # keep out". */
#include "core/web/robots/robots_compiled.h"

#include "base/ascii.h"
#include "base/bits.h"

/* ---- lines ---- */

static size_t find_from(struct wr_span text, size_t from, char byte)
{
    return from + wr_span_find(wr_span_after(text, from), byte);
}

void wr_robots_lines_init(struct wr_robots_lines *ret_lines, struct wr_span text)
{
    *ret_lines = (struct wr_robots_lines){.text = text,
                                          .lf_at = wr_span_find(text, '\n'),
                                          .cr_at = wr_span_find(text, '\r'),
                                          .hash_at = wr_span_find(text, '#')};
}

/* Removes blanks and control characters, NUL included, from the front. */
static struct wr_span trim_front(struct wr_span span)
{
    while (span.bytes > 0 && (unsigned char)span.data[0] <= ' ')
        span = wr_span_after(span, 1);
    return span;
}

static struct wr_span trim_line(struct wr_span span)
{
    span = trim_front(span);
    while (span.bytes > 0 && (unsigned char)span.data[span.bytes - 1] <= ' ')
        span.bytes--;
    return span;
}

/* Lines end with LF, CR or CRLF. The offsets of the next LF, CR and '#' are remembered, so that a
 * character that the file does not use is searched for only once. */
bool wr_robots_lines_next(struct wr_robots_lines *lines, struct wr_span *ret_line)
{
    struct wr_span text = lines->text;

    if (lines->at >= text.bytes)
        return false;
    if (lines->lf_at < lines->at)
        lines->lf_at = find_from(text, lines->at, '\n');
    if (lines->cr_at < lines->at)
        lines->cr_at = find_from(text, lines->at, '\r');
    if (lines->hash_at < lines->at)
        lines->hash_at = find_from(text, lines->at, '#');
    size_t end = lines->lf_at < lines->cr_at ? lines->lf_at : lines->cr_at;
    size_t text_end = lines->hash_at < end ? lines->hash_at : end;
    struct wr_span line = {text.data + lines->at, text_end - lines->at};
    lines->at = end + (end == lines->cr_at && lines->lf_at == end + 1 ? 2 : 1);
    lines->number++;
    *ret_line = trim_line(line);
    return true;
}

/* ---- keys ---- */

#define NAME_MAX 16 /* letters of a key; longer keys are unknown */

/* Key names. Only letters count: "user-agent", "User Agent" and "useragent" are equal. A longer key
 * such as "disallowed" matches, too. The misspellings are those that Google's parser accepts. */
static const struct {
    const char *name;
    size_t bytes;
    enum wr_robots_key key;
} keys[] = {
#define KEY(name, key)             \
    {                              \
        name, sizeof name - 1, key \
    }
    KEY("disallow", WR_ROBOTS_DISALLOW),  KEY("allow", WR_ROBOTS_ALLOW),       KEY("useragent", WR_ROBOTS_AGENT),
    KEY("sitemap", WR_ROBOTS_SITEMAP),    KEY("crawldelay", WR_ROBOTS_DELAY),  KEY("requestrate", WR_ROBOTS_RATE),
    KEY("dissallow", WR_ROBOTS_DISALLOW), KEY("dissalow", WR_ROBOTS_DISALLOW), KEY("disalow", WR_ROBOTS_DISALLOW),
    KEY("diasllow", WR_ROBOTS_DISALLOW),  KEY("disallaw", WR_ROBOTS_DISALLOW),
#undef KEY
};

/* Returns true for the first word of a key that is also written as two words. */
static bool is_half(const char *name, size_t bytes)
{
    return (bytes == 4 && (memcmp(name, "user", 4) == 0 || memcmp(name, "site", 4) == 0)) ||
           (bytes == 5 && memcmp(name, "crawl", 5) == 0) || (bytes == 7 && memcmp(name, "request", 7) == 0);
}

static enum wr_robots_key find_robots_key(const char *name, size_t bytes)
{
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (keys[i].bytes <= bytes && memcmp(name, keys[i].name, keys[i].bytes) == 0)
            return keys[i].key;
    return WR_ROBOTS_OTHER;
}

static bool is_line_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Removes the letters of one word from the front and appends them to `name` in lower case, ignoring
 * '-' and '_'. */
static void take_key_word(struct wr_span *line, char name[NAME_MAX], size_t *bytes)
{
    size_t at = 0;

    for (; at < line->bytes && *bytes < NAME_MAX; at++) {
        char c = line->data[at];
        if (wr_ascii_is_alpha(c))
            name[(*bytes)++] = wr_ascii_lower(c);
        else if (c != '-' && c != '_')
            break;
    }
    *line = wr_span_after(*line, at);
}

static bool has_blank(struct wr_span value)
{
    for (size_t i = 0; i < value.bytes; i++)
        if (is_line_blank(value.data[i]))
            return true;
    return false;
}

/* Recognizes the usual spellings of nearly all lines. Reading them letter by letter takes a fifth
 * of the total time. */
static enum wr_robots_key usual_key(struct wr_span line, size_t *ret_bytes)
{
    static const char disallow[] = "Disallow:", allow[] = "Allow:";

    if (line.bytes >= sizeof disallow - 1 && memcmp(line.data, disallow, sizeof disallow - 1) == 0) {
        *ret_bytes = sizeof disallow - 1;
        return WR_ROBOTS_DISALLOW;
    }
    if (line.bytes >= sizeof allow - 1 && memcmp(line.data, allow, sizeof allow - 1) == 0) {
        *ret_bytes = sizeof allow - 1;
        return WR_ROBOTS_ALLOW;
    }
    return WR_ROBOTS_OTHER;
}

enum wr_robots_key wr_robots_line_split(struct wr_span line, struct wr_span *ret_value)
{
    char name[NAME_MAX];
    size_t bytes = 0;
    enum wr_robots_key key = usual_key(line, &bytes);

    if (key != WR_ROBOTS_OTHER) {
        *ret_value = trim_front(wr_span_after(line, bytes));
        return key;
    }
    take_key_word(&line, name, &bytes);
    if (is_half(name, bytes)) {
        line = wr_span_trim(line);
        take_key_word(&line, name, &bytes);
    }
    key = find_robots_key(name, bytes);
    if (key == WR_ROBOTS_OTHER || line.bytes == 0)
        return WR_ROBOTS_OTHER;
    bool after_blank = is_line_blank(line.data[0]);
    line = trim_front(line);
    if (line.data[0] == ':')
        *ret_value = trim_front(wr_span_after(line, 1));
    else if (after_blank && !has_blank(line)) /* the colon is missing; several words are prose */
        *ret_value = line;
    else
        return WR_ROBOTS_OTHER;
    return key;
}

/* Returns the product token at the start. It may have digits, beyond RFC 9309 2.2.1, because the
 * names of many crawlers have some. */
struct wr_span wr_robots_token(struct wr_span text)
{
    size_t bytes = 0;

    while (bytes < text.bytes &&
           (wr_ascii_is_alnum(text.data[bytes]) || text.data[bytes] == '-' || text.data[bytes] == '_'))
        bytes++;
    text.bytes = bytes;
    return text;
}

/* ---- numbers ---- */

#define DIGITS_FULL UINT64_C(100000000000000000) /* 18 digits: further ones only change the scale */
#define SCALE_MAX 1000000                        /* beyond it durations are 0 or too long */

/* The decimal number digits * 10^scale. */
struct decimal {
    uint64_t digits;
    int64_t scale;
    bool is_rounded; /* digits other than 0 were dropped */
};

static void add_digit(struct decimal *decimal, char c, bool is_fraction)
{
    if (decimal->digits >= DIGITS_FULL) {
        decimal->is_rounded |= c != '0';
        decimal->scale += is_fraction ? 0 : 1;
        return;
    }
    decimal->digits = decimal->digits * 10 + (uint64_t)(c - '0');
    decimal->scale -= is_fraction ? 1 : 0;
}

/* Removes the digits from the front and adds them to the number. Returns false if there are
 * none. */
static bool take_decimal_digits(struct wr_span *text, struct decimal *decimal, bool is_fraction)
{
    size_t at = 0;

    for (; at < text->bytes && wr_ascii_is_digit(text->data[at]); at++)
        add_digit(decimal, text->data[at], is_fraction);
    *text = wr_span_after(*text, at);
    return at > 0;
}

/* Parses an optional exponent: "e6", "E-3". Returns false if it is incomplete. */
static bool take_exponent(struct wr_span *text, struct decimal *decimal)
{
    if (text->bytes == 0 || wr_ascii_lower(text->data[0]) != 'e')
        return true;
    struct decimal exponent = {0};
    *text = wr_span_after(*text, 1);
    bool is_negative = text->bytes > 0 && text->data[0] == '-';
    if (text->bytes > 0 && (is_negative || text->data[0] == '+'))
        *text = wr_span_after(*text, 1);
    if (!take_decimal_digits(text, &exponent, false))
        return false;
    int64_t size = exponent.scale > 0 || exponent.digits > SCALE_MAX ? SCALE_MAX : (int64_t)exponent.digits;
    decimal->scale += is_negative ? -size : size;
    return true;
}

static bool take_scaled_decimal(struct wr_span *text, struct decimal *ret_decimal)
{
    struct decimal decimal = {0};
    bool is_number = take_decimal_digits(text, &decimal, false);

    if (text->bytes > 0 && text->data[0] == '.') {
        *text = wr_span_after(*text, 1);
        is_number |= take_decimal_digits(text, &decimal, true);
    }
    if (!is_number || !take_exponent(text, &decimal))
        return false;
    *ret_decimal = decimal;
    return true;
}

/* Returns decimal * unit_ns in ns, rounded up, at most INT64_MAX. */
static int64_t decimal_to_ns(const struct decimal *decimal, int64_t unit_ns)
{
    wr_u128 ns = (wr_u128)decimal->digits * (wr_u128)unit_ns;
    bool is_rounded = decimal->is_rounded;

    if (ns == 0)
        return 0;
    for (int64_t scale = decimal->scale; scale > 0 && ns <= INT64_MAX; scale--)
        ns *= 10;
    for (int64_t scale = decimal->scale; scale < 0 && ns > 0; scale++, ns /= 10)
        is_rounded |= ns % 10 != 0;
    if (ns > INT64_MAX - 1)
        return INT64_MAX;
    return (int64_t)ns + (is_rounded ? 1 : 0);
}

bool wr_robots_delay_parse(struct wr_span value, int64_t *ret_delay_ns)
{
    struct decimal decimal;

    if (!take_scaled_decimal(&value, &decimal) || value.bytes > 0)
        return false;
    *ret_delay_ns = decimal_to_ns(&decimal, WEIR_SECOND);
    return true;
}

/* Removes a unit from the front and returns it in ns; one second if there is no unit. */
static int64_t take_rate_unit(struct wr_span *text)
{
    char c = text->bytes > 0 ? wr_ascii_lower(text->data[0]) : '\0';
    int64_t unit_ns = c == 'm' ? WEIR_MINUTE : c == 'h' ? WEIR_HOUR : c == 'd' ? WEIR_DAY : WEIR_SECOND;

    if (c == 's' || unit_ns != WEIR_SECOND)
        *text = wr_span_after(*text, 1);
    return unit_ns;
}

/* Parses a rate. The hours that may follow are ignored: the rate then applies all day. */
bool wr_robots_rate_parse(struct wr_span value, uint32_t *ret_requests, int64_t *ret_period_ns)
{
    struct decimal requests = {0}, period;

    if (!take_decimal_digits(&value, &requests, false) || value.bytes == 0 || value.data[0] != '/')
        return false;
    value = wr_span_after(value, 1);
    if (requests.digits == 0 || requests.digits > UINT32_MAX || requests.scale > 0 ||
        !take_scaled_decimal(&value, &period))
        return false;
    int64_t period_ns = decimal_to_ns(&period, take_rate_unit(&value));
    if (period_ns == 0 || (value.bytes > 0 && !is_line_blank(value.data[0])))
        return false;
    *ret_requests = (uint32_t)requests.digits;
    *ret_period_ns = period_ns;
    return true;
}
