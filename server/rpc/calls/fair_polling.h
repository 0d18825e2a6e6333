#ifndef TENSORD_SERVER_RPC_CALLS_FAIR_POLLING_H_
#define TENSORD_SERVER_RPC_CALLS_FAIR_POLLING_H_

#include <grpcpp/completion_queue.h>

namespace tensord::server {

// Has threads of gRPC look after all connections, however much one of them brings. In gRPC 1.51 a polling thread first
// runs all due callbacks, and those that these make due, such as the next read of a stream whose messages have come
// already. So a few streams of small messages kept all other connections waiting for seconds. Here a thread polls once
// every so many reactions, without waiting: others' messages take their place among the callbacks. See docs/why/0061.
//
// Thread-safe.
class FairPolling {
 public:
  // The most reactions of a thread between two polls.
  static constexpr int kReactions = 16;

  FairPolling() = default;
  ~FairPolling();
  FairPolling(const FairPolling&) = delete;
  FairPolling& operator=(const FairPolling&) = delete;

  // Called at the begin of a call or of its next message, under no lock. Some nanoseconds, mostly.
  void React();

 private:
  // A queue without events. A thread that asks it polls for all connections of the process.
  grpc::CompletionQueue queue_;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_CALLS_FAIR_POLLING_H_
