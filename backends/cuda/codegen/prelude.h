#ifndef TENSORD_BACKENDS_CUDA_CODEGEN_PRELUDE_H_
#define TENSORD_BACKENDS_CUDA_CODEGEN_PRELUDE_H_

#include <cstdint>
#include <string>

#include "absl/container/btree_set.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace tensord {

// A function (or a few) of the CUDA C++ that fused kernels call. It has the name of a functor of
// engine/ops/scalar/scalar_math.h followed by the kind of element, "AddInteger", and that functor's meaning.
struct CudaPiece {
  absl::string_view name;
  absl::string_view requires_pieces;  // names separated by spaces; they stand before this piece in its table
  absl::string_view text;
};

// Return the pieces by their purpose; a piece requires pieces of its own table and of those declared before it.
absl::Span<const CudaPiece> CudaTypePieces();    // element types, conversions to and from 16-bit floats
absl::Span<const CudaPiece> CudaScalarPieces();  // Bool, Integer, Real
absl::Span<const CudaPiece> CudaComplexPieces();
absl::Span<const CudaPiece>
CudaInversePieces();  // of complex numbers, logarithms to bases and exp2 too    // Complex, by way of double
absl::Span<const CudaPiece> CudaReductionPieces();  // joining what threads have accumulated

// The text before the kernels: only the pieces that they use, so that they compile quickly.
class CudaPrelude {
 public:
  static bool Has(absl::string_view name);
  // Has(name) must hold.
  void Use(absl::string_view name);
  // The same at each place that calls a function of more than a few instructions: where there are many such places
  // their functions are not inlined, which would take the compiler minutes.
  void Call(absl::string_view name);
  std::string Text() const;

 private:
  absl::btree_set<int> used_, called_;  // positions in the tables, one after the other
  int64_t calls_ = 0;
};

}  // namespace tensord

#endif  // TENSORD_BACKENDS_CUDA_CODEGEN_PRELUDE_H_
