#include "server/certificate_lines.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "engine/base/steady_time.h"

namespace tensord::server {
namespace {

// Certificates end at a time of day, alarms do not follow a clock that is set: so often it is looked at anew.
constexpr absl::Duration kLongestWait = absl::Hours(1);

struct Words {
  absl::string_view what, harm;
};
constexpr Words kWords[] = {{"tls.certificate", "clients refuse to connect"},
                            {"a certificate of tls.client_ca", "clients whose certificates it signed are refused"}};

}  // namespace

void CertificateLines::Watch(const TlsMaterial& material) {
  MutexLock lock(&mutex_);
  ++watch_;
  ends_ = {material.certificate_expiry, material.client_ca_expiry};
  SetAlarmLocked(absl::Now());
}

void CertificateLines::SetAlarmLocked(absl::Time now) {
  const absl::Time next = *std::min_element(ends_.begin(), ends_.end());
  if (next == absl::InfiniteFuture()) return;
  // A little late rather than a little early.
  const absl::Duration wait = std::clamp(next - now + absl::Milliseconds(1), absl::ZeroDuration(), kLongestWait);
  alarms_->Set(SteadyNow() + wait, [this, watch = watch_] { Look(watch); });
}

void CertificateLines::Look(int64_t watch) {
  MutexLock lock(&mutex_);
  if (watch != watch_) return;  // the certificates are others now
  const absl::Time now = absl::Now();
  for (size_t i = 0; i < kCertificates; ++i) {
    if (ends_[i] > now) continue;
    log_->Event(
        LogLevel::kError, "certificate expired",
        absl::StrCat(kWords[i].what, " ended at ", absl::FormatTime(absl::RFC3339_sec, ends_[i], absl::UTCTimeZone()),
                     ": ", kWords[i].harm, "; put a new one in its place, it is taken without a restart"));
    ends_[i] = absl::InfiniteFuture();
  }
  SetAlarmLocked(now);
}

}  // namespace tensord::server
