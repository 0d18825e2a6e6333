#ifndef TENSORD_ENGINE_RUNTIME_DEVICES_REVERSED_BUFFER_H_
#define TENSORD_ENGINE_RUNTIME_DEVICES_REVERSED_BUFFER_H_

#include "absl/status/statusor.h"
#include "engine/exec/backend/backend.h"
#include "engine/exec/backend/buffer.h"
#include "engine/tensor/shape.h"

namespace tensord {

// Returns a buffer of its own with the elements of a tensor in column-major order. `type` is the tensor's; `buffer`
// holds its elements in row-major order, which are the column-major ones of the reversed shape. The device transposes
// them, on the calling thread. Fails as BoundProgram's Create and Run do; ends early with the refusal of `check`.
absl::StatusOr<BufferPtr> ReversedBuffer(const ConcreteType& type, const BufferPtr& buffer, Backend* backend,
                                         const RunCheck& check);

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_DEVICES_REVERSED_BUFFER_H_
