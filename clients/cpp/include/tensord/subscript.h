// Subscripts of a tensor, with NumPy's meaning: x[{0, Range(1, 5), kAll}], x[-1], x[{kRest, kNewAxis}].
#ifndef TENSORD_SUBSCRIPT_H_
#define TENSORD_SUBSCRIPT_H_

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

#include "tensord/source_location.h"

namespace tensord::client {

// Every `step`-th entry of an axis from start on, before stop. Negative places count from the end, and those beyond the
// axis are cut. A negative step goes from the end to the front. A value.
struct Range {
  constexpr Range(std::optional<int64_t> from, std::optional<int64_t> to, int64_t by = 1)
      : start(from), stop(to), step(by) {}
  static constexpr Range From(int64_t start) { return {start, std::nullopt}; }
  static constexpr Range To(int64_t stop) { return {std::nullopt, stop}; }
  static constexpr Range Every(int64_t step) { return {std::nullopt, std::nullopt, step}; }

  std::optional<int64_t> start;
  std::optional<int64_t> stop;
  int64_t step;
};

// A whole axis.
inline constexpr Range kAll{std::nullopt, std::nullopt};
// A new axis of size 1.
inline constexpr struct NewAxis {
} kNewAxis;
// The whole of all axes that the other subscripts leave. Once at most; without it they are those behind.
inline constexpr struct Rest {
} kRest;

// One subscript: an index, which removes its axis, or one of the above. Made by the call itself. A value.
class Subscript {
 public:
  enum class Kind { kOfIndex, kOfRange, kOfNewAxis, kOfRest };
  using Place = SourceLocation;

  template <std::integral T>
  Subscript(T index, const Place& place = Place::current())  // NOLINT(google-explicit-constructor): x[{0, kAll}]
      : kind_(Kind::kOfIndex), place_(place) {
    // An unsigned index beyond int64 is beyond any axis, and none from the end.
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    index_ =
        std::is_unsigned_v<T> && static_cast<uint64_t>(index) > uint64_t{kMost} ? kMost : static_cast<int64_t>(index);
  }
  Subscript(const Range& range, const Place& place = Place::current())  // NOLINT(google-explicit-constructor)
      : kind_(Kind::kOfRange), range_(range), place_(place) {}
  Subscript(NewAxis, const Place& place = Place::current())  // NOLINT(google-explicit-constructor)
      : kind_(Kind::kOfNewAxis), place_(place) {}
  Subscript(Rest, const Place& place = Place::current())  // NOLINT(google-explicit-constructor)
      : kind_(Kind::kOfRest), place_(place) {}

  Kind kind() const { return kind_; }
  int64_t index() const { return index_; }
  const Range& range() const { return range_; }
  const Place& place() const { return place_; }

 private:
  Kind kind_;
  int64_t index_ = 0;
  Range range_ = kAll;
  Place place_;
};

}  // namespace tensord::client

#endif  // TENSORD_SUBSCRIPT_H_
