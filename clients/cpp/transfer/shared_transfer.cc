#include "clients/cpp/transfer/shared_transfer.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "clients/cpp/connection/steady_time.h"
#include "clients/cpp/transfer/tensor_gathering.h"
#include "clients/cpp/transfer/tensor_transfer.h"
#include "tensord/error_detail.h"

namespace tensord::client {
namespace {

// A download asks for the size first: up to this size that call brings the tensor too, which is as fast as another
// call.
constexpr uint64_t kMostInMessages = uint64_t{512} << 10;

// Half of the time at most: where no memory comes, the tensor still goes in messages.
absl::StatusOr<std::shared_ptr<char>> Allocate(SharedMemory& memory, size_t size_bytes, absl::Time deadline) {
  return memory.Allocate(size_bytes, absl::Now() + (deadline - SteadyNow()) / 2);
}

v1::SharedSpace SpaceOf(const SharedPlace& place, size_t size_bytes) {
  v1::SharedSpace space;
  space.set_region(place.region);
  space.set_offset(place.offset);
  space.set_byte_count(static_cast<int64_t>(size_bytes));
  return space;
}

// Tells whether a call that failed in this way leaves the tensor to messages.
bool IsForMessages(const absl::Status& status, SharedMemory& memory) {
  const std::string reason = ReasonOf(status);
  if (reason == "REGION_UNKNOWN") {
    memory.SetLost();
    return true;
  }
  // An older server has taken the place of the one that offered it.
  return reason == "UNSUPPORTED_REQUEST" || IsBroken(status);
}

}  // namespace

SharedUpload UploadShared(SharedMemory* memory, grpc::GenericStub& stub, const MakeContext& make_context,
                          absl::Time deadline, v1::PutTensorRequest::Header header, const HostTensor& tensor) {
  const size_t size = tensor.size_bytes();
  if (memory == nullptr || memory->is_lost() || size < kSharedFrom) return {};
  std::shared_ptr<char> copy;
  std::optional<SharedPlace> place = memory->Find(tensor.bytes(), size);
  if (!place.has_value()) {
    absl::StatusOr<std::shared_ptr<char>> block = Allocate(*memory, size, deadline);
    if (!block.ok()) return {};
    copy = *std::move(block);
    std::memcpy(copy.get(), tensor.bytes(), size);
    place = memory->Find(copy.get(), size);
    if (!place.has_value()) return {};  // lost meanwhile
  }
  *header.mutable_shared() = SpaceOf(*place, size);
  const SentTensor sent = SendTensor(stub, make_context(deadline), std::move(header), tensor, 0, 0);
  if (sent.status.ok()) {
    if (sent.arrived == size) return {.outcome = absl::OkStatus()};
    return {.outcome = absl::InternalError("the server lost bytes of an upload")};
  }
  // The server may still read it.
  if (copy != nullptr) memory->Forget(copy.get());
  if (IsForMessages(sent.status, *memory)) return {.outcome = std::nullopt, .was_sent = IsBroken(sent.status)};
  return {.outcome = sent.status};
}

std::optional<absl::StatusOr<HostTensor>> DownloadShared(SharedMemory* memory, grpc::GenericStub& stub,
                                                         const MakeContext& make_context, absl::Time deadline,
                                                         v1::GetTensorRequest request) {
  if (memory == nullptr || memory->is_lost()) return std::nullopt;
  const auto receive = [&](TensorGathering* gathering) {
    return ReceiveTensor(stub, make_context(deadline), request, gathering);
  };
  // Returns an outcome other than the tensor; none: it goes in messages.
  const auto failure = [&](const absl::Status& status) -> std::optional<absl::StatusOr<HostTensor>> {
    // A chunk came to harm, or the tensor became a larger one meanwhile.
    const bool is_changed = absl::IsDataLoss(status) || ReasonOf(status) == "REGION_RANGE";
    if (is_changed || IsForMessages(status, *memory)) return std::nullopt;
    return status;
  };
  request.set_most_bytes(static_cast<int64_t>(kMostInMessages));
  TensorGathering first;
  const absl::Status told = receive(&first);
  if (!told.ok()) return failure(told);
  if (first.is_complete()) return first.Take();
  if (first.size() <= kMostInMessages) return std::nullopt;  // the rest was lost

  const size_t size = first.size();
  const absl::StatusOr<std::shared_ptr<char>> block = Allocate(*memory, size, deadline);
  if (!block.ok()) return std::nullopt;
  const std::optional<SharedPlace> place = memory->Find(block->get(), size);
  if (!place.has_value()) return std::nullopt;  // lost meanwhile
  *request.mutable_shared() = SpaceOf(*place, size);
  TensorGathering second({.bytes = *block, .size_bytes = size});
  const absl::Status received = receive(&second);
  if (received.ok()) return second.Take();
  memory->Forget(block->get());  // the server may still write there
  return failure(received);
}

}  // namespace tensord::client
