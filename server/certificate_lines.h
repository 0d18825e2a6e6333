#ifndef TENSORD_SERVER_CERTIFICATE_LINES_H_
#define TENSORD_SERVER_CERTIFICATE_LINES_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "server/identity/tls_material.h"
#include "server/lifecycle/alarms.h"
#include "server/observe/logs/log.h"

namespace tensord::server {

// The log's lines on the ends of certificates in use: one line for each. Thread-safe. The log and the alarms must
// outlive it, and the alarms must have stopped when it goes.
class CertificateLines {
 public:
  CertificateLines(Log* log, Alarms* alarms) : log_(log), alarms_(alarms) {}

  // Watches the certificates of `material` from now on, and no others.
  void Watch(const TlsMaterial& material);

 private:
  // The server's own certificate, and the trusted ones.
  static constexpr size_t kCertificates = 2;

  // Logs the certificates that have ended, and looks again when the next one may have. On the alarms' thread.
  void Look(int64_t watch);
  void SetAlarmLocked(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Log* const log_;
  Alarms* const alarms_;
  Mutex mutex_;
  int64_t watch_ ABSL_GUARDED_BY(mutex_) = 0;  // how often Watch was called
  // InfiniteFuture where there is none, and once it is told.
  std::array<absl::Time, kCertificates> ends_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_CERTIFICATE_LINES_H_
