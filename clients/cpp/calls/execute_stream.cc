#include "clients/cpp/calls/execute_stream.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/cpp/connection/steady_time.h"
#include "clients/cpp/connection/transport_end.h"
#include "clients/cpp/wire/execute_wire.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "tensord/error_detail.h"
#include "tensord/pipeline.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::client {
namespace {

// Returns the same status, after its context.
absl::Status WithContext(const absl::Status& status, const std::string& context) {
  absl::Status result(status.code(), absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload(
      [&result](absl::string_view type_url, const absl::Cord& payload) { result.SetPayload(type_url, payload); });
  return result;
}

}  // namespace

struct ExecuteStream::Transport {
  Transport(grpc::GenericStub& stub, std::unique_ptr<grpc::ClientContext> its_context)
      : context(std::move(its_context)), call(stub.PrepareCall(context.get(), kExecuteStreamMethod, &queue)) {}

  const std::unique_ptr<grpc::ClientContext> context;
  grpc::CompletionQueue queue;
  const std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call;
  grpc::ByteBuffer incoming;
  grpc::Status status;
  grpc::Alarm deadline, hurry;  // both kLate
};

ExecuteStream::ExecuteStream(grpc::GenericStub& stub, std::unique_ptr<grpc::ClientContext> context, std::string target,
                             std::string session, AskForProgram ask_for_program, Sharing sharing)
    : target_(std::move(target)),
      session_(std::move(session)),
      ask_for_program_(std::move(ask_for_program)),
      sharing_(std::move(sharing)),
      unseen_(std::make_shared<FirstFailure>()),
      transport_(std::make_unique<Transport>(stub, std::move(context))),
      thread_([this] { Drive(); }) {}

ExecuteStream::~ExecuteStream() {
  Cancel();
  thread_.join();
  if (!is_abandoned_) return;
  transport_->deadline.Cancel();
  transport_->hurry.Cancel();
  grpc::CompletionQueue* const queue = &transport_->queue;
  KeepUntilEnded(std::move(transport_), queue);
}

void ExecuteStream::Cancel() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_cancelled_ = true;
    for (Cancellation* asking : asking_) asking->Cancel();
    Hurry();
  }
  transport_->context->TryCancel();
}

void ExecuteStream::Hurry() {
  if (is_hurried_ || is_shut_) return;
  is_hurried_ = true;
  transport_->hurry.Set(&transport_->queue, ToGrpcDeadline(SteadyNow() + kEndWithin), TagOf(Step::kLate));
}

void ExecuteStream::Shut() {
  is_shut_ = true;
  transport_->deadline.Cancel();
  transport_->hurry.Cancel();
  transport_->queue.Shutdown();
}

bool ExecuteStream::IsAbandoned() {
  bool is_cancelled = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (is_shut_) return false;
    is_abandoned_ = true;
    if (is_over_) return true;
    is_cancelled = is_cancelled_;
  }
  End(EndedLate(*transport_->context, is_cancelled ? grpc::StatusCode::CANCELLED : grpc::StatusCode::UNAVAILABLE));
  return true;
}

absl::StatusOr<PendingAnswer> ExecuteStream::Submit(const ExecuteCall& call) {
  if (call.options.deadline.has_value()) {
    return absl::InvalidArgumentError("a call of a pipeline has no deadline of its own; set PipelineOptions::deadline");
  }
  absl::StatusOr<v1::ExecuteRequest> request = ToExecuteRequest(call);
  if (!request.ok()) return request.status();
  if (request->session().empty()) request->set_session(session_);
  if (!call.fingerprint.empty()) {
    const absl::StatusOr<std::string> there = FindProgram(call.fingerprint);
    if (!there.ok()) return there.status();
    request->set_fingerprint(*there);
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    request->set_request_id(++last_id_);
  }
  const uint64_t id = request->request_id();
  std::unique_ptr<SharedCall> shared = Share(call, &*request);
  absl::StatusOr<grpc::ByteBuffer> message = shared == nullptr
                                                 ? EncodeExecuteRequest(*request, call.arguments)
                                                 : EncodeExecuteRequest(*request, call.arguments, shared->places());
  if (!message.ok()) return message.status();
  auto arrival = std::make_shared<Arrival>(
      id, call.results, call.options.order, unseen_,
      Arrival::Sharing{.call = std::move(shared), .sizes = sharing_.sizes, .fingerprint = call.fingerprint});

  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return is_over_ || is_closing_ || HasRoom(); });
  if (is_over_ && !end_.ok()) return end_;
  if (is_over_ || is_closing_) return absl::FailedPreconditionError("the pipeline was finished");
  unanswered_.emplace(id, arrival);
  unsent_bytes_ += message->Length();
  unsent_.push_back(*message);
  WriteNext(std::move(lock));
  return PendingAnswer(std::move(arrival));
}

absl::StatusOr<std::string> ExecuteStream::FindProgram(const std::string& fingerprint) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto known = known_programs_.find(fingerprint);
    if (known != known_programs_.end()) return known->second;
  }
  Cancellation cancellation;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (is_over_ && !end_.ok()) return end_;
    if (is_cancelled_) return absl::CancelledError("the pipeline was cancelled");
    asking_.insert(&cancellation);
  }
  absl::StatusOr<std::string> there;
  {
    const Cancellation::Scope scope(&cancellation);
    there = ask_for_program_(fingerprint);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  asking_.erase(&cancellation);
  if (there.ok()) known_programs_[fingerprint] = *there;
  return !there.ok() && is_over_ && !end_.ok() ? end_ : there;
}

std::unique_ptr<SharedCall> ExecuteStream::Share(const ExecuteCall& call, v1::ExecuteRequest* request) const {
  if (sharing_.memory == nullptr || sharing_.memory->HasGone()) return nullptr;
  auto shared = std::make_unique<SharedCall>(
      sharing_.memory, call.arguments, sharing_.sizes->Expected(call.fingerprint, call.results), sharing_.deadline);
  shared->SetSpaces(request);
  return shared;
}

absl::Status ExecuteStream::Finish() {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    is_closing_ = true;
    changed_.notify_all();
    WriteNext(std::move(lock));
  }
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return is_over_; });
  return end_.ok() ? unseen_->Get() : end_;
}

bool ExecuteStream::HasRoom() const {
  return unsent_.size() < Pipeline::kMostUnsent && unsent_bytes_ < Pipeline::kMostUnsentBytes;
}

void ExecuteStream::WriteNext(std::unique_lock<std::mutex> lock) {
  if (is_writing_ || !can_write_ || is_over_) return;
  if (!unsent_.empty()) {
    is_writing_ = has_sent_ = true;
    const grpc::ByteBuffer message = unsent_.front();
    lock.unlock();  // the transport may send it on this thread
    transport_->call->Write(message, TagOf(Step::kWrite));
  } else if (is_closing_ && !is_half_closed_) {
    is_writing_ = is_half_closed_ = true;
    lock.unlock();
    transport_->call->WritesDone(TagOf(Step::kWrite));
  }
}

void ExecuteStream::Drive() {
  Transport& t = *transport_;
  const auto receive = [&t] { t.call->Read(&t.incoming, TagOf(Step::kRead)); };
  const auto ask_why = [this, &t] {
    t.call->Finish(&t.status, TagOf(Step::kEnd));
    const std::lock_guard<std::mutex> lock(mutex_);
    Hurry();  // the stream broke
  };
  if (const gpr_timespec latest = LatestEnd(*t.context); gpr_time_cmp(latest, gpr_inf_future(latest.clock_type)) != 0) {
    t.deadline.Set(&t.queue, latest, TagOf(Step::kLate));
  }
  t.call->StartCall(TagOf(Step::kStart));
  void* tag = nullptr;
  bool ok = false;
  while (t.queue.Next(&tag, &ok)) {
    switch (static_cast<Step>(reinterpret_cast<uintptr_t>(tag))) {
      case Step::kStart:
        ok ? receive() : ask_why();
        Wrote(ok);
        break;
      case Step::kRead: {
        if (!ok) {
          ask_why();
          break;
        }
        grpc::ByteBuffer response;
        response.Swap(&t.incoming);
        receive();  // comes while this one is looked at
        Take(&response);
        break;
      }
      case Step::kWrite:
        Wrote(ok);
        break;
      case Step::kEnd:
        End(t.status);
        break;
      case Step::kLate:
        if (ok && IsAbandoned()) return;
        break;
    }
  }
}

void ExecuteStream::Take(grpc::ByteBuffer* response) {
  if (!broken_.ok()) return;
  absl::StatusOr<ResponseHead> head = ReadResponseHead(*response);
  std::shared_ptr<Arrival> arrival;
  if (head.ok()) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = unanswered_.find(head->request_id);
    if (found != unanswered_.end()) {
      arrival = std::move(found->second);
      unanswered_.erase(found);
    }
  }
  if (arrival == nullptr) {
    broken_ = head.ok() ? absl::InternalError(absl::StrCat(
                              "the server answered a call that it had not, or had answered: ", head->request_id))
                        : head.status();
    return Cancel();
  }
  if (head->error.ok()) {
    arrival->Deliver(response);
  } else {
    if (ReasonOf(head->error) == "PROGRAM_NOT_FOUND") {
      const std::lock_guard<std::mutex> lock(mutex_);
      known_programs_.clear();
    }
    arrival->Fail(std::move(head->error));
  }
}

void ExecuteStream::Wrote(bool ok) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (has_sent_) {
    unsent_bytes_ -= unsent_.front().Length();
    unsent_.pop_front();
    has_sent_ = false;
    changed_.notify_all();
  }
  is_writing_ = false;
  can_write_ = can_write_ && ok;
  if (is_over_) return Shut();
  WriteNext(std::move(lock));
}

void ExecuteStream::End(const grpc::Status& status) {
  absl::flat_hash_map<uint64_t, std::shared_ptr<Arrival>> left;
  absl::Status end = broken_.ok() ? ToAbslStatus(status) : broken_;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    left = std::move(unanswered_);
    unanswered_.clear();
    unsent_.clear();
    has_sent_ = false;
    if (end.ok() && !(is_half_closed_ && left.empty())) end = absl::UnavailableError("the server ended the stream");
    if (!end.ok()) {
      end =
          WithContext(end, absl::StrCat("the pipeline to ", target_, " ended with ", left.size(), " calls unanswered"));
    }
    end_ = end;
    is_over_ = true;
    for (Cancellation* asking : asking_) asking->Cancel();
    if (is_abandoned_) {
      // The queue stays as it is.
    } else if (is_writing_) {
      Hurry();  // the write is over with the stream
    } else {
      Shut();
    }
    changed_.notify_all();
  }
  for (const auto& [id, arrival] : left) arrival->Fail(end);
}

}  // namespace tensord::client
