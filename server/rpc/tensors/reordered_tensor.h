#ifndef TENSORD_SERVER_RPC_TENSORS_REORDERED_TENSOR_H_
#define TENSORD_SERVER_RPC_TENSORS_REORDERED_TENSOR_H_

#include "absl/status/statusor.h"
#include "engine/exec/memory/host_buffer_pool.h"
#include "server/sessions/session.h"

namespace tensord::server {

// A resident tensor's elements in the other order, in memory of their own, which is the session's tenant's to pay for
// as long as the charge is held.
struct ReorderedTensor {
  ResidentTensor tensor;
  MemoryCharge charge;
};

// Fails with LIMIT_EXCEEDED, naming sessions.tenant_bytes or sessions.device_bytes; OUT_OF_MEMORY.
absl::StatusOr<ReorderedTensor> InOtherOrder(const ResidentTensor& tensor, const Session& session,
                                             HostBufferPool* pool);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_TENSORS_REORDERED_TENSOR_H_
