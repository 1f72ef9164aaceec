/* SPDX-License-Identifier: MIT */
/* redis_address.c - parses the URL of a store. */
#include "cluster/limit/redis_address.h"

#include "base/ascii.h"
#include "base/error.h"
#include "base/parse.h"

#include <string.h>

#define PORT_DEFAULT 6379

/* Shows no part of the URL, because any part may be a password. */
#define REFUSE(wrong) wr_invalid("the URL of the store: " wrong "; use redis://USER:PASSWORD@HOST:PORT or unix:/PATH")

/* Copies with %XX decoded. Returns false if it does not fit or is invalid. */
static bool decode_address_part(const char *text, size_t bytes, char *ret_text, size_t room)
{
    size_t length = 0;

    for (size_t i = 0; i < bytes; i++) {
        char c = text[i];
        if (c == '%') {
            int high = i + 2 < bytes ? wr_ascii_hex_value(text[i + 1]) : -1;
            int low = high >= 0 ? wr_ascii_hex_value(text[i + 2]) : -1;
            if (low < 0)
                return false;
            c = (char)(high << 4 | low);
            i += 2;
        }
        if (c == '\0' || length + 1 >= room)
            return false;
        ret_text[length++] = c;
    }
    ret_text[length] = '\0';
    return true;
}

static bool parse_user(const char *text, size_t bytes, struct wr_redis_address *ret_address)
{
    const char *colon = memchr(text, ':', bytes);

    if (colon == NULL)
        return false;
    size_t user_bytes = (size_t)(colon - text);
    return decode_address_part(text, user_bytes, ret_address->user, sizeof ret_address->user) &&
           decode_address_part(colon + 1, bytes - user_bytes - 1, ret_address->password,
                               sizeof ret_address->password) &&
           ret_address->password[0] != '\0';
}

/* Parses HOST, HOST:PORT, [ADDRESS] or [ADDRESS]:PORT. */
static bool parse_host(const char *text, size_t bytes, struct wr_redis_address *ret_address)
{
    const char *end = text + bytes, *bracket = bytes > 0 && text[0] == '[' ? memchr(text, ']', bytes) : NULL;
    const char *colon = bracket != NULL ? bracket + 1 : memchr(text, ':', bytes);
    const char *host = bracket != NULL ? text + 1 : text;
    const char *host_end = bracket != NULL ? bracket : colon != NULL ? colon : end;
    uint64_t port = PORT_DEFAULT;

    if (bracket == NULL && memchr(text, '[', bytes) != NULL)
        return false;
    if (colon != NULL && colon < end &&
        (*colon != ':' || wr_parse_u64(colon + 1, (size_t)(end - colon - 1), 1, 65535, &port) != 0))
        return false;
    ret_address->port = (int)port;
    return host < host_end &&
           decode_address_part(host, (size_t)(host_end - host), ret_address->host, sizeof ret_address->host);
}

int wr_redis_address_parse(const char *url, struct wr_redis_address *ret_address)
{
    static const char redis[] = "redis://", unix_socket[] = "unix:";
    struct wr_redis_address address = {.port = PORT_DEFAULT};

    if (strncmp(url, unix_socket, sizeof unix_socket - 1) == 0) {
        const char *path = url + sizeof unix_socket - 1;
        if (path[0] != '/' || strlen(path) >= sizeof address.path)
            return REFUSE("the path must begin with / and have at most 107 bytes");
        memcpy(address.path, path, strlen(path) + 1);
        *ret_address = address;
        return 0;
    }
    if (strncmp(url, "rediss://", 9) == 0)
        return REFUSE("TLS is not supported; use a tunnel such as stunnel");
    if (strncmp(url, redis, sizeof redis - 1) != 0)
        return REFUSE("the scheme is neither redis nor unix");
    const char *text = url + sizeof redis - 1, *end = text + strlen(text), *at = strrchr(text, '@');
    if (at != NULL && !parse_user(text, (size_t)(at - text), &address))
        return REFUSE("user or password is not well-formed; write % and @ in them as %25 and %40");
    text = at != NULL ? at + 1 : text;
    if (end > text && end[-1] == '/')
        end--;
    if (memchr(text, '/', (size_t)(end - text)) != NULL)
        return REFUSE("a database cannot be chosen; leave out what follows the port");
    if (!parse_host(text, (size_t)(end - text), &address))
        return REFUSE("host or port is not well-formed");
    *ret_address = address;
    return 0;
}
