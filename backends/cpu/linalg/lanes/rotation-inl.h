// Jacobi's rotations of matrices that lie across lanes.
#if defined(TENSORD_BACKENDS_CPU_LINALG_LANES_ROTATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORD_BACKENDS_CPU_LINALG_LANES_ROTATION_INL_H_
#undef TENSORD_BACKENDS_CPU_LINALG_LANES_ROTATION_INL_H_
#else
#define TENSORD_BACKENDS_CPU_LINALG_LANES_ROTATION_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "backends/cpu/linalg/lanes/lanes-inl.h"

#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {

constexpr int kJacobiScale = 200;  // entries near 2^200: squares of squares are numbers, and those of 2^-400 of them
constexpr int kMaxSweeps = 30;     // four to eight are usual

// (x, y) -> (cosine·x - conj(sine)·y, sine·x + cosine·y).
template <class N>
struct Rotation {
  Reals<typename N::Real> cosine;
  N sine;
  Reals<typename N::Real> change;  // what the second diagonal entry gains and the first one loses
  Lanes<typename N::Real> lanes;   // that turn
};

// Makes a rotation by at most 45° that takes the off-diagonal entry of [[a, off], [conj(off), a + difference]] to zero;
// lanes outside of `mask` stay as they are. H. Rutishauser, "The Jacobi method for real symmetric matrices" (1966).
template <class N>
HWY_INLINE Rotation<N> MakeRotation(Lanes<typename N::Real> mask, Reals<typename N::Real> difference, N off,
                                    Reals<typename N::Real> off_square) {
  using T = typename N::Real;
  const Reals<T> one = SetReal(T(1));
  const Reals<T> length = N::kParts == 1 ? off.re : hn::Sqrt(off_square);
  const Reals<T> cotangent = hn::Div(difference, hn::Add(length, length));  // of twice the angle
  const Reals<T> steep = hn::Abs(cotangent), capped = hn::Min(steep, SetReal(T(1e150)));
  const Reals<T> root = hn::Max(steep, hn::Sqrt(hn::MulAdd(capped, capped, one)));
  Reals<T> tangent = hn::CopySign(hn::Div(one, hn::Add(steep, root)), cotangent);
  tangent = hn::IfThenElseZero(mask, tangent);
  Rotation<N> rotation;
  rotation.lanes = mask;
  rotation.cosine = hn::Div(one, hn::Sqrt(hn::MulAdd(tangent, tangent, one)));
  rotation.change = hn::Mul(tangent, hn::IfThenElseZero(mask, length));
  const Reals<T> sine = hn::Mul(rotation.cosine, tangent);
  if constexpr (N::kParts == 1) {
    rotation.sine = {sine};
  } else {
    const Reals<T> scale = hn::Div(sine, length);
    rotation.sine = Select(mask, Scale(off, scale), Constant<N>(0));
  }
  return rotation;
}

// Rotates `count` entries of two columns or rows; kConjugates: y is stored as its conjugate.
template <class N, bool kConjugates = false>
HWY_INLINE void Rotate(const Rotation<N>& rotation, int64_t count, typename N::Real* x, int64_t x_step,
                       typename N::Real* y, int64_t y_step) {
  const N sine = rotation.sine, conjugate = Conj(rotation.sine);
  for (int64_t i = 0; i < count; ++i, x += x_step, y += y_step) {
    const N a = Get<N>(x), b = kConjugates ? Conj(Get<N>(y)) : Get<N>(y);
    Put(NegMulAdd(conjugate, b, Scale(a, rotation.cosine)), x);
    const N turned = MulAdd(sine, a, Scale(b, rotation.cosine));
    Put(kConjugates ? Conj(turned) : turned, y);
  }
}

// Pairs (p, q), p < q, that have nothing in common.
struct PairsOfRound {
  static constexpr int64_t kMost = kMaxSmallMatrixSize / 2;
  int64_t count = 0;
  int64_t first[kMost], second[kMost];

  // Pairs all n, each pair once in n - 1 rounds, or n rounds for odd n: the order of a round-robin tournament, after R.
  // P. Brent and F. T. Luk (1985).
  PairsOfRound(int64_t n, int64_t round) {
    const int64_t players = n + n % 2;
    for (int64_t k = 0; k < players / 2; ++k) {
      const int64_t p = k == 0 ? players - 1 : (round + k) % (players - 1);
      const int64_t q = k == 0 ? round : (round - k + players - 1) % (players - 1);
      if (std::max(p, q) == n) continue;
      first[count] = std::min(p, q);
      second[count] = std::max(p, q);
      ++count;
    }
  }
};

// Sweeps over all pairs of n until none needs a rotation. choose(p, q, &rotation) says in which lanes one is needed,
// apply(p, q, rotation) does it. All rotations of a round are chosen first: none waits for another one's divisions.
template <class N, class Choose, class Apply>
HWY_INLINE void RotateUntilDone(int64_t n, const Choose& choose, const Apply& apply, LaneInfo<typename N::Real>* info) {
  using T = typename N::Real;
  const Tag<T> d;
  auto rotated = hn::MaskFromVec(hn::Zero(d));
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    rotated = hn::MaskFromVec(hn::Zero(d));
    for (int64_t round = 0; round + 1 < n + n % 2; ++round) {
      const PairsOfRound pairs(n, round);
      Rotation<N> rotations[PairsOfRound::kMost];
      bool is_needed[PairsOfRound::kMost];
      for (int64_t i = 0; i < pairs.count; ++i) {
        const auto needed = choose(pairs.first[i], pairs.second[i], &rotations[i]);
        is_needed[i] = !hn::AllFalse(d, needed);
        rotated = hn::Or(rotated, needed);
      }
      for (int64_t i = 0; i < pairs.count; ++i) {
        if (is_needed[i]) apply(pairs.first[i], pairs.second[i], rotations[i]);
      }
    }
    if (hn::AllFalse(d, rotated)) return;
  }
  info->Fail(rotated, 1);
}

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

#endif  // TENSORD_BACKENDS_CPU_LINALG_LANES_ROTATION_INL_H_
