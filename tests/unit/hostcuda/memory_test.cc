#include <algorithm>
#include <csignal>

#include "tests/unit/hostcuda/host_device.h"

namespace tensord::cuda {
namespace {

class HostMemoryTest : public HostDeviceTest {
 protected:
  static constexpr size_t kGranule = size_t{2} << 20;

  CuAllocation Create(size_t bytes) {
    CuAllocation allocation = 0;
    const CuMemAllocationProp prop;
    EXPECT_EQ(cuda.cuMemCreate(&allocation, bytes, &prop, 0), kCuSuccess);
    return allocation;
  }
  CuAddress Reserve(size_t bytes) {
    CuAddress address = 0;
    EXPECT_EQ(cuda.cuMemAddressReserve(&address, bytes, 0, 0, 0), kCuSuccess);
    return address;
  }
  CuResult Allow(CuAddress address, size_t bytes) {
    const CuMemAccessDesc access;
    return cuda.cuMemSetAccess(address, bytes, &access, 1);
  }
};

TEST_F(HostMemoryTest, AllocationsAreAlignedFreshAndNeverTheSame) {
  std::vector<CuAddress> seen;
  for (size_t bytes : {1, 100, 256, 4096, 5000, 1 << 20}) {
    const CuAddress address = Device(bytes);
    EXPECT_EQ(address % 256, 0u);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), address), 0);
    seen.push_back(address);
    const std::vector<unsigned char> fresh = Read<unsigned char>(address, bytes);
    EXPECT_TRUE(std::all_of(fresh.begin(), fresh.end(), [](unsigned char byte) { return byte == 0xCD; }));
    EXPECT_EQ(cuda.cuMemFree_v2(address), kCuSuccess);
  }
  EXPECT_EQ(cuda.hostCudaLiveMemory(), 0);
}

TEST_F(HostMemoryTest, CountsAndLimitsBytes) {
  cuda.hostCudaSet("MEMORY", "1048576");
  size_t free = 0, total = 0;
  const CuAddress half = Device(512 * 1024);
  ASSERT_EQ(cuda.cuMemGetInfo_v2(&free, &total), kCuSuccess);
  EXPECT_EQ(total, 1048576u);
  EXPECT_EQ(free, 524288u);
  CuAddress more = 0;
  EXPECT_EQ(cuda.cuMemAlloc_v2(&more, 600 * 1024), kCuOutOfMemory);
  EXPECT_EQ(cuda.cuMemAlloc_v2(&more, SIZE_MAX - 5), kCuOutOfMemory);
  EXPECT_EQ(cuda.cuMemFree_v2(half), kCuSuccess);
  EXPECT_EQ(cuda.cuMemAlloc_v2(&more, 600 * 1024), kCuSuccess);
}

TEST_F(HostMemoryTest, RefusesWrongCalls) {
  CuAddress address = 0;
  EXPECT_EQ(cuda.cuMemAlloc_v2(&address, 0), kCuInvalidValue);
  EXPECT_EQ(cuda.cuMemFree_v2(0), kCuSuccess);
  address = Device(1000);
  EXPECT_EQ(cuda.cuMemFree_v2(address + 256), kCuInvalidValue) << "not where it begins";
  EXPECT_EQ(cuda.cuMemsetD32Async(address + 2, 0, 1, a), kCuInvalidValue) << "not aligned";
  EXPECT_EQ(cuda.cuMemsetD8Async(address, 0, 1001, a), kCuInvalidValue) << "past its end";
  EXPECT_EQ(cuda.cuMemcpyDtoDAsync_v2(address, address + 900, 200, a), kCuInvalidValue) << "past its end";
  EXPECT_EQ(cuda.cuMemFree_v2(address), kCuSuccess);
  EXPECT_EQ(cuda.cuMemFree_v2(address), kCuInvalidValue) << "freed twice";
}

TEST_F(HostMemoryTest, FillsAndCopies) {
  const CuAddress x = Device(64), y = Device(64);
  EXPECT_EQ(cuda.cuMemsetD8Async(x, 7, 64, a), kCuSuccess);
  EXPECT_EQ(cuda.cuMemsetD32Async(x + 8, 0x01020304, 2, a), kCuSuccess);
  EXPECT_EQ(cuda.cuMemcpyDtoDAsync_v2(y, x, 64, a), kCuSuccess);
  std::vector<unsigned> want(16, 0x07070707);
  want[2] = want[3] = 0x01020304;
  EXPECT_EQ(Read<unsigned>(y, 16), want);
}

TEST_F(HostMemoryTest, MappedMemoryKeepsItsBytesAtAnotherAddress) {
  const CuAddress range = Reserve(4 * kGranule);
  const CuAllocation two = Create(2 * kGranule);
  ASSERT_EQ(cuda.cuMemMap(range, 2 * kGranule, 0, two, 0), kCuSuccess);
  ASSERT_EQ(Allow(range, 2 * kGranule), kCuSuccess);
  EXPECT_EQ(Read<unsigned char>(range + 5, 1).front(), 0xCD);
  Write<int>(range + kGranule - 8, {1, 2, 3, 4});
  ASSERT_EQ(cuda.cuMemUnmap(range, 2 * kGranule), kCuSuccess);
  ASSERT_EQ(cuda.cuMemMap(range + 2 * kGranule, 2 * kGranule, 0, two, 0), kCuSuccess);
  ASSERT_EQ(Allow(range + 2 * kGranule, 2 * kGranule), kCuSuccess);
  EXPECT_EQ(Read<int>(range + 3 * kGranule - 8, 4), (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(cuda.cuMemRelease(two), kCuSuccess) << "it lives as long as it is mapped";
  EXPECT_EQ(Read<int>(range + 3 * kGranule - 8, 4), (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(cuda.cuMemUnmap(range + 2 * kGranule, 2 * kGranule), kCuSuccess);
  EXPECT_EQ(cuda.cuMemAddressFree(range, 4 * kGranule), kCuSuccess);
  EXPECT_EQ(cuda.hostCudaLiveMemory(), 0);
}

TEST_F(HostMemoryTest, RefusesWrongMappings) {
  const CuAddress range = Reserve(4 * kGranule);
  const CuAllocation one = Create(kGranule), other = Create(kGranule);
  EXPECT_EQ(cuda.cuMemMap(range + 4096, kGranule, 0, one, 0), kCuInvalidValue) << "not aligned";
  EXPECT_EQ(cuda.cuMemMap(range, 2 * kGranule, 0, one, 0), kCuInvalidValue) << "more than it has";
  EXPECT_EQ(cuda.cuMemMap(range + 4 * kGranule, kGranule, 0, one, 0), kCuInvalidValue) << "not reserved";
  ASSERT_EQ(cuda.cuMemMap(range, kGranule, 0, one, 0), kCuSuccess);
  EXPECT_EQ(cuda.cuMemMap(range, kGranule, 0, other, 0), kCuInvalidValue) << "mapped already";
  EXPECT_EQ(cuda.cuMemsetD8Async(range, 0, 1, a), kCuInvalidValue) << "nobody has access yet";
  EXPECT_EQ(Allow(range, 2 * kGranule), kCuInvalidValue) << "the second half is not mapped";
  EXPECT_EQ(cuda.cuMemUnmap(range, 2 * kGranule), kCuInvalidValue);
  EXPECT_EQ(cuda.cuMemAddressFree(range, 4 * kGranule), kCuInvalidValue) << "still mapped";
  CuAllocation odd = 0;
  const CuMemAllocationProp prop;
  EXPECT_EQ(cuda.cuMemCreate(&odd, kGranule + 4096, &prop, 0), kCuInvalidValue) << "no whole granules";
  size_t granule = 0;
  EXPECT_EQ(cuda.cuMemGetAllocationGranularity(&granule, &prop, kCuMemGranularityMinimum), kCuSuccess);
  EXPECT_EQ(granule, kGranule);
  cuda.hostCudaSet("MEMORY", "6291456");  // three granules
  EXPECT_EQ(cuda.cuMemCreate(&odd, 2 * kGranule, &prop, 0), kCuOutOfMemory);
}

TEST_F(HostMemoryTest, CopiesWantPinnedMemory) {
  const CuAddress x = Device(64);
  alignas(4096) char host[8192];
  EXPECT_EQ(cuda.cuMemcpyHtoDAsync_v2(x, host, 64, a), kCuInvalidValue);
  EXPECT_EQ(cuda.cuMemHostRegister_v2(host + 64, 4096, 0), kCuInvalidValue) << "no whole pages";
  EXPECT_EQ(cuda.cuMemHostRegister_v2(host, 100, 0), kCuInvalidValue);
  EXPECT_EQ(cuda.cuMemHostRegister_v2(host, 4096, 8), kCuInvalidValue) << "a flag for memory that is only read";
  ASSERT_EQ(cuda.cuMemHostRegister_v2(host, 4096, 0), kCuSuccess);
  EXPECT_EQ(cuda.cuMemHostRegister_v2(host, 8192, 0), kCuHostMemoryAlreadyRegistered);
  EXPECT_EQ(cuda.cuMemcpyHtoDAsync_v2(x, host + 4032, 64, a), kCuSuccess);
  EXPECT_EQ(cuda.cuMemcpyDtoHAsync_v2(host + 4033, x, 64, a), kCuInvalidValue) << "past the registered part";
  EXPECT_EQ(cuda.cuStreamSynchronize(a), kCuSuccess);
  EXPECT_EQ(cuda.cuMemFreeHost(host), kCuInvalidValue);
  EXPECT_EQ(cuda.cuMemHostUnregister(host), kCuSuccess);
  EXPECT_EQ(cuda.cuMemHostUnregister(host), kCuHostMemoryNotRegistered);
}

}  // namespace
}  // namespace tensord::cuda
