#include "server/rpc/tensors/get_tensor.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/steady_time.h"
#include "proto/codec/known_fields.h"
#include "proto/codec/reverse_order.h"
#include "proto/codec/type_codec.h"
#include "server/lifecycle/added_bytes.h"
#include "server/lifecycle/stall_alarm.h"
#include "server/observe/metrics/timed_transfer.h"
#include "server/rpc/calls/polling_threads.h"
#include "server/rpc/calls/reading_turn.h"
#include "server/rpc/calls/request_wait.h"
#include "server/rpc/calls/served_call.h"
#include "server/rpc/calls/while_wanted.h"
#include "server/rpc/tensors/named_tenancy.h"
#include "server/rpc/tensors/reordered_tensor.h"
#include "server/rpc/tensors/tensor_part.h"
#include "server/rpc/wire/parse_message.h"
#include "server/rpc/wire/spread_copy.h"
#include "server/sessions/session_store.h"
#include "server/shared_memory/find_shared.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {
namespace {

// `shared`: where the data is, or null.
grpc::ByteBuffer EncodeHeader(const ResidentTensor& tensor, const v1::SharedSpace* shared) {
  const ResidentType& type = tensor.type;
  v1::GetTensorResponse message;
  v1::GetTensorResponse::Header* header = message.mutable_header();
  header->set_dtype(codec::EncodeDType(type.type.dtype));
  header->mutable_shape()->Assign(type.type.shape.begin(), type.type.shape.end());
  header->set_order(static_cast<v1::MemoryOrder>(type.order));
  header->set_version(tensor.version);
  if (shared != nullptr) *header->mutable_shared() = *shared;
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

// Reactions come in turns, and after the end of the wait for the tensor; only OnCancel may come beside them.
class GetTensorCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  GetTensorCall(const ServiceParts& parts, grpc::CallbackServerContext* context)
      : call_(parts, RpcMethod::kGetTensor, context), context_(context) {}

  void Start(grpc::ByteBuffer* request) {
    // The chunks are slices of the tensor's own memory, or of a copy that is charged.
    const absl::Status entered = call_.Enter(static_cast<int64_t>(request->Length()), /*is_message=*/true);
    if (!entered.ok()) return End(entered);
    const absl::Status claimed = Claim(request);
    if (!claimed.ok()) return End(claimed);
    call_.record().stages.End(Stage::kParse);
    Await();
  }

 private:
  static constexpr char kForWhat[] = "the tensor was copied";

  void OnWriteDone(bool ok) override {
    call_.record().stages.End(Stage::kSend);
    Continue([this, ok]() -> absl::Status {
      if (!ok) return Refuse(Refusal::kCancelled, "the client cancelled the download");
      sent_bytes_ += std::exchange(chunk_bytes_, 0);
      return call_.AdmitAgain();
    });
  }
  void OnCancel() override { call_.Cancelled(); }
  void OnDone() override {
    if (stall_ != nullptr && stall_->End()) {
      call_.record().Refused(Refuse(Refusal::kDeadlineExceeded,
                                    "the client took nothing more of the download; without a deadline of its own it "
                                    "has limits.default_deadline_ms from message to message"));
    }
    if (sent_bytes_ > 0) {
      call_.parts().observers.metrics->Transferred(Transfer::kGet, sent_bytes_, call_.record().stages.Total());
    }
    call_.Ended();
    delete this;
  }

  // Ends the call with a refusal of `step`.
  template <typename Step>
  void EndUnless(Step&& step) {
    try {
      const absl::Status status = step();
      if (!status.ok()) End(status);
    } catch (const std::exception& error) {
      End(Refuse(Refusal::kInternal, error.what()));
    }
  }

  // Ends the call with a refusal of `step`, and after the last message; otherwise writes the next one.
  template <typename Step>
  void Continue(Step&& step) {
    EndUnless([&]() -> absl::Status {
      RETURN_IF_ERROR(step());
      if (!written_ || position_ < tensor_.type.num_bytes()) return IsExportedNext() ? WriteInTurn() : WriteNext();
      End(absl::OkStatus());
      return absl::OkStatus();
    });
  }

  // Tells whether the next message is one that the device copies, for which a reaction is not to wait.
  bool IsExportedNext() const { return written_ && is_copied_ && reordered_ == nullptr; }

  absl::Status WriteInTurn() {
    return InReadingTurn(
        call_, call_.DeadlineOf(SteadyNow()), kForWhat, [this] { EndUnless([this] { return WriteNext(); }); },
        [this](const absl::Status& status) { End(status); });
  }

  absl::Status Claim(grpc::ByteBuffer* bytes) {
    RETURN_IF_ERROR(call_.Measure(*bytes, *v1::GetTensorRequest::descriptor()).status());  // it has no lists
    RETURN_IF_ERROR(ParseMessage(bytes, &request_));
    ASSIGN_OR_RETURN(session_, FindSession(call_, call_.record(), request_.session()));
    if (request_.has_shared()) {
      RETURN_IF_ERROR(codec::CheckKnownFields(request_.shared()));
      absl::StatusOr<SharedPart> part =
          FindShared(call_.parts().tensors.regions, call_.caller().tenant, request_.shared());
      if (!part.ok()) TellOfRegion(call_, call_.record(), part.status(), request_.shared().region());
      ASSIGN_OR_RETURN(shared_, std::move(part));
    }
    HandleRequest wanted;
    wanted.uses.push_back({.handle = request_.handle()});
    ASSIGN_OR_RETURN(claim_, session_->Claim(std::move(wanted)));
    return absl::OkStatus();
  }

  // Until the tensor is made, but no longer than any call may take. Afterwards progress counts.
  void Await() {
    call_.open().At(Stage::kAwait);
    const auto wait = std::make_shared<RequestWait>(call_.parts().admission.alarms, call_.DeadlineOf(SteadyNow()),
                                                    call_.cancel(), "the tensor was made");
    const bool ready = claim_.ReadyOrElse([this, wait] {
      if (wait->End()) call_.parts().admission.turns->Submit(call_.caller().tenant, [this] { EndWait(); });
    });
    if (ready) return EndWait();
    // Not the call's own any more: the tensor may have come, and all be over.
    wait->Watch([this](const absl::Status& status) {
      call_.record().stages.End(Stage::kAwait);
      End(status);
    });
  }

  void EndWait() {
    call_.record().stages.End(Stage::kAwait);
    call_.open().At(Stage::kEncode);
    const auto begin = [this] {
      Continue([this] { return WhileWanted(call_, kForWhat, [this] { return Begin(); }); });
    };
    if (!IsCopied()) return begin();
    const absl::Status turn = InReadingTurn(call_, call_.DeadlineOf(SteadyNow()), kForWhat, begin,
                                            [this](const absl::Status& status) { End(status); });
    if (!turn.ok()) End(turn);
  }

  // Tells whether all of the tensor is copied before anything is sent, and that may take long: it is long, or its
  // device is waited for.
  bool IsCopied() {
    if (!claim_.CheckReady().ok()) return false;
    const ResidentType type = claim_.TypeOf(0);
    const bool is_as_it_lies = request_.order() == v1::MEMORY_ORDER_UNSPECIFIED ||
                               request_.order() == static_cast<v1::MemoryOrder>(type.order);
    if (!request_.has_shared() && is_as_it_lies) return false;
    const auto executor = call_.parts().devices.executors->Find(type.device);
    return type.num_bytes() >= kLongBytes ||
           (executor.ok() && !(*executor)->backend()->Describe().computes_in_host_memory);
  }

  absl::Status Begin() {
    if (call_.cancel()->cancelled()) return Refuse(Refusal::kCancelled, "the client cancelled the download");
    RETURN_IF_ERROR(claim_.CheckReady());
    ASSIGN_OR_RETURN(tensor_, claim_.Read(0));
    call_.record().device = tensor_.type.device;
    ASSIGN_OR_RETURN(const Order order, codec::DecodeOrder(request_.order(), tensor_.type.order));
    position_ = request_.offset();
    if (position_ < 0 || position_ > tensor_.type.num_bytes()) {
      return Refuse(Refusal::kChunkInvalid, absl::StrCat("the offset is not in the tensor, which has ",
                                                         tensor_.type.num_bytes(), " bytes: ", position_));
    }
    const bool is_reordered = order != tensor_.type.order && tensor_.type.type.rank() > 1;
    ASSIGN_OR_RETURN(DeviceExecutor * executor, call_.parts().devices.executors->Find(tensor_.type.device));
    backend_ = executor->backend();
    is_copied_ = !backend_->Describe().computes_in_host_memory;
    if (request_.has_shared()) {
      RETURN_IF_ERROR(Place(is_reordered));
    } else if (request_.most_bytes() > 0 && tensor_.type.num_bytes() > request_.most_bytes()) {
      position_ = tensor_.type.num_bytes();  // the header alone
    } else if (is_reordered) {
      ASSIGN_OR_RETURN(ReorderedTensor other,
                       InOtherOrder(tensor_, backend_, *session_, call_.parts().tensors.payloads));
      reordered_ = std::move(other.bytes);
      tensor_.buffer = nullptr;
      charge_ = std::move(other.charge);
    } else if (is_copied_) {
      const int64_t chunk = std::min(kMaxChunkBytes, tensor_.type.num_bytes() - position_);
      ASSIGN_OR_RETURN(AddedBytes bytes,
                       AddedBytes::Add(call_.parts().tensors.unread_results, chunk, call_.caller().tenant));
      chunk_charge_.emplace(std::move(bytes));
    }
    tensor_.type.order = order;
    WatchProgress();
    return absl::OkStatus();
  }

  // Lasts until the end is sent too. Chunks that the client does not take may not keep the tensor's memory for ever.
  void WatchProgress() {
    // The client's own is kept by gRPC.
    if (call_.HasDeadline()) return;
    stall_ = std::make_shared<StallAlarm>(call_.parts().admission.alarms, call_.parts().admission.default_deadline,
                                          [context = context_] { context->TryCancel(); });
  }

  // All of the tensor, into shared memory.
  absl::Status Place(bool is_reordered) {
    const int64_t size = tensor_.type.num_bytes();
    if (position_ != 0) {
      return Refuse(Refusal::kChunkInvalid,
                    absl::StrCat("all of a tensor goes into shared memory: the offset is 0 there, not ", position_));
    }
    if (size > shared_.size_bytes) {
      return Refuse(Refusal::kRegionRange, absl::StrCat("the place in shared memory has ", shared_.size_bytes,
                                                        " bytes, and the tensor has ", size));
    }
    const TimedTransfer timed(call_.parts().observers.metrics, Transfer::kShared, size);
    RETURN_IF_ERROR(is_reordered ? PlaceReordered() : PlaceAsItLies());
    request_.mutable_shared()->set_byte_count(size);  // for the header
    position_ = size;
    return absl::OkStatus();
  }

  absl::Status PlaceReordered() {
    const ResidentType& type = tensor_.type;
    MemoryCharge charge;
    if (is_copied_) {
      ASSIGN_OR_RETURN(charge, session_->ledger()->Charge(session_->tenant(), type.device, type.num_bytes()));
    }
    ASSIGN_OR_RETURN(const std::shared_ptr<const void> from, backend_->Export(tensor_.buffer));
    codec::ReverseOrder(type.type, type.order, static_cast<const char*>(from.get()), shared_.bytes);
    return absl::OkStatus();
  }

  // From a device with memory of its own in pieces, so that no copy of all of it lies beside.
  absl::Status PlaceAsItLies() {
    const int64_t size = tensor_.type.num_bytes();
    const int64_t most = is_copied_ ? kMaxChunkBytes : size;
    for (int64_t at = 0; at < size; at += most) {
      const int64_t piece = std::min(most, size - at);
      ASSIGN_OR_RETURN(const std::shared_ptr<const void> from,
                       backend_->Export(Buffer::View(tensor_.buffer, at, piece)));
      SpreadCopy({static_cast<const char*>(from.get()), static_cast<size_t>(piece)}, shared_.bytes + at,
                 call_.parts().tensors.parallel_for);
    }
    return absl::OkStatus();
  }

  // Returns bytes of the tensor in the wanted order, in memory of the host.
  absl::StatusOr<std::shared_ptr<const void>> BytesAt(int64_t position, int64_t size) {
    if (reordered_ != nullptr) {
      return std::shared_ptr<const void>(reordered_, static_cast<const char*>(reordered_.get()) + position);
    }
    std::shared_ptr<const void> bytes;
    RETURN_IF_ERROR(WhileWanted(call_, kForWhat, [&]() -> absl::Status {
      ASSIGN_OR_RETURN(bytes, backend_->Export(Buffer::View(tensor_.buffer, position, size)));
      return absl::OkStatus();
    }));
    return bytes;
  }

  absl::Status WriteNext() {
    session_->Renew();
    if (!written_) {
      message_ = EncodeHeader(tensor_, request_.has_shared() ? &request_.shared() : nullptr);
    } else {
      const int64_t size = std::min(kMaxChunkBytes, tensor_.type.num_bytes() - position_);
      chunk_bytes_ = size;
      const PollingThreads::LongReaction others(call_.parts().admission.polling, size);
      message_.Clear();  // of a copy there is one at a time
      ASSIGN_OR_RETURN(const std::shared_ptr<const void> bytes, BytesAt(position_, size));
      message_ = EncodeChunk(position_, {static_cast<const char*>(bytes.get()), static_cast<size_t>(size)}, bytes);
      position_ += size;
    }
    written_ = true;
    call_.record().sent_bytes += static_cast<int64_t>(message_.Length());
    call_.record().stages.End(Stage::kEncode);
    if (stall_ != nullptr) stall_->Progress();
    call_.open().At(Stage::kSend);
    StartWrite(&message_);
    return absl::OkStatus();
  }

  void End(const absl::Status& status) { Finish(call_.Outcome(status)); }

  ServedCall call_;
  grpc::CallbackServerContext* const context_;
  std::shared_ptr<StallAlarm> stall_;  // null: not sending yet, or the client has a deadline
  v1::GetTensorRequest request_;
  SessionPtr session_;
  HandleClaim claim_;
  ResidentTensor tensor_;
  Backend* backend_ = nullptr;              // of its device
  bool is_copied_ = false;                  // its device has memory of its own
  SharedPart shared_;                       // where all goes, if anywhere
  std::shared_ptr<const void> reordered_;   // all of it, if it is wanted in the other order
  MemoryCharge charge_;                     // of that
  std::optional<AddedBytes> chunk_charge_;  // of the copy that is being sent
  int64_t position_ = 0;                    // of the next chunk
  bool written_ = false;                    // the header
  int64_t chunk_bytes_ = 0;                 // of the chunk that is being sent
  int64_t sent_bytes_ = 0;                  // of those that were
  grpc::ByteBuffer message_;
};

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* StartGetTensor(const ServiceParts& parts,
                                                           grpc::CallbackServerContext* context,
                                                           const grpc::ByteBuffer* request) {
  auto* const call = new GetTensorCall(parts, context);
  // The request is the call's alone; gRPC hands it out as const only because typed methods may not change it.
  call->Start(const_cast<grpc::ByteBuffer*>(request));
  return call;
}

}  // namespace tensord::server
