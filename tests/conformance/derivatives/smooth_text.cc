#include "tests/conformance/derivatives/smooth_text.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace tensord {
namespace {

using Axes = std::vector<std::string>;

struct Value {
  std::string name, dtype;
  Axes axes;  // a number or a symbol each

  bool is_complex() const { return dtype == "c128"; }
};

bool IsNumber(const std::string& axis) { return axis == "2" || axis == "3" || axis == "1"; }
int64_t NumberOf(const std::string& axis) { return axis[0] - '0'; }

std::string ShapeText(const Axes& axes) { return absl::StrCat("[", absl::StrJoin(axes, ", "), "]"); }

Axes Without(Axes axes, size_t axis) {
  axes.erase(axes.begin() + static_cast<ptrdiff_t>(axis));
  return axes;
}

class SmoothText {
 public:
  explicit SmoothText(uint64_t seed) : random_(seed) {
    for (const char* axes : {"p,q", "3,3", "3,2,p", "q", "2,3", "2,2,q"}) {
      const std::string dtype = OneIn(2) ? "f64" : "c128";
      const std::string name = absl::StrCat("x", values_.size());
      absl::StrAppend(&text_, "  %", name, " = input : ", dtype, "[", axes, "]\n");
      values_.push_back({name, dtype, absl::StrSplit(axes, ',')});
    }
  }

  std::string Text() {
    const size_t inputs = values_.size(), nodes = 1 + Below(9);
    for (size_t tries = 0; values_.size() < inputs + nodes && tries < 100; ++tries) AddNode();
    const size_t outputs = std::min<size_t>(2, values_.size() - inputs);
    for (size_t i = values_.size() - outputs; i < values_.size(); ++i) {
      absl::StrAppend(&text_, "  output \"y", i, "\" = %", values_[i].name, "\n");
    }
    return absl::StrCat("graph \"g\" {\n", text_, "}\n");
  }

 private:
  size_t Below(size_t n) { return random_() % n; }
  bool OneIn(size_t n) { return Below(n) == 0; }
  template <typename... Names>
  std::string OneOf(Names... names) {
    const std::vector<std::string> all = {names...};
    return all[Below(all.size())];
  }
  Value Any() { return values_[Below(2) == 0 ? values_.size() - 1 - Below(4) : Below(values_.size())]; }
  // Returns a value of the same type, maybe the value itself.
  Value Alike(const Value& x) {
    std::vector<Value> alike;
    for (const Value& value : values_) {
      if (value.dtype == x.dtype && value.axes == x.axes) alike.push_back(value);
    }
    return alike[Below(alike.size())];
  }

  // Writes a node, and returns its name.
  std::string Node(const std::string& call, int results = 1) {
    const std::string name = absl::StrCat("n", ++last_);
    absl::StrAppend(&text_, "  %", name, results > 1 ? absl::StrCat(":", results) : "", " = ", call, "\n");
    return name;
  }
  std::string Number(double number, const std::string& dtype) {
    return Node(absl::StrCat("convert(%", Node(absl::StrCat("constant() {value = f64[] [", number, "]}")),
                             ") {dtype = ", dtype, "}"));
  }
  std::string Filled(double number, const Value& like) {
    return Node(absl::StrCat("broadcast_in_dim(%", Number(number, like.dtype), ") {shape = ", ShapeText(like.axes),
                             ", broadcast_dimensions = []}"));
  }
  // Adds a value to those that are read, made small first.
  void Keep(const std::string& name, const std::string& dtype, Axes axes) {
    if (axes.size() > 4) return;
    const Value value{name, dtype, std::move(axes)};
    const std::string scaled = Node(absl::StrCat("multiply(%", name, ", %", Filled(0.4, value), ")"));
    values_.push_back({Node(absl::StrCat("sin(%", scaled, ")")), value.dtype, value.axes});
  }
  void Keep(const std::string& call, const Value& like) { Keep(Node(call), like.dtype, like.axes); }

  void AddNode() {
    using Rule = void (SmoothText::*)(const Value&);
    constexpr Rule kRules[] = {&SmoothText::AddFunction, &SmoothText::AddFunction, &SmoothText::AddOfTwo,
                               &SmoothText::AddOfTwo,    &SmoothText::AddParts,    &SmoothText::AddReduction,
                               &SmoothText::AddOrder,    &SmoothText::AddDot,      &SmoothText::AddEinsum,
                               &SmoothText::AddEinsum,   &SmoothText::AddDiagonal, &SmoothText::AddBroadcast,
                               &SmoothText::AddWindow,   &SmoothText::AddIndexing, &SmoothText::AddSelection,
                               &SmoothText::AddFourier,  &SmoothText::AddMatrices, &SmoothText::AddMatrices};
    (this->*kRules[Below(std::size(kRules))])(Any());
  }

  void AddFunction(const Value& x) {
    if (OneIn(3)) {  // of numbers around 1.5
      const std::string moved = Node(absl::StrCat("add(%", x.name, ", %", Filled(2.5, x), ")"));
      return Keep(absl::StrCat(OneOf("log", "sqrt", "rsqrt", "log1p", "log2", "log10", "cbrt"), "(%", moved, ")"), x);
    }
    const std::string real = OneIn(2) || x.is_complex() ? "" : "erf";
    const std::string op = OneOf("exp", "expm1", "sin", "cos", "tanh", "logistic", "atan", "asinh", "sinh", "cosh",
                                 "exp2", "negate", "conj", "tan");
    Keep(absl::StrCat(real.empty() ? op : real, "(%", x.name, ")"), x);
  }

  void AddOfTwo(const Value& x) {
    const Value y = Alike(x);
    switch (Below(4)) {
      case 0: {
        const std::string below = Node(absl::StrCat("add(%", y.name, ", %", Filled(2.5, y), ")"));
        const std::string op = x.is_complex() ? "divide" : OneOf("divide", "atan2", "remainder");
        return Keep(absl::StrCat(op, "(%", x.name, ", %", below, ")"), x);
      }
      case 1: {
        const std::string base = Node(absl::StrCat("add(%", x.name, ", %", Filled(2.5, x), ")"));
        return Keep(absl::StrCat("pow(%", base, ", %", y.name, ")"), x);
      }
      default:
        return Keep(
            absl::StrCat(OneOf("add", "subtract", "multiply", "maximum", "minimum"), "(%", x.name, ", %", y.name, ")"),
            x);
    }
  }

  // Real and imaginary parts, moduli, conversions, and complex numbers made of real ones.
  void AddParts(const Value& x) {
    if (x.is_complex()) return Keep(Node(absl::StrCat(OneOf("real", "imag", "abs"), "(%", x.name, ")")), "f64", x.axes);
    if (OneIn(2)) return Keep(Node(absl::StrCat("convert(%", x.name, ") {dtype = c128}")), "c128", x.axes);
    Keep(Node(absl::StrCat("complex(%", x.name, ", %", Alike(x).name, ")")), "c128", x.axes);
  }

  void AddReduction(const Value& x) {
    if (x.axes.empty()) return;
    const size_t axis = Below(x.axes.size());
    Keep(Node(absl::StrCat("reduce(%", x.name, ") {kind = ", OneOf("sum", "product", "max", "min"), ", dimensions = [",
                           axis, "]}")),
         x.dtype, Without(x.axes, axis));
  }

  void AddOrder(const Value& x) {
    if (x.axes.empty()) return;
    std::vector<size_t> order;
    for (size_t i = 0; i < x.axes.size(); ++i) order.push_back(i);
    std::shuffle(order.begin(), order.end(), random_);
    Axes axes;
    for (size_t i : order) axes.push_back(x.axes[i]);
    const std::string turned =
        Node(absl::StrCat("transpose(%", x.name, ") {permutation = [", absl::StrJoin(order, ", "), "]}"));
    Keep(Node(absl::StrCat("reverse(%", turned, ") {dimensions = [0]}")), x.dtype, axes);
  }

  void AddDot(const Value& x) {
    const Value y = Any();
    if (y.dtype != x.dtype) return;
    for (size_t a = 0; a < x.axes.size(); ++a) {
      const auto b = std::find(y.axes.begin(), y.axes.end(), x.axes[a]);
      if (b == y.axes.end()) continue;
      const size_t at = static_cast<size_t>(b - y.axes.begin());
      Axes axes = Without(x.axes, a);
      const Axes others = Without(y.axes, at);
      axes.insert(axes.end(), others.begin(), others.end());
      return Keep(Node(absl::StrCat("dot_general(%", x.name, ", %", y.name, ") {lhs_contracting_dimensions = [", a,
                                    "], rhs_contracting_dimensions = [", at, "]}")),
                  x.dtype, axes);
    }
  }

  // Axes of one size share labels, or do not.
  void AddEinsum(const Value& x) {
    std::vector<Value> operands = {x};
    for (size_t more = Below(4); more > 0; --more) {
      const Value y = Any();
      if (y.dtype == x.dtype) operands.push_back(y);
    }
    std::vector<std::pair<char, std::string>> labels;  // and their sizes
    std::vector<std::string> terms, names;
    for (const Value& operand : operands) {
      names.push_back(absl::StrCat("%", operand.name));
      std::string& term = terms.emplace_back();
      for (const std::string& axis : operand.axes) {
        std::vector<char> fitting;
        for (const auto& [label, size] : labels) {
          if (size == axis) fitting.push_back(label);
        }
        if (fitting.empty() || OneIn(3)) {
          labels.push_back({static_cast<char>('a' + labels.size()), axis});
          fitting = {labels.back().first};
        }
        term += fitting[Below(fitting.size())];
      }
    }
    std::string output;
    Axes axes;
    for (const auto& [label, size] : labels) {
      for (size_t times = OneIn(8) ? 2 : Below(2); times > 0; --times) {
        output += label;
        axes.push_back(size);
      }
    }
    if (axes.size() > 4 || labels.size() > 9) return;
    Keep(Node(absl::StrCat("tensord.einsum.v1.Einsum(", absl::StrJoin(names, ", "), ") {equation = \"",
                           absl::StrJoin(terms, ","), "->", output, "\"}")),
         x.dtype, axes);
  }

  void AddDiagonal(const Value& x) {
    if (OneIn(2) && x.axes.size() >= 2) {
      return Keep(
          absl::StrCat(OneOf("tril", "triu"), "(%", x.name, ") {diagonal = ", static_cast<int>(Below(3)) - 1, "}"), x);
    }
    if (x.axes.empty()) return;
    const size_t from = Below(x.axes.size()), to = Below(x.axes.size() + 1);
    Axes axes = x.axes;
    axes.insert(axes.begin() + static_cast<ptrdiff_t>(to), x.axes[from]);
    const std::string filled = Node(absl::StrCat("embed_diag(%", x.name, ") {axis_a = ", from, ", axis_b = ", to, "}"));
    if (OneIn(2)) return Keep(filled, x.dtype, axes);
    const size_t a = from + (to <= from ? 1 : 0);
    Keep(Node(absl::StrCat("extract_diag(%", filled, ") {axis_a = ", to, ", axis_b = ", a, "}")), x.dtype,
         Without(axes, a));
  }

  void AddBroadcast(const Value& x) {
    const size_t at = Below(x.axes.size() + 1);
    Axes axes = x.axes;
    axes.insert(axes.begin() + static_cast<ptrdiff_t>(at), OneOf("2", "p"));
    std::vector<size_t> places;
    for (size_t i = 0; i < axes.size(); ++i) {
      if (i != at) places.push_back(i);
    }
    Keep(Node(absl::StrCat("broadcast_in_dim(%", x.name, ") {shape = ", ShapeText(axes), ", broadcast_dimensions = [",
                           absl::StrJoin(places, ", "), "]}")),
         x.dtype, axes);
  }

  // Returns a vector of an entry for each axis: `at` along one, and `others` along all others.
  static std::string Entries(const Value& x, size_t axis, int64_t at, int64_t others) {
    std::vector<int64_t> entries(x.axes.size(), others);
    entries[axis] = at;
    return absl::StrCat("[", absl::StrJoin(entries, ", "), "]");
  }

  void AddWindow(const Value& x) {
    if (x.axes.empty()) return;
    const size_t axis = Below(x.axes.size());
    if (OneIn(2)) {
      Axes axes = x.axes;
      if (!IsNumber(axes[axis])) return;
      const Value y = Alike(x);
      const std::string joined =
          Node(absl::StrCat("concatenate(%", x.name, ", %", y.name, ") {dimension = ", axis, "}"));
      const int64_t size = NumberOf(axes[axis]);
      if (!std::all_of(axes.begin(), axes.end(), IsNumber)) return;
      std::vector<int64_t> starts(axes.size(), 0), limits, strides(axes.size(), 1);
      for (const std::string& other : axes) limits.push_back(NumberOf(other));
      starts[axis] = 1;
      limits[axis] = 2 * size;
      strides[axis] = 2;
      return Keep(Node(absl::StrCat("slice(%", joined, ") {start_indices = [", absl::StrJoin(starts, ", "),
                                    "], limit_indices = [", absl::StrJoin(limits, ", "), "], strides = [",
                                    absl::StrJoin(strides, ", "), "]}")),
                  x.dtype, axes);
    }
    if (!IsNumber(x.axes[axis])) return;
    const std::string edge =
        Node(absl::StrCat("reduce(%", x.name, ") {kind = sum, dimensions = [", absl::StrJoin(AllOf(x), ", "), "]}"));
    Axes axes = x.axes;
    const int64_t low = static_cast<int64_t>(Below(3)) - 1, size = NumberOf(axes[axis]) + low + 1;
    if (size > 3) return;
    axes[axis] = absl::StrCat(size);
    Keep(Node(absl::StrCat("pad(%", x.name, ", %", edge, ") {edge_padding_low = ", Entries(x, axis, low, 0),
                           ", edge_padding_high = ", Entries(x, axis, 1, 0), "}")),
         x.dtype, axes);
  }

  static std::vector<size_t> AllOf(const Value& x) {
    std::vector<size_t> axes;
    for (size_t i = 0; i < x.axes.size(); ++i) axes.push_back(i);
    return axes;
  }

  // Along the first axis of matrices of known sizes, with repeated and clamped indices.
  void AddIndexing(const Value& x) {
    if (x.axes.size() != 2 || !IsNumber(x.axes[0]) || !IsNumber(x.axes[1])) return;
    const std::string indices = Node("constant() {value = i32[3] [1, 0, 1]}");
    if (OneIn(3)) {
      return Keep(
          Node(absl::StrCat("gather(%", x.name, ", %", indices, ") {offset_dims = [1], collapsed_slice_dims = ",
                            "[0], start_index_map = [0], index_vector_dim = 1, slice_sizes = [1, ", x.axes[1], "]}")),
          x.dtype, {"3", x.axes[1]});
    }
    if (OneIn(2)) {
      const Value y = Alike({"", x.dtype, x.axes});
      const std::string starts = Node("constant() {value = i64[2] [1, 9]}");
      const std::string part = Node(absl::StrCat("dynamic_slice(%", y.name, ", %", starts, ") {slice_sizes = [1, 1]}"));
      return Keep(absl::StrCat("dynamic_update_slice(%", x.name, ", %", part, ", %", starts, ")"), x);
    }
    if (x.axes[0] != "3") return;
    const Value updates = Alike(x);
    Keep(absl::StrCat(
             "scatter(%", x.name, ", %", indices, ", %", updates.name, ") {update_window_dims = [1], ",
             "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1, combiner = ",
             OneOf("add", "set", "multiply", "minimum", "maximum"), "}"),
         x);
  }

  void AddSelection(const Value& x) {
    const Value y = Alike(x);
    if (x.is_complex() || OneIn(2)) {
      const std::string of = x.is_complex() ? Node(absl::StrCat("real(%", x.name, ")")) : x.name;
      const std::string zero = Filled(0.1, {"", "f64", x.axes});
      const std::string is_less = Node(absl::StrCat("compare(%", of, ", %", zero, ") {direction = lt}"));
      return Keep(absl::StrCat("select(%", is_less, ", %", x.name, ", %", y.name, ")"), x);
    }
    // Never x itself: at a bound the derivative is nobody's.
    const std::string high = Node(absl::StrCat("add(%", y.name, ", %", Filled(0.5, y), ")"));
    Keep(absl::StrCat("clamp(%", Number(-0.2, x.dtype), ", %", x.name, ", %", high, ")"), x);
  }

  void AddFourier(const Value& x) {
    if (x.axes.empty() || !IsNumber(x.axes[0])) return;
    Axes axes = x.axes;
    const std::string norm = absl::StrCat(", norm = ", OneOf("backward", "forward", "ortho"), "}");
    std::string kind = x.is_complex() ? OneOf("fft", "ifft", "irfft") : OneOf("fft", "rfft");
    if (kind == "rfft") axes[0] = absl::StrCat(NumberOf(axes[0]) / 2 + 1);
    Keep(Node(absl::StrCat("tensord.fft.v1.Fft(%", x.name, ") {kind = ", kind, ", axes = [0]",
                           kind == "irfft" ? absl::StrCat(", lengths = [", axes[0], "]") : "", norm)),
         kind == "irfft" ? "f64" : "c128", axes);
  }

  // Returns matrices beside a heavy diagonal. Numbers of the first two axes are known.
  std::string Regular(const Value& x) {
    const int64_t rows = NumberOf(x.axes[0]), columns = NumberOf(x.axes[1]), k = std::min(rows, columns);
    const std::string weights = Node(absl::StrCat("constant() {value = f64[", k, "] ",
                                                  k == 3   ? "[4, 7, 11]"
                                                  : k == 2 ? "[4, 7]"
                                                           : "[4]",
                                                  "}"));
    const std::string diagonal = Node(absl::StrCat("embed_diag(%", weights, ") {axis_a = 0, axis_b = 1}"));
    const std::string padded =
        Node(absl::StrCat("pad(%", diagonal, ", %", Number(0, "f64"), ") {edge_padding_low = [0, 0], ",
                          "edge_padding_high = [", rows - k, ", ", columns - k, "]}"));
    const std::string converted = Node(absl::StrCat("convert(%", padded, ") {dtype = ", x.dtype, "}"));
    const std::string all = Node(absl::StrCat("broadcast_in_dim(%", converted, ") {shape = ", ShapeText(x.axes),
                                              ", broadcast_dimensions = [0, 1]}"));
    return Node(absl::StrCat("add(%", x.name, ", %", all, ")"));
  }

  void AddMatrices(const Value& x) {
    if (x.axes.size() < 2 || !IsNumber(x.axes[0]) || !IsNumber(x.axes[1])) return;
    const std::string a = Regular(x);
    const bool is_square = x.axes[0] == x.axes[1];
    (is_square && OneIn(2)) ? AddOfSquare(x, a) : AddOfAny(x, a);
  }

  void AddOfSquare(const Value& x, const std::string& a) {
    const std::string linalg = "tensord.linalg.v1.";
    const Axes batch(x.axes.begin() + 2, x.axes.end());
    Axes vectors = batch;
    vectors.insert(vectors.begin(), x.axes[0]);
    switch (Below(6)) {
      case 0:
        return Keep(absl::StrCat(linalg, OneOf("Cholesky", "Inverse"), "(%", a, ")"), x);
      case 1:
        return Keep(absl::StrCat(linalg, "Solve(%", a, ", %", Alike(x).name, ")"), x);
      case 2:
        return Keep(
            absl::StrCat(linalg, "TriangularSolve(%", a, ", %", Alike(x).name, ") {lower = ", OneOf("true", "false"),
                         ", left_side = ", OneOf("true", "false"), ", unit_diagonal = ", OneOf("true", "false"),
                         ", transpose_a = ", OneOf("no_transpose", "transpose", "adjoint"), "}"),
            x);
      case 3:
        return Keep(Node(absl::StrCat(linalg, "EighValues(%", a, ")")), "f64", vectors);
      case 4:
        return Keep(Node(absl::StrCat(linalg, "SignLogDeterminant(%", a, ")"), 2) + ":1", "f64", batch);
      default: {
        const std::string determinant = Node(absl::StrCat(linalg, "Determinant(%", a, ")"));
        return Keep(Node(absl::StrCat("multiply(%", determinant, ", %", Filled(0.003, {"", x.dtype, batch}), ")")),
                    x.dtype, batch);
      }
    }
  }

  void AddOfAny(const Value& x, const std::string& a) {
    const std::string linalg = "tensord.linalg.v1.", rows = x.axes[0], columns = x.axes[1];
    const std::string k = std::min(rows, columns);
    const auto shaped = [&x](const std::string& m, const std::string& n) {
      Axes axes = x.axes;
      axes[0] = m;
      axes[1] = n;
      return axes;
    };
    // A complex R that ends in a square part has a last entry whose sign jumps as it becomes real: a zero of the
    // operand is enough.
    const bool jumps = x.is_complex() && rows <= columns;
    const size_t kind = Below(5);
    switch (kind == 0 && jumps ? 1 : kind) {
      case 0: {
        const bool is_q = OneIn(2);
        const std::string qr = Node(absl::StrCat(linalg, "Qr(%", a, ")"), 2);
        return Keep(qr + (is_q ? "" : ":1"), x.dtype, is_q ? shaped(rows, k) : shaped(k, columns));
      }
      case 1: {
        const bool is_l = OneIn(2);
        const std::string lu = Node(absl::StrCat(linalg, "Lu(%", a, ")"), 4);
        return Keep(lu + (is_l ? ":1" : ":2"), x.dtype, is_l ? shaped(rows, k) : shaped(k, columns));
      }
      case 2: {
        const std::string svd = Node(absl::StrCat(linalg, "Svd(%", a, ")"), 3);
        std::string batch = x.axes.size() > 2 ? "2" : "";
        if (x.axes.size() > 3) batch += ", 3";
        const std::string polar =
            Node(absl::StrCat("dot_general(%", svd, ", %", svd, ":2) {lhs_contracting_dimensions = [1], ",
                              "rhs_contracting_dimensions = [0], lhs_batching_dimensions = [", batch,
                              "], rhs_batching_dimensions = [", batch, "]}"));
        return Keep(polar, x.dtype, x.axes);
      }
      case 3: {
        Axes vectors = Without(x.axes, 0);
        vectors[0] = k;
        return Keep(Node(absl::StrCat(linalg, "SvdValues(%", a, ")")), "f64", vectors);
      }
      default: {
        if (OneIn(2)) {
          return Keep(Node(absl::StrCat(linalg, "PseudoInverse(%", a, ")")), x.dtype, shaped(columns, rows));
        }
        return Keep(Node(absl::StrCat(linalg, "LeastSquares(%", a, ", %", Alike(x).name, ")")), x.dtype,
                    shaped(columns, columns));
      }
    }
  }

  std::mt19937_64 random_;
  std::string text_;
  std::vector<Value> values_;
  int last_ = 0;
};

}  // namespace

std::string MakeSmoothText(uint64_t seed) { return SmoothText(seed).Text(); }

}  // namespace tensord
