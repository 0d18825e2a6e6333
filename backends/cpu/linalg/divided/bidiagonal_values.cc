#include "backends/cpu/linalg/divided/bidiagonal_values.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "backends/cpu/linalg/lapack/copies.h"
#include "backends/cpu/linalg/lapack/sweep.h"
#include "engine/base/stop_signal.h"

namespace tensord::cpu {
namespace {

// The arrays q and e of a matrix R^T·R, whose eigenvalues are the squares sought: q[i] = diagonal[i]², e[i] =
// beside[i]². Each has two places, `turn` 0 and 1, and a sweep goes from one to the other.
template <typename R>
struct QdArrays {
  R* z;
  R& q(int64_t i, int turn) const { return z[4 * i + turn]; }
  R& e(int64_t i, int turn) const { return z[4 * i + 2 + turn]; }
  // Reverses rows [first, last], with both places. The eigenvalues stay.
  void Reverse(int64_t first, int64_t last) const {
    for (int64_t i = first, k = last; i < k; ++i, --k) std::swap_ranges(z + 4 * i, z + 4 * i + 2, z + 4 * k);
    for (int64_t i = first, k = last - 1; i < k; ++i, --k)
      std::swap_ranges(z + 4 * i + 2, z + 4 * i + 4, z + 4 * k + 2);
  }
};

template <typename R>
class Dqds {
 public:
  Dqds(int64_t n, R* z) : n_(n), last_(n - 1), arrays_{z} {}

  // Leaves the eigenvalues in q of turn 0.
  int64_t Run();

 private:
  // A product with it is negligible beside the other factor's square.
  static constexpr R kTiny = 10'000 * std::numeric_limits<R>::epsilon() * std::numeric_limits<R>::epsilon();
  // An eigenvalue more than so many rows' sweeps is not coming.
  static constexpr int64_t kSweepsOfRow = 100;

  void ReverseIfGrowing();
  void SplitFromBelow(int turn);
  void SweepAndSplit(int turn);
  bool FindBlock();
  void ReverseIfLeastIsFirst();
  bool SolveBlock();
  void SplitBlock();

  const int64_t n_;
  int64_t first_ = 0, last_;  // of the block at work; what is behind it is solved
  const QdArrays<R> arrays_;
  lapack::SweepState<R> state_;
};

// The iteration finds the small values first, at the end.
template <typename R>
void Dqds<R>::ReverseIfGrowing() {
  if (R(1.5) * arrays_.q(0, 0) < arrays_.q(last_, 0)) arrays_.Reverse(0, last_);
}

// Parts blocks by Li's test, from the last row upwards. Zeros that part them are negative.
template <typename R>
void Dqds<R>::SplitFromBelow(int turn) {
  R d = arrays_.q(last_, turn);
  for (int64_t i = last_ - 1; i >= 0; --i) {
    R &q = arrays_.q(i, turn), &e = arrays_.e(i, turn);
    if (e <= kTiny * d) {
      e = R(-0.0);
      d = q;
    } else {
      d = q * (d / (d + e));
    }
  }
}

// A sweep without a shift, with the same test downwards.
template <typename R>
void Dqds<R>::SweepAndSplit(int turn) {
  constexpr R kLeast = std::numeric_limits<R>::min();
  const int other = 1 - turn;
  R d = arrays_.q(0, turn);
  for (int64_t i = 0; i < last_; ++i) {
    R& e = arrays_.e(i, turn);
    const R next = arrays_.q(i + 1, turn), q = d + e;
    arrays_.q(i, other) = q;
    if (e <= kTiny * d) {
      e = R(-0.0);
      arrays_.q(i, other) = d;
      arrays_.e(i, other) = 0;
      d = next;
    } else if (kLeast * next < q && kLeast * q < next) {
      const R ratio = next / q;
      arrays_.e(i, other) = e * ratio;
      d *= ratio;
    } else {
      arrays_.e(i, other) = next * (e / q);
      d = next * (d / q);
    }
  }
  arrays_.q(last_, other) = d;
}

// The last block that is left, with bounds of its numbers. False if the arrays make no sense.
template <typename R>
bool Dqds<R>::FindBlock() {
  state_.shift_error = 0;
  state_.shift = last_ == n_ - 1 ? R(0) : -arrays_.e(last_, 0);
  if (state_.shift < 0) return false;
  R least = arrays_.q(last_, 0), largest_beside = 0;
  state_.largest = least;
  for (first_ = last_; first_ > 0; --first_) {
    const R e = arrays_.e(first_ - 1, 0), q = arrays_.q(first_ - 1, 0);
    if (e <= 0) break;
    if (least >= 4 * largest_beside) {
      least = std::min(least, arrays_.q(first_, 0));
      largest_beside = std::max(largest_beside, e);
    }
    state_.largest = std::max(state_.largest, q + e);
  }
  state_.turn = 0;
  ReverseIfLeastIsFirst();
  // Gershgorin's bound of the least value, not tried unless it is positive.
  state_.least = -std::max(R(0), least - 2 * std::sqrt(least) * std::sqrt(largest_beside));
  return true;
}

// The least number that a sweep leaves on the diagonal tells at which end the least value lies.
template <typename R>
void Dqds<R>::ReverseIfLeastIsFirst() {
  if (last_ - first_ <= 1) return;
  R d = arrays_.q(first_, 0), least = d;
  int64_t home = first_;
  for (int64_t i = first_ + 1; i <= last_; ++i) {
    const R q = arrays_.q(i, 0);
    d = q * (d / (d + arrays_.e(i - 1, 0)));
    if (d <= least) {
      least = d;
      home = i;
    }
  }
  if (2 * (home - first_) >= last_ - home || least > arrays_.q(last_, 0) / 2) return;
  arrays_.Reverse(first_, last_);
  state_.turn = 2;
}

// Sweeps until the block has no rows left. False if that takes too many sweeps.
template <typename R>
bool Dqds<R>::SolveBlock() {
  for (int64_t sweeps = kSweepsOfRow * (last_ - first_ + 1); first_ <= last_; --sweeps) {
    if (StopRequested()) return true;
    if (sweeps <= 0) return false;
    lapack::DqdsSweep(first_, &last_, arrays_.z, &state_);
    state_.turn = 1 - state_.turn;
    if (state_.turn == 0 && last_ - first_ >= 3) SplitBlock();
  }
  return true;
}

// Splits the block at a very small e: the rows before it wait for their turn, with their shift.
template <typename R>
void Dqds<R>::SplitBlock() {
  if (arrays_.e(last_, 1) > kTiny * state_.largest && arrays_.e(last_, 0) > kTiny * state_.shift) return;
  int64_t begin = first_;
  R largest = arrays_.q(first_, 0), least = arrays_.e(first_, 0), former_least = arrays_.e(first_, 1);
  for (int64_t i = first_; i <= last_ - 3; ++i) {
    if (arrays_.e(i, 1) <= kTiny * arrays_.q(i, 0) || arrays_.e(i, 0) <= kTiny * state_.shift) {
      arrays_.e(i, 0) = -state_.shift;
      begin = i + 1;
      largest = 0;
      least = arrays_.e(i + 1, 0);
      former_least = arrays_.e(i + 1, 1);
    } else {
      largest = std::max(largest, arrays_.q(i + 1, 0));
      least = std::min(least, arrays_.e(i, 0));
      former_least = std::min(former_least, arrays_.e(i, 1));
    }
  }
  state_.largest = largest;
  arrays_.e(last_, 0) = least;
  arrays_.e(last_, 1) = former_least;
  first_ = begin;
}

template <typename R>
int64_t Dqds<R>::Run() {
  ReverseIfGrowing();
  for (const int turn : {0, 1}) {
    SplitFromBelow(turn);
    SweepAndSplit(turn);
  }
  while (last_ >= 0 && !StopRequested()) {
    if (!FindBlock() || !SolveBlock()) return last_ + 1;
  }
  return 0;
}

}  // namespace

template <typename R>
int64_t BidiagonalValues(int64_t n, R* diagonal, const R* beside, R* work) {
  using Limits = std::numeric_limits<R>;
  const R largest = n > 0 ? std::max(LargestOf(diagonal, n), LargestOf(beside, n - 1)) : R(0);
  if (largest == 0) {
    std::fill_n(diagonal, n, R(0));
    return 0;
  }
  // The largest exponent at which squares, and sums of some, still fit, so that small numbers have room below.
  constexpr int kExponent = (2 - Limits::digits - Limits::min_exponent) / 2;
  const int exponent = kExponent - std::ilogb(largest);
  const auto squared = [exponent](R x) {
    const R scaled = std::scalbn(x, exponent);
    return scaled * scaled;
  };
  const QdArrays<R> arrays{work};
  for (int64_t i = 0; i < n; ++i) {
    arrays.q(i, 0) = squared(diagonal[i]);
    arrays.e(i, 0) = i + 1 < n ? squared(beside[i]) : R(0);
    arrays.q(i, 1) = arrays.e(i, 1) = 0;
  }
  const int64_t info = Dqds<R>(n, work).Run();
  for (int64_t i = 0; i < n; ++i) diagonal[i] = std::scalbn(std::sqrt(arrays.q(i, 0)), -exponent);
  std::sort(diagonal, diagonal + n, std::greater<R>());
  return info;
}

template int64_t BidiagonalValues(int64_t n, float* diagonal, const float* beside, float* work);
template int64_t BidiagonalValues(int64_t n, double* diagonal, const double* beside, double* work);

}  // namespace tensord::cpu
