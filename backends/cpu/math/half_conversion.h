#ifndef TENSORD_BACKENDS_CPU_MATH_HALF_CONVERSION_H_
#define TENSORD_BACKENDS_CPU_MATH_HALF_CONVERSION_H_

#include <cstdint>

#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// Conversions of contiguous runs between 16-bit floats and F32, as the kernels that compute 16-bit values in F32 need
// them. Rounding to nearest even; NaN stays NaN. `half` is DType::kF16 or DType::kBF16. Thread-safe.
void WidenHalf(DType half, const uint16_t* src, float* dst, int64_t count);
// Widens into panels of `width` elements, `panel_step` apart; the last one is filled up with zeros.
void WidenHalfToPanels(DType half, const uint16_t* src, int64_t count, int64_t width, int64_t panel_step,
                       float* panels);
void NarrowToHalf(DType half, const float* src, uint16_t* dst, int64_t count);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_MATH_HALF_CONVERSION_H_
