/* SPDX-License-Identifier: MIT */
/* lookup.c - looks names up with the system's resolver, and converts addresses. */
#include "http/net/resolver.h"

#include "limiter/memory/reserve.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

void wr_host_copy(struct wr_span host, char ret_host[WR_NAME_MAX + 1])
{
    if (host.bytes > 2 && host.data[0] == '[')
        host = (struct wr_span){host.data + 1, host.bytes - 2};
    memcpy(ret_host, host.data, host.bytes);
    ret_host[host.bytes] = '\0';
}

void wr_dns_answer_add(struct wr_dns_answer *answer, const struct wr_address *address)
{
    size_t alike = 0;

    for (size_t i = 0; i < answer->count; i++)
        alike += wr_address_is_v4(&answer->list[i]) == wr_address_is_v4(address);
    if (alike < WR_DNS_FAMILY_MAX)
        answer->list[answer->count++] = *address;
}

bool wr_address_of_socket(const struct sockaddr *from, struct wr_address *ret_address)
{
    struct wr_address address = {.bytes = {[10] = 0xff, [11] = 0xff}};

    if (from->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)from;
        memcpy(address.bytes + 12, &in->sin_addr, 4);
    } else if (from->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const void *)from;
        memcpy(address.bytes, &in->sin6_addr, 16);
    } else {
        return false;
    }
    *ret_address = address;
    return true;
}

void wr_lookup_system(void *context, const char *name, struct wr_dns_answer *ret_answer)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *records = NULL;
    int looked_at = 0;

    (void)context;
    int failure = getaddrinfo(name, NULL, &hints, &records);
    *ret_answer = (struct wr_dns_answer){.kind = WR_DNS_FAILED};
    if (failure == EAI_NONAME || failure == EAI_NODATA)
        ret_answer->kind = WR_DNS_ABSENT;
    if (failure == EAI_MEMORY || (failure != 0 && wr_memory_left() < WR_MEMORY_LEAST))
        ret_answer->kind = WR_DNS_SCARCE; /* its own result may be misleading */
    if (failure != 0)
        return;
    for (const struct addrinfo *each = records; each != NULL && looked_at < WR_DNS_RECORDS_MAX; each = each->ai_next) {
        struct wr_address address;
        if (wr_address_of_socket(each->ai_addr, &address))
            wr_dns_answer_add(ret_answer, &address);
        looked_at++;
    }
    ret_answer->kind = ret_answer->count > 0 ? WR_DNS_FOUND : WR_DNS_ABSENT;
    freeaddrinfo(records);
}
