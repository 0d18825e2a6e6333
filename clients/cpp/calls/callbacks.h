#ifndef TENSORD_CLIENTS_CPP_CALLS_CALLBACKS_H_
#define TENSORD_CLIENTS_CPP_CALLS_CALLBACKS_H_

#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace tensord::client {

// The callbacks of one event, each called once and in the order in which they were added. Its owner guards it by a
// mutex, and outlives the calls.
class Callbacks {
 public:
  bool empty() const { return waiting_.empty(); }
  void Add(std::function<void()> callback) { waiting_.push_back(std::move(callback)); }

  // Calls all, after the event, and releases the lock for each. Where another thread is at it, they are left to that
  // thread. A callback that adds one and calls this has it called at once.
  void Call(std::unique_lock<std::mutex>& lock) {
    const std::thread::id none, own = std::this_thread::get_id();
    if (caller_ != none && caller_ != own) return;
    const std::thread::id outer = std::exchange(caller_, own);
    while (!waiting_.empty()) {
      std::function<void()> callback = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      callback();
      callback = nullptr;  // its objects are the caller's, and may do anything
      lock.lock();
    }
    caller_ = outer;
  }

 private:
  std::deque<std::function<void()>> waiting_;
  std::thread::id caller_;  // of those that are called now
};

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_CALLS_CALLBACKS_H_
