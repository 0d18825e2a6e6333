#ifndef TENSORD_SERVER_OBSERVE_METRICS_TRANSFER_H_
#define TENSORD_SERVER_OBSERVE_METRICS_TRANSFER_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace tensord::server {

// The way in which tensors move beside requests and responses.
enum class Transfer : uint8_t {
  kPut,     // uploaded in chunks
  kGet,     // downloaded in chunks
  kShared,  // copied to or from shared memory
};

inline constexpr absl::string_view kTransferNames[] = {"put", "get", "shared"};
inline constexpr size_t kNumTransfers = sizeof(kTransferNames) / sizeof(kTransferNames[0]);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_METRICS_TRANSFER_H_
