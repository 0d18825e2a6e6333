#ifndef TENSORD_SERVER_RPC_CALLS_POLLING_THREADS_H_
#define TENSORD_SERVER_RPC_CALLS_POLLING_THREADS_H_

#include <grpcpp/channel.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "engine/base/mutex.h"

namespace tensord::server {

// Lets only as many of gRPC's threads poll as there is work for. gRPC 1.51 keeps half as many as there are processors
// for its callbacks, at least two, and whichever takes an event wakes the next to poll: while calls are few that
// handover is a third of a call's time and half of its work. Here one of them polls, and the others sleep inside a
// callback of their own until reactions take long or come so fast that one thread is busy with them. See docs/why/0043.
//
// One object a process, whose threads they are; from before its first server until after the last. Thread-safe.
class PollingThreads {
 public:
  // Waits until the threads sleep, some milliseconds. Threads that do not as expected are left alone.
  PollingThreads();
  ~PollingThreads();
  PollingThreads(const PollingThreads&) = delete;
  PollingThreads& operator=(const PollingThreads&) = delete;

  // The bytes from which on a reaction's reads or writes are too long for others to wait for.
  static constexpr int64_t kLongBytes = 64 * 1024;

  // A span in which another thread polls, if one is left. On the stack of a reaction; inside another it adds nothing.
  class LongReaction {
   public:
    // Does nothing if `threads` is null.
    explicit LongReaction(PollingThreads* threads);
    // Counts as long by the number of bytes that the reaction reads or writes.
    LongReaction(PollingThreads* threads, int64_t bytes) : LongReaction(bytes < kLongBytes ? nullptr : threads) {}
    ~LongReaction();
    LongReaction(const LongReaction&) = delete;
    LongReaction& operator=(const LongReaction&) = delete;

   private:
    PollingThreads* const threads_;
  };

  // Looks now and then whether the threads are too few or too many: at the begin of a call or of its next message, on
  // the thread that polled for it. Some nanoseconds, mostly.
  void React();

  // Rests before a call is told that runs leave it no room, on the thread that polled for it. If the thread had waited
  // for that call, it sleeps a little, so that the next calls come, and are answered, together. A call alone finds none
  // of its code in the caches and wakes both sides twice, all at the expense of the runs.
  static void RestBeforeRefusal();
  // Returns the rest, in ns, if the last such call was done `idle_ns` ago.
  static int64_t Rest(int64_t idle_ns);

  int num_threads() const { return num_threads_; }
  // Returns the threads that poll, or react.
  int num_awake() const;

  // The load of one of the threads, over some milliseconds.
  struct Load {
    double busy = 0;  // of the time, at most 1
    double sleeps_per_call = 0;
  };
  // Returns how many should be awake if `awake` are, and one of them has that load.
  static int Wanted(int awake, const Load& load);

 private:
  // Has gRPC run it on one of the threads.
  void Post(std::function<void()> callback);
  void SleepHere();
  // Tells whether that number sleeps within some seconds.
  bool AwaitSleeping(int number);
  bool AwaitProbe();
  void WakeAll();
  void Adapt(const Load& load);
  void BeginLongReaction();
  void EndLongReaction();
  int AwakeLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WakeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int num_threads_;
  const std::shared_ptr<grpc::Channel> nowhere_;  // whose calls fail at once, with a callback
  mutable Mutex mutex_;
  CondVar woken_;    // for those that sleep
  CondVar changed_;  // for who waits for the threads
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  int posted_ ABSL_GUARDED_BY(mutex_) = 0;    // callbacks that have not returned
  int falling_ ABSL_GUARDED_BY(mutex_) = 0;   // of them those that will sleep
  int spared_ ABSL_GUARDED_BY(mutex_) = 0;    // of these so many need not any more
  int sleeping_ ABSL_GUARDED_BY(mutex_) = 0;  // threads
  int wakes_ ABSL_GUARDED_BY(mutex_) = 0;     // so many of them are to wake
  int long_reactions_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t changed_ns_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_CALLS_POLLING_THREADS_H_
