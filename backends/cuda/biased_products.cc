#include "backends/cuda/biased_products.h"

#include <algorithm>
#include <utility>

#include "backends/cuda/kernel_makers.h"
#include "backends/cuda/kernels/dot_kernel.h"
#include "engine/base/status_macros.h"
#include "engine/ops/core_ops.h"

namespace tensord::cuda {
namespace {

constexpr absl::string_view kWay = "a product adds its bias";

// A segment whose work the one before has done.
class DoneBefore final : public Kernel {
 public:
  absl::Status Enqueue(const Launch&) const override { return absl::OkStatus(); }
  std::string Describe() const override { return "done by the product"; }
};

// Returns the operand of `map` that is the result of `product` and of nobody else; -1 if there is none.
int32_t ProductIn(const SegmentInstruction& map, const SegmentInstruction& product) {
  if (!Is(*product.bound.op, CoreOp::kDotGeneral) || product.bound.micro != nullptr || map.bound.micro == nullptr ||
      map.operands.size() != 2 || map.operands[0] == map.operands[1] || map.results.size() != 1 ||
      product.num_readers != std::vector<int32_t>{1}) {
    return -1;
  }
  const auto found = std::find(map.operands.begin(), map.operands.end(), product.results[0]);
  return found == map.operands.end() ? -1 : static_cast<int32_t>(found - map.operands.begin());
}

}  // namespace

absl::StatusOr<BiasedProducts> BiasedProducts::Find(absl::Span<const SegmentInstruction> segments,
                                                    const KernelContext& context, const ParallelFor& parallel) {
  struct Pair {
    size_t first = 0;
    int32_t product = 0;  // the map's operand
  };
  std::vector<Pair> pairs;  // none shares a segment with another: one is a product, the next a map
  for (size_t i = 0; i + 1 < segments.size(); ++i) {
    const int32_t product = ProductIn(segments[i + 1], segments[i]);
    if (product >= 0) pairs.push_back({i, product});
  }
  const auto make = [&](size_t p) -> KernelMakers::Made {
    RETURN_IF_ERROR(context.compiler->context()->Enter());
    const SegmentInstruction* const pair = &segments[pairs[p].first];
    return MakeBiasedDotKernel(pair[0].bound, *pair[1].bound.micro, pairs[p].product, context);
  };
  ASSIGN_OR_RETURN(std::vector<KernelMakers::Made> kernels, KernelMakers::MakeAll(pairs.size(), make, parallel));
  BiasedProducts products(segments);
  for (size_t p = 0; p < kernels.size(); ++p) {
    if (kernels[p].ok() && *kernels[p] == nullptr) continue;
    products.Join(pairs[p].first, static_cast<size_t>(pairs[p].product), std::move(kernels[p]));
  }
  return products;
}

void BiasedProducts::Join(size_t first, size_t product, absl::StatusOr<std::unique_ptr<Kernel>> kernel) {
  if (changed_.empty()) changed_.assign(segments_.begin(), segments_.end());
  SegmentInstruction &dot = changed_[first], &map = changed_[first + 1];
  chains_.push_back({.begin = first, .end = first + 2, .unplaced = {dot.results[0]}, .way = kWay});
  auto& operands =
      operands_.emplace_back(std::make_unique<std::vector<Slot>>(dot.operands.begin(), dot.operands.end()));
  operands->push_back(map.operands[1 - product]);
  dot.operands = *operands;
  dot.results = map.results;
  map.operands = {};
  map.results = {};
  kernels_.emplace(&dot.bound, std::move(kernel));
  kernels_.emplace(&map.bound, std::make_unique<DoneBefore>());
}

absl::StatusOr<std::unique_ptr<Kernel>> BiasedProducts::Take(const BoundInstruction& instruction) {
  const auto found = kernels_.find(&instruction);
  if (found == kernels_.end()) return nullptr;
  return std::move(found->second);
}

}  // namespace tensord::cuda
