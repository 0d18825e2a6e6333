#include "server/tracing/span_queue.h"

#include <chrono>
#include <iterator>
#include <utility>

namespace tensord::server {

bool SpanQueue::Push(TracedRequest request) {
  const int64_t count = SpanCount(request.record), bytes = HeldBytes(request);
  bool wake = false;
  {
    MutexLock lock(&mutex_);
    if (closed_ || count > max_spans_ - spans_ || bytes > max_spans_ * kSpanBytes - bytes_) return false;
    spans_ += count;
    bytes_ += bytes;
    // Waking the taker for each call would cost more than the call's part of its work.
    wake = waiting_.empty() || (wanted_ > 0 && spans_ >= wanted_);
    waiting_.push_back(std::move(request));
  }
  if (wake) changed_.Signal();
  return true;
}

std::vector<TracedRequest> SpanQueue::Take(int64_t spans, absl::Duration wait) {
  MutexLock lock(&mutex_);
  while (waiting_.empty() && !closed_) changed_.Wait(&mutex_);
  const auto until = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(wait);
  wanted_ = spans;
  while (spans_ < spans && !closed_ && changed_.WaitUntil(&mutex_, until)) {
  }
  wanted_ = 0;
  std::vector<TracedRequest> taken;
  for (int64_t count = 0; !waiting_.empty();) {
    const int64_t more = SpanCount(waiting_.front().record);
    if (!taken.empty() && count + more > spans) break;
    count += more;
    spans_ -= more;
    bytes_ -= HeldBytes(waiting_.front());
    taken.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  return taken;
}

void SpanQueue::Close() {
  {
    MutexLock lock(&mutex_);
    closed_ = true;
  }
  changed_.SignalAll();
}

std::vector<TracedRequest> SpanQueue::Clear() {
  MutexLock lock(&mutex_);
  std::vector<TracedRequest> left(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(waiting_.end()));
  waiting_.clear();
  spans_ = 0;
  bytes_ = 0;
  return left;
}

}  // namespace tensord::server
