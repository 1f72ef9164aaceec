/* SPDX-License-Identifier: MIT */
/* rig.c - a real redis-server on a Unix socket, and asks that are waited for. */
#include "share/rig.h"

#include "lib/test.h"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static redisContext *reach(const struct store *store)
{
    for (int i = 0; i < 3000; i++) {
        redisContext *redis = redisConnectUnix(store->path);
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

void store_start(struct store *store)
{
    store->pid = fork();
    if (store->pid == 0) {
        execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", store->path, "--dir", store->folder,
               "--save", "", "--appendonly", "no", "--logfile", "log", "--daemonize", "no", (char *)NULL);
        _exit(127);
    }
    redisContext *redis = reach(store);
    assert_non_null(redis);
    redisFree(redis);
}

void store_open(struct store *store)
{
    snprintf(store->folder, sizeof store->folder, "/tmp/weir-share-XXXXXX");
    assert_non_null(mkdtemp(store->folder));
    snprintf(store->path, sizeof store->path, "%s/s", store->folder);
    store_start(store);
}

void store_kill(struct store *store)
{
    kill(store->pid, SIGKILL);
    waitpid(store->pid, NULL, 0);
}

void store_close(struct store *store)
{
    char path[128];
    store_kill(store);
    unlink(store->path);
    snprintf(path, sizeof path, "%s/log", store->folder);
    unlink(path);
    assert_int_equal(rmdir(store->folder), 0);
}

long long store_say(const struct store *store, const char *command)
{
    redisContext *redis = reach(store);
    assert_non_null(redis);
    redisReply *reply = redisCommand(redis, command);
    assert_non_null(reply);
    long long number = reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;
    freeReplyObject(reply);
    redisFree(redis);
    return number;
}

void bench_open(struct bench *bench, const struct store *store, int64_t timeout_ns)
{
    struct wr_wire_options options = {.path = store->path, .timeout_ns = timeout_ns};
    *bench = (struct bench){0};
    assert_int_equal(uv_loop_init(&bench->loop), 0);
    assert_int_equal(wr_wire_new(&options, &bench->loop, &bench->wire), 0);
}

void bench_close(struct bench *bench)
{
    wr_wire_free(bench->wire);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
}

static void on_told(void *context, const redisReply *reply)
{
    struct bench *bench = context;
    bench->told++;
    bench->error = reply == NULL ? WEIR_E_TIMEOUT : 0;
    if (reply != NULL && reply->type == REDIS_REPLY_INTEGER)
        bench->number = reply->integer;
    else if (reply != NULL)
        assert_int_equal(wr_charge_read(reply, &bench->last), 0);
}

static int wait_told(struct bench *bench, int told, int error)
{
    while (error == 0 && bench->told == told)
        uv_run(&bench->loop, UV_RUN_ONCE);
    return error < 0 ? error : bench->error;
}

int bench_charge(struct bench *bench, const struct wr_tariff *tariff, const struct wr_charge *charge)
{
    int told = bench->told;
    return wait_told(bench, told, wr_charge_send(bench->wire, tariff, charge, on_told, bench));
}

int bench_seat(struct bench *bench, const char *who, const char *seats, const char *ms)
{
    struct wr_call call = {.key = "seats", .key_bytes = 5, .count = 3, .args = {who, seats, ms}};
    int told = bench->told;
    for (int i = 0; i < 3; i++)
        call.arg_bytes[i] = strlen(call.args[i]);
    return wait_told(bench, told, wr_wire_send(bench->wire, WR_SCRIPT_SEAT, &call, on_told, bench));
}
