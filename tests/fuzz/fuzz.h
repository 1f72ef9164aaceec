/* SPDX-License-Identifier: MIT */
/* fuzz.h - the interface of a fuzz target: a function that must return 0 for any bytes.
 *
 * libFuzzer calls it (make fuzz), and so does replay.c with the files of corpus/NAME (make test).
 * It ends the program if a property does not hold. The sanitizers end it on memory errors.
 */
#ifndef WEIR_FUZZ_H
#define WEIR_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* libFuzzer's entry point. `data` is not terminated; if `bytes` is 0 it is an empty block. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Checks a property in every build, and prints it if it does not hold. */
#define fuzz_check(promise)                                                       \
    do {                                                                          \
        if (!(promise)) {                                                         \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #promise); \
            __builtin_trap();                                                     \
        }                                                                         \
    } while (0)

#endif
