#ifndef TENSORD_BACKENDS_CUDA_KERNELS_COPY_TILES_H_
#define TENSORD_BACKENDS_CUDA_KERNELS_COPY_TILES_H_

#include <cstdint>
#include <optional>

#include "engine/exec/backend/copy_axes.h"

namespace tensord::cuda {

// A side of a tile: a linear index over axes, cut into parts.
struct TileSide {
  CopyAxes axes;
  int64_t elements = 1;
  int64_t part = 1;  // elements of a tile along this side: a power of two
  int64_t num_parts() const { return (elements - 1) / part + 1; }
};

// A copy whose sides have different fastest axes, as tiles: along `rows` the destination's elements follow each other,
// along `columns` the source's. Many small axes together make a side.
struct CopyTiles {
  TileSide rows;
  TileSide columns;
  CopyAxes rest;
  int64_t pitch = 1;  // elements from one row of the tile to the next in shared memory: banks do not clash

  int64_t num_tiles() const { return rows.num_parts() * columns.num_parts() * NumElements(rest); }
};

// Returns the tiles of a copy with merged axes; nothing if rows in the order of the destination do as well.
std::optional<CopyTiles> TilesOf(const CopyAxes& axes, int64_t element_bytes);

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_KERNELS_COPY_TILES_H_
