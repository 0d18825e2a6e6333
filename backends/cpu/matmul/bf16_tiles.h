#ifndef TENSORD_BACKENDS_CPU_MATMUL_BF16_TILES_H_
#define TENSORD_BACKENDS_CPU_MATMUL_BF16_TILES_H_

#include "backends/cpu/matmul/tiles.h"

namespace tensord::cpu {

// Returns tiles of products of BF16 matrices by the processor's own instruction for them, summed in F32. An element of
// a panel is a pair of terms, and TiledBlock counts pairs: 32 bits each, the first term in the lower half. Both
// operands are packed. The instruction takes subnormal numbers for zeros: panels with products as small are multiplied
// as F32, so that none are lost. Returns no rows if the processor does not have it, or may not use it
// (instruction_set.h).
GemmTiles GetBf16Tiles();

// Packs a piece of a BF16 matrix into such panels; terms and steps of the piece count its own elements, as of
// PackHalfPiece. After an odd number of terms comes a zero.
void PackBf16Pairs(const GemmTiles& tiles, const PanelPiece& piece, void* panels);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_MATMUL_BF16_TILES_H_
