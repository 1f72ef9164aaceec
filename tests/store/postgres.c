/* SPDX-License-Identifier: MIT */
/* postgres.c - a PostgreSQL server and a PgBouncer for tests. */
#include "store/postgres.h"

#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <grp.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATH_BYTES 256

static struct {
    pid_t owner, server, bouncer; /* process that started the servers, and their process ids */
    char folder[PATH_BYTES];
    char programs[PATH_BYTES]; /* folder of initdb and postgres */
    int schemas;
} here;

/* ---- the programs ---------------------------------------------------------------------------- */

static bool find_programs(void)
{
    glob_t found;
    char program[PATH_BYTES + 16];

    for (const char *path = getenv("PATH"); path != NULL && *path != '\0';) {
        size_t bytes = strcspn(path, ":");
        snprintf(here.programs, sizeof here.programs, "%.*s", (int)bytes, path);
        snprintf(program, sizeof program, "%s/postgres", here.programs);
        if (access(program, X_OK) == 0)
            return true;
        path += bytes + (path[bytes] == ':');
    }
    if (glob("/usr/lib/postgresql/*/bin", 0, NULL, &found) != 0)
        return false;
    snprintf(here.programs, sizeof here.programs, "%s", found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
    return true;
}

/* Returns the user for the server if this process is root: PostgreSQL refuses to run as root. NULL:
 * the same user. */
static const struct passwd *other_user(void)
{
    if (geteuid() != 0)
        return NULL;
    const struct passwd *user = getpwnam("postgres");
    return user != NULL ? user : getpwnam("nobody");
}

static pid_t start(const char **words)
{
    char program[PATH_BYTES + 32];
    const struct passwd *user = other_user();
    pid_t child = fork();

    assert_true(child >= 0);
    if (child != 0)
        return child;
    int nothing = open("/dev/null", O_RDWR);
    (void)dup2(nothing, 0);
    (void)dup2(nothing, 1);
    (void)dup2(nothing, 2);
    if (user != NULL && (setgroups(0, NULL) != 0 || setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0))
        _exit(126);
    (void)prctl(PR_SET_PDEATHSIG, SIGQUIT); /* after setuid, which clears it */
    (void)signal(SIGQUIT, SIG_DFL);         /* shells let background processes ignore it */
    (void)unsetenv("LD_PRELOAD");
    (void)chdir("/");
    snprintf(program, sizeof program, "%s%s%s", words[0][0] == '/' ? "" : here.programs, words[0][0] == '/' ? "" : "/",
             words[0]);
    words[0] = program; /* initdb looks for postgres in its own folder */
    execv(program, (char *const *)(uintptr_t)words);
    _exit(127);
}

/* ---- the server ------------------------------------------------------------------------------ */

static int remove_node(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)status;
    (void)kind;
    (void)where;
    return remove(path);
}

static void stop(void)
{
    if (here.owner != getpid() || here.server <= 0) /* a forked child must not stop the servers */
        return;
    if (here.bouncer > 0) {
        (void)kill(here.bouncer, SIGQUIT);
        (void)waitpid(here.bouncer, NULL, 0);
    }
    (void)kill(here.server, SIGQUIT);
    (void)waitpid(here.server, NULL, 0);
    here.server = 0;
    (void)nftw(here.folder, remove_node, 16, FTW_DEPTH | FTW_PHYS);
}

static void await(const char *url, pid_t server)
{
    for (int tries = 0; tries < 600; tries++) {
        if (PQping(url) == PQPING_OK)
            return;
        assert_int_equal(waitpid(server, NULL, WNOHANG), 0);
        usleep(50000);
    }
    fail_msg("PostgreSQL does not answer after half a minute");
}

bool postgres_start(void)
{
    char data[PATH_BYTES + 16], url[PATH_BYTES + 64];
    int status;
    const char *tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    const struct passwd *user = other_user();

    if (here.server > 0)
        return true;
    if (!find_programs())
        return false;
    snprintf(here.folder, sizeof here.folder, "%s/weir-pg-XXXXXX", tmp);
    assert_non_null(mkdtemp(here.folder));
    if (user != NULL)
        assert_int_equal(chown(here.folder, user->pw_uid, user->pw_gid), 0);
    snprintf(data, sizeof data, "%s/data", here.folder);
    pid_t initdb = start((const char *[]){"initdb", "-D", data, "-U", "weir", "-A", "trust", "-E", "UTF8", "-N",
                                          "--no-locale", "--no-instructions", NULL});
    assert_int_equal(waitpid(initdb, &status, 0), initdb);
    assert_int_equal(status, 0);
    here.owner = getpid();
    here.server = start((const char *[]){"postgres", "-D", data, "-k", here.folder, "-c", "listen_addresses=", "-c",
                                         "fsync=off", "-c", "shared_buffers=16MB", "-c", "max_connections=30", "-c",
                                         "autovacuum=off", "-c", "deadlock_timeout=100ms", NULL});
    (void)atexit(stop);
    snprintf(url, sizeof url, "postgres:///postgres?host=%s&user=weir", here.folder);
    await(url, here.server);
    return true;
}

bool postgres_bounce(char *ret_url, size_t url_bytes)
{
    static const char program[] = "/usr/sbin/pgbouncer";
    char config[PATH_BYTES + 32];

    if (access(program, X_OK) != 0)
        return false;
    snprintf(config, sizeof config, "%s/bouncer.ini", here.folder);
    snprintf(ret_url, url_bytes, "postgres:///bounced?host=%s&port=6432&user=weir", here.folder);
    if (here.bouncer > 0)
        return true;
    postgres_run("", "CREATE DATABASE bounced");
    FILE *file = fopen(config, "we");
    assert_non_null(file);
    fprintf(file,
            "[databases]\nbounced = host=%s dbname=bounced user=weir\n[pgbouncer]\nlisten_port = 6432\n"
            "unix_socket_dir = %s\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 2\n",
            here.folder, here.folder);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(config, 0644), 0);
    here.bouncer = start((const char *[]){program, "-q", config, NULL});
    await(ret_url, here.bouncer);
    return true;
}

/* ---- schemas --------------------------------------------------------------------------------- */

static void url_of(const char *schema, char *ret_url, size_t url_bytes)
{
    snprintf(ret_url, url_bytes, "postgres:///postgres?host=%s&user=weir&options=-csearch_path%%3D%s", here.folder,
             schema[0] != '\0' ? schema : "public");
}

void postgres_run(const char *schema, const char *sql)
{
    char url[PATH_BYTES + 128];

    url_of(schema, url, sizeof url);
    PGconn *conn = PQconnectdb(url);
    PGresult *result = PQexec(conn, sql);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        print_error("%s\n", PQerrorMessage(conn));
    assert_true(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK);
    PQclear(result);
    PQfinish(conn);
}

void postgres_await(const char *schema, const char *sql)
{
    char url[PATH_BYTES + 128];

    url_of(schema, url, sizeof url);
    PGconn *conn = PQconnectdb(url);
    for (int tries = 0;; tries++) {
        PGresult *result = PQexec(conn, sql);
        int rows = PQntuples(result);
        PQclear(result);
        if (rows > 0)
            break;
        if (tries == 6000)
            fail_msg("no row was returned by %s", sql);
        usleep(10000);
    }
    PQfinish(conn);
}

void postgres_make(char *ret_schema, size_t schema_bytes, char *ret_url, size_t url_bytes)
{
    char sql[PATH_BYTES];

    snprintf(ret_schema, schema_bytes, "s%d", ++here.schemas);
    snprintf(sql, sizeof sql, "CREATE SCHEMA %s", ret_schema);
    postgres_run("", sql);
    url_of(ret_schema, ret_url, url_bytes);
}

void postgres_remove(const char *schema)
{
    char sql[PATH_BYTES];

    snprintf(sql, sizeof sql, "SET client_min_messages = warning; DROP SCHEMA %s CASCADE", schema);
    postgres_run("", sql);
}
