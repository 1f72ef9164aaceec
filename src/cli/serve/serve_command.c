/* SPDX-License-Identifier: MIT */
/* serve_command.c - weir serve: starts the daemon that decides which requests may pass. */
#include "cli/serve/serve_command.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/ascii.h"
#include "base/error.h"
#include "base/parse.h"
#include "cli/kit/check_option.h"
#include "cli/kit/console.h"
#include "cli/kit/sources.h"
#include "cli/serve/notify.h"
#include "cli/serve/serve_dashboard.h"
#include "serve/daemon/serve.h"
#include "watch/dashboard/token.h"

#define SECOND UINT64_C(1000000000)
#define DAY (86400 * SECOND)
#define PANEL_TRIES 50 /* attempts to bind the address of the dashboard, PANEL_PAUSE_US apart */
#define PANEL_PAUSE_US 100000
#define LISTEN_DEFAULT "127.0.0.1:8480"

enum fields_choice {
    FIELDS_RATELIMIT,
    FIELDS_X,
    FIELDS_ALL,
    FIELDS_RETRY,
    FIELDS_NONE
};

static const char *const fields_names[] = {"ratelimit", "x", "all", "retry-after", "none", NULL};
static const char *const status_names[] = {"403", "429", NULL};

struct serve_settings {
    struct wr_sources sources;
    struct wr_option_list listens, listen_names;
    const char *socket_mode, *socket_group;
    int denied_status, fields;
    const char *token_file, *secret_file, *store_file, *state, *handover, *dashboard;
    int64_t save_every, head_timeout, body_timeout, idle_timeout, send_timeout, acquire_timeout, grace;
    uint64_t loops, connections, waiting;
};

/* Checks that a name can appear in a Host field without a port. Any other text would never
 * match. */
static int check_listen_name(const char *name)
{
    bool is_plain = name[0] != '\0';
    for (const char *c = name; *c != '\0'; c++)
        is_plain = is_plain && (wr_ascii_is_alnum(*c) || strchr("-._", *c) != NULL);
    return is_plain ? 0
                    : wr_invalid_text("name", name, strlen(name), "not the name of a host", WR_NOWHERE,
                                      "write it as weir.example.org, without scheme, port and path");
}

static const struct wr_option options[] = {
    WR_CONFIG_OPTION(struct serve_settings, sources, "Rules"),
    {"state", WR_STRING(struct serve_settings, state), .value = "FILE", .check = wr_check_file,
     .help = "Keep the state of all limits in FILE over restarts", .is_basic = true},
    {"save-every", WR_DURATION(struct serve_settings, save_every), .value = "D", .min = SECOND, .max = DAY,
     .help = "Write --state every D, and at the end"},
    {"secret-file", WR_STRING(struct serve_settings, secret_file), .value = "FILE",
     .help = "Read the secret of token: keys from FILE; create it if missing"},
    {"store-file", WR_STRING(struct serve_settings, store_file), .value = "FILE",
     .help = "Read the URL of the Redis store from FILE"},
    {"listen", WR_LIST(struct serve_settings, listens), .value = "ADDRESS", .check = wr_http_address_check,
     .help = "Listen at 127.0.0.1:8480, [::1]:8480 or unix:/run/weir.sock (repeatable)", .heading = "Listening",
     .is_basic = true},
    {"socket-mode", WR_STRING(struct serve_settings, socket_mode), .value = "MODE",
     .help = "Mode of Unix sockets: 0600, 0660 or 0666"},
    {"socket-group", WR_STRING(struct serve_settings, socket_group), .value = "GROUP",
     .help = "Group that may connect to Unix sockets, with --socket-mode 0660", .is_basic = true},
    {"listen-name", WR_LIST(struct serve_settings, listen_names), .value = "NAME", .check = check_listen_name,
     .help = "Accept this Host, besides addresses and localhost (repeatable)"},
    {"dashboard", WR_STRING(struct serve_settings, dashboard), .value = "ADDRESS", .check = wr_http_address_check,
     .help = "Serve the dashboard at ADDRESS, such as 127.0.0.1:8481", .is_basic = true},
    {"token-file", WR_STRING(struct serve_settings, token_file), .value = "FILE",
     .help = "File with the token for admin calls; created if missing", .is_basic = true},
    {"handover", WR_STRING(struct serve_settings, handover), .value = "PATH",
     .help = "Let a new process with the same PATH take over the listening sockets", .is_basic = true},
    {"denied-status", WR_CHOICE(struct serve_settings, denied_status), .choices = status_names,
     .help = "Status of /check for a refusal: 403 for nginx, 429 for others", .heading = "Answers", .is_basic = true},
    {"fields", WR_CHOICE(struct serve_settings, fields), .choices = fields_names,
     .help = "Rate-limit fields in responses of /check", .is_basic = true},
    {"loops", WR_COUNT(struct serve_settings, loops), .value = "N", .min = 1, .max = WR_HTTP_LOOPS_MAX,
     .help = "Number of serving threads", .heading = "Limits"},
    {"connections", WR_COUNT(struct serve_settings, connections), .value = "N", .min = 1, .max = 1000000,
     .help = "Most connections per listening address"},
    {"waiting", WR_COUNT(struct serve_settings, waiting), .value = "N", .min = 1, .max = 1000000,
     .help = "Most calls of /v1/acquire that wait at a time"},
    {"acquire-timeout", WR_DURATION(struct serve_settings, acquire_timeout), .value = "D", .min = SECOND / 1000,
     .max = DAY, .help = "Longest time that a call of /v1/acquire may wait"},
    {"head-timeout", WR_DURATION(struct serve_settings, head_timeout), .value = "D", .min = SECOND / 10, .max = DAY,
     .help = "Time limit for the head of a request"},
    {"body-timeout", WR_DURATION(struct serve_settings, body_timeout), .value = "D", .min = SECOND / 10, .max = DAY,
     .help = "Time limit for the body of a request"},
    {"idle-timeout", WR_DURATION(struct serve_settings, idle_timeout), .value = "D", .min = SECOND / 10, .max = DAY,
     .help = "Time limit between two requests of a connection"},
    {"send-timeout", WR_DURATION(struct serve_settings, send_timeout), .value = "D", .min = SECOND / 10, .max = DAY,
     .help = "Time limit for sending a response"},
    {"grace", WR_DURATION(struct serve_settings, grace), .value = "D", .min = 0, .max = DAY / 24,
     .help = "Time limit for requests that are open at SIGTERM", .is_basic = true},
};

const struct wr_usage wr_serve_usage = {
    .who = "weir serve",
    .section = "serve",
    .about = "Decides by the rules of a file which requests may pass: for nginx (auth_request), Caddy,\n"
             "Traefik and HAProxy at /check, and for programs at /v1/.\n"
             "\n"
             "SIGHUP reads the rules again; if they are invalid the old ones stay in force. SIGTERM ends\n"
             "the daemon after the open requests, a second SIGTERM at once.\n",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

/* ---- daemon options ---- */

struct serve_daemon {
    struct wr_http_listen_options listens[WR_HTTP_LISTENS_MAX];
    const char *names[WR_OPTION_LIST_MAX + 1];
    char token[WR_DASHBOARD_TOKEN_ROOM], secret[WR_DASHBOARD_TOKEN_ROOM], store[WR_DASHBOARD_TOKEN_ROOM];
    struct wr_serve_options options;
    const char *dashboard;
};

static bool parse_mode(const char *text, mode_t *ret_mode)
{
    static const char *const words[] = {"0600", "0660", "0666"};
    static const mode_t modes[] = {0600, 0660, 0666};
    for (size_t i = 0; text != NULL && i < sizeof words / sizeof words[0]; i++)
        if (strcmp(text, words[i]) == 0) {
            *ret_mode = modes[i];
            return true;
        }
    if (text == NULL)
        return true;
    wr_complain("--socket-mode cannot be \"%s\": it must be 0600, 0660 or 0666", text);
    return false;
}

static bool make_listen(const struct serve_settings *settings, struct wr_http_listen_options *listen)
{
    if (!parse_mode(settings->socket_mode, &listen->mode))
        return false;
    if (settings->socket_group == NULL)
        return true;
    const struct group *group = getgrnam(settings->socket_group);
    if (group == NULL) {
        wr_complain("--socket-group: there is no group \"%s\"; name one that \"getent group\" lists",
                    settings->socket_group);
        return false;
    }
    if (!listen->has_fd && (listen->mode & 0060) == 0) {
        wr_complain("--socket-group: the group cannot connect to a socket of mode 0600; add --socket-mode 0660");
        return false;
    }
    listen->group = group->gr_gid;
    listen->has_group = true;
    return true;
}

/* Fills in the listening sockets. Sockets from the service manager replace the addresses of
 * --listen. */
static bool make_listens(const struct serve_settings *settings, struct serve_daemon *daemon)
{
    struct wr_http_server_options *http = &daemon->options.http;
    int given = wr_notify_sockets();
    http->listens = daemon->listens;
    http->listen_count = given > 0 ? (size_t)given : settings->listens.count > 0 ? settings->listens.count : 1;
    if (http->listen_count > WR_HTTP_LISTENS_MAX) {
        wr_complain("--listen: more than %d addresses", WR_HTTP_LISTENS_MAX);
        return false;
    }
    for (size_t i = 0; i < http->listen_count; i++) {
        struct wr_http_listen_options *listen = &daemon->listens[i];
        listen->has_fd = given > 0;
        listen->fd = WR_NOTIFY_FIRST + (int)i;
        listen->address = i < settings->listens.count ? settings->listens.items[i] : LISTEN_DEFAULT;
        if (!make_listen(settings, listen))
            return false;
    }
    return true;
}

static unsigned header_fields_of(int choice)
{
    static const unsigned sets[] = {
        [FIELDS_RATELIMIT] = WEIR_FIELD_RETRY_AFTER | WEIR_FIELDS_RATELIMIT,
        [FIELDS_X] = WEIR_FIELD_RETRY_AFTER | WEIR_FIELDS_X,
        [FIELDS_ALL] = WEIR_FIELDS_ALL,
        [FIELDS_RETRY] = WEIR_FIELD_RETRY_AFTER,
        [FIELDS_NONE] = 0,
    };
    return sets[choice];
}

static bool print_daemon_line(void *context, const char *line)
{
    (void)context;
    return wr_complain_nowait("%s", line);
}

/* Ends this process like a SIGTERM: another daemon has taken over the service. */
static void end_after_handover(void *context)
{
    (void)context;
    (void)kill(getpid(), SIGTERM);
}

/* Reads the secrets that are stored in files of their own. */
static bool read_secrets(const struct serve_settings *settings, struct serve_daemon *daemon)
{
    int error = 0;
    const char *option = "--token-file";
    if (settings->token_file != NULL)
        error = wr_dashboard_token_read(settings->token_file, daemon->token);
    if (error == 0 && settings->secret_file != NULL) {
        option = "--secret-file";
        error = wr_dashboard_token_read(settings->secret_file, daemon->secret);
    }
    if (error == 0 && settings->store_file != NULL) {
        option = "--store-file";
        error = wr_dashboard_secret_read(settings->store_file, 1, daemon->store);
    }
    if (error != 0)
        wr_complain("%s: %s", option, wr_error_message(error));
    daemon->options.token = settings->token_file != NULL ? daemon->token : NULL;
    daemon->options.secret = settings->secret_file != NULL ? daemon->secret : NULL;
    daemon->options.store = settings->store_file != NULL ? daemon->store : NULL;
    return error == 0;
}

static bool make_dashboard_options(const struct serve_settings *settings, struct serve_daemon *daemon)
{
    daemon->dashboard = settings->dashboard;
    return read_secrets(settings, daemon);
}

static bool make_daemon_options(const struct serve_settings *settings, struct serve_daemon *daemon)
{
    struct wr_serve_options *serve = &daemon->options;
    serve->config = settings->sources.file;
    serve->denied_status = settings->denied_status == 0 ? 403 : 429;
    serve->fields = header_fields_of(settings->fields);
    serve->state = settings->state;
    serve->handover = settings->handover;
    serve->handed = end_after_handover;
    serve->save_ns = settings->save_every;
    serve->waiting_max = (uint32_t)settings->waiting;
    serve->timeout_max_ns = settings->acquire_timeout;
    serve->tell = print_daemon_line;
    serve->http.loops = (uint32_t)settings->loops;
    serve->http.connections_max = (uint32_t)settings->connections;
    serve->http.head_ns = settings->head_timeout;
    serve->http.body_ns = settings->body_timeout;
    serve->http.idle_ns = settings->idle_timeout;
    serve->http.send_ns = settings->send_timeout;
    memcpy(daemon->names, settings->listen_names.items, settings->listen_names.count * sizeof daemon->names[0]);
    serve->http.names = daemon->names;
    return make_dashboard_options(settings, daemon);
}

/* Checks the state file before anything is opened. Returns false after printing an error. */
static bool is_state_sound(const char *path)
{
    char why[WR_CONFIG_WHY_BYTES];
    int error = path != NULL ? wr_rules_check_state_path(path, why, sizeof why) : 0;
    if (error != 0)
        wr_complain("--state: %s", why);
    return error == 0;
}

/* Locks the state file; returns false if another daemon holds it. Two daemons with one file would
 * overwrite each other's state, and a restart would reset the limits of all callers. With
 * --handover there is no lock, because the next daemon starts while the old one still runs. The
 * lock ends with the process. */
static bool lock_state(const struct serve_settings *settings)
{
    char path[PATH_MAX];
    if (settings->state == NULL || settings->handover != NULL)
        return true;
    if (snprintf(path, sizeof path, "%s.lock", settings->state) >= (int)sizeof path)
        return true; /* is_state_sound has refused a name that is too long */
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
        return true; /* a folder that cannot be written is reported when the state is saved */
    wr_complain("--state: another weir serve uses %s; stop it, or name another file", settings->state);
    return false;
}

/* Raises the limit of open files to its maximum, because each connection needs a descriptor. */
static void raise_file_limit(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == files.rlim_max)
        return;
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
}

/* ---- running ---- */

static void block_daemon_signals(sigset_t *ret_set)
{
    (void)sigemptyset(ret_set);
    (void)sigaddset(ret_set, SIGINT);
    (void)sigaddset(ret_set, SIGTERM);
    (void)sigaddset(ret_set, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, ret_set, NULL);
}

/* Reloads the rules on each SIGHUP. Returns on SIGINT or SIGTERM. */
static void reload_until_signal(struct wr_serve *serve, const sigset_t *set)
{
    char why[WR_CONFIG_WHY_BYTES];
    int number = 0;
    while (sigwait(set, &number) == 0 && number == SIGHUP) {
        wr_notify("RELOADING=1");
        (void)wr_serve_reload(serve, why, sizeof why); /* wr_serve_reload reports its own errors */
        wr_notify("READY=1");
    }
}

/* From now on ignores SIGHUP, because it is too late for new rules. A second SIGINT or SIGTERM ends
 * the process at once. */
static void restore_signals(const sigset_t *set)
{
    (void)signal(SIGHUP, SIG_IGN);
    (void)signal(SIGINT, SIG_DFL);
    (void)signal(SIGTERM, SIG_DFL);
    (void)pthread_sigmask(SIG_UNBLOCK, set, NULL);
}

static void print_addresses(struct wr_serve *serve, const struct serve_daemon *daemon)
{
    for (size_t i = 0; i < daemon->options.http.listen_count; i++) {
        const struct wr_http_listen_options *listen = &daemon->listens[i];
        uint16_t port = wr_http_server_port(wr_serve_http(serve), i);
        if (listen->has_fd)
            (void)wr_complain_nowait("listens at descriptor %d", listen->fd);
        else if (port != 0)
            (void)wr_complain_nowait("listens at %s (port %u)", listen->address, (unsigned)port);
        else
            (void)wr_complain_nowait("listens at %s", listen->address);
    }
}

/* Reports readiness to the service manager. After a takeover also reports the process id, because
 * this process is now the service. */
static void notify_ready(struct wr_serve *serve)
{
    char text[64] = "READY=1";
    if (wr_serve_has_taken_over(serve))
        (void)snprintf(text, sizeof text, "MAINPID=%ld\nREADY=1", (long)getpid());
    wr_notify(text);
}

/* Opens the dashboard; the daemon runs without it if that fails. After a takeover retries until the
 * old daemon has released the address. */
static void open_daemon_dashboard(struct wr_serve *serve, const struct serve_daemon *daemon,
                                  struct wr_serve_dashboard **ret_panel)
{
    const struct wr_serve_options *told = &daemon->options;
    const struct wr_serve_dashboard_options how = {daemon->dashboard, told->config, told->token, told->http.names};
    int error = wr_serve_dashboard_open(serve, &how, ret_panel);
    for (int i = 0; i < PANEL_TRIES && error == WEIR_E_SYSTEM && wr_serve_has_taken_over(serve); i++) {
        (void)usleep(PANEL_PAUSE_US);
        error = wr_serve_dashboard_open(serve, &how, ret_panel);
    }
    if (error != 0)
        (void)wr_complain_nowait("continues without --dashboard: %s", wr_error_message(error));
    else if (*ret_panel != NULL)
        (void)wr_complain_nowait("dashboard at %s (port %u)", daemon->dashboard,
                                 (unsigned)wr_serve_dashboard_port(*ret_panel));
}

static int run_daemon(struct serve_daemon *daemon, int64_t grace_ns)
{
    struct wr_serve_dashboard *panel = NULL;
    char why[WR_CONFIG_WHY_BYTES] = "";
    struct wr_serve *serve = NULL;
    sigset_t set;
    block_daemon_signals(&set);
    int error = wr_serve_new(&daemon->options, &serve, why, sizeof why);
    if (error != 0) {
        wr_complain("%s", why[0] != '\0' ? why : weir_error_text(error));
        return error == WEIR_E_INVAL ? WR_EXIT_USAGE : WR_EXIT_FAILED;
    }
    error = wr_serve_start(serve);
    if (error != 0) {
        wr_complain("%s", wr_error_message(error));
        wr_serve_free(serve);
        return WR_EXIT_FAILED;
    }
    print_addresses(serve, daemon);
    notify_ready(serve);
    open_daemon_dashboard(serve, daemon, &panel);
    reload_until_signal(serve, &set);
    wr_notify("STOPPING=1");
    restore_signals(&set);
    wr_serve_dashboard_close(panel);
    error = wr_serve_stop(serve, grace_ns);
    wr_serve_free(serve);
    return error == 0 ? WR_EXIT_OK : WR_EXIT_FAILED;
}

static void serve_settings_init(struct serve_settings *ret_settings)
{
    struct wr_serve_options serve;
    wr_serve_options_init(&serve);
    *ret_settings = (struct serve_settings){
        .save_every = serve.save_ns,
        .head_timeout = serve.http.head_ns,
        .body_timeout = serve.http.body_ns,
        .idle_timeout = serve.http.idle_ns,
        .send_timeout = serve.http.send_ns,
        .acquire_timeout = serve.timeout_max_ns,
        .grace = 10 * WEIR_SECOND,
        .loops = serve.http.loops,
        .connections = serve.http.connections_max,
        .waiting = serve.waiting_max,
    };
}

int wr_serve_run(int argc, char **argv)
{
    static struct serve_settings settings;
    static struct serve_daemon daemon;
    int status;
    serve_settings_init(&settings);
    if (!wr_options_parse(&wr_serve_usage, &argc, argv, &settings, &status))
        return status;
    if (settings.sources.file == NULL) {
        wr_complain("no rules are given; name their file: --config weir.yaml");
        return WR_EXIT_USAGE;
    }
    wr_serve_options_init(&daemon.options);
    if (!make_listens(&settings, &daemon) || !make_daemon_options(&settings, &daemon))
        return WR_EXIT_USAGE;
    if (!is_state_sound(settings.state) || !lock_state(&settings))
        return WR_EXIT_FAILED;
    raise_file_limit();
    return run_daemon(&daemon, settings.grace);
}
