#ifndef TENSORD_PRINTING_H_
#define TENSORD_PRINTING_H_

#include <cstdint>
#include <iosfwd>
#include <string>

#include "tensord/host_tensor.h"

namespace tensord::client {

// The form of printed tensors; the defaults are NumPy's.
struct PrintOptions {
  int precision = 8;          // most digits behind the point, from 0 to 17
  int64_t threshold = 1000;   // tensors with more elements are summarized
  int64_t edge_elements = 3;  // shown at each end of an axis of a summarized tensor
  int64_t line_characters = 75;
};

// Returns the elements as NumPy prints an array: nested brackets by axes, columns that are aligned, and "..." for the
// middle of a large tensor. Floating-point numbers have as many digits as tell them apart, `precision` at most; they
// have exponents if the shown ones reach from below 1e-4, to 1e8, or over three orders of magnitude.
std::string ToString(const HostTensor& tensor, const PrintOptions& options = {});

// Prints ToString(tensor).
std::ostream& operator<<(std::ostream& out, const HostTensor& tensor);

}  // namespace tensord::client

#endif  // TENSORD_PRINTING_H_
