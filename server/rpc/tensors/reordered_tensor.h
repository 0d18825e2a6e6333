#ifndef TENSORD_SERVER_RPC_TENSORS_REORDERED_TENSOR_H_
#define TENSORD_SERVER_RPC_TENSORS_REORDERED_TENSOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/exec/backend/backend.h"
#include "engine/exec/memory/host_buffer_pool.h"
#include "server/sessions/session.h"

namespace tensord::server {

// A resident tensor's elements in the other order, in memory of the host, which is the session's tenant's to pay for as
// long as the charge is held.
struct ReorderedTensor {
  std::shared_ptr<const void> bytes;
  MemoryCharge charge;
};

// Reverses the order on the host; on a device with memory of its own, of a copy there, which is charged too meanwhile.
// Fails with LIMIT_EXCEEDED, naming sessions.tenant_bytes or sessions.device_bytes; OUT_OF_MEMORY; as the device does.
absl::StatusOr<ReorderedTensor> InOtherOrder(const ResidentTensor& tensor, Backend* backend, const Session& session,
                                             HostBufferPool* pool);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_TENSORS_REORDERED_TENSOR_H_
