#ifndef TENSORD_CLIENTS_CPP_CONNECTION_CANCELLATION_H_
#define TENSORD_CLIENTS_CPP_CONNECTION_CANCELLATION_H_

#include <condition_variable>
#include <mutex>

#include "absl/time/time.h"
#include "grpcpp/alarm.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"

namespace tensord::client {

// The end of a thread's work before its time, wished for by another thread. One piece of work may be many calls and
// pauses; it finds its cancellation by the thread, since a call never changes the thread. Shared by both; thread-safe.
//
//   const Cancellation::Scope scope(&cancellation);   // this thread
//   client.PutTensor(...);                            // ends soon after cancellation.Cancel()
class Cancellation {
 public:
  // Names the cancellation of this thread's work until the scope ends. Null shields the work from an outer scope's.
  class Scope {
   public:
    explicit Scope(Cancellation* cancellation);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Cancellation* const outer_;
  };

  Cancellation() = default;
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  // Cancels the call under way and all that follow, and ends the pause under way. Returns at once.
  void Cancel();

 private:
  friend bool AwaitStep(grpc::ClientContext&, grpc::CompletionQueue&, gpr_timespec, bool*);
  friend bool IsCancelled();
  friend bool PauseFor(absl::Duration);

  // A wait for the transport.
  struct Step {
    void Hurry();

    grpc::ClientContext* context;
    grpc::CompletionQueue* queue;
    grpc::Alarm late = {};
    bool is_hurried = false;
  };

  std::mutex mutex_;
  std::condition_variable cancelled_;
  bool is_cancelled_ = false;
  Step* step_ = nullptr;  // under way
};

// Waits for the only step that is under way in a queue. False if it has not come by `latest_end`, or within kEndWithin
// (transport_end.h) of the thread's cancellation: it may still come, so that the queue must be kept.
bool AwaitStep(grpc::ClientContext& context, grpc::CompletionQueue& queue, gpr_timespec latest_end, bool* ok);

// Tells whether the thread's work is cancelled.
bool IsCancelled();

// Sleeps. False, and at once, if the thread's work is cancelled.
bool PauseFor(absl::Duration pause);

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_CONNECTION_CANCELLATION_H_
