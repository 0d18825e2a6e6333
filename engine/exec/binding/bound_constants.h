#ifndef TENSORD_ENGINE_EXEC_BINDING_BOUND_CONSTANTS_H_
#define TENSORD_ENGINE_EXEC_BINDING_BOUND_CONSTANTS_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/mutex.h"
#include "engine/exec/backend/buffer.h"
#include "engine/exec/binding/constant_buffers.h"
#include "engine/tensor/literal.h"

namespace tensord {

// Constants that something bound holds on its device. Thread-safe.
class BoundConstants {
 public:
  using Buffers = std::shared_ptr<const std::vector<BufferPtr>>;

  BoundConstants(std::vector<LiteralPtr> literals, std::shared_ptr<ConstantBuffers> device)
      : literals_(std::move(literals)), device_(std::move(device)) {}

  // Returns a buffer for each literal. One of those who ask gets them on first use, and anew where the device has lost
  // one, and the others wait. Fails as ConstantBuffers::Get does; each leaves early as CheckStopped says.
  absl::StatusOr<Buffers> Get();

 private:
  const std::vector<LiteralPtr> literals_;
  const std::shared_ptr<ConstantBuffers> device_;
  Mutex mutex_;
  CondVar got_;
  Buffers buffers_ ABSL_GUARDED_BY(mutex_);          // null: not asked for yet
  bool is_getting_ ABSL_GUARDED_BY(mutex_) = false;  // one thread
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_BINDING_BOUND_CONSTANTS_H_
