/* SPDX-License-Identifier: MIT */
/* version.c - which weir is running. */
#include <weir/version.h>

const char *weir_version(void)
{
    return WEIR_VERSION;
}
