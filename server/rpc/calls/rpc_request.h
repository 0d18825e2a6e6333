#ifndef TENSORD_SERVER_RPC_CALLS_RPC_REQUEST_H_
#define TENSORD_SERVER_RPC_CALLS_RPC_REQUEST_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/base/steady_time.h"
#include "server/lifecycle/added_bytes.h"
#include "server/rpc/calls/served_call.h"

namespace tensord::server {

// An answer that a client leaves unread is held; smaller ones cost no more than their calls.
inline constexpr int64_t kCountedAnswerBytes = 16 << 10;

// A request that is being answered: a unary call, or one of the many of a stream. Owns itself.
//
// A handler gets it on a gRPC thread, must not block, and ends it, there or on any other thread, with exactly one Fail
// or Reply. Until then it exists; afterwards it must not be touched. A library's exception on the way is caught here
// and becomes INTERNAL.
class RpcRequest {
 public:
  virtual void Fail(const absl::Status& status) = 0;
  virtual void Reply(grpc::ByteBuffer&& bytes) = 0;  // taken, which spares gRPC's buffers a copy
  // Keeps the remains of the request until the answer, which comes later, is on its way; so the answer need not wait
  // for them to be freed. For small things that hold nothing others wait for.
  virtual void Keep(std::shared_ptr<const void> remains) = 0;
  // Counts the bytes of an answer that is about to be given, until the client has it, or the request has ended.
  virtual void HoldUntilSent(AddedBytes bytes) = 0;
  virtual RequestRecord& record() = 0;
  // Returns the operators' view of it.
  virtual OpenCall& open() = 0;
  // Keeps the request's bytes counted as in flight until the last copy of the result has gone, also after its end. For
  // work that may outlive the request with its data, like a compilation. Null if none were counted.
  virtual std::shared_ptr<const AddedBytes> HoldBytes() = 0;

  const ServiceParts& parts() const { return call_.parts(); }
  const ServedCall& call() const { return call_; }
  const Caller& caller() const { return call_.caller(); }
  absl::Time arrival() const { return arrival_; }
  // Returns the client's, or the server's default.
  absl::Time deadline() const { return call_.DeadlineOf(arrival_); }
  // Set when the client cancels or goes away.
  const std::shared_ptr<CancelToken>& cancel() const { return call_.cancel(); }
  // Fails with CANCELLED or DEADLINE_EXCEEDED if it is no use to go on.
  absl::Status CheckWanted() const;

  // Has a continuation of the handler run in a turn of the request's tenant. For callers on a thread that is not the
  // tenant's to use: one that compiles, or that settled the event the request waited for.
  void ContinueInTurn(std::function<void()> continuation);

  // Runs a continuation of the handler on another thread. It ends the request, or hands it on, as its last step.
  template <typename Continuation>
  void Continue(Continuation&& continuation) {
    try {
      continuation();
    } catch (const std::exception& error) {
      FailInternally(error.what());
    }
  }

 protected:
  // The call outlives it, and may be made after it.
  explicit RpcRequest(ServedCall& call) : call_(call) {}
  ~RpcRequest() = default;

  void FailInternally(absl::string_view what);

 private:
  ServedCall& call_;
  const absl::Time arrival_ = SteadyNow();
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_CALLS_RPC_REQUEST_H_
