#include "backends/cpu/matmul/gemm.h"

#include <cblas.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/strings/match.h"
#include "backends/cpu/machine/blas.h"
#include "backends/cpu/machine/streamed_stores.h"
#include "backends/cpu/matmul/blas_products.h"
#include "backends/cpu/reduce/loops.h"
#include "engine/base/rounding.h"
#include "engine/base/stop_signal.h"

namespace tensord::cpu {
namespace {

// A loop makes these products in registers, because a call of BLAS costs more than their arithmetic; beside any number
// of columns if the left matrix stays in registers and the nearest cache (gates on a state vector of 2^20).
constexpr int64_t kMaxTinyColumns = 8;
constexpr int64_t kMostLeftElements = 64;
// Long sums are cut into parts: enough for any threads, each some 10 µs of memory. Half or twice the part: 1 % of a
// decode step.
constexpr int64_t kMaxGemmParts = 32;
constexpr int64_t kGemmStreamBytes = int64_t{256} << 10;
// Results of such short sums that are larger than this take as long as they take to be written, which goes best in
// whole columns, or in rows of many lines.
constexpr int64_t kShortSum = 64;
constexpr int64_t kLargeGemmResultBytes = int64_t{4} << 20;
constexpr int64_t kResultColumns = 64;
constexpr int64_t kResultRows = 2048;
// A tall matrix through a skinny one has a loop, which reads it once; BLAS packs it.
constexpr int64_t kSkinny = 8;
constexpr int64_t kTall = 1024;
// Rows that are read in their order beside a vector, 26 to 34 GB/s where OpenBLAS has 11 to 24 of eight rows at a time;
// the vector stays in the nearest cache. Shorter rows, or fewer, leave nothing to gain.
constexpr int64_t kShortestRowBytes = 128;
constexpr int64_t kLongestRowBytes = int64_t{16} << 10;
constexpr int64_t kFewestRows = 64;
// A call of BLAS packs its operands: 32 blocks of a product of 1024 cost 8 % of it. So a product has about a block a
// core, and up to so many where packing again is such a part of the work.
constexpr double kMaxBlocksPerCore = 8;
constexpr double kMostRepacked = 1.0 / 1000;
// Multiplications between two looks whether the run is still wanted: some milliseconds, some tens for BLAS, which
// packs its operands for each piece.
constexpr double kMostPieceWork = int64_t{1} << 26;
constexpr double kMostBlasPieceWork = int64_t{1} << 29;
constexpr int64_t kMaxBlasSize = std::numeric_limits<blasint>::max();

bool IsTiny(DType dtype, const MatrixProduct& p) {
  if (dtype == DType::kBool || p.m > kMaxTinyRows || p.k > kMaxTinyTerms) return false;
  return p.n <= kMaxTinyColumns || (!kIntegral.Contains(dtype) && p.k > 1 && p.m > 1 && p.m * p.k <= kMostLeftElements);
}

// Tells whether BLAS can take the matrix, which must not overlap itself.
bool HasUnitStride(int64_t rows, int64_t columns, MatrixStrides strides) {
  return rows <= 1 || columns <= 1 || (strides.row_stride == 1 && strides.column_stride >= rows) ||
         (strides.column_stride == 1 && strides.row_stride >= columns);
}

// OpenBLAS's AVX-512 kernels take products of up to a million multiplications without packing, and are then a fifth
// faster.
bool HasUnpackedKernels() {
  static const bool has = [] {
    const char* core = openblas_get_corename();
    return absl::EqualsIgnoreCase(core, "Cooperlake") || absl::EqualsIgnoreCase(core, "SkylakeX") ||
           absl::EqualsIgnoreCase(core, "Sapphirerapids");
  }();
  return has;
}

}  // namespace

bool Gemm::CanReadLhs(DType dtype, const MatrixProduct& p) {
  if (IsTiny(dtype, p)) return true;
  if (kIntegral.Contains(dtype)) return p.m <= 1 || p.a.row_stride == 1;
  return HasUnitStride(p.m, p.k, p.a);
}

bool Gemm::CanReadRhs(DType dtype, const MatrixProduct& p) {
  return IsTiny(dtype, p) || kIntegral.Contains(dtype) || HasUnitStride(p.k, p.n, p.b);
}

bool Gemm::IsCheapToCall(DType dtype, const MatrixProduct& p) { return IsTiny(dtype, p); }

bool Gemm::FitsBlas(const MatrixProduct& p) {
  if (p.k == 1 && (p.m == 1 || p.a.row_stride == 1)) return true;  // an outer product, which does not use BLAS
  const auto stride_fits = [](int64_t size, int64_t stride) { return size <= 1 || stride <= kMaxBlasSize; };
  return p.k <= kMaxBlasSize && stride_fits(p.m, p.a.row_stride) && stride_fits(p.k, p.a.column_stride) &&
         stride_fits(p.k, p.b.row_stride) && stride_fits(p.n, p.b.column_stride) && stride_fits(p.n, p.c_column_stride);
}

Gemm::Gemm(DType dtype, const MatrixProduct& product, int64_t copies, int64_t sums)
    : dtype_(dtype),
      element_bytes_(SizeOf(dtype)),
      copies_(copies),
      sums_(sums),
      product_(product),
      loops_(GetGemmLoops(dtype)),
      vector_loops_(GetMatrixVectorLoops(dtype)) {
  if (product.m == 0 || product.n == 0) return;
  method_ = ChooseMethod(dtype, product);
  PlanBlocks();
}

bool Gemm::CanConjugateLhs(DType dtype, const MatrixProduct& p) {
  const Method method = ChooseMethod(dtype, p);
  return method == Method::kMatrix || method == Method::kMatrixVector || method == Method::kDot;
}

bool Gemm::CanConjugateRhs(DType dtype, const MatrixProduct& p) {
  const Method method = ChooseMethod(dtype, p);
  return method == Method::kMatrix || method == Method::kVectorMatrix || method == Method::kDot;
}

Gemm::Method Gemm::ChooseMethod(DType dtype, const MatrixProduct& p) {
  if (p.k == 0) return Method::kZero;
  const bool conjugates = p.conjugates_a || p.conjugates_b;
  if (IsTiny(dtype, p) && !conjugates) return Method::kTiny;
  if (kIntegral.Contains(dtype)) return Method::kGeneral;
  const bool reads_rows = p.m == 1 || p.a.row_stride == 1;
  if (p.k == 1 && reads_rows && !conjugates) return Method::kOuter;
  if (p.m == 1 && p.n == 1) return Method::kDot;
  if (p.n == 1 && !p.conjugates_b) return Method::kMatrixVector;
  if (p.m == 1 && !p.conjugates_a) return Method::kVectorMatrix;
  const bool is_skinny = p.m >= kTall && p.n <= kSkinny && p.k <= kSkinny;
  if (is_skinny && reads_rows && !conjugates) return Method::kGeneral;
  return Method::kMatrix;
}

bool Gemm::may_cut_k() const {
  return copies_ == 1 && sums_ == 1 && (product_.n == 1 || product_.c_column_stride == product_.m);
}

void Gemm::CutK(int64_t parts) {
  block_k_ = RoundUp(CeilDiv(product_.k, parts), 16);
  k_blocks_ = CeilDiv(product_.k, block_k_);
}

// A product that reads its matrix once. It is best cut across its longest stride, which leaves runs whole: along the
// outputs where k is contiguous, else along k, as long as the partial results are small against the matrix.
void Gemm::PlanStreaming(int64_t outputs, bool is_contiguous_along_outputs, int64_t& output_block) {
  const int64_t parts =
      std::min(CeilDiv(kMaxGemmParts, copies_), outputs * product_.k / (kGemmStreamBytes / element_bytes_));
  if (parts <= 1) return;
  const bool cuts_k =
      is_contiguous_along_outputs ? product_.k >= 64 * parts : outputs < 16 * parts && product_.k >= outputs;
  if (cuts_k && may_cut_k()) return CutK(parts);
  const int64_t least = is_contiguous_along_outputs ? 512 : 16;
  output_block = std::max(least, RoundUp(CeilDiv(outputs, parts), 16));
}

// Halves the longer side until there are enough blocks for the machine, as long as a block is worth a call of its own.
// BLAS packs its operands in each call, so more blocks than cores are made only if that costs hardly anything.
void Gemm::PlanMatrixBlocks() {
  const double work =
      static_cast<double>(product_.m) * static_cast<double>(product_.n) * static_cast<double>(product_.k);
  if (!kIntegral.Contains(dtype_) && may_cut_k() && product_.m * product_.n <= 64 * 64 && product_.k >= 8192) {
    CutK(std::clamp<int64_t>(static_cast<int64_t>(work / 2e6), 1, kMaxGemmParts));
    return;
  }
  const int64_t unpacked_columns = 800000 / (product_.m * product_.k) / 8 * 8;
  if (!kIntegral.Contains(dtype_) && HasUnpackedKernels() && work > 1e6 && std::max(product_.m, product_.k) <= 192 &&
      unpacked_columns >= 16) {
    block_columns_ = RoundUp(CeilDiv(product_.n, CeilDiv(product_.n, unpacked_columns)), 8);
    return;
  }
  if (!kIntegral.Contains(dtype_) && product_.k <= kShortSum &&
      product_.m * product_.n * element_bytes_ >= kLargeGemmResultBytes) {
    // Bound by the writing of the result, which goes best along whole columns.
    const int64_t blocks = CeilDiv(8 * MachineCores(), copies_);
    if (product_.n >= 2 * kResultColumns) {
      block_columns_ = std::max(kResultColumns, RoundUp(CeilDiv(product_.n, blocks), 16));
    } else {
      block_rows_ = std::min(product_.m, std::max(kResultRows, RoundUp(CeilDiv(product_.m, blocks), 16)));
    }
    return;
  }
  const double min_work = work < 1e8 ? 1.3e5 : 2e6;
  const double cores = static_cast<double>(MachineCores());
  const double wanted = cores / static_cast<double>(copies_);
  while (true) {
    const double blocks = static_cast<double>(CeilDiv(product_.m, block_rows_)) *
                          static_cast<double>(CeilDiv(product_.n, block_columns_));
    const double block_work =
        static_cast<double>(block_rows_) * static_cast<double>(block_columns_) * static_cast<double>(product_.k);
    int64_t& side = block_columns_ >= block_rows_ / 2 ? block_columns_ : block_rows_;
    if (blocks >= kMaxBlocksPerCore * wanted || block_work < 2 * min_work || side < 32) return;
    const double repacked = 2.0 / static_cast<double>(side);
    if (blocks >= wanted && (repacked > kMostRepacked || block_work < 1e8)) return;
    side = RoundUp(CeilDiv(side, 2), 16);
  }
}

void Gemm::PlanBlocks() {
  const MatrixProduct& p = product_;
  block_rows_ = p.m;
  block_columns_ = p.n;
  block_k_ = p.k;
  switch (method_) {
    case Method::kZero:
      break;
    case Method::kTiny:
      block_columns_ = std::min(p.n, std::max<int64_t>(kMaxTinyColumns, kGemmStreamBytes / (p.m * element_bytes_)));
      break;
    case Method::kOuter:
      block_rows_ = std::min(p.m, kGemmStreamBytes / element_bytes_);
      block_columns_ = std::min(p.n, std::max<int64_t>(1, kGemmStreamBytes / element_bytes_ / block_rows_));
      break;
    case Method::kDot:
      if (may_cut_k() && p.k * element_bytes_ >= 2 * kGemmStreamBytes) {
        CutK(std::min(kMaxGemmParts, p.k * element_bytes_ / kGemmStreamBytes));
      }
      break;
    case Method::kMatrixVector:
      PlanStreaming(p.m, p.a.row_stride == 1, block_rows_);
      break;
    case Method::kVectorMatrix:
      PlanStreaming(p.n, p.b.column_stride == 1, block_columns_);
      break;
    case Method::kGeneral:
      if (!kIntegral.Contains(dtype_)) {
        // The block of a stays in the nearest cache for the second four columns.
        block_rows_ = std::min<int64_t>(p.m, 2048);
        break;
      }
      PlanMatrixBlocks();
      break;
    case Method::kMatrix:
      PlanMatrixBlocks();
      break;
  }
  block_rows_ = std::min(block_rows_, kMaxBlasSize / 2);
  block_columns_ = std::min(block_columns_, kMaxBlasSize / 2);
  row_blocks_ = CeilDiv(p.m, block_rows_);
  column_blocks_ = CeilDiv(p.n, block_columns_);
}

int64_t Gemm::partial_bytes() const { return k_blocks_ > 1 ? k_blocks_ * product_.m * product_.n * element_bytes_ : 0; }

int64_t Gemm::block_work() const { return block_rows_ * block_columns_ * std::max<int64_t>(block_k_, 1); }

void Gemm::RunBlock(int64_t block, const void* a_base, const void* b_base, void* c_base, void* partials,
                    bool accumulates) const {
  MatrixProduct part = product_;
  part.accumulates = accumulates;
  if (num_blocks() == 1) {
    return Multiply(part, static_cast<const char*>(a_base), static_cast<const char*>(b_base),
                    static_cast<char*>(c_base));
  }
  const int64_t row = block % row_blocks_ * block_rows_;
  const int64_t column = block / row_blocks_ % column_blocks_ * block_columns_;
  const int64_t k_block = block / row_blocks_ / column_blocks_;
  const int64_t first_k = k_block * block_k_;
  part.m = std::min(block_rows_, product_.m - row);
  part.n = std::min(block_columns_, product_.n - column);
  part.k = std::min(block_k_, product_.k - first_k);
  const char* a =
      static_cast<const char*>(a_base) + (row * part.a.row_stride + first_k * part.a.column_stride) * element_bytes_;
  const char* b =
      static_cast<const char*>(b_base) + (first_k * part.b.row_stride + column * part.b.column_stride) * element_bytes_;
  char* c = static_cast<char*>(c_base);
  if (k_blocks_ > 1) part.accumulates = false;
  if (k_blocks_ > 1) c = static_cast<char*>(partials) + k_block * product_.m * product_.n * element_bytes_;
  Multiply(part, a, b, c + (row + column * part.c_column_stride) * element_bytes_);
}

void Gemm::RunCopies(const ProductCopies& copies, const void* a_base, const void* b_base, void* c_base,
                     bool accumulates) const {
  MatrixProduct product = product_;
  product.accumulates = accumulates;
  if (method_ == Method::kTiny) return loops_.tiny(product, copies, a_base, b_base, c_base);
  const char* a = static_cast<const char*>(a_base);
  const char* b = static_cast<const char*>(b_base);
  char* c = static_cast<char*>(c_base);
  for (int64_t i = 0; i < copies.count; ++i) {
    Multiply(product, a, b, c);
    a += copies.a_step * element_bytes_;
    b += copies.b_step * element_bytes_;
    c += copies.c_step * element_bytes_;
  }
}

// Makes a result that is too big for the cache in pieces, which are streamed from there.
void Gemm::MultiplyOuter(const MatrixProduct& p, const char* a, const char* b, char* c) const {
  if (p.accumulates || product_.m * product_.n * element_bytes_ < StreamedResultBytes()) {
    return loops_.outer(p, a, b, c);
  }
  alignas(64) char piece[4096];
  MatrixProduct part = p;
  part.n = 1;
  for (int64_t j = 0; j < p.n; ++j) {
    for (int64_t i = 0; i < p.m; i += part.m) {
      part.m = std::min(static_cast<int64_t>(sizeof(piece)) / element_bytes_, p.m - i);
      loops_.outer(part, a + i * element_bytes_, b + j * p.b.column_stride * element_bytes_, piece);
      StreamCopy(piece, c + (i + j * p.c_column_stride) * element_bytes_, part.m * element_bytes_);
    }
  }
  FlushStreamed();
}

void Gemm::MultiplyDot(const MatrixProduct& p, const char* a, const char* b, char* c) const {
  if (!p.accumulates) {
    return BlasDot(dtype_, p.k, a, p.a.column_stride, p.conjugates_a, b, p.b.row_stride, p.conjugates_b, c);
  }
  alignas(16) char sum[16];
  BlasDot(dtype_, p.k, a, p.a.column_stride, p.conjugates_a, b, p.b.row_stride, p.conjugates_b, sum);
  AddUp(sum, 1, 1, c, true);
}

// c = the sum of `rows` rows of `count` elements one after the other, or c += that.
void Gemm::AddUp(const void* partials, int64_t rows, int64_t count, void* c, bool accumulates) const {
  // Complex numbers are summed as pairs of reals.
  const DType real = RealPartOf(dtype_);
  const int64_t reals = count * (SizeOf(dtype_) / SizeOf(real));
  const ReduceLoops sum = GetReduceLoops(ReduceOp::kSum, real);
  if (!accumulates) sum.clear(c, reals);
  sum.accumulate(partials, reals, rows, reals, c);
}

// Uses loops of ours if they read the matrix faster than BLAS: for dense columns that fit into registers, and for many
// rows that no cache holds with an x that fits beside them.
void Gemm::MultiplyVector(int64_t outputs, int64_t k, MatrixStrides a_strides, bool conjugates, bool accumulates,
                          const char* a, const char* x, int64_t x_step, char* y, int64_t y_step) const {
  const bool is_dense = (x_step == 1 || k == 1) && (y_step == 1 || outputs == 1) && !conjugates;
  if (is_dense && vector_loops_.by_columns != nullptr) {
    if (a_strides.row_stride == 1 && outputs <= vector_loops_.max_outputs && (outputs >= 16 || k <= 64)) {
      return vector_loops_.by_columns(outputs, k, a, a_strides.column_stride, x, y, accumulates);
    }
    const int64_t row_bytes = k * element_bytes_;
    if (a_strides.column_stride == 1 && row_bytes >= kShortestRowBytes && row_bytes <= kLongestRowBytes &&
        outputs >= kFewestRows && outputs * row_bytes >= kGemmStreamBytes) {
      return vector_loops_.by_rows(outputs, k, a, a_strides.row_stride, x, y, accumulates);
    }
  }
  BlasMatrixVector(dtype_, outputs, k, a_strides, conjugates, accumulates, a, x, x_step, y, y_step);
}

// Pieces are about as long as wide and deep, so that they are worth a call of their own.
void Gemm::MultiplyInPieces(const MatrixProduct& p, const char* a, const char* b, char* c) const {
  const bool is_blas = method_ == Method::kMatrix;
  const double most = is_blas ? kMostBlasPieceWork : kMostPieceWork;
  MatrixProduct piece = p;
  while (static_cast<double>(piece.m) * static_cast<double>(piece.n) * static_cast<double>(piece.k) > most) {
    int64_t& outer = piece.m > piece.n ? piece.m : piece.n;
    int64_t& side = piece.k > outer ? piece.k : outer;
    side = RoundUp(CeilDiv(side, 2), 16);
  }
  const int64_t rows = piece.m, columns = piece.n, terms = piece.k;
  for (int64_t j = 0; j < p.n; j += columns) {
    piece.n = std::min(columns, p.n - j);
    for (int64_t i = 0; i < p.m; i += rows) {
      piece.m = std::min(rows, p.m - i);
      for (int64_t q = 0; q < p.k; q += terms) {
        if (i + j + q > 0 && StopRequested()) return;
        piece.k = std::min(terms, p.k - q);
        piece.accumulates = p.accumulates || q > 0;
        const char* const left = a + (i * p.a.row_stride + q * p.a.column_stride) * element_bytes_;
        const char* const right = b + (q * p.b.row_stride + j * p.b.column_stride) * element_bytes_;
        char* const result = c + (i + j * p.c_column_stride) * element_bytes_;
        if (is_blas) {
          BlasMatrixMatrix(dtype_, piece, left, right, result);
        } else {
          loops_.general(piece, left, right, result);
        }
      }
    }
  }
}

void Gemm::Multiply(const MatrixProduct& p, const char* a, const char* b, char* c) const {
  switch (method_) {
    case Method::kZero:
      for (int64_t j = 0; j < p.n && !StopRequested(); ++j) {
        std::memset(c + j * p.c_column_stride * element_bytes_, 0, static_cast<size_t>(p.m * element_bytes_));
      }
      return;
    case Method::kTiny:
      return loops_.tiny(p, {}, a, b, c);
    case Method::kOuter:
      return MultiplyOuter(p, a, b, c);
    case Method::kGeneral:
    case Method::kMatrix:
      return MultiplyInPieces(p, a, b, c);
    case Method::kDot:
      return MultiplyDot(p, a, b, c);
    case Method::kMatrixVector:
      return MultiplyVector(p.m, p.k, p.a, p.conjugates_a, p.accumulates, a, b, p.b.row_stride, c, 1);
    case Method::kVectorMatrix:
      return MultiplyVector(p.n, p.k, {p.b.column_stride, p.b.row_stride}, p.conjugates_b, p.accumulates, b, a,
                            p.a.column_stride, c, p.c_column_stride);
  }
}

void Gemm::JoinPartials(const void* partials, void* c, bool accumulates) const {
  if (k_blocks_ > 1) AddUp(partials, k_blocks_, product_.m * product_.n, c, accumulates);
}

}  // namespace tensord::cpu
