/* SPDX-License-Identifier: MIT */
/* spawner.c - is preloaded into a program that a test runs thousands of times: the dynamic loader
 * runs once, and main() runs in a child process per request.
 *
 * A request is a message on the socket WEIR_TEST_SPAWNER_FD: the folder, then the arguments, then
 * the environment, each text with its NUL, and an empty text after the arguments. Standard input,
 * output and error come with it as descriptors. The reply is the status of waitpid(). The program
 * ends when the socket is closed.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEXT_MAX 262144 /* largest request, bytes */
#define WORDS_MAX 4096
#define STREAMS 3

typedef int main_function(int, char **, char **);
typedef int start_function(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);

extern char **environ;

static main_function *real_main;
static char text[TEXT_MAX];
static char *words[WORDS_MAX + 1], *variables[WORDS_MAX + 1];

/* Receives a request. Returns its length, or 0 if there are no more requests. */
static size_t receive(int from, int ret_streams[STREAMS])
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(STREAMS * sizeof(int))];
    } control = {.room = {0}};
    struct iovec part = {text, sizeof text};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
    ssize_t bytes = recvmsg(from, &message, 0);
    struct cmsghdr *head = bytes > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (head == NULL || head->cmsg_len != CMSG_LEN(STREAMS * sizeof(int)) || text[bytes - 1] != '\0')
        return 0;
    memcpy(ret_streams, CMSG_DATA(head), STREAMS * sizeof(int));
    return (size_t)bytes;
}

/* Splits texts up to an empty one or `end`. Returns the byte after them. */
static char *split(char *at, const char *end, char **ret_texts, int *ret_count)
{
    int count = 0;
    for (; at < end && *at != '\0' && count < WORDS_MAX; at += strlen(at) + 1)
        ret_texts[count++] = at;
    ret_texts[count] = NULL;
    *ret_count = count;
    return at + 1;
}

static int run(int listener, size_t bytes, const int streams[STREAMS])
{
    int count, variable_count;
    char *at = split(text + strlen(text) + 1, text + bytes, words, &count);
    (void)split(at, text + bytes, variables, &variable_count);
    for (int i = 0; i < STREAMS; i++) {
        (void)dup2(streams[i], i);
        (void)close(streams[i]);
    }
    (void)close(listener);
    if (chdir(text) != 0)
        _exit(127);
    environ = variables;
    return real_main(count, words, variables);
}

static int serve(int count, char **given, char **environment)
{
    const char *number = getenv("WEIR_TEST_SPAWNER_FD");
    int streams[STREAMS], status = 0;
    if (number == NULL)
        return real_main(count, given, environment);
    int listener = (int)strtol(number, NULL, 10);
    for (size_t bytes; (bytes = receive(listener, streams)) > 0;) {
        pid_t child = fork();
        if (child == 0)
            return run(listener, bytes, streams);
        for (int i = 0; i < STREAMS; i++)
            (void)close(streams[i]);
        if (child < 0 || waitpid(child, &status, 0) != child || send(listener, &status, sizeof status, 0) < 0)
            break;
    }
    _exit(0);
}

#pragma GCC visibility push(default)

int __libc_start_main(main_function *begin, int count, char **given, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void *stack_end);

int __libc_start_main(main_function *begin, int count, char **given, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void *stack_end)
{
    start_function *start;
    void *found = dlsym(RTLD_NEXT, "__libc_start_main");
    memcpy(&start, &found, sizeof start);
    real_main = begin;
    return start(serve, count, given, init, fini, rtld_fini, stack_end);
}
