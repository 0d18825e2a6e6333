#ifndef TENSORD_BACKENDS_CPU_CONTRACTION_OPERANDS_PADDED_COPY_H_
#define TENSORD_BACKENDS_CPU_CONTRACTION_OPERANDS_PADDED_COPY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/cpu/layout/strided_copy.h"
#include "backends/cpu/machine/thread_pool.h"
#include "engine/tensor/shape.h"
#include "engine/tensor/tensor_type.h"

namespace tensord::cpu {

// A copy of a tensor with zeros around it, of which any axis may lie first.
//
// Immutable after construction, so thread-safe. Run does not allocate and cannot fail.
class PaddedCopy {
 public:
  // `low` zeros before the first element of each axis, `padded` elements of each in all. Elements along `first_axis`
  // lie side by side; the other axes follow in their order.
  PaddedCopy(const ConcreteType& type, const Shape& low, const Shape& padded, size_t first_axis);

  const Shape& strides() const { return strides_; }  // by axis of the tensor, in elements
  int64_t bytes() const { return bytes_; }
  void Run(const char* tensor, char* copy, ThreadPool* pool) const;

 private:
  struct Step {
    StridedCopy copy;
    int64_t place_bytes = 0;
  };

  Shape strides_;
  int64_t bytes_ = 0;
  Step elements_;
  std::vector<Step> zeros_;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_CONTRACTION_OPERANDS_PADDED_COPY_H_
