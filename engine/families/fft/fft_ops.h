#ifndef TENSORD_ENGINE_FAMILIES_FFT_FFT_OPS_H_
#define TENSORD_ENGINE_FAMILIES_FFT_FFT_OPS_H_

#include "absl/types/span.h"
#include "engine/ir/op_def.h"

namespace tensord {

// Returns the family fft: discrete Fourier transforms with NumPy's conventions. One op, tensord.fft.v1.Fft.
absl::Span<const OpDef> FftOps();

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_FFT_FFT_OPS_H_
