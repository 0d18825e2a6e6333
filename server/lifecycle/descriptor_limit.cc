#include "server/lifecycle/descriptor_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>

namespace tensord::server {
namespace {

int64_t Number(rlim_t limit) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  return limit == RLIM_INFINITY || limit > static_cast<rlim_t>(kMost) ? kMost : static_cast<int64_t>(limit);
}

}  // namespace

int64_t AllowDescriptors(int64_t wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  const int64_t target = std::min(wanted, Number(limit.rlim_max));
  if (target > Number(limit.rlim_cur)) {
    const rlimit raised{.rlim_cur = static_cast<rlim_t>(target), .rlim_max = limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) return target;
  }
  return Number(limit.rlim_cur);
}

}  // namespace tensord::server
