#ifndef TENSORD_ENGINE_RUNTIME_DEVICES_RUN_TENSOR_H_
#define TENSORD_ENGINE_RUNTIME_DEVICES_RUN_TENSOR_H_

#include <memory>

#include "engine/exec/backend/buffer.h"
#include "engine/exec/binding/reversal.h"
#include "engine/tensor/shape.h"

namespace tensord {

// A dense tensor of a run, with what keeps its elements alive. `type` is the slot's: for a row-major program the
// reversed shape, whose column-major bytes are the client's row-major ones.
//
// An argument is a buffer of the run's device, or else bytes of the host. A result is a buffer, and bytes of the host
// too where these were asked for: the same memory on a device whose memory is the host's.
struct RunTensor {
  ConcreteType type;
  std::shared_ptr<const void> bytes;
  BufferPtr buffer;
  // An argument's memory is writable and nobody else reads it, so the run may use it up.
  bool donated = false;
  // An argument's elements lie in its buffer in the other order, as those of the reversed shape do; the run reads a
  // copy that the device makes.
  bool reversed = false;
  // The transposition that makes this copy. Null: the run prepares it, or nothing is reversed.
  std::shared_ptr<const Reversal> reversal;
  // Nobody else has the memory of a result's buffer, which is hardly larger.
  bool sole = false;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_DEVICES_RUN_TENSOR_H_
