#include "tests/testlib/micro/random_micro_program.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "engine/ops/scalar/scalar_math.h"

namespace tensord {
namespace {

bool IsComplex(DType dtype) { return kComplexes.Contains(dtype); }

class MicroProgramGenerator {
 public:
  MicroProgramGenerator(const RandomMicroOptions& options, std::mt19937_64* random)
      : options_(options), random_(*random) {}

  RandomMicro Make() {
    MakeAxes();
    const int leaves = 1 + Draw(4);
    for (int i = 0; i < leaves; ++i) AddLeaf();
    for (int i = 0; i < options_.instructions; ++i) {
      if (options_.reduces && Draw(5) == 0) {
        AddReduce(Any());
      } else if (Draw(6) == 0) {
        AddLeaf();
      } else {
        AddComputed();
      }
    }
    const int count = static_cast<int>(program().instructions.size());
    program().results.push_back({count - 1});
    for (int r = Draw(4); r > 0; --r) program().results.push_back({Draw(count)});
    return std::move(made_);
  }

 private:
  MicroProgram& program() { return made_.program; }
  int Draw(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  const MicroInstruction& At(int32_t value) { return program().instructions[static_cast<size_t>(value)]; }

  void MakeAxes() {
    static constexpr int64_t kSizes[] = {2, 3, 4, 5, 7, 16, 17, 31, 64, 65, 100, 257, 1000, 3001, 20000, 70001};
    const int rank = Draw(5);
    int64_t points = 1;
    for (int d = 0; d < rank; ++d) {
      MicroAxis axis{.size = kSizes[Draw(16)]};
      if (Draw(40) == 0) axis.size = Draw(2);
      if (points * axis.size > options_.max_points) axis.size = std::max<int64_t>(2, options_.max_points / points / 2);
      axis.is_reduced = options_.reduces && Draw(2) == 0;
      points *= std::max<int64_t>(axis.size, 1);
      program().axes.push_back(axis);
      if (points >= options_.max_points) break;
    }
  }

  bool HasAxis(size_t d, MicroLevel level) {
    return level == MicroLevel::kFull || (level == MicroLevel::kKept && !program().axes[d].is_reduced);
  }

  int32_t Add(MicroInstruction instruction) {
    for (int32_t operand : instruction.operands) {
      if (operand < 0) break;
      const MicroInstruction& from = At(operand);
      instruction.stage = std::max(instruction.stage, from.stage);
      if (instruction.kind != MicroKind::kReduce) instruction.level = std::max(instruction.level, from.level);
    }
    if (instruction.kind == MicroKind::kReduce) ++instruction.stage;
    program().instructions.push_back(std::move(instruction));
    return static_cast<int32_t>(program().instructions.size()) - 1;
  }

  // Strides over the axes of a level; sets the offset so that no element is before the first, and returns how many
  // elements there are up to the last.
  int64_t MakeAccess(MicroLevel level, MicroAccess* access) {
    const size_t rank = program().axes.size();
    access->strides.assign(rank, 0);
    std::vector<size_t> order;
    for (size_t d = 0; d < rank; ++d) {
      if (HasAxis(d, level)) order.push_back(d);
    }
    const int form = Draw(4);  // dense, permuted, some axes repeated, anything
    if (form == 1 || form == 3) std::shuffle(order.begin(), order.end(), random_);
    int64_t stride = 1, last = 0;
    if (form == 3) stride = 1 + Draw(2);
    for (size_t d : order) {
      const int64_t size = program().axes[d].size;
      if ((form == 2 && Draw(2) == 0) || (form == 3 && Draw(4) == 0)) continue;
      const bool backwards = form == 3 && Draw(3) == 0;
      access->strides[d] = backwards ? -stride : stride;
      const int64_t span = stride * std::max<int64_t>(size - 1, 0);
      if (backwards) access->offset += span;
      last += span;
      stride = stride * std::max<int64_t>(size, 1) + (form == 3 ? Draw(3) : 0);
    }
    if (form == 3) {
      const int64_t before = Draw(5);
      access->offset += before;
      last += before;
    }
    return last + 1;
  }

  // Without reduced axes all points are kept, and programs have them as full.
  MicroLevel AnyLevel() {
    if (Draw(6) == 0) return MicroLevel::kUniform;
    const bool is_kept = options_.reduces && Draw(4) == 0;
    return is_kept && program().has_reduced_axes() ? MicroLevel::kKept : MicroLevel::kFull;
  }

  int32_t AddLeaf() {
    MicroInstruction leaf{.kind = MicroKind::kLoad, .level = AnyLevel(), .dtype = kAllDTypes[random_() % kNumDTypes]};
    if (Draw(2) == 0) leaf.dtype = favourite_;
    const int kind = Draw(6);
    if (kind == 0 && leaf.dtype != DType::kBool) {
      leaf.kind = MicroKind::kIota;
      MakeAccess(leaf.level, &leaf.access);
    } else if (kind == 1) {
      leaf.kind = MicroKind::kConstant;
      leaf.level = MicroLevel::kUniform;
      leaf.constant = VisitDType(leaf.dtype, [&]<typename T>(TypeTag<T>) {
        return std::make_shared<const Literal>(Literal::Scalar(scalar::ConvertElement<T>(int64_t{Draw(9) - 4})));
      });
    } else {
      const int64_t elements = MakeAccess(leaf.level, &leaf.access);
      leaf.tensor = -1;
      for (size_t t = 0; t < program().tensors.size() && Draw(3) == 0; ++t) {
        if (program().tensors[t] == leaf.dtype) leaf.tensor = static_cast<int32_t>(t);
      }
      if (leaf.tensor < 0) {
        leaf.tensor = static_cast<int32_t>(program().tensors.size());
        program().tensors.push_back(leaf.dtype);
        made_.tensor_elements.push_back(0);
      }
      int64_t& needed = made_.tensor_elements[static_cast<size_t>(leaf.tensor)];
      needed = std::max(needed, program().num_points(leaf.level) == 0 ? 0 : elements);
    }
    return Add(std::move(leaf));
  }

  int32_t Any() { return Draw(static_cast<int>(program().instructions.size())); }

  int32_t Convert(int32_t value, DType to) {
    if (At(value).dtype == to) return value;
    return Add({.kind = MicroKind::kConvert, .level = MicroLevel::kUniform, .dtype = to, .operands = {value, -1, -1}});
  }

  // An operand of that dtype: one that is there, or a conversion of one.
  int32_t Operand(DType dtype) {
    for (int i = 0; i < 4; ++i) {
      const int32_t value = Any();
      if (At(value).dtype == dtype) return value;
    }
    return Convert(Any(), dtype);
  }

  int32_t Unary(CoreOp op, int32_t a) {
    return Add({.kind = MicroKind::kUnary,
                .level = MicroLevel::kUniform,
                .dtype = At(a).dtype,
                .op = op,
                .operands = {a, -1, -1}});
  }

  void AddComputed() {
    const int32_t a = Any();
    const DType dtype = At(a).dtype;
    MicroInstruction made{.level = MicroLevel::kUniform, .dtype = dtype};
    switch (Draw(8)) {
      case 0:
        made.kind = MicroKind::kConvert;
        made.dtype = kAllDTypes[random_() % kNumDTypes];
        made.operands = {a, -1, -1};
        break;
      case 1:
        made.kind = MicroKind::kCompare;
        made.dtype = DType::kBool;
        made.direction = static_cast<CompareDirection>(1 + Draw(IsComplex(dtype) ? 2 : 6));
        made.operands = {a, Operand(dtype), -1};
        break;
      case 2:
        made.kind = MicroKind::kSelect;
        made.operands = {Operand(DType::kBool), a, Operand(dtype)};
        break;
      case 3:
        made.kind = MicroKind::kClamp;
        made.operands = {Operand(dtype), a, Operand(dtype)};
        break;
      default: {
        const std::optional<CoreOp> op = AnyOp(dtype);
        if (!op.has_value()) return;
        const bool binary = Def(*op).max_operands == 2;
        made.kind = binary ? MicroKind::kBinary : MicroKind::kUnary;
        made.op = *op;
        made.dtype = ResultOf(*op, dtype);
        made.operands = {a, binary ? Operand(dtype) : -1, -1};
        break;
      }
    }
    Add(std::move(made));
  }

  std::optional<CoreOp> AnyOp(DType dtype) {
    for (int i = 0; i < 50; ++i) {
      const CoreOp op = static_cast<CoreOp>(Draw(kNumCoreOps));
      const bool elementwise = Def(op).max_operands >= 1 && Def(op).max_operands <= 2 && options_.takes(op, dtype);
      if (elementwise) return op;
    }
    return std::nullopt;
  }

  static DType ResultOf(CoreOp op, DType dtype) {
    if (op == CoreOp::kIsFinite) return DType::kBool;
    if (op == CoreOp::kAbs || op == CoreOp::kReal || op == CoreOp::kImag) return RealPartOf(dtype);
    if (op == CoreOp::kComplex) return dtype == DType::kF64 ? DType::kC128 : DType::kC64;
    return dtype;
  }

  // Small whole numbers, or for a product numbers without a fraction and of modulus 0 or 1.
  int32_t MakeExact(int32_t value, bool product) {
    const DType dtype = At(value).dtype;
    if (!kFloats.Contains(dtype) && !IsComplex(dtype)) return value;
    const DType real = RealPartOf(dtype);
    int32_t exact = IsComplex(dtype) ? Unary(CoreOp::kReal, value) : value;
    if (exact != value) program().instructions[static_cast<size_t>(exact)].dtype = real;
    exact = Unary(product ? CoreOp::kSign : CoreOp::kRoundNearestEven, exact);
    if (!product) {
      const auto bound = [&](int64_t limit) {
        MicroInstruction constant{.kind = MicroKind::kConstant, .level = MicroLevel::kUniform, .dtype = real};
        constant.constant = VisitDType(real, [&]<typename T>(TypeTag<T>) {
          return std::make_shared<const Literal>(Literal::Scalar(scalar::ConvertElement<T>(limit)));
        });
        return Add(std::move(constant));
      };
      const int32_t low = bound(-4), high = bound(4);
      exact = Add(
          {.kind = MicroKind::kClamp, .level = MicroLevel::kUniform, .dtype = real, .operands = {low, exact, high}});
    }
    return Convert(exact, dtype);
  }

  void AddReduce(int32_t value) {
    const DType dtype = At(value).dtype;
    const int kinds = dtype == DType::kBool ? 6 : 4;
    ReduceKind kind = static_cast<ReduceKind>(1 + Draw(kinds));
    // The sign of a zero part of a complex product depends on the order.
    if (kind == ReduceKind::kProduct && IsComplex(dtype)) kind = ReduceKind::kSum;
    // The order decides which of several complex NaN is the extremum, and so its other part.
    if (kind == ReduceKind::kSum || kind == ReduceKind::kProduct || IsComplex(dtype)) {
      value = MakeExact(value, kind == ReduceKind::kProduct);
    }
    if (At(value).level != MicroLevel::kFull) {  // reductions take values of all points
      const int32_t full = Add({.kind = MicroKind::kIota,
                                .level = MicroLevel::kFull,
                                .dtype = DType::kI64,
                                .access = {.offset = 0, .strides = Zeros()}});
      const int32_t same = Add({.kind = MicroKind::kCompare,
                                .level = MicroLevel::kUniform,
                                .dtype = DType::kBool,
                                .direction = CompareDirection::kEq,
                                .operands = {full, full, -1}});
      value = Add({.kind = MicroKind::kSelect,
                   .level = MicroLevel::kUniform,
                   .dtype = dtype,
                   .operands = {same, value, value}});
    }
    Add({.kind = MicroKind::kReduce,
         .level = MicroLevel::kKept,
         .dtype = dtype,
         .reduce = kind,
         .operands = {value, -1, -1}});
  }

  absl::InlinedVector<int64_t, 6> Zeros() { return absl::InlinedVector<int64_t, 6>(program().axes.size(), 0); }

  const RandomMicroOptions& options_;
  std::mt19937_64& random_;
  const DType favourite_ = kAllDTypes[random_() % kNumDTypes];
  RandomMicro made_;
};

}  // namespace

RandomMicro MakeRandomMicroProgram(const RandomMicroOptions& options, std::mt19937_64* random) {
  return MicroProgramGenerator(options, random).Make();
}

}  // namespace tensord
