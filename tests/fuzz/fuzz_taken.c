/* SPDX-License-Identifier: MIT */
/* fuzz_taken.c - fuzzes targets against models of services: each is judged as a service understands
 * it, or refused. The input is two bytes and then lines: a target, and patterns of rules. The first
 * byte selects the differences that services are configured to see, the second makes a pattern of
 * the path that a service took. The models of services and patterns share no code with the
 * reader. */
#include "core/admit/match.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"

#define TARGET_MAX 300
#define PATTERN_ROOM (3 * TARGET_MAX + 8)
#define PATTERNS_MAX 4
#define MODEL_MAX 80 /* longest path of a model, bytes: it tries each star at each place */
#define STARS_MAX 4

/* ---- services ---- */

enum {
    NOTHING = 0,
    DECODES = 1,     /* %XX, once */
    KEEPS_SLASH = 2, /* decodes all except %2F */
    STRIPS = 4,      /* removes ";a=1" before it decodes */
    STRIPS_LATE = 8, /* removes ";a=1" after it decodes */
    MERGES = 16,     /* "//" is "/" */
    DROPS = 32,      /* "/a/" is "/a" */
    FOLDS = 64,      /* "/A" is "/a" */
};

static const struct service {
    const char *name;
    unsigned does, exact; /* differences that the service ignores */
} services[] = {
    {"node, whatwg", NOTHING, 0},
    {"django, flask, go", DECODES, 0},
    {"nginx, apache", DECODES | MERGES, WEIR_EXACT_SLASHES},
    {"rails", DECODES | MERGES | DROPS, WEIR_EXACT_SLASHES},
    {"express", FOLDS | DROPS, WEIR_EXACT_CASE | WEIR_EXACT_SLASHES},
    {"undecoded files", MERGES | DROPS, WEIR_EXACT_SLASHES},
    {"undecoded, any case", FOLDS, WEIR_EXACT_CASE},
    {"windows files", DECODES | FOLDS, WEIR_EXACT_CASE},
    {"iis", DECODES | FOLDS | MERGES | DROPS, WEIR_EXACT_CASE | WEIR_EXACT_SLASHES},
    {"asp.net", DECODES | KEEPS_SLASH | FOLDS | DROPS, WEIR_EXACT_CASE | WEIR_EXACT_SLASHES},
    {"tomcat", STRIPS | DECODES | MERGES, WEIR_EXACT_PARAMS | WEIR_EXACT_SLASHES},
    {"jetty", STRIPS | DECODES, WEIR_EXACT_PARAMS},
    {"spring", STRIPS | DECODES | KEEPS_SLASH | DROPS, WEIR_EXACT_PARAMS | WEIR_EXACT_SLASHES},
    {"undecoded, no params", STRIPS, WEIR_EXACT_PARAMS},
    {"decodes first", DECODES | STRIPS_LATE, WEIR_EXACT_PARAMS},
    {"all of it", DECODES | STRIPS_LATE | MERGES | DROPS | FOLDS, WEIR_EXACT_ALL},
};

/* Path as units: a byte, or 256 + b for an escaped byte b. */
struct path {
    unsigned units[TARGET_MAX + 1];
    size_t count;
};

static bool is_plain(unsigned byte)
{
    return byte < 0x80 && (isalnum((int)byte) || strchr("-._~!$&'()*+,=:@;/", (int)byte) != NULL);
}

/* Returns the path of "http://host/path?query", "/path?query" or "?query". */
static const char *find_path(const char *target, size_t *ret_bytes)
{
    if (strncasecmp(target, "http://", 7) == 0 || strncasecmp(target, "https://", 8) == 0) {
        target = strchr(target, '/') + 2;
        target += strcspn(target, "/?");
    }
    *ret_bytes = strcspn(target, "?");
    if (*ret_bytes > 0)
        return target;
    *ret_bytes = 1;
    return "/";
}

static void strip_params(struct path *path)
{
    size_t count = 0;
    bool in_params = false;

    for (size_t i = 0; i < path->count; i++) {
        in_params = path->units[i] != '/' && (in_params || path->units[i] == ';');
        if (!in_params)
            path->units[count++] = path->units[i];
    }
    path->count = count;
}

static void split(const char *target, struct path *path)
{
    size_t bytes;
    const char *text = find_path(target, &bytes);

    path->count = 0;
    for (size_t i = 0; i < bytes; i++) {
        char digits[3] = {0};
        if (text[i] != '%' || bytes - i < 3) {
            path->units[path->count++] = (unsigned char)text[i];
            continue;
        }
        memcpy(digits, text + i + 1, 2);
        path->units[path->count++] = 256 + (unsigned)strtoul(digits, NULL, 16);
        i += 2;
    }
}

static void decode(struct path *path, bool keeps_slash)
{
    for (size_t i = 0; i < path->count; i++) {
        unsigned byte = path->units[i] & 255;
        if (is_plain(byte) && !(keeps_slash && byte == '/'))
            path->units[i] = byte;
    }
}

static void merge(struct path *path)
{
    size_t count = 0;

    for (size_t i = 0; i < path->count; i++)
        if (count == 0 || path->units[i] != '/' || path->units[count - 1] != '/')
            path->units[count++] = path->units[i];
    path->count = count;
}

/* Writes the path that the service took. Escapes bytes that a path does not have as they are. */
static void write_taken(const struct path *path, bool folds, char *ret_text)
{
    char *at = ret_text;

    for (size_t i = 0; i < path->count; i++) {
        unsigned byte = path->units[i] & 255;
        bool is_escaped = (path->units[i] > 255 && byte != '~') || !is_plain(byte);
        at += is_escaped ? snprintf(at, 4, "%%%02X", byte)
                         : snprintf(at, 2, "%c", folds ? tolower((int)byte) : (int)byte);
    }
}

static void take(const struct service *service, const char *target, char *ret_text)
{
    static struct path path;

    split(target, &path);
    if ((service->does & STRIPS) != 0)
        strip_params(&path);
    if ((service->does & DECODES) != 0)
        decode(&path, (service->does & KEEPS_SLASH) != 0);
    if ((service->does & STRIPS_LATE) != 0)
        strip_params(&path);
    if ((service->does & MERGES) != 0)
        merge(&path);
    if ((service->does & DROPS) != 0 && path.count > 1 && path.units[path.count - 1] == '/')
        path.count--;
    write_taken(&path, (service->does & FOLDS) != 0, ret_text);
}

/* ---- patterns ---- */

static bool fits_stars(const char *pattern, const char *text)
{
    if (*pattern == '\0')
        return *text == '\0';
    if (*pattern == '*')
        return fits_stars(pattern + 1, text) || (*text != '\0' && *text != '/' && fits_stars(pattern, text + 1));
    if (*text == '\0' || (*pattern == '?' ? *text == '/' : *pattern != *text))
        return false;
    return fits_stars(pattern + 1, text + 1);
}

/* Returns true if the text matches. "/a/" with two stars also matches "/a". */
static bool fits(const char *pattern, const char *text)
{
    size_t bytes = strlen(pattern), length = strlen(text);

    if (strncmp(pattern, "**", 2) == 0)
        return length >= bytes - 2 && strcmp(text + length - (bytes - 2), pattern + 2) == 0;
    if (bytes < 2 || strcmp(pattern + bytes - 2, "**") != 0)
        return fits_stars(pattern, text);
    bytes -= 2;
    if (strncmp(text, pattern, bytes) == 0)
        return true;
    return pattern[bytes - 1] == '/' && length == bytes - 1 && strncmp(text, pattern, length) == 0;
}

/* Copies a text, in lower case if `folds`, except the digits of an escape. */
static void copy(char *to, const char *text, bool folds)
{
    size_t digits = 0;

    for (; *text != '\0'; text++) {
        *to++ = (char)(folds && digits == 0 ? tolower((unsigned char)*text) : *text);
        digits = *text == '%' ? 2 : digits - (digits > 0);
    }
    *to = '\0';
}

/* Returns true if the pattern matches by the service's rules: without case, or without a slash at
 * the end, if the service ignores them. */
static bool means(const struct service *service, const char *pattern, const char *taken)
{
    char wanted[MODEL_MAX + 1], text[MODEL_MAX + 1];
    size_t bytes = strlen(pattern);

    copy(wanted, pattern, (service->does & FOLDS) != 0);
    copy(text, taken, (service->does & FOLDS) != 0);
    if ((service->does & DROPS) != 0 && bytes > 1 && wanted[bytes - 1] == '/' && strcmp(wanted, "**/") != 0)
        wanted[bytes - 1] = '\0';
    return fits(wanted, text);
}

static bool is_short(const char *pattern)
{
    size_t stars = 0;

    for (const char *at = pattern; *at != '\0'; at++)
        stars += *at == '*';
    return stars <= STARS_MAX && strlen(pattern) <= MODEL_MAX;
}

/* ---- judging ---- */

struct judged {
    struct wr_glob rules[PATTERNS_MAX + 1];
    const char *texts[PATTERNS_MAX + 1];
    size_t count;
};

static void add(struct judged *judged, const char *pattern)
{
    if (judged->count <= PATTERNS_MAX && is_short(pattern) &&
        wr_glob_parse_path(pattern, &judged->rules[judged->count]) == 0)
        judged->texts[judged->count++] = pattern;
}

static size_t first_meant(const struct judged *judged, const struct service *service, const char *taken)
{
    size_t i = 0;

    while (i < judged->count && !means(service, judged->texts[i], taken))
        i++;
    return i;
}

static size_t first_that_fits(const struct judged *judged, const struct wr_request_reading *asked)
{
    const struct wr_span path = {asked->request.target, asked->request.target_bytes};
    uint32_t steps = UINT32_MAX;
    size_t i = 0;

    while (i < judged->count && !wr_glob_fits(&judged->rules[i], path, asked->loose, &steps))
        i++;
    return i;
}

/* Sets ret_fits for each rule that matches some reading. Returns true if `wanted` is the first rule
 * to match in some reading. */
static bool read_all(const weir_request *request, unsigned exact, const struct judged *judged, size_t wanted,
                     bool *ret_fits)
{
    static struct wr_request_reading asked;
    unsigned wanted_readings = WR_READS_PATH;
    uint32_t steps = UINT32_MAX;
    bool is_first = false;

    memset(ret_fits, 0, (PATTERNS_MAX + 1) * sizeof *ret_fits);
    for (size_t i = 0; i < judged->count; i++)
        wanted_readings |= WR_READS_LOOSE(wr_glob_varies(&judged->rules[i]));
    weir_request_fault fault = wr_request_reading_begin(request, wanted_readings, exact, &asked);
    fuzz_check(fault == WEIR_FAULT_NONE);
    do {
        const struct wr_span path = {asked.request.target, asked.request.target_bytes};
        for (size_t i = 0; i < judged->count; i++)
            ret_fits[i] |= wr_glob_fits(&judged->rules[i], path, asked.loose, &steps);
        is_first |= first_that_fits(judged, &asked) == wanted;
    } while (wr_request_reading_next(&asked));
    return is_first;
}

/* Makes a pattern of the path: all of it, all below a folder of it, with a star in it, or its
 * end. */
static void make_pattern(const char *taken, unsigned how, char *ret_pattern)
{
    size_t bytes = strlen(taken), at = bytes > 0 ? (how >> 2) % bytes : 0;
    const char *slash = strchr(taken + at, '/'), *end = strchr(taken + at + (bytes > 0), '/');

    snprintf(ret_pattern, PATTERN_ROOM, "%s", taken);
    if ((how & 3) == 1 && slash != NULL)
        snprintf(ret_pattern, PATTERN_ROOM, "%.*s**", (int)(slash - taken) + 1, taken);
    if ((how & 3) == 2 && bytes > 0)
        snprintf(ret_pattern, PATTERN_ROOM, "%.*s*%s", (int)at + 1, taken, end != NULL ? end : "");
    if ((how & 3) == 3)
        snprintf(ret_pattern, PATTERN_ROOM, "**%s", taken + at);
}

static void check_service(const struct service *service, const weir_request *request, unsigned exact, unsigned how,
                          const struct judged *given)
{
    static char taken[3 * TARGET_MAX + 2], pattern[PATTERN_ROOM];
    struct judged judged = *given;
    bool is_fitting[PATTERNS_MAX + 1];

    take(service, request->target, taken);
    fuzz_check(taken[0] == '/' && strstr(taken, "/./") == NULL && strstr(taken, "/../") == NULL);
    if (strlen(taken) > MODEL_MAX)
        return;
    make_pattern(taken, how, pattern);
    add(&judged, pattern);
    size_t wanted = first_meant(&judged, service, taken);
    bool is_first = read_all(request, exact, &judged, wanted, is_fitting);
    for (size_t i = 0; i < judged.count; i++) {
        if (means(service, judged.texts[i], taken) && !is_fitting[i]) {
            fprintf(stderr, "%s takes %s for %s, and %s is not for it\n", service->name, request->target, taken,
                    judged.texts[i]);
            fuzz_check(is_fitting[i]);
        }
    }
    /* A star may end inside an escape; a rule without case then matches more than it should. */
    bool is_clear = (service->does & FOLDS) == 0 || strchr(taken, '%') == NULL;
    if (!is_first && is_clear) {
        fprintf(stderr, "%s takes %s for %s, but in no reading rule %zu is the first\n", service->name, request->target,
                taken, wanted);
        fuzz_check(is_first);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static char text[(PATTERNS_MAX + 1) * (TARGET_MAX + 1)];
    static struct wr_request_reading asked;
    struct judged given = {.count = 0};
    weir_request request;

    if (bytes < 3 || bytes - 2 >= sizeof text || memchr(data + 2, '\0', bytes - 2) != NULL)
        return 0;
    memcpy(text, data + 2, bytes - 2);
    text[bytes - 2] = '\0';
    char *rest = text, *target = strsep(&rest, "\n");
    while (rest != NULL && given.count < PATTERNS_MAX)
        add(&given, strsep(&rest, "\n"));
    if (strlen(target) > TARGET_MAX)
        return 0;
    unsigned exact = data[0] & WEIR_EXACT_ALL;
    weir_request_init(&request, "GET", target, NULL);
    if (wr_request_reading_begin(&request, WR_READS_PATH, exact, &asked) != WEIR_FAULT_NONE)
        return 0;
    for (size_t i = 0; i < sizeof services / sizeof services[0]; i++)
        if ((services[i].exact & exact) == 0)
            check_service(&services[i], &request, exact, data[1], &given);
    return 0;
}
