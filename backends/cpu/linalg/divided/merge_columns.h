#ifndef TENSORD_BACKENDS_CPU_LINALG_DIVIDED_MERGE_COLUMNS_H_
#define TENSORD_BACKENDS_CPU_LINALG_DIVIDED_MERGE_COLUMNS_H_

#include <cstdint>

#include "backends/cpu/linalg/divided/split_columns.h"

namespace tensord::cpu {

// The columns of two parts, as merges of divide and conquer see them: the columns that the secular equation keeps, with
// their poles and weights, and those that are vectors already. Borrows arrays of `count` elements.
template <typename R>
struct MergeColumns {
  int64_t count = 0;
  int32_t *order = nullptr, *group = nullptr, *secular = nullptr;
  int8_t* types = nullptr;  // ColumnType
  R *poles = nullptr, *weights = nullptr, *deflated = nullptr;
  int64_t kept = 0;

  void Keep(int64_t column, R pole, R weight);

  // A rotation of two columns: from = c·from + s·to, to = c·to - s·from, in the rows in which either is not zero. Rows
  // of the top part are the first `top` of `rows`.
  struct Rotation {
    R c, s;
  };
  void Rotate(int64_t x, int64_t y, const Rotation& rotation, int64_t top, int64_t rows, R* from, R* to) const;

  // Puts the columns in the order of their types. group[p] becomes the column number p; secular[p] its pole, if the
  // column is kept; deflated[p] its value, if it is not. The first `apart` kept columns are left out. Writes the number
  // of columns of each type into `columns`.
  void Group(int64_t apart, const R* values, SplitColumns<R>* columns);
};

extern template struct MergeColumns<float>;
extern template struct MergeColumns<double>;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_DIVIDED_MERGE_COLUMNS_H_
