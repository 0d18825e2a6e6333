#ifndef TENSORD_BACKENDS_CPU_FFT_LANES_ROOTS_H_
#define TENSORD_BACKENDS_CPU_FFT_LANES_ROOTS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tensord::cpu {

struct FftRoot {
  double r, i;
};

// exp(2πi k/n) for any k of [0, n), as a product of two of few. Immutable.
class FftRoots {
 public:
  explicit FftRoots(int64_t n) : n_(n) {
    while ((int64_t{1} << 2 * fine_bits_) < n) ++fine_bits_;
    const int64_t fine = int64_t{1} << fine_bits_;
    for (int64_t k = 0; k < fine; ++k) fine_.push_back(Exact(k));
    for (int64_t k = 0; k < n; k += fine) coarse_.push_back(Exact(k));
  }

  FftRoot At(int64_t k) const {
    const FftRoot a = *FineOf(k), b = CoarseOf(k);
    return {a.r * b.r - a.i * b.i, a.r * b.i + a.i * b.r};
  }
  // The factors. Fine ones of the numbers that follow lie behind, up to the next number with another coarse one.
  const FftRoot* FineOf(int64_t k) const { return &fine_[static_cast<size_t>(k & ((int64_t{1} << fine_bits_) - 1))]; }
  FftRoot CoarseOf(int64_t k) const { return coarse_[static_cast<size_t>(k >> fine_bits_)]; }
  int64_t NextCoarse(int64_t k) const { return ((k >> fine_bits_) + 1) << fine_bits_; }
  int64_t bytes() const { return static_cast<int64_t>((fine_.size() + coarse_.size()) * sizeof(FftRoot)); }

 private:
  FftRoot Exact(int64_t k) const {
    const long double turn = 2 * 3.141592653589793238462643383279502884L * static_cast<long double>(k % n_);
    return {static_cast<double>(std::cos(turn / static_cast<long double>(n_))),
            static_cast<double>(std::sin(turn / static_cast<long double>(n_)))};
  }

  const int64_t n_;
  int fine_bits_ = 0;
  std::vector<FftRoot> fine_;
  std::vector<FftRoot> coarse_;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_FFT_LANES_ROOTS_H_
