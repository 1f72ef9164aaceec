/* SPDX-License-Identifier: MIT */
/* parse.c - parses numbers, durations, sizes and rates, and reports the position of an error. */
#include "base/parse.h"

#include "base/ascii.h"
#include "base/bits.h"
#include "base/buf.h"
#include "base/error.h"

#include <string.h>

/* Digits of UINT64_MAX. Longer numbers are refused, also if they begin with zeros. */
#define DIGITS_MAX 20
/* 10^18 times the largest unit fits in 128 bits, and no unit needs a finer fraction. */
#define FRACTION_DIGITS_MAX 18

struct unit {
    const char *name;
    uint64_t scale; /* size of one unit, in ns or bytes */
};

/* The kind of text that is parsed, and the wording of its error messages. */
struct parse_kind {
    const char *name;
    const char *like;  /* an example of valid text */
    const char *units; /* list of the valid units */
    const char *whole; /* message about a fraction of the smallest unit */
    const char *most;  /* message that names `max` */
    uint64_t max;      /* largest valid value, in the smallest unit */
    bool any_case;     /* unit names match in any case; the tables have them in small letters */
};

struct scanner {
    const struct parse_kind *kind;
    const char *text;
    size_t bytes;
    size_t at; /* offset of the next byte to parse */
    /* Why the text was refused. Formatted only by functions that report the error. */
    const char *wrong, *right;
    size_t wrong_at;
};

/* The number whole + fraction / 10^fraction_digits. */
struct quantity {
    size_t at; /* offset of the quantity in the text */
    uint64_t whole;
    uint64_t fraction;
    size_t fraction_digits;
};

/* ---- helpers of all parsers ---- */

static int refuse_text_at(struct scanner *scanner, const char *wrong, size_t at, const char *right)
{
    scanner->wrong = wrong;
    scanner->wrong_at = at;
    scanner->right = right;
    return WEIR_E_INVAL;
}

/* Sets the error detail and returns WEIR_E_INVAL if `error` is not 0. */
static int report_scan_error(const struct scanner *scanner, int error)
{
    if (error == 0)
        return 0;
    return wr_invalid_text(scanner->kind->name, scanner->text, scanner->bytes, scanner->wrong, scanner->wrong_at,
                           scanner->right);
}

static int scanner_init(struct scanner *ret_scanner, const struct parse_kind *kind, const char *text, size_t text_bytes)
{
    *ret_scanner = (struct scanner){.kind = kind, .text = text, .bytes = text == NULL ? 0 : text_bytes};
    return ret_scanner->bytes > 0 ? 0 : refuse_text_at(ret_scanner, "empty", WR_NOWHERE, kind->like);
}

static bool at_end(const struct scanner *scanner)
{
    return scanner->at == scanner->bytes;
}

static bool at_byte(const struct scanner *scanner, char byte)
{
    return !at_end(scanner) && scanner->text[scanner->at] == byte;
}

static bool scanner_at_digit(const struct scanner *scanner)
{
    return !at_end(scanner) && wr_ascii_is_digit(scanner->text[scanner->at]);
}

static int refuse_here(struct scanner *scanner, const char *wrong)
{
    return refuse_text_at(scanner, at_end(scanner) ? "incomplete" : wrong, scanner->at, scanner->kind->like);
}

static int scan_digits(struct scanner *scanner, uint64_t *ret_number)
{
    size_t start = scanner->at;
    uint64_t number = 0;

    for (; scanner_at_digit(scanner); scanner->at++) {
        uint64_t digit = (uint64_t)(scanner->text[scanner->at] - '0');
        if (scanner->at - start == DIGITS_MAX || __builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, digit, &number))
            return refuse_text_at(scanner, "too many digits", start, scanner->kind->like);
    }
    if (scanner->at == start)
        return refuse_here(scanner, "not a digit");
    *ret_number = number;
    return 0;
}

/* Parses the digits after the decimal point. Zeros at the end are ignored: "1.50" is "1.5". */
static int scan_fraction(struct scanner *scanner, struct quantity *quantity)
{
    size_t start = scanner->at;
    size_t zeros = 0;

    for (; scanner_at_digit(scanner); scanner->at++) {
        if (scanner->text[scanner->at] == '0') {
            zeros++;
            continue;
        }
        if (quantity->fraction_digits + zeros >= FRACTION_DIGITS_MAX)
            return refuse_text_at(scanner, "too many digits", start, "write it in a smaller unit");
        for (; zeros > 0; zeros--, quantity->fraction_digits++)
            quantity->fraction *= 10;
        quantity->fraction = quantity->fraction * 10 + (uint64_t)(scanner->text[scanner->at] - '0');
        quantity->fraction_digits++;
    }
    return scanner->at == start ? refuse_here(scanner, "not a digit") : 0;
}

static int scan_quantity(struct scanner *scanner, struct quantity *ret_quantity)
{
    struct quantity quantity = {.at = scanner->at};
    int error = scan_digits(scanner, &quantity.whole);

    if (error == 0 && at_byte(scanner, '.')) {
        scanner->at++;
        error = scan_fraction(scanner, &quantity);
    }
    if (error == 0)
        *ret_quantity = quantity;
    return error;
}

static bool is_unit(const struct unit *unit, const char *name, size_t name_bytes, bool any_case)
{
    if (strlen(unit->name) != name_bytes)
        return false;
    return any_case ? wr_ascii_same(name, unit->name, name_bytes) : memcmp(name, unit->name, name_bytes) == 0;
}

/* Parses a unit: everything up to the next digit, so that "5sx" is not taken for "5s". Returns
 * false if there is no such unit; the scanner is then unchanged. */
static bool scan_unit(struct scanner *scanner, const struct unit *units, uint64_t *ret_scale)
{
    struct scanner end = *scanner;

    while (!at_end(&end) && !scanner_at_digit(&end))
        end.at++;
    for (; units->name != NULL; units++)
        if (is_unit(units, scanner->text + scanner->at, end.at - scanner->at, scanner->kind->any_case)) {
            *scanner = end;
            *ret_scale = units->scale;
            return true;
        }
    return false;
}

/* Adds quantity * scale to *sum. Refuses a result that is not a whole number or is above the
 * maximum. */
static int add_scaled(struct scanner *scanner, const struct quantity *quantity, uint64_t scale, uint64_t *sum)
{
    const struct parse_kind *kind = scanner->kind;
    wr_u128 fraction = (wr_u128)quantity->fraction * scale;

    for (size_t i = 0; i < quantity->fraction_digits; i++, fraction /= 10)
        if (fraction % 10 != 0)
            return refuse_text_at(scanner, kind->whole, quantity->at, "use fewer digits");
    wr_u128 total = *sum + (wr_u128)quantity->whole * scale + fraction;
    if (total > kind->max)
        return refuse_text_at(scanner, "too large", quantity->at, kind->most);
    *sum = (uint64_t)total;
    return 0;
}

/* ---- numbers ---- */

/* `range` describes the valid numbers. The caller may fill it in later, when an error is
 * reported. */
static int scan_u64(struct scanner *scanner, uint64_t min, uint64_t max, const char *range, uint64_t *ret_number)
{
    uint64_t number = 0;

    if (scanner->bytes == 0)
        return refuse_text_at(scanner, "empty", WR_NOWHERE, range);
    int error = scan_digits(scanner, &number);
    if (error != 0)
        return error;
    if (!at_end(scanner))
        return refuse_here(scanner, "not a digit");
    if (number < min || number > max)
        return refuse_text_at(scanner, number < min ? "too small" : "too large", WR_NOWHERE, range);
    *ret_number = number;
    return 0;
}

bool wr_scan_u64(const char *text, size_t text_bytes, uint64_t min, uint64_t max, uint64_t *ret_number)
{
    static const struct parse_kind kind = {.name = "number"};
    struct scanner scanner = {.kind = &kind, .text = text, .bytes = text == NULL ? 0 : text_bytes};

    return scan_u64(&scanner, min, max, NULL, ret_number) == 0;
}

int wr_parse_u64(const char *text, size_t text_bytes, uint64_t min, uint64_t max, uint64_t *ret_number)
{
    char range[64]; /* two numbers of 20 digits and the words around them */
    struct parse_kind kind = {.name = "number", .like = range};
    struct scanner scanner = {.kind = &kind, .text = text, .bytes = text == NULL ? 0 : text_bytes};
    struct wr_buf buf;

    if (scan_u64(&scanner, min, max, range, ret_number) == 0)
        return 0;
    wr_buf_init_fixed(&buf, range, sizeof range);
    wr_buf_append_string(&buf, "use ");
    wr_buf_append_u64(&buf, min);
    wr_buf_append_string(&buf, " ... ");
    wr_buf_append_u64(&buf, max);
    return report_scan_error(&scanner, WEIR_E_INVAL);
}

/* Returns the nearest double for numbers of up to 15 digits, because both sides of the division are
 * then exact. */
static double quantity_value(const struct quantity *quantity)
{
    uint64_t scale = 1, digits;

    for (size_t i = 0; i < quantity->fraction_digits; i++)
        scale *= 10;
    if (__builtin_mul_overflow(quantity->whole, scale, &digits) ||
        __builtin_add_overflow(digits, quantity->fraction, &digits))
        return (double)quantity->whole + (double)quantity->fraction / (double)scale;
    return (double)digits / (double)scale;
}

static int scan_number(struct scanner *scanner, double min, double max, const char *range, double *ret_number)
{
    struct quantity quantity;

    if (scanner->bytes == 0)
        return refuse_text_at(scanner, "empty", WR_NOWHERE, range);
    int error = scan_quantity(scanner, &quantity);
    if (error != 0)
        return error;
    if (!at_end(scanner))
        return refuse_here(scanner, "not a digit");
    double number = quantity_value(&quantity);
    if (number < min || number > max)
        return refuse_text_at(scanner, number < min ? "too small" : "too large", WR_NOWHERE, range);
    *ret_number = number;
    return 0;
}

int wr_parse_number(const char *text, size_t text_bytes, double min, double max, double *ret_number)
{
    char range[80]; /* two numbers of at most 28 characters and the words around them */
    struct parse_kind kind = {.name = "number", .like = range};
    struct scanner scanner = {.kind = &kind, .text = text, .bytes = text == NULL ? 0 : text_bytes};
    struct wr_buf buf;

    if (scan_number(&scanner, min, max, range, ret_number) == 0)
        return 0;
    wr_buf_init_fixed(&buf, range, sizeof range);
    wr_buf_append_string(&buf, "use ");
    wr_buf_append_number(&buf, min);
    wr_buf_append_string(&buf, " ... ");
    wr_buf_append_number(&buf, max);
    return report_scan_error(&scanner, WEIR_E_INVAL);
}

/* ---- durations ---- */

static const struct parse_kind duration_kind = {
    .name = "duration",
    .like = "use for example 500ms, 1.5s or 1h30m",
    .units = "use ns, us, ms, s, m, h or d",
    .whole = "not a whole number of nanoseconds",
    .most = "use at most 13343d",
    .max = (uint64_t)WEIR_DURATION_MAX,
};

static const struct unit duration_units[] = {
    {"ns", (uint64_t)WEIR_NANOSECOND},  {"us", (uint64_t)WEIR_MICROSECOND},
    {"ms", (uint64_t)WEIR_MILLISECOND}, {"s", (uint64_t)WEIR_SECOND},
    {"m", (uint64_t)WEIR_MINUTE},       {"h", (uint64_t)WEIR_HOUR},
    {"d", (uint64_t)WEIR_DAY},          {NULL, 0},
};

/* Parses one part of a duration, such as "1h". `before` is the unit of the preceding part in ns, 0
 * for the first part. */
static int scan_part(struct scanner *scanner, uint64_t before, bool bare_is_seconds, uint64_t *ret_scale, uint64_t *sum)
{
    struct quantity quantity;
    int error = scan_quantity(scanner, &quantity);
    if (error != 0)
        return error;

    uint64_t scale = (uint64_t)WEIR_SECOND;
    size_t unit_at = scanner->at;
    bool is_bare = at_end(scanner) && before == 0 && bare_is_seconds;
    if (!is_bare && !scan_unit(scanner, duration_units, &scale))
        return refuse_text_at(scanner, at_end(scanner) ? "no unit" : "unknown unit", unit_at, scanner->kind->units);
    if (before != 0 && scale >= before)
        return refuse_text_at(scanner, "unit out of order", unit_at, "go from large to small, each once, as in 1h30m");
    *ret_scale = scale;
    return add_scaled(scanner, &quantity, scale, sum);
}

/* Parses the parts of a duration up to the end of the text. */
static int scan_duration(struct scanner *scanner, bool bare_is_seconds, int64_t *ret_duration_ns)
{
    uint64_t scale = 0, sum = 0;
    do {
        int error = scan_part(scanner, scale, bare_is_seconds, &scale, &sum);
        if (error != 0)
            return error;
    } while (!at_end(scanner));
    *ret_duration_ns = (int64_t)sum;
    return 0;
}

int wr_parse_duration(const char *text, size_t text_bytes, int64_t *ret_duration_ns)
{
    struct scanner scanner;
    int error = scanner_init(&scanner, &duration_kind, text, text_bytes);
    if (error == 0)
        error = scan_duration(&scanner, true, ret_duration_ns);
    return report_scan_error(&scanner, error);
}

/* ---- sizes ---- */

static const struct parse_kind size_kind = {
    .name = "size",
    .like = "use for example 4096, 64k, 10MB or 1.5GiB",
    .units = "use k, M, G or T, alone or with B or iB",
    .whole = "not a whole number of bytes",
    .most = "use at most 1048576T",
    .max = WR_BYTES_MAX,
    .any_case = true,
};

static const struct unit size_units[] = {
    {"b", 1},
    {"k", UINT64_C(1) << 10},
    {"m", UINT64_C(1) << 20},
    {"g", UINT64_C(1) << 30},
    {"t", UINT64_C(1) << 40},
    {"kib", UINT64_C(1) << 10},
    {"mib", UINT64_C(1) << 20},
    {"gib", UINT64_C(1) << 30},
    {"tib", UINT64_C(1) << 40},
    {"kb", UINT64_C(1000)},
    {"mb", UINT64_C(1000000)},
    {"gb", UINT64_C(1000000000)},
    {"tb", UINT64_C(1000000000000)},
    {NULL, 0},
};

static int scan_bytes(struct scanner *scanner, uint64_t *ret_bytes)
{
    struct quantity quantity;
    uint64_t scale = 1, bytes = 0;
    int error = scan_quantity(scanner, &quantity);

    if (error != 0)
        return error;
    if (!at_end(scanner) && (!scan_unit(scanner, size_units, &scale) || !at_end(scanner)))
        return refuse_text_at(scanner, "unknown unit", scanner->at, size_kind.units);
    error = add_scaled(scanner, &quantity, scale, &bytes);
    if (error == 0)
        *ret_bytes = bytes;
    return error;
}

int wr_parse_bytes(const char *text, size_t text_bytes, uint64_t *ret_bytes)
{
    struct scanner scanner;
    int error = scanner_init(&scanner, &size_kind, text, text_bytes);

    if (error == 0)
        error = scan_bytes(&scanner, ret_bytes);
    return report_scan_error(&scanner, error);
}

/* ---- rates ---- */

/* The units and the maximum apply to the period of a rate. */
static const struct parse_kind rate_kind = {
    .name = "rate",
    .like = "use for example 10/s, 5/10s or 1/day",
    .units = "use ns, us, ms, s, m, h or d",
    .whole = "not a whole number of nanoseconds",
    .most = "use a period of at most 13343d",
    .max = (uint64_t)WEIR_DURATION_MAX,
};

/* Names of periods that are written without a number, as in "1/day". */
static const struct unit period_words[] = {
    {"sec", (uint64_t)WEIR_SECOND}, {"second", (uint64_t)WEIR_SECOND},
    {"min", (uint64_t)WEIR_MINUTE}, {"minute", (uint64_t)WEIR_MINUTE},
    {"hr", (uint64_t)WEIR_HOUR},    {"hour", (uint64_t)WEIR_HOUR},
    {"day", (uint64_t)WEIR_DAY},    {NULL, 0},
};

static int scan_period(struct scanner *scanner, int64_t *ret_period_ns)
{
    size_t start = scanner->at;
    uint64_t scale;

    if (at_end(scanner) || scanner_at_digit(scanner))
        return scan_duration(scanner, false, ret_period_ns);
    if (!(scan_unit(scanner, duration_units, &scale) || scan_unit(scanner, period_words, &scale)) || !at_end(scanner))
        return refuse_text_at(scanner, "unknown unit", start, scanner->kind->units);
    *ret_period_ns = (int64_t)scale;
    return 0;
}

static int scan_rate(struct scanner *scanner, uint32_t *ret_count, int64_t *ret_period_ns)
{
    uint64_t count = 0;
    int64_t period_ns = 0;
    int error = scan_digits(scanner, &count);

    if (error != 0)
        return error;
    if (!at_byte(scanner, '/'))
        return refuse_here(scanner, "not a digit or '/'");
    if (count < 1 || count > WR_RATE_COUNT_MAX)
        return refuse_text_at(scanner, count < 1 ? "too small" : "too large", 0, "use a count of 1 ... 4294967295");
    size_t period_at = ++scanner->at;
    error = scan_period(scanner, &period_ns);
    if (error != 0)
        return error;
    if (period_ns == 0)
        return refuse_text_at(scanner, "the period is 0", period_at, rate_kind.like);
    *ret_count = (uint32_t)count;
    *ret_period_ns = period_ns;
    return 0;
}

int wr_parse_rate(const char *text, size_t text_bytes, uint32_t *ret_count, int64_t *ret_period_ns)
{
    struct scanner scanner;
    int error = scanner_init(&scanner, &rate_kind, text, text_bytes);

    if (error == 0)
        error = scan_rate(&scanner, ret_count, ret_period_ns);
    return report_scan_error(&scanner, error);
}
