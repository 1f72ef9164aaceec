/* SPDX-License-Identifier: MIT */
/* request_line.c - parses the request line: a method, a target and a version, separated by single
 * spaces. */
#include "core/web/request/request_parser.h"

#include "base/ascii.h"

static const char *const methods[] = {
#define X(method, name) name,
    WR_REQUEST_METHODS(X)
#undef X
};

const char *wr_request_method_name(enum wr_request_method method)
{
    return methods[method];
}

static enum wr_request_fault read_method(struct wr_request *request, struct wr_span word)
{
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (wr_span_is(word, methods[i])) {
            request->method = (uint8_t)i;
            return WR_REQUEST_OK;
        }
    for (size_t i = 0; i < word.bytes; i++)
        if (word.data[i] < 'A' || word.data[i] > 'Z')
            return WR_REQUEST_METHOD;
    return WR_REQUEST_METHOD_UNKNOWN;
}

static enum wr_request_fault read_version(struct wr_request *request, struct wr_span word)
{
    static const char form[] = "HTTP/1.";
    size_t before = sizeof form - 1;

    if (word.bytes == before + 1 && memcmp(word.data, form, before) == 0 && (word.data[before] | 1) == '1') {
        request->minor = (uint8_t)(word.data[before] - '0');
        return WR_REQUEST_OK;
    }
    bool is_form = word.bytes == before + 1 && memcmp(word.data, "HTTP/", 5) == 0 && wr_ascii_is_digit(word.data[5]) &&
                   word.data[6] == '.' && wr_ascii_is_digit(word.data[7]);
    return is_form ? WR_REQUEST_VERSION : WR_REQUEST_VERSION_FORM;
}

static enum wr_request_fault read_target(struct wr_request *request, struct wr_span word)
{
    if (word.bytes == 0 || word.data[0] != '/')
        return WR_REQUEST_TARGET_FORM;
    for (size_t i = 0; i < word.bytes; i++)
        if (!wr_ascii_is_printable(word.data[i]) || word.data[i] == '#')
            return WR_REQUEST_TARGET_BYTE;
    request->target = wr_request_piece(request, word);
    return WR_REQUEST_OK;
}

enum wr_request_fault wr_request_start(struct wr_request *request, struct wr_span line)
{
    enum wr_request_fault fault = wr_request_control(line);
    size_t first = wr_span_find(line, ' ');
    size_t after = first < line.bytes ? first + 1 : first;
    size_t second = after + wr_span_find(wr_span_after(line, after), ' ');

    if (fault != WR_REQUEST_OK)
        return fault;
    if (second == line.bytes)
        return WR_REQUEST_VERSION_MISSING;
    struct wr_span version = wr_span_after(line, second + 1);
    if (first == 0 || second == after || wr_span_find(version, ' ') < version.bytes)
        return WR_REQUEST_SPACES;
    fault = read_version(request, version);
    if (fault == WR_REQUEST_OK)
        fault = read_method(request, (struct wr_span){line.data, first});
    if (fault == WR_REQUEST_OK)
        fault = read_target(request, (struct wr_span){line.data + after, second - after});
    return fault;
}
