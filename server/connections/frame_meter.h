#ifndef TENSORD_SERVER_CONNECTIONS_FRAME_METER_H_
#define TENSORD_SERVER_CONNECTIONS_FRAME_METER_H_

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "server/connections/connection_excess.h"

namespace tensord::server {

// Bounds of the frames that cost the server more than their sender, and that no call is charged for.
struct FrameLimits {
  int64_t header_bytes = 0;        // of the headers of one call, as they are sent
  int64_t cancels_at_once = 0;     // calls taken back, settings changed, and eight pings for one,
  int64_t cancels_per_second = 0;  // and of these a second
  // Frames that flow control does not bound: window updates, acknowledgements, priorities, unknown ones, data of a few
  // bytes. They are many times as many as cancels, never fewer than these, and another for every kBytesOfAFrame that
  // the client is sent.
  static constexpr int64_t kFramesOfACancel = 32, kLeastFramesAtOnce = 20'000, kLeastFramesPerSecond = 100'000;
  static constexpr int64_t kBytesOfAFrame = 64;
  int64_t frames_at_once() const { return std::max(kLeastFramesAtOnce, kFramesOfACancel * cancels_at_once); }
  int64_t frames_per_second() const { return std::max(kLeastFramesPerSecond, kFramesOfACancel * cancels_per_second); }
  // Calls, and the headers of all, before the client has acknowledged the server's settings, which bound these.
  int64_t early_calls = 0;
  int64_t early_header_bytes = 0;
};

// Reads the heads of the frames that a client sends on one connection, and says when they are beyond the limits.
// Thread-compatible.
class FrameMeter {
 public:
  using Clock = std::chrono::steady_clock;
  // Tells whether the client reads its answers at this moment. A client that does not read gets no time, since the
  // calls it took back are still held. A reading client may seem not to read now and then, while it takes back many
  // calls at once. So every frame's head is a moment to look, and the time since the last moment at which it was seen
  // reading counts.
  using Reads = std::function<bool()>;

  FrameMeter(const FrameLimits& limits, Clock::time_point now);

  // Takes note that the server begins to send, its settings first: an acknowledgement before is none.
  void Sends() { has_sent_ = true; }
  // Takes note of bytes that the client was sent, which it may answer by window updates.
  void Sent(int64_t bytes);

  // Reads the next bytes, which came at that time. Beyond a limit the result stays.
  ConnectionExcess Read(absl::string_view bytes, Clock::time_point now, const Reads& reads);

 private:
  static constexpr size_t kHeadBytes = 9;

  ConnectionExcess ReadHead(Clock::time_point now, const Reads& reads);
  void AddTime(Clock::time_point now, const Reads& reads);
  ConnectionExcess AddHeaders(int64_t size);
  bool FitsEarly(int64_t size);
  void Acknowledged();
  bool TakeCancel(double cost = 1);
  ConnectionExcess TakeFrames(double cost);

  const FrameLimits limits_;
  int64_t skip_bytes_;  // until the next head: first the preface, then the rest of a frame
  std::array<uint8_t, kHeadBytes> head_{};
  size_t head_bytes_ = 0;                       // of it that have come
  int64_t block_bytes_ = 0, block_frames_ = 0;  // of the headers that have begun
  uint32_t last_stream_ = 0;                    // that was opened
  bool has_sent_ = false, is_acknowledged_ = false;
  // The calls that were made and not taken back, and the bytes of all headers, until the settings are acknowledged.
  absl::flat_hash_set<uint32_t> early_calls_;
  int64_t early_bytes_ = 0;
  double cancels_;  // that may come now
  Clock::time_point refilled_;
  double frames_;  // of other kinds, likewise
  Clock::time_point frames_refilled_;
  ConnectionExcess excess_ = ConnectionExcess::kNone;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_CONNECTIONS_FRAME_METER_H_
