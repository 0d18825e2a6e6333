#ifndef TENSORD_BACKENDS_CPU_LAYOUT_STRIDED_COPY_LOOPS_H_
#define TENSORD_BACKENDS_CPU_LAYOUT_STRIDED_COPY_LOOPS_H_

#include <array>
#include <cstdint>

namespace tensord::cpu {

// `count` elements along a row, `rows` rows; steps in bytes, of any sign.
struct RowBlock {
  int64_t count = 0;
  int64_t src_step = 0;
  int64_t dst_step = 0;
  int64_t rows = 1;
  int64_t src_row_step = 0;
  int64_t dst_row_step = 0;
};

// Copies a block of rows. The element's width and which steps are assumed (contiguous, repeated, …) belong to the
// routine.
using CopyRowsFunction = void (*)(const char* src, char* dst, const RowBlock& block);

// dst[dst_offsets[i] + j] = src[src_offsets[j] + i] for i < ni, j < nj; offsets in elements.
using TransposeTileFunction = void (*)(const char* src, char* dst, const int64_t* src_offsets,
                                       const int64_t* dst_offsets, int64_t ni, int64_t nj);

// A tile whose sides are made of several axes: dst[dst_rows[i] + dst_columns[j]] = src[src_rows[i] + src_columns[j]]
// for i < ni, j < nj; offsets in elements. src_rows and dst_columns step by one within runs of a multiple of the
// routine's side.
struct CompositeTile {
  const int64_t* src_rows;
  const int64_t* src_columns;
  const int64_t* dst_rows;
  const int64_t* dst_columns;
  int64_t ni;
  int64_t nj;
};
using CompositeTileFunction = void (*)(const char* src, char* dst, const CompositeTile& tile);

// The inner loops of StridedCopy for the machine's best instruction set. Index of `widths`: log2 of the element's
// bytes.
struct StridedCopyLoops {
  struct Width {
    CopyRowsFunction strided;          // any steps
    CopyRowsFunction reversed;         // src_step is minus one element, dst_step one
    CopyRowsFunction repeated;         // src_step is 0, dst_step one element
    CopyRowsFunction repeated_stream;  // the same past the cache
    TransposeTileFunction tile;
    // Tile functions by log2 of the side of the squares that are transposed in registers, null for a side that is too
    // large. `stream` writes past the cache; `dst` and all offsets into it are then whole lines.
    std::array<CompositeTileFunction, 5> composite;
    std::array<CompositeTileFunction, 5> composite_stream;
  };
  Width widths[5];
  CopyRowsFunction contiguous;         // both steps are one element; `count` is in bytes
  CopyRowsFunction contiguous_stream;  // the same past the cache
};

const StridedCopyLoops& GetStridedCopyLoops();

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LAYOUT_STRIDED_COPY_LOOPS_H_
