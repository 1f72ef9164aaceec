/* SPDX-License-Identifier: MIT */
/* pace_file.c - locks, reads and rewrites the state file of weir fetch. */
#include "cli/fetch/pace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <weir/time.h>

#include "cli/fetch/pace_file_text.h"
#include "cli/kit/console.h"
#include "limiter/memory/memory.h"

#define HOSTS_MAX ((size_t)1000000)
#define FILE_MAX ((size_t)512 << 20)
#define SAVE_EVERY_S 10
#define SAVE_AT_MOST_EVERY_S 1
/* Age after which hosts are dropped: old data says little, and the file must not grow without
 * bound. */
#define KEEP_NS (30 * WEIR_DAY)

/* ---- hosts ---- */

static bool store_host_memory(struct wr_pace_file *state, struct wr_span key, const weir_pace_memory *memory)
{
    struct wr_pace_file_host *host = wr_map_get(&state->hosts, key.data, key.bytes);
    if (host == NULL) {
        host = malloc(sizeof *host + key.bytes);
        if (host == NULL)
            return false;
        host->key_bytes = key.bytes;
        memcpy(host->key, key.data, key.bytes);
        if (wr_map_put(&state->hosts, host->key, key.bytes, host, NULL) != 0) {
            free(host);
            return false;
        }
    }
    host->memory = *memory;
    return true;
}

static bool take_recent_host(void *context, struct wr_span key, const weir_pace_memory *memory)
{
    int64_t now = weir_wall_now();
    bool is_old = memory->saved_wall_at < now - KEEP_NS && memory->retry_wall_at < now;
    return is_old || store_host_memory(context, key, memory);
}

static bool take_exported_host(void *context, const char *key, size_t key_bytes, const weir_pace_memory *memory)
{
    struct wr_pace_file *state = context;
    if (wr_pace_file_key_ok(key, key_bytes))
        state->is_dirty = store_host_memory(state, (struct wr_span){key, key_bytes}, memory) || state->is_dirty;
    return true;
}

static void free_hosts(struct wr_pace_file *state)
{
    const struct wr_map_slot *slot;
    for (size_t cursor = 0; (slot = wr_map_next(&state->hosts, &cursor)) != NULL;)
        free(slot->value);
    wr_map_release(&state->hosts);
}

/* ---- reading ---- */

/* Reads a whole file. Returns -1 and sets errno on failure. */
static int read_whole_fd(int fd, struct wr_buf *buf)
{
    char block[65536];
    for (;;) {
        ssize_t bytes = read(fd, block, sizeof block);
        if (bytes < 0 && errno != EINTR)
            return -1;
        if (bytes == 0)
            return 0;
        wr_buf_append(buf, block, bytes > 0 ? (size_t)bytes : 0);
        if (buf->error != 0) {
            errno = buf->error == WEIR_E_NOMEM ? ENOMEM : EFBIG;
            return -1;
        }
    }
}

static bool read_pace_text(struct wr_pace_file *state, int fd)
{
    struct wr_buf buf;
    size_t line;
    wr_buf_init(&buf, wr_allocator_or_system(NULL), FILE_MAX);
    bool well = read_whole_fd(fd, &buf) == 0;
    if (!well)
        wr_complain_read_failed("--state", state->path, errno);
    const char *wrong = well ? wr_pace_file_read(wr_buf_from(&buf, 0), take_recent_host, state, &line) : NULL;
    if (wrong != NULL && line > 0)
        wr_complain("--state: %s, line %zu: %s; the file is not changed", state->path, line, wrong);
    else if (wrong != NULL)
        wr_complain("--state: %s: %s; the file is not changed. Name another, or move it away", state->path, wrong);
    wr_buf_release(&buf);
    return well && wrong == NULL;
}

static bool read_pace_file(struct wr_pace_file *state)
{
    struct stat about;
    int fd = open(state->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return true;
    if (fd < 0 || fstat(fd, &about) != 0) {
        wr_complain_read_failed("--state", state->path, errno);
        if (fd >= 0)
            (void)close(fd);
        return false;
    }
    bool is_file = S_ISREG(about.st_mode);
    if (!is_file)
        wr_complain("--state: %s is not a file", state->path);
    bool well = is_file && read_pace_text(state, fd);
    (void)close(fd);
    return well;
}

/* ---- writing ---- */

static int write_all_bytes(int fd, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t wrote = write(fd, bytes, count);
        if (wrote < 0 && errno != EINTR)
            return -1;
        bytes += wrote > 0 ? wrote : 0;
        count -= wrote > 0 ? (size_t)wrote : 0;
    }
    return 0;
}

/* Syncs the folder, so that the new name is on the disk. */
static void sync_parent_folder(const char *path)
{
    char *copy = strdup(path);
    int fd = copy != NULL ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        (void)fsync(fd);
        (void)close(fd);
    }
    free(copy);
}

/* Writes a new file beside the old one and renames it. Returns -1 and sets errno on failure; the
 * old file is unchanged then. */
static int write_pace_file(struct wr_pace_file *state, const struct wr_buf *text)
{
    int fd = open(state->new_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -1;
    int failed = write_all_bytes(fd, text->bytes, text->length) != 0 || fsync(fd) != 0 ? errno : 0;
    if (close(fd) != 0 && failed == 0)
        failed = errno;
    if (failed == 0 && rename(state->new_path, state->path) != 0)
        failed = errno;
    if (failed != 0) {
        (void)unlink(state->new_path);
        errno = failed;
        return -1;
    }
    sync_parent_folder(state->path);
    return 0;
}

static int write_all_hosts(struct wr_pace_file *state)
{
    const struct wr_map_slot *slot;
    struct wr_buf text;
    wr_buf_init(&text, wr_allocator_or_system(NULL), FILE_MAX);
    wr_pace_file_begin_text(&text);
    for (size_t cursor = 0; (slot = wr_map_next(&state->hosts, &cursor)) != NULL;)
        wr_pace_file_append_host(&text, slot->value);
    wr_pace_file_end_text(&text, state->hosts.count);
    errno = text.error == WEIR_E_NOMEM ? ENOMEM : EFBIG;
    int result = text.error != 0 ? -1 : write_pace_file(state, &text);
    wr_buf_release(&text);
    return result;
}

static void save_pace_file(struct wr_pace_file *state)
{
    (void)weir_pacer_export(state->pacer, take_exported_host, state);
    if (!state->is_dirty)
        return;
    state->is_dirty = write_all_hosts(state) != 0;
    if (state->is_dirty && !state->has_complained) {
        wr_complain_write_failed("--state", state->path, errno);
        state->has_complained = true;
    }
}

/* Waits until *is_enough, the end or the timeout. The lock is held. */
static void wait_for_save(struct wr_pace_file *state, int seconds, const bool *is_enough)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    while (!state->is_over && !*is_enough && pthread_cond_timedwait(&state->changed, &state->lock, &until) != ETIMEDOUT)
        continue;
}

static void *run_saver(void *context)
{
    struct wr_pace_file *state = context;
    (void)pthread_mutex_lock(&state->lock);
    while (!state->is_over) {
        wait_for_save(state, SAVE_EVERY_S, &state->is_urgent);
        state->is_urgent = false;
        (void)pthread_mutex_unlock(&state->lock);
        save_pace_file(state);
        (void)pthread_mutex_lock(&state->lock);
        wait_for_save(state, SAVE_AT_MOST_EVERY_S, &state->is_over);
    }
    (void)pthread_mutex_unlock(&state->lock);
    return NULL;
}

/* ---- start and end ---- */

static char *join_path_end(const char *path, const char *end)
{
    size_t room = strlen(path) + strlen(end) + 1;
    char *joined = malloc(room);
    if (joined != NULL)
        (void)snprintf(joined, room, "%s%s", path, end);
    return joined;
}

/* Locks a separate file, because the state file itself is replaced at each save. */
static bool lock_pace_file(struct wr_pace_file *state)
{
    char *path = join_path_end(state->path, ".lock");
    state->lock_fd = path != NULL ? open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
    bool is_ours = state->lock_fd >= 0 && flock(state->lock_fd, LOCK_EX | LOCK_NB) == 0;
    if (!is_ours && state->lock_fd >= 0 && errno == EWOULDBLOCK)
        wr_complain("--state: another weir uses %s; give each its own file", state->path);
    else if (!is_ours && state->lock_fd < 0 && errno == ENOENT)
        wr_complain("--state: %s cannot be created: its folder does not exist; create it, or name another",
                    state->path);
    else if (!is_ours)
        wr_complain("--state: cannot lock %s: %s", path != NULL ? path : state->path, strerror(errno));
    free(path);
    return is_ours;
}

static void release_pace_file(struct wr_pace_file *state)
{
    free_hosts(state);
    if (state->lock_fd >= 0)
        (void)close(state->lock_fd);
    free(state->path);
    free(state->new_path);
}

bool wr_pace_file_open(struct wr_pace_file *ret_state, const char *path)
{
    uint8_t secret[WR_HASH_SECRET_BYTES];
    char *real = realpath(path, NULL); /* a symbolic link must not be replaced by the file */
    *ret_state = (struct wr_pace_file){.lock_fd = -1, .path = real != NULL ? real : strdup(path)};
    ret_state->new_path = ret_state->path != NULL ? join_path_end(ret_state->path, ".new") : NULL;
    bool has_memory = ret_state->new_path != NULL && wr_random(secret, sizeof secret) == 0;
    if (!has_memory)
        wr_complain("--state: out of memory");
    wr_hash_key_init(&ret_state->hash_key, secret);
    wr_map_init(&ret_state->hosts, wr_allocator_or_system(NULL), &ret_state->hash_key, HOSTS_MAX);
    if (has_memory && lock_pace_file(ret_state) && read_pace_file(ret_state))
        return true;
    release_pace_file(ret_state);
    return false;
}

void wr_pace_file_on_event(void *context, const weir_pace_event *event)
{
    struct wr_pace_file *state = context;
    if (event->kind != WEIR_PACE_RETRY_AFTER && event->kind != WEIR_PACE_BREAKER)
        return;
    (void)pthread_mutex_lock(&state->lock);
    state->is_urgent = true;
    (void)pthread_cond_broadcast(&state->changed);
    (void)pthread_mutex_unlock(&state->lock);
}

bool wr_pace_file_start(struct wr_pace_file *state, weir_pacer *pacer)
{
    const struct wr_map_slot *slot;
    state->pacer = pacer;
    (void)pthread_mutex_init(&state->lock, NULL);
    (void)pthread_cond_init(&state->changed, NULL);
    for (size_t cursor = 0; (slot = wr_map_next(&state->hosts, &cursor)) != NULL;) {
        const struct wr_pace_file_host *host = slot->value;
        (void)weir_pacer_seed(pacer, host->key, host->key_bytes, &host->memory);
    }
    int error = pthread_create(&state->saver, NULL, run_saver, state);
    if (error == 0)
        return true;
    wr_complain("cannot start a thread: %s", strerror(error));
    state->pacer = NULL;
    return false;
}

bool wr_pace_file_close(struct wr_pace_file *state)
{
    if (state->pacer != NULL) {
        (void)pthread_mutex_lock(&state->lock);
        state->is_over = true;
        (void)pthread_cond_broadcast(&state->changed);
        (void)pthread_mutex_unlock(&state->lock);
        (void)pthread_join(state->saver, NULL);
        state->has_complained = false;
        save_pace_file(state);
        (void)pthread_mutex_destroy(&state->lock);
        (void)pthread_cond_destroy(&state->changed);
    }
    bool well = !state->is_dirty;
    release_pace_file(state);
    return well;
}
