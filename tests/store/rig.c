/* SPDX-License-Identifier: MIT */
/* rig.c - test fixture: stores of every backend, with helpers to write and read them. */
#include "store/rig.h"

#include "crawl/store/backend.h"
#include "store/postgres.h"

#include <dirent.h>
#include <unistd.h>

const struct rig_backend rig_backends[] = {{"sqlite", &wr_backend_sqlite}, {"postgres", &wr_backend_pg}};
const size_t rig_backend_count = sizeof rig_backends / sizeof rig_backends[0];

/* ---- opening and closing --------------------------------------------------------------------- */

static void note_state(void *context, enum wr_store_state state, const char *why)
{
    struct store_fixture *rig = context;

    (void)why;
    if (state == WR_STORE_PAUSED)
        atomic_fetch_add(&rig->paused, 1);
}

static void note_room(void *context)
{
    atomic_fetch_add(&((struct store_fixture *)context)->rooms, 1);
}

static int note_sync(void *context)
{
    struct store_fixture *rig = context;

    atomic_fetch_add(&rig->syncs, 1);
    return atomic_load(&rig->sync_error);
}

void rig_set_up(struct store_fixture *rig, const struct rig_backend *backend)
{
    const char *tmp = getenv("TMPDIR"), *fast = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

    memset(rig, 0, sizeof *rig);
    rig->backend = backend;
    snprintf(rig->folder, sizeof rig->folder, "%s/weir-store-XXXXXX", tmp != NULL ? tmp : fast);
    assert_non_null(mkdtemp(rig->folder));
    snprintf(rig->path, sizeof rig->path, "%s/weir.db", rig->folder);
    if (backend->kind == &wr_backend_pg)
        postgres_make(rig->schema, sizeof rig->schema, rig->path, sizeof rig->path);
    rig->options = (struct wr_store_options){
        .path = rig->path,
        .may_create = true,
        .backend = backend->kind,
        .batch_ns = WEIR_MILLISECOND,
        .changed = note_state,
        .room = note_room,
        .sync = note_sync,
        .context = rig,
    };
}

void rig_open(struct store_fixture *rig)
{
    int error = wr_store_open(&rig->options, &rig->store);

    if (error != 0)
        print_error("%s\n", weir_error_detail());
    assert_int_equal(error, 0);
}

void rig_close(struct store_fixture *rig)
{
    wr_store_free(rig->store);
    rig->store = NULL;
}

void rig_reopen(struct store_fixture *rig)
{
    rig_close(rig);
    rig->options.may_create = false;
    rig_open(rig);
}

void rig_tear_down(struct store_fixture *rig)
{
    struct dirent *entry;

    rig_close(rig);
    if (rig->schema[0] != '\0')
        postgres_remove(rig->schema);
    DIR *folder = opendir(rig->folder);
    while (folder != NULL && (entry = readdir(folder)) != NULL)
        (void)unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder != NULL)
        (void)closedir(folder);
    (void)rmdir(rig->folder);
}

struct store_fixture *rig_first(void)
{
    struct store_fixture *rig = calloc(1, sizeof *rig);

    assert_non_null(rig);
    rig_set_up(rig, rig_backends);
    return rig;
}

struct store_fixture *rig_next(struct store_fixture *rig)
{
    const struct rig_backend *next = rig->backend + 1;

    rig_tear_down(rig);
    if (next < rig_backends + rig_backend_count && (next->kind != &wr_backend_pg || postgres_start())) {
        rig_set_up(rig, next);
        return rig;
    }
    free(rig);
    return NULL;
}

/* ---- writing --------------------------------------------------------------------------------- */

uint64_t rig_fingerprint(const struct store_fixture *rig, const char *url)
{
    return url == NULL ? 0 : wr_hash(wr_store_hash_key(rig->store), url, strlen(url));
}

int64_t rig_job(struct store_fixture *rig, const char *settings)
{
    int64_t job = 0;

    assert_int_equal(wr_store_add_job(rig->store, wr_span_of(settings), 0, &job), 0);
    assert_true(job > 0);
    return job;
}

struct wr_store_change rig_found(struct store_fixture *rig, int64_t job, const char *host, const char *url,
                                 const char *parent)
{
    return (struct wr_store_change){.kind = WR_STORE_TASK_FOUND,
                                    .found = {.job = job,
                                              .fingerprint = rig_fingerprint(rig, url),
                                              .host = wr_span_of(host),
                                              .url = wr_span_of(url),
                                              .parent = rig_fingerprint(rig, parent),
                                              .depth = parent == NULL ? 0 : 1}};
}

struct wr_store_change rig_ended(struct store_fixture *rig, int64_t job, const char *url, bool failed,
                                 const char *verdict)
{
    return (struct wr_store_change){.kind = WR_STORE_TASK_ENDED,
                                    .ended = {.job = job,
                                              .fingerprint = rig_fingerprint(rig, url),
                                              .failed = failed,
                                              .status = failed ? 0 : 200,
                                              .attempts = 1,
                                              .bytes = failed ? 0 : 100,
                                              .verdict = wr_span_of(verdict)}};
}

struct wr_store_change rig_retry(struct store_fixture *rig, int64_t job, const char *url, uint32_t attempts, int status)
{
    return (struct wr_store_change){
        .kind = WR_STORE_TASK_RETRY,
        .retry = {.job = job, .fingerprint = rig_fingerprint(rig, url), .attempts = attempts, .status = status}};
}

struct wr_store_change rig_status(int64_t job, enum wr_job_status status, const char *why)
{
    return (struct wr_store_change){.kind = WR_STORE_JOB_STATUS,
                                    .status = {.job = job, .status = status, .why = wr_span_of(why)}};
}

struct wr_store_change rig_output(int64_t job, const char *path, uint64_t bytes)
{
    return (struct wr_store_change){.kind = WR_STORE_OUTPUT,
                                    .output = {.job = job, .path = wr_span_of(path), .bytes = bytes}};
}

void rig_post_all(struct store_fixture *rig, const struct wr_store_change *changes, size_t count)
{
    int error = wr_store_post(rig->store, changes, count, NULL, NULL);

    if (error != 0)
        print_error("%s\n", weir_error_detail());
    assert_int_equal(error, 0);
}

void rig_post(struct store_fixture *rig, struct wr_store_change change)
{
    rig_post_all(rig, &change, 1);
}

void rig_count(void *context, int error, const char *why)
{
    struct store_fixture *rig = context;

    if (error != 0)
        snprintf(rig->why, sizeof rig->why, "%s", why);
    atomic_fetch_add(error == 0 ? &rig->done : &rig->failed, 1);
}

int rig_post_later(struct store_fixture *rig, struct wr_store_change change)
{
    return wr_store_post(rig->store, &change, 1, rig_count, rig);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct rows {
    struct rig_row *list;
    size_t count, room;
};

/* Lays out the texts of a row one after the other in row->text. Copies them there, or only resets
 * the pointers after the row has moved. */
static void place_text(struct rig_row *row, size_t *at, struct wr_span *span, bool copies)
{
    assert_true(*at + span->bytes < sizeof row->text);
    if (copies && span->bytes > 0)
        memcpy(row->text + *at, span->data, span->bytes);
    span->data = row->text + *at;
    *at += span->bytes;
}

static void place_texts(struct rig_row *row, bool copies)
{
    struct wr_store_row *to = &row->row;
    struct wr_span *spans[11] = {0};
    size_t at = 0;

    switch (to->what) {
    case WR_STORE_JOBS:
        spans[0] = &to->job.why, spans[1] = &to->job.settings;
        break;
    case WR_STORE_FINGERPRINTS:
    case WR_STORE_RELEASE:
        break;
    case WR_STORE_ONE_TASK:
    case WR_STORE_ALL_TASKS:
        spans[0] = &to->task.host, spans[1] = &to->task.url, spans[2] = &to->task.verdict, spans[3] = &to->task.why;
        spans[4] = &to->task.visit.validator, spans[5] = &to->task.visit.digest;
        spans[6] = &to->task.earlier_verdict, spans[7] = &to->task.earlier.validator;
        spans[8] = &to->task.earlier.digest, spans[9] = &to->task.referrer, spans[10] = &to->task.line;
        break;
    case WR_STORE_SEEDS:
    case WR_STORE_TASKS:
        spans[0] = &to->task.host, spans[1] = &to->task.url, spans[2] = &to->task.referrer;
        spans[3] = &to->task.earlier_verdict, spans[4] = &to->task.earlier.validator;
        spans[5] = &to->task.earlier.digest;
        break;
    case WR_STORE_HOSTS:
    case WR_STORE_FETCHED_HOSTS:
    case WR_STORE_ONE_HOST:
    case WR_STORE_ALL_HOSTS:
    case WR_STORE_CLAIM:
    case WR_STORE_CLAIM_ONE:
    case WR_STORE_RENEW:
        spans[0] = &to->host.key, spans[1] = &to->host.blocked_by, spans[2] = &to->host.leased_by;
        break;
    case WR_STORE_NODES:
        spans[0] = &to->node.name;
        break;
    case WR_STORE_SUMS:
        spans[0] = &to->sum.host, spans[1] = &to->sum.verdict;
        break;
    case WR_STORE_ONE_ROBOTS:
        spans[0] = &to->robots.url, spans[1] = &to->robots.text, spans[2] = &to->robots.etag,
        spans[3] = &to->robots.modified;
        break;
    case WR_STORE_OUTPUTS:
        spans[0] = &to->output.path;
        break;
    case WR_STORE_REPORTS:
        spans[0] = &to->report.text;
        break;
    case WR_STORE_CHECK:
        spans[0] = &to->text;
        break;
    }
    for (size_t i = 0; i < 11 && spans[i] != NULL; i++)
        place_text(row, &at, spans[i], copies);
}

static void take_row(void *context, const struct wr_store_row *row)
{
    struct rows *rows = context;

    if (rows->count == rows->room) {
        rows->room = rows->room == 0 ? 4 : rows->room * 2;
        rows->list = realloc(rows->list, rows->room * sizeof *rows->list);
        assert_non_null(rows->list);
        for (size_t i = 0; i < rows->count; i++)
            place_texts(&rows->list[i], false);
    }
    struct rig_row *copy = &rows->list[rows->count++];
    copy->row = *row;
    memset(copy->text, 0, sizeof copy->text);
    place_texts(copy, true);
}

struct rig_row *rig_read(struct store_fixture *rig, struct wr_store_query query, size_t *ret_count)
{
    struct rows rows = {0};

    query.row = take_row;
    query.context = &rows;
    int error = wr_store_read(rig->store, &query);
    if (error != 0)
        print_error("%s\n", weir_error_detail());
    assert_int_equal(error, 0);
    *ret_count = rows.count;
    return rows.list;
}

size_t rig_read_count(struct store_fixture *rig, struct wr_store_query query)
{
    size_t count;

    free(rig_read(rig, query, &count));
    return count;
}

struct wr_store_job rig_look_job(struct store_fixture *rig, int64_t job)
{
    size_t count;
    struct rig_row *rows = rig_read(rig, (struct wr_store_query){.what = WR_STORE_JOBS, .job = job}, &count);

    assert_int_equal(count, 1);
    struct wr_store_job found = rows[0].row.job;
    found.why = found.settings = (struct wr_span){NULL, 0};
    free(rows);
    return found;
}

char *rig_queue(struct store_fixture *rig, int64_t job, const char *host)
{
    size_t count, at = 0, room = 1;
    struct wr_store_query query = {
        .what = WR_STORE_TASKS, .job = job, .key = wr_span_of(host), .after = WR_STORE_FIRST_POSITION};
    struct rig_row *rows = rig_read(rig, query, &count);

    for (size_t i = 0; i < count; i++)
        room += rows[i].row.task.url.bytes + 1;
    char *text = calloc(room, 1);
    assert_non_null(text);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            text[at++] = ',';
        memcpy(text + at, rows[i].row.task.url.data, rows[i].row.task.url.bytes);
        at += rows[i].row.task.url.bytes;
    }
    free(rows);
    return text;
}

void rig_check(struct store_fixture *rig)
{
    size_t count;
    struct rig_row *rows = rig_read(rig, (struct wr_store_query){.what = WR_STORE_CHECK}, &count);

    for (size_t i = 0; i < count; i++)
        print_error("%.*s\n", (int)rows[i].row.text.bytes, rows[i].row.text.data);
    assert_int_equal(count, 0);
    free(rows);
}

bool rig_is(struct wr_span span, const char *text)
{
    return span.bytes == strlen(text) && (span.bytes == 0 || memcmp(span.data, text, span.bytes) == 0);
}

struct wr_store_host rig_known_host(const char *key)
{
    return (struct wr_store_host){.key = wr_span_of(key),
                                  .memory = {.delay_ns = 1500 * WEIR_MILLISECOND,
                                             .floor_ns = 500 * WEIR_MILLISECOND,
                                             .robots_delay_ns = 250 * WEIR_MILLISECOND,
                                             .saved_wall_at = 1700000000 * WEIR_SECOND,
                                             .rate = 0.75,
                                             .cap = 3,
                                             .traits = 0x85,
                                             .block_ns = WEIR_MINUTE,
                                             .breaker_open = true}};
}

bool rig_look_host(struct store_fixture *rig, const char *key, struct wr_store_host *ret_host)
{
    size_t count;
    struct wr_store_query query = {.what = WR_STORE_ONE_HOST, .key = wr_span_of(key)};
    struct rig_row *rows = rig_read(rig, query, &count);

    assert_true(count <= 1);
    if (count == 1)
        *ret_host = rows[0].row.host;
    free(rows);
    return count == 1;
}

void rig_join(struct store_fixture *rig, struct store_fixture *ret_other)
{
    memset(ret_other, 0, sizeof *ret_other);
    ret_other->backend = rig->backend;
    ret_other->options = rig->options;
    ret_other->options.context = ret_other;
    rig_open(ret_other);
}

bool rig_set_up_shared(struct store_fixture *rig)
{
    if (!postgres_start())
        return false;
    rig_set_up(rig, &rig_backends[1]);
    return true;
}

void rig_find_hosts(struct store_fixture *rig, int64_t job, int count)
{
    char host[16], url[32];

    for (int i = 0; i < count; i++) {
        snprintf(host, sizeof host, "h%02d", i);
        snprintf(url, sizeof url, "https://h%02d/", i);
        rig_post(rig, rig_found(rig, job, host, url, NULL));
    }
}

bool rig_pair_set_up(struct rig_pair *pair, int hosts)
{
    if (!rig_set_up_shared(&pair->first))
        return false;
    rig_open(&pair->first);
    rig_join(&pair->first, &pair->second);
    pair->job = rig_job(&pair->first, "");
    rig_find_hosts(&pair->first, pair->job, hosts);
    return true;
}

void rig_pair_tear_down(struct rig_pair *pair)
{
    rig_close(&pair->second);
    rig_tear_down(&pair->first);
}
