#include "engine/passes/layout/affine_views.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "engine/ops/core_ops.h"
#include "engine/passes/layout/slice_ranges.h"

namespace tensord {
namespace {

constexpr size_t kMaxDigits = 24;               // of a view
constexpr size_t kMaxSummands = 128;            // of a view: windows of 5 x 5 x 5
constexpr size_t kMaxPlaces = size_t{1} << 18;  // of all views that are sums, some 100 bytes each

using View = std::optional<AffineView>;
using Sizes = absl::InlinedVector<int64_t, 6>;

// Returns nothing if a size is 0 or not known.
std::optional<Sizes> KnownSizes(const TensorType& type) {
  Sizes sizes;
  for (const Dim& dim : type.shape) {
    if (!dim.is_static() || dim.size.is(0)) return std::nullopt;
    sizes.push_back(dim.size.constant());
  }
  return sizes;
}

void MoveStarts(const AffineDigit& digit, int64_t count, AffineView* view) {
  for (AffinePlace& start : view->starts) {
    for (size_t b = 0; b < start.size(); ++b) start[b] += count * digit.steps[b];
  }
}

View Reshaped(AffineView view, absl::Span<const int64_t> sizes) {
  std::vector<AffineDigit> digits;
  for (const AffineDigits& axis : view.axes) digits.insert(digits.end(), axis.begin(), axis.end());
  std::optional<std::vector<AffineDigits>> axes = Regrouped(digits, sizes);
  if (!axes.has_value()) return std::nullopt;
  view.axes = *std::move(axes);
  return view;
}

View Transposed(AffineView view, const Node& node) {
  std::vector<AffineDigits> axes;
  for (const int64_t axis : node.attrs.Ints("permutation")) {
    axes.push_back(std::move(view.axes[static_cast<size_t>(axis)]));
  }
  view.axes = std::move(axes);
  return view;
}

// A broadcast that repeats nothing.
View WithUnitAxes(AffineView view, const Node& node, absl::Span<const int64_t> from, absl::Span<const int64_t> to) {
  const std::vector<int64_t>& dimensions = node.attrs.Ints("broadcast_dimensions");
  std::vector<AffineDigits> axes(to.size());
  int64_t elements = 1;
  for (size_t i = 0; i < from.size(); ++i) {
    axes[static_cast<size_t>(dimensions[i])] = std::move(view.axes[i]);
    elements *= from[i];
  }
  for (const int64_t size : to) {
    if (elements % size != 0) return std::nullopt;
    elements /= size;
  }
  if (elements != 1) return std::nullopt;
  view.axes = std::move(axes);
  return view;
}

View Sliced(AffineView view, const Node& node, absl::Span<const int64_t> from, absl::Span<const int64_t> to) {
  for (size_t axis = 0; axis < from.size(); ++axis) {
    if (from[axis] == to[axis]) continue;  // all of it
    const SliceRange range = RangeOf(node, axis);
    AffineDigits& digits = view.axes[axis];
    if (digits.size() != 1) return std::nullopt;
    MoveStarts(digits[0], range.start, &view);
    if (to[axis] == 1) {
      digits.clear();
      continue;
    }
    digits[0].size = to[axis];
    for (int64_t& step : digits[0].steps) step *= range.stride;
  }
  return view;
}

// Returns the axis of the base along which the digit alone moves, one element a step.
std::optional<size_t> OwnAxis(const AffineView& view, const AffineDigit& digit) {
  std::optional<size_t> own;
  for (size_t b = 0; b < digit.steps.size(); ++b) {
    if (digit.steps[b] == 0) continue;
    if (digit.steps[b] != 1 || own.has_value()) return std::nullopt;
    own = b;
  }
  if (!own.has_value()) return std::nullopt;
  int users = 0;
  const auto count_users = [&](const AffineDigits& digits) {
    for (const AffineDigit& other : digits) users += other.steps[*own] != 0 ? 1 : 0;
  };
  for (const AffineDigits& axis : view.axes) count_users(axis);
  count_users(view.summed);
  return users == 1 ? own : std::nullopt;
}

bool IsZero(const Graph& graph, ValueId value) {
  if (graph.is_input(value)) return false;
  const Node& node = graph.nodes()[static_cast<size_t>(graph.producer(value))];
  if (!Is(*node.op, CoreOp::kConstant)) return false;
  const absl::string_view bytes = node.attrs.GetLiteral("value")->bytes();
  return std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == 0; });
}

size_t NumDigits(const AffineView& view) {
  size_t count = 0;
  for (const AffineDigits& axis : view.axes) count += axis.size();
  return count;
}

}  // namespace

std::optional<std::vector<AffineDigits>> Regrouped(absl::Span<const AffineDigit> digits,
                                                   absl::Span<const int64_t> sizes) {
  std::vector<AffineDigits> axes;
  std::vector<AffineDigit> rest(digits.rbegin(), digits.rend());  // the fastest last
  for (int64_t size : sizes) {
    AffineDigits& axis = axes.emplace_back();
    while (size > 1) {
      if (rest.empty()) return std::nullopt;
      AffineDigit& digit = rest.back();
      if (digit.size <= size) {
        if (size % digit.size != 0) return std::nullopt;
        size /= digit.size;
        axis.push_back(std::move(digit));
        rest.pop_back();
        continue;
      }
      if (digit.size % size != 0) return std::nullopt;
      axis.push_back({.size = size, .steps = digit.steps});
      digit.size /= size;
      for (int64_t& step : digit.steps) step *= size;
      size = 1;
    }
  }
  if (!rest.empty()) return std::nullopt;
  return axes;
}

std::optional<AffineDigits> LatticeOf(absl::Span<const AffinePlace> starts) {
  AffineDigits digits;
  const auto distance = [&](size_t i) {
    AffinePlace places = starts[i];
    for (size_t b = 0; b < places.size(); ++b) places[b] -= starts[0][b];
    return places;
  };
  for (size_t block = 1; block < starts.size();) {
    AffineDigit digit{.size = 1, .steps = distance(block)};
    const auto is_step_up = [](int64_t step) { return step >= 0; };
    if (!std::all_of(digit.steps.begin(), digit.steps.end(), is_step_up)) return std::nullopt;
    if (std::all_of(digit.steps.begin(), digit.steps.end(), [](int64_t step) { return step == 0; })) {
      return std::nullopt;
    }
    const auto is_next = [&](size_t i) {
      AffinePlace places = starts[i - block];
      for (size_t b = 0; b < places.size(); ++b) places[b] += digit.steps[b];
      return places == starts[i];
    };
    size_t covered = block;
    while (covered < starts.size() && is_next(covered)) ++covered;
    digit.size = static_cast<int64_t>(covered / block);
    block *= covered / block;
    if (digit.size < 2 || starts.size() % block != 0) return std::nullopt;
    digits.push_back(std::move(digit));
  }
  // Each window lies a step from one before it, which the loop has seen for the first of each block only.
  for (size_t i = 0; i < starts.size(); ++i) {
    AffinePlace places = starts[0];
    size_t rest = i;
    for (const AffineDigit& digit : digits) {
      const size_t size = static_cast<size_t>(digit.size);
      for (size_t b = 0; b < places.size(); ++b) places[b] += static_cast<int64_t>(rest % size) * digit.steps[b];
      rest /= size;
    }
    if (places != starts[i]) return std::nullopt;
  }
  return digits;
}

AffineViews::AffineViews(const Graph& graph)
    : graph_(graph), begins_at_nodes_(false), views_(static_cast<size_t>(graph.num_values())) {
  Make([](const Node&) { return View(); });
}

AffineViews::AffineViews(const Graph& graph, const Begin& begin)
    : graph_(graph), begins_at_nodes_(true), views_(static_cast<size_t>(graph.num_values())) {
  Make(begin);
}

void AffineViews::Make(const Begin& begin) {
  for (const Node& node : graph_.nodes()) {
    if (node.body != nullptr || node.num_results != 1 || node.op->family != "core") continue;
    View view = begin(node);
    if (!view.has_value()) view = Made(node);
    if (view.has_value() && view->starts.size() > 1) {
      places_ += view->starts.size();
      if (places_ > kMaxPlaces) continue;
    }
    if (view.has_value() && NumDigits(*view) <= kMaxDigits) {
      views_[static_cast<size_t>(node.first_result.index)] = std::move(view);
    }
  }
}

std::optional<AffineView> AffineViews::Of(ValueId value) const {
  const View& made = views_[static_cast<size_t>(value.index)];
  if (made.has_value() || begins_at_nodes_) return made;
  const std::optional<Sizes> sizes = KnownSizes(graph_.type(value));
  if (!sizes.has_value()) return std::nullopt;
  AffineView view{.base = value, .sizes = {sizes->begin(), sizes->end()}, .starts = {AffinePlace(sizes->size())}};
  for (size_t axis = 0; axis < sizes->size(); ++axis) {
    AffineDigits& digits = view.axes.emplace_back();
    if ((*sizes)[axis] == 1) continue;
    digits.push_back({.size = (*sizes)[axis], .steps = AffinePlace(sizes->size())});
    digits[0].steps[axis] = 1;
  }
  return view;
}

std::optional<AffineView> AffineViews::Made(const Node& node) const {
  const CoreOp op = static_cast<CoreOp>(node.op->index);
  switch (op) {
    case CoreOp::kReshape:
      if (static_cast<Order>(node.attrs.Int("order")) == Order::kRowMajor) return std::nullopt;
      break;
    case CoreOp::kTranspose:
    case CoreOp::kBroadcastInDim:
    case CoreOp::kSlice:
      break;
    case CoreOp::kPad:
      return MadeByPad(node);
    case CoreOp::kConcatenate:
      return MadeByConcatenate(node);
    case CoreOp::kAdd:
      return MadeByAdd(node);
    default:
      return std::nullopt;
  }
  const std::optional<Sizes> from = KnownSizes(graph_.type(node.operands[0]));
  const std::optional<Sizes> to = KnownSizes(graph_.type(node.first_result));
  View view = Of(node.operands[0]);
  if (!from.has_value() || !to.has_value() || !view.has_value()) return std::nullopt;
  if (op == CoreOp::kReshape) return Reshaped(*std::move(view), *to);
  if (op == CoreOp::kTranspose) return Transposed(*std::move(view), node);
  return op == CoreOp::kSlice ? Sliced(*std::move(view), node, *from, *to)
                              : WithUnitAxes(*std::move(view), node, *from, *to);
}

// Makes the view of a pad with 0, the value outside of the base.
std::optional<AffineView> AffineViews::MadeByPad(const Node& node) const {
  const std::optional<Sizes> to = KnownSizes(graph_.type(node.first_result));
  View view = Of(node.operands[0]);
  if (!to.has_value() || !view.has_value() || !IsZero(graph_, node.operands[1])) return std::nullopt;
  const std::vector<int64_t>& interior = node.attrs.Ints("interior_padding");
  if (std::any_of(interior.begin(), interior.end(), [](int64_t i) { return i != 0; })) return std::nullopt;
  const std::vector<int64_t>&low = node.attrs.Ints("edge_padding_low"), &high = node.attrs.Ints("edge_padding_high");
  for (size_t axis = 0; axis < to->size(); ++axis) {
    if (low[axis] == 0 && high[axis] == 0) continue;
    AffineDigits& digits = view->axes[axis];
    if (digits.size() != 1) return std::nullopt;
    const std::optional<size_t> own = OwnAxis(*view, digits[0]);
    if (!own.has_value()) return std::nullopt;
    // The padding lies outside of the base, and not only outside of the view.
    for (AffinePlace& place : view->starts) {
      const int64_t start = place[*own], end = start + digits[0].size;
      if ((low[axis] > 0 && start > 0) || (high[axis] > 0 && end < view->sizes[*own])) return std::nullopt;
      place[*own] -= low[axis];
    }
    digits[0].size = (*to)[axis];
    if (digits[0].size == 1) digits.clear();
  }
  return view;
}

std::optional<AffineView> AffineViews::MadeByConcatenate(const Node& node) const {
  View joined;
  std::vector<AffinePlace> starts;
  for (const ValueId operand : node.operands) {
    View view = Of(operand);
    if (!view.has_value() || view->starts.size() > 1) return std::nullopt;
    starts.push_back(view->starts[0]);
    if (!joined.has_value()) {
      joined = std::move(view);
    } else if (view->base != joined->base || view->axes != joined->axes) {
      return std::nullopt;
    }
  }
  if (!joined.has_value()) return std::nullopt;
  const std::optional<AffineDigits> lattice = LatticeOf(starts);
  if (!lattice.has_value()) return std::nullopt;
  AffineDigits& axis = joined->axes[static_cast<size_t>(node.attrs.Int("dimension"))];
  axis.insert(axis.end(), lattice->begin(), lattice->end());
  joined->joins = joined->joins || node.operands.size() > 1;
  return joined;
}

std::optional<AffineView> AffineViews::MadeByAdd(const Node& node) const {
  if (!begins_at_nodes_) return std::nullopt;
  View sum = Of(node.operands[0]);
  const View other = Of(node.operands[1]);
  if (!sum.has_value() || !other.has_value()) return std::nullopt;
  if (sum->base != other->base || sum->axes != other->axes) return std::nullopt;
  if (sum->starts.size() + other->starts.size() > kMaxSummands) return std::nullopt;
  sum->starts.insert(sum->starts.end(), other->starts.begin(), other->starts.end());
  sum->joins = sum->joins || other->joins;
  return sum;
}

}  // namespace tensord
