#include "server/rpc/wire/spread_copy.h"

#include <cstring>

#include "engine/base/streaming_copy.h"

namespace tensord::server {

void SpreadCopy(absl::string_view from, char* to, const ParallelFor& parallel_for) {
  if (from.size() < static_cast<size_t>(kSpreadFrom)) {
    std::memcpy(to, from.data(), from.size());
    return;
  }
  const size_t shares = (from.size() + kShareBytes - 1) / kShareBytes;
  parallel_for(static_cast<int64_t>(shares), [&](int64_t share) {
    const size_t begin = static_cast<size_t>(share) * kShareBytes;
    StreamingCopy(from.substr(begin, kShareBytes), to + begin);
  });
}

}  // namespace tensord::server
