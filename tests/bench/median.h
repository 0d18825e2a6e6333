#ifndef TENSORD_TESTS_BENCH_MEDIAN_H_
#define TENSORD_TESTS_BENCH_MEDIAN_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tensord {

// 0 of none.
inline double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace tensord

#endif  // TENSORD_TESTS_BENCH_MEDIAN_H_
