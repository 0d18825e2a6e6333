// Discrete Fourier transforms, with numpy.fft's meaning. Takes F32, F64, C64 and C128, and converts nothing but real
// operands to complex ones of the same width. Without axes along all of them, in their order; a negative axis counts
// from the end. Needs a server with the family fft.
#ifndef TENSORD_FFT_H_
#define TENSORD_FFT_H_

#include <cstdint>
#include <vector>

#include "tensord/source_location.h"
#include "tensord/tensor.h"

namespace tensord::client {

// The transform that is scaled: the inverse by 1/n, both by 1/sqrt(n), or the forward one by 1/n.
enum class FftNorm { kBackward, kOrtho, kForward };

struct FftOptions {
  // One positive length for each axis: a longer one pads with zeros, a shorter one cuts. Empty: the operand's own
  // sizes, and 2 (m - 1) for the last axis of Irfft.
  std::vector<int64_t> lengths = {};
  FftNorm norm = FftNorm::kBackward;
};

// Transform along one axis, the last by default. A result has the operand's shape, unless lengths say otherwise, and is
// complex.
Tensor Fft(const TensorArg& x, int64_t axis = -1, const FftOptions& options = {});
Tensor Ifft(const TensorArg& x, int64_t axis = -1, const FftOptions& options = {});
// Transforms a real operand, n elements to the n / 2 + 1 that are not redundant.
Tensor Rfft(const TensorArg& x, int64_t axis = -1, const FftOptions& options = {});
// Inverts Rfft, m elements to 2 (m - 1) real ones; for an odd number say it in lengths.
Tensor Irfft(const TensorArg& x, int64_t axis = -1, const FftOptions& options = {});

// Transform along several axes; the last one named is that of Rfft and Irfft.
Tensor Fftn(const TensorArg& x, const std::vector<int64_t>& axes = {}, const FftOptions& options = {});
Tensor Ifftn(const TensorArg& x, const std::vector<int64_t>& axes = {}, const FftOptions& options = {});
Tensor Rfftn(const TensorArg& x, const std::vector<int64_t>& axes = {}, const FftOptions& options = {});
Tensor Irfftn(const TensorArg& x, const std::vector<int64_t>& axes = {}, const FftOptions& options = {});

// Returns the frequencies of Fft's elements for n samples `spacing` apart, an F64 of shape [n]: 0, 1, … and the
// negative ones, over n * spacing. RfftFreq returns the n / 2 + 1 frequencies of Rfft's elements.
// At most 2^27 of either.
Tensor FftFreq(int64_t n, double spacing = 1.0, const SourceLocation& place = SourceLocation::current());
Tensor RfftFreq(int64_t n, double spacing = 1.0, const SourceLocation& place = SourceLocation::current());

}  // namespace tensord::client

#endif  // TENSORD_FFT_H_
