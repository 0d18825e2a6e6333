#ifndef TENSORD_BACKENDS_CPU_MATMUL_HALF_PACKING_H_
#define TENSORD_BACKENDS_CPU_MATMUL_HALF_PACKING_H_

#include "backends/cpu/matmul/tiles.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// Packs a piece of a matrix of 16-bit floats, of fewer than 4096 lines, into panels of F32, as tiles.pack does for F32;
// steps of the piece count its own elements. The piece is widened a part at a time, which stays in the nearest cache,
// so that the matrix is read once.
void PackHalfPiece(const GemmTiles& tiles, DType half, const PanelPiece& piece, void* panels);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_MATMUL_HALF_PACKING_H_
