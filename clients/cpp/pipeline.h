#ifndef TENSORD_CLIENTS_CPP_PIPELINE_H_
#define TENSORD_CLIENTS_CPP_PIPELINE_H_

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
#include "clients/cpp/arrival.h"
#include "clients/cpp/execute_call.h"
#include "clients/cpp/first_failure.h"
#include "clients/cpp/pending_answer.h"
#include "clients/cpp/result_sizes.h"
#include "clients/cpp/shared_call.h"
#include "clients/cpp/shared_memory.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"

namespace tensord::client {

struct PipelineOptions {
  // That of calls which name none. Behind a balancer the stream goes to its server.
  std::string session;
  // Of all calls together, from now on. None: the client's.
  std::optional<absl::Duration> deadline;
};

// Calls that follow each other over one stream without a round trip between them: one may use what an earlier one keeps
// before that has run. Answers come as they are ready. Made by Client::OpenPipeline; the client may go before it.
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
// A call that fails fails its own answer, and, with HANDLE_POISONED, those that use what it was to keep. Where the
// stream breaks, all that is unanswered fails with its status, and some of it may have run. Answers are received
// whether somebody waits for them or not, and stay in memory until then, so that the server is never held up.
//
// Large tensors go through shared memory where the client has some. An argument that lies there is read when its call's
// turn comes, and is not to be written to before that is answered.
//
//   open → closing (Finish) → over          open, closing → over (Cancel, the destructor, the server, the deadline)
//
// Thread-safe, but for the destructor: it cancels what is unanswered and does not wait for the server. No wait in here
// is longer than kEndWithin (transport_end.h) beyond the deadline, Cancel and the stream's break, whatever the
// transport does: the pipeline is over without it then.
class Pipeline {
 public:
  // Where large tensors lie: all as Client::Execute does it. Nothing, and they go in messages.
  struct Sharing {
    std::shared_ptr<SharedMemory> memory;
    std::shared_ptr<ResultSizes> sizes;
    absl::Time deadline = absl::InfiniteFuture();  // of the stream
  };

  // By which fingerprint the stream's server knows a program. Asks it, and has it compile what it does not know.
  using AskForProgram = std::function<absl::StatusOr<std::string>(const std::string& fingerprint)>;

  Pipeline(grpc::GenericStub& stub, std::unique_ptr<grpc::ClientContext> context, std::string target,
           std::string session, AskForProgram ask_for_program, Sharing sharing);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Sends a call; those of one thread go in their order. Waits while as many as kMostUnsent, or as many bytes, are on
  // their way out because the server takes no more, and, at the first call of a program, until the server has said
  // whether it knows it: where it does not, it compiles it first, if the client has. Where the server forgets one later
  // that call fails with the reason PROGRAM_NOT_FOUND, and the next one asks again. Refuses what cannot be sent, with
  // INVALID_ARGUMENT: also a deadline of its own, as the stream's is that of all. FAILED_PRECONDITION after Finish;
  // what the stream ended with after that.
  absl::StatusOr<PendingAnswer> Submit(const ExecuteCall& call);

  // Waits until all is answered and ends the stream. What the stream ended with, if not well; then the failure of the
  // earliest call whose PendingAnswer is gone and was not waited for. May be called again.
  absl::Status Finish();

  // Gives up what is unanswered: CANCELLED. Returns at once.
  void Cancel();

  // Calls, and bytes of them, that may wait to be taken by the server; one call may be as large as it likes.
  static constexpr size_t kMostUnsent = 64;
  static constexpr size_t kMostUnsentBytes = size_t{32} << 20;

 private:
  // kLate: the transport should have ended the stream.
  enum class Step : uintptr_t { kStart, kRead, kWrite, kEnd, kLate };
  // What the transport holds on to until it has handed out the last step.
  struct Transport;
  static void* TagOf(Step step) { return reinterpret_cast<void*>(step); }

  absl::StatusOr<std::string> FindProgram(const std::string& fingerprint);
  // The thread: all of what gRPC says.
  void Drive();
  void Take(grpc::ByteBuffer* response);
  void Wrote(bool ok);
  void End(const grpc::Status& status);
  // From now on the transport has kEndWithin (transport_end.h). Under the lock.
  void Hurry();
  // Ends the queue. Under the lock, when no step but those of the alarms is under way.
  void Shut();
  // Whether the pipeline is over without the transport. Called when that is late.
  bool IsAbandoned();
  // Writes what is next, unless a write is under way. Releases the lock for that.
  void WriteNext(std::unique_lock<std::mutex> lock);
  bool HasRoom() const;
  // What of a call goes through shared memory, for which it asks in the request. Null once the memory's server has
  // gone: what a stream has refused cannot be said again in messages, since other calls follow it.
  std::unique_ptr<SharedCall> Share(const ExecuteCall& call, v1::ExecuteRequest* request) const;

  const std::string target_, session_;
  const AskForProgram ask_for_program_;
  const Sharing sharing_;
  const std::shared_ptr<FirstFailure> unseen_;
  std::unique_ptr<Transport> transport_;
  absl::Status broken_;  // what the server sent that is no answer; the thread's own

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

#endif  // TENSORD_CLIENTS_CPP_PIPELINE_H_
