#ifndef TENSORD_AXES_H_
#define TENSORD_AXES_H_

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace tensord::client {

// One axis or several, as an argument: Sum(x, 0), Sum(x, {0, -1}). Negative ones count from the end. A value.
class Axes {
 public:
  template <std::integral T>
  Axes(T axis) : values_{static_cast<int64_t>(axis)} {}             // NOLINT(google-explicit-constructor)
  Axes(std::initializer_list<int64_t> axes) : values_(axes) {}      // NOLINT(google-explicit-constructor)
  Axes(std::vector<int64_t> axes) : values_(std::move(axes)) {}     // NOLINT(google-explicit-constructor)
  operator const std::vector<int64_t>&() const { return values_; }  // NOLINT(google-explicit-constructor)

  const std::vector<int64_t>& values() const { return values_; }

 private:
  std::vector<int64_t> values_;
};

}  // namespace tensord::client

#endif  // TENSORD_AXES_H_
