#include "backends/cpu/linalg/divided/tridiagonal_values.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/linalg/lapack/copies.h"
#include "engine/base/stop_signal.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kSweepsOfRow = 30;  // as LAPACK's sterf, after which a value is not coming

// A block of rows from 0 on, each joined to the next, with the squares of the numbers beside the diagonal.
template <typename R>
class Block {
 public:
  Block(int64_t n, R* diagonal, R* squares) : n_(n), d_(diagonal), squares_(squares) {}

  // Leaves the values in the diagonal. False if more than `sweeps` would be needed; subtracts its own sweeps from them.
  bool Solve(int64_t* sweeps);

 private:
  bool IsApart(int64_t row) const {
    return squares_[row] <= kRounding<R> * kRounding<R> * std::abs(d_[row] * d_[row + 1]);
  }
  R Shift(int64_t first) const;
  void SolveTwo(int64_t first);
  void Sweep(int64_t first, int64_t last);

  const int64_t n_;
  R *const d_, *const squares_;
};

template <typename R>
bool Block<R>::Solve(int64_t* sweeps) {
  for (int64_t first = 0; first < n_;) {
    int64_t last = first;
    while (last + 1 < n_ && !IsApart(last)) ++last;
    if (last + 1 < n_) squares_[last] = 0;
    if (last <= first + 1) {
      if (last > first) SolveTwo(first);
      first = last + 1;
      continue;
    }
    if (StopRequested()) return true;
    if (--*sweeps < 0) return false;
    Sweep(first, last);
  }
  return true;
}

// Computes the values of two rows. The lesser one is made of the larger one, so that nothing cancels.
template <typename R>
void Block<R>::SolveTwo(int64_t first) {
  const R a = d_[first], c = d_[first + 1], b = std::sqrt(squares_[first]);
  const R sum = a + c, root = std::hypot(a - c, 2 * b);
  if (sum == 0) {
    d_[first] = root / 2;
    d_[first + 1] = -root / 2;
    return;
  }
  const bool is_first_larger = std::abs(a) > std::abs(c);
  const R larger = (sum + std::copysign(root, sum)) / 2;
  d_[first] = larger;
  d_[first + 1] = ((is_first_larger ? a : c) / larger) * (is_first_larger ? c : a) - (b / larger) * b;
}

// Wilkinson's: the value of the first two rows that is nearer to the first.
template <typename R>
R Block<R>::Shift(int64_t first) const {
  const R root = std::sqrt(squares_[first]);
  const R ratio = (d_[first + 1] - d_[first]) / (2 * root);
  return d_[first] - root / (ratio + std::copysign(std::hypot(ratio, R(1)), ratio));
}

template <typename R>
void Block<R>::Sweep(int64_t first, int64_t last) {
  const R shift = Shift(first);
  R cosine = 1, sine = 0, gamma = d_[last] - shift, p = gamma * gamma;
  for (int64_t i = last - 1; i >= first; --i) {
    const R square = squares_[i], r = p + square;
    if (i != last - 1) squares_[i + 1] = sine * r;
    const R former_cosine = cosine, former_gamma = gamma, alpha = d_[i];
    cosine = p / r;
    sine = square / r;
    gamma = cosine * (alpha - shift) - sine * former_gamma;
    d_[i + 1] = former_gamma + (alpha - gamma);
    p = cosine != 0 ? gamma * gamma / cosine : former_cosine * square;
  }
  squares_[first] = sine * p;
  d_[first] = shift + gamma;
}

// Without zeros beside the diagonal, of any scale.
template <typename R>
bool SolveBlock(int64_t n, R* diagonal, R* beside, int64_t* sweeps) {
  const R largest = std::max(LargestOf(diagonal, n), LargestOf(beside, n - 1));
  const int exponent = largest > 0 ? std::ilogb(largest) : 0;
  ScaleBy(-exponent, diagonal, n);
  ScaleBy(-exponent, beside, n - 1);
  for (int64_t i = 0; i + 1 < n; ++i) beside[i] *= beside[i];
  // QL finds the small values first; of a matrix that is graded the other way they are at its end.
  if (std::abs(diagonal[n - 1]) < std::abs(diagonal[0])) {
    std::reverse(diagonal, diagonal + n);
    std::reverse(beside, beside + n - 1);
  }
  const bool converges = Block<R>(n, diagonal, beside).Solve(sweeps);
  ScaleBy(exponent, diagonal, n);
  return converges;
}

}  // namespace

template <typename R>
int64_t TridiagonalValues(int64_t n, R* diagonal, R* beside) {
  int64_t sweeps = kSweepsOfRow * n;
  for (int64_t begin = 0, end = 1; begin < n; begin = end++) {
    while (end < n && IsJoined(diagonal, beside, end - 1)) ++end;
    if (!SolveBlock(end - begin, diagonal + begin, beside + begin, &sweeps)) return end;
    if (StopRequested()) return 0;
  }
  std::sort(diagonal, diagonal + n);
  return 0;
}

template int64_t TridiagonalValues(int64_t n, float* diagonal, float* beside);
template int64_t TridiagonalValues(int64_t n, double* diagonal, double* beside);

}  // namespace tensord::cpu
