#include "clients/load/call.h"

#include "absl/time/time.h"
#include "clients/cpp/connection/call_context.h"
#include "clients/cpp/connection/steady_time.h"
#include "clients/cpp/wire/execute_wire.h"
#include "tensord/error_detail.h"

namespace tensord::load {

size_t Call::DrawWorkload() {
  const std::vector<PreparedWorkload>& workloads = plan_->workloads;
  if (workloads.size() == 1) return 0;
  double total = 0;
  for (const PreparedWorkload& workload : workloads) total += workload.weight;
  double left = random_.Fraction() * total;
  size_t index = 0;
  while (index + 1 < workloads.size() && left >= workloads[index].weight) left -= workloads[index++].weight;
  return index;
}

Call::Draft Call::Prepare(Clock::time_point due) {
  const std::lock_guard<std::mutex> lock(mutex_);
  state_ = State::kDrawn;
  ++number_;
  due_ = due;
  workload_ = DrawWorkload();
  has_met_fate_ = is_cut_off_ = failed_dial_ = false;
  fate_ = Fate::kNone;
  if (plan_->cancelled_share > 0 || plan_->disconnected_share > 0) {
    const double drawn = random_.Fraction();
    if (drawn < plan_->cancelled_share) {
      fate_ = Fate::kCancel;
    } else if (drawn < plan_->cancelled_share + plan_->disconnected_share) {
      absl::StatusOr<CuttableChannel> channel = MakeCuttableChannel(plan_->connection);
      failed_dial_ = !channel.ok();
      if (channel.ok()) {
        own_channel_ = *std::move(channel);
        fate_ = Fate::kDisconnect;
      }
    }
  }
  return {.fate = fate_, .number = number_, .moment = fate_ == Fate::kNone ? 0 : random_.Fraction()};
}

void Call::Send(grpc::GenericStub& stub) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const PreparedWorkload& workload = plan_->workloads[workload_];
  const absl::Time deadline =
      plan_->deadline.has_value() ? client::SteadyNow() + *plan_->deadline : absl::InfiniteFuture();
  context_ = client::ContextOf(plan_->connection, deadline, workload.route);
  const grpc::ByteBuffer& request = workload.request;
  sent_ = Clock::now();
  if (own_channel_.has_value()) {
    grpc::GenericStub own_stub(own_channel_->channel);
    reader_ = own_stub.PrepareUnaryCall(context_.get(), client::kExecuteMethod, request, queue_);
  } else {
    reader_ = stub.PrepareUnaryCall(context_.get(), client::kExecuteMethod, request, queue_);
  }
  reader_->StartCall();
  reader_->Finish(&response_, &status_, this);
  state_ = State::kUnderWay;
  if (has_met_fate_ || is_cut_off_) End();
}

void Call::MeetFate(uint64_t number) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (state_ == State::kIdle || number != number_) return;
  has_met_fate_ = true;
  if (state_ == State::kUnderWay) End();
}

void Call::CutOff() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (state_ == State::kIdle) return;
  is_cut_off_ = true;
  if (state_ == State::kUnderWay) End();
}

void Call::End() {
  if (!is_cut_off_ && fate_ == Fate::kDisconnect) {
    own_channel_->socket.Cut();
  } else {
    context_->TryCancel();
  }
}

Call::Outcome Call::Finish() {
  const Clock::time_point ended = Clock::now();
  const std::lock_guard<std::mutex> lock(mutex_);
  Outcome outcome = {.workload = workload_, .due = due_, .sent = sent_, .ended = ended, .failed_dial = failed_dial_};
  if (status_.ok()) {
    outcome.received_bytes = static_cast<int64_t>(response_.Length());
    if (const std::optional<ServerTimes> server = ReadServerTimes(response_)) {
      outcome.server = *server;
    } else {
      outcome.end = Outcome::End::kFailed;
      outcome.code = absl::StatusCode::kInternal;
      outcome.reason = "(no ExecuteResponse)";
    }
  } else {
    const absl::Status status = client::ToAbslStatus(status_);
    const std::optional<client::ErrorDetail> detail = client::GetErrorDetail(status);
    outcome.code = status.code();
    if (detail.has_value()) outcome.reason = detail->reason;
    const bool is_cancelled = absl::IsCancelled(status);
    if (is_cancelled && is_cut_off_) {
      outcome.end = Outcome::End::kUnfinished;
    } else if (is_cancelled && has_met_fate_ && fate_ == Fate::kCancel) {
      outcome.end = Outcome::End::kCancelled;
    } else if (absl::IsUnavailable(status) && has_met_fate_ && fate_ == Fate::kDisconnect) {
      outcome.end = Outcome::End::kDisconnected;
    } else {
      outcome.end = Outcome::End::kFailed;
    }
  }
  state_ = State::kIdle;
  reader_.reset();
  context_.reset();
  response_.Clear();
  own_channel_.reset();
  return outcome;
}

std::optional<Call::Outcome> Call::GiveUp() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (state_ != State::kUnderWay) return std::nullopt;
  return Outcome{.end = Outcome::End::kUnfinished, .workload = workload_, .due = due_, .sent = sent_};
}

}  // namespace tensord::load
