#include "server/rpc/tensors/put_tensor.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/steady_time.h"
#include "proto/codec/tensor_codec.h"
#include "server/lifecycle/stall_alarm.h"
#include "server/observe/metrics/timed_transfer.h"
#include "server/rpc/calls/polling_threads.h"
#include "server/rpc/calls/reading_turn.h"
#include "server/rpc/calls/served_call.h"
#include "server/rpc/calls/while_wanted.h"
#include "server/rpc/tensors/named_tenancy.h"
#include "server/rpc/tensors/read_ahead.h"
#include "server/rpc/tensors/tensor_part.h"
#include "server/rpc/wire/spread_copy.h"
#include "server/sessions/session_store.h"
#include "server/shared_memory/find_shared.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {
namespace {

constexpr absl::Duration kAskAgain = absl::Milliseconds(10);  // for room
constexpr int64_t kCheckedBytes = int64_t{256} << 10;         // of shared memory that are copied and checked at a time

// OnReadDone may come while the one before still works, which ahead_ sorts out, and OnCancel at any time; everything
// else belongs to the working thread.
class PutTensorCall final : public grpc::ServerReadReactor<grpc::ByteBuffer> {
 public:
  PutTensorCall(const ServiceParts& parts, grpc::CallbackServerContext* context, grpc::ByteBuffer* response)
      : call_(parts, RpcMethod::kPutTensor, context), context_(context), response_(response) {}

  void Start() {
    const absl::Status entered = call_.Enter(0, /*is_message=*/false);
    if (!entered.ok()) return End(entered);
    call_.open().At(Stage::kReceive);
    WatchProgress();
    StartRead(ahead_.next());
  }

 private:
  static constexpr char kForWhat[] = "the tensor was copied";

  void OnReadDone(bool ok) override {
    if (stall_ != nullptr) stall_->Progress();
    absl::Status room = ok ? MakeRoom(static_cast<int64_t>(ahead_.next()->Length())) : absl::OkStatus();
    // An upload is refused at its beginning alone; later messages wait.
    if (!room.ok() && !(has_begun_ && Owe(static_cast<int64_t>(ahead_.next()->Length())))) ahead_.next()->Clear();
    has_begun_ = true;
    if (ahead_.Push(ok, std::move(room))) StartRead(ahead_.next());
    grpc::ByteBuffer bytes;
    Work(ahead_.Begin(&bytes), &bytes);
  }

  // Works on the messages that have come, until nothing is left.
  void Work(ReadAhead::Step step, grpc::ByteBuffer* bytes) {
    for (; step.found == ReadAhead::Found::kMessage; step = ahead_.Continue(bytes)) {
      if (step.reads) StartRead(ahead_.next());
      if (!step.refused.ok()) return bytes->Length() == 0 ? End(step.refused) : WaitForRoom(bytes);
      if (!TakeOne(bytes)) return;
    }
    if (step.found == ReadAhead::Found::kEnd) End(AtEnd());
  }

  // Tells whether the message is done with and the upload goes on. Otherwise somebody else works, or all is over.
  bool TakeOne(grpc::ByteBuffer* bytes) {
    const int64_t size = static_cast<int64_t>(bytes->Length());
    const absl::Status taken = Take(bytes);
    if (taken.ok() && left_ != nullptr) {
      left_bytes_ = size;
      DoLeftInTurn();
      return false;
    }
    LeaveRoom(size);
    if (!taken.ok()) End(taken);
    return taken.ok();
  }

  // Nobody else works meanwhile. That it waits for its turn, and for the device, is not the client's fault.
  void DoLeftInTurn() {
    if (call_.cancel()->cancelled()) return End(Cancelled());
    if (stall_ != nullptr) stall_->Pause();
    const absl::Status turn = InReadingTurn(
        call_, call_.DeadlineOf(SteadyNow()), kForWhat, [this] { DoLeft(); },
        [this](const absl::Status& status) { End(status); });
    if (turn.ok()) return;
    if (part_.header() != nullptr) return End(turn);
    call_.parts().admission.alarms->Set(SteadyNow() + kAskAgain, [this] { DoLeftInTurn(); });
  }
  void DoLeft() {
    const absl::Status done = Guarded([this]() -> absl::Status {
      if (call_.cancel()->cancelled()) return Cancelled();
      return (this->*std::exchange(left_, nullptr))();
    });
    LeaveRoom(std::exchange(left_bytes_, 0));
    if (!done.ok()) return End(done);
    if (stall_ != nullptr) stall_->Progress();
    grpc::ByteBuffer bytes;
    Work(ahead_.Continue(&bytes), &bytes);
  }

  // Nobody else reads or works meanwhile. That the message waits is not the client's fault.
  void WaitForRoom(grpc::ByteBuffer* bytes) {
    if (stall_ != nullptr) stall_->Pause();
    waiting_.Swap(bytes);
    AskForRoom();
  }
  void AskForRoom() {
    if (call_.cancel()->cancelled()) return End(Cancelled());
    if (MakeRoom(static_cast<int64_t>(waiting_.Length())).ok()) {
      const absl::Status turn = InReadingTurn(
          call_, call_.DeadlineOf(SteadyNow()), "the tensor was read", [this] { TakeWaiting(); },
          [this](const absl::Status& status) { End(status); });
      if (turn.ok()) return;
      LeaveRoom(static_cast<int64_t>(waiting_.Length()));
    }
    call_.parts().admission.alarms->Set(SteadyNow() + kAskAgain, [this] { AskForRoom(); });
  }
  void TakeWaiting() {
    if (stall_ != nullptr) stall_->Progress();
    grpc::ByteBuffer bytes;
    bytes.Swap(&waiting_);
    Repay(static_cast<int64_t>(bytes.Length()));
    ahead_.Resume();
    StartRead(ahead_.next());
    if (TakeOne(&bytes)) Work(ahead_.Continue(&bytes), &bytes);
  }

  void OnCancel() override { call_.Cancelled(); }
  void OnDone() override {
    if (stall_ != nullptr && stall_->End()) {
      call_.record().Refused(Refuse(Refusal::kDeadlineExceeded,
                                    "the client sent nothing more of the upload; without a deadline of its own it has "
                                    "limits.default_deadline_ms from message to message"));
    }
    LeaveRoom(room_);  // of messages that nobody worked on
    Repay(owed_);
    call_.Ended();
    delete this;
  }

  // An upload has the room of the messages that came and were not worked on yet; one that sends nothing has none.
  absl::Status MakeRoom(int64_t size) {
    RETURN_IF_ERROR(call_.parts().admission.gate->bytes().Add(size, call_.caller().tenant));
    room_ += size;
    return absl::OkStatus();
  }
  void LeaveRoom(int64_t size) {
    call_.parts().admission.gate->bytes().Remove(size, call_.caller().tenant);
    room_ -= size;
  }

  bool Owe(int64_t size) {
    if (!call_.parts().admission.gate->Owe(size)) return false;
    owed_ += size;
    return true;
  }
  void Repay(int64_t size) {
    call_.parts().admission.gate->Repay(size);
    owed_ -= size;
  }

  // Chunks that the client does not send may not keep the upload's memory for ever.
  void WatchProgress() {
    // The client's own is kept by gRPC.
    if (context_->deadline() != std::chrono::system_clock::time_point::max()) return;
    stall_ = std::make_shared<StallAlarm>(call_.parts().admission.alarms, call_.parts().admission.default_deadline,
                                          [context = context_] { context->TryCancel(); });
    stall_->Progress();
  }

  absl::Status Take(grpc::ByteBuffer* bytes) {
    const int64_t size = static_cast<int64_t>(bytes->Length());
    const PollingThreads::LongReaction others(call_.parts().admission.polling, size);
    call_.record().stages.End(Stage::kReceive);
    call_.record().received_bytes += size;
    return Guarded([this, bytes] { return TakePart(bytes); });
  }
  absl::Status AtEnd() {
    call_.record().stages.End(Stage::kReceive);
    return Guarded([this] { return Complete(); });
  }
  template <typename Step>
  static absl::Status Guarded(Step&& step) {
    try {
      return step();
    } catch (const std::exception& error) {
      return Refuse(Refusal::kInternal, error.what());
    }
  }

  static absl::Status Cancelled() { return Refuse(Refusal::kCancelled, "the client cancelled the upload"); }

  // Leaves a step to a turn where it may take long.
  absl::Status TakePart(grpc::ByteBuffer* bytes) {
    RETURN_IF_ERROR(call_.AdmitAgain());
    RETURN_IF_ERROR(call_.CheckMessage(static_cast<int64_t>(bytes->Length())));
    RETURN_IF_ERROR(call_.Measure(*bytes, *v1::PutTensorRequest::descriptor()).status());  // it has a shape at most
    const absl::Status read = part_.Read(bytes);
    call_.record().stages.End(Stage::kParse);
    RETURN_IF_ERROR(read);
    if (session_ == nullptr) {
      if (part_.header() == nullptr) {
        return Refuse(Refusal::kMalformedMessage, "the first message of an upload has no header");
      }
      return Begin(*part_.header());
    }
    if (session_->closed())
      return Refuse(Refusal::kSessionUnknown, "the session ended during the upload; open another");
    session_->Renew();
    if (part_.header() != nullptr) {
      return Refuse(Refusal::kMalformedMessage, "an upload has a header after its first message");
    }
    return DoOrLeave(&PutTensorCall::TakeChunk, /*is_long=*/false);
  }

  using Step = absl::Status (PutTensorCall::*)();
  // A device with memory of its own is waited for, however few the bytes are.
  absl::Status DoOrLeave(Step step, bool is_long) {
    if (!is_long && backend_->Describe().computes_in_host_memory) return (this->*step)();
    left_ = step;
    return absl::OkStatus();
  }

  absl::Status Begin(const v1::PutTensorRequest::Header& header) {
    const ServiceParts& parts = call_.parts();
    ASSIGN_OR_RETURN(session_, FindSession(call_, call_.record(), header.session()));
    ASSIGN_OR_RETURN(codec::TensorHeader tensor,
                     codec::DecodeTensorHeader(header.dtype(), header.shape(), header.order(), Order::kColumnMajor,
                                               parts.admission.graph_limits.now()));
    ASSIGN_OR_RETURN(DeviceExecutor * executor, parts.devices.executors->Find(header.device()));
    call_.record().device = executor->device();
    if (header.has_shared()) {
      ASSIGN_OR_RETURN(shared_, FindData(header.shared(), tensor.num_bytes));
    }
    is_bool_ = tensor.type.dtype == DType::kBool;
    is_resumable_ = header.resumable();
    type_ = {.device = executor->device(), .type = std::move(tensor.type), .order = tensor.order};
    backend_ = executor->backend();
    return DoOrLeave(&PutTensorCall::StartUpload, /*is_long=*/shared_.size_bytes >= kLongBytes);
  }

  absl::Status StartUpload() {
    const v1::PutTensorRequest::Header& header = *part_.header();
    RETURN_IF_ERROR(WhileWanted(call_, kForWhat, [&]() -> absl::Status {
      ASSIGN_OR_RETURN(upload_, session_->StartUpload(header.handle(), type_, backend_, header.upload_id()));
      return absl::OkStatus();
    }));
    return header.has_shared() ? TakeShared(std::exchange(shared_, {})) : absl::OkStatus();
  }

  absl::StatusOr<SharedPart> FindData(const v1::SharedSpace& space, int64_t num_bytes) {
    absl::StatusOr<SharedPart> found = FindShared(call_.parts().tensors.regions, call_.caller().tenant, space);
    if (!found.ok()) TellOfRegion(call_, call_.record(), found.status(), space.region());
    ASSIGN_OR_RETURN(SharedPart part, std::move(found));
    if (part.size_bytes == num_bytes) return part;
    return Refuse(Refusal::kDataLengthMismatch, absl::StrCat("the place in shared memory has ", part.size_bytes,
                                                             " bytes, and the tensor has ", num_bytes));
  }

  // Writes over the bytes of an earlier call.
  absl::Status TakeShared(const SharedPart& part) {
    upload_.Rewind(0);
    RETURN_IF_ERROR(upload_.bytes() != nullptr ? CopyShared(part) : WriteShared(part));
    upload_.Advance(part.size_bytes);
    has_data_ = true;
    call_.record().stages.End(Stage::kDecode);
    return absl::OkStatus();
  }

  // Into memory of the host.
  absl::Status CopyShared(const SharedPart& part) {
    {
      const TimedTransfer timed(call_.parts().observers.metrics, Transfer::kShared, part.size_bytes);
      SpreadCopy({part.bytes, static_cast<size_t>(part.size_bytes)}, upload_.bytes(),
                 call_.parts().tensors.parallel_for);
    }
    // Only now: the checked bytes are those that stay.
    return CheckData(upload_.bytes(), part.size_bytes);
  }

  // Into memory of the device. The client may write there meanwhile: only a copy can be checked.
  absl::Status WriteShared(const SharedPart& part) {
    const TimedTransfer timed(call_.parts().observers.metrics, Transfer::kShared, part.size_bytes);
    if (!is_bool_) return Write(0, {part.bytes, static_cast<size_t>(part.size_bytes)});
    std::string copy;
    for (int64_t at = 0; at < part.size_bytes; at += static_cast<int64_t>(copy.size())) {
      copy.assign(part.bytes + at, static_cast<size_t>(std::min(kCheckedBytes, part.size_bytes - at)));
      RETURN_IF_ERROR(CheckData(copy.data(), static_cast<int64_t>(copy.size())));
      RETURN_IF_ERROR(Write(at, copy));
    }
    return absl::OkStatus();
  }

  absl::Status CheckData(const char* data, int64_t size) const {
    if (!is_bool_ || codec::IsBoolData({data, static_cast<size_t>(size)})) return absl::OkStatus();
    return Refuse(Refusal::kDataInvalid, "a BOOL tensor holds a byte other than 0 and 1; send x != 0");
  }

  // The first chunk of a call says where it goes on; the others follow.
  absl::Status CheckPlace() const {
    const int64_t due = upload_.arrived();
    const bool may_go_back = !has_data_ && part_.offset() >= 0 && part_.offset() < due;
    if (part_.offset() != due && !may_go_back) {
      return Refuse(Refusal::kChunkInvalid, absl::StrCat("a chunk does not begin where the one before ended: at ",
                                                         part_.offset(), ", not ", due));
    }
    if (part_.size() > kMaxChunkBytes) {
      return RefuseLimit("chunk_bytes", kMaxChunkBytes, part_.size(), "bytes of a chunk");
    }
    if (part_.size() > upload_.size_bytes() - part_.offset()) {
      return Refuse(Refusal::kDataLengthMismatch,
                    absl::StrCat("the chunks hold more than the tensor: at ", part_.offset(), " come ", part_.size(),
                                 " bytes, and it has ", upload_.size_bytes()));
    }
    return absl::OkStatus();
  }

  absl::Status TakeChunk() {
    RETURN_IF_ERROR(CheckPlace());
    if (part_.offset() != upload_.arrived()) upload_.Rewind(part_.offset());
    has_data_ = true;
    RETURN_IF_ERROR(upload_.bytes() != nullptr ? CopyChunk(upload_.bytes() + upload_.arrived()) : WriteChunk());
    upload_.Advance(part_.size());
    put_bytes_ += part_.size();
    call_.record().stages.End(Stage::kDecode);
    return absl::OkStatus();
  }

  absl::Status CopyChunk(char* to) {
    if (!part_.CopyTo(to)) return ChecksumMismatch();
    return CheckData(to, part_.size());
  }

  // Into memory of the device, all at once: each write waits for it.
  absl::Status WriteChunk() {
    const auto size = static_cast<size_t>(part_.size());
    const auto gathered = std::make_unique_for_overwrite<char[]>(size);
    RETURN_IF_ERROR(CopyChunk(gathered.get()));
    return Write(upload_.arrived(), {gathered.get(), size});
  }

  absl::Status Write(int64_t offset, absl::string_view bytes) {
    return WhileWanted(call_, kForWhat, [&] { return upload_.Write(offset, bytes); });
  }

  absl::Status ChecksumMismatch() const {
    return Refuse(Refusal::kChecksumMismatch,
                  absl::StrCat("the chunk at ", part_.offset(), " is not what its checksum says; send it again"));
  }

  // No more messages come.
  absl::Status Complete() {
    if (session_ == nullptr) return Refuse(Refusal::kMalformedMessage, "the upload ended before its header");
    v1::PutTensorResponse response;
    response.set_handle(upload_.handle());
    response.set_byte_count(upload_.arrived());
    if (upload_.arrived() == upload_.size_bytes()) {
      RETURN_IF_ERROR(upload_.Commit());
    } else if (call_.cancel()->cancelled()) {
      return Cancelled();
    } else if (!is_resumable_) {
      return Refuse(Refusal::kDataLengthMismatch,
                    absl::StrCat("the upload ended after ", upload_.arrived(), " of ", upload_.size_bytes(), " bytes"));
    }
    const grpc::Slice slice(response.SerializeAsString());
    *response_ = grpc::ByteBuffer(&slice, 1);
    call_.record().sent_bytes = static_cast<int64_t>(slice.size());
    call_.record().stages.End(Stage::kEncode);
    return absl::OkStatus();
  }

  void End(const absl::Status& status) {
    if (put_bytes_ > 0) {
      call_.parts().observers.metrics->Transferred(Transfer::kPut, put_bytes_, call_.record().stages.Total());
    }
    if (!is_resumable_) upload_.Drop();
    upload_ = TensorUpload();  // another call may go on before this one is told
    Finish(call_.Outcome(status));
  }

  ServedCall call_;
  grpc::CallbackServerContext* const context_;
  grpc::ByteBuffer* const response_;
  std::shared_ptr<StallAlarm> stall_;  // null: the client has a deadline
  std::atomic<int64_t> room_{0};       // bytes at the gate
  std::atomic<int64_t> owed_{0};       // those that have none yet
  bool has_begun_ = false;             // a message has come; of whoever reads
  grpc::ByteBuffer waiting_;           // for room
  ReadAhead ahead_;
  TensorPart part_;
  SessionPtr session_;  // null: no header yet
  TensorUpload upload_;
  ResidentType type_;
  Backend* backend_ = nullptr;  // of its device
  Step left_ = nullptr;         // of the message that is worked on, for a turn; null: none
  int64_t left_bytes_ = 0;      // of that message
  SharedPart shared_;           // to be copied; held until then, also where the client takes it back
  bool is_bool_ = false;
  bool is_resumable_ = false;
  bool has_data_ = false;
  int64_t put_bytes_ = 0;  // that came in chunks
};

}  // namespace

grpc::ServerReadReactor<grpc::ByteBuffer>* StartPutTensor(const ServiceParts& parts,
                                                          grpc::CallbackServerContext* context,
                                                          grpc::ByteBuffer* response) {
  auto* const call = new PutTensorCall(parts, context, response);
  call->Start();
  return call;
}

}  // namespace tensord::server
