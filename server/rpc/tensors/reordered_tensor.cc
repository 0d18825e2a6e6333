#include "server/rpc/tensors/reordered_tensor.h"

#include <memory>
#include <utility>

#include "engine/base/status_macros.h"
#include "proto/codec/reverse_order.h"

namespace tensord::server {

absl::StatusOr<ReorderedTensor> InOtherOrder(const ResidentTensor& tensor, Backend* backend, const Session& session,
                                             HostBufferPool* pool) {
  const int64_t size = tensor.type.num_bytes();
  ReorderedTensor other;
  ASSIGN_OR_RETURN(other.charge, session.ledger()->Charge(session.tenant(), tensor.type.device, size));
  MemoryCharge exported_charge;
  if (!backend->Describe().computes_in_host_memory) {
    ASSIGN_OR_RETURN(exported_charge, session.ledger()->Charge(session.tenant(), tensor.type.device, size));
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<const void> from, backend->Export(tensor.buffer));
  ASSIGN_OR_RETURN(const std::shared_ptr<Buffer> copy, pool->Allocate(size));
  codec::ReverseOrder(tensor.type.type, tensor.type.order, static_cast<const char*>(from.get()),
                      static_cast<char*>(copy->address()));
  other.bytes = std::shared_ptr<const void>(copy, copy->address());
  return other;
}

}  // namespace tensord::server
