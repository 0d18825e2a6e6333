#include "server/identity/audit.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tensord::server {
namespace {

constexpr absl::string_view kRefused = "access_refused";

}  // namespace

void Audit::Refused(AuthRefusal reason, RpcMethod method, const std::string& peer, const std::string& tenant,
                    const CallIds& ids, absl::string_view what, absl::string_view owner) {
  const absl::Time now = clock_();
  int64_t left_out = 0;
  bool sets_alarm = false;
  if (!Take(now, &left_out, &sets_alarm)) {
    if (sets_alarm) set_alarm_(now + kTellAfter, [this] { TellLeftOut(); });
    return;
  }
  const std::string before = left_out == 0 ? "" : absl::StrCat(left_out, " lines like this were left out before it");
  log_->Audit(LogLevel::kWarning, kRefused, before,
              {{"method", Name(method)},
               {"reason", Name(reason)},
               {"peer", peer},
               {"tenant", tenant},
               {"what", what},
               {"owner", owner},
               {"request_id", ids.request_id},
               {"trace_id", ToHex(ids.trace_id)}});
}

void Audit::OperatorCalled(const RequestRecord& record, const std::string& peer) {
  log_->Audit(LogLevel::kInfo, "operator_call", record.message,
              {{"method", Name(record.method)},
               {"code", absl::StatusCodeToString(record.code)},
               {"reason", record.reason},
               {"peer", peer},
               {"tenant", record.tenant},
               {"request_id", record.request_id},
               {"trace_id", ToHex(record.trace.context.trace_id)}});
}

void Audit::TellLeftOut() {
  int64_t left_out = 0;
  {
    MutexLock lock(&mutex_);
    left_out = std::exchange(left_out_, 0);
    is_alarm_set_ = false;
  }
  if (left_out == 0) return;
  log_->Audit(LogLevel::kWarning, kRefused, absl::StrCat(left_out, " lines like this were left out"), {});
}

bool Audit::Take(absl::Time now, int64_t* left_out, bool* sets_alarm) {
  MutexLock lock(&mutex_);
  if (now > counted_ && counted_ != absl::InfinitePast()) {
    lines_ = std::min<double>(lines_ + absl::ToDoubleSeconds(now - counted_) * kPerSecond, kBurst);
  }
  // Also where the clock was put back: to wait until it is there again would leave lines out for as long.
  counted_ = now;
  if (lines_ < 1) {
    ++left_out_;
    *sets_alarm = set_alarm_ != nullptr && !std::exchange(is_alarm_set_, true);
    return false;
  }
  lines_ -= 1;
  *left_out = std::exchange(left_out_, 0);
  return true;
}

}  // namespace tensord::server
