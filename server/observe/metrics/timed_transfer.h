#ifndef TENSORD_SERVER_OBSERVE_METRICS_TIMED_TRANSFER_H_
#define TENSORD_SERVER_OBSERVE_METRICS_TIMED_TRANSFER_H_

#include <chrono>
#include <cstdint>

#include "absl/time/time.h"
#include "server/observe/metrics/metrics.h"

namespace tensord::server {

// Counts the bytes of a transfer and its time while it exists. Confined to its thread; the metrics must outlive it.
class TimedTransfer {
 public:
  TimedTransfer(Metrics* metrics, Transfer transfer, int64_t bytes)
      : metrics_(metrics), transfer_(transfer), bytes_(bytes) {}
  ~TimedTransfer() {
    metrics_->Transferred(transfer_, bytes_, absl::FromChrono(std::chrono::steady_clock::now() - start_));
  }
  TimedTransfer(const TimedTransfer&) = delete;
  TimedTransfer& operator=(const TimedTransfer&) = delete;

 private:
  Metrics* const metrics_;
  const Transfer transfer_;
  const int64_t bytes_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_METRICS_TIMED_TRANSFER_H_
