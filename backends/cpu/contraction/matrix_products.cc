#include "backends/cpu/contraction/matrix_products.h"

#include <algorithm>

#include "engine/base/stop_signal.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kDotTaskWork = int64_t{1} << 17;  // multiplications

DotAxis FirstOf(const DotAxisList& merged) { return merged.empty() ? DotAxis{1, {1, 1, 1}} : merged[0]; }

}  // namespace

MatrixProduct DotProducts::Matrices(const DotSpace& box) {
  const DotAxis rows = FirstOf(MergeAxes(box.roles[kRows])), columns = FirstOf(MergeAxes(box.roles[kColumns])),
                summed = FirstOf(MergeAxes(box.roles[kSummed]));
  MatrixProduct product;
  product.m = rows.size;
  product.n = columns.size;
  product.k = summed.size;
  product.a = {rows.strides[kLhs], summed.strides[kLhs]};
  product.b = {summed.strides[kRhs], columns.strides[kRhs]};
  product.c_column_stride = columns.size == 1 ? rows.size : columns.strides[kDotResult];
  return product;
}

void DotProducts::AddLoops(const DotAxisList& axes, size_t first, absl::InlinedVector<Loop, 4>* loops) const {
  for (size_t i = first; i < axes.size(); ++i) {
    Loop loop{axes[i].size};
    for (size_t side = 0; side < kNumDotSides; ++side) loop.steps[side] = axes[i].strides[side] * element_bytes_;
    loops->push_back(loop);
  }
}

DotProducts::DotProducts(const DotSpace& box, DType dtype, bool conjugates_lhs, bool conjugates_rhs)
    : element_bytes_(SizeOf(dtype)) {
  MatrixProduct product = Matrices(box);
  product.conjugates_a = conjugates_lhs;
  product.conjugates_b = conjugates_rhs;
  AddLoops(MergeAxes(box.roles[kRows]), 1, &loops_);
  AddLoops(MergeAxes(box.roles[kColumns]), 1, &loops_);
  AddLoops(MergeAxes(box.roles[kBatch]), 0, &loops_);
  AddLoops(MergeAxes(box.roles[kSummed]), 1, &sums_);
  int64_t num_products = 1;
  for (const Loop& loop : loops_) num_products *= loop.count;
  for (const Loop& loop : sums_) num_sums_ *= loop.count;
  gemm_ = Gemm(dtype, product, num_products, num_sums_);
  num_items_ = num_products * gemm_.num_blocks();
  items_per_task_ = std::max<int64_t>(1, kDotTaskWork / std::max<int64_t>(1, gemm_.block_work() * num_sums_));
}

// Items [item, item + count), which differ in the index of the first loop at most.
void DotProducts::RunItems(int64_t item, int64_t count, const char* lhs, const char* rhs, char* result, char* partials,
                           bool accumulates) const {
  int64_t rest = item;
  int64_t block = 0;
  const bool is_cut = gemm_.num_blocks() > 1;
  if (is_cut) {
    rest = item / gemm_.num_blocks();
    block = item % gemm_.num_blocks();
  }
  for (size_t k = 0; k < loops_.size(); ++k) {
    const Loop& loop = loops_[k];
    const bool is_last = k + 1 == loops_.size();  // spares tiny products a division
    const int64_t index = is_last ? rest : rest % loop.count;
    lhs += index * loop.steps[kLhs];
    rhs += index * loop.steps[kRhs];
    result += index * loop.steps[kDotResult];
    if (!is_last) rest /= loop.count;
  }
  ProductCopies copies{count};
  if (!loops_.empty()) {
    copies.a_step = loops_[0].steps[kLhs] / element_bytes_;
    copies.b_step = loops_[0].steps[kRhs] / element_bytes_;
    copies.c_step = loops_[0].steps[kDotResult] / element_bytes_;
  }
  for (int64_t sum = 0; sum < num_sums_ && (sum == 0 || !StopRequested()); ++sum) {
    int64_t part = sum;
    const char* a = lhs;
    const char* b = rhs;
    for (const Loop& loop : sums_) {
      a += part % loop.count * loop.steps[kLhs];
      b += part % loop.count * loop.steps[kRhs];
      part /= loop.count;
    }
    if (is_cut) {
      gemm_.RunBlock(block, a, b, result, partials, accumulates || sum > 0);
    } else {
      gemm_.RunCopies(copies, a, b, result, accumulates || sum > 0);
    }
  }
}

void DotProducts::Run(const char* lhs, const char* rhs, char* result, char* partials, bool accumulates,
                      ThreadPool& pool) const {
  const int64_t together = gemm_.num_blocks() > 1 || loops_.empty() ? 1 : loops_[0].count;
  const auto run = [&](int64_t begin, int64_t end) {
    while (begin < end && !StopRequested()) {
      const int64_t count = std::min(end - begin, together - begin % together);
      RunItems(begin, count, lhs, rhs, result, partials, accumulates);
      begin += count;
    }
  };
  if (num_items_ <= items_per_task_) {
    run(0, num_items_);
  } else {
    pool.ParallelForBlocks(num_items_, items_per_task_, run);
  }
  gemm_.JoinPartials(partials, result, accumulates);
}

}  // namespace tensord::cpu
