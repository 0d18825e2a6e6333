#include "backends/cpu/linalg/divided/merge_columns.h"

#include <algorithm>
#include <numeric>

namespace tensord::cpu {

template <typename R>
void MergeColumns<R>::Keep(int64_t column, R pole, R weight) {
  poles[kept] = pole;
  weights[kept] = weight;
  secular[kept++] = static_cast<int32_t>(column);
}

template <typename R>
void MergeColumns<R>::Rotate(int64_t x, int64_t y, const Rotation& rotation, int64_t top, int64_t rows, R* from,
                             R* to) const {
  const bool are_top = types[x] == kOnlyTop && types[y] == kOnlyTop;
  const bool are_bottom = types[x] == kOnlyBottom && types[y] == kOnlyBottom;
  for (int64_t i = are_bottom ? top : 0; i < (are_top ? top : rows); ++i) {
    const R kept_number = from[i];
    from[i] = rotation.c * kept_number + rotation.s * to[i];
    to[i] = rotation.c * to[i] - rotation.s * kept_number;
  }
}

template <typename R>
void MergeColumns<R>::Group(int64_t apart, const R* values, SplitColumns<R>* columns) {
  int64_t counts[kColumnTypes] = {}, places[kColumnTypes];
  for (int64_t j = 0; j < count; ++j) {
    if (types[j] < kColumnTypes) ++counts[types[j]];
  }
  std::exclusive_scan(counts, counts + kColumnTypes, places, int64_t{0});
  std::copy(secular + apart, secular + kept, order);
  for (int64_t k = apart; k < kept; ++k) {
    const int32_t column = order[k - apart];
    const int64_t place = places[types[column]]++;
    group[place] = column;
    secular[place] = static_cast<int32_t>(k);
  }
  for (int64_t j = 0; j < count; ++j) {
    if (types[j] == kDeflated) group[places[kDeflated]++] = static_cast<int32_t>(j);
  }
  for (int64_t p = kept - apart; p < count - apart; ++p) deflated[p] = values[group[p]];
  columns->only_top = counts[kOnlyTop];
  columns->both = counts[kBoth];
  columns->only_bottom = counts[kOnlyBottom];
}

template struct MergeColumns<float>;
template struct MergeColumns<double>;

}  // namespace tensord::cpu
