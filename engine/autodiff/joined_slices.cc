#include "engine/autodiff/joined_slices.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/types/span.h"
#include "engine/ops/core_ops.h"
#include "engine/ops/derivatives/terms.h"

namespace tensord {
namespace {

constexpr int kMostCuts = 8;  // within each other

// A range of an axis: a run of boxes that no cut tells apart, or a gap without any.
struct Section {
  int64_t begin = 0, end = 0;
  std::vector<size_t> boxes;
};

// Cuts a box of a tensor along one axis after the other until each piece is one of the given boxes, or empty.
template <typename Box>
class Cutting {
 public:
  explicit Cutting(absl::Span<const Box> boxes) : boxes_(boxes) {}

  // Calls `whole(box)`, `empty(starts, limits)` and `join(axis, pieces)`, and returns the last call's answer; nothing
  // if the boxes cannot be told apart.
  template <typename Whole, typename Empty, typename Join>
  std::optional<ValueId> Run(std::vector<int64_t> starts, std::vector<int64_t> limits,
                             const std::vector<size_t>& inside, int depth, const Whole& whole, const Empty& empty,
                             const Join& join) const {
    if (inside.empty()) return empty(starts, limits);
    const Box& first = boxes_[inside[0]];
    if (inside.size() == 1 && first.starts == starts && first.limits == limits) return whole(first);
    if (depth == kMostCuts) return std::nullopt;
    // The slow axes first: pieces then lie together.
    for (size_t axis = starts.size(); axis-- > 0;) {
      const std::vector<Section> sections = SectionsOf(axis, starts[axis], limits[axis], inside);
      if (sections.size() < 2) continue;
      std::vector<ValueId> pieces;
      for (const Section& section : sections) {
        starts[axis] = section.begin;
        limits[axis] = section.end;
        const std::optional<ValueId> piece = Run(starts, limits, section.boxes, depth + 1, whole, empty, join);
        if (!piece.has_value()) return std::nullopt;
        pieces.push_back(*piece);
      }
      return join(axis, pieces);
    }
    return std::nullopt;
  }

 private:
  std::vector<Section> SectionsOf(size_t axis, int64_t begin, int64_t end, std::vector<size_t> inside) const {
    std::sort(inside.begin(), inside.end(), [&](size_t a, size_t b) {
      return std::make_pair(boxes_[a].starts[axis], a) < std::make_pair(boxes_[b].starts[axis], b);
    });
    std::vector<Section> sections;
    for (size_t box : inside) {
      const int64_t start = boxes_[box].starts[axis], limit = boxes_[box].limits[axis];
      const int64_t reached = sections.empty() ? begin : sections.back().end;
      if (start > reached) sections.push_back({.begin = reached, .end = start, .boxes = {}});
      if (start >= reached) sections.push_back({.begin = start, .end = limit, .boxes = {}});
      sections.back().boxes.push_back(box);
      sections.back().end = std::max(sections.back().end, limit);
    }
    if (sections.back().end < end) sections.push_back({.begin = sections.back().end, .end = end, .boxes = {}});
    return sections;
  }

  const absl::Span<const Box> boxes_;
};

std::vector<size_t> AllOf(size_t count) {
  std::vector<size_t> all(count);
  for (size_t i = 0; i < count; ++i) all[i] = i;
  return all;
}

// Returns the extents, all positive, if they are known.
std::optional<std::vector<int64_t>> ExtentsOf(const TensorType& type) {
  std::vector<int64_t> extents;
  for (const Dim& dim : type.shape) {
    if (!dim.is_static() || dim.size.constant() <= 0) return std::nullopt;
    extents.push_back(dim.size.constant());
  }
  return extents;
}

bool HasStrides(const Node& slice) {
  const std::vector<int64_t>& strides = slice.attrs.Ints("strides");
  return std::any_of(strides.begin(), strides.end(), [](int64_t stride) { return stride != 1; });
}

}  // namespace

JoinedSlices::JoinedSlices(const LinearizedGraph& linearized) : graph_(linearized.graph) {
  absl::flat_hash_map<int32_t, std::vector<ValueId>> slices;
  for (const Node& node : graph_.nodes()) {
    if (!Is(*node.op, CoreOp::kSlice) || HasStrides(node)) continue;
    const ValueId operand = node.operands[0];
    if (!linearized.is_linear[static_cast<size_t>(operand.index)]) continue;
    if (!ExtentsOf(graph_.type(operand)).has_value() || !ExtentsOf(graph_.type(node.first_result)).has_value())
      continue;
    boxes_[operand.index].push_back({node.attrs.Ints("start_indices"), node.attrs.Ints("limit_indices"), {}});
    slices[operand.index].push_back(node.first_result);
  }
  for (const auto& [tangent, results] : slices) {
    const std::vector<Box>& boxes = boxes_[tangent];
    const std::vector<int64_t> extents = *ExtentsOf(graph_.type({tangent}));
    const auto any = [](const auto&...) { return ValueId(); };
    const bool are_apart = boxes.size() > 1 && Cutting<Box>(boxes)
                                                   .Run(std::vector<int64_t>(extents.size(), 0), extents,
                                                        AllOf(boxes.size()), 0, any, any, any)
                                                   .has_value();
    if (!are_apart) {
      boxes_.erase(tangent);
      continue;
    }
    for (size_t i = 0; i < results.size(); ++i) positions_[results[i].index] = {tangent, i};
  }
}

bool JoinedSlices::Take(ValueId slice, ValueId cotangent) {
  const auto found = positions_.find(slice.index);
  if (found == positions_.end()) return false;
  boxes_[found->second.first][found->second.second].cotangent = cotangent;
  return true;
}

ValueId JoinedSlices::Join(ValueId tangent, DerivativeBuilder* builder) {
  const auto found = boxes_.find(tangent.index);
  if (found == boxes_.end()) return {};
  const std::vector<Box>& boxes = found->second;
  if (std::none_of(boxes.begin(), boxes.end(), [](const Box& box) { return box.cotangent.is_set(); })) return {};
  const TensorType& type = graph_.type(tangent);
  const std::vector<int64_t> extents = *ExtentsOf(type);
  const auto empty = [&](const std::vector<int64_t>& starts, const std::vector<int64_t>& limits) {
    TensorType piece{.dtype = type.dtype, .shape = {}};
    for (size_t i = 0; i < starts.size(); ++i) piece.shape.push_back(Dim(limits[i] - starts[i]));
    return Terms(*builder).Zeros(piece);
  };
  const auto whole = [&](const Box& box) {
    return box.cotangent.is_set() ? box.cotangent : empty(box.starts, box.limits);
  };
  const auto join = [&](size_t axis, const std::vector<ValueId>& pieces) {
    Attributes attrs(Def(CoreOp::kConcatenate).attrs);
    attrs.Set("dimension", static_cast<int64_t>(axis));
    return builder->Add(Def(CoreOp::kConcatenate), std::move(attrs), pieces);
  };
  return Cutting<Box>(boxes)
      .Run(std::vector<int64_t>(extents.size(), 0), extents, AllOf(boxes.size()), 0, whole, empty, join)
      .value_or(ValueId());
}

}  // namespace tensord
