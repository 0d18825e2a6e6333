#ifndef TENSORD_ENGINE_PASSES_LAYOUT_WINDOW_SUMS_H_
#define TENSORD_ENGINE_PASSES_LAYOUT_WINDOW_SUMS_H_

#include "engine/ir/graph.h"

namespace tensord {

// A part of the pass read_windows (engine/passes/layout/read_windows.h): lets a product add up the windows of its
// result, which a convolution's derivative by the image moves to their places. The product becomes an affine_dot that
// sums over the windows as well; where one operand is read forwards the other is reversed first.
//
//   p = dot(x, w); y = pad(slice(p) at 0, 0) + pad(slice(p) at 1, 0)   becomes   y = affine_dot(x, reverse(w))
//
// Nobody else may read what lies between. A window's padding becomes products of 0, which are NaN where the other
// factor is infinite or NaN. Returns true if anything changed.
bool SumWindows(Graph* graph);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_LAYOUT_WINDOW_SUMS_H_
