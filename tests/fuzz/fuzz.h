/* SPDX-License-Identifier: MIT */
/* fuzz.h - what a fuzz target is: one function that must return 0 for any bytes.
 *
 * libFuzzer calls it (make fuzz), and so does replay.c, over the files of corpus/NAME (make test). It ends the program
 * where a promise is broken; the sanitizers do the same where memory is.
 */
#ifndef WEIR_FUZZ_H
#define WEIR_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* libFuzzer's name for it. `data` is not terminated, and is an empty block where `bytes` is 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* An assert that no build leaves out, and that says which promise it was. */
#define fuzz_check(promise)                                                       \
    do {                                                                          \
        if (!(promise)) {                                                         \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #promise); \
            __builtin_trap();                                                     \
        }                                                                         \
    } while (0)

#endif
