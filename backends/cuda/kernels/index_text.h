#ifndef TENSORD_BACKENDS_CUDA_KERNELS_INDEX_TEXT_H_
#define TENSORD_BACKENDS_CUDA_KERNELS_INDEX_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "backends/cuda/codegen/lines.h"
#include "engine/tensor/dtype.h"

namespace tensord::cuda {

// Index arithmetic of kernels that move elements, as text.

// The type of a linear index below `count`, a step of a grid included, and the suffix of its constants.
absl::string_view IndexType(int64_t count);
absl::string_view IndexSuffix(int64_t count);

// Writes the declarations of the coordinates of a linear index over axes of these sizes, the first the fastest, and
// returns their names: `prefix` and a number, or "0" for an axis of size 1, and for one that is not needed. Compilers
// warn of one that nobody reads, unless it may be unused.
std::vector<std::string> WriteCoordinates(CudaLines* lines, const std::string& variable,
                                          absl::Span<const int64_t> sizes, const std::string& prefix,
                                          const std::vector<bool>& needed = {}, bool may_be_unused = false);

// A sum of coordinates times strides.
struct OffsetTerm {
  std::string coordinate;
  int64_t size = 1;
  int64_t stride = 0;
};
// Returns the sum, computed in 64 bits if 31 do not hold each partial sum: "0" of none.
std::string OffsetText(absl::Span<const OffsetTerm> terms);
std::string IntegerText(int64_t x);

// Returns the type of an element that is moved and never looked at, "u32" for one of 4 bytes: added to the prelude.
std::string MovedType(int64_t element_bytes, CudaPrelude* prelude);

// Returns the text of an index that is read and clamped to 0 … last, as i64.
std::string ClampedText(const std::string& index, int64_t last);

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_KERNELS_INDEX_TEXT_H_
