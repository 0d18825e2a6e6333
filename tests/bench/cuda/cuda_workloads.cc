#include "tests/bench/cuda/cuda_workloads.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tensord {
namespace {

constexpr int64_t kMi = int64_t{1} << 20;

std::string InputText(absl::string_view name, absl::string_view type) {
  return absl::StrCat("  %", name, " = input : ", type, "\n");
}

std::string GraphText(absl::string_view inputs, absl::string_view nodes, absl::string_view output) {
  return absl::StrCat("graph \"g\" {\n", inputs, nodes, "  output \"r\" = %", output, "\n}\n");
}

class Workloads {
 public:
  explicit Workloads(int64_t divide) : divide_(divide) {}

  std::vector<CudaWorkload> All() && {
    Maps();
    Reductions();
    Copies();
    Products();
    Matrices();
    Chains();
    return std::move(all_);
  }

 private:
  int64_t Size(int64_t size, int64_t least = 32) const { return std::max<int64_t>(size / divide_, least); }
  // Returns the side of a square or cube with that share of the elements.
  int64_t Side(int64_t side, int axes) const {
    const double part = std::pow(static_cast<double>(divide_), 1.0 / axes);
    return std::max<int64_t>(static_cast<int64_t>(static_cast<double>(side) / part) / 8 * 8, 16);
  }

  void Add(CudaWorkload workload) { all_.push_back(std::move(workload)); }

  void Maps() {
    const int64_t n = Size(64 * kMi);
    const std::string f32 = absl::StrCat("f32[", n, "]"), bf16 = absl::StrCat("bf16[", n, "]");
    Add({.name = "negate_f32", .text = GraphText(InputText("x", f32), "  %r = negate(%x)\n", "r"), .bytes = 8 * n});
    Add({.name = "exp_map_f32",
         .text = GraphText(InputText("x", f32) + InputText("y", f32),
                           "  %p = multiply(%x, %y)\n  %e = exp(%p)\n  %r = subtract(%e, %x)\n", "r"),
         .bytes = 12 * n});
    const auto scalar = [&](absl::string_view name, absl::string_view value) {
      return absl::StrCat("  %", name, "0 = constant() {value = bf16[] [", value, "]}\n  %", name,
                          " = broadcast_in_dim(%", name, "0) {shape = [", n, "], broadcast_dimensions = []}\n");
    };
    Add({.name = "gelu_bf16",
         .text = GraphText(InputText("x", bf16),
                           absl::StrCat(scalar("half", "0.5"), scalar("one", "1"), scalar("a", "0.796875"),
                                        scalar("b", "0.044677734375"),
                                        "  %xx = multiply(%x, %x)\n  %xxx = multiply(%xx, %x)\n"
                                        "  %t = multiply(%b, %xxx)\n  %u = add(%x, %t)\n  %v = multiply(%a, %u)\n"
                                        "  %w = tanh(%v)\n  %s = add(%one, %w)\n  %h = multiply(%half, %x)\n"
                                        "  %r = multiply(%h, %s)\n"),
                           "r"),
         .bytes = 4 * n});
  }

  // Of rows along the first axis, the one whose elements are neighbours.
  void Softmax(absl::string_view name, int64_t row, int64_t rows) {
    const std::string type = absl::StrCat("f32[", row, ",", rows, "]");
    const std::string wide = absl::StrCat("{shape = [", row, ", ", rows, "], broadcast_dimensions = [1]}\n");
    Add({.name = std::string(name),
         .text = GraphText(
             InputText("x", type),
             absl::StrCat("  %m = reduce(%x) {kind = max, dimensions = [0]}\n  %mw = broadcast_in_dim(%m) ", wide,
                          "  %d = subtract(%x, %mw)\n  %e = exp(%d)\n"
                          "  %s = reduce(%e) {kind = sum, dimensions = [0]}\n  %sw = broadcast_in_dim(%s) ",
                          wide, "  %r = divide(%e, %sw)\n"),
             "r"),
         .bytes = 8 * row * rows});
  }

  void Reductions() {
    Softmax("softmax_1024_f32", 1024, Size(64 * kMi) / 1024 + 1);
    const int64_t long_row = divide_ == 1 ? 32768 : 2048;
    Softmax("softmax_32768_f32", long_row, Size(64 * kMi) / long_row + 1);
    const int64_t row = 4096, rows = Size(64 * kMi) / row + 1, n = row * rows;
    const std::string type = absl::StrCat("f32[", row, ",", rows, "]");
    for (const bool is_rows : {true, false}) {
      Add({.name = is_rows ? "squares_of_rows_f32" : "squares_of_columns_f32",
           .text = GraphText(InputText("x", type),
                             absl::StrCat("  %q = multiply(%x, %x)\n  %r = reduce(%q) {kind = sum, dimensions = [",
                                          is_rows ? 0 : 1, "]}\n"),
                             "r"),
           .bytes = 4 * n});
    }
    const std::string wide = absl::StrCat("{shape = [", row, ", ", rows, "], broadcast_dimensions = [1]}\n");
    Add({.name = "normalized_rows_f32",
         .text = GraphText(InputText("x", type),
                           absl::StrCat("  %s = reduce(%x) {kind = sum, dimensions = [0]}\n"
                                        "  %c0 = constant() {value = f32[] [",
                                        1.0 / row,
                                        "]}\n"
                                        "  %c = broadcast_in_dim(%c0) {shape = [",
                                        rows,
                                        "], broadcast_dimensions = []}\n"
                                        "  %m = multiply(%s, %c)\n  %mw = broadcast_in_dim(%m) ",
                                        wide,
                                        "  %d = subtract(%x, %mw)\n  %q = multiply(%d, %d)\n"
                                        "  %v = reduce(%q) {kind = sum, dimensions = [0]}\n  %w = multiply(%v, %c)\n"
                                        "  %k = rsqrt(%w)\n  %kw = broadcast_in_dim(%k) ",
                                        wide, "  %r = multiply(%d, %kw)\n"),
                           "r"),
         .bytes = 8 * n});
  }

  void Copies() {
    const int64_t side = Side(8192, 2);
    Add({.name = "transpose_f32",
         .text = GraphText(InputText("x", absl::StrCat("f32[", side, ",", side, "]")),
                           "  %r = transpose(%x) {permutation = [1, 0]}\n", "r"),
         .bytes = 8 * side * side});
    const int64_t outer = Size(4 * kMi);
    Add({.name = "permute_f32",
         .text = GraphText(InputText("x", absl::StrCat("f32[4,8,", outer, "]")),
                           "  %r = transpose(%x) {permutation = [2, 0, 1]}\n", "r"),
         .bytes = 8 * 32 * outer});
    Add({.name = "concatenate_f32",
         .text = GraphText(InputText("x", absl::StrCat("f32[512,", Size(kMi / 16), "]")) +
                               InputText("y", absl::StrCat("f32[256,", Size(kMi / 16), "]")),
                           "  %r = concatenate(%x, %y) {dimension = 0}\n", "r"),
         .bytes = 8 * 768 * Size(kMi / 16)});
  }

  void Product(absl::string_view name, absl::string_view dtype, int64_t side) {
    const std::string type = absl::StrCat(dtype, "[", side, ",", side, "]");
    const double n = static_cast<double>(side);
    Add({.name = std::string(name),
         .text = GraphText(
             InputText("x", type) + InputText("y", type),
             "  %r = dot_general(%x, %y) {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]}\n", "r"),
         .flops = 2 * n * n * n});
  }

  void Products() {
    const int64_t side = Side(8192, 3);
    Product("product_f64", "f64", side);
    Product("product_f32", "f32", side);
    Product("product_bf16", "bf16", side);
    const int64_t rows = Side(8192, 2);
    Add({.name = "biased_product_f32",
         .text = GraphText(InputText("w", absl::StrCat("f32[", rows, ",64]")) +
                               InputText("x", absl::StrCat("f32[64,", rows, "]")) +
                               InputText("b", absl::StrCat("f32[", rows, "]")),
                           absl::StrCat("  %p = dot_general(%w, %x) {lhs_contracting_dimensions = [1], "
                                        "rhs_contracting_dimensions = [0]}\n  %c = broadcast_in_dim(%b) {shape = [",
                                        rows, ", ", rows, "], broadcast_dimensions = [0]}\n  %r = add(%p, %c)\n"),
                           "r"),
         .flops = 128.0 * static_cast<double>(rows) * static_cast<double>(rows)});
    const int64_t batch = Size(100'000, 2);
    const std::string type = absl::StrCat("f32[8,8,", batch, "]");
    Add({.name = "products_8x8_f32",
         .text = GraphText(
             InputText("x", type) + InputText("y", type),
             "  %r = dot_general(%x, %y) {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0], "
             "lhs_batching_dimensions = [2], rhs_batching_dimensions = [2]}\n",
             "r"),
         .bytes = 3 * 256 * batch});
  }

  void Matrices() {
    const auto call = [&](absl::string_view name, absl::string_view op, absl::string_view results,
                          absl::string_view result, int64_t n = 32, int64_t matrices = 10'000) {
      const int64_t batch = Size(matrices, 2);
      Add({.name = std::string(name),
           .text = GraphText(InputText("x", absl::StrCat("f64[", n, ",", n, ",", batch, "]")),
                             absl::StrCat("  %r", results, " = tensord.linalg.v1.", op, "(%x)\n"),
                             absl::StrCat("r", result)),
           .bytes = 16 * n * n * batch,
           .is_definite = true});
    };
    call("cholesky_32_f64", "Cholesky", "", "");
    call("cholesky_256_f64", "Cholesky", "", "", 256, 100);
    call("lu_32_f64", "Lu", ":4", ":1");
    call("qr_32_f64", "Qr", ":2", ":1");
    call("eigh_32_f64", "Eigh", ":2", ":1");
    const int64_t lines = Size(16384, 2);
    Add({.name = "fft_4096_c64",
         .text = GraphText(InputText("x", absl::StrCat("c64[4096,", lines, "]")),
                           "  %r = tensord.fft.v1.Fft(%x) {kind = fft, axes = [0], norm = backward}\n", "r"),
         .bytes = 16 * 4096 * lines});
  }

  void Chains() {
    std::string inputs = InputText("x", "f32[64,64]"), nodes;
    std::string last = "x";
    for (int layer = 0; layer < 10; ++layer) {
      absl::StrAppend(&inputs, InputText(absl::StrCat("w", layer), "f32[64,64]"));
      absl::StrAppend(&nodes, "  %d", layer, " = dot_general(%w", layer, ", %", last,
                      ") {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]}\n  %t", layer,
                      " = tanh(%d", layer, ")\n  %a", layer, " = add(%t", layer, ", %", last, ")\n");
      last = absl::StrCat("a", layer);
    }
    Add({.name = "ten_layers_64_f32", .text = GraphText(inputs, nodes, last), .is_chain = true});
    Add({.name = "one_small_map_f32",
         .text = GraphText(InputText("x", "f32[1024]") + InputText("y", "f32[1024]"),
                           "  %p = multiply(%x, %y)\n  %t = tanh(%p)\n  %r = add(%t, %x)\n", "r"),
         .is_chain = true});
  }

  const int64_t divide_;
  std::vector<CudaWorkload> all_;
};

}  // namespace

std::vector<CudaWorkload> CudaWorkloads(int64_t divide) { return Workloads(divide).All(); }

}  // namespace tensord
