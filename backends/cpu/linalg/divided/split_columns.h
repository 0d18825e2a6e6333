#ifndef TENSORD_BACKENDS_CPU_LINALG_DIVIDED_SPLIT_COLUMNS_H_
#define TENSORD_BACKENDS_CPU_LINALG_DIVIDED_SPLIT_COLUMNS_H_

#include <cstdint>

#include "backends/cpu/machine/thread_pool.h"

namespace tensord::cpu {

// The blocks of rows, of two, in which a column is not zero; a deflated column is in neither.
enum ColumnType : int8_t { kOnlyTop, kBoth, kOnlyBottom, kDeflated, kColumnTypes };

// Columns of which the first are zero in the bottom rows, the last in the top rows: the nonzero rows, packed. Borrows
// its numbers.
template <typename R>
struct SplitColumns {
  int64_t top_rows = 0;
  int64_t bottom_rows = 0;
  int64_t only_top = 0;  // so many columns
  int64_t both = 0;
  int64_t only_bottom = 0;
  R* top = nullptr;     // top_rows x (only_top + both)
  R* bottom = nullptr;  // bottom_rows x (both + only_bottom)

  int64_t count() const { return only_top + both + only_bottom; }
  // Copies the nonzero rows of column `index` out of whole columns, whose bottom rows begin at `bottom`.
  void Take(int64_t index, const R* whole_top, const R* whole_bottom) const;
  // The columns times a factor of count() rows and any columns, into such whole columns.
  struct Product {
    const R* factor;
    int64_t factor_leading;
    int64_t columns;
    R *top, *bottom;
    int64_t leading;
  };
  // Multiplies on the calling thread.
  void Multiply(const Product& product) const;
  // Multiplies by tiles of ours on all threads. `scratch` has ProductBytes(n, product.columns) for n rows and is
  // aligned to 64.
  void MultiplyOnPool(const Product& product, char* scratch, int64_t scratch_bytes, ThreadPool& pool) const;

  // Returns the scratch for products of n rows, in two blocks of about equal length, and at most so many columns.
  static int64_t ProductBytes(int64_t n, int64_t columns);
};

extern template struct SplitColumns<float>;
extern template struct SplitColumns<double>;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_DIVIDED_SPLIT_COLUMNS_H_
