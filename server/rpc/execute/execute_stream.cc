#include "server/rpc/execute/execute_stream.h"

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/steady_time.h"
#include "server/observe/records/flight_recorder.h"
#include "server/rpc/calls/polling_threads.h"
#include "server/rpc/calls/reading_turn.h"
#include "server/rpc/execute/execution.h"
#include "server/rpc/execute/received_execute.h"
#include "server/rpc/execute/streamed_request.h"
#include "server/rpc/tensors/tensor_part.h"
#include "server/tracing/tracer.h"

namespace tensord::server {
namespace {

// After so many steps a turn takes the next: some eight requests' reads and writes.
constexpr uint64_t kStepsBetweenTurns = 16;
constexpr absl::Duration kAskAgain = absl::Milliseconds(10);

}  // namespace

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* ExecuteStream::Start(
    const ServiceParts& parts, grpc::CallbackServerContext* context) {
  const auto stream = std::make_shared<ExecuteStream>(parts, context);
  stream->self_ = stream;
  const absl::Status entered = stream->call_.Enter(0, /*is_message=*/false);
  if (!entered.ok()) {
    MutexLock lock(&stream->mutex_);
    stream->EndLocked(entered);
  }
  stream->call_.open().At(Stage::kReceive);
  stream->WatchProgress(context);
  stream->Step();
  parts.admission.gate->Watch(stream);
  return stream.get();
}

ExecuteStream::ExecuteStream(const ServiceParts& parts, grpc::CallbackServerContext* context)
    : call_(parts, RpcMethod::kExecuteStream, context),
      peer_(parts.observers.log->LogsRequests() ? context->peer() : "") {}

void ExecuteStream::WatchProgress(grpc::CallbackServerContext* context) {
  // The client's own is kept by gRPC.
  if (call_.HasDeadline()) return;
  stall_ = std::make_shared<StallAlarm>(call_.parts().admission.alarms, call_.parts().admission.default_deadline,
                                        [context] { context->TryCancel(); });
}

absl::Duration ExecuteStream::TimeOfMore(size_t bytes) const {
  return static_cast<int64_t>(bytes) / kMaxChunkBytes * absl::Duration(call_.parts().admission.default_deadline);
}

void ExecuteStream::OnDrain() {
  {
    MutexLock lock(&mutex_);
    EndLocked(Refuse(Refusal::kServerDraining, "the server is shutting down; what was in flight is answered"));
  }
  Step();
}

void ExecuteStream::EndLocked(const absl::Status& status) {
  if (ending_) return;
  ending_ = true;
  end_ = status;
}

void ExecuteStream::OnReadDone(bool ok) {
  StageTimes stages;
  Place place;
  if (!ok) {
    MutexLock lock(&mutex_);
    EndLocked(absl::OkStatus());
  } else if (Admit(&place)) {
    if (IsLong(&place) && MakeRoom(&place)) return TakeInTurn(place, stages);
    const PollingThreads::LongReaction others(call_.parts().admission.polling, place.bytes);
    Take(place, stages);
  }
  EndRead();
}

void ExecuteStream::EndRead() {
  {
    MutexLock lock(&mutex_);
    reading_ = false;
  }
  Step();
}

bool ExecuteStream::Admit(Place* place) {
  place->bytes = static_cast<int64_t>(incoming_.Length());
  absl::Status admitted = call_.AdmitAgain();
  admitted.Update(call_.CheckMessage(place->bytes));
  MutexLock lock(&mutex_);
  if (!admitted.ok()) {
    EndLocked(admitted);  // nobody can say whose response this would be
    return false;
  }
  if (finished_) return false;  // ended by another thread before this one came to it
  // The stream does not end while it is in flight.
  call_.record().received_bytes += place->bytes;
  ++in_flight_;
  in_flight_bytes_ += place->bytes;
  return true;
}

bool ExecuteStream::IsLong(Place* place) const {
  if (place->bytes >= kLongBytes) return true;
  const absl::StatusOr<MessageMeasure> measured = call_.Measure(incoming_, *v1::ExecuteRequest::descriptor());
  if (!measured.ok()) return false;  // it is refused when it is read
  place->objects = measured->object_bytes;
  place->is_measured = true;
  return measured->size_operations > kFewSizeOperations;
}

bool ExecuteStream::MakeRoom(Place* place) const {
  place->has_room = call_.parts().admission.gate->bytes().Add(place->bytes, call_.caller().tenant).ok();
  return place->has_room;
}

void ExecuteStream::TakeInTurn(const Place& place, const StageTimes& stages) {
  const auto self = shared_from_this();
  if (call_.cancel()->cancelled()) return Drop(place, Refuse(Refusal::kCancelled, "the client is gone"));
  const absl::Status taken = InReadingTurn(
      call_, absl::InfiniteFuture(), "a request was read",
      [self, place, stages] {
        self->Take(place, stages);
        self->EndRead();
      },
      [self, place](const absl::Status& status) { self->Drop(place, status); });
  if (taken.ok()) return;
  call_.parts().admission.alarms->Set(SteadyNow() + kAskAgain,
                                      [self, place, stages] { self->TakeInTurn(place, stages); });
}

void ExecuteStream::Drop(Place place, const absl::Status& status) {
  incoming_.Clear();
  {
    MutexLock lock(&mutex_);
    EndLocked(status);
    LeaveLocked(place);
  }
  EndRead();
}

void ExecuteStream::Take(Place place, StageTimes stages) {
  grpc::ByteBuffer bytes;
  bytes.Swap(&incoming_);
  absl::StatusOr<Taken> taken = Read(&bytes, &place, stages);
  if (!taken.ok()) {
    MutexLock lock(&mutex_);
    EndLocked(taken.status());
    LeaveLocked(place);
    return;
  }
  StreamedRequest* const request = taken->request;
  request->Continue([&] {
    if (!taken->refused.ok()) return RefuseExecution(request, std::move(taken->received), taken->refused);
    StartExecution(request, std::move(taken->received), /*poisons=*/true);
  });
}

absl::StatusOr<ExecuteStream::Taken> ExecuteStream::Read(grpc::ByteBuffer* bytes, Place* place, StageTimes stages) {
  try {
    if (call_.cancel()->cancelled()) return Refuse(Refusal::kCancelled, "the client is gone");
    Taken taken;
    if (!place->is_measured) {
      ASSIGN_OR_RETURN(const MessageMeasure measured, call_.Measure(*bytes, *v1::ExecuteRequest::descriptor()));
      place->objects = measured.object_bytes;
    }
    taken.refused = call_.EnterRequest(place->objects + (place->has_room ? 0 : place->bytes));
    place->entered = taken.refused.ok();
    // To say whose refusal it is takes little, or as much as there is no room for.
    if (!place->entered && place->objects >= kLongBytes) return taken.refused;
    stages.End(Stage::kAdmit);
    ASSIGN_OR_RETURN(taken.received, ReceiveExecute(bytes, call_.parts().admission.graph_limits.now()));
    stages.End(Stage::kParse);
    const uint64_t id = taken.received.message.request_id();
    bool owns_id = false;
    {
      MutexLock lock(&mutex_);
      owns_id = ids_.insert(id).second;
    }
    if (taken.refused.ok() && !owns_id) {
      taken.refused = Refuse(Refusal::kRequestIdDuplicate,
                             absl::StrCat("another request of the stream is in flight with the id ", id));
    }
    taken.request = new StreamedRequest(shared_from_this(), id, *place, owns_id, stages);  // last: it must be answered
    return taken;
  } catch (const std::exception& error) {  // memory ran out
    return Refuse(Refusal::kInternal, error.what());
  }
}

void ExecuteStream::Answer(Response response, uint64_t id, bool owns_id) {
  {
    MutexLock lock(&mutex_);
    if (owns_id) ids_.erase(id);
    responses_.push_back(std::move(response));
  }
  Step();
}

void ExecuteStream::Tell(RequestRecord record) const {
  const ServiceParts& parts = call_.parts();
  record.stages.End(Stage::kSend);
  record.total = record.stages.Total();
  parts.observers.metrics->StreamedExecuteEnded(record);
  parts.observers.recorder->Request(record);
  if (parts.observers.tracer != nullptr) parts.observers.tracer->Ended(record);
  record.peer = peer_;
  parts.observers.log->Request(std::move(record));
}

void ExecuteStream::OnWriteDone(bool ok) {
  if (!ok) call_.cancel()->Cancel();
  if (stall_ != nullptr) stall_->Pause();
  RequestRecord sent;
  {
    MutexLock lock(&mutex_);
    sent = std::move(being_sent_.record);
  }
  Tell(std::move(sent));
  {
    MutexLock lock(&mutex_);
    writing_ = false;
    LeaveLocked(being_sent_.place);
    being_sent_.unread_bytes.reset();
    outgoing_.Clear();
    if (!ok) broken_ = true;
  }
  Step();
}

void ExecuteStream::OnCancel() {
  call_.Cancelled();
  {
    MutexLock lock(&mutex_);
    broken_ = true;
  }
  Step();
}

void ExecuteStream::OnDone() {
  if (stall_ != nullptr && stall_->End()) {
    call_.record().Refused(Refuse(Refusal::kDeadlineExceeded,
                                  "the client took nothing more of a response; without a deadline of its own it has "
                                  "limits.default_deadline_ms for each MiB"));
  }
  // A message beyond the transport's limit, or a connection that is cut, looks as if the client had sent all; that it
  // did not get this end is known only now.
  if (call_.cancel()->cancelled() && call_.record().code == absl::StatusCode::kOk) {
    call_.record().Refused(Refuse(Refusal::kCancelled, "the client did not get the end of the stream"));
  }
  call_.Ended();
  const std::shared_ptr<ExecuteStream> last = std::move(self_);
}

void ExecuteStream::LeaveLocked(Place& place) {
  --in_flight_;
  in_flight_bytes_ -= place.bytes;
  if (!place.entered) {
    if (place.has_room) call_.parts().admission.gate->bytes().Remove(place.bytes, call_.caller().tenant);
    return;
  }
  const bool is_held = std::exchange(place.held_bytes, nullptr) != nullptr;
  call_.LeaveRequest(is_held ? 0 : place.bytes + place.objects);
}

bool ExecuteStream::HasRoomLocked() const {
  const ServiceParts& parts = call_.parts();
  return in_flight_ < parts.admission.stream_requests && in_flight_bytes_ < parts.admission.stream_bytes;
}

ExecuteStream::Action ExecuteStream::NextLocked() {
  if (finished_) return Action::kNone;
  if (broken_) {
    EndLocked(Refuse(Refusal::kCancelled, "the client is gone"));
    for (Response& response : responses_) {
      Tell(std::move(response.record));
      LeaveLocked(response.place);
    }
    responses_.clear();
  }
  if (!writing_ && !responses_.empty()) {
    writing_ = true;
    outgoing_.Swap(&responses_.front().bytes);
    being_sent_ = std::move(responses_.front());
    responses_.pop_front();
    call_.record().sent_bytes += static_cast<int64_t>(outgoing_.Length());
    return Action::kWrite;
  }
  if (!reading_ && !ending_ && HasRoomLocked()) {
    reading_ = true;
    return Action::kRead;
  }
  if (ending_ && in_flight_ == 0) {
    finished_ = true;
    return Action::kFinish;
  }
  return Action::kNone;
}

void ExecuteStream::Step() {
  {
    MutexLock lock(&mutex_);
    if (stepping_) return;
    stepping_ = true;
  }
  StepOn();
}

void ExecuteStream::StepOn() {
  const std::shared_ptr<ExecuteStream> self = shared_from_this();
  // gRPC's polling thread runs callbacks then and there, as long as there are more. It would run the stream's own next
  // reads too, and poll for nobody else.
  while (++steps_ % kStepsBetweenTurns != 0) {
    Action action = Action::kNone;
    absl::Status end;
    {
      MutexLock lock(&mutex_);
      action = NextLocked();
      end = end_;
      if (action == Action::kNone) {
        stepping_ = false;
        return;
      }
    }
    if (stall_ != nullptr && action != Action::kRead) stall_->Progress(TimeOfMore(outgoing_.Length()));
    switch (action) {
      case Action::kRead:
        StartRead(&incoming_);
        break;
      case Action::kWrite:
        StartWrite(&outgoing_);
        break;
      case Action::kFinish:
        Finish(call_.Outcome(end));
        break;
      case Action::kNone:
        break;
    }
  }
  call_.parts().admission.turns->Submit(call_.caller().tenant, [self] { self->StepOn(); });
}

}  // namespace tensord::server
