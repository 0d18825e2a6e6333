#include "server/lifecycle/address_space.h"

#include <sys/resource.h>

#include "absl/strings/str_cat.h"

namespace tensord::server {
namespace {

// A server without a tensor takes half of it.
constexpr rlim_t kLeastBytes = rlim_t{512} << 20;

}  // namespace

absl::Status CheckAddressSpace() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= kLeastBytes) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the process may have ", limit.rlim_cur >> 20, " MiB of address space, and needs ",
                   kLeastBytes >> 20, " MiB and what its tensors take: raise or lift that limit (ulimit -v, LimitAS)"));
}

}  // namespace tensord::server
