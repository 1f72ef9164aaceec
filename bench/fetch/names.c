/* SPDX-License-Identifier: MIT */
/* names.c - preloaded (LD_PRELOAD), replaces the system's resolver: hA-B.bench.test has the
 * address 127.0.A.B, and no other name exists. */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>

#pragma GCC visibility push(default)

struct record {
    struct addrinfo info; /* must be the first member */
    struct sockaddr_in address;
};

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **ret_records)
{
    unsigned a, b;
    if (name == NULL || sscanf(name, "h%u-%u.bench.test", &a, &b) != 2 || a > 255 || b > 255)
        return EAI_NONAME;
    struct record *record = calloc(1, sizeof *record);
    if (record == NULL)
        return EAI_MEMORY;
    record->address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000000U | a << 8 | b)};
    if (service != NULL)
        record->address.sin_port = htons((in_port_t)strtoul(service, NULL, 10));
    record->info = (struct addrinfo){.ai_family = AF_INET,
                                     .ai_socktype = hints != NULL ? hints->ai_socktype : SOCK_STREAM,
                                     .ai_protocol = IPPROTO_TCP,
                                     .ai_addrlen = sizeof record->address,
                                     .ai_addr = (struct sockaddr *)&record->address};
    *ret_records = &record->info;
    return 0;
}

void freeaddrinfo(struct addrinfo *records)
{
    free(records);
}
