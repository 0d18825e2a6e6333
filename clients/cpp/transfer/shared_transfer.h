#ifndef TENSORD_CLIENTS_CPP_TRANSFER_SHARED_TRANSFER_H_
#define TENSORD_CLIENTS_CPP_TRANSFER_SHARED_TRANSFER_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/cpp/transfer/resumed_transfer.h"
#include "grpcpp/generic/generic_stub.h"
#include "tensord/host_tensor.h"
#include "tensord/shared_memory.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::client {

// Whole tensors to a session and back through shared memory, one attempt, which blocks. Messages (resumed_transfer)
// carry small tensors, those for which no memory is found in half of the time, and those that the server cannot take
// that way or not at the moment; all tensors if `memory` is null.

struct SharedUpload {
  std::optional<absl::Status> outcome;  // none: in messages
  bool was_sent = false;                // then: by a call whose answer never came
};

// A tensor that lies in shared memory is not copied there first.
SharedUpload UploadShared(SharedMemory* memory, grpc::GenericStub& stub, const MakeContext& make_context,
                          absl::Time deadline, v1::PutTensorRequest::Header header, const HostTensor& tensor);

// The tensor then lies in shared memory, unless it is small. One call asks how large it is, and brings it where it is
// at most half a MiB. None: in messages.
std::optional<absl::StatusOr<HostTensor>> DownloadShared(SharedMemory* memory, grpc::GenericStub& stub,
                                                         const MakeContext& make_context, absl::Time deadline,
                                                         v1::GetTensorRequest request);

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_TRANSFER_SHARED_TRANSFER_H_
