#include "clients/cpp/transfer/resumed_transfer.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/random/random.h"
#include "clients/cpp/connection/cancellation.h"
#include "clients/cpp/connection/retry_backoff.h"
#include "clients/cpp/connection/steady_time.h"
#include "clients/cpp/transfer/tensor_gathering.h"
#include "clients/cpp/transfer/tensor_transfer.h"
#include "tensord/error_detail.h"

namespace tensord::client {
namespace {

constexpr absl::Duration kCleanUp = absl::Seconds(1);

// Returns the id of an upload: it does not go on from bytes that another upload left under the handle.
uint64_t NewId() { return absl::Uniform<uint64_t>(absl::IntervalClosed, absl::BitGen(), 1, UINT64_MAX); }

// Waits before another attempt. Returns `failure` if there is no time for one, and CANCELLED if the call is given up.
absl::Status Pause(RetryBackoff& backoff, absl::Time deadline, const absl::Status& failure) {
  const std::optional<absl::Duration> pause = backoff.Next(SteadyNow(), deadline);
  if (!pause.has_value()) return failure;
  return PauseFor(*pause) ? absl::OkStatus() : absl::CancelledError("cancelled between two attempts");
}

// One upload, as the calls before left it.
class Upload {
 public:
  Upload(grpc::GenericStub& stub, UploadConnection& large, const MakeContext& make_context, absl::Time deadline,
         v1::PutTensorRequest::Header header, const HostTensor& tensor, bool was_sent)
      : stub_(stub),
        large_(large),
        make_context_(make_context),
        deadline_(deadline),
        header_(std::move(header)),
        tensor_(tensor),
        was_sent_(was_sent) {
    header_.set_upload_id(NewId());
  }

  absl::Status Run() {
    const size_t size = tensor_.size_bytes();
    for (bool asks = false;;) {
      SentTensor sent = Send(begin_, asks ? begin_ : size, deadline_);
      if (sent.status.ok()) {
        if (sent.arrived == size) return absl::OkStatus();
        if (!asks || sent.arrived > size) return absl::InternalError("the server lost bytes of an upload");
        // Not where it lost bytes that it has again: that might go on for ever.
        if (sent.arrived > furthest_) backoff_.Progress();
        begin_ = sent.arrived;
        furthest_ = std::max(furthest_, begin_);
        asks = false;
        continue;
      }
      if (was_sent_ && ReasonOf(sent.status) == "HANDLE_DUPLICATE") return CheckThere(sent.status);
      if (!MayGoOn(sent.status, asks || was_sent_)) {
        if (LeavesSome(sent.status) && !sent.is_late) GiveUp();
        return sent.status;
      }
      was_sent_ = was_sent_ || (!asks && sent.is_sent);
      const absl::Status paused = Pause(backoff_, deadline_, sent.status);
      if (absl::IsCancelled(paused) && !sent.is_late) GiveUp();
      if (!paused.ok()) return paused;
      asks = true;
    }
  }

 private:
  SentTensor Send(size_t begin, size_t end, absl::Time deadline) {
    header_.set_resumable(true);
    SentTensor sent;
    large_.Call(end - begin, stub_, [&](grpc::GenericStub& stub) {
      sent = SendTensor(stub, make_context_(deadline), header_, tensor_, begin, end);
    });
    return sent;
  }

  // `is_other`: not the first call.
  static bool MayGoOn(const absl::Status& status, bool is_other) {
    const std::string reason = ReasonOf(status);
    // The server has not noticed yet that the call before is over.
    if (is_other && reason == "HANDLE_INCOMPLETE") return true;
    return IsBroken(status) || reason == "CHECKSUM_MISMATCH";
  }

  // Tells whether a failed upload leaves a part: not if it was refused at the header.
  static bool LeavesSome(const absl::Status& status) {
    const std::string reason = ReasonOf(status);
    return reason != "SESSION_UNKNOWN" && reason != "HANDLE_DUPLICATE" && reason != "OUT_OF_MEMORY";
  }

  // The tensor under the handle is this one where only the answer was lost; another was there all the time otherwise.
  absl::Status CheckThere(const absl::Status& refused) {
    v1::GetTensorRequest request;
    request.set_session(header_.session());
    request.set_handle(header_.handle());
    request.set_order(ToWire(tensor_.order()));
    const absl::StatusOr<HostTensor> there = DownloadTensor(stub_, make_context_, deadline_, std::move(request));
    if (!there.ok()) return there.status();
    const bool is_same = there->dtype() == tensor_.dtype() && there->shape() == tensor_.shape() &&
                         there->order() == tensor_.order() &&
                         std::memcmp(there->bytes(), tensor_.bytes(), tensor_.size_bytes()) == 0;
    return is_same ? absl::OkStatus() : refused;
  }

  // Deletes a part left by a broken upload: an upload that is not resumable, and ends early, does so. An upload of
  // somebody else, or a tensor, stays.
  void GiveUp() {
    const Cancellation::Scope unshaken(nullptr);
    header_.set_resumable(false);
    const absl::Time deadline = SteadyNow() + kCleanUp;
    RetryBackoff backoff;
    // Tries again if the server has not noticed yet that the upload is over.
    absl::Status status;
    do {
      status = SendTensor(stub_, make_context_(deadline), header_, tensor_, 0, 0).status;
      if (ReasonOf(status) != "HANDLE_INCOMPLETE") return;
    } while (Pause(backoff, deadline, status).ok());
  }

  grpc::GenericStub& stub_;
  UploadConnection& large_;
  const MakeContext& make_context_;
  const absl::Time deadline_;
  v1::PutTensorRequest::Header header_;
  const HostTensor& tensor_;
  RetryBackoff backoff_;
  size_t begin_ = 0;     // those before are there
  size_t furthest_ = 0;  // its largest value
  bool was_sent_;        // to the last byte, by a call whose answer never came
};

}  // namespace

bool IsBroken(const absl::Status& status) { return absl::IsUnavailable(status) && ReasonOf(status).empty(); }

absl::Status UploadTensor(grpc::GenericStub& stub, UploadConnection& large, const MakeContext& make_context,
                          absl::Time deadline, v1::PutTensorRequest::Header header, const HostTensor& tensor,
                          bool was_sent) {
  return Upload(stub, large, make_context, deadline, std::move(header), tensor, was_sent).Run();
}

absl::StatusOr<HostTensor> DownloadTensor(grpc::GenericStub& stub, const MakeContext& make_context, absl::Time deadline,
                                          v1::GetTensorRequest request) {
  TensorGathering gathering;
  RetryBackoff backoff;
  while (true) {
    const uint64_t begin = gathering.arrived();
    request.set_offset(static_cast<int64_t>(begin));
    absl::Status received = ReceiveTensor(stub, make_context(deadline), request, &gathering);
    if (received.ok() && gathering.is_complete()) return gathering.Take();
    if (received.ok()) received = AnswerLost();
    if (!IsBroken(received) && !absl::IsDataLoss(received)) return received;
    if (gathering.arrived() > begin) backoff.Progress();
    if (absl::Status paused = Pause(backoff, deadline, received); !paused.ok()) return paused;
  }
}

}  // namespace tensord::client
