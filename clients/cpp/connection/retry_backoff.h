#ifndef TENSORD_CLIENTS_CPP_CONNECTION_RETRY_BACKOFF_H_
#define TENSORD_CLIENTS_CPP_CONNECTION_RETRY_BACKOFF_H_

#include <algorithm>
#include <optional>

#include "absl/random/random.h"
#include "absl/time/time.h"

namespace tensord::client {

// The pause before a call that the transport broke is made again: gRPC's way, each pause twice the one before and
// spread by a fifth, so that clients that broke off together do not come back together. A value; not thread-safe.
class RetryBackoff {
 public:
  // Attempts in a row that brought nothing, the first one included.
  static constexpr int kMostAttempts = 6;
  static constexpr absl::Duration kFirstPause = absl::Milliseconds(100), kLongestPause = absl::Seconds(2);

  explicit RetryBackoff(int most_attempts = kMostAttempts) : most_attempts_(most_attempts) {}

  // Returns the pause before the next attempt; none if there is to be no other, or the deadline comes first.
  std::optional<absl::Duration> Next(absl::Time now, absl::Time deadline) {
    if (++attempts_ >= most_attempts_) return std::nullopt;
    const absl::Duration pause = pause_ * absl::Uniform(random_, 0.8, 1.2);
    pause_ = std::min(2 * pause_, kLongestPause);
    if (now + pause >= deadline) return std::nullopt;
    return pause;
  }
  // The last attempt brought something.
  void Progress() {
    attempts_ = 0;
    pause_ = kFirstPause;
  }

 private:
  const int most_attempts_;
  int attempts_ = 0;
  absl::Duration pause_ = kFirstPause;
  absl::InsecureBitGen random_;
};

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_CONNECTION_RETRY_BACKOFF_H_
