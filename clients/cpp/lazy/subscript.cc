#include "tensord/subscript.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "clients/cpp/lazy/recorded_call.h"
#include "clients/cpp/lazy/refused_operation.h"
#include "tensord/elementwise.h"
#include "tensord/indexing.h"
#include "tensord/run_time_sizes.h"
#include "tensord/structural.h"
#include "tensord/tensor.h"

namespace tensord::client {
namespace {

// Entries first, first + step, …, `count` of them; a step is not 0, and negative for a walk to the front.
struct Walk {
  int64_t first = 0;
  int64_t step = 1;
  int64_t count = 0;
  bool is_whole = false;
  std::optional<Range> open = std::nullopt;  // instead of the above: of an axis whose size only the run knows
};

absl::Status InvalidSubscript(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("operator[]: ", what));
}

// Brings a place of an axis of `size` into [lowest, highest].
int64_t Clipped(int64_t place, int64_t size, int64_t lowest, int64_t highest) {
  return std::clamp(place < 0 ? place + size : place, lowest, highest);
}

Walk WalkOf(const Range& range, int64_t size) {
  Walk walk{.step = range.step};
  if (range.step > 0) {
    walk.first = Clipped(range.start.value_or(0), size, 0, size);
    const int64_t stop = range.stop.has_value() ? Clipped(*range.stop, size, 0, size) : size;
    if (stop > walk.first) walk.count = (stop - walk.first - 1) / range.step + 1;
  } else {
    walk.first = range.start.has_value() ? Clipped(*range.start, size, -1, size - 1) : size - 1;
    const int64_t stop = range.stop.has_value() ? Clipped(*range.stop, size, -1, size - 1) : -1;
    // Counts down by steps whose negation may overflow.
    if (stop < walk.first) walk.count = (stop - walk.first + 1) / range.step + 1;
  }
  walk.is_whole = range.step == 1 && walk.count == size;
  return walk;
}

absl::StatusOr<Walk> WalkOf(const Subscript& subscript, const Tensor& x, size_t axis) {
  const int64_t size = x.shape()[axis];
  const Range& range = subscript.range();
  const bool is_range = subscript.kind() == Subscript::Kind::kOfRange;
  if (is_range && range.step == 0) return InvalidSubscript("a step is 0");
  if (is_range && !range.start.has_value() && !range.stop.has_value() && range.step == 1) {
    return Walk{.count = size, .is_whole = true};
  }
  if (IsRunTimeSize(size)) {
    if (is_range && (range.step == 1 || range.step == -1)) return Walk{.open = range};
    return InvalidSubscript(
        absl::StrCat("an axis of a size known only when the graph runs takes ranges of step 1 and -1; for others use "
                     "Take, which clamps indices: axis ",
                     axis, " of ", ShapeToString(x.shape())));
  }
  if (is_range) return WalkOf(range, size);
  if (subscript.index() < -size || subscript.index() >= size) {
    return InvalidSubscript(absl::StrCat("the index is out of bounds: ", subscript.index(), ", axis ", axis, " of ",
                                         ShapeToString(x.shape())));
  }
  return Walk{.first = Clipped(subscript.index(), size, 0, size - 1), .count = 1, .is_whole = size == 1};
}

// Walks along all axes by one slice, and a reversal of those that are walked to the front.
Tensor SliceAlong(const Tensor& x, const std::vector<Walk>& walks) {
  std::vector<int64_t> start, limit, strides, reversed;
  for (size_t axis = 0; axis < walks.size(); ++axis) {
    const Walk& walk = walks[axis];
    const int64_t last = walk.count == 0 ? walk.first : walk.first + (walk.count - 1) * walk.step;
    const bool is_empty = walk.count == 0;
    start.push_back(is_empty ? 0 : std::min(walk.first, last));
    limit.push_back(is_empty ? 0 : std::max(walk.first, last) + 1);
    strides.push_back(walk.count < 2 ? 1 : std::abs(walk.step));
    if (walk.step < 0 && walk.count > 1) reversed.push_back(static_cast<int64_t>(axis));
  }
  const Tensor sliced = Slice(x, start, limit, strides);
  return reversed.empty() ? sliced : Reverse(sliced, reversed);
}

// Returns the entries of a range of step 1 or -1 along an axis whose size only the run knows.
Tensor TakeOpenRange(Tensor x, Range range, int64_t axis) {
  if (range.step < 0) {
    // Counted from the other end, where the place before the first entry is the one behind the last: -(place + 1),
    // which overflows nowhere as the complement.
    const auto mirrored = [](std::optional<int64_t> place) {
      return place.has_value() ? std::optional<int64_t>(~*place) : std::nullopt;
    };
    range = Range(mirrored(range.start), mirrored(range.stop));
    x = Reverse(x, {axis});
  }
  const Tensor size = ShapeOf(x, axis);
  const auto from_front = [&size](int64_t place) {
    return place < 0 ? Maximum(size + place, 0) : Tensor::Constant(HostTensor::Scalar(place));
  };
  if (range.stop.has_value()) x = DynamicTruncate(x, from_front(*range.stop), axis);
  if (!range.start.has_value()) return x;
  const Tensor left = Maximum(ShapeOf(x, axis) - from_front(*range.start), 0);
  return Reverse(DynamicTruncate(Reverse(x, {axis}), left, axis), {axis});
}

// Takes the entries along each axis that is not whole: a slice needs all sizes as numbers.
Tensor TakeAlong(Tensor x, const std::vector<Walk>& walks) {
  for (size_t axis = 0; axis < walks.size(); ++axis) {
    if (walks[axis].is_whole) continue;
    if (walks[axis].open.has_value()) {
      x = TakeOpenRange(x, *walks[axis].open, static_cast<int64_t>(axis));
      continue;
    }
    // A step may be beyond any axis where there is one entry.
    const int64_t step = walks[axis].count < 2 ? 1 : walks[axis].step;
    const Tensor indices = Iota(DType::kI64, {walks[axis].count}) * step + walks[axis].first;
    x = Take(x, indices, static_cast<int64_t>(axis));
  }
  return x;
}

}  // namespace

Tensor Tensor::operator[](std::initializer_list<Subscript> subscripts) const {
  if (!ok()) return *this;
  const RecordedCall call("Subscript", subscripts.size() == 0 ? SourceLocation() : subscripts.begin()->place());
  const auto is_kind = [](Subscript::Kind kind) { return [kind](const Subscript& s) { return s.kind() == kind; }; };
  const int64_t new_axes = std::count_if(subscripts.begin(), subscripts.end(), is_kind(Subscript::Kind::kOfNewAxis));
  const int64_t rests = std::count_if(subscripts.begin(), subscripts.end(), is_kind(Subscript::Kind::kOfRest));
  const int64_t left = rank() - (static_cast<int64_t>(subscripts.size()) - new_axes - rests);
  if (rests > 1) return RefusedOperation("operator[]", "kRest stands once at most");
  if (left < 0) {
    return RefusedOperation(
        "operator[]", absl::StrCat("more subscripts than axes: ", rank() - left, ", shape ", ShapeToString(shape())));
  }
  std::vector<Walk> walks;
  std::vector<int64_t> removed, inserted;  // axes of this tensor; places among the axes of the result
  int64_t result_rank = 0;
  const auto keep_whole = [&](int64_t count) {
    for (int64_t i = 0; i < count; ++i) walks.push_back({.count = shape()[walks.size()], .is_whole = true});
    result_rank += count;
  };
  for (const Subscript& subscript : subscripts) {
    if (subscript.kind() == Subscript::Kind::kOfNewAxis) {
      inserted.push_back(result_rank++);
    } else if (subscript.kind() == Subscript::Kind::kOfRest) {
      keep_whole(left);
    } else {
      const size_t axis = walks.size();
      const absl::StatusOr<Walk> walk = WalkOf(subscript, *this, axis);
      if (!walk.ok()) return Failed(walk.status());
      walks.push_back(*walk);
      if (subscript.kind() == Subscript::Kind::kOfIndex) removed.push_back(static_cast<int64_t>(axis));
      if (subscript.kind() == Subscript::Kind::kOfRange) ++result_rank;
    }
  }
  if (rests == 0) keep_whole(left);
  Tensor result = *this;
  const bool is_whole = std::all_of(walks.begin(), walks.end(), [](const Walk& walk) { return walk.is_whole; });
  if (!is_whole) result = HasRunTimeSize(shape()) ? TakeAlong(result, walks) : SliceAlong(result, walks);
  if (!removed.empty()) result = Squeeze(result, removed);
  return inserted.empty() ? result : ExpandDims(result, inserted);
}

}  // namespace tensord::client
