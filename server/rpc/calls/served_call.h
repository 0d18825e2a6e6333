#ifndef TENSORD_SERVER_RPC_CALLS_SERVED_CALL_H_
#define TENSORD_SERVER_RPC_CALLS_SERVED_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/runtime/devices/run.h"
#include "google/protobuf/descriptor.h"
#include "server/identity/caller.h"
#include "server/lifecycle/added_bytes.h"
#include "server/observe/records/open_calls.h"
#include "server/observe/records/request_record.h"
#include "server/rpc/calls/service_parts.h"
#include "server/rpc/wire/message_measure.h"

namespace tensord::server {

// The common part of every call, unary or stream: its begin (counted, its caller known, let in or refused), its end
// (counted, logged), its deadline and its cancellation. A member of the call's reactor, which calls Enter first,
// Cancelled from OnCancel, and Ended from OnDone; the parts outlive it.
class ServedCall {
 public:
  ServedCall(const ServiceParts& parts, RpcMethod method, grpc::CallbackServerContext* context);
  ServedCall(const ServedCall&) = delete;
  ServedCall& operator=(const ServedCall&) = delete;

  // Lets the call in, or refuses it; `request_bytes` came with it, as one message if `is_message`.
  absl::Status Enter(int64_t request_bytes, bool is_message);
  // Fails with LIMIT_EXCEEDED, naming message_bytes.
  absl::Status CheckMessage(int64_t message_bytes) const;
  // Measures a message before it is read, by MeasureMessage. For a small one only counts its computed sizes.
  absl::StatusOr<MessageMeasure> Measure(const grpc::ByteBuffer& bytes, const google::protobuf::Descriptor& type) const;
  // Counts in the objects, of that many bytes, that reading the call's first message makes.
  absl::Status EnterObjects(int64_t bytes);
  // Admits the caller of a stream again before each further message, one at a time, if the callers were replaced since.
  absl::Status AdmitAgain();
  // Enters each request of a stream that was let in, as Enter does; it leaves with the same size.
  absl::Status EnterRequest(int64_t request_bytes);
  void LeaveRequest(int64_t request_bytes);
  // The bytes of a request that entered, to be counted out when the last copy of this goes. For LeaveRequest it has
  // none.
  std::shared_ptr<const AddedBytes> HoldBytes(int64_t request_bytes);
  // Holds the bytes that Enter counted in, likewise.
  std::shared_ptr<const AddedBytes> HoldEnteredBytes();
  void Cancelled();
  // Ends the call soon, by an operator's wish; the client is told. On any thread until it has ended.
  void EndByOperator();
  void Ended();

  // Returns the status for gRPC to end the call with, at once: the trailers that go with it are added. The record says
  // so too.
  grpc::Status Outcome(const absl::Status& status);

  const ServiceParts& parts() const { return parts_; }
  const Caller& caller() const { return caller_; }
  RequestRecord& record() { return record_; }
  OpenCall& open() { return open_; }
  // Tells whether the client gave a deadline.
  bool HasDeadline() const;
  // Returns the deadline of a request that came then: the client's, or the server's default. Ten years at the most.
  absl::Time DeadlineOf(absl::Time arrival) const;
  std::string peer() const;
  // Set when the client cancels or goes away.
  const std::shared_ptr<CancelToken>& cancel() const { return cancel_; }

 private:
  // Runs on the thread that polled for the message.
  void React();
  absl::Status CheckMetadata() const;

  const ServiceParts& parts_;
  grpc::CallbackServerContext* const context_;
  const std::shared_ptr<CancelToken> cancel_ = std::make_shared<CancelToken>();
  Caller caller_;
  int64_t admitted_at_ = 0;  // Authenticator::replaced
  bool admitted_ = false;
  bool entered_ = false;  // the gate
  int64_t entered_bytes_ = 0;
  std::shared_ptr<const AddedBytes> held_bytes_;  // instead, where others may keep them
  RequestRecord record_;
  std::atomic<bool> ended_by_operator_{false};
  // Orders the record's writers before Ended. gRPC does too, by means that ThreadSanitizer does not see.
  std::atomic<bool> has_outcome_{false};
  OpenCall open_;  // last: it is seen while everything above is there
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_CALLS_SERVED_CALL_H_
