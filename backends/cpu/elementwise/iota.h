#ifndef TENSORD_BACKENDS_CPU_ELEMENTWISE_IOTA_H_
#define TENSORD_BACKENDS_CPU_ELEMENTWISE_IOTA_H_

#include <cstdint>

#include "engine/tensor/shape.h"

namespace tensord::cpu {

// The numbers 0, 1, 2, … along one axis of a dense column-major tensor, the same along all others. A value;
// thread-safe.
class Iota {
 public:
  // `axis` must be an axis of the type, whose dtype is a number's.
  Iota(const ConcreteType& type, int64_t axis);

  // Writes the elements [begin, end) of the tensor, in memory order, to out[0], out[1], ….
  void Fill(int64_t begin, int64_t end, void* out) const;

 private:
  DType dtype_;
  int64_t repeat_ = 1;  // elements between two along the axis
  int64_t size_ = 1;    // of the axis
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_ELEMENTWISE_IOTA_H_
