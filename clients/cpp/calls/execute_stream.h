#ifndef TENSORD_CLIENTS_CPP_CALLS_EXECUTE_STREAM_H_
#define TENSORD_CLIENTS_CPP_CALLS_EXECUTE_STREAM_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/cpp/calls/arrival.h"
#include "clients/cpp/calls/first_failure.h"
#include "clients/cpp/connection/cancellation.h"
#include "clients/cpp/shared_memory/result_sizes.h"
#include "clients/cpp/shared_memory/shared_call.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "tensord/execute_call.h"
#include "tensord/pending_answer.h"
#include "tensord/shared_memory.h"

namespace tensord::client {

// The stream behind a Pipeline, whose header tells of its states, waits and errors.
class ExecuteStream {
 public:
  // Memory for large tensors, as in Client::Execute. Empty: they go in messages.
  struct Sharing {
    std::shared_ptr<SharedMemory> memory;
    std::shared_ptr<ResultSizes> sizes;
    absl::Time deadline = absl::InfiniteFuture();  // of the stream
  };

  // Asks the stream's server for its fingerprint of a program, after compiling an unknown one.
  using AskForProgram = std::function<absl::StatusOr<std::string>(const std::string& fingerprint)>;

  ExecuteStream(grpc::GenericStub& stub, std::unique_ptr<grpc::ClientContext> context, std::string target,
                std::string session, AskForProgram ask_for_program, Sharing sharing);
  ~ExecuteStream();
  ExecuteStream(const ExecuteStream&) = delete;
  ExecuteStream& operator=(const ExecuteStream&) = delete;

  absl::StatusOr<PendingAnswer> Submit(const ExecuteCall& call);
  absl::Status Finish();
  void Cancel();

 private:
  // kLate: the transport should have ended the stream.
  enum class Step : uintptr_t { kStart, kRead, kWrite, kEnd, kLate };
  // State that the transport uses until it has handed out its last step.
  struct Transport;
  static void* TagOf(Step step) { return reinterpret_cast<void*>(step); }

  absl::StatusOr<std::string> FindProgram(const std::string& fingerprint);
  // Handles gRPC's events, on the pipeline's thread.
  void Drive();
  void Take(grpc::ByteBuffer* response);
  void Wrote(bool ok);
  void End(const grpc::Status& status);
  // Gives the transport kEndWithin (transport_end.h) to end. Under the lock.
  void Hurry();
  // Ends the queue. Under the lock, when no step but those of the alarms is under way.
  void Shut();
  // Tells whether the pipeline is over without the transport. Called when the transport is late.
  bool IsAbandoned();
  // Writes the next call unless a write is under way. Releases the lock meanwhile.
  void WriteNext(std::unique_lock<std::mutex> lock);
  bool HasRoom() const;
  // Moves a call's large tensors to shared memory, and names their places in the request. Null if the memory's server
  // has gone: a stream cannot repeat a refused call in messages, because other calls follow it.
  std::unique_ptr<SharedCall> Share(const ExecuteCall& call, v1::ExecuteRequest* request) const;

  const std::string target_, session_;
  const AskForProgram ask_for_program_;
  const Sharing sharing_;
  const std::shared_ptr<FirstFailure> unseen_;
  std::unique_ptr<Transport> transport_;
  absl::Status broken_;  // failure of a message that is no answer; the thread's own

  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t last_id_ = 0;
  absl::flat_hash_map<std::string, std::string> known_programs_;
  absl::flat_hash_map<uint64_t, std::shared_ptr<Arrival>> unanswered_;
  absl::flat_hash_set<Cancellation*> asking_;  // for programs
  std::deque<grpc::ByteBuffer> unsent_;        // in front the one that is being written
  size_t unsent_bytes_ = 0;
  bool is_writing_ = true;  // as long as the call has not begun
  bool has_sent_ = false;   // the write that is under way is the front of `unsent_`
  bool can_write_ = true;
  bool is_closing_ = false;
  bool is_half_closed_ = false;
  bool is_over_ = false;
  bool is_cancelled_ = false;
  bool is_hurried_ = false;
  bool is_shut_ = false;
  bool is_abandoned_ = false;  // `transport_` has steps that never came back
  absl::Status end_;           // of what is over
  std::thread thread_;
};

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_CALLS_EXECUTE_STREAM_H_
