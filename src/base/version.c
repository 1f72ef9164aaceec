/* SPDX-License-Identifier: MIT */
/* version.c - returns the version of the running library. */
#include <weir/version.h>

const char *weir_version(void)
{
    return WEIR_VERSION;
}
