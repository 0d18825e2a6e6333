#include "backends/cpu/elementwise/kernels.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/machine/streamed_stores.h"
#include "backends/cpu/machine/thread_pool.h"
#include "engine/base/refusal.h"
#include "engine/ops/core_ops.h"
#include "engine/tensor/literal.h"
#include "gtest/gtest.h"
#include "tests/unit/backends/cpu/sample_values.h"

namespace tensord::cpu {
namespace {

// One instruction with its operands, which it owns.
class Call {
 public:
  Call(CoreOp op, std::vector<Literal> operands, ConcreteType result)
      : operands_(std::move(operands)), result_(*Literal::Create(result)) {
    attrs_ = Attributes(Def(op).attrs);
    instruction_.op = &Def(op);
    instruction_.attrs = &attrs_;
    for (const Literal& operand : operands_) instruction_.operands.push_back(operand.type());
    instruction_.results.push_back(std::move(result));
  }
  Attributes& attrs() { return attrs_; }
  const BoundInstruction& instruction() const { return instruction_; }

  // Returns the kernel's result on a pool of that size.
  std::string Run(int threads) {
    auto kernel = MakeElementwiseKernel(instruction_);
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    if (!kernel.ok()) return "";
    ThreadPool pool(threads);
    std::vector<const void*> operands;
    for (const Literal& operand : operands_) operands.push_back(operand.bytes().data());
    void* result = result_.mutable_data();
    (*kernel)->Run({.operands = operands, .results = absl::MakeSpan(&result, 1), .scratch = nullptr, .pool = &pool});
    EXPECT_EQ((*kernel)->scratch_bytes(), 0);
    return std::string(result_.bytes());
  }

  // The same with operand `in_place` as the place of the result.
  std::string RunInPlace(size_t in_place) {
    auto kernel = MakeElementwiseKernel(instruction_);
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    if (!kernel.ok()) return "";
    ThreadPool pool(2);
    Literal place = operands_[in_place];
    std::vector<const void*> operands;
    for (const Literal& operand : operands_) operands.push_back(operand.bytes().data());
    operands[in_place] = place.bytes().data();
    void* result = place.mutable_data();
    (*kernel)->Run({.operands = operands, .results = absl::MakeSpan(&result, 1), .scratch = nullptr, .pool = &pool});
    return std::string(place.bytes());
  }

  // Returns the result of the op's reference.
  std::string Reference() {
    Literal result = *Literal::Create(instruction_.results[0]);
    std::vector<const Literal*> operands;
    for (const Literal& operand : operands_) operands.push_back(&operand);
    const absl::Status status =
        Def(static_cast<CoreOp>(instruction_.op->index))
            .reference.get()({.attrs = attrs_, .operands = operands, .results = absl::MakeSpan(&result, 1)});
    EXPECT_TRUE(status.ok()) << status;
    return std::string(result.bytes());
  }

 private:
  std::vector<Literal> operands_;
  Literal result_;
  Attributes attrs_;
  BoundInstruction instruction_;
};

template <typename T>
void ExpectAgree(const std::string& got, const std::string& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); i += sizeof(T)) {
    T a, b;
    std::memcpy(&a, got.data() + i, sizeof(T));
    std::memcpy(&b, want.data() + i, sizeof(T));
    ASSERT_TRUE(Agree(a, b, 0)) << what << ": element " << i / sizeof(T) << " is " << Show(a) << ", not " << Show(b);
  }
}

// The reference decides; bits must not depend on the pool or on the place of the result.
void ExpectReference(Call& call, DType result, const std::string& what) {
  const std::string once = call.Run(1);
  VisitDType(result, [&]<typename T>(TypeTag<T>) { ExpectAgree<T>(once, call.Reference(), what); });
  EXPECT_EQ(call.Run(2), once) << what;
  EXPECT_EQ(call.Run(4), once) << what;
}

DType ResultOf(CoreOp op, DType dtype) {
  if (op == CoreOp::kIsFinite) return DType::kBool;
  if (op == CoreOp::kAbs || op == CoreOp::kReal || op == CoreOp::kImag) return RealPartOf(dtype);
  if (op == CoreOp::kComplex) return dtype == DType::kF64 ? DType::kC128 : DType::kC64;
  return dtype;
}

TEST(ElementwiseKernelsTest, UnaryAndBinaryBitsDoNotDependOnThreads) {
  for (DType dtype : kAllDTypes) {
    for (int i = 0; i < kNumCoreOps; ++i) {
      const CoreOp op = static_cast<CoreOp>(i);
      const ElementwiseFunction function = FindElementwise(op, dtype);
      if (function == nullptr) continue;
      const int64_t n = 2 * ElementsPerTask(op, dtype) + 333;
      std::vector<Literal> operands = {Sample({dtype, {n}}, 1)};
      if (Def(op).max_operands == 2) operands.push_back(Sample({dtype, {n}}, 2));
      const ConcreteType type{ResultOf(op, dtype), {n}};
      Literal whole = *Literal::Create(type);
      function(operands[0].bytes().data(), operands.back().bytes().data(), whole.mutable_data(), n);
      Call call(op, std::move(operands), type);
      const std::string what = absl::StrCat(Def(op).name, " ", Name(dtype));
      for (int threads : {1, 2, 4}) ASSERT_EQ(call.Run(threads), std::string(whole.bytes())) << what;
    }
  }
}

TEST(ElementwiseKernelsTest, EmptyAndRankZero) {
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kC128, DType::kI64}) {
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{3, 0, 2}}) {
      const ConcreteType type{dtype, shape};
      Call add(CoreOp::kAdd, {Sample(type, 1), Sample(type, 2)}, type);
      ExpectReference(add, dtype, "add");
      Call clamp(CoreOp::kClamp, {Sample({dtype, {}}, 1), Sample(type, 2), Sample({dtype, {}}, 3)}, type);
      ExpectReference(clamp, dtype, "clamp");
      Call select(CoreOp::kSelect, {Sample({DType::kBool, {}}, 1), Sample(type, 2), Sample(type, 3)}, type);
      ExpectReference(select, dtype, "select");
    }
  }
}

TEST(ElementwiseKernelsTest, Compare) {
  for (DType dtype : kAllDTypes) {
    for (int64_t direction = 1; direction <= 6; ++direction) {
      const int64_t n = 70001;
      Call call(CoreOp::kCompare, {Sample({dtype, {n}}, 1), Sample({dtype, {n}}, 2)}, {DType::kBool, {n}});
      call.attrs().Set("direction", direction);
      if (kComplexes.Contains(dtype) && direction > 2) {
        const auto refused = MakeElementwiseKernel(call.instruction());
        ASSERT_FALSE(refused.ok());
        EXPECT_EQ(DetailOf(refused.status())->reason, "UNSUPPORTED_ON_DEVICE");
        continue;
      }
      ExpectReference(call, DType::kBool, "compare");
    }
  }
}

TEST(ElementwiseKernelsTest, Select) {
  for (DType dtype : kAllDTypes) {
    const ConcreteType type{dtype, {331, 211}};
    Call call(CoreOp::kSelect, {Sample({DType::kBool, {331, 211}}, 1), Sample(type, 2), Sample(type, 3)}, type);
    ExpectReference(call, dtype, "select");
    EXPECT_EQ(call.RunInPlace(1), call.Run(1));
    EXPECT_EQ(call.RunInPlace(2), call.Run(1));
    if (dtype == DType::kBool) {
      EXPECT_EQ(call.RunInPlace(0), call.Run(1));
    }
    for (bool pred : {false, true}) {
      Call single(CoreOp::kSelect, {Literal::Scalar(Bool(pred)), Sample(type, 2), Sample(type, 3)}, type);
      ExpectReference(single, dtype, "select by one predicate");
      EXPECT_EQ(single.RunInPlace(1), single.Run(1));
      EXPECT_EQ(single.RunInPlace(2), single.Run(1));
    }
  }
}

TEST(ElementwiseKernelsTest, Clamp) {
  for (DType dtype : kAllDTypes) {
    const ConcreteType type{dtype, {70003}};
    for (bool single_low : {false, true}) {
      for (bool single_high : {false, true}) {
        // Some of the bounds are NaN or the wrong way round: the upper one wins.
        Call call(CoreOp::kClamp,
                  {Sample({dtype, single_low ? Shape{} : type.shape}, 5), Sample(type, 2),
                   Sample({dtype, single_high ? Shape{} : type.shape}, 6)},
                  type);
        ExpectReference(call, dtype, absl::StrCat("clamp ", Name(dtype)));
        const std::string apart = call.Run(1);
        EXPECT_EQ(call.RunInPlace(1), apart);
        if (!single_low) {
          EXPECT_EQ(call.RunInPlace(0), apart);
        }
        if (!single_high) {
          EXPECT_EQ(call.RunInPlace(2), apart);
        }
      }
    }
  }
}

TEST(ElementwiseKernelsTest, Convert) {
  for (DType from : kAllDTypes) {
    for (DType to : kAllDTypes) {
      Call call(CoreOp::kConvert, {Sample({from, {70001}}, 1)}, {to, {70001}});
      call.attrs().Set("dtype", to);
      ExpectReference(call, to, absl::StrCat(Name(from), " to ", Name(to)));
    }
  }
}

TEST(ElementwiseKernelsTest, Iota) {
  for (DType dtype : kAllDTypes) {
    if (dtype == DType::kBool) continue;
    for (const Shape& shape :
         {Shape{70001}, Shape{0}, Shape{3, 5, 7}, Shape{4, 0, 2}, Shape{300, 2, 200}, Shape{1, 1}}) {
      for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis) {
        const ConcreteType type{dtype, shape};
        Call call(CoreOp::kIota, {}, type);
        call.attrs().Set("dimension", axis);
        ExpectReference(call, dtype, absl::StrCat("iota ", ToString(type)));
      }
    }
  }
}

TEST(ElementwiseKernelsTest, ResultsTooBigForTheCacheAreStreamed) {
  const int64_t n = StreamedResultBytes() / SizeOf(DType::kF32) + 777;
  const ConcreteType type{DType::kF32, {n}};
  Call call(CoreOp::kMultiply, {Sample(type, 1), Sample(type, 2)}, type);
  ExpectReference(call, DType::kF32, "a big product");
  EXPECT_EQ(call.RunInPlace(1), call.Run(2));
}

TEST(ElementwiseKernelsTest, OtherOpsAreRefused) {
  Call call(CoreOp::kTranspose, {Sample({DType::kF32, {2, 3}}, 1)}, {DType::kF32, {3, 2}});
  const auto kernel = MakeElementwiseKernel(call.instruction());
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(DetailOf(kernel.status())->reason, "UNSUPPORTED_ON_DEVICE");
  Call sine(CoreOp::kSin, {Sample({DType::kI32, {2}}, 1)}, {DType::kI32, {2}});
  EXPECT_FALSE(MakeElementwiseKernel(sine.instruction()).ok());
}

}  // namespace
}  // namespace tensord::cpu
