#ifndef TENSORD_CLIENTS_LOAD_CALL_H_
#define TENSORD_CLIENTS_LOAD_CALL_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "clients/load/channel.h"
#include "clients/load/load_plan.h"
#include "clients/load/server_times.h"
#include "clients/load/split_mix.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"

namespace tensord::load {

using Clock = std::chrono::steady_clock;

// A place for one call after another: idle → (Prepare) drawn → (Send) under way → (its queue hands it out, Finish)
// idle. The plan and the queue must outlive it. Thread-safe; Prepare, Send and Finish come in this order, MeetFate and
// CutOff at any time.
class Call {
 public:
  // The load's interference with a call before it is answered.
  enum class Fate { kNone, kCancel, kDisconnect };

  struct Draft {
    Fate fate = Fate::kNone;
    uint64_t number = 0;
    double moment = 0;  // when the fate is to be met, in [0, 1) of the time that there is for it
  };

  struct Outcome {
    enum class End { kOk, kFailed, kCancelled, kDisconnected, kUnfinished };

    End end = End::kOk;
    size_t workload = 0;
    Clock::time_point due;
    Clock::time_point sent;
    Clock::time_point ended;
    absl::StatusCode code = absl::StatusCode::kOk;
    std::string reason;  // the server's
    ServerTimes server;  // of a call that succeeded, as received_bytes
    int64_t received_bytes = 0;
    bool failed_dial = false;  // it should have been cut, and went by an ordinary connection instead

    // No server answered: another call at once would do no better.
    bool is_unreachable() const {
      return end == End::kFailed && code == absl::StatusCode::kUnavailable && reason.empty();
    }
  };

  Call(const LoadPlan* plan, grpc::CompletionQueue* queue, uint64_t seed) : plan_(plan), queue_(queue), random_(seed) {}

  // Draws the workload and the fate of the next call. Connects, where it is to be cut.
  Draft Prepare(Clock::time_point due);
  // Sends it, over `stub` unless it has a connection of its own.
  void Send(grpc::GenericStub& stub);
  // Carries out the fate of call `number`, unless it is answered already.
  void MeetFate(uint64_t number);
  // Cancels the call under way, because the run is over.
  void CutOff();
  // Returns the outcome of the call that the queue handed out just now.
  Outcome Finish();
  // Returns the outcome of a call that the queue has not handed out and that nobody waits for any more: unfinished.
  // None if there is none. The call and its queue are to be kept for ever.
  std::optional<Outcome> GiveUp();

 private:
  enum class State { kIdle, kDrawn, kUnderWay };

  size_t DrawWorkload();
  // Carries out an interference that was asked for before the call was sent, or is asked for now.
  void End();

  const LoadPlan* const plan_;
  grpc::CompletionQueue* const queue_;

  // Held while gRPC is called, which answers by the queue alone.
  std::mutex mutex_;
  SplitMix random_;
  uint64_t number_ = 0;
  Fate fate_ = Fate::kNone;
  State state_ = State::kIdle;
  bool has_met_fate_ = false;
  bool is_cut_off_ = false;
  bool failed_dial_ = false;
  size_t workload_ = 0;
  Clock::time_point due_;
  Clock::time_point sent_;
  std::optional<CuttableChannel> own_channel_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader_;
  grpc::ByteBuffer response_;
  grpc::Status status_;
};

}  // namespace tensord::load

#endif  // TENSORD_CLIENTS_LOAD_CALL_H_
