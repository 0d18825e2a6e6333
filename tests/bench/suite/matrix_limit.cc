#include "tests/bench/suite/matrix_limit.h"

#include <cblas.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <complex>
#include <cstring>
#include <thread>
#include <vector>

#include "hwy/aligned_allocator.h"

namespace tensord {
namespace {

constexpr int kRounds = 9;

using Bytes = hwy::AlignedFreeUniquePtr<uint8_t[]>;

Bytes MakeMatrix(int64_t bytes) {
  Bytes matrix = hwy::AllocateAligned<uint8_t>(static_cast<size_t>(bytes));
  std::memset(matrix.get(), 0, static_cast<size_t>(bytes));
  return matrix;
}

void Multiply(DType dtype, int64_t m, int64_t n, int64_t k, const void* a, int64_t lda, const void* b, void* c,
              int64_t ldc) {
  const auto i = [](int64_t size) { return static_cast<blasint>(size); };
  const std::complex<double> one = 1, zero = 0;
  const std::complex<float> one32 = 1, zero32 = 0;
  switch (dtype) {
    case DType::kF32:
      return cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, i(m), i(n), i(k), 1, static_cast<const float*>(a),
                         i(lda), static_cast<const float*>(b), i(k), 0, static_cast<float*>(c), i(ldc));
    case DType::kF64:
      return cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, i(m), i(n), i(k), 1, static_cast<const double*>(a),
                         i(lda), static_cast<const double*>(b), i(k), 0, static_cast<double*>(c), i(ldc));
    case DType::kC64:
      return cblas_cgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, i(m), i(n), i(k), &one32, a, i(lda), b, i(k),
                         &zero32, c, i(ldc));
    default:
      return cblas_zgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, i(m), i(n), i(k), &one, a, i(lda), b, i(k), &zero,
                         c, i(ldc));
  }
}

enum class Cut : uint8_t { kBatch, kRows, kColumns };

class Contest {
 public:
  explicit Contest(const MatrixSizes& sizes)
      : sizes_(sizes),
        unit_(SizeOf(sizes.dtype)),
        a_(MakeMatrix(sizes.batch * sizes.m * sizes.k * unit_)),
        b_(MakeMatrix(sizes.batch * sizes.k * sizes.n * unit_)),
        c_(MakeMatrix(sizes.batch * sizes.m * sizes.n * unit_)) {}

  double BestMs(Cut cut, int threads) {
    std::barrier start(threads), end(threads);
    double best = 1e9;
    const auto work = [&](int t) {
      for (int round = 0; round < kRounds; ++round) {
        start.arrive_and_wait();
        const auto begin = std::chrono::steady_clock::now();
        MultiplyPart(cut, t, threads);
        end.arrive_and_wait();
        const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
        if (t == 0) best = std::min(best, took.count());
      }
    };
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(work, t);
    work(0);
    for (std::thread& other : others) other.join();
    return best;
  }

 private:
  void MultiplyPart(Cut cut, int part, int parts) {
    const auto [batch, m, n, k] = std::array<int64_t, 4>{sizes_.batch, sizes_.m, sizes_.n, sizes_.k};
    const auto from = [&](int64_t size) { return size * part / parts; };
    const auto to = [&](int64_t size) { return size * (part + 1) / parts; };
    const bool by_batch = cut == Cut::kBatch;
    const int64_t row = cut == Cut::kRows ? from(m) : 0, rows = cut == Cut::kRows ? to(m) - row : m;
    const int64_t column = cut == Cut::kColumns ? from(n) : 0, columns = cut == Cut::kColumns ? to(n) - column : n;
    for (int64_t i = by_batch ? from(batch) : 0; i < (by_batch ? to(batch) : batch); ++i) {
      Multiply(sizes_.dtype, rows, columns, k, a_.get() + (i * m * k + row) * unit_, m,
               b_.get() + (i * k * n + column * k) * unit_, c_.get() + (i * m * n + column * m + row) * unit_, m);
    }
  }

  const MatrixSizes sizes_;
  const int64_t unit_;
  const Bytes a_, b_, c_;
};

}  // namespace

double Flops(const MatrixSizes& sizes) {
  const bool is_complex = sizes.dtype == DType::kC64 || sizes.dtype == DType::kC128;
  return (is_complex ? 8. : 2.) * static_cast<double>(sizes.batch) * static_cast<double>(sizes.m) *
         static_cast<double>(sizes.n) * static_cast<double>(sizes.k);
}

bool IsForBlas(const MatrixSizes& sizes) {
  const bool known = sizes.dtype == DType::kF32 || sizes.dtype == DType::kF64 || sizes.dtype == DType::kC64 ||
                     sizes.dtype == DType::kC128;
  return known && std::min({sizes.m, sizes.n, sizes.k}) >= 8;
}

double BlasMs(const MatrixSizes& sizes, int threads) {
  Contest contest(sizes);
  if (threads == 1) return contest.BestMs(Cut::kBatch, 1);
  double best = std::min(contest.BestMs(Cut::kRows, threads), contest.BestMs(Cut::kColumns, threads));
  if (sizes.batch >= threads) best = std::min(best, contest.BestMs(Cut::kBatch, threads));
  return best;
}

}  // namespace tensord
