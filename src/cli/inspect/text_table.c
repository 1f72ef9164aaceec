/* SPDX-License-Identifier: MIT */
/* text_table.c - prints a table whose columns are as wide as their widest cell. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "cli/inspect/inspector.h"
#include "cli/kit/console.h"

#define CELL_MAX 2048 /* maximum bytes of a cell */
#define GAP "  "
#define COLUMNS_MAX 16

void wr_text_table_begin(struct wr_text_table *ret_table, size_t columns, const char *rights, const char *const *heads)
{
    *ret_table = (struct wr_text_table){.columns = columns, .rights = rights};
    for (size_t i = 0; i < columns; i++)
        wr_text_table_add(ret_table, heads[i]);
}

/* Returns a copy of the text in printable ASCII, with other bytes as "\xNN". */
static char *printable_copy(const char *text)
{
    size_t bytes = strnlen(text, CELL_MAX), at = 0;
    char *copy = malloc(4 * bytes + 1);
    for (size_t i = 0; copy != NULL && i < bytes; i++) {
        if (wr_ascii_is_printable(text[i]))
            copy[at++] = text[i];
        else
            at += (size_t)snprintf(copy + at, 5, "\\x%02x", (unsigned char)text[i]);
    }
    if (copy != NULL)
        copy[at] = '\0';
    return copy;
}

void wr_text_table_add(struct wr_text_table *table, const char *text)
{
    char **longer = realloc(table->cells, (table->count + 1) * sizeof *longer);
    char *cell = printable_copy(text);
    if (longer != NULL)
        table->cells = longer;
    if (longer == NULL || cell == NULL) {
        wr_print_note_error(ENOMEM);
        free(cell);
        return;
    }
    table->cells[table->count++] = cell;
}

void wr_text_table_addf(struct wr_text_table *table, const char *format, ...)
{
    char text[CELL_MAX];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    wr_text_table_add(table, text);
}

static int column_width(const struct wr_text_table *table, size_t column)
{
    size_t width = 0;
    for (size_t i = column; i < table->count; i += table->columns) {
        size_t bytes = strlen(table->cells[i]);
        width = bytes > width ? bytes : width;
    }
    return (int)width;
}

/* Prints a cell. The last cell of a row has no trailing blanks. */
static void print_table_cell(const struct wr_text_table *table, const int *widths, size_t i)
{
    assert(table->columns > 0);
    size_t column = i % table->columns;
    bool is_last = column + 1 == table->columns;
    if (table->rights[column] == 'r')
        wr_print("%*s", widths[column], table->cells[i]);
    else
        wr_print("%-*s", is_last ? 0 : widths[column], table->cells[i]);
    wr_print("%s", is_last ? "\n" : GAP);
}

void wr_text_table_end(struct wr_text_table *table)
{
    int widths[COLUMNS_MAX];
    assert(table->columns > 0 && table->columns <= COLUMNS_MAX);
    for (size_t column = 0; column < table->columns; column++)
        widths[column] = column_width(table, column);
    for (size_t i = 0; i < table->count; i++)
        print_table_cell(table, widths, i);
    for (size_t i = 0; i < table->count; i++)
        free(table->cells[i]);
    free(table->cells);
}
