#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/testlib/graphs/bench_graphs.h"
#include "tests/testlib/graphs/static_graph_builder.h"

namespace tensord {
namespace {

using Builder = StaticGraphBuilder;

// The product of matrices in the order that takes the fewest multiplications.
class MatrixChain {
 public:
  MatrixChain(Builder* graph, std::vector<ValueId> matrices, const std::vector<int64_t>& sizes)
      : graph_(graph), matrices_(std::move(matrices)), split_(matrices_.size() * matrices_.size()) {
    const size_t n = matrices_.size();
    std::vector<int64_t> cost(n * n);
    for (size_t length = 2; length <= n; ++length) {
      for (size_t i = 0; i + length <= n; ++i) {
        const size_t j = i + length - 1;
        int64_t& best = cost[i * n + j];
        best = std::numeric_limits<int64_t>::max();
        for (size_t k = i; k < j; ++k) {
          const int64_t with = cost[i * n + k] + cost[(k + 1) * n + j] + sizes[i] * sizes[k + 1] * sizes[j + 1];
          if (with >= best) continue;
          best = with;
          split_[i * n + j] = k;
        }
      }
    }
  }

  ValueId Product() { return Product(0, matrices_.size() - 1); }

 private:
  ValueId Product(size_t first, size_t last) {
    if (first == last) return matrices_[first];
    const size_t k = split_[first * matrices_.size() + last];
    const ValueId left = Product(first, k), right = Product(k + 1, last);
    return graph_->Dot(left, right, {1}, {0});
  }

  Builder* const graph_;
  const std::vector<ValueId> matrices_;
  std::vector<size_t> split_;  // by first * n + last: the last of the left half
};

}  // namespace

Graph CircuitGraph(int64_t qubits, int64_t gates) {
  Builder g("circuit");
  const ValueId state = g.Input("state", DType::kC128, {int64_t{1} << qubits});
  std::vector<ValueId> inputs;
  for (int64_t i = 0; i < gates; ++i) inputs.push_back(g.Input(absl::StrCat("gate", i), DType::kC128, {4, 4}));
  ValueId y = state;
  for (int64_t i = 0; i < gates; ++i) {
    const int64_t below = int64_t{1} << i % (qubits - 1), above = (int64_t{1} << (qubits - 2)) / below;
    const ValueId split = g.Reshape(y, {below, 4, above});
    const ValueId turned = g.Dot(inputs[static_cast<size_t>(i)], split, {1}, {1});  // [4, below, above]
    y = g.Reshape(g.Transpose(turned, {1, 0, 2}), {int64_t{1} << qubits});
  }
  g.Output("state", y);
  g.Output("norm", g.Reduce(ReduceKind::kSum, g.Binary(CoreOp::kMultiply, g.Unary(CoreOp::kConj, y), y), {0}));
  return g.Take();
}

Graph DmrgGraph(int64_t bond, int64_t operator_bond, int64_t physical) {
  Builder g("dmrg");
  const int64_t chi = bond, w = operator_bond, d = physical;
  const ValueId left = g.Input("left", DType::kF64, {chi, w, chi}),
                theta = g.Input("theta", DType::kF64, {chi, d, d, chi}),
                first = g.Input("first", DType::kF64, {w, w, d, d}),
                second = g.Input("second", DType::kF64, {w, w, d, d}),
                right = g.Input("right", DType::kF64, {chi, w, chi});
  // awb,bsuc->awsuc; awsuc,wxts->aucxt; aucxt,xyvu->actyv; actyv,dyc->atvd.
  const ValueId a = g.Dot(left, theta, {2}, {0});
  const ValueId b = g.Dot(a, first, {1, 2}, {0, 3});
  const ValueId c = g.Dot(b, second, {3, 1}, {0, 3});
  g.Output("y", g.Dot(c, right, {3, 1}, {1, 2}));
  return g.Take();
}

Graph MatrixChainGraph(int64_t count, int64_t largest) {
  Builder g("matrix chain");
  std::mt19937_64 random(24);
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i <= count; ++i) {
    sizes.push_back(1 + largest / 20 + static_cast<int64_t>(random() % static_cast<uint64_t>(largest)));
  }
  std::vector<ValueId> matrices;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    matrices.push_back(g.Input(absl::StrCat("m", i), DType::kF64, {sizes[i], sizes[i + 1]}));
  }
  g.Output("y", MatrixChain(&g, std::move(matrices), sizes).Product());
  return g.Take();
}

Graph MpsInnerProductGraph(int64_t sites, int64_t bond, int64_t physical) {
  Builder g("mps inner product");
  std::vector<ValueId> bra, ket;
  for (int64_t i = 0; i < sites; ++i) {
    const Shape shape = {i == 0 ? 1 : bond, physical, i + 1 == sites ? 1 : bond};
    bra.push_back(g.Input(absl::StrCat("a", i), DType::kF64, shape));
    ket.push_back(g.Input(absl::StrCat("b", i), DType::kF64, shape));
  }
  ValueId overlap = g.Dot(bra[0], ket[0], {0, 1}, {0, 1});  // [right of bra, right of ket]
  for (size_t i = 1; i < bra.size(); ++i) {
    const ValueId half = g.Dot(overlap, bra[i], {0}, {0});  // [ket, physical, right of bra]
    overlap = g.Dot(half, ket[i], {0, 1}, {0, 1});
  }
  g.Output("y", g.Reshape(overlap, {}));
  return g.Take();
}

Graph MatrixProductGraph(int64_t size, int64_t batch, DType dtype) {
  Builder g("matrix product");
  const Shape shape = {size, size, batch};
  const ValueId a = g.Input("a", dtype, shape), b = g.Input("b", dtype, shape);
  g.Output("c", g.Dot(a, b, {1}, {0}, {2}, {2}));
  return g.Take();
}

Graph ContractionGraph(absl::string_view labels, absl::string_view sizes) {
  Builder g(labels);
  absl::flat_hash_map<char, int64_t> size_of;
  for (size_t i = 0; i < sizes.size();) {
    int64_t& size = size_of[sizes[i++]];
    while (i < sizes.size() && absl::ascii_isdigit(static_cast<unsigned char>(sizes[i]))) {
      size = 10 * size + (sizes[i++] - '0');
    }
  }
  const std::vector<std::string> parts = absl::StrSplit(labels, '-');
  const std::string &result = parts[0], &lhs = parts[1], &rhs = parts[2];
  const auto input = [&](absl::string_view name, const std::string& axes) {
    Shape shape;
    for (char label : axes) shape.push_back(size_of[label]);
    return g.Input(name, DType::kF64, shape);
  };
  const ValueId a = input("a", lhs), b = input("b", rhs);
  std::vector<int64_t> lhs_contracted, rhs_contracted;
  std::string free;  // labels of the product's axes
  for (size_t i = 0; i < lhs.size(); ++i) {
    const size_t j = rhs.find(lhs[i]);
    if (j == std::string::npos) {
      free += lhs[i];
    } else {
      lhs_contracted.push_back(static_cast<int64_t>(i));
      rhs_contracted.push_back(static_cast<int64_t>(j));
    }
  }
  for (char label : rhs) {
    if (lhs.find(label) == std::string::npos) free += label;
  }
  std::vector<int64_t> permutation;
  for (char label : result) permutation.push_back(static_cast<int64_t>(free.find(label)));
  g.Output("c", g.Transpose(g.Dot(a, b, lhs_contracted, rhs_contracted), permutation));
  return g.Take();
}

}  // namespace tensord
