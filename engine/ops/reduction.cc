#include "engine/ops/reduction.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ops/axis_checks.h"
#include "engine/ops/axis_order.h"
#include "engine/ops/index_walk.h"
#include "engine/ops/scalar/scalar_math.h"

namespace tensord {
namespace {

// The type in which sums and products accumulate: wide enough that the reference's own rounding does not show.
template <typename T>
struct AccumulatorOf {
  using type = T;
};
template <>
struct AccumulatorOf<float> {
  using type = double;
};
template <>
struct AccumulatorOf<double> {
  using type = long double;
};
template <ComplexElement T>
struct AccumulatorOf<T> {
  using type = std::complex<typename AccumulatorOf<typename T::value_type>::type>;
};
template <HalfElement T>
struct AccumulatorOf<T> {
  using type = double;
};

template <typename To, typename From>
To Widen(From x) {
  if constexpr (HalfElement<From>) {
    return static_cast<To>(static_cast<float>(x));
  } else {
    return static_cast<To>(x);
  }
}

template <typename To, typename From>
To Narrow(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (ComplexElement<To>) {
    return To(static_cast<typename To::value_type>(x.real()), static_cast<typename To::value_type>(x.imag()));
  } else {
    return static_cast<To>(x);
  }
}

struct Sum {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (IntegerElement<T> || std::is_same_v<T, Bool>) {
      return scalar::Add{}(a, b);
    } else {
      return a + b;
    }
  }
};

struct Product {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (IntegerElement<T> || std::is_same_v<T, Bool>) {
      return scalar::Multiply{}(a, b);
    } else if constexpr (std::is_floating_point_v<T>) {
      return a * b;
    } else {
      return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
    }
  }
};

template <typename T>
T Lowest() {
  if constexpr (std::is_same_v<T, Bool>) {
    return Bool(false);
  } else if constexpr (IntegerElement<T>) {
    return std::numeric_limits<T>::min();
  } else if constexpr (ComplexElement<T>) {
    return T(-std::numeric_limits<typename T::value_type>::infinity(),
             -std::numeric_limits<typename T::value_type>::infinity());
  } else {
    return T(-std::numeric_limits<scalar::ComputeType<T>>::infinity());
  }
}

template <typename T>
T Highest() {
  if constexpr (std::is_same_v<T, Bool>) {
    return Bool(true);
  } else if constexpr (IntegerElement<T>) {
    return std::numeric_limits<T>::max();
  } else if constexpr (ComplexElement<T>) {
    return T(std::numeric_limits<typename T::value_type>::infinity(),
             std::numeric_limits<typename T::value_type>::infinity());
  } else {
    return T(std::numeric_limits<scalar::ComputeType<T>>::infinity());
  }
}

// out[k] = fold of f over the elements that map to k, in storage order, from `initial`.
template <typename Accumulator, typename T, typename F>
void Fold(const ReferenceCall& call, Accumulator initial, const F& f) {
  const Literal& in = *call.operands[0];
  Literal& out = call.results[0];
  const std::vector<int64_t>& dimensions = call.attrs.Ints("dimensions");
  const Shape out_strides = ColumnMajorStrides(out.shape());
  Shape to_out(in.shape().size());
  for (size_t axis = 0, kept = 0; axis < to_out.size(); ++axis) {
    const bool reduced =
        std::find(dimensions.begin(), dimensions.end(), static_cast<int64_t>(axis)) != dimensions.end();
    to_out[axis] = reduced ? 0 : out_strides[kept++];
  }
  std::vector<Accumulator> folded(static_cast<size_t>(out.num_elements()), initial);
  const absl::Span<const T> values = in.values<T>();
  for (IndexWalk i(in.shape()); !i.done(); i.Next()) {
    int64_t at = 0;
    for (size_t axis = 0; axis < to_out.size(); ++axis) at += i[axis] * to_out[axis];
    Accumulator& accumulator = folded[static_cast<size_t>(at)];
    accumulator = f(accumulator, Widen<Accumulator>(values[static_cast<size_t>(i.linear())]));
  }
  const absl::Span<T> results = out.mutable_values<T>();
  for (size_t k = 0; k < results.size(); ++k) results[k] = Narrow<T>(folded[k]);
}

}  // namespace

absl::StatusOr<ResultTypes> InferReduce(InferContext& context) {
  const TensorType& operand = context.operand(0);
  const std::vector<int64_t>& dimensions = context.attrs().Ints("dimensions");
  const auto kind = static_cast<ReduceKind>(context.attrs().Int("kind"));
  RETURN_IF_ERROR(CheckAxes(dimensions, operand.rank(), "dimensions"));
  if (kind == ReduceKind::kAnd || kind == ReduceKind::kOr) {
    RETURN_IF_ERROR(CheckDType(operand.dtype, kBoolOnly, "the operand of a reduction by AND or OR"));
  }
  if (context.attrs().Flag("requires_elements")) {
    for (const int64_t axis : dimensions) {
      RETURN_IF_ERROR(context.RequireAtMost(Dim(1), operand.shape[static_cast<size_t>(axis)],
                                            absl::StrCat("there is nothing to reduce along axis ", axis)));
    }
  }
  TensorType result{.dtype = operand.dtype};
  for (int64_t axis = 0; axis < operand.rank(); ++axis) {
    if (std::find(dimensions.begin(), dimensions.end(), axis) == dimensions.end()) {
      result.shape.push_back(operand.shape[static_cast<size_t>(axis)]);
    }
  }
  return ResultTypes{std::move(result)};
}

absl::Status ReferenceReduce(const ReferenceCall& call) {
  const auto kind = static_cast<ReduceKind>(call.attrs.Int("kind"));
  VisitDType(call.operands[0]->dtype(), [&]<typename T>(TypeTag<T>) {
    using Accumulator = typename AccumulatorOf<T>::type;
    const auto apply = [](auto functor) { return [functor](auto a, auto b) { return scalar::Apply(functor, a, b); }; };
    switch (kind) {
      case ReduceKind::kSum:
      case ReduceKind::kOr:
        Fold<Accumulator, T>(call, Accumulator(0), Sum{});
        break;
      case ReduceKind::kProduct:
      case ReduceKind::kAnd:
        Fold<Accumulator, T>(call, Accumulator(1), Product{});
        break;
      case ReduceKind::kMax:
        Fold<T, T>(call, Lowest<T>(), apply(scalar::Maximum{}));
        break;
      case ReduceKind::kMin:
        Fold<T, T>(call, Highest<T>(), apply(scalar::Minimum{}));
        break;
      case ReduceKind::kUnspecified:
        break;
    }
  });
  return absl::OkStatus();
}

PermutedCall PermuteReduce(const PermuteContext& context) {
  const AxisOrder& order = context.orders[0];
  const std::vector<int64_t>& dimensions = context.attrs.Ints("dimensions");
  PermutedCall call{.attrs = context.attrs, .operand_orders = {order}};
  call.attrs.Set("dimensions", MapAxes(dimensions, order));
  // The kept axes keep the order that they have in storage.
  std::vector<int64_t> kept;
  for (size_t axis = 0; axis < order.size(); ++axis) {
    if (std::find(dimensions.begin(), dimensions.end(), static_cast<int64_t>(axis)) == dimensions.end()) {
      kept.push_back(order[axis]);
    }
  }
  for (int64_t stored : kept) {
    call.result_order.push_back(std::count_if(kept.begin(), kept.end(), [stored](int64_t k) { return k < stored; }));
  }
  return call;
}

}  // namespace tensord
