#ifndef TENSORD_SERVER_IDENTITY_AUDIT_H_
#define TENSORD_SERVER_IDENTITY_AUDIT_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "server/observe/call_ids.h"
#include "server/observe/control_metrics.h"
#include "server/observe/log.h"
#include "server/observe/rpc_method.h"

namespace tensord::server {

// Tells the log which calls were refused because of who made them, one line each. Whoever is refused may come as often
// as he likes, so lines beyond kBurst and then kPerSecond are left out, and the next line says how many. Thread-safe.
// The log must outlive it.
class Audit {
 public:
  static constexpr int kBurst = 20;
  static constexpr int kPerSecond = 5;

  explicit Audit(Log* log, std::function<absl::Time()> clock = &absl::Now) : log_(log), clock_(std::move(clock)) {}

  // `tenant` is empty where nobody knows who calls.
  void Refused(AuthRefusal reason, RpcMethod method, const std::string& peer, const std::string& tenant,
               const CallIds& ids = {});

 private:
  // Whether a line may be written now; how many were left out before it.
  bool Take(int64_t* left_out);

  Log* const log_;
  const std::function<absl::Time()> clock_;
  Mutex mutex_;
  double lines_ ABSL_GUARDED_BY(mutex_) = kBurst;
  absl::Time counted_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  int64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_IDENTITY_AUDIT_H_
