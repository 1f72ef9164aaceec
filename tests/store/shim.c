/* SPDX-License-Identifier: MIT */
/* shim.c - an SQLite VFS on top of the real one, which simulates full disks, failing syncs and
 * power cuts. */
#include "store/shim.h"

#include "lib/test.h"

#include <pthread.h>
#include <sqlite3.h>

#define NODES 8
#define SECTOR 512

struct shim shim;

/* ---- the content after a power cut ----------------------------------------------------------- */

struct pending {
    struct pending *next;
    sqlite3_int64 at;
    int bytes; /* length of the write; -1: the file was truncated at `at` */
    char data[];
};

struct node {
    char name[512];
    char *durable;
    size_t bytes, room;
    struct pending *first, **last;
};

static struct node nodes[NODES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct file {
    sqlite3_file base;
    sqlite3_file *real;
    struct node *node; /* NULL: writes are not recorded */
    bool is_main;
};

static sqlite3_vfs *real_vfs;
static sqlite3_vfs shim_vfs;

static void grow(char **bytes, size_t *count, size_t *room, size_t to)
{
    if (to > *room) {
        *room = to * 2;
        *bytes = realloc(*bytes, *room);
        assert_non_null(*bytes);
    }
    if (to > *count) {
        memset(*bytes + *count, 0, to - *count);
        *count = to;
    }
}

static void apply(char **bytes, size_t *count, size_t *room, const struct pending *pending, size_t from, size_t to)
{
    if (pending->bytes < 0) {
        if ((size_t)pending->at < *count)
            *count = (size_t)pending->at;
        return;
    }
    grow(bytes, count, room, (size_t)pending->at + to);
    memcpy(*bytes + pending->at + from, pending->data + from, to - from);
}

static void note(struct file *file, const void *data, int bytes, sqlite3_int64 at)
{
    if (file->node == NULL)
        return;
    struct pending *pending = calloc(1, sizeof *pending + (size_t)(bytes > 0 ? bytes : 0));
    assert_non_null(pending);
    pending->at = at;
    pending->bytes = bytes;
    if (bytes > 0)
        memcpy(pending->data, data, (size_t)bytes);
    *file->node->last = pending;
    file->node->last = &pending->next;
}

static void make_durable(struct node *node)
{
    while (node->first != NULL) {
        struct pending *pending = node->first;
        apply(&node->durable, &node->bytes, &node->room, pending, 0, pending->bytes > 0 ? (size_t)pending->bytes : 0);
        node->first = pending->next;
        free(pending);
    }
    node->last = &node->first;
}

/* Returns the node with this name, with the present content of the file as its durable content. */
static struct node *node_of(const char *name, sqlite3_file *real)
{
    struct node *node = nodes;
    sqlite3_int64 size = 0;

    while (node->name[0] != '\0' && strcmp(node->name, name) != 0)
        node++;
    assert_true(node < nodes + NODES - 1);
    snprintf(node->name, sizeof node->name, "%s", name);
    node->last = &node->first;
    make_durable(node);
    assert_int_equal(real->pMethods->xFileSize(real, &size), SQLITE_OK);
    node->bytes = 0;
    grow(&node->durable, &node->bytes, &node->room, (size_t)size);
    if (size > 0)
        assert_int_equal(real->pMethods->xRead(real, node->durable, (int)size, 0), SQLITE_OK);
    return node;
}

static void cut_node(const struct node *node, const char *folder, struct wr_rng *rng)
{
    char path[600];
    size_t bytes = node->bytes, room = node->bytes + 1;
    char *image = malloc(room);

    assert_non_null(image);
    memcpy(image, node->durable, bytes);
    for (const struct pending *pending = node->first; pending != NULL; pending = pending->next) {
        size_t from = 0, to = pending->bytes > 0 ? (size_t)pending->bytes : 0;
        uint64_t fate = wr_rng_below(rng, 4);
        if (fate == 0)
            continue;                 /* the write never reached the disk */
        if (fate == 1 && to > SECTOR) /* a torn write: only some sectors */
            to = SECTOR * (size_t)wr_rng_below(rng, to / SECTOR);
        else if (fate == 2 && to > SECTOR)
            from = SECTOR * (size_t)wr_rng_below(rng, to / SECTOR);
        apply(&image, &bytes, &room, pending, from, to);
    }
    snprintf(path, sizeof path, "%s%s", folder, strrchr(node->name, '/'));
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_int_equal(fwrite(image, 1, bytes, out), bytes);
    assert_int_equal(fclose(out), 0);
    free(image);
}

void shim_cut(const char *folder, struct wr_rng *rng)
{
    pthread_mutex_lock(&lock);
    for (const struct node *node = nodes; node->name[0] != '\0'; node++)
        cut_node(node, folder, rng);
    pthread_mutex_unlock(&lock);
}

/* ---- files ----------------------------------------------------------------------------------- */

static struct file *file_of(sqlite3_file *base)
{
    return (struct file *)(void *)base;
}

static bool fails(atomic_long *at)
{
    long left = atomic_load(at);

    return left > 0 && atomic_fetch_sub(at, 1) == 1;
}

static int file_write(sqlite3_file *base, const void *data, int bytes, sqlite3_int64 at)
{
    struct file *file = file_of(base);

    atomic_fetch_add(&shim.writes, 1);
    if (!atomic_load(&shim.only_main) || file->is_main) {
        if (fails(&shim.fail_write_at))
            atomic_store(&shim.is_full, true);
        if (atomic_load(&shim.is_full))
            return SQLITE_FULL;
    }
    pthread_mutex_lock(&lock);
    note(file, data, bytes, at);
    int code = file->real->pMethods->xWrite(file->real, data, bytes, at);
    pthread_mutex_unlock(&lock);
    return code;
}

static int file_sync(sqlite3_file *base, int flags)
{
    struct file *file = file_of(base);

    atomic_fetch_add(&shim.syncs, 1);
    if (fails(&shim.fail_sync_at))
        return SQLITE_IOERR_FSYNC;
    pthread_mutex_lock(&lock);
    if (file->node != NULL)
        make_durable(file->node);
    pthread_mutex_unlock(&lock);
    (void)flags;
    return SQLITE_OK; /* the durable content is in memory, so the real disk need not be synced */
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 size)
{
    pthread_mutex_lock(&lock);
    note(file_of(base), NULL, -1, size);
    pthread_mutex_unlock(&lock);
    return file_of(base)->real->pMethods->xTruncate(file_of(base)->real, size);
}

static int file_close(sqlite3_file *base)
{
    return file_of(base)->real->pMethods->xClose(file_of(base)->real);
}

static int file_read(sqlite3_file *base, void *data, int bytes, sqlite3_int64 at)
{
    return file_of(base)->real->pMethods->xRead(file_of(base)->real, data, bytes, at);
}

static int file_size(sqlite3_file *base, sqlite3_int64 *size)
{
    return file_of(base)->real->pMethods->xFileSize(file_of(base)->real, size);
}

static int file_lock(sqlite3_file *base, int level)
{
    return file_of(base)->real->pMethods->xLock(file_of(base)->real, level);
}

static int file_unlock(sqlite3_file *base, int level)
{
    return file_of(base)->real->pMethods->xUnlock(file_of(base)->real, level);
}

static int file_check_lock(sqlite3_file *base, int *result)
{
    return file_of(base)->real->pMethods->xCheckReservedLock(file_of(base)->real, result);
}

static int file_control(sqlite3_file *base, int what, void *value)
{
    return file_of(base)->real->pMethods->xFileControl(file_of(base)->real, what, value);
}

static int file_sector(sqlite3_file *base)
{
    return file_of(base)->real->pMethods->xSectorSize(file_of(base)->real);
}

static int file_traits(sqlite3_file *base)
{
    (void)base;
    return 0; /* promises no atomic or ordered writes */
}

static const sqlite3_io_methods methods = {
    .iVersion = 1,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_check_lock,
    .xFileControl = file_control,
    .xSectorSize = file_sector,
    .xDeviceCharacteristics = file_traits,
};

static int shim_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags, int *ret_flags)
{
    struct file *file = file_of(base);

    (void)vfs;
    memset(file, 0, sizeof *file);
    file->real = (sqlite3_file *)(void *)(file + 1);
    int code = real_vfs->xOpen(real_vfs, name, file->real, flags, ret_flags);
    if (code != SQLITE_OK)
        return code;
    file->base.pMethods = &methods;
    file->is_main = (flags & SQLITE_OPEN_MAIN_DB) != 0;
    pthread_mutex_lock(&lock);
    file->node = shim.remembers && name != NULL ? node_of(name, file->real) : NULL;
    pthread_mutex_unlock(&lock);
    return SQLITE_OK;
}

void shim_clear(void)
{
    for (struct node *node = nodes; node < nodes + NODES; node++) {
        make_durable(node);
        free(node->durable);
        memset(node, 0, sizeof *node);
    }
    memset(&shim, 0, sizeof shim);
}

void shim_install(void)
{
    if (real_vfs == NULL) {
        real_vfs = sqlite3_vfs_find(NULL);
        assert_non_null(real_vfs);
        shim_vfs = *real_vfs;
        shim_vfs.zName = "shim";
        shim_vfs.szOsFile = (int)sizeof(struct file) + real_vfs->szOsFile;
        shim_vfs.xOpen = shim_open;
    }
    assert_int_equal(sqlite3_vfs_register(&shim_vfs, 1), SQLITE_OK);
    shim_clear();
}
