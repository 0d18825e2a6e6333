#include "backends/cpu/joins/factored_product.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "backends/cpu/contraction/kernels.h"
#include "backends/cpu/machine/cache_sizes.h"
#include "engine/exec/backend/lone_elementwise.h"
#include "engine/fusion/micro_program.h"
#include "engine/ops/core_ops.h"

namespace tensord::cpu {
namespace {

using Clock = std::chrono::steady_clock;

// The factors of one segment, in the order in which it multiplies.
struct Multiplication {
  FactoredTensor tensor;
  absl::InlinedVector<size_t, 2> operands;  // of the segment, by factor
};

// Returns the loads of a program that only multiplies them, one after the other. Nothing for others, such as a product
// of two products.
std::optional<Multiplication> FactorsOf(const MicroProgram& micro, DType dtype) {
  if (micro.results.size() != 1 || micro.has_reduced_axes()) return std::nullopt;
  Multiplication made;
  for (const MicroAxis& axis : micro.axes) made.tensor.sizes.push_back(axis.size);
  const auto add = [&](const MicroInstruction& load) {
    if (load.kind != MicroKind::kLoad || load.dtype != dtype) return false;
    FactoredTensor::Factor factor = {.offset = load.access.offset, .strides = load.access.strides};
    if (std::any_of(factor.strides.begin(), factor.strides.end(), [](int64_t stride) { return stride < 0; })) {
      return false;
    }
    made.tensor.factors.push_back(std::move(factor));
    made.operands.push_back(static_cast<size_t>(load.tensor));
    return true;
  };
  const auto at = [&](int32_t value) -> const MicroInstruction& {
    return micro.instructions[static_cast<size_t>(value)];
  };
  // From the last factor to the first.
  int32_t value = micro.results[0].value;
  while (at(value).kind == MicroKind::kBinary && at(value).op == CoreOp::kMultiply && at(value).dtype == dtype) {
    int32_t product = at(value).operands[0], factor = at(value).operands[1];
    if (at(factor).kind != MicroKind::kLoad) std::swap(product, factor);
    if (!add(at(factor))) return std::nullopt;
    value = product;
  }
  if (made.operands.empty() || !add(at(value))) return std::nullopt;
  std::reverse(made.operands.begin(), made.operands.end());
  std::reverse(made.tensor.factors.begin(), made.tensor.factors.end());
  return made;
}

std::optional<Multiplication> FactorsOf(const BoundInstruction& map) {
  if (map.results.size() != 1) return std::nullopt;
  const DType dtype = map.results[0].dtype;
  if (map.micro != nullptr) return FactorsOf(*map.micro, dtype);
  const std::optional<MicroProgram> alone = ElementwiseProgram(map);
  return alone.has_value() ? FactorsOf(*alone, dtype) : std::nullopt;
}

// The sides that are exchanged, and the product of the operands read there.
struct TiledSides {
  TiledGemm product;
  DotSpace space;
  bool are_swapped = false;
};

// Returns the space with its sides exchanged if the result begins with an axis of the second operand, and with columns
// in the order in which they are read if only that suits the tiles.
std::optional<TiledSides> PlanSides(DotSpace space, DType dtype, FactoredTensors factored) {
  const DotAxisList &rows = space.roles[kRows], &columns = space.roles[kColumns];
  const bool swaps = !rows.empty() && !columns.empty() && columns[0].strides[kDotResult] == 1;
  if (swaps) {
    space = Swapped(std::move(space));
    std::swap(factored[kLhs], factored[kRhs]);
  }
  std::optional<TiledGemm> product = TiledGemm::Plan(space, dtype, factored);
  if (!product.has_value()) {
    space.roles[kColumns] = SortedBy(kRhs, space.roles[kColumns]);
    product = TiledGemm::Plan(space, dtype, factored);
  }
  if (!product.has_value()) return std::nullopt;
  return TiledSides{.product = *std::move(product), .space = std::move(space), .are_swapped = swaps};
}

// Tells whether the product would leave the thread's cache on its way to the contraction.
bool Pays(const ConcreteType& product) { return product.num_bytes() > MachineCacheSizes().l2; }

}  // namespace

std::unique_ptr<const FactoredProduct> FactoredProduct::Plan(absl::Span<const SegmentInstruction> segments,
                                                             EpilogueUse use) {
  if (use == EpilogueUse::kNever) return nullptr;
  for (const size_t maps : {size_t{2}, size_t{1}}) {
    if (segments.size() <= maps) continue;
    if (auto joined = PlanMaps(segments.subspan(0, maps), segments[maps], use); joined != nullptr) return joined;
  }
  return nullptr;
}

std::unique_ptr<const FactoredProduct> FactoredProduct::PlanMaps(absl::Span<const SegmentInstruction> maps,
                                                                 const SegmentInstruction& dot, EpilogueUse use) {
  const BoundInstruction& bound = dot.bound;
  if (!IsOrdinaryDot(bound) || dot.operands[0] == dot.operands[1]) {
    return nullptr;
  }
  const ConcreteType& result = bound.results[0];
  const auto is_converted = [&](const ConcreteType& operand) { return operand.dtype != result.dtype; };
  if (result.num_elements() == 0 || is_converted(bound.operands[0]) || is_converted(bound.operands[1])) return nullptr;

  FactoredTensors factored;
  std::array<absl::InlinedVector<Slot, 2>, 2> operands = {{{dot.operands[0]}, {dot.operands[1]}}};
  std::array<bool, 2> is_factored = {false, false};
  absl::InlinedVector<Slot, 2> passing;
  bool pays = use == EpilogueUse::kAlways;
  for (const SegmentInstruction& map : maps) {
    if (map.results.size() != 1 || map.num_readers[0] != 1) return nullptr;
    const size_t side = map.results[0] == dot.operands[0] ? 0 : 1;
    if (map.results[0] != dot.operands[side]) return nullptr;
    std::optional<Multiplication> factors = FactorsOf(map.bound);
    if (!factors.has_value()) return nullptr;
    operands[side].clear();
    for (const size_t operand : factors->operands) operands[side].push_back(map.operands[operand]);
    factored[side] = std::move(factors->tensor);
    is_factored[side] = true;
    passing.push_back(map.results[0]);
    pays = pays || Pays(map.bound.results[0]);
  }
  if (!pays) return nullptr;
  std::optional<TiledSides> tiled = PlanSides(DotSpaceOf(bound), result.dtype, std::move(factored));
  if (!tiled.has_value()) return nullptr;
  if (tiled->are_swapped) {
    std::swap(operands[kLhs], operands[kRhs]);
    std::swap(is_factored[kLhs], is_factored[kRhs]);
  }
  std::unique_ptr<FactoredProduct> joined(new FactoredProduct(std::move(tiled->product)));
  joined->packs_runs_of_rows_ = tiled->space.Size(kBatch) == 1 && is_factored[kLhs] && !is_factored[kRhs] &&
                                tiled->space.roles[kRows][0].strides[kLhs] == 1;
  joined->operands_ = std::move(operands);
  joined->is_factored_ = is_factored;
  joined->passing_ = std::move(passing);
  joined->result_ = dot.results[0];
  return joined;
}

std::string FactoredProduct::Describe(size_t segment) const {
  return segment + 1 < num_segments() ? "multiplied where the contraction packs it" : "packs products of factors";
}

absl::Status FactoredProduct::Run(const JoinRun& run) const {
  const auto at = [&](Slot slot) { return static_cast<char*>(run.At(slot)); };
  const Clock::time_point start = run.times.empty() ? Clock::time_point() : Clock::now();
  std::array<absl::InlinedVector<const char*, 4>, 2> addresses;
  std::array<const char*, 2> operands = {nullptr, nullptr};
  for (const DotSide side : {kLhs, kRhs}) {
    for (const Slot slot : operands_[side]) addresses[side].push_back(at(slot));
    if (!is_factored_[side]) operands[side] = addresses[side][0];
  }
  product_.RunFactored(operands, {addresses[kLhs], addresses[kRhs]}, at(result_), static_cast<char*>(run.workspace),
                       run.pool);
  if (run.times.empty()) return absl::OkStatus();
  for (SegmentTime& time : run.times) time = {.start = start, .end = start};
  run.times.back().end = Clock::now();
  return absl::OkStatus();
}

}  // namespace tensord::cpu
