#ifndef TENSORD_PIPELINE_H_
#define TENSORD_PIPELINE_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "tensord/execute_call.h"
#include "tensord/pending_answer.h"
#include "tensord/shared_memory.h"

namespace tensord::client {

class Arrival;
class FirstFailure;
class ResultSizes;
class SharedCall;

struct PipelineOptions {
  // Session of calls without one. Behind a balancer the stream goes to its server.
  std::string session;
  // Deadline of the whole stream, from its opening. None: the client's.
  std::optional<absl::Duration> deadline;
};

// Stream of calls without a round trip between them. A call may use a result that an earlier call keeps, before the
// earlier one has run. Answers come as they are ready. Made by Client::OpenPipeline; the client may be destroyed first.
//
//   std::unique_ptr<Pipeline> pipeline = client->OpenPipeline({.session = session.id()});
//   for (const HostTensor& batch : batches) {
//     const auto loss = pipeline->Submit({.fingerprint = step,
//                                         .arguments = {Argument::Donated("state"), batch},
//                                         .results = {ResultPlan::Keep("state"), ResultPlan::Discard()}});
//     if (!loss.ok()) return loss.status();
//   }
//   return pipeline->Finish();
//
// A failed call fails its own answer and, with HANDLE_POISONED, the calls that use its kept results. If the stream
// breaks, all unanswered calls fail with its status; some of them may have run. Answers are received at once, whether
// the caller waits or not, and stay in memory until it does, so the server is never held up.
//
// Large tensors go through shared memory if the client has some. The server reads an argument there when its call's
// turn comes: do not write to it before the answer.
//
//   open → closing (Finish) → over          open, closing → over (Cancel, the destructor, the server, the deadline)
//
// Thread-safe except for the destructor, which cancels unanswered calls and does not wait for the server. Every wait
// ends at most two seconds after the deadline, Cancel or a break of the stream. The pipeline is over
// then, even if the transport still hangs.
class Pipeline {
 public:
  // Memory for large tensors, as in Client::Execute. Empty: they go in messages.
  struct Sharing {
    std::shared_ptr<SharedMemory> memory;
    std::shared_ptr<ResultSizes> sizes;
    absl::Time deadline = absl::InfiniteFuture();  // of the stream
  };

  // Asks the stream's server for its fingerprint of a program, after compiling an unknown one.
  using AskForProgram = std::function<absl::StatusOr<std::string>(const std::string& fingerprint)>;

  Pipeline(grpc::GenericStub& stub, std::unique_ptr<grpc::ClientContext> context, std::string target,
           std::string session, AskForProgram ask_for_program, Sharing sharing);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Sends a call; calls of one thread keep their order. Waits while kMostUnsent calls, or kMostUnsentBytes, are unsent
  // because the server takes no more. The first call of a program also waits for the server to look the program up, and
  // to compile it if this client has its graph. If the server forgets the program later, one call fails with
  // PROGRAM_NOT_FOUND, and the next one asks again. INVALID_ARGUMENT for a call that cannot be sent, also for one with
  // a deadline of its own; FAILED_PRECONDITION after Finish; the stream's status after its end.
  absl::StatusOr<PendingAnswer> Submit(const ExecuteCall& call);

  // Waits for all answers and ends the stream. Returns the stream's failure, or else the failure of the earliest call
  // whose PendingAnswer was destroyed without a wait. May be called again.
  absl::Status Finish();

  // Cancels unanswered calls: CANCELLED. Returns at once.
  void Cancel();

  // Bounds on unsent calls and their bytes. A single call may be larger.
  static constexpr size_t kMostUnsent = 64;
  static constexpr size_t kMostUnsentBytes = size_t{32} << 20;

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
  std::deque<grpc::ByteBuffer> unsent_;  // in front the one that is being written
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

#endif  // TENSORD_PIPELINE_H_
