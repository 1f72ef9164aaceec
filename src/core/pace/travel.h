/* SPDX-License-Identifier: MIT */
/* travel.h - a gate goes from one process to another, whose clock shows another time.
 *
 *     here:   wr_gate_pack                       there:   wr_gate_unpack(…, elapsed, …)
 *
 * What is packed is the gate as it is, with the instant at which that was. Who unpacks it says how much time has gone
 * by since, or less: then all that must be waited for is waited for a little longer, and never too short.
 */
#ifndef WR_CORE_PACE_TRAVEL_H
#define WR_CORE_PACE_TRAVEL_H

#include "core/pace/gate.h"

#define WR_GATE_PACKED_MAX 65536

/* Bytes of a packed gate under these options. */
size_t wr_gate_packed_bytes(const weir_pace_options *options);

/* The gate as it is now. What is reserved but not sent is as if it was given back. */
void wr_gate_pack(const struct wr_gate *gate, const weir_pace_options *options, int64_t now, void *ret_packed);

/* The gate becomes what was packed, `elapsed_ns` ago; `lost`: its last holder has told no more, and there may have been
 * a start just now, so one full interval is waited for. What this one knows and that one does not is added:
 * Crawl-delay, a time that the server named. Whether it is paused is this one's to say. Nothing is reserved.
 *
 * If what was packed cannot be read, or is of another version, the gate stays, as if `lost`; false. One of another
 * strategy, or with other sizes of its rings: what the server said and the last start are taken, and the rest stays;
 * true. */
bool wr_gate_unpack(struct wr_gate *gate, const weir_pace_options *options, const void *packed, size_t packed_bytes,
                    int64_t elapsed_ns, bool lost, int64_t now);

/* So many are in flight, without what is reserved here. */
void wr_gate_count(struct wr_gate *gate, uint32_t in_flight);

/* Whether a request may be written at any moment. */
bool wr_gate_reserved(const struct wr_gate *gate, const weir_pace_options *options, int64_t now);

#endif
