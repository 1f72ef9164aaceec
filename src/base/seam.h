/* SPDX-License-Identifier: MIT */
/* seam.h - marks the functions of libweir that libweir-http calls beside the public ones.
 *
 * libweir.so exports them under the version WEIR_PRIVATE_<release> (src/private.map.in), for which
 * only the libweir-http.so of the same release asks. They are no interface for programs. The guard
 * only_promised_symbols_are_exported knows if one is marked and not needed.
 */
#ifndef WR_BASE_SEAM_H
#define WR_BASE_SEAM_H

#define WR_SEAM __attribute__((visibility("default")))

#endif
