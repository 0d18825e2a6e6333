#ifndef TENSORD_ENGINE_OPS_DERIVATIVES_ELEMENTWISE_RULES_H_
#define TENSORD_ENGINE_OPS_DERIVATIVES_ELEMENTWISE_RULES_H_

#include "engine/ir/op_def.h"
#include "engine/ops/derivatives/rules.h"
#include "engine/ops/scalar/scalar_math.h"

namespace tensord {

// The derivative facets of the ops that are functors: one row a functor. A functor without a row does not compile.
template <typename F>
struct ElementwiseDerivative;

#define TENSORD_DIFFERENTIATED(functor)                                                        \
  void Jvp##functor(JvpCall& call);                                                            \
  template <>                                                                                  \
  struct ElementwiseDerivative<scalar::functor> {                                              \
    static constexpr Facet<JvpRule> kJvp = &Jvp##functor;                                      \
    static constexpr Facet<TransposeRule> kTranspose = Facet<TransposeRule>::None(kNotLinear); \
  };
#define TENSORD_LINEAR(functor, jvp)                                        \
  void Transpose##functor(TransposeCall& call);                             \
  template <>                                                               \
  struct ElementwiseDerivative<scalar::functor> {                           \
    static constexpr Facet<JvpRule> kJvp = &jvp;                            \
    static constexpr Facet<TransposeRule> kTranspose = &Transpose##functor; \
  };
#define TENSORD_NOT_DIFFERENTIATED(functor, why)                                        \
  template <>                                                                           \
  struct ElementwiseDerivative<scalar::functor> {                                       \
    static constexpr Facet<JvpRule> kJvp = Facet<JvpRule>::None(why);                   \
    static constexpr Facet<TransposeRule> kTranspose = Facet<TransposeRule>::None(why); \
  };

// Leaves the tangents zero: of steps.
void JvpZero(JvpCall& call);
#define TENSORD_FLAT(functor)                                                                  \
  template <>                                                                                  \
  struct ElementwiseDerivative<scalar::functor> {                                              \
    static constexpr Facet<JvpRule> kJvp = &JvpZero;                                           \
    static constexpr Facet<TransposeRule> kTranspose = Facet<TransposeRule>::None(kNotLinear); \
  };

void JvpSum(JvpCall& call);
void JvpImagPart(JvpCall& call);
void JvpDivide(JvpCall& call);
void JvpMakeComplex(JvpCall& call);

TENSORD_LINEAR(Negate, JvpLinear)
TENSORD_LINEAR(Conj, JvpLinear)
TENSORD_DIFFERENTIATED(Abs)
TENSORD_DIFFERENTIATED(Sign)
TENSORD_DIFFERENTIATED(Exp)
TENSORD_DIFFERENTIATED(Log)
TENSORD_DIFFERENTIATED(Sin)
TENSORD_DIFFERENTIATED(Cos)
TENSORD_DIFFERENTIATED(Tanh)
TENSORD_DIFFERENTIATED(Sqrt)
TENSORD_DIFFERENTIATED(Rsqrt)
TENSORD_DIFFERENTIATED(Expm1)
TENSORD_DIFFERENTIATED(Log1p)
TENSORD_DIFFERENTIATED(Logistic)
TENSORD_DIFFERENTIATED(Erf)
TENSORD_FLAT(Floor)
TENSORD_FLAT(Ceil)
TENSORD_FLAT(RoundNearestEven)
TENSORD_NOT_DIFFERENTIATED(IsFinite, kNothingFlows)
TENSORD_NOT_DIFFERENTIATED(Not, kNothingFlows)
TENSORD_LINEAR(RealPart, JvpLinear)
TENSORD_LINEAR(ImagPart, JvpImagPart)
TENSORD_DIFFERENTIATED(Tan)
TENSORD_DIFFERENTIATED(Cbrt)
TENSORD_DIFFERENTIATED(Sinh)
TENSORD_DIFFERENTIATED(Cosh)
TENSORD_DIFFERENTIATED(Asin)
TENSORD_DIFFERENTIATED(Acos)
TENSORD_DIFFERENTIATED(Atan)
TENSORD_DIFFERENTIATED(Asinh)
TENSORD_DIFFERENTIATED(Acosh)
TENSORD_DIFFERENTIATED(Atanh)
TENSORD_DIFFERENTIATED(Log2)
TENSORD_DIFFERENTIATED(Log10)
TENSORD_DIFFERENTIATED(Exp2)
TENSORD_LINEAR(Add, JvpSum)
TENSORD_LINEAR(Multiply, JvpProduct)
TENSORD_LINEAR(Divide, JvpDivide)
TENSORD_DIFFERENTIATED(Maximum)
TENSORD_DIFFERENTIATED(Minimum)
TENSORD_DIFFERENTIATED(Pow)
TENSORD_LINEAR(Subtract, JvpSum)
TENSORD_DIFFERENTIATED(Remainder)
TENSORD_DIFFERENTIATED(Atan2)
TENSORD_NOT_DIFFERENTIATED(And, kNothingFlows)
TENSORD_NOT_DIFFERENTIATED(Or, kNothingFlows)
TENSORD_NOT_DIFFERENTIATED(Xor, kNothingFlows)
TENSORD_LINEAR(MakeComplex, JvpMakeComplex)

#undef TENSORD_DIFFERENTIATED
#undef TENSORD_LINEAR
#undef TENSORD_NOT_DIFFERENTIATED
#undef TENSORD_FLAT

}  // namespace tensord

#endif  // TENSORD_ENGINE_OPS_DERIVATIVES_ELEMENTWISE_RULES_H_
