// erf as vector code where there are tables in registers; SLEEF's elsewhere. Any value, exact at the edges, within 2
// ulp elsewhere. A lane's bits depend on that lane alone. Coefficients are minimax polynomials of this project.
#if defined(TENSORD_BACKENDS_CPU_VECTOR_MATH_ERF_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORD_BACKENDS_CPU_VECTOR_MATH_ERF_INL_H_
#undef TENSORD_BACKENDS_CPU_VECTOR_MATH_ERF_INL_H_
#else
#define TENSORD_BACKENDS_CPU_VECTOR_MATH_ERF_INL_H_
#endif

#include "backends/cpu/vector_math_base-inl.h"
#include "backends/cpu/vector_math_lookup-inl.h"
#include "backends/cpu/vector_math_sleef-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {

#if TENSORD_HAVE_LOOKUP

// erf(t) / t around 0, w, 2 w, … 15 w: a row for each power of the distance, lowest first, and what
// rounding took from the first. From the limit on erf is 1.
template <typename T>
struct ErfTable;

template <>
struct ErfTable<float> {
  static constexpr float kLimit = 3.92f;
  static constexpr float kWidth = 0x1.051eb8p-2f;
  static constexpr float kPerWidth = 0x1.f5f5f6p+1f;
  HWY_ALIGN static constexpr float kPoly[][16] = {
      {0x1.20dd76p+0f, 0x1.1ab964p+0f, 0x1.09a8d8p+0f, 0x1.e2585p-1f, 0x1.ab165ap-1f, 0x1.74e8bap-1f, 0x1.44707ep-1f,
       0x1.1b829ap-1f, 0x1.f3fefcp-2f, 0x1.bdaa1ap-2f, 0x1.9171a2p-2f, 0x1.6d092ap-2f, 0x1.4ea2aep-2f, 0x1.34e5eap-2f,
       0x1.1ed5aap-2f, 0x1.0bb66p-2f},
      {-0x1.04376cp-33f, -0x1.79e114p-3f, -0x1.50e0c4p-2f, -0x1.a3c41ep-2f, -0x1.b530fap-2f, -0x1.969df4p-2f,
       -0x1.5f6c2p-2f, -0x1.22e80ap-2f, -0x1.d88a46p-3f, -0x1.7f2f14p-3f, -0x1.397fb6p-3f, -0x1.03f5bp-3f,
       -0x1.b54d6cp-4f, -0x1.74b446p-4f, -0x1.41612ap-4f, -0x1.17f5ccp-4f},
      {-0x1.812746p-2f, -0x1.55c70ap-2f, -0x1.cc920ep-3f, -0x1.7b6b9p-4f, 0x1.461204p-6f, 0x1.6e22a6p-4f,
       0x1.d9f0d2p-4f, 0x1.cce1aep-4f, 0x1.87411cp-4f, 0x1.3615e6p-4f, 0x1.dde67cp-5f, 0x1.6f2bb2p-5f, 0x1.1d068cp-5f,
       0x1.c16808p-6f, 0x1.680904p-6f, 0x1.24c2b8p-6f},
      {-0x1.6682f4p-21f, 0x1.b4304ep-4f, 0x1.585adep-3f, 0x1.5794aap-3f, 0x1.f0d91ap-4f, 0x1.f04e0ap-5f, 0x1.784afcp-7f,
       -0x1.0a416cp-6f, -0x1.a672f2p-6f, -0x1.9862e8p-6f, -0x1.4b514ep-6f, -0x1.f2cfc4p-7f, -0x1.6e752p-7f,
       -0x1.0dd17ap-7f, -0x1.92e83ep-8f, -0x1.3212f2p-8f},
      {0x1.ce3df8p-4f, 0x1.68fb8cp-4f, 0x1.e929fp-6f, -0x1.c52a7ep-6f, -0x1.d9dd34p-5f, -0x1.d16c6p-5f, -0x1.36d81cp-5f,
       -0x1.18493cp-6f, -0x1.840bdcp-9f, 0x1.d179f6p-9f, 0x1.4ec92p-8f, 0x1.2792ap-8f, 0x1.bdc5ap-9f, 0x1.3dacdcp-9f,
       0x1.c033e6p-10f, 0x1.3f8128p-10f},
      {-0x1.3197d2p-13f, -0x1.28be6p-5f, -0x1.978404p-5f, -0x1.29d4bcp-5f, -0x1.58ae36p-7f, 0x1.45e9e4p-7f,
       0x1.199888p-6f, 0x1.d24ee6p-7f, 0x1.025fc8p-7f, 0x1.6b4702p-9f, 0x1.96762p-14f, -0x1.a2406ep-11f,
       -0x1.c01872p-11f, -0x1.5bc9aap-11f, -0x1.e6b0f8p-12f, -0x1.4b8996p-12f},
      {-0x1.ade4e4p-6f, -0x1.26e97ep-6f, 0x1.9037a6p-11f, 0x1.ebe0c6p-7f, 0x1.11ee7ap-6f, 0x1.2d9d3p-7f,
       0x1.61f10ep-11f, -0x1.ebaf32p-9f, -0x1.0940d8p-8f, -0x1.4bc51cp-9f, -0x1.140e2p-10f, -0x1.d17a9cp-13f,
       0x1.699f2ap-14f, 0x1.26ec48p-13f, 0x1.e195b6p-14f, 0x1.4d0022p-14f}};
  HWY_ALIGN static constexpr float kRest[16] = {-0x1.f7ac3cp-25f, 0x1.bc1d26p-26f,  -0x1.5b3002p-27f, -0x1.7abdeep-27f,
                                                0x1.94eabep-26f,  -0x1.851764p-26f, -0x1.afb122p-27f, 0x1.51b16p-27f,
                                                -0x1.3f47a2p-27f, 0x1.9b3582p-29f,  0x1.63f49ep-28f,  0x1.c045cp-27f,
                                                0x1.ed115ap-27f,  -0x1.de1296p-29f, -0x1.c6acf2p-27f, 0x1.0e7f42p-28f};
};

template <>
struct ErfTable<double> {
  static constexpr double kLimit = 5.93;
  static constexpr double kWidth = 0x1.89374bc6a7efap-2;
  static constexpr double kPerWidth = 0x1.4d55555555555p+1;
  HWY_ALIGN static constexpr double kPoly[][16] = {
      {0x1.20dd750429b6dp+0, 0x1.1345ff21b3b8p+0, 0x1.e1b702ed15e98p-1, 0x1.8e8b3e373569cp-1, 0x1.436324a811de5p-1,
       0x1.08e69ec30f8a6p-1, 0x1.bbf2466f0711ap-2, 0x1.7ce5c72f184dbp-2, 0x1.4d5424565a861p-2, 0x1.284bc63ee54bcp-2,
       0x1.0aaaa9af5c727p-2, 0x1.e4d9363ab3c91p-3, 0x1.bc71c71be894ep-3, 0x1.9a41a41a3eb3bp-3, 0x1.7cf3cf3cf3c31p-3,
       0x1.638e38e38e38cp-3},
      {-0x1.6216e49845ebp-66, -0x1.0ef46054739f9p-2, -0x1.a454a0ecc86b7p-2, -0x1.a9e021856deacp-2,
       -0x1.5dffd16033dfcp-2, -0x1.04db2231270dap-2, -0x1.7c67cecc9dc34p-3, -0x1.1ac7b746d4c39p-3,
       -0x1.b1e6dc81128b2p-4, -0x1.56ed2e442f3fp-4, -0x1.15c6fc4d704dfp-4, -0x1.cb23043096223p-5, -0x1.81cd6e895b933p-5,
       -0x1.48bb293bf2651p-5, -0x1.1b725bb802891p-5, -0x1.edd3c0ca4579fp-6},
      {-0x1.812746b0379e7p-2, -0x1.236fab5aaa739p-2, -0x1.753de5f805ad9p-4, 0x1.f9a285d0c6a63p-5, 0x1.dac0fe9ad48dap-4,
       0x1.ab9dfab80c0eap-4, 0x1.33560a8f6a7f4p-4, 0x1.9e1345da97833p-5, 0x1.19c05b0752875p-5, 0x1.8cc9179357699p-6,
       0x1.2158137ceeaacp-6, 0x1.b2c9b7c8a1f74p-7, 0x1.4ee5e0466e454p-7, 0x1.0768051b370f3p-7, 0x1.a5cbb326cf2e5p-8,
       0x1.56ef7ec559acdp-8},
      {-0x1.e85018e107fafp-51, 0x1.29668398d05fdp-3, 0x1.56e57d83962cap-3, 0x1.6f52c5586bcb5p-4, 0x1.5aa07fde2fb13p-7,
       -0x1.7a3e811348dc5p-6, -0x1.964095cd74c7ap-6, -0x1.1da5446839adfp-6, -0x1.6925e329036cp-7, -0x1.ca2e7f5be3d5bp-8,
       -0x1.2d53f0f289d1cp-8, -0x1.9bb94b37860acp-9, -0x1.22b5b3023908dp-9, -0x1.a620217d108efp-10,
       -0x1.39d609d97e35dp-10, -0x1.dc4ca1d90ff38p-11},
      {0x1.ce2f21a043c7dp-4, 0x1.f2365bc1b5641p-5, -0x1.ce1d3c4fbd4ffp-6, -0x1.f068f649d6d81p-5, -0x1.32969da1b9e5ap-5,
       -0x1.1958ffd919364p-7, 0x1.e1435c271a1b2p-9, 0x1.425706d4dd73bp-8, 0x1.b70e6ec54bbcp-9, 0x1.05ce30e756853p-9,
       0x1.395e33fa993ebp-10, 0x1.85d51e547d88p-11, 0x1.f8b3249cae839p-12, 0x1.523dd0160e197p-12, 0x1.d3049a732f021p-13,
       0x1.4ac37063531e1p-13},
      {-0x1.5a77fc9ea2931p-39, -0x1.8132c5422a207p-5, -0x1.28adb61ca7d4fp-5, 0x1.b752555d92faap-10,
       0x1.1bb7ea76eea82p-6, 0x1.65a173a4f4bffp-7, 0x1.5608353ccefbdp-9, -0x1.2334401a75d59p-11, -0x1.bdd3961fee3cbp-11,
       -0x1.1f0f4a81f167ap-11, -0x1.439b0cac65622p-12, -0x1.70ce488008e45p-13, -0x1.b61357cb50ed7p-14,
       -0x1.0f0698b7f30fp-14, -0x1.5b7bcb1c362e7p-15, -0x1.cb64c6a61abb5p-16},
      {-0x1.b82ce3003befp-6, -0x1.227476de0f5d6p-7, 0x1.f28e7451871eep-7, 0x1.ba6615101f9c6p-7, 0x1.f5cb16fa4c927p-12,
       -0x1.1a8bdf94682dbp-8, -0x1.43bafae42cf5ap-9, -0x1.0f2aaa82533cep-11, 0x1.8c1722d03a7p-14, 0x1.10ff2e704adb2p-13,
       0x1.44da4a65682fp-14, 0x1.5b802f27418ebp-15, 0x1.7c19129068ce3p-16, 0x1.b252d13711795p-17, 0x1.028b43252173ap-17,
       0x1.3f05faebb7fe8p-18},
      {-0x1.500daaea773fdp-30, 0x1.67b2575b4b711p-7, 0x1.2b29ddd2942ddp-8, -0x1.28064f81205c7p-8, -0x1.f0e3f99d4ec2fp-9,
       -0x1.5cdfa06e7266p-15, 0x1.f2e30995b1a12p-11, 0x1.d2834c2ec7bc7p-12, 0x1.2eb4bd5d3a8cp-14,
       -0x1.1d7a51c348834p-16, -0x1.276d760a59f2dp-16, -0x1.41fc63057fb5ap-17, -0x1.49240d50b3845p-18,
       -0x1.5bf3899ffbc9cp-19, -0x1.80bc039800a62p-20, -0x1.bb167d64156eep-21},
      {0x1.565c104b514d9p-8, 0x1.76e4f3277519bp-11, -0x1.ef621000f1a61p-9, -0x1.6407ed0b907a3p-10,
       0x1.510f931601f3ap-10, 0x1.b0a79ed26be86p-11, -0x1.deb8ba7093f26p-15, -0x1.79a5c785b86d5p-13,
       -0x1.0a2095bc772cp-14, -0x1.ccacb8c1eb367p-18, 0x1.7171ac6f40945p-19, 0x1.18f778bd59f8ap-19,
       0x1.1a9ae44c24a91p-20, 0x1.16878e7507cf4p-21, 0x1.1e3e4b425e7b7p-22, 0x1.33b2f9b872feap-23},
      {-0x1.2f8c7de18db58p-23, -0x1.0742055ae42f3p-9, -0x1.8a194b66c68a5p-13, 0x1.2832a122927a8p-10,
       0x1.fda1d9e235ecdp-13, -0x1.57e151acec4fdp-12, -0x1.191f11aa7a5d9p-13, 0x1.be37863ffe884p-16,
       0x1.d46e84f42f07bp-16, 0x1.d762aa507aeedp-18, 0x1.7744b9f7a3f36p-22, -0x1.8c6cc7022031ep-22,
       -0x1.d630300956d33p-23, -0x1.bc4c36d764b9p-24, -0x1.a9d053703ef05p-25, -0x1.ab5a56cf4c6ffp-26},
      {-0x1.bfb551da9e5afp-11, 0x1.1149d044fe8eep-15, 0x1.51f6dd3caeabep-11, -0x1.03bcf90994d95p-15,
       -0x1.256ba7c5ed89ep-12, -0x1.7707315a2379p-17, 0x1.1d964bfabc0a2p-14, 0x1.e3a83cbbe691cp-17,
       -0x1.b0dea6c9d6ec4p-18, -0x1.caee6fc3a3b8bp-19, -0x1.3990ef63e32fbp-21, 0x1.a8e7b798fc9ap-27,
       0x1.5e7d73ee4838bp-25, 0x1.5d5996357bbd9p-26, 0x1.3c4e46d1e2c5ep-27, 0x1.28be47389ad44p-28},
      {-0x1.06f5fefbe03d7p-18, 0x1.3c929d4aa334bp-12, -0x1.f0b4450ad4e8ap-15, -0x1.57ecc30a5236ep-13,
       0x1.4a76dcfcfe8b4p-15, 0x1.b9d610f18cf61p-15, -0x1.02c1c3cf8c197p-17, -0x1.64b55606020e5p-17,
       -0x1.2e94e13563608p-21, 0x1.1629df5e95164p-20, 0x1.599ab475cb06p-22, 0x1.245e9601eca39p-25,
       -0x1.48e749126755fp-28, -0x1.0526c88dd63acp-28, -0x1.d364b2322705cp-30, -0x1.9bf264fc06ff4p-31},
      {0x1.14671cf3eb17ap-13, -0x1.7f7e9744e7672p-16, -0x1.590a08d81833ep-14, 0x1.1f2d17868c908p-15,
       0x1.e9b7338ff1c3cp-16, -0x1.e79a645b71a88p-17, -0x1.b8f04610a2826p-18, 0x1.59bfc842ee5fp-19,
       0x1.35c7407ba257bp-20, -0x1.dafcfdeb3f8a1p-24, -0x1.f9e132c3c193cp-24, -0x1.8cad15acff564p-26,
       -0x1.3a85b4b4b570dp-30, 0x1.4313efa15de46p-31, 0x1.5361e8895edcfp-32, 0x1.1e853e6aa7552p-33},
      {-0x1.41c19316d8ec5p-16, -0x1.3de9d86d9220ap-15, 0x1.1ea8d77b6d6b4p-16, 0x1.01ae373abb9aep-16,
       -0x1.8a0d56ce230b6p-17, -0x1.60c7c9bc1711p-19, 0x1.b0bc611e1a681p-19, 0x1.5da44322e121bp-22,
       -0x1.e28e6dd97122dp-22, -0x1.34cc4a1b0829p-24, 0x1.c5afd9c808825p-26, 0x1.4f17c10f03ad9p-27,
       0x1.4448a8962fabep-30, -0x1.af38720fd7368p-36, -0x1.c89164f5b29bap-35, -0x1.8a43a3ec0cbe9p-36}};
  HWY_ALIGN static constexpr double kRest[16] = {
      0x1.1ae3b42e46ad7p-56,  -0x1.3e11b7ae2dd7bp-54, -0x1.64c7005a9923cp-55, -0x1.11ee672a000fcp-58,
      -0x1.a33dee354cb71p-56, 0x1.1a8fce53691c4p-55,  -0x1.0e42a2df575aep-59, -0x1.4a8bca322b3dbp-57,
      -0x1.9a0bda095cec7p-57, 0x1.a761d5cdc3ef9p-56,  0x1.7f76f8efca619p-56,  0x1.3933be148ced4p-59,
      -0x1.90ca29716be7bp-60, 0x1.9f9d7568cbd9fp-58,  0x1.e7cf847f10d9p-57,   -0x1.0db757e2a714dp-57};
};

template <class D, class V>
HWY_INLINE V Erf(D d, V x) {
  using T = hn::TFromD<D>;
  using C = ErfTable<T>;
  const hn::RebindToUnsigned<D> du;
  const V magnitude = hn::Abs(x);
  const V rounder = hn::Set(d, FloatLayout<T>::kRounder);
  const V shifted = hn::MulAdd(magnitude, hn::Set(d, C::kPerWidth), rounder);
  const V r = hn::NegMulAdd(hn::Sub(shifted, rounder), hn::Set(d, C::kWidth), magnitude);
  const auto index = hn::BitCast(du, shifted);
  constexpr size_t kCount = sizeof(C::kPoly) / sizeof(C::kPoly[0]);
  V quotient = Lookup(C::kPoly[kCount - 1], index);
  for (size_t i = kCount - 1; i-- > 1;) quotient = hn::MulAdd(quotient, r, Lookup(C::kPoly[i], index));
  quotient = hn::Add(Lookup(C::kPoly[0], index), hn::MulAdd(quotient, r, Lookup(C::kRest, index)));
  const V one = hn::CopySign(hn::Set(d, 1), x);
  return hn::IfThenElse(hn::Ge(magnitude, hn::Set(d, C::kLimit)), one, hn::Mul(quotient, x));
}

#else

template <class D, class V>
HWY_INLINE V Erf(D d, V x) {
  return ErfBySleef(d, x);
}

#endif  // TENSORD_HAVE_LOOKUP

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#endif  // TENSORD_BACKENDS_CPU_VECTOR_MATH_ERF_INL_H_
