/* SPDX-License-Identifier: MIT */
/* console.h - prints results on standard output and everything else on standard error.
 *
 * A result that could not be written (closed pipe, full disk) is a failure. Commands print with
 * wr_print without checking; main ends with wr_print_finish, which checks.
 */
#ifndef WR_CLI_KIT_CONSOLE_H
#define WR_CLI_KIT_CONSOLE_H

#include <stdbool.h>
#include <stdio.h>

enum wr_exit {
    WR_EXIT_OK = 0,
    WR_EXIT_FAILED = 1, /* the arguments were valid, but the command failed */
    WR_EXIT_USAGE = 2,  /* the arguments were invalid */
};

/* Must be called first. Opens descriptors 0, 1 and 2 if they are closed, so that no file opened
 * later is mistaken for one of them. Turns a write to a closed pipe into an error instead of a
 * fatal signal. */
void wr_output_init(void);

__attribute__((format(printf, 1, 2))) void wr_print(const char *format, ...);

/* Sets the name in front of error messages: "weir" at first, then for example "weir bench table".
 * The text must stay valid. */
void wr_complain_as(const char *who);

/* Prints one line "NAME: ..." to standard error. Replaces control characters of the arguments by
 * '?' and cuts a very long line. */
__attribute__((format(printf, 1, 2))) void wr_complain(const char *format, ...);

/* Opens an empty file for writing, or returns NULL and sets errno: ENXIO for a pipe without a
 * reader, where fopen would block. */
FILE *wr_file_create(const char *path);

/* Print "cannot write PATH: ..." or "cannot read PATH: ...", after "OPTION: " unless `option` is
 * NULL, with the reason (an errno) and advice. */
void wr_complain_write_failed(const char *option, const char *path, int error);
void wr_complain_read_failed(const char *option, const char *path, int error);

/* Prints an error message like wr_complain, but never waits for a reader of standard error. For
 * daemons. Returns false if the line was dropped. */
__attribute__((format(printf, 1, 2))) bool wr_complain_nowait(const char *format, ...);

/* Shows the progress of a long command on standard error if that is a terminal. Each call replaces
 * the line of the previous one; "" clears it. */
__attribute__((format(printf, 1, 2))) void wr_progress(const char *format, ...);

/* Records that a write to standard output by other functions failed. `error` is an errno. */
void wr_print_note_error(int error);

/* Flushes standard output. Returns false after printing an error if any output was lost. */
bool wr_print_finish(void);

#endif
