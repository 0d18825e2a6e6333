#include "clients/load/timer_queue.h"

#include <algorithm>

namespace tensord::load {

void TimerQueue::Add(const Entry& entry) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool is_earliest = entries_.empty() || entry.at < entries_.top().at;
  entries_.push(entry);
  if (is_earliest) changed_.notify_one();
}

void TimerQueue::Wake() {
  const std::lock_guard<std::mutex> lock(mutex_);
  is_woken_ = true;
  changed_.notify_one();
}

std::vector<TimerQueue::Entry> TimerQueue::WaitUntil(Clock::time_point until) {
  std::unique_lock<std::mutex> lock(mutex_);
  Clock::time_point now = Clock::now();
  while (!is_woken_ && now < until && (entries_.empty() || now < entries_.top().at)) {
    changed_.wait_until(lock, entries_.empty() ? until : std::min(until, entries_.top().at));
    now = Clock::now();
  }
  is_woken_ = false;
  std::vector<Entry> due;
  for (; !entries_.empty() && entries_.top().at <= now; entries_.pop()) due.push_back(entries_.top());
  return due;
}

}  // namespace tensord::load
