#ifndef TENSORD_SERVER_RPC_CALLS_FAIR_POLLING_H_
#define TENSORD_SERVER_RPC_CALLS_FAIR_POLLING_H_

#include <grpcpp/completion_queue.h>

namespace tensord::server {

// Has threads of gRPC look after all connections, however much one of them brings. In gRPC 1.51 a thread that polls
// first runs all callbacks that are due, also those that these make due, as the next read of a stream does whose
// messages have come already; so a few streams of small messages kept all other connections waiting for seconds. Here
// every so many reactions a thread polls once, without waiting: what others have sent takes its place among the
// callbacks. See docs/why/0061.
//
// Thread-safe.
class FairPolling {
 public:
  // So many reactions of a thread are at most between two polls.
  static constexpr int kReactions = 16;

  FairPolling() = default;
  ~FairPolling();
  FairPolling(const FairPolling&) = delete;
  FairPolling& operator=(const FairPolling&) = delete;

  // At the begin of a call or of its next message, under no lock. Some nanoseconds, mostly.
  void React();

 private:
  // Nothing ever comes here. Whoever asks it polls for all connections of the process.
  grpc::CompletionQueue queue_;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_CALLS_FAIR_POLLING_H_
