/* SPDX-License-Identifier: MIT */
/* test_faults.c - failures of a store, one by one: each is noticed, reported and recovered from. */
#include "cluster/limit/redis_connection_state.h"
#include "lib/test.h"
#include "limiter/clock/clock.h"
#include "share/nodes.h"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const struct wr_charge ONE = {.key = "k", .key_bytes = 1, .permits = 1, .seen = ""};
static struct wr_charge_limits hundred; /* limit of 100 per hour */

static int open_faulty(void **state)
{
    weir_limit limit = hourly(100);
    weir_stack stack;
    assert_int_equal(weir_stack_init(&stack, &limit, 1), 0);
    assert_int_equal(wr_charge_limits_make(&stack, &hundred), 0);
    return open_store(state);
}
#define faulty(function) cmocka_unit_test_setup_teardown(function, open_faulty, close_store)

/* Sends requests until the store counts as down for this reason. */
static void lose(struct bench *bench, const char *why)
{
    struct wr_redis_connection_view view;
    do {
        if (bench_charge(bench, &hundred, &ONE) == WEIR_E_CLOSED)
            usleep(1000);
        wr_redis_connection_view_get(bench->wire, &view);
    } while (!view.down || strstr(view.why, why) == NULL);
    assert_int_equal(view.asks, 0);
}

static void find_again(struct bench *bench)
{
    while (bench_charge(bench, &hundred, &ONE) != 0)
        usleep(1000);
}

static void bench_open_with(struct bench *bench, const char *user, const char *password)
{
    struct wr_redis_connection_options options = {
        .path = store.path, .timeout_ns = PATIENT, .user = user, .password = password};
    *bench = (struct bench){0};
    assert_int_equal(uv_loop_init(&bench->loop), 0);
    assert_int_equal(wr_redis_connection_new(&options, &bench->loop, &bench->wire), 0);
}

/* ---- error replies --------------------------------------------------------------------------- */

static void store_busy_with_a_script_counts_as_down_until_it_ends(void **state)
{
    (void)state;
    struct bench bench;

    bench_open(&bench, &store, PATIENT);
    find_again(&bench);
    store_say(&store, "CONFIG SET lua-time-limit 1");
    redisContext *other = redisConnectUnix(store.path);
    assert_true(other != NULL && other->err == 0);
    const char *argv[] = {"EVAL", "while true do end", "0"};
    int is_written = 0;
    assert_int_equal(redisAppendCommandArgv(other, 3, argv, NULL), REDIS_OK);
    while (is_written == 0)
        assert_int_equal(redisBufferWrite(other, &is_written), REDIS_OK);
    lose(&bench, "BUSY");
    redisReply *reply;
    redisContext *killer = redisConnectUnix(store.path);
    assert_true(killer != NULL && killer->err == 0);
    do { /* the script may not have started yet */
        reply = redisCommand(killer, "SCRIPT KILL");
        assert_non_null(reply);
        bool is_killed = reply->type == REDIS_REPLY_STATUS;
        freeReplyObject(reply);
        if (is_killed)
            break;
    } while (true);
    redisFree(killer);
    redisFree(other);
    find_again(&bench);
    bench_close(&bench);
}

static void store_that_loads_its_data_counts_as_down_until_it_is_ready(void **state)
{
    (void)state;
    static const char *const slowly[] = {"--key-load-delay", "20000", "--loading-process-events-interval-bytes", "1024",
                                         NULL};
    struct bench bench;

    bench_open(&bench, &store, PATIENT);
    find_again(&bench);
    store_say(&store, "EVAL for\ti=1,500\tdo\tredis.call('SET','x'..i,string.rep('x',1000))\tend 0");
    store_say(&store, "CONFIG SET rdbcompression no");
    store_say(&store, "SAVE");
    store_kill(&store);
    store_start_with(&store, slowly);
    lose(&bench, "LOADING");
    redisContext *other = redisConnectUnix(store.path);
    assert_true(other != NULL && other->err == 0);
    freeReplyObject(redisCommand(other, "CONFIG SET key-load-delay 0"));
    redisFree(other);
    find_again(&bench);
    bench_close(&bench);
}

static void wrong_store_passwords_are_reported_and_right_ones_work(void **state)
{
    (void)state;
    struct bench none, wrong, right, user;

    store_say(&store, "ACL SETUSER me on >mine ~weir:* ~k* +@all");
    store_say(&store, "CONFIG SET requirepass secret");
    bench_open(&none, &store, PATIENT);
    bench_open_with(&wrong, NULL, "guess");
    bench_open_with(&right, NULL, "secret");
    bench_open_with(&user, "me", "mine");
    lose(&none, "unauthenticated");
    lose(&none, "give the right password in the URL");
    lose(&wrong, "WRONGPASS");
    lose(&wrong, "give the right password in the URL");
    assert_int_equal(bench_charge(&right, &hundred, &ONE), 0);
    assert_int_equal(bench_charge(&user, &hundred, &ONE), 0);
    bench_close(&none);
    bench_close(&wrong);
    bench_close(&right);
    bench_close(&user);
}

static void flushed_scripts_under_load_lose_no_reply(void **state)
{
    (void)state;
    struct node node;
    struct wr_redis_client_view view;

    node_join(&node, 1, hourly(100000), 0, WR_FALLBACK_CLOSED);
    for (int i = 0; i < 20; i++) {
        store_say(&store, "SCRIPT FLUSH");
        assert_int_equal(ask_often(node.budget, 20), 20);
    }
    do {
        usleep(10000);
        wr_redis_client_view_get(node.redis_client, &view);
    } while (view.wire.reloads < 20);
    assert_false(view.wire.down);
    node_leave(&node);
}

/* ---- invalid replies ------------------------------------------------------------------------- */

static int listen_as(struct store *fake)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(fake->folder, sizeof fake->folder, "/tmp/weir-share-XXXXXX");
    assert_non_null(mkdtemp(fake->folder));
    snprintf(fake->path, sizeof fake->path, "%s/s", fake->folder);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", fake->path);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 16), 0);
    return listener;
}

/* A fake store that gives the same reply to everything, and then hangs up or stays silent. */
static void pretend(struct store *fake, const char *answer, bool hangs_up)
{
    char question[4096];
    int listener = listen_as(fake);

    fake->pid = fork();
    while (fake->pid == 0) {
        int peer = accept(listener, NULL, NULL);
        while (peer >= 0 && read(peer, question, sizeof question) > 0) {
            if (send(peer, answer, strlen(answer), MSG_NOSIGNAL) < 0 || hangs_up)
                break;
        }
        close(peer);
    }
    close(listener);
}

/* A fake store that starts to reply before it is asked, and never ends the reply. */
static void drone(struct store *fake, const char *begin)
{
    static char rest[65536];
    int listener = listen_as(fake);

    memset(rest, 'x', sizeof rest);
    fake->pid = fork();
    while (fake->pid == 0) {
        int peer = accept(listener, NULL, NULL);
        ssize_t bytes = send(peer, begin, strlen(begin), MSG_NOSIGNAL);
        while (bytes > 0)
            bytes = send(peer, rest, sizeof rest, MSG_NOSIGNAL);
        close(peer);
    }
    close(listener);
}

static void on_told(void *context, const struct redisReply *reply)
{
    struct wr_charge_reply told;
    int *result = context;
    *result = reply != NULL && wr_charge_read(reply, &told) == 0 ? 1 : -1;
}

/* An invalid reply is reported once, as a missing one, and the connection object stays usable. */
static void invalid_store_replies_count_as_missing(void **state)
{
    (void)state;
    static const struct {
        const char *answer, *why; /* reason of the outage; NULL: the store does not count as down */
        bool hangs_up;
    } cases[] = {
        {"-MOVED 866 127.0.0.1:7001\r\n", "MOVED", false},
        {"-ASK 866 127.0.0.1:7001\r\n", "ASK", false},
        {"-CLUSTERDOWN Hash slot not served\r\n", "CLUSTERDOWN", false},
        {"-TRYAGAIN Multiple keys request during rehashing of slot\r\n", "TRYAGAIN", false},
        {"-MASTERDOWN Link with MASTER is down\r\n", "MASTERDOWN", false},
        /* although the script was just sent */
        {"-NOSCRIPT No matching script\r\n", "NOSCRIPT", false},
        {"-ERR \x1b[2J\xe2\x80\xae of right to left\r\n", "ERR ?[2J??? of right to left", false},
        {"*9\r\n:1\r\n:0\r\n", "no reply in time", false},
        {"*9\r\n:1\r\n", "", true},
        {"HTTP/1.1 400 Bad Request\r\n\r\n", "", false},
        {"", "", true},
        {"*2\r\n:1\r\n:0\r\n", NULL, false},
        {"*9\r\n:1\r\n:-5\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n+b\r\n:0\r\n", NULL, false},
        {"*9\r\n:1\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n*-1\r\n:0\r\n", NULL, false},
        {"$-1\r\n", NULL, false},
        {"*2\r\n:1\r\n:0\r\n+and\r\n", "not requested", false},
        {"*2\r\n:1\r\n:0\r\n:1\r\n", "not requested", false},
        {"*2\r\n:1\r\n:0\r\n*0\r\n", "not requested", false},
        {"*2\r\n:1\r\n:0\r\n$-1\r\n", "not requested", false},
        {"*100000\r\n", "too large", false},
        {"*3\r\n*60000\r\n*60000\r\n", "", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct store fake;
        struct bench bench;
        struct wr_redis_connection_view view;
        int result = 0;
        pretend(&fake, cases[i].answer, cases[i].hangs_up);
        bench_open(&bench, &fake, strstr(cases[i].answer, ":0\r\n:0\r\n") == NULL ? 300 * MS : PATIENT);
        do {
            result = 0;
            while (wr_charge_send(bench.wire, &hundred, &ONE, on_told, &result) != 0)
                usleep(1000);
            while (result == 0)
                bench_step(&bench);
            if (result != -1)
                fail_msg("%s was accepted", cases[i].answer);
            wr_redis_connection_view_get(bench.wire, &view);
        } while (cases[i].why != NULL && (!view.down || strstr(view.why, cases[i].why) == NULL));
        assert_int_equal(view.asks, 0);
        bench_close(&bench);
        store_close(&fake);
    }
}

/* V6: at most 16 MB of a reply of 2 GB are read. */
static void endless_store_reply_is_cut_and_takes_no_memory(void **state)
{
    (void)state;
    static const char *const begins[] = {"$2147483000\r\n", "+", "*2\r\n:1\r\n$2147483000\r\n"};
    struct rusage before, after;

    assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++) {
        struct store fake;
        struct bench bench;
        drone(&fake, begins[i]);
        bench_open(&bench, &fake, PATIENT);
        lose(&bench, "too large");
        bench_close(&bench);
        store_close(&fake);
    }
    assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
    /* AddressSanitizer alone keeps a quarter of a GB */
    assert_true(after.ru_maxrss - before.ru_maxrss < 1024 * 1024);
}

/* The thread did not run while its reply arrived: a reply that is there counts, even after the
 * timeout. */
static void reply_that_has_arrived_counts_after_the_timeout(void **state)
{
    (void)state;
    struct bench bench;
    struct wr_redis_connection_view view;
    int result = 0;

    bench_open(&bench, &store, WEIR_SECOND);
    for (int i = 0; i < 30 && result != 1; i++) { /* repeats if the store was too slow */
        find_again(&bench);
        int64_t late = wr_monotonic_now() + WEIR_SECOND + 50 * MS;
        result = 0;
        if (wr_charge_send(bench.wire, &hundred, &ONE, on_told, &result) != 0)
            continue;
        uv_run(&bench.loop, UV_RUN_NOWAIT);
        if (result == 0) {
            struct pollfd wait = {.fd = bench.wire->redis->c.fd, .events = POLLIN};
            (void)poll(&wait, 1, 900);
        }
        while (wr_monotonic_now() < late)
            usleep(1000);
        while (result == 0)
            bench_step(&bench);
    }
    assert_int_equal(result, 1);
    wr_redis_connection_view_get(bench.wire, &view);
    assert_false(view.down);
    bench_close(&bench);
}

/* ---- fail-over ------------------------------------------------------------------------------- */

/* Reserves a port that no other program gets as long as *ret_fd is open. A server can still listen
 * at it: the address may be reused, and the reserving socket does not listen. */
static int hold_port(int *ret_fd)
{
    const int one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &bytes), 0);
    *ret_fd = fd;
    return ntohs(address.sin_port);
}

/* Starts a second store that replicates the first, which is restarted with a port for it. */
static void follow(struct store *replica)
{
    char port[16], primary[32];
    int held;
    snprintf(port, sizeof port, "%d", hold_port(&held));
    snprintf(primary, sizeof primary, "127.0.0.1 %s", port);
    /* Only at the reserved address: at another one the port may belong to another program. */
    const char *const with_port[] = {"--port", port, "--bind", "127.0.0.1", NULL};
    const char *const following[] = {"--replicaof", primary, "--repl-diskless-sync-delay", "0", NULL};

    store_kill(&store);
    store_start_with(&store, with_port);
    store_wait(&store);
    snprintf(replica->folder, sizeof replica->folder, "/tmp/weir-share-XXXXXX");
    assert_non_null(mkdtemp(replica->folder));
    snprintf(replica->path, sizeof replica->path, "%s/s", replica->folder);
    store_start_with(replica, following);
    store_wait(replica);
    close(held);
}

/* The replica takes the place of the first store, as behind a name that follows the primary. */
static void fail_over(struct store *replica)
{
    char link[128];
    snprintf(link, sizeof link, "%s.new", store.path);
    store_kill(&store);
    assert_int_equal(symlink(replica->path, link), 0);
    assert_int_equal(rename(link, store.path), 0);
}

static uint64_t connects(const struct node *node)
{
    struct wr_redis_client_view view;
    wr_redis_client_view_get(node->redis_client, &view);
    return view.wire.connects;
}

/* The replica may have missed the last charges: the node that received the replies reports them. */
static void replica_that_takes_over_continues_from_the_state_of_the_primary(void **state)
{
    (void)state;
    for (int lost = 0; lost < 2; lost++) {
        struct store replica;
        struct node one, two;
        follow(&replica);
        node_join(&one, 2, hourly(100), 0, WR_FALLBACK_CLOSED);
        node_join(&two, 2, hourly(100), 0, WR_FALLBACK_CLOSED);
        assert_int_equal(ask_often(one.budget, 20), 20);
        assert_int_equal(ask_often(two.budget, 20), 20);
        while (store_say(&store, "WAIT 1 1000") != 1)
            ;
        if (lost)
            store_say(&replica, "REPLICAOF NO ONE");
        assert_int_equal(ask_often(one.budget, 30), 30);
        while (!lost && store_say(&store, "WAIT 1 1000") != 1)
            ;
        uint64_t before[2] = {connects(&one), connects(&two)};
        fail_over(&replica);
        store_say(&replica, "REPLICAOF NO ONE");
        while (connects(&one) == before[0] || connects(&two) == before[1])
            usleep(1000);
        wait_until(one.redis_client, false);
        wait_until(two.redis_client, false);
        uint32_t granted = ask_often(one.budget, 1); /* the node has reported by then */
        assert_int_equal(granted + ask_often(two.budget, 20) + ask_often(one.budget, 20), 30);
        node_leave(&one);
        node_leave(&two);
        store_close(&replica);
        unlink(store.path);
        store_start(&store);
    }
}

WEIR_TESTS(faulty(store_busy_with_a_script_counts_as_down_until_it_ends),
           faulty(store_that_loads_its_data_counts_as_down_until_it_is_ready),
           faulty(wrong_store_passwords_are_reported_and_right_ones_work),
           faulty(flushed_scripts_under_load_lose_no_reply), faulty(invalid_store_replies_count_as_missing),
           faulty(endless_store_reply_is_cut_and_takes_no_memory),
           faulty(reply_that_has_arrived_counts_after_the_timeout),
           faulty(replica_that_takes_over_continues_from_the_state_of_the_primary))
