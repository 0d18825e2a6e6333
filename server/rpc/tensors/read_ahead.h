#ifndef TENSORD_SERVER_RPC_TENSORS_READ_AHEAD_H_
#define TENSORD_SERVER_RPC_TENSORS_READ_AHEAD_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <deque>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "engine/base/mutex.h"

namespace tensord::server {

// The messages of one call that were read and not yet worked on, so that one thread reads while another works. A reader
// that finds nobody at work works until nothing is left. Thread-safe.
//
//   OnReadDone(ok): if (ahead.Push(ok)) StartRead(ahead.next());
//                   for (step = ahead.Begin(&message); …; step = ahead.Continue(&message)) {
//                     if (step.reads) StartRead(ahead.next());
//                     … message …, or a return: nobody works on this call any more
//                   }
class ReadAhead {
 public:
  // Most messages that wait; one more may be worked on.
  static constexpr size_t kMost = 2;

  enum class Found { kNothing, kMessage, kEnd };
  struct Step {
    Found found = Found::kNothing;
    bool reads = false;    // the caller reads the next one
    absl::Status refused;  // of a message: as Push was told
  };

  // Returns the place of the next message, for one read at a time.
  grpc::ByteBuffer* next() { return &next_; }
  // Ends the read; false: no message comes any more. `refused`: there is no room for the message; its worker waits for
  // some, or ends the call. True if the caller reads the next one.
  bool Push(bool ok, absl::Status refused = absl::OkStatus()) {
    MutexLock lock(&mutex_);
    reads_ = ok && refused.ok() && waiting_.size() + 1 < kMost;
    is_over_ = is_over_ || !ok;
    if (!ok) return false;
    waiting_.push_back({.refused = std::move(refused)});
    waiting_.back().bytes.Swap(&next_);
    return reads_;
  }

  // A message that had no room has some: the caller, who works on it, reads the next one.
  void Resume() {
    MutexLock lock(&mutex_);
    reads_ = true;
  }

  // kMessage: the caller is at work, until Continue finds nothing. kNothing: another is, or nothing has come. After
  // kEnd, and for ever after a caller that does not come back, it is always kNothing.
  Step Begin(grpc::ByteBuffer* message) {
    MutexLock lock(&mutex_);
    if (at_work_) return {};
    return TakeLocked(message);
  }
  Step Continue(grpc::ByteBuffer* message) {
    MutexLock lock(&mutex_);
    return TakeLocked(message);
  }

 private:
  Step TakeLocked(grpc::ByteBuffer* message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    at_work_ = !waiting_.empty() || is_over_;
    if (waiting_.empty()) return {.found = is_over_ ? Found::kEnd : Found::kNothing};
    message->Swap(&waiting_.front().bytes);
    absl::Status refused = std::move(waiting_.front().refused);
    waiting_.pop_front();
    const bool begins = !reads_ && !is_over_ && refused.ok();
    reads_ = reads_ || begins;
    return {.found = Found::kMessage, .reads = begins, .refused = std::move(refused)};
  }

  struct Message {
    grpc::ByteBuffer bytes;
    absl::Status refused;
  };

  Mutex mutex_;
  std::deque<Message> waiting_ ABSL_GUARDED_BY(mutex_);
  bool reads_ ABSL_GUARDED_BY(mutex_) = true;  // a read is under way
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;
  bool at_work_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ByteBuffer next_;  // of the read that is under way
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_TENSORS_READ_AHEAD_H_
