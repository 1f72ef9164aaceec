/* SPDX-License-Identifier: MIT */
/* rig.c - implements the fixture for tests of whole crawls. */
#include "engine/rig.h"

#include "core/pace/pace_options.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* ---- setting up and tearing down ---- */

static void note_warning(void *context, const char *line)
{
    struct crawl_fixture *rig = context;
    (void)atomic_fetch_add(&rig->waits, strncmp(line, "waiting: ", 9) == 0);
}

void rig_profile(struct crawl_fixture *rig, weir_profile profile)
{
    weir_pace_options given;
    assert_int_equal(weir_pace_options_profile(&given, profile), 0);
    assert_int_equal(wr_pace_options_check(&given, &rig->options.pace), 0);
}

void rig_space(struct crawl_fixture *rig, int64_t interval_ns)
{
    rig->options.pace.min_interval_ns = interval_ns;
}

static void set_options(struct crawl_fixture *rig)
{
    rig->options = (struct wr_engine_options){.loops = 1,
                                              .out_path = rig->out,
                                              .agent = "weirtest/1",
                                              .allows_private = true,
                                              .warn = note_warning,
                                              .warn_context = rig};
    rig_profile(rig, WEIR_PROFILE_UNLIMITED);
}

void rig_set_up(struct crawl_fixture *rig, origin_answer *answer)
{
    const char *tmp = getenv("TMPDIR"), *fast = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    memset(rig, 0, sizeof *rig);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)snprintf(rig->folder, sizeof rig->folder, "%s/weir-engine-XXXXXX", tmp != NULL ? tmp : fast);
    assert_non_null(mkdtemp(rig->folder));
    (void)snprintf(rig->state, sizeof rig->state, "%s/weir.db", rig->folder);
    (void)snprintf(rig->out, sizeof rig->out, "%s/crawl.jsonl", rig->folder);
    set_options(rig);
    if (answer == NULL)
        return;
    rig->origin = origin_new(answer, rig, "0.0.0.0");
    rig->port = origin_port(rig->origin);
}

static void forget_lines(struct crawl_fixture *rig)
{
    for (size_t i = 0; i < rig->line_count; i++)
        json_decref(rig->lines[i]);
    free(rig->lines);
    rig->lines = NULL;
    rig->line_count = 0;
}

static void remove_folder(const char *path)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL)
        (void)unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder != NULL)
        (void)closedir(folder);
    (void)rmdir(path);
}

void rig_tear_down(struct crawl_fixture *rig)
{
    wr_engine_free(rig->engine);
    if (rig->origin != NULL)
        origin_free(rig->origin);
    for (size_t i = 0; i < rig->text_count; i++)
        free(rig->texts[i]);
    free(rig->texts);
    free(rig->asked);
    forget_lines(rig);
    remove_folder(rig->folder);
}

/* ---- the web ---- */

int rig_host(const struct origin_request *request)
{
    int c = 0, d = 0;
    const char *field = strcasestr(request->text, "\r\nHost:");
    if (field == NULL || sscanf(field + 7, " 127.%*d.%d.%d", &c, &d) != 2)
        return -1;
    return 256 * c + d;
}

const char *rig_text(struct crawl_fixture *rig, const char *format, ...)
{
    va_list arguments;
    char *text = NULL;
    va_start(arguments, format);
    int bytes = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (bytes < 0)
        abort();
    rig->texts = realloc(rig->texts, (rig->text_count + 1) * sizeof *rig->texts);
    rig->texts[rig->text_count++] = text;
    return text;
}

struct origin_reply rig_html(const char *body)
{
    return (struct origin_reply){.fields = "Content-Type: text/html\r\n", .body = body};
}

bool rig_is_robots(const struct origin_request *request)
{
    return strcmp(request->path, "/robots.txt") == 0;
}

struct rig_count {
    int host, count;
    char path[64];
};

int rig_asked_before(struct crawl_fixture *rig, const struct origin_request *request)
{
    int host = rig_host(request);
    for (size_t i = 0; i < rig->asked_count; i++)
        if (rig->asked[i].host == host && strcmp(rig->asked[i].path, request->path) == 0)
            return rig->asked[i].count++;
    rig->asked = realloc(rig->asked, (rig->asked_count + 1) * sizeof *rig->asked);
    rig->asked[rig->asked_count] = (struct rig_count){.host = host, .count = 1};
    (void)snprintf(rig->asked[rig->asked_count++].path, sizeof rig->asked->path, "%.60s", request->path);
    return 0;
}

struct origin_reply rig_tree(struct crawl_fixture *rig, const struct origin_request *request, int pages,
                             const char *more)
{
    char *end;
    long n = strtol(request->path + 1, &end, 10);
    char first[64] = "", second[64] = "";
    if (*end != '\0' || n < 0 || n >= pages)
        return (struct origin_reply){.status = 404};
    if (2 * n + 1 < pages)
        (void)snprintf(first, sizeof first, "<a href=\"/%ld\">a</a>", 2 * n + 1);
    if (2 * n + 2 < pages)
        (void)snprintf(second, sizeof second, "<a href=\"/%ld\">b</a>", 2 * n + 2);
    return rig_html(rig_text(rig, "<title>%ld</title>%s%s%s", n, first, second, more != NULL ? more : ""));
}

/* ---- the crawl ---- */

/* Takes the server's lock, so that its threads see what the test has set up. */
static void show_server(const struct crawl_fixture *rig)
{
    if (rig->origin != NULL)
        (void)origin_requests(rig->origin);
}

static void open_engine(struct crawl_fixture *rig)
{
    struct wr_engine_job job;
    const struct wr_engine_open_options place = {.state_path = rig->state, .may_create = true};
    int error = wr_engine_open(&place, &rig->engine);
    if (error != 0)
        fail_msg("cannot open the state file: %s", weir_error_detail());
    rig->is_new = wr_engine_find_job(rig->engine, 0, &job) != 0;
    rig->options.resume_job = rig->is_new ? 0 : job.id;
}

void rig_start(struct crawl_fixture *rig)
{
    show_server(rig);
    open_engine(rig);
    if (wr_engine_start(rig->engine, &rig->options) != 0)
        fail_msg("cannot start: %s", weir_error_detail());
}

static int give_seed(struct crawl_fixture *rig, const char *text)
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    if (wr_url_parse(wr_span_of(text), NULL, NULL, memory, sizeof memory, &url) != WR_URL_OK)
        return WEIR_E_INVAL;
    return wr_engine_add_seed(rig->engine, &url);
}

void rig_seed(struct crawl_fixture *rig, const char *format, ...)
{
    char text[RIG_URL];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    assert_int_equal(give_seed(rig, text), 0);
}

void rig_seeded(struct crawl_fixture *rig)
{
    int error = wr_engine_end_seeds(rig->engine);
    if (error != 0 && error != WEIR_E_CLOSED)
        fail_msg("seeded: %s", weir_error_detail());
}

bool rig_await_end(struct crawl_fixture *rig, int64_t timeout_ns)
{
    return wr_engine_wait(rig->engine, timeout_ns);
}

void rig_await_requests(struct crawl_fixture *rig, int count)
{
    int64_t until = monotonic() + WEIR_MINUTE;
    for (int came, before = 0; (came = origin_requests(rig->origin)) < count; before = came, sleep_ns(MS)) {
        until = came > before ? monotonic() + WEIR_MINUTE : until; /* slow while requests arrive */
        if (monotonic() > until)
            fail_msg("only %d of %d requests arrived", came, count);
    }
}

void rig_read_lines(struct crawl_fixture *rig)
{
    char *line = NULL;
    size_t room = 0;
    FILE *file = fopen(rig->out, "r");
    forget_lines(rig);
    while (file != NULL && getline(&line, &room, file) > 0) {
        json_error_t error;
        json_t *value = json_loads(line, JSON_REJECT_DUPLICATES, &error);
        if (value == NULL)
            fail_msg("no line of JSON: %s: %s", error.text, line);
        rig->lines = realloc(rig->lines, (rig->line_count + 1) * sizeof *rig->lines);
        rig->lines[rig->line_count++] = value;
    }
    free(line);
    if (file != NULL)
        (void)fclose(file);
}

static void show_stuck(struct crawl_fixture *rig)
{
    struct wr_engine_stats stats;
    wr_engine_stats_get(rig->engine, &stats);
    fail_msg("the crawl does not end: pages %llu, accepted %llu, queued %llu, in flight %llu, requests %llu, hosts "
             "%llu, %s%s",
             (unsigned long long)stats.pages, (unsigned long long)stats.accepted, (unsigned long long)stats.queued,
             (unsigned long long)stats.in_flight, (unsigned long long)stats.requests, (unsigned long long)stats.hosts,
             stats.is_seeding ? "seeding " : "", stats.pause_why);
}

/* S1-29: fails if the crawl itself has counted a start that came too soon. */
static void assert_patient(void *context, const struct wr_engine_host_report *host)
{
    (void)context;
    if (host->hasty > 0)
        fail_msg("%.*s: %d starts came too soon", (int)host->key.bytes, host->key.data, (int)host->hasty);
}

void rig_finish(struct crawl_fixture *rig)
{
    rig_seeded(rig);
    if (!rig_await_end(rig, (SANITIZED ? 300 : 120) * WEIR_SECOND))
        show_stuck(rig);
    wr_engine_finish(rig->engine, &rig->result);
    (void)wr_engine_report(rig->engine, assert_patient, NULL);
    wr_engine_free(rig->engine);
    rig->engine = NULL;
    rig_read_lines(rig);
}

/* ---- results ---- */

const char *rig_url(const struct crawl_fixture *rig, int host, const char *path)
{
    static _Thread_local char texts[4][RIG_URL];
    static _Thread_local int next;
    char *text = texts[next++ % 4];
    (void)snprintf(text, RIG_URL, "http://127.0.%d.%d:%d%s", host / 256, host % 256, rig->port, path);
    return text;
}

static json_t *find_line(const struct crawl_fixture *rig, const char *url, int *ret_times)
{
    json_t *found = NULL;
    *ret_times = 0;
    for (size_t i = 0; i < rig->line_count; i++)
        if (strcmp(json_string_value(json_object_get(rig->lines[i], "url")), url) == 0) {
            found = rig->lines[i];
            ++*ret_times;
        }
    return found;
}

json_t *rig_line(const struct crawl_fixture *rig, const char *url)
{
    int times;
    json_t *line = find_line(rig, url, &times);
    if (times != 1)
        fail_msg("%d lines of %s", times, url);
    return line;
}

bool rig_has_line(const struct crawl_fixture *rig, const char *url)
{
    int times;
    return find_line(rig, url, &times) != NULL;
}

const char *rig_word(const struct crawl_fixture *rig, const char *url, const char *key)
{
    const char *word = json_string_value(json_object_get(rig_line(rig, url), key));
    return word != NULL ? word : "";
}

int rig_number(const struct crawl_fixture *rig, const char *url, const char *key)
{
    return (int)json_integer_value(json_object_get(rig_line(rig, url), key));
}

int rig_verdicts(const struct crawl_fixture *rig, const char *verdict)
{
    int count = 0;
    for (size_t i = 0; i < rig->line_count; i++)
        count += strcmp(json_string_value(json_object_get(rig->lines[i], "verdict")), verdict) == 0;
    return count;
}

void rig_assert_trees(const struct crawl_fixture *rig, int first_host, int hosts, int pages)
{
    char path[32];
    size_t found = 0;
    bool *seen = calloc((size_t)(hosts * pages), sizeof *seen);
    for (size_t i = 0; i < rig->line_count; i++) {
        int c, d, port, n;
        const char *url = json_string_value(json_object_get(rig->lines[i], "url"));
        if (sscanf(url, "http://127.0.%d.%d:%d/%d", &c, &d, &port, &n) != 4)
            continue;
        size_t at = (size_t)((256 * c + d - first_host) * pages + n);
        assert_true(at < (size_t)(hosts * pages));
        if (seen[at])
            fail_msg("two lines of %s", url);
        assert_string_equal(json_string_value(json_object_get(rig->lines[i], "verdict")), "fetched");
        seen[at] = true;
        found++;
    }
    for (int at = 0; at < hosts * pages; at++)
        if (!seen[at] && at % pages != 0) { /* the page 0 has the path "/" */
            (void)snprintf(path, sizeof path, "/%d", at % pages);
            fail_msg("no line of %s; %zu are there", rig_url(rig, first_host + at / pages, path), found);
        }
    free(seen);
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int64_t *rig_arrivals(const struct crawl_fixture *rig, int host, int *ret_count)
{
    int all = origin_requests(rig->origin);
    int64_t *times = calloc((size_t)all + 1, sizeof *times);
    *ret_count = 0;
    for (int i = 0; i < all; i++) {
        struct origin_request request = origin_request(rig->origin, i);
        if (host < 0 || rig_host(&request) == host)
            times[(*ret_count)++] = request.at;
    }
    qsort(times, (size_t)*ret_count, sizeof *times, by_time);
    return times;
}

void rig_assert_spaced(const struct crawl_fixture *rig, int host, int64_t least_ns)
{
    int count;
    int64_t *times = rig_arrivals(rig, host, &count), closest_ns = INT64_MAX;
    for (int i = 1; i < count; i++)
        closest_ns = times[i] - times[i - 1] < closest_ns ? times[i] - times[i - 1] : closest_ns;
    free(times);
    if (closest_ns < least_ns - STAMP_SLACK_NS)
        fail_msg("at host %d two of %d arrivals were %.3f ms apart, not %.3f", host, count, (double)closest_ns / 1e6,
                 (double)least_ns / 1e6);
}

int rig_asked(const struct crawl_fixture *rig, int host, const char *path)
{
    int all = origin_requests(rig->origin), count = 0;
    for (int i = 0; i < all; i++) {
        struct origin_request request = origin_request(rig->origin, i);
        count += (host < 0 || rig_host(&request) == host) && strcmp(request.path, path) == 0;
    }
    return count;
}

static void on_damage(void *context, const struct wr_store_row *row)
{
    (void)context;
    fail_msg("the state file is damaged: %.*s", (int)row->text.bytes, row->text.data);
}

void rig_check_store(const struct crawl_fixture *rig)
{
    struct wr_store *store;
    const struct wr_store_options options = {.path = rig->state};
    assert_int_equal(wr_store_open(&options, &store), 0);
    assert_int_equal(wr_store_read(store, &(struct wr_store_query){.what = WR_STORE_CHECK, .row = on_damage}), 0);
    wr_store_free(store);
}

/* ---- a crawl that can be killed ---- */

pid_t rig_spawn(const struct crawl_fixture *rig, int seeds)
{
    char loops[16], interval[32], port[16], count[16];
    (void)snprintf(loops, sizeof loops, "%u", rig->options.loops);
    (void)snprintf(interval, sizeof interval, "%lld", (long long)rig->options.pace.min_interval_ns);
    (void)snprintf(port, sizeof port, "%d", rig->port);
    (void)snprintf(count, sizeof count, "%d", seeds);
    show_server(rig);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit files = {(rlim_t)rig->files_max, (rlim_t)rig->files_max};
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (rig->files_max > 0)
            (void)setrlimit(RLIMIT_NOFILE, &files);
        (void)execl("/proc/self/exe", "crawl", "--crawl", rig->state, rig->out, loops, interval, port, count,
                    (char *)NULL);
        _exit(127);
    }
    return child;
}

/* Does not use cmocka's assertions, whose messages would not be seen. */
static int crawl(struct crawl_fixture *rig, int seeds)
{
    struct wr_engine_job job;
    const struct wr_engine_open_options place = {.state_path = rig->state, .may_create = true};
    if (wr_engine_open(&place, &rig->engine) != 0)
        return 3;
    bool is_found = wr_engine_find_job(rig->engine, 0, &job) == 0;
    rig->options.resume_job = is_found ? job.id : 0;
    rig->options.appends = true;
    if (wr_engine_start(rig->engine, &rig->options) != 0)
        return 4;
    for (int i = 1; i <= seeds && !(is_found && job.is_seeded); i++)
        if (give_seed(rig, rig_url(rig, i, "/")) != 0)
            return 5;
    if (wr_engine_end_seeds(rig->engine) != 0)
        return 6;
    while (!wr_engine_wait(rig->engine, WEIR_SECOND))
        continue;
    wr_engine_finish(rig->engine, &rig->result);
    wr_engine_free(rig->engine);
    return rig->result.end == WR_END_COMPLETED ? 0 : 7;
}

void rig_be_child(int argc, char **argv)
{
    static struct crawl_fixture rig;
    if (argc < 8 || strcmp(argv[1], "--crawl") != 0)
        return;
    (void)snprintf(rig.state, sizeof rig.state, "%s", argv[2]);
    (void)snprintf(rig.out, sizeof rig.out, "%s", argv[3]);
    set_options(&rig);
    rig.options.loops = (uint32_t)strtoul(argv[4], NULL, 10);
    rig_space(&rig, strtoll(argv[5], NULL, 10));
    rig.port = (int)strtol(argv[6], NULL, 10);
    int result = crawl(&rig, (int)strtol(argv[7], NULL, 10));
    if (result != 0)
        (void)fprintf(stderr, "crawl: %d: %s %s\n", result, weir_error_detail(), rig.result.why);
    exit(result);
}
