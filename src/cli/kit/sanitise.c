/* SPDX-License-Identifier: MIT */
/* sanitise.c - prints untrusted text safely. */
#include "cli/kit/sanitise.h"

#include "base/ascii.h"
#include "cli/kit/console.h"

void wr_print_sanitised(struct wr_span text)
{
    for (size_t i = 0; i < text.bytes; i++) {
        char c = text.data[i];
        if (!wr_ascii_is_printable(c))
            wr_print("\\x%02x", (unsigned char)c);
        else
            wr_print(c == '\\' ? "\\%c" : "%c", c);
    }
}

/* Prints one character at a time, so that no memory is allocated. */
void wr_print_json_string(struct wr_span text)
{
    char memory[16];
    struct wr_buf buf;
    wr_print("\"");
    while (text.bytes > 0) {
        struct wr_span rest = text;
        (void)wr_span_take_point(&rest);
        wr_buf_init_fixed(&buf, memory, sizeof memory);
        wr_append_json_escaped(&buf, (struct wr_span){text.data, text.bytes - rest.bytes});
        wr_print("%s", memory);
        text = rest;
    }
    wr_print("\"");
}
