// Values and sizes at which programs differ, on the host CUDA device beside the CPU.
#include <complex>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/testlib/numbers/linalg_properties.h"
#include "tests/testlib/numbers/literal_of.h"
#include "tests/unit/backends/cuda/beside_cpu.h"

namespace tensord::cuda {
namespace {

constexpr double kNot = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

class EdgesTest : public BesideCpuTest {
 protected:
  // `body` has the nodes, of which the last is %y; inputs are %a, %b, … of the arguments' types.
  static std::string TextOf(absl::string_view body, const std::vector<Literal>& arguments) {
    std::string text = "graph \"g\" {\n";
    for (size_t i = 0; i < arguments.size(); ++i) {
      absl::StrAppend(&text, "  %", std::string(1, static_cast<char>('a' + i)),
                      " = input : ", ToString(arguments[i].type()), "\n");
    }
    return absl::StrCat(text, body, "\n  output \"y\" = %y\n}");
  }
  void Same(absl::string_view body, const std::vector<Literal>& arguments, const Tolerance& tolerance = {}) {
    const std::string text = TextOf(body, arguments);
    SCOPED_TRACE(text);
    const auto want = Run(cpu_.get(), text, arguments), got = Run(backend_.get(), text, arguments);
    EXPECT_EQ(got.ok(), want.ok()) << got.status() << "\n" << want.status();
    if (!got.ok() || !want.ok()) {
      EXPECT_EQ(ReasonOf(got.status()), ReasonOf(want.status())) << got.status();
      return;
    }
    for (size_t i = 0; i < got->size(); ++i) EXPECT_EQ(Difference((*got)[i], (*want)[i], tolerance), "");
  }
  Literal Any(DType dtype, Shape shape, Values values = Values::kEdges) {
    return RandomLiteral({dtype, std::move(shape)}, values, &random_);
  }
  void TearDown() override {
    backend_ = nullptr;
    BesideCpuTest::TearDown();
  }
  std::unique_ptr<Backend> backend_ = Made();
};

TEST_F(EdgesTest, Integers) {
  const int32_t low = std::numeric_limits<int32_t>::min(), high = std::numeric_limits<int32_t>::max();
  const int64_t low64 = std::numeric_limits<int64_t>::min(), high64 = std::numeric_limits<int64_t>::max();
  std::vector<int32_t> a, b;
  std::vector<int64_t> c, d;
  for (const int32_t x : {low, low + 1, -7, -1, 0, 1, 7, high}) {
    for (const int32_t y : {low, low + 1, -7, -1, 0, 1, 7, high}) a.push_back(x), b.push_back(y);
  }
  for (const int64_t x : {low64, low64 + 1, int64_t{-7}, int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{7}, high64}) {
    for (const int64_t y : {low64, low64 + 1, int64_t{-7}, int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{7}, high64}) {
      c.push_back(x), d.push_back(y);
    }
  }
  for (const char* op : {"divide", "remainder", "pow", "add", "subtract", "multiply", "maximum"}) {
    Same(absl::StrCat("  %y = ", op, "(%a, %b)"), {LiteralOf(a), LiteralOf(b)});
    Same(absl::StrCat("  %y = ", op, "(%a, %b)"), {LiteralOf(c), LiteralOf(d)});
  }
  for (const char* op : {"negate", "abs", "sign", "not"}) {
    Same(absl::StrCat("  %y = ", op, "(%a)"), {LiteralOf(a)});
    Same(absl::StrCat("  %y = ", op, "(%a)"), {LiteralOf(c)});
  }
}

// Of e^(b log a) the phase has no digits where b is so large; the modulus has all of them.
TEST_F(EdgesTest, ComplexPowersOfLargeExponents) {
  using C = std::complex<double>;
  std::vector<C> a, b;
  const auto add = [&](C base, C exponent) { a.push_back(base), b.push_back(exponent); };
  const auto expect_moduli = [&](absl::string_view dtype) {
    Same(absl::StrCat("  %c = convert(%a) {dtype = ", dtype, "}\n  %d = convert(%b) {dtype = ", dtype,
                      "}\n  %p = pow(%c, %d)\n  %y = abs(%p)"),
         {LiteralOf(a), LiteralOf(b)}, {.ulps = 4});
  };
  const auto add_large = [&](double exponent) {
    for (const C base : {C(0, 1), C(0, -1), C(-1, 0), C(1, 0)}) add(base, exponent), add(base, -exponent);
    add(2, {3, exponent});        // 8
    add({0, 1}, {exponent, 1});   // e^(-pi/2)
    add({0, 1}, {0, exponent});   // 0
    add({0, -1}, {0, exponent});  // infinite
  };
  for (const double exponent : {1e9, 1e15, 1e17, 1e25}) add_large(exponent);
  expect_moduli("c64");
  for (const double exponent : {1e100, 1e300, 1e308}) add_large(exponent);
  for (const double exponent : {1e307, -1e307}) add(1e300, exponent), add(0.5, exponent);
  expect_moduli("c128");
  // The CPU has the phase to some 1e-4 here.
  Same("  %y = pow(%a, %b)",
       {LiteralOf(std::vector<C>{{0, 1}, {0, 1}, {-1, 0}, {0, -1}}),
        LiteralOf(std::vector<C>{1e15, 1e15 + 1, 1e15 + 1, 1e15 + 3})},
       {.norm_relative = 1e-3});
}

TEST_F(EdgesTest, Conversions) {
  const std::vector<double> reals = {kNot,
                                     kInf,
                                     -kInf,
                                     0.0,
                                     -0.0,
                                     2147483647.0,
                                     2147483648.0,
                                     -2147483648.0,
                                     -2147483649.0,
                                     -2147483648.5,
                                     9223372036854775807.0,
                                     -9223372036854775808.0,
                                     1e300,
                                     -1e300,
                                     65504,
                                     65519.9999999,
                                     65520,
                                     65535,
                                     5.9604644775390625e-8,
                                     2.9802322387695312e-8,
                                     2.98023223876953125e-08 * 1.0000001,
                                     1.00048828125,
                                     1.000488281250001,
                                     3.3895313892515355e38,
                                     3.4e38,
                                     3.4028235677973366e38,
                                     1e-45,
                                     7e-46,
                                     7.1e-46,
                                     1.00390625,
                                     1.003906250001,
                                     0.5,
                                     -0.5,
                                     2049,
                                     2051,
                                     16777217,
                                     4294967297.0};
  const std::vector<int64_t> whole = {0,
                                      1,
                                      -1,
                                      2049,
                                      2051,
                                      65519,
                                      65520,
                                      65536,
                                      257,
                                      259,
                                      16777217,
                                      16777219,
                                      (int64_t{1} << 53) + 1,
                                      (int64_t{1} << 62) + 1,
                                      std::numeric_limits<int64_t>::min(),
                                      std::numeric_limits<int64_t>::max(),
                                      4294967296,
                                      1099511627777,
                                      -36028797018963969,
                                      36028797018963969};
  std::vector<float> singles;
  for (const double x : reals) singles.push_back(static_cast<float>(x));
  for (const char* to : {"bool", "i32", "i64", "f16", "bf16", "f32", "f64", "c64", "c128"}) {
    const std::string body = absl::StrCat("  %y = convert(%a) {dtype = ", to, "}");
    Same(body, {LiteralOf(reals)});
    Same(body, {LiteralOf(singles)});
    Same(body, {LiteralOf(whole)});
  }
}

// A sum of nothing but -0 is what the reference says, and the largest of many are found over several launches.
TEST_F(EdgesTest, ReductionsOfNothingOfOneAndOfMany) {
  const std::string rows = "  %y = reduce(%a) {kind = sum, dimensions = [0]}";
  Same(rows, {LiteralOf(std::vector<float>{-0.0f}, {1, 1})});
  Same(rows, {LiteralOf(std::vector<float>{-0.0f, -0.0f}, {2, 1})});
  Same(rows, {Any(DType::kI32, {300000})});
  for (const char* kind : {"max", "min"}) {
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kC64, DType::kI64}) {
      const std::string begin = absl::StrCat("  %y = reduce(%a) {kind = ", kind, ", dimensions = ");
      Same(begin + "[]}", {Any(dtype, {3, 2})});
      Same(begin + "[0]}", {Any(dtype, {0, 3})});
      Same(begin + "[0, 1]}", {Any(dtype, {1, 1})});
    }
    Same(absl::StrCat("  %y = reduce(%a) {kind = ", kind, ", dimensions = [1]}"), {Any(DType::kF64, {3, 100000})});
  }
}

TEST_F(EdgesTest, StartsAnywhere) {
  const int64_t low = std::numeric_limits<int64_t>::min(), high = std::numeric_limits<int64_t>::max();
  const int32_t low32 = std::numeric_limits<int32_t>::min(), high32 = std::numeric_limits<int32_t>::max();
  for (const std::pair<int64_t, int64_t>& start :
       std::vector<std::pair<int64_t, int64_t>>{{low, high}, {high, low}, {0, 0}, {-1, 5}, {3, 2}, {4, 3}}) {
    const Literal at = LiteralOf(std::vector<int64_t>{start.first, start.second});
    Same("  %y = dynamic_slice(%a, %b) {slice_sizes = [2, 3]}", {Any(DType::kF32, {5, 6}), at});
    Same("  %y = dynamic_slice(%a, %b) {slice_sizes = [5, 6]}", {Any(DType::kF32, {5, 6}), at});
    Same("  %y = dynamic_slice(%a, %b) {slice_sizes = [0, 6]}", {Any(DType::kF32, {5, 6}), at});
    Same("  %y = dynamic_update_slice(%a, %c, %b)", {Any(DType::kF32, {5, 6}), at, Any(DType::kF32, {2, 3})});
    Same("  %y = dynamic_update_slice(%a, %c, %b)", {Any(DType::kF32, {5, 6}), at, Any(DType::kF32, {0, 3})});
    Same("  %y = dynamic_update_slice(%a, %c, %b)", {Any(DType::kF32, {5, 6}), at, Any(DType::kF32, {5, 6})});
  }
  for (const char* combiner : {"add", "set", "multiply", "minimum", "maximum"}) {
    for (const DType dtype : {DType::kF32, DType::kI32, DType::kBool}) {
      Same(absl::StrCat("  %y = scatter(%a, %b, %c) {inserted_window_dims = [0], update_window_dims = [0], "
                        "scatter_dims_to_operand_dims = [0], index_vector_dim = 1, combiner = ",
                        combiner, "}"),
           {Any(dtype, {5, 6}, Values::kIntegers), LiteralOf(std::vector<int64_t>{low, 1, high, 1, 5}),
            Any(dtype, {6, 5}, Values::kIntegers)});
    }
  }
  for (const std::vector<int32_t>& at : std::vector<std::vector<int32_t>>{{low32, high32, -1, 5, 4, 4, 0}}) {
    Same(
        "  %y = gather(%a, %b) {offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim "
        "= 1, slice_sizes = [1, 6]}",
        {Any(DType::kF32, {5, 6}), LiteralOf(at)});
    Same(
        "  %y = gather(%a, %b) {offset_dims = [0, 1], collapsed_slice_dims = [], start_index_map = [0], "
        "index_vector_dim = 1, slice_sizes = [2, 6]}",
        {Any(DType::kC128, {5, 6}), LiteralOf(at)});
    Same(
        "  %y = gather(%a, %b) {offset_dims = [0, 1], collapsed_slice_dims = [], start_index_map = [0], "
        "index_vector_dim = 1, slice_sizes = [0, 6]}",
        {Any(DType::kF32, {5, 6}), LiteralOf(at)});
    Same(
        "  %y = scatter(%a, %b, %c) {update_window_dims = [0, 1], scatter_dims_to_operand_dims = [0], index_vector_dim "
        "= 1, combiner = add}",
        {Any(DType::kF32, {5, 6}, Values::kModest), LiteralOf(at), Any(DType::kF32, {2, 6, 7}, Values::kModest)});
    Same(
        "  %y = scatter(%a, %b, %c) {update_window_dims = [0, 1], scatter_dims_to_operand_dims = [0], index_vector_dim "
        "= 1, combiner = add}",
        {Any(DType::kF32, {5, 6}), LiteralOf(at), Any(DType::kF32, {0, 6, 7})});
  }
}

TEST_F(EdgesTest, ManyPartsAndFarDiagonals) {
  std::vector<std::string> names;
  std::vector<Literal> parts;
  for (int i = 0; i < 20; ++i) {
    names.push_back(absl::StrCat("%", std::string(1, static_cast<char>('a' + i))));
    parts.push_back(Any(DType::kF16, {3, i % 5}));
  }
  std::vector<std::string> many = names;
  for (int i = 0; i < 20; ++i) many.push_back(names[static_cast<size_t>(i)]);
  std::vector<std::string> others = names;
  Same(absl::StrCat("  %y1 = concatenate(", absl::StrJoin(many, ", "),
                    ") {dimension = 1}\n  %y = reverse(%y1) {dimensions = [1]}"),
       parts);
  Same(absl::StrCat("  %y1 = concatenate(", absl::StrJoin(many, ", "),
                    ") {dimension = 1}\n  %y = transpose(%y1) {permutation = [1, 0]}"),
       parts);
  for (const char* d : {"-9223372036854775808", "9223372036854775807", "-3", "0", "2"}) {
    Same(absl::StrCat("  %y = tril(%a) {diagonal = ", d, "}"), {Any(DType::kC128, {5, 3, 2})});
    Same(absl::StrCat("  %y = triu(%a) {diagonal = ", d, "}"), {Any(DType::kBool, {3, 5, 2, 3})});
    Same(absl::StrCat("  %y = triu(%a) {diagonal = ", d, "}"), {Any(DType::kF32, {1, 1})});
  }
  Same("  %y = pad(%a, %b) {edge_padding_low = [-2, 3], edge_padding_high = [4, -5], interior_padding = [2, 1]}",
       {Any(DType::kF32, {5, 6}), Any(DType::kF32, {})});
  Same("  %y = pad(%a, %b) {edge_padding_low = [2, 3], edge_padding_high = [-4, 5], interior_padding = [0, 0]}",
       {Any(DType::kI64, {5, 6}), Any(DType::kI64, {})});
  Same("  %y = pad(%a, %b) {edge_padding_low = [-5, 3], edge_padding_high = [6, 5], interior_padding = [0, 0]}",
       {Any(DType::kI64, {5, 6}), Any(DType::kI64, {})});
  Same("  %y = pad(%a, %b) {edge_padding_low = [1], edge_padding_high = [1], interior_padding = [9223372036854775000]}",
       {Any(DType::kF32, {1}), Any(DType::kF32, {})});
  Same("  %y = slice(%a) {start_indices = [1, 4], limit_indices = [5, 5], strides = [3, 9223372036854775807]}",
       {Any(DType::kF32, {5, 6})});
  Same("  %y = reshape(%a) {shape = [6, 5], order = row_major}", {Any(DType::kF32, {5, 6})});
  Same("  %y = reshape(%a) {shape = [1, 30, 1], order = row_major}", {Any(DType::kBool, {5, 2, 3})});
  Same("  %t = transpose(%a) {permutation = [2, 0, 1]}\n  %r = reverse(%t) {dimensions = [0, 2]}\n  %y = add(%r, %r)",
       {Any(DType::kF32, {7, 3, 5})});
  Same(
      "  %t = broadcast_in_dim(%a) {shape = [4, 7, 3], broadcast_dimensions = [1]}\n  %r = reverse(%t) {dimensions = "
      "[0, 1]}\n  %y = multiply(%r, %r)",
      {Any(DType::kF32, {7})});
  Same("  %y = extract_diag(%a) {axis_a = 0, axis_b = 2}", {Any(DType::kF32, {4, 3, 4})});
  Same("  %y = embed_diag(%a) {axis_a = 0, axis_b = 2}", {Any(DType::kF64, {4, 3})});
  Same("  %y = select(%a, %b, %c)", {Any(DType::kBool, {}), Any(DType::kC64, {4, 3}), Any(DType::kC64, {4, 3})});
  Same("  %y = clamp(%a, %b, %c)",
       {LiteralOf(std::vector<float>{3}, {}), Any(DType::kF32, {90}), LiteralOf(std::vector<float>{-1}, {})});
  Same("  %y = clamp(%a, %b, %c)", {Any(DType::kBF16, {90}), Any(DType::kBF16, {90}), Any(DType::kBF16, {90})});
  Same("  %y = clamp(%a, %b, %c)", {Any(DType::kI32, {90}), Any(DType::kI32, {90}), Any(DType::kI32, {90})});
}

// Lengths of one, of primes, and more lines than a grid has along its second axis.
TEST_F(EdgesTest, LengthsOfTransforms) {
  const auto expect = [&](absl::string_view attrs, DType dtype, Shape shape) {
    Same(absl::StrCat("  %y = tensord.fft.v1.Fft(%a) {", attrs, "}"), {Any(dtype, std::move(shape), Values::kModest)},
         {.norm_relative = 4e-6, .least_norm = 1});
  };
  for (const int64_t n : {1, 97, 1009}) {
    expect("kind = fft, axes = [0]", DType::kC64, {n});
    expect("kind = ifft, axes = [1]", DType::kC64, {2, n});
    expect(absl::StrCat("kind = irfft, axes = [0], lengths = [", 2 * n + 1, "]"), DType::kC64, {n});
    expect("kind = rfft, axes = [0]", DType::kF32, {n, 2});
  }
  expect("kind = fft, axes = [0]", DType::kC64, {2, 70000});
  // Parts that a spectrum of real numbers does not have are not read.
  Same("  %y = tensord.fft.v1.Fft(%a) {kind = irfft, axes = [0], lengths = [6]}",
       {LiteralOf(std::vector<std::complex<double>>{{1, kNot}, {2, 3}, {3, 4}, {4, kInf}})}, {.ulps = 4});
}

TEST_F(EdgesTest, Matrices) {
  std::mt19937 random{5};
  const auto of = [](const std::vector<double>& values, Shape shape) { return LiteralOf(values, std::move(shape)); };
  // Only the triangle that is read counts.
  for (const char* op : {"Cholesky", "EighValues"})
    Same(absl::StrCat("  %y = tensord.linalg.v1.", op, "(%a)"), {of({4, 1, kNot, 3}, {2, 2})},
         {.norm_relative = 1e-14});
  for (const std::vector<double>& a :
       std::vector<std::vector<double>>{{kInf}, {-0.0}, {0}, {kNot}, {-kInf}, {1e-320}, {1e308}}) {
    for (const char* op : {"Cholesky", "EighValues", "SvdValues", "Determinant", "Inverse", "EigValues", "MatrixRank",
                           "PseudoInverse"}) {
      Same(absl::StrCat("  %y = tensord.linalg.v1.", op, "(%a)"), {of(a, {1, 1})}, {.norm_relative = 1e-14});
    }
    Same("  %y = tensord.linalg.v1.Solve(%a, %b)", {of(a, {1, 1}), of({1, kNot}, {1, 2})});
    Same("  %y = tensord.linalg.v1.Solve(%a, %b)", {of(a, {1, 1}), of({}, {1, 0})});
    Same("  %y = tensord.linalg.v1.TriangularSolve(%a, %b)", {of(a, {1, 1}), of({1, kInf}, {1, 2})});
    if (std::isfinite(a[0])) Same("  %q:2 = tensord.linalg.v1.Qr(%a)\n  %y = abs(%q:1)", {of(a, {1, 1})});
  }
  const std::vector<std::vector<double>> kTwoByTwo = {{kInf, 1, 1, kInf}, {1, 2, 2, 1}, {0, 0, 0, 0},
                                                      {1, kInf, 0, 1},    {0, 1, 1, 0}, {1e-310, 0, 0, 1e-310}};
  for (const std::vector<double>& a : kTwoByTwo) {
    for (const char* op :
         {"Cholesky", "EighValues", "SvdValues", "Determinant", "Inverse", "MatrixRank", "PseudoInverse"}) {
      Same(absl::StrCat("  %y = tensord.linalg.v1.", op, "(%a)"), {of(a, {2, 2})}, {.norm_relative = 1e-13});
    }
    Same("  %q:4 = tensord.linalg.v1.Lu(%a)\n  %y = add(%q:1, %q:2)", {of(a, {2, 2})});
    Same("  %q:2 = tensord.linalg.v1.SignLogDeterminant(%a)\n  %y = add(%q:0, %q:1)", {of(a, {2, 2})}, {.ulps = 4});
    Same("  %y = tensord.linalg.v1.Solve(%a, %b)", {of(a, {2, 2}), of({}, {2, 0})});
    Same("  %y = tensord.linalg.v1.TriangularSolve(%a, %b) {lower = true}", {of(a, {2, 2}), of({1, 2, 3, 4}, {2, 2})});
    Same("  %y = tensord.linalg.v1.TriangularSolve(%a, %b) {lower = true, unit_diagonal = true}",
         {of(a, {2, 2}), of({1, 2, 3, 4}, {2, 2})});
    Same("  %y = tensord.linalg.v1.LeastSquares(%a, %b)", {of(a, {2, 2}), of({1, 2, 3, 4}, {2, 2})},
         {.norm_relative = 1e-12});
  }
  // By the libraries, one bad matrix of a batch.
  for (const int64_t n : {5, 40}) {
    for (const double bad : {kNot, kInf, 0.0}) {
      Literal a = RandomMatrices(DType::kF64, {n, n, 3}, &random);
      for (int64_t i = 0; i < n; ++i) a.mutable_values<double>()[static_cast<size_t>(n * n + i)] = bad;
      for (const char* op : {"Determinant", "Inverse", "Cholesky", "SvdValues", "MatrixRank"}) {
        Same(absl::StrCat("  %y = tensord.linalg.v1.", op, "(%a)"), {a}, {.norm_relative = 1e-11});
      }
      Same("  %y = tensord.linalg.v1.Solve(%a, %b)", {a, RandomMatrices(DType::kF64, {n, 2, 3}, &random)},
           {.norm_relative = 1e-10});
      if (bad == 0) Same("  %q:2 = tensord.linalg.v1.Qr(%a)\n  %y = abs(%q:1)", {a}, {.norm_relative = 1e-12});
      Same("  %y = tensord.linalg.v1.TriangularSolve(%a, %b) {lower = true}",
           {a, RandomMatrices(DType::kF64, {n, 2, 3}, &random)}, {.norm_relative = 1e-3});
    }
  }
}

// An update that is a part of its operand, or all of it.
TEST_F(EdgesTest, OperandsThatShareMemory) {
  for (const char* sizes : {"{start_indices = [0, 1], limit_indices = [5, 3], strides = [1, 1]}"}) {
    Same(absl::StrCat("  %x = add(%a, %a)\n  %u = slice(%x) ", sizes, "\n  %y = dynamic_update_slice(%x, %u, %b)"),
         {Any(DType::kI32, {5, 6}), LiteralOf(std::vector<int32_t>{0, 2})});
    Same(absl::StrCat(
             "  %x = add(%a, %a)\n  %u = slice(%x) ", sizes,
             "\n  %t = transpose(%u) {permutation = [0, 1]}\n  %y = scatter(%x, %b, %t) {inserted_window_dims = [1], "
             "update_window_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1, combiner = set}"),
         {Any(DType::kI32, {5, 6}), LiteralOf(std::vector<int32_t>{1, 2})});
  }
  Same(
      "  %x = add(%a, %a)\n  %y = scatter(%x, %b, %x) {inserted_window_dims = [1], update_window_dims = [0], "
      "scatter_dims_to_operand_dims = [1], index_vector_dim = 1, combiner = set}",
      {Any(DType::kI32, {3, 4}), LiteralOf(std::vector<int32_t>{1, 2, 3, 0})});
  Same(
      "  %x = add(%a, %a)\n  %y = scatter(%x, %b, %x) {inserted_window_dims = [1], update_window_dims = [0], "
      "scatter_dims_to_operand_dims = [1], index_vector_dim = 1, combiner = add}",
      {Any(DType::kF32, {3, 4}, Values::kModest), LiteralOf(std::vector<int32_t>{1, 1, 3, 1})});
  Same("  %x = add(%a, %a)\n  %y = dynamic_update_slice(%x, %x, %b)",
       {Any(DType::kI32, {5, 6}), LiteralOf(std::vector<int32_t>{0, 2})});
}

// The driver compiles what NVRTC cannot.
TEST_F(EdgesTest, ADeviceThatIsNewerThanTheCompiler) {
  const std::vector<Literal> arguments = {Any(DType::kF32, {3})};
  const auto texts = [&] { return hostCudaCalls("nvrtcGetPTX"); };
  const auto codes = [&] { return hostCudaCalls("nvrtcGetCUBIN"); };
  for (const char* const device : {"90", "91", "130", "121"}) {
    SCOPED_TRACE(device);
    const bool is_known = device == std::string("90") || device == std::string("121");
    hostCudaSet("COMPUTE_CAPABILITY", device);
    const std::unique_ptr<Backend> backend = Made();
    const long texts_before = texts(), codes_before = codes();
    ExpectAsOnCpu(backend.get(), TextOf("  %y = negate(%a)", arguments), arguments, {});
    EXPECT_EQ(texts() > texts_before, !is_known);
    EXPECT_EQ(codes() > codes_before, is_known);
  }
}

// NVRTC refuses the option that names the device.
TEST_F(EdgesTest, ADeviceThatIsOlderThanTheCompiler) {
  const std::vector<Literal> arguments = {Any(DType::kF32, {3})};
  hostCudaSet("COMPUTE_CAPABILITY", "61");
  const std::unique_ptr<Backend> backend = Made();
  const auto refused = Run(backend.get(), TextOf("  %y = negate(%a)", arguments), arguments);
  EXPECT_EQ(ReasonOf(refused.status()), "UNSUPPORTED_ON_DEVICE") << refused.status();
  for (const char* part : {"nvrtc 13.0", "sm_61", "cuda.libraries"}) {
    EXPECT_NE(refused.status().message().find(part), std::string::npos) << refused.status();
  }
}

}  // namespace
}  // namespace tensord::cuda
