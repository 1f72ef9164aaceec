/* SPDX-License-Identifier: MIT */
/* connection.c - the connection: connects when needed, and limits every wait. */
#include "base/alloc.h"
#include "crawl/store/postgres/pg.h"
#include "limiter/clock/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#define SERVER_MIN 13
#define CLOCK_SET_MS 500

/* ---- errors ---------------------------------------------------------------------------------- */

/* Sets `why` to `what` and the first line of `detail`. */
static void set_pg_reason(struct wr_pg *pg, const char *what, const char *detail)
{
    struct wr_buf buf;
    size_t bytes = strcspn(detail, "\n");

    wr_buf_init_fixed(&buf, pg->backend.why, sizeof pg->backend.why);
    wr_buf_append_string(&buf, what);
    wr_buf_append(&buf, detail, bytes);
}

void wr_pg_disconnect(struct wr_pg *pg)
{
    PQfinish(pg->conn);
    pg->conn = NULL;
    pg->is_open = false;
}

static int lose_connection(struct wr_pg *pg, const char *what)
{
    set_pg_reason(pg, what, pg->conn != NULL ? PQerrorMessage(pg->conn) : "");
    wr_pg_disconnect(pg);
    pg->turns++;
    return WEIR_E_TIMEOUT;
}

static int lose_silent_connection(struct wr_pg *pg, const char *what)
{
    (void)lose_connection(pg, what);
    set_pg_reason(pg, what, "");
    return WEIR_E_TIMEOUT;
}

static bool is_state(const char *state, const char *prefix)
{
    return strncmp(state, prefix, strlen(prefix)) == 0;
}

/* Appends to `why` what the user can do, if that is known. */
static void append_pg_advice(struct wr_pg *pg, const char *state)
{
    static const struct {
        const char *state, *words;
    } cures[] = {
        {"42501", "; let the role own the database, or see \"Rights\" in weir-state(5)"},
        {"22003", "; a number in the tables is too large: restore it"},
        {"42", "; the tables are not as weir made them: restore them"},
        {"3F", "; the schema is gone: restore it"},
    };
    char why[WR_BACKEND_WHY_BYTES];

    memcpy(why, pg->backend.why, sizeof why);
    for (size_t i = 0; i < sizeof cures / sizeof cures[0]; i++)
        if (is_state(state, cures[i].state)) {
            set_pg_reason(pg, why, cures[i].words);
            return;
        }
}

/* Converts a failed result to a WEIR_E_ code by its SQLSTATE. Sets is_conflict if the transaction
 * may be repeated at once. */
static int classify_failure(struct wr_pg *pg, const PGresult *result)
{
    const char *field = PQresultErrorField(result, PG_DIAG_SQLSTATE), *state = field != NULL ? field : "";
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

    if (PQstatus(pg->conn) == CONNECTION_BAD || state[0] == '\0')
        return lose_connection(pg, "the connection to the database was lost: ");
    set_pg_reason(pg, "", text != NULL ? text : "no reason was given");
    /* rolled back because of another transaction, or no lock */
    if (is_state(state, "40") || is_state(state, "55P03")) {
        pg->is_conflict = true;
        return WEIR_E_TIMEOUT;
    }
    /* Shutting down, no room, too many connections, a standby, idle for too long. The next
     * connection may reach another server. */
    if (is_state(state, "08") || is_state(state, "53") || is_state(state, "57") || is_state(state, "25006") ||
        is_state(state, "25P03")) {
        wr_pg_disconnect(pg);
        pg->turns++;
        return WEIR_E_TIMEOUT;
    }
    append_pg_advice(pg, state);
    return WEIR_E_SYSTEM;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Waits until the socket is readable, or writable if `events` has POLLOUT. Returns false after
 * WR_PG_SILENCE_TIMEOUT_NS or at `end`. */
static bool wait_for_socket(struct wr_pg *pg, short events, int64_t end)
{
    struct pollfd fd = {.fd = PQsocket(pg->conn), .events = events};
    int64_t until = wr_clock_now(pg->clock) + WR_PG_SILENCE_TIMEOUT_NS;

    until = until < end ? until : end;
    for (;;) {
        int64_t left_ns = until - wr_clock_now(pg->clock);
        if (fd.fd < 0 || left_ns <= 0)
            return false;
        int ready = poll(&fd, 1, (int)(left_ns / WEIR_MILLISECOND) + 1);
        if (ready > 0)
            return true;
        if (ready < 0 && errno != EINTR)
            return false;
    }
}

/* Drops notices, which libpq would print. */
static void ignore_notice(void *context, const PGresult *notice)
{
    (void)context;
    (void)notice;
}

static int open_connection(struct wr_pg *pg)
{
    int64_t patience_ns;
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;

    pg->conn = wr_pg_connect_start(pg->url, pg->turns, &patience_ns);
    if (pg->conn == NULL) {
        set_pg_reason(pg, "out of memory", "");
        return WEIR_E_NOMEM;
    }
    int64_t end = wr_clock_now(pg->clock) + patience_ns;
    (void)PQsetNoticeReceiver(pg->conn, ignore_notice, NULL);
    while (PQstatus(pg->conn) != CONNECTION_BAD) {
        if (next == PGRES_POLLING_OK)
            return PQsetnonblocking(pg->conn, 1) == 0 ? 0 : lose_connection(pg, "");
        if (next == PGRES_POLLING_FAILED)
            break;
        if (!wait_for_socket(pg, next == PGRES_POLLING_READING ? POLLIN : POLLOUT, end))
            return lose_silent_connection(pg, "the database does not respond");
        next = PQconnectPoll(pg->conn);
    }
    return lose_connection(pg, "");
}

/* Waits for the next result. Returns 0, or WEIR_E_TIMEOUT after closing the connection. */
static int wait_for_pg_result(struct wr_pg *pg, int64_t end)
{
    int unsent = PQflush(pg->conn);

    while (unsent > 0 || PQisBusy(pg->conn)) {
        if (unsent < 0)
            return lose_connection(pg, "the connection to the database was lost: ");
        if (!wait_for_socket(pg, unsent > 0 ? POLLIN | POLLOUT : POLLIN, end))
            return lose_silent_connection(pg, "the database no longer responds");
        if (PQconsumeInput(pg->conn) == 0)
            return lose_connection(pg, "the connection to the database was lost: ");
        unsent = PQflush(pg->conn);
    }
    return 0;
}

/* ---- statements ------------------------------------------------------------------------------ */

static bool is_good(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_PIPELINE_SYNC;
}

/* Runs statements on the open connection. Sets *ret_number to the number in the last result. */
static int run_statements(struct wr_pg *pg, const char *sql, int64_t *ret_number)
{
    int error = 0;
    int64_t end = wr_clock_now(pg->clock) + WR_PG_CALL_TIMEOUT_NS;
    PGresult *result;

    pg->is_conflict = false;
    pg->backend.round_trips++;
    if (PQsendQuery(pg->conn, sql) == 0)
        return lose_connection(pg, "the connection to the database was lost: ");
    for (;;) {
        int lost = wait_for_pg_result(pg, end);
        if (lost != 0)
            return lost;
        result = PQgetResult(pg->conn);
        if (result == NULL)
            return error;
        if (error == 0 && !is_good(result))
            error = classify_failure(pg, result);
        else if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) > 0)
            *ret_number = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
        PQclear(result);
        if (pg->conn == NULL)
            return error;
    }
}

/* Returns our wall time minus the monotonic time, which cannot be set; in ms. */
static int64_t wall_base_ms(const struct wr_pg *pg)
{
    return (wr_clock_now(pg->wall) - wr_clock_now(pg->clock)) / WEIR_MILLISECOND;
}

/* Returns true if our wall clock was set or the machine was suspended. */
static bool is_clock_set(const struct wr_pg *pg)
{
    int64_t by_ms = wall_base_ms(pg) - pg->wall_base_ms;

    return by_ms < -CLOCK_SET_MS || by_ms > CLOCK_SET_MS;
}

/* Measures by how much the database's clock is ahead, to the second so that two connections agree.
 * Instants that other processes wait for are stored by that clock, because ours may be minutes off.
 * The answer is taken to be half a round trip old. */
static int compare_clocks(struct wr_pg *pg)
{
    int64_t theirs_ms = 0, asked_at = wr_clock_now(pg->clock);
    int error = run_statements(pg, "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8", &theirs_ms);

    if (error != 0)
        return error;
    int64_t told_at = wr_clock_now(pg->wall) - (wr_clock_now(pg->clock) - asked_at) / 2;
    int64_t ahead_ms = theirs_ms - told_at / WEIR_MILLISECOND;
    pg->skew_ms = (ahead_ms + (ahead_ms < 0 ? -500 : 500)) / 1000 * 1000;
    pg->wall_base_ms = wall_base_ms(pg);
    return 0;
}

static int check_version(struct wr_pg *pg)
{
    char detail[64];
    struct wr_buf buf;
    int version = PQserverVersion(pg->conn) / 10000;

    if (version >= SERVER_MIN)
        return 0;
    wr_buf_init_fixed(&buf, detail, sizeof detail);
    wr_buf_append_u64(&buf, (uint64_t)version);
    wr_buf_append_string(&buf, "; weir needs 13 or later");
    set_pg_reason(pg, "it is PostgreSQL ", detail);
    wr_pg_disconnect(pg);
    return WEIR_E_SYSTEM;
}

int wr_pg_connect(struct wr_pg *pg)
{
    int error = 0;

    if (pg->conn == NULL || PQstatus(pg->conn) != CONNECTION_OK) {
        wr_pg_disconnect(pg);
        error = open_connection(pg);
        if (error == 0)
            error = check_version(pg);
    } else if (!is_clock_set(pg) || PQpipelineStatus(pg->conn) != PQ_PIPELINE_OFF) {
        return 0;
    }
    if (error == 0)
        error = compare_clocks(pg);
    if (error != 0)
        wr_pg_disconnect(pg); /* without a comparison its times would be wrong */
    return error;
}

int wr_pg_execute(struct wr_pg *pg, const char *sql)
{
    int64_t number;
    int error = wr_pg_connect(pg);

    return error != 0 ? error : run_statements(pg, sql, &number);
}

int wr_pg_add_to_pipeline(struct wr_pg *pg, const char *sql, struct wr_pg_params *params)
{
    static const Oid types[] = {['n'] = 1016, ['f'] = 1022, ['t'] = 1009, ['N'] = 20, ['T'] = 25, ['B'] = 17};
    Oid oids[WR_PG_PARAMS];
    const char *values[WR_PG_PARAMS];
    int lengths[WR_PG_PARAMS], formats[WR_PG_PARAMS], count = params != NULL ? params->count : 0;

    for (int i = 0; i < count; i++) {
        const struct wr_buf *buf = &params->list[i].buf;
        if (buf->error != 0) {
            set_pg_reason(pg, "out of memory", "");
            return WEIR_E_NOMEM;
        }
        oids[i] = types[(unsigned char)params->list[i].letter];
        values[i] = buf->bytes != NULL ? buf->bytes : "";
        lengths[i] = (int)buf->length;
        formats[i] = 1;
    }
    int error = wr_pg_connect(pg);
    if (error != 0)
        return error;
    if (PQpipelineStatus(pg->conn) == PQ_PIPELINE_OFF && PQenterPipelineMode(pg->conn) == 0)
        return lose_connection(pg, "the connection to the database was lost: ");
    if (PQsendQueryParams(pg->conn, sql, count, oids, values, lengths, formats, 1) == 0)
        return lose_connection(pg, "the connection to the database was lost: ");
    return 0;
}

int wr_pg_run_pipeline(struct wr_pg *pg, wr_pg_on_result *take, void *context)
{
    int error = 0;
    int64_t end = wr_clock_now(pg->clock) + WR_PG_CALL_TIMEOUT_NS;

    pg->is_conflict = false;
    if (pg->conn == NULL || PQpipelineSync(pg->conn) == 0)
        return lose_connection(pg, "the connection to the database was lost: ");
    pg->backend.round_trips++;
    for (size_t number = 0;;) {
        int lost = wait_for_pg_result(pg, end);
        if (lost != 0)
            return lost;
        PGresult *result = PQgetResult(pg->conn);
        if (result == NULL && PQstatus(pg->conn) == CONNECTION_BAD) /* no more results would come */
            return lose_connection(pg, "the connection to the database was lost: ");
        if (result == NULL) { /* end of the results of a statement */
            number++;
            continue;
        }
        bool is_end = PQresultStatus(result) == PGRES_PIPELINE_SYNC;
        if (error == 0 && !is_good(result))
            error = classify_failure(pg, result);
        else if (error == 0 && !is_end)
            take(context, number, &result);
        PQclear(result);
        if (pg->conn == NULL)
            return error;
        if (is_end)
            return PQexitPipelineMode(pg->conn) != 0 ? error
                                                     : lose_connection(pg, "the connection to the database was lost: ");
    }
}

int64_t wr_pg_integer(const PGresult *result, int row, int at)
{
    const unsigned char *bytes = (const unsigned char *)PQgetvalue(result, row, at);
    int count = PQgetlength(result, row, at);

    if (count < 1 || count > 8)
        return 0;
    uint64_t number = (bytes[0] & 0x80) != 0 && count > 1 ? UINT64_MAX : 0;
    for (int i = 0; i < count; i++)
        number = number << 8 | bytes[i];
    return (int64_t)number;
}

static void keep_single_result(void *context, size_t number, PGresult **result)
{
    (void)number;
    *(PGresult **)context = *result;
    *result = NULL;
}

int wr_pg_query(struct wr_pg *pg, const char *sql, struct wr_pg_params *params, PGresult **ret_result)
{
    PGresult *result = NULL;
    int error = wr_pg_add_to_pipeline(pg, sql, params);

    if (error == 0)
        error = wr_pg_run_pipeline(pg, keep_single_result, &result);
    if (error != 0)
        PQclear(result);
    else
        *ret_result = result;
    return error;
}
