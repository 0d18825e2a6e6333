#include "backends/cuda/linalg/equilibrate_text.h"

#include "absl/strings/str_cat.h"
#include "backends/cuda/linalg/matrix_kernel.h"
#include "backends/cuda/linalg/matrix_text.h"
#include "engine/base/rounding.h"

namespace tensord::cuda {
namespace {

constexpr int64_t kEquilibratePartElements = 4096;  // of a matrix or a column, that a block looks through
constexpr int64_t kEquilibratePartColumns = 256;    // of a row, that a thread looks through
constexpr char kEquilibrateParameters[] = "const T* a, T* divided, R* exponent, int* exponents, int* flags";

// Exponents: of the rows of a matrix, and then of its columns. Flags of a matrix: what its entries are, and whether
// rows or columns are far from ordinary, behind those of all matrices.
constexpr char kEquilibrateFunctions[] = R"(
constexpr int kMostOrdinary = kIsSingle ? 48 : 384, kNothing = -2147483647 - 1;
constexpr int kUnordinary = 1, kStays = 2;  // what an entry is, and that it leaves the matrix as it is
TENSORD_FN bool IsOrdinary(R x) {
  const R size = fabs(x);
  return size == 0 || (size >= ldexp((R)1, -kMostOrdinary) && size <= ldexp((R)1, kMostOrdinary - 1));
}
TENSORD_FN int FlagsOf(T x) {
  return (IsOrdinary(RealOf(x)) && IsOrdinary(ImagOf(x)) ? 0 : kUnordinary) | (IsFinite(x) ? 0 : kStays);
}
TENSORD_FN int ExponentOf(T x) {
  const R size = Most(x);
  return size == 0 ? kNothing : ilogb(size) + 1;
}
TENSORD_FN int OrZero(int exponent) { return exponent == kNothing ? 0 : exponent; }
TENSORD_FN bool IsFar(int exponent) { return exponent > kMostOrdinary || exponent < -kMostOrdinary; }
// The largest exponent in a row, of columns begin … end, and in a column, of every step-th row.
TENSORD_FN int ExponentInRow(const T* a, i64 row, i64 begin, i64 end) {
  int most = kNothing;
  for (i64 l = begin; l < end; ++l) {
    const int exponent = ExponentOf(a[row + l * kN]);
    most = exponent > most ? exponent : most;
  }
  return most;
}
TENSORD_FN int ExponentInColumn(const T* a, i64 column, i64 begin, i64 end, i64 step) {
  int most = kNothing;
  for (i64 l = begin; l < end; l += step) {
    const int exponent = ExponentOf(a[l + column * kN]);
    most = exponent > most ? exponent : most;
  }
  return most;
}
// The same when the rows are divided.
TENSORD_FN int DividedInColumn(const T* a, const int* rows, i64 column, i64 begin, i64 end, i64 step) {
  int most = kNothing;
  for (i64 l = begin; l < end; l += step) {
    const int exponent = ExponentOf(a[l + column * kN]);
    if (exponent != kNothing && exponent - rows[l] > most) most = exponent - rows[l];
  }
  return most;
}
TENSORD_FN T Divided(T x, int exponent) { return Number(ldexp(RealOf(x), -exponent), ldexp(ImagOf(x), -exponent)); }
TENSORD_FN int ExponentAt(i64 e, const int* rows) { return rows[e % kN] + OrZero(rows[kN + e / kN]); }
TENSORD_FN bool Keeps(R part, R divided) {
  return part == 0 || (isfinite(divided) && (f64)fabs(divided) >= (kIsSingle ? 0x1p-126 : 0x1p-1022));
}
// One part of an entry vanishes, and not the other.
TENSORD_FN bool IsTornApart(T x, int exponent) {
  const T divided = Divided(x, exponent);
  return Keeps(RealOf(x), RealOf(divided)) != Keeps(ImagOf(x), ImagOf(divided));
}
)";

// A block a matrix.
constexpr char kEquilibrateSmall[] = R"(    __shared__ int found, is_far;
    const T* from = a + i * kElements;
    int *rows = exponents + i * 2 * kN, *columns = rows + kN;
    __syncthreads();
    if (threadIdx.x == 0) found = is_far = 0;
    __syncthreads();
    for (i64 e = threadIdx.x; e < kElements; e += kThreads) {
      if (FlagsOf(from[e]) != 0) atomicOr(&found, FlagsOf(from[e]));
    }
    __syncthreads();
    for (i64 k = threadIdx.x; found == kUnordinary && k < kN; k += kThreads) {
      rows[k] = OrZero(ExponentInRow(from, k, 0, kN));
      if (IsFar(rows[k]) || IsFar(OrZero(ExponentInColumn(from, k, 0, kN, 1)))) atomicOr(&is_far, 1);
    }
    __syncthreads();
    for (i64 k = threadIdx.x; is_far && k < kN; k += kThreads) columns[k] = DividedInColumn(from, rows, k, 0, kN, 1);
    __syncthreads();
    for (i64 e = threadIdx.x; kIsComplex && is_far && e < kElements; e += kThreads) {
      if (IsTornApart(from[e], ExponentAt(e, rows))) atomicOr(&found, kStays);
    }
    __syncthreads();
    const bool divides = is_far && !(found & kStays);
    for (i64 e = threadIdx.x; e < kElements; e += kThreads) {
      divided[i * kElements + e] = divides ? Divided(from[e], ExponentAt(e, rows)) : from[e];
    }
    if (threadIdx.x == 0) {
      i64 sum = 0;
      for (i64 k = 0; divides && k < kN; ++k) sum += rows[k] + OrZero(columns[k]);
      exponent[i] = (R)sum;
    })";

// All blocks share a matrix. The largest of integers, and their sum, are the same in whichever order they come.
constexpr char kEquilibrateClear[] = R"(    exponents[i] = kNothing;
    if (i < 2 * kBatch) flags[i] = 0;)";

constexpr char kEquilibratePart[] = R"(    const i64 b = i / kParts, begin = i % kParts * kPartElements;
    const i64 end = begin + kPartElements < kElements ? begin + kPartElements : kElements;
    const T* from = a + b * kElements;
)";
constexpr char kEquilibrateSurvey[] = R"(    int found = 0;
    for (i64 e = begin + threadIdx.x; e < end; e += kThreads) found |= FlagsOf(from[e]);
    if (found != 0) atomicOr(flags + b, found);)";

constexpr char kEquilibrateRows[] =
    R"(    const i64 b = i / (kN * kRowParts), begin = i / kN % kRowParts * kPartColumns;
    if (flags[b] != kUnordinary) continue;
    const i64 row = i % kN, end = begin + kPartColumns < kN ? begin + kPartColumns : kN;
    atomicMax(exponents + b * 2 * kN + row, ExponentInRow(a + b * kElements, row, begin, end));)";

constexpr char kEquilibrateColumn[] = R"(    const i64 b = i / (kN * kColumnParts), column = i / kColumnParts % kN;
    const i64 begin = i % kColumnParts * kPartElements;
    const i64 end = begin + kPartElements < kN ? begin + kPartElements : kN;
    const T* from = a + b * kElements;
    int* rows = exponents + b * 2 * kN;
)";
constexpr char kEquilibrateColumns[] = R"(    if (flags[b] != kUnordinary) continue;
    atomicMax(rows + kN + column, ExponentInColumn(from, column, begin + threadIdx.x, end, kThreads));)";

constexpr char kEquilibrateFar[] = R"(    const i64 b = i / kN;
    if (flags[b] != kUnordinary) continue;
    int *row = exponents + b * 2 * kN + i % kN, *column = row + kN;
    *row = OrZero(*row);
    if (IsFar(*row) || IsFar(OrZero(*column))) atomicOr(flags + kBatch + b, 1);
    *column = kNothing;)";

constexpr char kEquilibrateDividedColumns[] = R"(    if (!flags[kBatch + b]) continue;
    atomicMax(rows + kN + column, DividedInColumn(from, rows, column, begin + threadIdx.x, end, kThreads));)";

constexpr char kEquilibrateTorn[] = R"(    if (!flags[kBatch + b]) continue;
    const int* rows = exponents + b * 2 * kN;
    for (i64 e = begin + threadIdx.x; e < end; e += kThreads) {
      if (IsTornApart(from[e], ExponentAt(e, rows))) atomicOr(flags + b, kStays);
    })";

constexpr char kEquilibrateDivide[] = R"(    const int* rows = exponents + b * 2 * kN;
    const bool divides = flags[kBatch + b] && !(flags[b] & kStays);
    for (i64 e = begin + threadIdx.x; e < end; e += kThreads) {
      divided[b * kElements + e] = divides ? Divided(from[e], ExponentAt(e, rows)) : from[e];
    })";

constexpr char kEquilibrateSum[] = R"(    __shared__ u64 sum;
    const int* rows = exponents + i * 2 * kN;
    const bool divides = flags[kBatch + i] && !(flags[i] & kStays);
    __syncthreads();
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    i64 mine = 0;
    for (i64 k = threadIdx.x; divides && k < kN; k += kThreads) mine += rows[k] + OrZero(rows[kN + k]);
    atomicAdd(&sum, (u64)mine);
    __syncthreads();
    if (threadIdx.x == 0) exponent[i] = (R)(i64)sum;)";

}  // namespace

KernelText EquilibrateText(DType dtype, int64_t n, int64_t batch, int64_t most_blocks) {
  const int64_t elements = n * n, parts = CeilDiv(elements, kEquilibratePartElements);
  const int64_t row_parts = CeilDiv(n, kEquilibratePartColumns), column_parts = CeilDiv(n, kEquilibratePartElements);
  MatrixText text(dtype, most_blocks);
  text.Constant("kN", n);
  text.Constant("kElements", elements);
  text.Constant("kBatch", batch);
  text.Constant("kPartElements", kEquilibratePartElements);
  text.Constant("kPartColumns", kEquilibratePartColumns);
  text.Constant("kParts", parts);
  text.Constant("kRowParts", row_parts);
  text.Constant("kColumnParts", column_parts);
  text.Add(kEquilibrateFunctions);
  const auto each = [&](absl::string_view entry, int64_t count, absl::string_view body) {
    text.Each(entry, kEquilibrateParameters, count, body);
  };
  const auto by_block = [&](absl::string_view entry, int64_t count, absl::string_view where, absl::string_view body) {
    text.EachByBlock(entry, kEquilibrateParameters, count, absl::StrCat(where, body));
  };
  if (n <= kMostSmallSize) {
    by_block("equilibrate", batch, "", kEquilibrateSmall);
    return text.Take();
  }
  each("equilibrate_clear", batch * 2 * n, kEquilibrateClear);
  by_block("equilibrate_survey", batch * parts, kEquilibratePart, kEquilibrateSurvey);
  each("equilibrate_rows", batch * n * row_parts, kEquilibrateRows);
  by_block("equilibrate_columns", batch * n * column_parts, kEquilibrateColumn, kEquilibrateColumns);
  each("equilibrate_far", batch * n, kEquilibrateFar);
  by_block("equilibrate_divided_columns", batch * n * column_parts, kEquilibrateColumn, kEquilibrateDividedColumns);
  const bool is_complex = dtype == DType::kC64 || dtype == DType::kC128;
  if (is_complex) by_block("equilibrate_torn", batch * parts, kEquilibratePart, kEquilibrateTorn);
  by_block("equilibrate_divide", batch * parts, kEquilibratePart, kEquilibrateDivide);
  by_block("equilibrate_sum", batch, "", kEquilibrateSum);
  return text.Take();
}

}  // namespace tensord::cuda
