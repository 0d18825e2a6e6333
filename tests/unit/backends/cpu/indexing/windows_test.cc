#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "backends/cpu/indexing/kernels.h"
#include "backends/cpu/machine/streamed_stores.h"
#include "engine/ops/index_windows.h"
#include "tests/testlib/numbers/literal_compare.h"
#include "tests/testlib/numbers/random_literal.h"
#include "tests/unit/backends/cpu/kernel_call.h"

namespace tensord::cpu {
namespace {

int64_t Below(std::mt19937_64& random, int64_t end) {
  return static_cast<int64_t>(random() % static_cast<uint64_t>(end));
}

Ints Permutation(std::mt19937_64& random, int64_t size) {
  Ints order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

// Starts in and around [0, 9), some at the ends of their dtype.
Literal Indices(std::mt19937_64& random, DType dtype, const Ints& shape, int64_t end = 9) {
  Literal indices = *Literal::Create({dtype, Shape(shape.begin(), shape.end())});
  const auto draw = [&]<typename T>(absl::Span<T> values) {
    using L = std::numeric_limits<T>;
    const T edges[] = {L::min(), L::max(), -1};
    for (T& value : values) {
      value = random() % 20 == 0 ? edges[random() % 3] : static_cast<T>(Below(random, end + 2) - 1);
    }
  };
  if (dtype == DType::kI32) {
    draw(indices.mutable_values<int32_t>());
  } else {
    draw(indices.mutable_values<int64_t>());
  }
  return indices;
}

// Any axes that Gather and Scatter allow, on small tensors; `window` has the windows' size for each operand axis.
struct AnyWindows {
  WindowAxes axes;
  Ints operand, indices, windows, window;
  Ints index_order;

  explicit AnyWindows(std::mt19937_64& random) {
    const int64_t rank = Below(random, 5), batch_rank = Below(random, 4);
    Ints batch(static_cast<size_t>(batch_rank));
    for (int64_t& size : batch) size = random() % 20 == 0 ? 0 : 1 + Below(random, 9);
    Ints batching = Permutation(random, batch_rank);
    batching.resize(static_cast<size_t>(Below(random, std::min(rank, batch_rank) + 1)));
    const Ints roles = Permutation(random, rank);
    operand.resize(static_cast<size_t>(rank));
    window.resize(static_cast<size_t>(rank), 1);
    for (size_t i = 0; i < operand.size(); ++i) {
      const size_t axis = static_cast<size_t>(roles[i]);
      operand[axis] = 1 + Below(random, 9);
      if (i < batching.size()) {
        operand[axis] = batch[static_cast<size_t>(batching[i])];
        axes.operand_batching_dims.push_back(roles[i]);
      } else if (random() % 2 == 0) {
        axes.dropped_dims.push_back(roles[i]);
      } else {
        window[axis] = random() % 30 == 0 ? 0 : 1 + Below(random, operand[axis]);
      }
      if (i >= batching.size() && random() % 3 != 0) axes.index_map.push_back(roles[i]);
    }
    std::sort(axes.operand_batching_dims.begin(), axes.operand_batching_dims.end());
    std::sort(axes.dropped_dims.begin(), axes.dropped_dims.end());
    axes.index_vector_dim =
        axes.index_map.size() == 1 && random() % 2 == 0 ? batch_rank : Below(random, batch_rank + 1);
    const bool has_vector_axis = axes.index_map.size() != 1 || axes.index_vector_dim < batch_rank || random() % 2 == 0;
    indices = batch;
    if (has_vector_axis) {
      indices.insert(indices.begin() + axes.index_vector_dim, static_cast<int64_t>(axes.index_map.size()));
    }
    const auto in_indices = [&](int64_t axis) {
      return has_vector_axis && axis >= axes.index_vector_dim ? axis + 1 : axis;
    };
    for (int64_t axis : axes.operand_batching_dims) {  // any batch axis of that size
      size_t i = 0;
      while (roles[i] != axis) ++i;
      axes.indices_batching_dims.push_back(in_indices(batching[i]));
    }
    for (int64_t axis : Permutation(random, batch_rank)) index_order.push_back(in_indices(axis));
    const std::vector<int64_t> window_axes = axes.OperandWindowAxes(rank);
    axes.window_dims = Permutation(random, batch_rank + static_cast<int64_t>(window_axes.size()));
    axes.window_dims.resize(window_axes.size());
    std::sort(axes.window_dims.begin(), axes.window_dims.end());
    windows.resize(window_axes.size() + batch.size());
    for (size_t k = 0; k < window_axes.size(); ++k) {
      windows[static_cast<size_t>(axes.window_dims[k])] = window[static_cast<size_t>(window_axes[k])];
    }
    const std::vector<int64_t> batch_dims = axes.BatchDims(static_cast<int64_t>(indices.size()));
    for (size_t k = 0; k < batch.size(); ++k) windows[static_cast<size_t>(batch_dims[k])] = batch[k];
  }
};

DType AnyIndexDType(std::mt19937_64& random) { return random() % 2 == 0 ? DType::kI32 : DType::kI64; }
DType AnyDType(std::mt19937_64& random) { return kAllDTypes[random() % kAllDTypes.size()]; }

TEST(GatherKernelTest, AnyAxes) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 1000; ++round) {
    const AnyWindows any(random);
    Call call(CoreOp::kGather,
              {Numbered(AnyDType(random), any.operand), Indices(random, AnyIndexDType(random), any.indices)},
              any.windows);
    any.axes.SetOn(&call.attrs, kGatherNames);
    call.attrs.Set("slice_sizes", any.window);
    ExpectReference(call, &MakeGatherKernel);
  }
}

// Enough for several tasks on each road of the kernel: runs, runs that are cut, picked elements, lookups, other forms.
TEST(GatherKernelTest, LargeOnes) {
  struct Large {
    Ints operand, indices, result, window_dims, dropped, index_map, sizes;
  };
  const Large cases[] = {{{300, 50}, {9000}, {300, 9000}, {0}, {1}, {1}, {300, 1}},
                         {{50, 300}, {9000}, {9000, 300}, {1}, {0}, {0}, {1, 300}},
                         {{400000}, {3}, {300000, 3}, {0}, {}, {0}, {300000}},
                         {{400000}, {3}, {3, 300000}, {1}, {}, {0}, {300000}},
                         {{1000}, {200000}, {200000}, {}, {0}, {0}, {1}},
                         {{40, 30, 20}, {5000}, {30, 7, 5000}, {0, 1}, {0}, {0}, {1, 30, 7}},
                         {{40, 30, 20}, {5000}, {30, 5000, 7}, {0, 2}, {0}, {0}, {1, 30, 7}}};
  std::mt19937_64 random(2);
  for (const Large& c : cases) {
    for (DType dtype : {DType::kBool, DType::kF16, DType::kF32, DType::kF64, DType::kC128}) {
      Call call(CoreOp::kGather, {Numbered(dtype, c.operand), Indices(random, AnyIndexDType(random), c.indices, 60)},
                c.result);
      call.attrs.Set("offset_dims", c.window_dims)
          .Set("collapsed_slice_dims", c.dropped)
          .Set("start_index_map", c.index_map)
          .Set("index_vector_dim", static_cast<int64_t>(c.indices.size()))
          .Set("slice_sizes", c.sizes);
      ExpectReference(call, &MakeGatherKernel);
    }
  }
}

// The reference to the last bit, but for which NaN it is; the same bits for every number of threads.
void ExpectScattered(const Call& call) {
  const Literal one = RunKernel(&MakeScatterKernel, call, 1);
  EXPECT_EQ(Difference(one, Reference(call), {}), "")
      << ToString(call.operands[0].type()) << " " << ToString(call.operands[1].type()) << " "
      << ToString(call.operands[2].type()) << " combiner " << call.attrs.Int("combiner");
  for (int threads : {2, 3}) EXPECT_TRUE(RunKernel(&MakeScatterKernel, call, threads) == one) << threads << " threads";
}

TEST(ScatterKernelTest, AnyAxesAndOrders) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 1000; ++round) {
    const AnyWindows any(random);
    const DType dtype = AnyDType(random);
    Call call(CoreOp::kScatter,
              {RandomLiteral({dtype, Shape(any.operand.begin(), any.operand.end())}, Values::kEdges, &random),
               Indices(random, AnyIndexDType(random), any.indices),
               RandomLiteral({dtype, Shape(any.windows.begin(), any.windows.end())}, Values::kEdges, &random)},
              any.operand);
    any.axes.SetOn(&call.attrs, kScatterNames);
    call.attrs.Set("combiner", Below(random, 5));
    if (random() % 2 == 0) call.attrs.Set("index_order", any.index_order);
    ExpectScattered(call);
  }
}

// Enough for many slabs, along each kind of axis, with every element named many times.
TEST(ScatterKernelTest, LargeOnes) {
  struct Large {
    Ints operand, indices, updates, window_dims, dropped, index_map;
    int64_t index_vector_dim = 1;
    Ints operand_batching = {}, indices_batching = {};
  };
  const Large cases[] = {{{301, 50}, {3000}, {301, 3000}, {0}, {1}, {1}},  // rows, each cut
                         {{3, 500}, {9000}, {3, 9000}, {0}, {1}, {1}},     // short rows
                         {{50, 31}, {9000}, {9000, 31}, {1}, {0}, {0}},    // columns
                         {{100}, {50000}, {50000}, {}, {0}, {0}},          // elements
                         {{100}, {20000}, {7, 20000}, {0}, {}, {0}},       // windows that overlap
                         {{100}, {20000}, {20000, 7}, {1}, {}, {0}},
                         {{60, 60}, {3000, 2}, {3, 4, 3000}, {0, 1}, {}, {0, 1}},
                         {{60, 60}, {3000, 2}, {3, 3000, 4}, {0, 2}, {}, {1, 0}},
                         {{200, 40}, {500, 200}, {500, 200}, {}, {1}, {1}, 2, {0}, {1}},  // each batch by itself
                         {{40, 200}, {200, 500}, {200, 500}, {}, {0}, {0}, 2, {1}, {0}}};
  std::mt19937_64 random(4);
  for (const Large& c : cases) {
    for (DType dtype : kAllDTypes) {
      Call call(CoreOp::kScatter,
                {RandomLiteral({dtype, Shape(c.operand.begin(), c.operand.end())}, Values::kModest, &random),
                 Indices(random, AnyIndexDType(random), c.indices, 60),
                 RandomLiteral({dtype, Shape(c.updates.begin(), c.updates.end())}, Values::kModest, &random)},
                c.operand);
      call.attrs.Set("update_window_dims", c.window_dims)
          .Set("inserted_window_dims", c.dropped)
          .Set("scatter_dims_to_operand_dims", c.index_map)
          .Set("index_vector_dim", c.index_vector_dim)
          .Set("input_batching_dims", c.operand_batching)
          .Set("scatter_indices_batching_dims", c.indices_batching)
          .Set("combiner", Below(random, 5));
      ExpectScattered(call);
    }
  }
}

// Rows beyond the caches: all over the table, few, all in one place, and a table whose last block is short.
TEST(ScatterKernelTest, RowsOfLargeTables) {
  struct Table {
    int64_t row_elements, count;
    int64_t most_row;  // of those that are named
    bool in_order = true;
  };
  std::mt19937_64 random(5);
  for (const Table& t : {Table{32, 3000, 1 << 30}, Table{1000, 3000, 1 << 30, false}, Table{16, 5, 1 << 30},
                         Table{1000, 3000, 3}, Table{4096, 100, 20}}) {
    for (const DType dtype : {DType::kF32, DType::kC64}) {
      const int64_t rows = StreamedResultBytes() / (t.row_elements * SizeOf(dtype)) + 37;
      const Ints updates = t.in_order ? Ints{t.row_elements, t.count} : Ints{t.row_elements, 1, t.count};
      Call call(CoreOp::kScatter,
                {RandomLiteral({dtype, {t.row_elements, rows}}, Values::kModest, &random),
                 Indices(random, AnyIndexDType(random), t.in_order ? Ints{t.count} : Ints{1, t.count},
                         std::min(rows, t.most_row)),
                 RandomLiteral({dtype, Shape(updates.begin(), updates.end())}, Values::kModest, &random)},
                {t.row_elements, rows});
      call.attrs.Set("update_window_dims", Ints{0})
          .Set("inserted_window_dims", Ints{1})
          .Set("scatter_dims_to_operand_dims", Ints{1})
          .Set("index_vector_dim", int64_t{t.in_order ? 1 : 2})
          .Set("combiner", Below(random, 5));
      ExpectScattered(call);
    }
  }
}

TEST(WindowKernels, RefuseOtherOps) {
  const Call call(CoreOp::kNegate, {Numbered(DType::kF32, {2})}, {2});
  EXPECT_FALSE(MakeGatherKernel(Bind(call)).ok());
  EXPECT_FALSE(MakeScatterKernel(Bind(call)).ok());
}

}  // namespace
}  // namespace tensord::cpu
