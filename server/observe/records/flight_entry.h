#ifndef TENSORD_SERVER_OBSERVE_RECORDS_FLIGHT_ENTRY_H_
#define TENSORD_SERVER_OBSERVE_RECORDS_FLIGHT_ENTRY_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "server/observe/records/rpc_method.h"
#include "server/observe/records/stage_times.h"
#include "server/observe/records/trace_context.h"

namespace tensord::server {

// Text of at most N bytes, cut if it is longer, in a place of that size. Trivially copyable.
template <size_t N>
class ShortText {
 public:
  void Set(absl::string_view text) {
    size_ = static_cast<uint8_t>(text.size() < N ? text.size() : N);
    for (size_t i = 0; i < size_; ++i) bytes_[i] = text[i];
  }
  absl::string_view view() const { return {bytes_.data(), size_ < N ? size_ : N}; }

 private:
  static_assert(N < 256);
  uint8_t size_;
  std::array<char, N> bytes_;
};

// The flight recorder's record of a call or an event: enough for operators to tell the course of events, and nothing of
// clients' data. Trivially copyable, and all zeros until it is filled, so that it can be copied word by word.
struct FlightEntry {
  int64_t unix_ns;   // when it ended; 0: no entry
  bool is_event;     // else a call
  bool is_streamed;  // one request of an ExecuteStream
  RpcMethod method;
  uint8_t code;  // absl::StatusCode
  int64_t total_ns;
  int64_t received_bytes;
  int64_t sent_bytes;
  std::array<int32_t, kNumStages> stage_us;  // -1: not gone through
  TraceId trace_id;
  ShortText<13> fingerprint;
  ShortText<15> device;
  ShortText<31> reason;
  ShortText<31> tenant;
  ShortText<119> text;  // of a call its id, of an event its name, a line break and the message
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_RECORDS_FLIGHT_ENTRY_H_
