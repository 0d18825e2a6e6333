// Products of complex numbers that lie as pairs of reals, without fused operations. Written out because g++ 12 makes
// fused multiply-add-subtracts of the plain loops in spite of -ffp-contract=off, so that an element's bits would depend
// on its place in its row.
#if defined(TENSORD_BACKENDS_CPU_MATH_COMPLEX_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORD_BACKENDS_CPU_MATH_COMPLEX_PRODUCT_INL_H_
#undef TENSORD_BACKENDS_CPU_MATH_COMPLEX_PRODUCT_INL_H_
#else
#define TENSORD_BACKENDS_CPU_MATH_COMPLEX_PRODUCT_INL_H_
#endif

#include "hwy/highway.h"

#if HWY_TARGET != HWY_SCALAR  // which has no vectors that hold a pair, and makes none of a plain loop

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V>
HWY_INLINE V ComplexProduct(D d, V a, V b) {
  const V by_real = hn::Mul(hn::DupEven(a), b);
  const V by_imag = hn::Mul(hn::DupOdd(a), hn::Reverse2(d, b));
  return hn::Add(by_real, hn::Xor(by_imag, hn::OddEven(hn::Zero(d), hn::SignBit(d))));
}

// One number to multiply many by.
template <class V>
struct ComplexFactor {
  V real;
  V imag;  // negative in the places of real parts
};

template <class D>
HWY_INLINE ComplexFactor<hn::Vec<D>> MakeComplexFactor(D d, const hn::TFromD<D>* factor) {
  return {hn::Set(d, factor[0]), hn::OddEven(hn::Set(d, factor[1]), hn::Set(d, -factor[1]))};
}

// The same bits as ComplexProduct.
template <class D, class V>
HWY_INLINE V ComplexProduct(D d, V a, ComplexFactor<V> b) {
  return hn::Add(hn::Mul(a, b.real), hn::Mul(hn::Reverse2(d, a), b.imag));
}

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET != HWY_SCALAR

#endif  // TENSORD_BACKENDS_CPU_MATH_COMPLEX_PRODUCT_INL_H_
