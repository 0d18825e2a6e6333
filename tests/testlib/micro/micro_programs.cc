#include "tests/testlib/micro/micro_programs.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "engine/ops/scalar/scalar_math.h"
#include "tests/testlib/micro/micro_builder.h"

namespace tensord {
namespace {

constexpr CoreOp kElementwiseOps[] = {
#define TENSORD_UNARY(op, name, functor, summary) CoreOp::op,
#define TENSORD_BINARY(op, name, functor, traits, summary) CoreOp::op,
#define TENSORD_OP(op, definition)
#include "engine/ops/core_ops.def"
#undef TENSORD_UNARY
#undef TENSORD_BINARY
#undef TENSORD_OP
};

MicroProgram OpsProgram(const std::vector<MicroAxis>& axes, DType dtype, int64_t arity) {
  MicroBuilder b(axes);
  const int32_t x = b.Load(dtype, MicroLevel::kFull);
  const int32_t y = arity == 2 ? b.Load(dtype, MicroLevel::kFull) : -1;
  for (CoreOp op : kElementwiseOps) {
    if (Def(op).max_operands != arity || !Def(op).dtypes.Contains(dtype)) continue;
    b.Result(arity == 1 ? b.Unary(op, x) : b.Binary(op, x, y));
  }
  return b.Build();
}

MicroProgram ComparisonsProgram(const std::vector<MicroAxis>& axes, DType dtype) {
  MicroBuilder b(axes);
  const int32_t x = b.Load(dtype, MicroLevel::kFull), y = b.Load(dtype, MicroLevel::kFull);
  const auto last = kComplexes.Contains(dtype) ? CompareDirection::kNe : CompareDirection::kGe;
  for (int64_t d = 1; d <= static_cast<int64_t>(last); ++d) {
    b.Result(b.Compare(static_cast<CompareDirection>(d), x, y));
  }
  const int32_t predicate = b.Load(DType::kBool, MicroLevel::kFull), z = b.Load(dtype, MicroLevel::kFull);
  b.Result(b.Select(predicate, x, y));
  b.Result(b.Clamp(x, y, z));
  return b.Build();
}

MicroProgram ConversionsProgram(const std::vector<MicroAxis>& axes, DType from) {
  MicroBuilder b(axes);
  const int32_t x = b.Load(from, MicroLevel::kFull);
  for (DType to : kAllDTypes) b.Result(b.Convert(to, x));
  return b.Build();
}

template <typename T>
std::vector<T> Constants() {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_same_v<T, Bool>) {
    return {Bool(false), Bool(true)};
  } else if constexpr (IntegerElement<T>) {
    return {0, 1, -1, Limits::min(), Limits::max(), 12345};
  } else if constexpr (RealElement<T>) {
    return {T(0.0),
            T(-0.0),
            T(1),
            -T(1) / 3,
            Limits::infinity(),
            -Limits::infinity(),
            Limits::quiet_NaN(),
            Limits::denorm_min(),
            Limits::max(),
            T(1e20)};
  } else if constexpr (ComplexElement<T>) {
    using R = typename T::value_type;
    return {T(0, -0.0), T(R(1) / 3, -2), T(std::numeric_limits<R>::infinity(), std::numeric_limits<R>::quiet_NaN())};
  } else {
    return {T(0.0f), T(-0.0f), T(0.1f), T(-65504.0f), T::FromBits(1), T::FromBits(0x7fc0)};
  }
}

// Constants are uniform; each is stored so, and where the axes are.
MicroProgram ConstantsProgram(const std::vector<MicroAxis>& axes, DType dtype) {
  MicroBuilder b(axes);
  const int32_t predicate = b.Load(DType::kBool, MicroLevel::kFull);
  VisitDType(dtype, [&]<typename T>(TypeTag<T>) {
    int32_t last = -1;
    for (T value : Constants<T>()) {
      const int32_t constant = b.Constant(Literal::Scalar<T>(value));
      b.Result(constant);
      if (last >= 0) b.Result(b.Select(predicate, last, constant));
      last = constant;
    }
  });
  return b.Build();
}

MicroProgram IotasProgram(const std::vector<MicroAxis>& axes) {
  MicroBuilder b(axes);
  for (DType dtype : kAllDTypes) {
    for (size_t d = 0; d < axes.size(); ++d) {
      MicroAccess access{.offset = d == 0 ? -3 : 0};
      access.strides.assign(axes.size(), 0);
      access.strides[d] = d == 0 ? 1 : -1;
      b.Result(b.Iota(dtype, MicroLevel::kFull, access));
    }
  }
  return b.Build();
}

struct NamedAxes {
  const char* name;
  std::vector<MicroAxis> axes;
};

std::vector<NamedAxes> ReducedSpaces() {
  const auto kept = [](int64_t size) { return MicroAxis{.size = size}; };
  const auto reduced = [](int64_t size) { return MicroAxis{.size = size, .is_reduced = true}; };
  return {{"short_rows", {reduced(7), kept(5)}},
          {"warp_rows", {reduced(100), kept(9)}},
          {"block_rows", {reduced(1000), kept(3)}},
          {"long_rows", {reduced(9000), kept(2)}},
          {"all", {reduced(500)}},
          {"panels", {kept(40), reduced(30)}},
          {"narrow_panels", {kept(3), reduced(700)}},
          {"planes", {kept(6), reduced(10), kept(4)}},
          {"mixed", {reduced(4), kept(6), reduced(5), kept(3)}},
          {"empty_rows", {reduced(0), kept(4)}},
          {"no_rows", {reduced(4), kept(0)}},
          {"one", {reduced(1), kept(1)}}};
}

MicroProgram ReductionsProgram(const std::vector<MicroAxis>& axes, DType dtype) {
  MicroBuilder b(axes);
  const int32_t x = b.Load(dtype, MicroLevel::kFull);
  b.Result(b.Reduce(ReduceKind::kSum, x));
  b.Result(b.Reduce(ReduceKind::kMax, x));
  b.Result(b.Reduce(ReduceKind::kMin, x));
  b.Result(b.Reduce(ReduceKind::kProduct, b.Load(dtype, MicroLevel::kFull)));
  if (dtype == DType::kBool) {
    b.Result(b.Reduce(ReduceKind::kAnd, x));
    b.Result(b.Reduce(ReduceKind::kOr, x));
  }
  return b.Build();
}

// Results of all levels and several dtypes; a reduction of what is not full, one of what depends on another.
MicroProgram MixedProgram(const std::vector<MicroAxis>& axes) {
  MicroBuilder b(axes);
  const int32_t x = b.Load(DType::kF16, MicroLevel::kFull), bias = b.Load(DType::kF32, MicroLevel::kKept);
  const int32_t factor = b.Load(DType::kF32, MicroLevel::kUniform);
  const int32_t wide = b.Convert(DType::kF32, x);
  const int32_t scaled = b.Binary(CoreOp::kMultiply, wide, factor);
  const int32_t largest = b.Reduce(ReduceKind::kMax, scaled);
  const int32_t is_largest = b.Compare(CompareDirection::kEq, scaled, largest);
  const int32_t count = b.Reduce(ReduceKind::kSum, b.Convert(DType::kI32, is_largest));
  const int32_t shifted = b.Binary(CoreOp::kAdd, largest, bias);
  b.Result(b.Reduce(ReduceKind::kSum, bias));
  b.Result(b.Binary(CoreOp::kAdd, scaled, shifted));
  b.Result(is_largest);
  b.Result(count);
  b.Result(b.Unary(CoreOp::kNegate, factor));
  b.Result(b.Unary(CoreOp::kNegate, bias));
  b.Result(b.Select(is_largest, b.Binary(CoreOp::kDivide, scaled, b.Convert(DType::kF32, count)), bias));
  return b.Build();
}

}  // namespace

std::vector<NamedMicroProgram> ReducePrograms() {
  std::vector<NamedMicroProgram> programs;
  for (const NamedAxes& space : ReducedSpaces()) {
    for (DType dtype : kAllDTypes) {
      programs.push_back({absl::StrCat("reduce_", space.name, "_", Name(dtype)), ReductionsProgram(space.axes, dtype)});
    }
    programs.push_back({absl::StrCat("mixed_", space.name), MixedProgram(space.axes)});
  }
  for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    for (int64_t length : {20, 1000, 9000}) {
      const auto add = [&](absl::string_view name, MicroProgram program) {
        programs.push_back({absl::StrCat(name, "_", length, "_", Name(dtype)), std::move(program)});
      };
      add("softmax", SoftmaxProgram(length, 3, dtype));
      add("layer_norm", LayerNormProgram(length, 3, dtype));
      add("variance", VarianceProgram(length, 3, dtype));
    }
  }
  return programs;
}

std::vector<int64_t> OperandElements(const MicroProgram& program) {
  std::vector<int64_t> elements(program.tensors.size());
  for (const MicroInstruction& instruction : program.instructions) {
    if (instruction.kind != MicroKind::kLoad) continue;
    int64_t last = instruction.access.offset;
    for (size_t d = 0; d < program.axes.size(); ++d) {
      last += std::max<int64_t>(instruction.access.strides[d], 0) * (program.axes[d].size - 1);
    }
    int64_t& needed = elements[static_cast<size_t>(instruction.tensor)];
    needed = std::max(needed, program.num_points(instruction.level) == 0 ? 0 : last + 1);
  }
  return elements;
}

std::vector<NamedMicroProgram> ElementwisePrograms(const std::vector<MicroAxis>& axes) {
  std::vector<NamedMicroProgram> programs;
  for (DType dtype : kAllDTypes) {
    const auto add = [&](absl::string_view kind, MicroProgram program) {
      programs.push_back({absl::StrCat(kind, "_", Name(dtype)), std::move(program)});
    };
    add("unary", OpsProgram(axes, dtype, 1));
    add("binary", OpsProgram(axes, dtype, 2));
    add("compare", ComparisonsProgram(axes, dtype));
    add("convert", ConversionsProgram(axes, dtype));
    add("constants", ConstantsProgram(axes, dtype));
  }
  programs.push_back({"iotas", IotasProgram(axes)});
  return programs;
}

std::vector<NamedMicroProgram> AccessPrograms() {
  std::vector<NamedMicroProgram> programs;
  const auto add = [&programs](std::string name, const std::vector<MicroAxis>& axes, MicroAccess access, DType dtype) {
    MicroBuilder b(axes);
    const int32_t x = b.Load(dtype, MicroLevel::kFull), y = b.Load(dtype, MicroLevel::kFull, access);
    b.Result(dtype == DType::kBool ? b.Binary(CoreOp::kXor, x, y) : b.Binary(CoreOp::kAdd, x, y));
    b.Result(b.Iota(DType::kI64, MicroLevel::kFull, access));
    programs.push_back({absl::StrCat(name, "_", tensord::Name(dtype)), b.Build()});
  };
  const std::vector<MicroAxis> plane = {{.size = 24}, {.size = 10}};
  const std::vector<MicroAxis> ragged = {{.size = 7}, {.size = 5}, {.size = 3}};
  const std::vector<MicroAxis> space = {{.size = 8}, {.size = 3}, {.size = 4}, {.size = 5}};
  for (DType dtype : {DType::kF32, DType::kBool, DType::kF16, DType::kC128}) {
    add("dense", {{.size = 1000}}, {.strides = {1}}, dtype);
    add("ragged", {{.size = 1003}}, {.strides = {1}}, dtype);
    add("shifted", {{.size = 1000}}, {.offset = 3, .strides = {1}}, dtype);
    add("every_other", {{.size = 1003}}, {.offset = 1, .strides = {2}}, dtype);
    add("reversed", {{.size = 1003}}, {.offset = 1002, .strides = {-1}}, dtype);
    add("repeated", {{.size = 1003}}, {.offset = 5, .strides = {0}}, dtype);
    add("row", plane, {.strides = {1, 0}}, dtype);
    add("column", plane, {.strides = {0, 1}}, dtype);
    add("transposed", plane, {.strides = {10, 1}}, dtype);
    add("slice", plane, {.offset = 33, .strides = {1, 32}}, dtype);
    add("ragged_planes", ragged, {.strides = {0, 3, 1}}, dtype);
    add("middle_axes", space, {.strides = {0, 1, 3, 0}}, dtype);
    add("mirrored", space, {.offset = 11, .strides = {0, -1, -3, 12}}, dtype);
  }
  programs.push_back({"scalar", [] {
                        MicroBuilder b({});
                        const int32_t x = b.Load(DType::kF32, MicroLevel::kFull);
                        b.Result(b.Unary(CoreOp::kExp, x));
                        return b.Build();
                      }()});
  programs.push_back({"nothing", [] {
                        MicroBuilder b({{.size = 0}, {.size = 4}});
                        b.Result(b.Unary(CoreOp::kExp, b.Load(DType::kF32, MicroLevel::kFull)));
                        b.Result(b.Unary(CoreOp::kSin, b.Load(DType::kF32, MicroLevel::kUniform)));
                        return b.Build();
                      }()});
  return programs;
}

}  // namespace tensord
