#ifndef TENSORD_BACKENDS_CPU_LINALG_LARGE_PANEL_UPDATE_H_
#define TENSORD_BACKENDS_CPU_LINALG_LARGE_PANEL_UPDATE_H_

#include <algorithm>
#include <cstdint>

#include "backends/cpu/matmul/tiles.h"
#include "engine/base/rounding.h"

namespace tensord::cpu {

// The columns after a panel that one thread of a blocked factorization updates at a time.
inline constexpr int64_t kUpdatePanelColumns = 64;
inline constexpr int64_t kUpdateChunkColumns = 64;
inline constexpr int64_t kUpdateMostTileRows = 64;

// C := C + A·B of a chunk. A, of the panel, is packed as it is needed, since its columns lie far apart, or has been
// before, where many chunks need it; B is made by the caller, in panels of as many columns as a tile has, with its sign
// turned.
template <typename T>
struct PanelUpdate {
  int64_t rows = 0;
  int64_t columns = 0;  // up to kUpdateChunkColumns
  int64_t terms = 0;    // up to kUpdatePanelColumns
  const T* a = nullptr;
  int64_t a_leading = 0;
  const T* packed_a = nullptr;  // a as Pack leaves it; null: it is not packed yet
  const T* b = nullptr;
  T* c = nullptr;
  int64_t c_leading = 0;

  static int64_t PackedElements(const GemmTiles& tiles, int64_t rows, int64_t terms) {
    return RoundUp(rows, tiles.rows) * terms;
  }

  void Pack(const GemmTiles& tiles, int64_t row, int64_t count, T* into) const {
    tiles.pack({.from = a + row,
                .lines = count,
                .width = tiles.rows,
                .panel_step = tiles.rows * terms,
                .term_step = tiles.rows,
                .terms = terms,
                .term_stride = a_leading},
               into);
  }

  void Run(const GemmTiles& tiles) const {
    alignas(64) T packed[kUpdatePanelColumns * kUpdateMostTileRows];
    TiledBlock block;
    block.n = columns;
    block.k = terms;
    block.a = packed;
    block.a_term_step = tiles.rows;
    block.a_panel_step = tiles.rows * terms;
    block.packs_a = true;
    block.b = b;
    block.b_term_step = tiles.columns;
    block.b_column_step = 1;
    block.b_panel_step = tiles.columns * terms;
    block.packs_b = true;
    block.c_column_step = c_leading;
    block.accumulates = true;
    for (int64_t row = 0; row < rows; row += tiles.rows) {
      block.m = std::min(tiles.rows, rows - row);
      block.c = c + row;
      if (packed_a == nullptr) {
        Pack(tiles, row, block.m, packed);
      } else {
        block.a = packed_a + row * terms;
      }
      tiles.multiply(block);
    }
  }
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_LARGE_PANEL_UPDATE_H_
