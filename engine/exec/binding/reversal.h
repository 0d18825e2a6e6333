#ifndef TENSORD_ENGINE_EXEC_BINDING_REVERSAL_H_
#define TENSORD_ENGINE_EXEC_BINDING_REVERSAL_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "engine/exec/backend/backend.h"
#include "engine/exec/backend/buffer.h"
#include "engine/exec/binding/bound_program.h"
#include "engine/exec/program/exec_program.h"
#include "engine/tensor/shape.h"

namespace tensord {

// The transposition of tensors of one type on one device, from row-major to column-major order. Immutable, so
// thread-safe. The backend must outlive it.
class Reversal {
 public:
  // `type` is the tensors' own. Fails as BoundProgram::Create does.
  static absl::StatusOr<std::shared_ptr<const Reversal>> Create(const ConcreteType& type, Backend* backend);

  // Returns a buffer with the tensor's elements in column-major order. `buffer` holds them in row-major order, which is
  // the column-major one of the reversed shape. Where all sizes but one are 1 that is the same memory. The device
  // transposes them on the calling thread. Fails as BoundProgram::Run does; ends early with the refusal of `check`.
  absl::StatusOr<BufferPtr> Run(const BufferPtr& buffer, const RunCheck& check) const;

  // Returns the bytes that it holds of the host's memory.
  int64_t held_bytes() const { return program_.size_bytes() + bound_->held_bytes(); }

 private:
  explicit Reversal(ExecProgram program) : program_(std::move(program)) {}

  const ExecProgram program_;
  std::unique_ptr<const BoundProgram> bound_;  // constant after Create
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_BINDING_REVERSAL_H_
