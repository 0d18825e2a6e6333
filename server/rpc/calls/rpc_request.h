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
// or Reply. Until then it exists; afterwards it must not be touched. What a library throws on the way is caught here
// and becomes INTERNAL.
class RpcRequest {
 public:
  virtual void Fail(const absl::Status& status) = 0;
  virtual void Reply(grpc::ByteBuffer&& bytes) = 0;  // taken, which spares gRPC's buffers a copy
  // Before the answer: keeps what the request was made of until that is on its way, which then need not wait for it to
  // be freed. For what is small and holds nothing that others wait for.
  virtual void Keep(std::shared_ptr<const void> remains) = 0;
  // Before the answer: of that so many bytes are counted until the client has it, or the request has ended.
  virtual void HoldUntilSent(AddedBytes bytes) = 0;
  virtual RequestRecord& record() = 0;
  // What operators see of it.
  virtual OpenCall& open() = 0;
  // Until the last copy of this has gone the request's bytes count as in flight, also after its end. For work that may
  // outlive it with what it was made of, like a compilation. Null where none were counted.
  virtual std::shared_ptr<const AddedBytes> HoldBytes() = 0;

  const ServiceParts& parts() const { return call_.parts(); }
  const ServedCall& call() const { return call_; }
  const Caller& caller() const { return call_.caller(); }
  absl::Time arrival() const { return arrival_; }
  // The client's, or the server's default.
  absl::Time deadline() const { return call_.DeadlineOf(arrival_); }
  // Set when the client cancels or goes away.
  const std::shared_ptr<CancelToken>& cancel() const { return call_.cancel(); }
  // CANCELLED or DEADLINE_EXCEEDED where it is no use to go on.
  absl::Status CheckWanted() const;

  // Has a continuation of the handler run in a turn of the request's tenant. For whoever comes on a thread that is not
  // the tenant's to use: one that compiles, or that settled what the request waited for.
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
