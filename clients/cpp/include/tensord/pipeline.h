#ifndef TENSORD_PIPELINE_H_
#define TENSORD_PIPELINE_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tensord/execute_call.h"
#include "tensord/pending_answer.h"

namespace tensord::client {

class ExecuteStream;

struct PipelineOptions {
  // Session of calls without one. Behind a balancer the stream goes to its server.
  std::string session = {};
  // Deadline of the whole stream, from its opening. None: the client's.
  std::optional<absl::Duration> deadline = {};
};

// Stream of calls without a round trip between them. A call may use a result that an earlier call keeps, before the
// earlier one has run. Answers come as they are ready. Made by Client::OpenPipeline; the client may be destroyed first.
//
//   std::unique_ptr<Pipeline> pipeline = session.OpenPipeline();
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
  explicit Pipeline(std::unique_ptr<ExecuteStream> stream);
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
  const std::unique_ptr<ExecuteStream> stream_;
};

}  // namespace tensord::client

#endif  // TENSORD_PIPELINE_H_
