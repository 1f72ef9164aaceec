/* SPDX-License-Identifier: MIT */
/* rig.c - test fixture: a real redis-server on a Unix socket, and requests that the test waits
 * for. */
#include "share/rig.h"

#include "lib/test.h"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Connects to the store. Returns NULL if it does not answer within a minute or has ended. */
static redisContext *reach(const struct store *to)
{
    int64_t until = weir_clock_now(weir_clock_monotonic()) + WEIR_MINUTE;
    while (weir_clock_now(weir_clock_monotonic()) < until && waitpid(to->pid, NULL, WNOHANG) == 0) {
        redisContext *redis = redisConnectUnix(to->path);
        redisReply *reply = redis != NULL && redis->err == 0 ? redisCommand(redis, "PING") : NULL;
        bool good = reply != NULL && reply->type == REDIS_REPLY_STATUS;
        if (reply != NULL)
            freeReplyObject(reply);
        if (good)
            return redis;
        if (redis != NULL)
            redisFree(redis);
        usleep(10000);
    }
    return NULL;
}

struct store store;

int open_store(void **state)
{
    (void)state;
    store_open(&store);
    return 0;
}

int close_store(void **state)
{
    (void)state;
    store_close(&store);
    return 0;
}

void store_start_with(struct store *to, const char *const words[])
{
    const char *argv[64] = {"redis-server", "--port",      "0", "--unixsocket", to->path, "--dir",
                            to->folder,     "--save",      "",  "--appendonly", "no",     "--logfile",
                            "log",          "--daemonize", "no"};
    int count = 15;

    for (int i = 0; words[i] != NULL; i++)
        argv[count++] = words[i];
    to->pid = fork();
    if (to->pid == 0) {
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
}

/* Fails the test with the last lines of the server's log. */
static void fail_silent(const struct store *to)
{
    char path[128], text[1024] = "";
    snprintf(path, sizeof path, "%s/log", to->folder);
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        (void)fseek(file, -(long)sizeof text + 1, SEEK_END);
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        (void)fclose(file);
    }
    fail_msg("redis-server does not answer: %s", text);
}

void store_wait(const struct store *to)
{
    redisContext *redis = reach(to);
    if (redis == NULL)
        fail_silent(to);
    redisFree(redis);
}

void store_start(struct store *to)
{
    static const char *const none[] = {NULL};
    store_start_with(to, none);
    store_wait(to);
}

void store_open(struct store *to)
{
    snprintf(to->folder, sizeof to->folder, "/tmp/weir-share-XXXXXX");
    assert_non_null(mkdtemp(to->folder));
    snprintf(to->path, sizeof to->path, "%s/s", to->folder);
    store_start(to);
}

void store_kill(struct store *to)
{
    kill(to->pid, SIGKILL);
    waitpid(to->pid, NULL, 0);
}

void store_close(struct store *to)
{
    char path[128];
    store_kill(to);
    unlink(to->path);
    static const char *const names[] = {"log", "dump.rdb", "nodes.conf"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", to->folder, names[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(to->folder), 0);
}

long long store_say(const struct store *to, const char *command)
{
    redisContext *redis = reach(to);
    assert_non_null(redis);
    redisReply *reply = redisCommand(redis, command);
    assert_non_null(reply);
    long long number = reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;
    freeReplyObject(reply);
    redisFree(redis);
    return number;
}

void bench_open(struct bench *bench, const struct store *to, int64_t timeout_ns)
{
    struct wr_redis_connection_options options = {.path = to->path, .timeout_ns = timeout_ns};
    *bench = (struct bench){0};
    assert_int_equal(uv_loop_init(&bench->loop), 0);
    assert_int_equal(wr_redis_connection_new(&options, &bench->loop, &bench->wire), 0);
}

void bench_close(struct bench *bench)
{
    wr_redis_connection_free(bench->wire);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
}

static void on_told(void *context, const redisReply *reply)
{
    struct bench *bench = context;
    bench->told++;
    bench->error = reply == NULL ? WEIR_E_TIMEOUT : 0;
    if (reply != NULL && reply->elements == 2)
        bench->number = reply->element[0]->integer;
    else if (reply != NULL)
        assert_int_equal(wr_charge_read(reply, &bench->last), 0);
}

void bench_step(struct bench *bench)
{
    /* a timer may deliver the reply, after which a blocking run would not end */
    uv_run(&bench->loop, UV_RUN_NOWAIT);
    usleep(100);
}

static int wait_told(struct bench *bench, int told, int error)
{
    while (error == 0 && bench->told == told)
        bench_step(bench);
    return error < 0 ? error : bench->error;
}

int bench_charge(struct bench *bench, const struct wr_charge_limits *charge_limits, const struct wr_charge *charge)
{
    int told = bench->told;
    return wait_told(bench, told, wr_charge_send(bench->wire, charge_limits, charge, on_told, bench));
}

int bench_seat(struct bench *bench, const char *who, const char *seats, const char *ms)
{
    struct wr_redis_call call = {.key = "seats", .key_bytes = 5, .count = 3, .args = {who, seats, ms}};
    int told = bench->told;
    for (int i = 0; i < 3; i++)
        call.arg_bytes[i] = strlen(call.args[i]);
    return wait_told(bench, told, wr_redis_connection_send(bench->wire, WR_SCRIPT_MEMBERSHIP, &call, on_told, bench));
}

/* ---- scripts --------------------------------------------------------------------------------- */

char *changed(char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    assert_non_null(at);
    size_t bytes = strlen(text) + strlen(to) + 1;
    char *other = malloc(bytes);
    assert_non_null(other);
    snprintf(other, bytes, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    free(text);
    return other;
}

char *script_on_set_clock(enum wr_redis_script script)
{
    return changed(strdup(wr_redis_script_texts[script]), "redis.call('TIME')", "redis.call('MGET', 's', 'us')");
}

void set_clock(redisContext *redis, int64_t us)
{
    redisReply *reply =
        redisCommand(redis, "MSET s %lld us %lld", (long long)(us / 1000000), (long long)(us % 1000000));
    assert_non_null(reply);
    freeReplyObject(reply);
}
