#ifndef TENSORD_SERVER_LIFECYCLE_SEND_PROGRESS_H_
#define TENSORD_SERVER_LIFECYCLE_SEND_PROGRESS_H_

#include <chrono>
#include <cstddef>
#include <optional>

namespace tensord::server {

// Whether the client of a connection reads its answers, as far as the socket takes them. Thread-compatible.
class SendProgress {
 public:
  using Clock = std::chrono::steady_clock;
  // A client that reads so much, while more waits, has read. gRPC writes some MiB at a time and frees no answer, not
  // even of a cancelled call, before all of them are written.
  static constexpr size_t kProgressBytes = size_t{256} << 10;

  // The socket took `sent` of `wanted` bytes.
  void Sent(size_t wanted, size_t sent, Clock::time_point now) {
    if (sent == wanted) {
      since_.reset();
      return;
    }
    bytes_ = since_.has_value() ? bytes_ + sent : 0;
    if (since_.has_value() && bytes_ < kProgressBytes) return;
    since_ = now;
    bytes_ = 0;
  }

  bool is_stalled() const { return since_.has_value(); }
  // How long bytes have waited for a client that reads none, or too few; zero where none wait.
  Clock::duration Stalled(Clock::time_point now) const {
    return since_.has_value() ? now - *since_ : Clock::duration::zero();
  }

 private:
  std::optional<Clock::time_point> since_;
  size_t bytes_ = 0;  // read since then
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_LIFECYCLE_SEND_PROGRESS_H_
