#ifndef TENSORD_ENGINE_PASSES_LAYOUT_READ_WINDOWS_H_
#define TENSORD_ENGINE_PASSES_LAYOUT_READ_WINDOWS_H_

#include "absl/status/statusor.h"
#include "engine/passes/rewriting/pass.h"

namespace tensord {

// Lets a product read the windows of a tensor in place instead of copies of them: a convolution written as slices, a
// concatenation and a product never makes the slices. The products become affine_dot (engine/ops/affine_dot.h), which
// also pads with 0 and gives its result in the order of a transpose after it. For devices that run fused nodes, and if
// all sizes are known; ordinary arithmetic only.
//
//   p = pad(x, 0); a = slice(p) at 0; b = slice(p) at 1; y = dot(concatenate(a, b), w)   becomes   y = affine_dot(x, w)
//
// Windows of a product that are moved and added up are its operand's windows read backwards (window_sums.h): the
// derivative of the above by x makes no windows either.
//
// Sums are added up in another order, as kernels of products do anyway. Where a window of a product is padded, numbers
// that were left out are multiplied by 0 instead: NaN if they are infinite, as with padding of the operand.
absl::StatusOr<bool> ReadWindows(Graph* graph, const PassOptions& options);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_LAYOUT_READ_WINDOWS_H_
