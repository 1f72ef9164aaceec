/* SPDX-License-Identifier: MIT */
/* output.h - what the program says: results on standard output, all else on standard error.
 *
 * A result that could not be written (closed pipe, full disk) is a failure: commands print with wr_print and
 * need not look, main ends with wr_print_finish, which does.
 */
#ifndef WR_CLI_KIT_OUTPUT_H
#define WR_CLI_KIT_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

enum wr_exit {
    WR_EXIT_OK = 0,
    WR_EXIT_FAILED = 1, /* the request was sound, but could not be done */
    WR_EXIT_USAGE = 2,  /* the request was not understood */
};

/* Call first. Makes sure that descriptors 0, 1 and 2 are taken, so that no file opened later is mistaken for one of
 * them, and that a closed pipe is an error to report, not a signal to die of. */
void wr_output_init(void);

__attribute__((format(printf, 1, 2))) void wr_print(const char *format, ...);

/* Whose complaints follow: "weir" at first, then "weir bench table". The text must stay. */
void wr_complain_as(const char *who);

/* One line on standard error, "WHO: …", whatever the arguments hold: control characters are shown as '?', and an absurd
 * length is cut. */
__attribute__((format(printf, 1, 2))) void wr_complain(const char *format, ...);

/* Opens an empty file for writing, or returns NULL and sets errno: ENXIO for a pipe that nothing reads, where fopen
 * would wait for ever. */
FILE *wr_file_create(const char *path);

/* "cannot write PATH: …" and "cannot read PATH: …", after "OPTION: " unless that is NULL: with the reason (an errno)
 * and what would be right. */
void wr_complain_unwritten(const char *option, const char *path, int error);
void wr_complain_unread(const char *option, const char *path, int error);

/* The same of a daemon, which does not wait where nobody reads standard error. False: the line is lost. */
__attribute__((format(printf, 1, 2))) bool wr_complain_soon(const char *format, ...);

/* How far a long command is, shown on standard error if that is a terminal. Each call replaces the line of the last; ""
 * clears it. */
__attribute__((format(printf, 1, 2))) void wr_progress(const char *format, ...);

/* Something that was written to standard output by other means did not arrive: `error`, of errno. */
void wr_print_lost(int error);

/* Writes out what is left. False, after a complaint, if anything printed was lost. */
bool wr_print_finish(void);

#endif
