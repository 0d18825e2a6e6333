// The comparison of abi_test sees each kind of mistake in a declaration.

#include "tests/unit/backends/cuda/abi/same_abi.h"

#include <cstddef>

#include "gtest/gtest.h"

namespace tensord::cuda {
namespace {

enum Kind { kOne };
using Handle = struct HandleObject*;
using OtherHandle = struct OtherHandleObject*;
using Theirs = Kind(Handle*, const float*, size_t, Kind, void*);

template <typename Ours>
constexpr bool kIsSame = SameFunction<Theirs, Ours>::value;

TEST(SameAbiTest, SeesWrongDeclarations) {
  EXPECT_TRUE((kIsSame<int(OtherHandle*, const float*, unsigned long long, int, void*)>));
  EXPECT_TRUE((kIsSame<int(OtherHandle*, const void*, long, unsigned, void*)>));
  EXPECT_FALSE((kIsSame<int(OtherHandle*, const float*, size_t, int)>)) << "an argument is missing";
  EXPECT_FALSE((kIsSame<int(OtherHandle*, const float*, int, int, void*)>)) << "an argument is too narrow";
  EXPECT_FALSE((kIsSame<int(OtherHandle*, const float*, size_t, float, void*)>)) << "a float for an integer";
  EXPECT_FALSE((kIsSame<int(OtherHandle*, const double*, size_t, int, void*)>)) << "a pointer to wider numbers";
  EXPECT_FALSE((kIsSame<int(OtherHandle*, float*, size_t, int, void*)>)) << "a pointer that is written through";
  EXPECT_FALSE((kIsSame<int(OtherHandle, const float*, size_t, int, void*)>)) << "a handle for a pointer to one";
  EXPECT_FALSE((kIsSame<int(OtherHandle*, const float*, void*, int, void*)>)) << "a pointer for a number";
  EXPECT_FALSE((kIsSame<void(OtherHandle*, const float*, size_t, int, void*)>)) << "no result";
  EXPECT_FALSE((kIsSame<const char*(OtherHandle*, const float*, size_t, int, void*)>)) << "another result";
}

}  // namespace
}  // namespace tensord::cuda
