/* SPDX-License-Identifier: MIT */
/* catalog.c - collects the scenarios to run. */
#include "cli/simulate/catalog.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/ascii.h"
#include "base/buf.h"
#include "base/nearest.h"
#include "base/parse.h"
#include "cli/kit/console.h"
#include "cli/simulate/builtin.h"
#include "cli/simulate/scenario_file.h"

#define LISTED_MAX 10000
#define ENTRY_BYTES sizeof(struct wr_scenario *)
#define ENTRY_ALIGN alignof(struct wr_scenario *)

void wr_catalog_init(struct wr_catalog *ret_catalog, const weir_allocator *allocator)
{
    *ret_catalog = (struct wr_catalog){.allocator = allocator};
}

static int fail_out_of_memory(void)
{
    wr_complain("%s", weir_error_text(WEIR_E_NOMEM));
    return WR_EXIT_FAILED;
}

static bool grow_catalog(struct wr_catalog *catalog)
{
    size_t room = catalog->room == 0 ? 64 : 2 * catalog->room;
    struct wr_scenario **list = wr_alloc_array(catalog->allocator, room, ENTRY_BYTES, ENTRY_ALIGN);
    if (list == NULL)
        return false;
    if (catalog->listed > 0)
        memcpy(list, catalog->list, catalog->listed * ENTRY_BYTES);
    wr_free(catalog->allocator, catalog->list, catalog->room * ENTRY_BYTES, ENTRY_ALIGN);
    catalog->list = list;
    catalog->room = room;
    return true;
}

static int add_scenario(struct wr_catalog *catalog, const struct wr_scenario *scenario)
{
    if (catalog->listed == LISTED_MAX) {
        wr_complain("more than %d scenarios; name fewer", LISTED_MAX);
        return WR_EXIT_USAGE;
    }
    if (catalog->listed == catalog->room && !grow_catalog(catalog))
        return fail_out_of_memory();
    struct wr_scenario *copy = wr_alloc(catalog->allocator, sizeof *copy, alignof(struct wr_scenario));
    if (copy == NULL)
        return fail_out_of_memory();
    *copy = *scenario;
    catalog->list[catalog->listed++] = copy;
    return WR_EXIT_OK;
}

static int add_file(struct wr_catalog *catalog, const char *path)
{
    struct wr_scenario scenario;
    char why[WR_CONFIG_WHY_BYTES];
    int error = wr_scenario_read(path, catalog->allocator, &scenario, why);
    if (error == 0)
        return add_scenario(catalog, &scenario);
    wr_complain("%s", why);
    return error == WEIR_E_INVAL ? WR_EXIT_USAGE : WR_EXIT_FAILED;
}

static int add_builtin(struct wr_catalog *catalog, const struct wr_builtin *builtin)
{
    struct wr_scenario scenario;
    char why[WR_CONFIG_WHY_BYTES];
    if (wr_scenario_parse(builtin->name, builtin->text, strlen(builtin->text), catalog->allocator, &scenario, why) == 0)
        return add_scenario(catalog, &scenario);
    wr_complain("%s", why);
    return WR_EXIT_FAILED;
}

int wr_catalog_add_builtins(struct wr_catalog *catalog)
{
    int status = WR_EXIT_OK;
    for (size_t i = 0; status == WR_EXIT_OK && i < wr_builtins_count; i++)
        status = add_builtin(catalog, &wr_builtins[i]);
    return status;
}

/* ---- folders ---- */

static int is_scenario(const struct dirent *entry)
{
    const char *end = strrchr(entry->d_name, '.');
    return entry->d_name[0] != '.' && end != NULL && (strcmp(end, ".yaml") == 0 || strcmp(end, ".yml") == 0);
}

static int add_folder_file(struct wr_catalog *catalog, const char *folder, const char *name)
{
    struct wr_buf path;
    wr_buf_init(&path, catalog->allocator, 65536);
    wr_buf_append_string(&path, folder);
    wr_buf_append_string(&path, folder[strlen(folder) - 1] == '/' ? "" : "/");
    wr_buf_append_string(&path, name);
    int status = path.error != 0 ? fail_out_of_memory() : add_file(catalog, path.bytes);
    wr_buf_release(&path);
    return status;
}

/* Adds the scenario files of a folder in natural order: P2 before P10. */
static int add_folder(struct wr_catalog *catalog, const char *folder)
{
    struct dirent **entries;
    int status = WR_EXIT_OK;
    int count = scandir(folder, &entries, is_scenario, versionsort);
    if (count < 0) {
        wr_complain_read_failed(NULL, folder, errno);
        return WR_EXIT_FAILED;
    }
    if (count == 0) {
        wr_complain("%s: no scenarios in this folder; their names end in .yaml", folder);
        status = WR_EXIT_USAGE;
    }
    for (int i = 0; i < count; i++) {
        if (status == WR_EXIT_OK)
            status = add_folder_file(catalog, folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return status;
}

/* ---- names ---- */

/* Returns true if the name begins with `beginning` and its number is complete: "P1" and "P1a" match
 * P1a-tb0.2-b5, but "P1" does not match P10a-conc4. */
static bool name_begins_with(const char *beginning, const char *name)
{
    size_t length = strlen(beginning);
    return length > 0 && strncmp(name, beginning, length) == 0 &&
           !(wr_ascii_is_digit(beginning[length - 1]) && wr_ascii_is_digit(name[length]));
}

static int refuse_scenario_name(const char *name)
{
    struct wr_nearest nearest = {.word = name};
    for (size_t i = 0; i < wr_builtins_count; i++)
        wr_nearest_offer(&nearest, wr_builtins[i].name);
    if (nearest.best != NULL)
        wr_complain("%s: no such file, folder or built-in scenario; did you mean %s?", name, nearest.best);
    else
        wr_complain("%s: no such file, folder or built-in scenario; \"weir simulate --list\" shows them all", name);
    return WR_EXIT_USAGE;
}

/* Adds a random scenario by its name. With the same seed "P4-r14" is number 14 (from 0) of
 * --random, and "R2-r1" is number 1 of --real. */
static int add_random_by_name(struct wr_catalog *catalog, const char *name)
{
    const char *number = strstr(name, "-r");
    struct wr_scenario scenario;
    uint64_t index;
    if (number == NULL || !wr_scan_u64(number + 2, strspn(number + 2, "0123456789"), 0, UINT32_MAX, &index))
        return refuse_scenario_name(name);
    if (name[0] == 'R')
        wr_scenario_random_real(catalog->seed, (uint32_t)index, &scenario);
    else
        wr_scenario_random(catalog->seed, (uint32_t)index, &scenario);
    if (name_begins_with(name, scenario.name))
        return add_scenario(catalog, &scenario);
    wr_complain("%s: under --seed %" PRIu64 " that is %s", name, catalog->seed, scenario.name);
    return WR_EXIT_USAGE;
}

static int add_by_name(struct wr_catalog *catalog, const char *name)
{
    size_t before = catalog->listed;
    int status = WR_EXIT_OK;
    for (size_t i = 0; status == WR_EXIT_OK && i < wr_builtins_count; i++)
        if (name_begins_with(name, wr_builtins[i].name))
            status = add_builtin(catalog, &wr_builtins[i]);
    return status == WR_EXIT_OK && catalog->listed == before ? add_random_by_name(catalog, name) : status;
}

int wr_catalog_add(struct wr_catalog *catalog, const char *what)
{
    struct stat about;
    if (stat(what, &about) != 0) {
        if (errno == ENOENT && strchr(what, '/') == NULL)
            return add_by_name(catalog, what);
        wr_complain_read_failed(NULL, what, errno);
        return WR_EXIT_FAILED;
    }
    return S_ISDIR(about.st_mode) ? add_folder(catalog, what) : add_file(catalog, what);
}

/* ---- access ---- */

const struct wr_scenario *wr_catalog_get(const struct wr_catalog *catalog, size_t index, struct wr_scenario *room)
{
    if (index < catalog->listed)
        return catalog->list[index];
    index -= catalog->listed;
    if (index < catalog->drawn)
        wr_scenario_random(catalog->seed, (uint32_t)index, room);
    else
        wr_scenario_random_real(catalog->seed, (uint32_t)(index - catalog->drawn), room);
    return room;
}

void wr_catalog_release(struct wr_catalog *catalog)
{
    for (size_t i = 0; i < catalog->listed; i++)
        wr_free(catalog->allocator, catalog->list[i], sizeof *catalog->list[i], alignof(struct wr_scenario));
    wr_free(catalog->allocator, catalog->list, catalog->room * ENTRY_BYTES, ENTRY_ALIGN);
    wr_catalog_init(catalog, catalog->allocator);
}
