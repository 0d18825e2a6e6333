#ifndef TENSORD_CLIENTS_LOAD_TIMER_QUEUE_H_
#define TENSORD_CLIENTS_LOAD_TIMER_QUEUE_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <queue>
#include <vector>

namespace tensord::load {

class Call;

// Actions on calls, by time. Thread-safe; one thread waits.
class TimerQueue {
 public:
  using Clock = std::chrono::steady_clock;

  struct Entry {
    Clock::time_point at;
    Call* call = nullptr;
    uint64_t number = 0;  // of the call; 0: another one is to be sent

    bool operator>(const Entry& other) const { return at > other.at; }
  };

  void Add(const Entry& entry);
  // Makes WaitUntil return now.
  void Wake();
  // Waits until then, or an entry is due, or somebody calls Wake. Returns the due entries, the earliest first.
  std::vector<Entry> WaitUntil(Clock::time_point until);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> entries_;
  bool is_woken_ = false;
};

}  // namespace tensord::load

#endif  // TENSORD_CLIENTS_LOAD_TIMER_QUEUE_H_
