/* SPDX-License-Identifier: MIT */
/* version.h - the version of weir, and the macro that exports its symbols. */
#ifndef WEIR_VERSION_H
#define WEIR_VERSION_H

#if defined(__GNUC__)
#define WEIR_API __attribute__((visibility("default")))
#else
#define WEIR_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_VERSION_MAJOR 0
#define WEIR_VERSION_MINOR 1
#define WEIR_VERSION_PATCH 0
#define WEIR_VERSION "0.1.0"

/* Returns the version of the library that is running, which may be newer than the header. */
WEIR_API const char *weir_version(void);

#ifdef __cplusplus
}
#endif
#endif
