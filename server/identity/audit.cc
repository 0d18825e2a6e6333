#include "server/identity/audit.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tensord::server {

void Audit::Refused(AuthRefusal reason, RpcMethod method, const std::string& peer, const std::string& tenant,
                    const CallIds& ids) {
  int64_t left_out = 0;
  if (!Take(&left_out)) return;
  const std::string before = left_out == 0 ? "" : absl::StrCat(left_out, " lines like this were left out before it");
  log_->Event(LogLevel::kWarning, "access_refused", before,
              {{"method", Name(method)},
               {"reason", Name(reason)},
               {"peer", peer},
               {"tenant", tenant},
               {"request_id", ids.request_id},
               {"trace_id", ToHex(ids.trace_id)}});
}

bool Audit::Take(int64_t* left_out) {
  const absl::Time now = clock_();
  MutexLock lock(&mutex_);
  if (now > counted_ && counted_ != absl::InfinitePast()) {
    lines_ = std::min<double>(lines_ + absl::ToDoubleSeconds(now - counted_) * kPerSecond, kBurst);
  }
  // Also where the clock was put back: to wait until it is there again would leave lines out for as long.
  counted_ = now;
  if (lines_ < 1) {
    ++left_out_;
    return false;
  }
  lines_ -= 1;
  *left_out = left_out_;
  left_out_ = 0;
  return true;
}

}  // namespace tensord::server
