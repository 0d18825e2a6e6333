#ifndef TENSORD_SERVER_CONNECTIONS_SEND_PROGRESS_H_
#define TENSORD_SERVER_CONNECTIONS_SEND_PROGRESS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace tensord::server {

// Tells whether the client of a connection reads the answers that do not fit into the socket. Thread-compatible.
class SendProgress {
 public:
  using Clock = std::chrono::steady_clock;
  // A client that takes so much, while more waits, reads. gRPC writes some MiB at a time and frees no answer, not even
  // of a cancelled call, before all of them are written.
  static constexpr int64_t kProgressBytes = int64_t{256} << 10;

  // The socket took `sent` of `wanted` bytes.
  void Sent(size_t wanted, size_t sent, Clock::time_point now) {
    if (sent == wanted) {
      since_.reset();
    } else if (!since_.has_value()) {
      since_ = now;
      waiting_bytes_.reset();
    }
    sent_bytes_ += static_cast<int64_t>(sent);
  }

  // Notes that so many bytes wait in the socket. Its writer is told of room there only when much of it is free, which
  // takes a slow reader longer than he may have.
  void Looked(int64_t waiting_bytes, Clock::time_point now) {
    const bool is_first = !waiting_bytes_.has_value();
    const int64_t taken = is_first ? 0 : *waiting_bytes_ + sent_bytes_ - waiting_bytes;
    if (!is_first && taken < kProgressBytes) return;
    if (!is_first) since_ = now;
    waiting_bytes_ = waiting_bytes;
    sent_bytes_ = 0;
  }

  bool is_stalled() const { return since_.has_value(); }
  // Returns how long bytes have waited for a client that takes none, or too few; zero if none wait.
  Clock::duration Stalled(Clock::time_point now) const {
    return since_.has_value() ? now - *since_ : Clock::duration::zero();
  }

 private:
  std::optional<Clock::time_point> since_;
  std::optional<int64_t> waiting_bytes_;  // in the socket, at the first look since then
  int64_t sent_bytes_ = 0;                // to the socket, after that look
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_CONNECTIONS_SEND_PROGRESS_H_
