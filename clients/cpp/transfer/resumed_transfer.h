#ifndef TENSORD_CLIENTS_CPP_TRANSFER_RESUMED_TRANSFER_H_
#define TENSORD_CLIENTS_CPP_TRANSFER_RESUMED_TRANSFER_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/cpp/connection/upload_connection.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "tensord/host_tensor.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::client {

// The context of a call with that deadline, by SteadyNow as all of them here.
using MakeContext = std::function<std::unique_ptr<grpc::ClientContext>(absl::Time deadline)>;

// Tells whether the connection broke, or there is none at the moment; a refusing server gives a reason.
bool IsBroken(const absl::Status& status);

// Tensors to a session and back by as many calls as it takes. If a connection breaks, or a chunk comes to harm, another
// call goes on at the byte that the other end has, after a pause (RetryBackoff). All of them have one deadline. They
// block; the status of another failure, or of too many in a row, is the last call's.

// Uploads a tensor; large ones go by `large`. An upload that fails for good leaves nothing on a server that can still
// be told so; elsewhere the received bytes stay under the handle until it is uploaded again or deleted, or the session
// ends. `was_sent`: an earlier call sent all of it, and its answer never came.
absl::Status UploadTensor(grpc::GenericStub& stub, UploadConnection& large, const MakeContext& make_context,
                          absl::Time deadline, v1::PutTensorRequest::Header header, const HostTensor& tensor,
                          bool was_sent = false);

absl::StatusOr<HostTensor> DownloadTensor(grpc::GenericStub& stub, const MakeContext& make_context, absl::Time deadline,
                                          v1::GetTensorRequest request);

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_TRANSFER_RESUMED_TRANSFER_H_
