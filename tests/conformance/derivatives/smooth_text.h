#ifndef TENSORD_TESTS_CONFORMANCE_DERIVATIVES_SMOOTH_TEXT_H_
#define TENSORD_TESTS_CONFORMANCE_DERIVATIVES_SMOOTH_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tensord {

// Returns the text of a random graph of differentiable ops, families included, over F64 and C128 and axes of 2, 3 and
// the symbols p and q. Its numbers stay near 1, and matrices are far from singular ones and from equal eigenvalues.
// Equal seeds give equal graphs.
std::string MakeSmoothText(uint64_t seed);

}  // namespace tensord

#endif  // TENSORD_TESTS_CONFORMANCE_DERIVATIVES_SMOOTH_TEXT_H_
