// erf as vector code where there are tables in registers; SLEEF's elsewhere. Any value, exact at the edges, within 2
// ulp elsewhere. A lane's bits depend on that lane alone. Coefficients are minimax polynomials of this project.
#if defined(TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_ERF_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_ERF_INL_H_
#undef TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_ERF_INL_H_
#else
#define TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_ERF_INL_H_
#endif

#include "backends/cpu/math/vector_math_base-inl.h"
#include "backends/cpu/math/vector_math_lookup-inl.h"
#include "backends/cpu/math/vector_math_sleef-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {

#if TENSORD_HAVE_LOOKUP

// erf(t) / t, for OddByTable.
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
      {-0x1.0c91eep-25f, -0x1.79e114p-3f, -0x1.50e0c6p-2f, -0x1.a3c41ep-2f, -0x1.b530fap-2f, -0x1.969df4p-2f,
       -0x1.5f6c2p-2f, -0x1.22e80ap-2f, -0x1.d88a46p-3f, -0x1.7f2f14p-3f, -0x1.397fb6p-3f, -0x1.03f5bp-3f,
       -0x1.b54d6cp-4f, -0x1.74b446p-4f, -0x1.41612ap-4f, -0x1.17f5ccp-4f},
      {-0x1.812686p-2f, -0x1.55c656p-2f, -0x1.cc921ep-3f, -0x1.7b6de6p-4f, 0x1.460798p-6f, 0x1.6e2136p-4f,
       0x1.d9f0b8p-4f, 0x1.cce244p-4f, 0x1.8741bcp-4f, 0x1.36164cp-4f, 0x1.dde6dp-5f, 0x1.6f2bc4p-5f, 0x1.1d0684p-5f,
       0x1.c167f2p-6f, 0x1.6808fp-6f, 0x1.24c2aap-6f},
      {-0x1.92602p-14f, 0x1.b43114p-4f, 0x1.585b54p-3f, 0x1.5794dep-3f, 0x1.f0d8e6p-4f, 0x1.f04d22p-5f, 0x1.784852p-7f,
       -0x1.0a41dp-6f, -0x1.a672cp-6f, -0x1.986294p-6f, -0x1.4b5114p-6f, -0x1.f2cf9p-7f, -0x1.6e7512p-7f,
       -0x1.0dd17ap-7f, -0x1.92e846p-8f, -0x1.3212fap-8f},
      {0x1.d4245ep-4f, 0x1.672f42p-4f, 0x1.e9781cp-6f, -0x1.bf2afcp-6f, -0x1.d6861ep-5f, -0x1.cf95acp-5f,
       -0x1.36b5a2p-5f, -0x1.19c8fcp-6f, -0x1.90fbc2p-9f, 0x1.c962f2p-9f, 0x1.4d1a5ep-8f, 0x1.2737dep-8f,
       0x1.be0c36p-9f, 0x1.3e1ffp-9f, 0x1.c0efcap-10f, 0x1.400314p-10f},
      {-0x1.4dbb46p-7f, -0x1.290b12p-5f, -0x1.97ddbap-5f, -0x1.29fc5ap-5f, -0x1.585e14p-7f, 0x1.469c04p-7f,
       0x1.19da0ep-6f, 0x1.d275fcp-7f, 0x1.024c4cp-7f, 0x1.6ac55ep-9f, 0x1.8b4846p-14f, -0x1.a2e024p-11f,
       -0x1.c043bap-11f, -0x1.5bc848p-11f, -0x1.e69ab2p-12f, -0x1.4b7608p-12f}};
  HWY_ALIGN static constexpr float kRest[16] = {-0x1.f732d6p-25f, 0x1.929244p-26f,  -0x1.57a3b8p-27f, -0x1.356e04p-27f,
                                                0x1.bb80d4p-26f,  -0x1.6fdc4ap-26f, -0x1.ac9a02p-27f, 0x1.405df2p-27f,
                                                -0x1.51f56cp-27f, 0x1.6c824ap-29f,  0x1.5a3f6cp-28f,  0x1.bf4058p-27f,
                                                0x1.ed777cp-27f,  -0x1.db79f2p-29f, -0x1.c6255ap-27f, 0x1.0f3abep-28f};
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
      {0x1.0b133f743d927p-61, -0x1.0ef46054739f3p-2, -0x1.a454a0ecc86bap-2, -0x1.a9e021856deafp-2,
       -0x1.5dffd16033dfbp-2, -0x1.04db2231270dap-2, -0x1.7c67cecc9dc35p-3, -0x1.1ac7b746d4c39p-3,
       -0x1.b1e6dc81128b1p-4, -0x1.56ed2e442f3fp-4, -0x1.15c6fc4d704dfp-4, -0x1.cb23043096223p-5, -0x1.81cd6e895b933p-5,
       -0x1.48bb293bf2651p-5, -0x1.1b725bb802891p-5, -0x1.edd3c0ca4579fp-6},
      {-0x1.812746b0379e9p-2, -0x1.236fab5aaa737p-2, -0x1.753de5f805accp-4, 0x1.f9a285d0c6a4dp-5, 0x1.dac0fe9ad48d8p-4,
       0x1.ab9dfab80c0eep-4, 0x1.33560a8f6a7f3p-4, 0x1.9e1345da97832p-5, 0x1.19c05b0752875p-5, 0x1.8cc9179357699p-6,
       0x1.2158137ceeaacp-6, 0x1.b2c9b7c8a1f74p-7, 0x1.4ee5e0466e454p-7, 0x1.0768051b370f3p-7, 0x1.a5cbb326cf2e5p-8,
       0x1.56ef7ec559acdp-8},
      {0x1.0eb5b6ffbdb1bp-46, 0x1.29668398ce5b3p-3, 0x1.56e57d8397159p-3, 0x1.6f52c5586d6dep-4, 0x1.5aa07fde25af8p-7,
       -0x1.7a3e811349fa9p-6, -0x1.964095cd73681p-6, -0x1.1da54468398a8p-6, -0x1.6925e32903cep-7, -0x1.ca2e7f5be3f5p-8,
       -0x1.2d53f0f289c64p-8, -0x1.9bb94b3786024p-9, -0x1.22b5b3023907cp-9, -0x1.a620217d108fp-10,
       -0x1.39d609d97e35ep-10, -0x1.dc4ca1d90ff3ap-11},
      {0x1.ce2f21a0331a8p-4, 0x1.f2365bc1b4312p-5, -0x1.ce1d3c4fc1686p-6, -0x1.f068f649d5319p-5, -0x1.32969da1b9a2dp-5,
       -0x1.1958ffd91ba96p-7, 0x1.e1435c271b09dp-9, 0x1.425706d4de4ebp-8, 0x1.b70e6ec54b867p-9, 0x1.05ce30e756556p-9,
       0x1.395e33fa993fp-10, 0x1.85d51e547d93ep-11, 0x1.f8b3249cae884p-12, 0x1.523dd0160e19cp-12, 0x1.d3049a732f02p-13,
       0x1.4ac37063531ep-13},
      {0x1.1282cc811b3adp-35, -0x1.8132c53b52ae8p-5, -0x1.28adb61fbda23p-5, 0x1.b7525504de849p-10, 0x1.1bb7ea7b2c369p-6,
       0x1.65a173a6da311p-7, 0x1.560835337f1e2p-9, -0x1.2334401e3735ap-11, -0x1.bdd3961abd373p-11,
       -0x1.1f0f4a811cfedp-11, -0x1.439b0cad0198fp-12, -0x1.70ce48807c32dp-13, -0x1.b61357cb6ccf8p-14,
       -0x1.0f0698b7f27ap-14, -0x1.5b7bcb1c33b9ep-15, -0x1.cb64c6a6189c9p-16},
      {-0x1.b82ce3d31c1ep-6, -0x1.227476dbe4606p-7, 0x1.f28e74553afe9p-7, 0x1.ba66150d23a43p-7, 0x1.f5cb16eb2e6c8p-12,
       -0x1.1a8bdf92312eap-8, -0x1.43bafae498cb5p-9, -0x1.0f2aaa856b24p-11, 0x1.8c1722d340efcp-14,
       0x1.10ff2e71a4f3cp-13, 0x1.44da4a656591cp-14, 0x1.5b802f26eb8a1p-15, 0x1.7c19129046b4p-16, 0x1.b252d1370cfc8p-17,
       0x1.028b432522387p-17, 0x1.3f05faebb8de9p-18},
      {0x1.6833d383bb43bp-27, 0x1.67b24d6a6d6c8p-7, 0x1.2b29e6c997dacp-8, -0x1.28064772bd448p-8, -0x1.f0e405efdb4a3p-9,
       -0x1.5ce050d2a968bp-15, 0x1.f2e3171d8d24ap-11, 0x1.d2834ee9a59c2p-12, 0x1.2eb4ae46d8d8ep-14,
       -0x1.1d7a5b694b0aap-16, -0x1.276d727e6d0f7p-16, -0x1.41fc6067307efp-17, -0x1.49240cae95392p-18,
       -0x1.5bf389a6bdd27p-19, -0x1.80bc03b48c39bp-20, -0x1.bb167d7cbb4cdp-21},
      {0x1.565a0386f7be6p-8, 0x1.76e4ec111c61cp-11, -0x1.ef621307b2cb8p-9, -0x1.6407e82ac23fap-10,
       0x1.510f93dbc5a34p-10, 0x1.b0a79b338aa93p-11, -0x1.deb8b4eefd391p-15, -0x1.79a5c4fe683c7p-13,
       -0x1.0a20965aae84fp-14, -0x1.ccacc1993c4b4p-18, 0x1.7171ac8032399p-19, 0x1.18f779d69aac6p-19,
       0x1.1a9ae4bba9804p-20, 0x1.16878e83b58b7p-21, 0x1.1e3e4b3d57e67p-22, 0x1.33b2f9b2b9608p-23},
      {0x1.89e4336f806d3p-21, -0x1.073affcd4b4fcp-9, -0x1.8a4bf337eeba9p-13, 0x1.282cf049d3f36p-10,
       0x1.fdc4aa73daf96p-13, -0x1.57dd6cb048cabp-12, -0x1.1928a062c56a2p-13, 0x1.be2fcebb56f9ap-16,
       0x1.d4792d3fdc47bp-16, 0x1.d7697b86ae5b5p-18, 0x1.771ca503d2c13p-22, -0x1.8c7b93699d7b9p-22,
       -0x1.d633c467da9e8p-23, -0x1.bc4c10b0a4b34p-24, -0x1.a9cfb21e69a9dp-25, -0x1.ab59cb82bd5a3p-26},
      {-0x1.c1ecdfc2584d4p-11, 0x1.11547e2d521e3p-15, 0x1.51f8011cc2f4dp-11, -0x1.03cbac97de78ap-15,
       -0x1.256bf24b7d1c9p-12, -0x1.76f15e61f1be7p-17, 0x1.1d96099fbfb63p-14, 0x1.e3a46d39cf5fbp-17,
       -0x1.b0ddb86bfd6c4p-18, -0x1.caecc56575597p-19, -0x1.3990f5ba7aeffp-21, 0x1.a8cd39ed4da42p-27,
       0x1.5e7c23c5b6bf8p-25, 0x1.5d5969f464831p-26, 0x1.3c4e55f75c596p-27, 0x1.28be587a2a0d4p-28},
      {0x1.36aa671be230cp-17, 0x1.37cfaf5393483p-12, -0x1.df87b52ab907dp-15, -0x1.5410d112000f8p-13,
       0x1.3ea918ec0b11dp-15, 0x1.b731ded5b7baap-15, -0x1.eb96e748964dap-18, -0x1.63664d26cbfecp-17,
       -0x1.4b7d6f8e7eb44p-21, 0x1.13da0194efb09p-20, 0x1.5d0074ea51203p-22, 0x1.2e67e1a79496dp-25,
       -0x1.3f311736d26dbp-28, -0x1.055a7c0bd9018p-28, -0x1.d51a4d3ab9666p-30, -0x1.9d6c468fc48c5p-31},
      {0x1.c48b5289efe11p-14, -0x1.803fb2ded40b9p-16, -0x1.595c813ecd881p-14, 0x1.1fb20338115b6p-15,
       0x1.e9e1527a196a9p-16, -0x1.e85fb80b3a4dfp-17, -0x1.b8cac97dbe762p-18, 0x1.5a499ad324b23p-19,
       0x1.35a5952083e03p-20, -0x1.dcdee9368f876p-24, -0x1.f9df6af6c5fcbp-24, -0x1.8c35513491332p-26,
       -0x1.3909b934ca3e6p-30, 0x1.4345f76df1914p-31, 0x1.5350ca42daf02p-32, 0x1.1e71bd4599fe5p-33}};
  HWY_ALIGN static constexpr double kRest[16] = {
      0x1.1ae2723e68628p-56,  -0x1.3e52dac4ccf5fp-54, -0x1.65a5656369c8dp-55, -0x1.0c53fe7d3e9bfp-58,
      -0x1.a30544a43d55p-56,  0x1.1a4d4a3404312p-55,  -0x1.0ddd2ed7bbfafp-59, -0x1.4a5d5b47e3879p-57,
      -0x1.9a118a0016f9bp-57, 0x1.a75f4c8b6b637p-56,  0x1.7f76fb8180e9dp-56,  0x1.393500db92986p-59,
      -0x1.90c9a99114d24p-60, 0x1.9f9d7782aee08p-58,  0x1.e7cf8450e436cp-57,  -0x1.0db757fceda53p-57};
};

template <class D, class V>
HWY_INLINE V Erf(D d, V x) {
  return OddByTable<ErfTable<hn::TFromD<D>>>(d, x);
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

#endif  // TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_ERF_INL_H_
