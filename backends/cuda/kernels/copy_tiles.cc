#include "backends/cuda/kernels/copy_tiles.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdlib>

namespace tensord::cuda {
namespace {

int64_t UpToPowerOfTwo(int64_t x) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(x))); }

void TakeAxis(CopyAxes* axes, size_t position, TileSide* side) {
  side->axes.push_back((*axes)[position]);
  side->elements *= (*axes)[position].size;
  axes->erase(axes->begin() + static_cast<std::ptrdiff_t>(position));
}

// Returns the axis with the smallest step in the source; of those that take none, none.
std::optional<size_t> FastestInSource(const CopyAxes& axes) {
  std::optional<size_t> fastest;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].src_stride == 0) continue;
    if (!fastest.has_value() || std::abs(axes[i].src_stride) < std::abs(axes[*fastest].src_stride)) fastest = i;
  }
  return fastest;
}

}  // namespace

std::optional<CopyTiles> TilesOf(const CopyAxes& axes, int64_t element_bytes) {
  if (axes.size() < 2 || axes[0].dst_stride != 1 || std::abs(axes[0].src_stride) <= 1) return std::nullopt;
  const std::optional<size_t> fastest = FastestInSource(axes);
  if (std::abs(axes[*fastest].src_stride) != 1) return std::nullopt;
  CopyTiles tiles{.rest = axes};
  TakeAxis(&tiles.rest, *fastest, &tiles.columns);
  TakeAxis(&tiles.rest, 0, &tiles.rows);
  const int64_t side = element_bytes <= 4 ? 64 : 32;
  while (tiles.rows.elements < side && !tiles.rest.empty()) TakeAxis(&tiles.rest, 0, &tiles.rows);
  while (tiles.columns.elements < side) {
    const std::optional<size_t> next = FastestInSource(tiles.rest);
    if (!next.has_value()) break;
    TakeAxis(&tiles.rest, *next, &tiles.columns);
  }
  // A short side leaves its part of the tile to the other.
  tiles.columns.part = std::min(side, UpToPowerOfTwo(tiles.columns.elements));
  tiles.rows.part = std::min(side * side / tiles.columns.part, UpToPowerOfTwo(tiles.rows.elements));
  if (tiles.rows.part < side) {
    tiles.columns.part = std::min(side * side / tiles.rows.part, UpToPowerOfTwo(tiles.columns.elements));
  }
  tiles.pitch = tiles.columns.part + std::max<int64_t>(1, 4 / element_bytes);
  return tiles;
}

}  // namespace tensord::cuda
