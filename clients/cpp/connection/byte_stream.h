#ifndef TENSORD_CLIENTS_CPP_CONNECTION_BYTE_STREAM_H_
#define TENSORD_CLIENTS_CPP_CONNECTION_BYTE_STREAM_H_

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"

namespace tensord::client {

// A call that sends and receives bytes. One step is under way at a time: a started step must be waited for. Bytes move
// only while the caller is in here, or the transport has room for written bytes.
//
//   begun (the constructor) → over (Finish)
//
// Thread-compatible. No wait in here is longer than kEndWithin beyond the deadline, Cancel, the cancellation of
// the thread's work and the first step that failed: after that every step fails, and the call ended late.
class ByteStream {
 public:
  ByteStream(grpc::GenericStub& stub, std::unique_ptr<grpc::ClientContext> context, const char* method);
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  void StartWrite(const grpc::ByteBuffer& message);
  void StartRead();
  // Moves everything that can move at once. For work that takes longer than the transport's buffers last.
  void Turn();
  // False: the call is over.
  bool Wait();
  // Returns the message that was waited for. Before the next read is started.
  grpc::ByteBuffer TakeMessage();
  void WritesDone();
  // Gives the call up. Started steps are still to be waited for, and the end.
  void Cancel();
  absl::Status Finish();
  // Tells whether a step never came back, so that the server may not have heard of the end.
  bool is_abandoned() const { return is_abandoned_; }

 private:
  // The part that the transport holds on to until it has handed out the last step.
  struct Transport;

  std::unique_ptr<Transport> transport_;
  gpr_timespec latest_end_;
  std::optional<bool> ended_;  // the step, during a turn
  bool is_cancelled_ = false;  // by Cancel
  bool is_abandoned_ = false;  // `transport_` has a step that never came back
};

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_CONNECTION_BYTE_STREAM_H_
