#ifndef TENSORD_BACKENDS_CPU_ELEMENTWISE_SELECT_CLAMP_H_
#define TENSORD_BACKENDS_CPU_ELEMENTWISE_SELECT_CLAMP_H_

#include <cstdint>

#include "backends/cpu/elementwise/elementwise.h"

namespace tensord::cpu {

// out[i] = pred[i] ? on_true[i] : on_false[i] for i in [0, n); pred holds BOOL. `out` may be on_true or on_false, and
// pred too where the elements have one byte.
using SelectFunction = void (*)(const uint8_t* pred, const void* on_true, const void* on_false, void* out, int64_t n);

// Finds the function for elements of 1, 2, 4, 8 or 16 bytes.
SelectFunction FindSelect(int64_t element_bytes);

// A bound of Clamp: an array as long as the operand, or one element for all.
struct ClampBound {
  const void* data = nullptr;
  bool single = false;
};

// out[i] = minimum(maximum(x[i], low), high) for i in [0, n), with the rules of these two ops for NaN, zeros and order.
// `out` may be x or one of the bounds' arrays.
void Clamp(DType dtype, ClampBound low, const void* x, ClampBound high, void* out, int64_t n);

// Repeats one element of 1, 2, 4, 8 or 16 bytes n times.
void Splat(const void* element, int64_t element_bytes, void* out, int64_t n);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_ELEMENTWISE_SELECT_CLAMP_H_
