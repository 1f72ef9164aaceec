/* SPDX-License-Identifier: MIT */
/* lookup.c - the system's resolver. */
#include "shell/net/resolver.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

void wr_answer_add(struct wr_answer *answer, const struct wr_address *address)
{
    size_t alike = 0;

    for (size_t i = 0; i < answer->count; i++)
        alike += wr_address_is_v4(&answer->list[i]) == wr_address_is_v4(address);
    if (alike < WR_ANSWER_FAMILY_MAX)
        answer->list[answer->count++] = *address;
}

static void add_record(struct wr_answer *answer, const struct addrinfo *record)
{
    struct wr_address address = {.bytes = {[10] = 0xff, [11] = 0xff}};

    if (record->ai_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)record->ai_addr;
        memcpy(address.bytes + 12, &in->sin_addr, 4);
    } else if (record->ai_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const void *)record->ai_addr;
        memcpy(address.bytes, &in->sin6_addr, 16);
    } else {
        return;
    }
    wr_answer_add(answer, &address);
}

void wr_lookup_system(void *context, const char *name, struct wr_answer *ret_answer)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *records = NULL;
    int looked_at = 0;

    (void)context;
    int failure = getaddrinfo(name, NULL, &hints, &records);
    *ret_answer = (struct wr_answer){.kind = WR_ANSWER_FAILED};
    if (failure == EAI_NONAME || failure == EAI_NODATA)
        ret_answer->kind = WR_ANSWER_ABSENT;
    if (failure != 0)
        return;
    for (const struct addrinfo *each = records; each != NULL && looked_at < WR_ANSWER_RECORDS_MAX;
         each = each->ai_next) {
        add_record(ret_answer, each);
        looked_at++;
    }
    ret_answer->kind = ret_answer->count > 0 ? WR_ANSWER_FOUND : WR_ANSWER_ABSENT;
    freeaddrinfo(records);
}
