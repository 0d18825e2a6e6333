#include "engine/exec/binding/constant_buffers.h"

#include <atomic>
#include <memory>
#include <vector>

#include "engine/exec/binding/bound_constants.h"
#include "gtest/gtest.h"
#include "tests/unit/engine/runtime/gated_backend.h"

namespace tensord {
namespace {

LiteralPtr Number(int64_t value) { return std::make_shared<const Literal>(Literal::Scalar(value)); }

TEST(ConstantBuffers, EqualBytesLieThereOnceAsLongAsSomebodyHasThem) {
  GatedBackend backend;
  ConstantBuffers constants(&backend);
  const LiteralPtr seven = Number(7);
  BufferPtr first = *constants.Get(seven);
  EXPECT_EQ(*constants.Get(seven), first);
  EXPECT_EQ(*constants.Get(Number(7)), first) << "made once more";
  EXPECT_NE(*constants.Get(Number(8)), first);
  EXPECT_EQ(backend.live_buffers(), 1);
  first.reset();
  EXPECT_EQ(backend.live_buffers(), 0);
  EXPECT_EQ(*static_cast<const int64_t*>(backend.Export(*constants.Get(seven))->get()), 7);
}

TEST(ConstantBuffers, WhatIsGoneIsForgotten) {
  GatedBackend backend;
  ConstantBuffers constants(&backend);
  std::vector<BufferPtr> kept;
  for (int64_t i = 0; i < 1000; ++i) {
    BufferPtr buffer = *constants.Get(Number(i));
    EXPECT_EQ(*static_cast<const int64_t*>(backend.Export(buffer)->get()), i);
    if (i % 100 == 0) kept.push_back(std::move(buffer));
  }
  EXPECT_EQ(backend.live_buffers(), 10);
}

TEST(ConstantBuffers, WhatTheDeviceHasLostIsThereAnewOnceForAll) {
  GatedBackend backend;
  const auto lost = std::make_shared<std::atomic<bool>>(false);
  backend.loss = lost;
  const auto constants = std::make_shared<ConstantBuffers>(&backend);
  const LiteralPtr seven = Number(7);
  BoundConstants a({seven, Number(1)}, constants), b({seven}, constants);
  BoundConstants::Buffers of_a = *a.Get(), of_b = *b.Get();
  EXPECT_EQ((*of_a)[0], (*of_b)[0]);
  EXPECT_EQ(*a.Get(), of_a);
  lost->store(true);
  backend.loss = nullptr;  // of the device that takes its place
  const BoundConstants::Buffers anew = *a.Get();
  EXPECT_NE(anew, of_a);
  EXPECT_EQ((*anew)[0], (**b.Get())[0]);
  EXPECT_EQ(*a.Get(), anew);
  of_a = of_b = nullptr;
  EXPECT_EQ(backend.live_buffers(), 2);
}

}  // namespace
}  // namespace tensord
