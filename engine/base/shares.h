#ifndef TENSORD_ENGINE_BASE_SHARES_H_
#define TENSORD_ENGINE_BASE_SHARES_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>

namespace tensord {

// The part of its allowance that each tenant uses: 1 is all. Has only tenants that use some; nothing if they may have
// any amount.
using Shares = std::optional<std::map<std::string, double>>;

// `uses`: pairs of a tenant and a number, of which each may have `most`.
template <typename Uses>
Shares SharesOf(const Uses& uses, int64_t most) {
  if (most == std::numeric_limits<int64_t>::max()) return std::nullopt;
  std::map<std::string, double> shares;
  for (const auto& [tenant, use] : uses) {
    shares[tenant] = static_cast<double>(use) / static_cast<double>(std::max<int64_t>(1, most));
  }
  return shares;
}

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_SHARES_H_
