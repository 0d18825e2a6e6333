#ifndef TENSORD_BACKENDS_CPU_CONTRACTION_SEMIRING_SEMIRING_LOOPS_H_
#define TENSORD_BACKENDS_CPU_CONTRACTION_SEMIRING_SEMIRING_LOOPS_H_

#include <cstdint>

#include "engine/ir/graph.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// A block of a product over packed elements:
//   c[column * c_step + row] = sum of that and of a[row, term] · b[column * terms + term] over the terms.
// Rows lie in tiles: as many wide ones as fit, then ones of half of that width, then narrow ones; in a tile all rows of
// a term lie side by side.
struct SemiringBlock {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  int64_t rows = 0;  // a multiple of narrow tiles
  int64_t columns = 0;
  int64_t terms = 0;
  int64_t c_step = 0;
};

// The loops of an algebra over packed elements, for the machine's best instruction set. Packed elements are F32, F64,
// I32 and I64, and for or_and words of 64 bits, a row each; there the elements of b are all zeros or all ones.
//
// The fast loop takes elements whose products need no care. `scan` tells what there is in a panel, as bits;
// `needs_care` tells from the bits of both panels. Integers that are the algebra's zero are no matter if both panels
// are then prepared: their stand-in absorbs whatever is added to it.
struct SemiringLoops {
  int64_t wide = 0;    // rows of a tile
  int64_t narrow = 0;  // divides half of `wide`
  uint32_t (*scan)(const void* elements, int64_t count) = nullptr;
  bool (*needs_care)(uint32_t a, uint32_t b) = nullptr;
  bool (*needs_stand_in)(uint32_t a, uint32_t b) = nullptr;
  void (*put_stand_in)(void* elements, int64_t count) = nullptr;
  void (*multiply)(const SemiringBlock& block) = nullptr;
  void (*multiply_with_care)(const SemiringBlock& block) = nullptr;
};

// Returns the loops over elements that are packed as `packed`; that is BOOL for or_and.
SemiringLoops GetSemiringLoops(Algebra algebra, DType packed);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_CONTRACTION_SEMIRING_SEMIRING_LOOPS_H_
