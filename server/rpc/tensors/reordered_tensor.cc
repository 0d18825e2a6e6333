#include "server/rpc/tensors/reordered_tensor.h"

#include <memory>
#include <utility>

#include "engine/base/status_macros.h"
#include "proto/codec/reverse_order.h"

namespace tensord::server {

absl::StatusOr<ReorderedTensor> InOtherOrder(const ResidentTensor& tensor, const Session& session,
                                             HostBufferPool* pool) {
  const int64_t size = tensor.type.num_bytes();
  ReorderedTensor other = {.tensor = {.type = tensor.type, .version = tensor.version}};
  ASSIGN_OR_RETURN(other.charge, session.ledger()->Charge(session.tenant(), tensor.type.device, size));
  ASSIGN_OR_RETURN(const std::shared_ptr<Buffer> copy, pool->Allocate(size));
  codec::ReverseOrder(tensor.type.type, tensor.type.order, static_cast<const char*>(tensor.bytes.get()),
                      static_cast<char*>(copy->address()));
  other.tensor.bytes = std::shared_ptr<const void>(copy, copy->address());
  other.tensor.type.order = tensor.type.order == Order::kRowMajor ? Order::kColumnMajor : Order::kRowMajor;
  return other;
}

}  // namespace tensord::server
