#ifndef TENSORD_SERVER_RPC_WIRE_SPREAD_COPY_H_
#define TENSORD_SERVER_RPC_WIRE_SPREAD_COPY_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "engine/exec/backend/parallel_for.h"

namespace tensord::server {

// The size from which a copy is worth several threads, and the part that each takes at a time.
inline constexpr int64_t kSpreadFrom = int64_t{8} << 20;
inline constexpr size_t kShareBytes = size_t{1} << 20;

// Copies bytes that do not overlap. Many go past the caches, on several threads.
void SpreadCopy(absl::string_view from, char* to, const ParallelFor& parallel_for);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_WIRE_SPREAD_COPY_H_
