/* SPDX-License-Identifier: MIT */
/* sha256.h - hashes a value that must not be shown. */
#ifndef WR_CORE_ADMIT_SHA256_H
#define WR_CORE_ADMIT_SHA256_H

#include "base/span.h"

#include <stdint.h>

#define WR_SHA256_BYTES 32

/* Computes SHA-256 (FIPS 180-4) of `first` followed by `second`. */
void wr_sha256(struct wr_span first, struct wr_span second, uint8_t ret_digest[WR_SHA256_BYTES]);

#endif
