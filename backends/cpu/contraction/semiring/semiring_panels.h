#ifndef TENSORD_BACKENDS_CPU_CONTRACTION_SEMIRING_SEMIRING_PANELS_H_
#define TENSORD_BACKENDS_CPU_CONTRACTION_SEMIRING_SEMIRING_PANELS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// The places of a block's elements along two axes: element (i, j) lies at first[i] + second[j], in elements.
struct BlockPlaces {
  absl::Span<const int64_t> first;
  absl::Span<const int64_t> second;
};

// The rows of a tile in packed elements, as of SemiringLoops.
struct TileRows {
  int64_t wide = 0;
  int64_t narrow = 0;
};

// The packing of one dtype: F16 and BF16 are packed as F32, BOOL as words of 64 rows, others as they are. Addresses of
// operands and results are those from which places count.
struct SemiringPanels {
  // Fills a panel of lhs, in tiles of rows: `places.first` are rows, `places.second` terms. Rows that are missing in
  // the last tile are ones of the algebra.
  void (*pack_lhs)(const void* lhs, const BlockPlaces& places, const TileRows& tile, Algebra algebra,
                   void* panel) = nullptr;
  // Fills a panel of rhs, a column after the other: `places.first` are terms, `places.second` columns.
  void (*pack_rhs)(const void* rhs, const BlockPlaces& places, void* panel) = nullptr;
  // Makes a block the zero of the algebra.
  void (*clear)(void* block, int64_t count, Algebra algebra) = nullptr;
  // Stores a block of `step` packed rows a column: `places.first` are rows, `places.second` columns.
  void (*store)(const void* block, int64_t step, const BlockPlaces& places, void* result) = nullptr;
  DType packed = DType::kInvalid;  // BOOL for words
  int64_t packed_bytes = 0;
  int64_t rows_an_element = 1;
};

SemiringPanels GetSemiringPanels(DType dtype);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_CONTRACTION_SEMIRING_SEMIRING_PANELS_H_
