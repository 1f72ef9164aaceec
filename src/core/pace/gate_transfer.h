/* SPDX-License-Identifier: MIT */
/* gate_transfer.h - Moves a gate from one process to another, whose clock shows a different time.
 *
 *     here:   wr_gate_pack                       there:   wr_gate_unpack(..., elapsed, ...)
 *
 * A packed gate contains the time of packing. The receiver states how much time has passed since
 * then, or less: in that case every wait becomes slightly longer, never shorter.
 */
#ifndef WR_CORE_PACE_GATE_TRANSFER_H
#define WR_CORE_PACE_GATE_TRANSFER_H

#include "core/pace/gate.h"

#define WR_GATE_PACKED_MAX 65536

/* Returns the size of a packed gate under these options, in bytes. */
size_t wr_gate_packed_bytes(const weir_pace_options *options);

/* Packs the gate as of now. An unsent reservation is left out, as if it had been given back. */
void wr_gate_pack(const struct wr_gate *gate, const weir_pace_options *options, int64_t now, void *ret_packed);

/* Replaces the gate by one that was packed `elapsed_ns` ago. `lost` means that its last holder
 * disappeared and may have just sent a request: the gate waits one full interval. Crawl-delay and
 * server waits that only this gate knows are kept. This gate also stays paused or not. The result
 * has no reservation.
 *
 * Returns false if the packed gate is damaged or has another version: this gate is kept, and
 * treated as `lost`. If the strategy or the ring sizes differ, only the last start and the server's
 * statements are taken; returns true.
 */
bool wr_gate_unpack(struct wr_gate *gate, const weir_pace_options *options, const void *packed, size_t packed_bytes,
                    int64_t elapsed_ns, bool lost, int64_t now);

/* Sets the number of requests in flight, to which a local reservation is added. */
void wr_gate_set_in_flight(struct wr_gate *gate, uint32_t in_flight);

/* Returns true if a valid reservation exists, so that a request may be written at any moment. */
bool wr_gate_reserved(const struct wr_gate *gate, const weir_pace_options *options, int64_t now);

#endif
