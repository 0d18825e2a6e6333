#include "clients/cli/programs/dtype_promotion.h"

#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace tensord::cli {
namespace {

using client::DType;

// The upper triangle of NumPy's table.
TEST(DTypePromotionTest, IsNumPys) {
  constexpr DType kAll[] = {DType::kBool, DType::kI32, DType::kI64, DType::kF16, DType::kBF16,
                            DType::kF32,  DType::kF64, DType::kC64, DType::kC128};
  const char* const promoted[] = {"bool i32 i64 f16 bf16 f32 f64 c64 c128",
                                  "i32 i64 f64 f64 f64 f64 c128 c128",
                                  "i64 f64 f64 f64 f64 c128 c128",
                                  "f16 f32 f32 f64 c64 c128",
                                  "bf16 f32 f64 c64 c128",
                                  "f32 f64 c64 c128",
                                  "f64 c128 c128",
                                  "c64 c128",
                                  "c128"};
  for (size_t i = 0; i < std::size(kAll); ++i) {
    std::string row, column;
    for (size_t j = i; j < std::size(kAll); ++j) {
      absl::StrAppend(&row, j > i ? " " : "", client::DTypeName(PromotedDType(kAll[i], kAll[j])));
      absl::StrAppend(&column, j > i ? " " : "", client::DTypeName(PromotedDType(kAll[j], kAll[i])));
    }
    EXPECT_EQ(row, promoted[i]);
    EXPECT_EQ(column, promoted[i]);
  }
}

}  // namespace
}  // namespace tensord::cli
