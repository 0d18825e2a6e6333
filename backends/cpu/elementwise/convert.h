#ifndef TENSORD_BACKENDS_CPU_ELEMENTWISE_CONVERT_H_
#define TENSORD_BACKENDS_CPU_ELEMENTWISE_CONVERT_H_

#include <cstdint>

#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// out[i] = Convert(x[i]) for i in [0, n) over contiguous arrays, as scalar::ConvertElement defines it. `out` may be `x`
// where the elements have the same size.
using ConvertFunction = void (*)(const void* x, void* out, int64_t n);

// Returns the routine of a pair of dtypes; never null.
ConvertFunction FindConvert(DType from, DType to);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_ELEMENTWISE_CONVERT_H_
