#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <utility>

#include "tests/unit/hostcuda/host_device.h"

namespace tensord::cuda {
namespace {

class HostModulesTest : public HostDeviceTest {
 protected:
  static std::vector<const char*> Options(const char* architecture) { return {"--fmad=false", architecture}; }
};

TEST_F(HostModulesTest, TheCompilerKnowsItsOptions) {
  std::string cubin, log;
  EXPECT_EQ(Compile(kScale, Options("--gpu-architecture=sm_90"), &cubin, &log), kNvrtcSuccess) << log;
  EXPECT_FALSE(cubin.empty());
  EXPECT_EQ(Compile(kScale, Options("-arch=compute_90"), &cubin, &log), kNvrtcSuccess) << log;
  EXPECT_TRUE(cubin.empty()) << "machine code is for a real architecture";
  EXPECT_EQ(Compile(kScale, Options("--gpu-architecture=sm_9"), nullptr, &log), kNvrtcInvalidOption);
  EXPECT_EQ(Compile(kScale, {"--fmad=false", "-arch=sm_90", "--fast"}, nullptr, &log), kNvrtcInvalidOption);
  EXPECT_NE(log.find("--fast"), std::string::npos) << log;
  EXPECT_EQ(Compile(kScale, {"-arch=sm_90"}, nullptr, &log), kNvrtcInvalidOption);
  EXPECT_NE(log.find("--fmad=false"), std::string::npos) << log;
}

TEST_F(HostModulesTest, TheLogNamesTheLine) {
  std::string log;
  EXPECT_EQ(Compile("extern \"C\" __global__ void wrong(int* x) {\n\n  *x = nothing;\n}", Options("-arch=sm_90"),
                    nullptr, &log),
            kNvrtcCompilation);
  EXPECT_NE(log.find("test.cu:3"), std::string::npos) << log;
  EXPECT_NE(log.find("nothing"), std::string::npos) << log;
}

TEST_F(HostModulesTest, DefinitionsReachTheText) {
  std::string cubin, log;
  EXPECT_EQ(Compile("extern \"C\" __global__ void k(int* x) { *x = WORD; }",
                    {"--fmad=false", "-arch=sm_90", "-DWORD=5"}, &cubin, &log),
            kNvrtcSuccess)
      << log;
}

// A process that compiles kernels for others, in a folder that is gone with the test.
class HostImagesTest : public HostModulesTest {
 protected:
  void SetUp() override {
    HostModulesTest::SetUp();
    char path[] = "/tmp/host-images.XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    folder_ = path;
    cuda.hostCudaSet("IMAGES", path);
  }
  void TearDown() override {
    cuda.hostCudaSet("IMAGES", "");
    std::filesystem::remove_all(folder_);
    HostModulesTest::TearDown();
  }

  static std::string TextOf(int value) {
    return "extern \"C\" __global__ void number(int* x) { *x = " + std::to_string(value) + "; }";
  }
  bool Compiles(const std::string& source) {
    std::string cubin;
    return Compile(source, Options("-arch=sm_90"), &cubin, nullptr) == kNvrtcSuccess && !cubin.empty();
  }
  void CompileElsewhere(const std::string& source) {
    const pid_t process = fork();
    if (process == 0) _exit(Compiles(source) ? 0 : 1);
    int status = -1;
    ASSERT_EQ(waitpid(process, &status, 0), process);
    ASSERT_EQ(status, 0);
  }
  std::vector<std::filesystem::path> Entries() const {
    const std::filesystem::directory_iterator begin(folder_);
    return {begin, std::filesystem::directory_iterator()};
  }
  // Returns what the kernel of a text writes, and how often this process ran the compiler for it.
  std::pair<int, long> NumberOf(const std::string& source) {
    const long before = cuda.hostCudaCompilations();
    const CuFunction function = Kernel(source, "number");
    const long compilations = cuda.hostCudaCompilations() - before;
    CuAddress x = Device(sizeof(int));
    EXPECT_EQ(Launch(function, a, 1, 1, {&x}), kCuSuccess);
    const int number = Read<int>(x, 1)[0];
    EXPECT_EQ(cuda.cuMemFree_v2(x), kCuSuccess);
    return {number, compilations};
  }

  std::string folder_;
};

TEST_F(HostImagesTest, WhatOneProcessCompilesTheNextOneReads) {
  CompileElsewhere(TextOf(41));
  ASSERT_EQ(Entries().size(), 1u);
  EXPECT_EQ(NumberOf(TextOf(41)), std::pair(41, 0L));
  EXPECT_EQ(NumberOf(TextOf(42)), std::pair(42, 1L)) << "another text";
  EXPECT_EQ(Entries().size(), 2u);
  cuda.hostCudaSet("CXXFLAGS", "-DOTHER");
  EXPECT_EQ(NumberOf(TextOf(41)), std::pair(41, 1L)) << "other options";
  cuda.hostCudaSet("CXXFLAGS", "");
  cuda.hostCudaSet("CHECK", "1");
  EXPECT_EQ(NumberOf(TextOf(41)), std::pair(41, 1L)) << "with checks";
}

TEST_F(HostImagesTest, EntriesThatAreNotWholeAreCompiledAgain) {
  CompileElsewhere(TextOf(51));
  ASSERT_EQ(Entries().size(), 1u);
  std::filesystem::resize_file(Entries()[0], std::filesystem::file_size(Entries()[0]) - 1);
  EXPECT_EQ(NumberOf(TextOf(51)), std::pair(51, 1L));
  EXPECT_EQ(Entries().size(), 1u);
  // Another key under its name.
  CompileElsewhere(TextOf(52));
  CompileElsewhere(TextOf(53));
  std::vector<std::filesystem::path> places;
  for (const auto& place : Entries()) {
    std::ifstream in(place, std::ios::binary);
    const std::string entry((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    if (entry.find("*x = 51") == entry.npos) places.push_back(place);
  }
  ASSERT_EQ(places.size(), 2u);
  std::filesystem::rename(places[0], places[1]);
  const auto first = NumberOf(TextOf(52)), second = NumberOf(TextOf(53));
  EXPECT_EQ(first.first, 52);
  EXPECT_EQ(second.first, 53);
  EXPECT_EQ(first.second + second.second, 2);
}

TEST_F(HostImagesTest, AFolderThatCannotBeUsedChangesNothing) {
  cuda.hostCudaSet("IMAGES", "/dev/null/images");
  EXPECT_EQ(NumberOf(TextOf(61)), std::pair(61, 1L));
  cuda.hostCudaSet("IMAGES", "none");
  EXPECT_EQ(NumberOf(TextOf(62)), std::pair(62, 1L));
  EXPECT_TRUE(Entries().empty());
}

// Kernels that are compiled when the first of them is launched.
class WaitingKernelsTest : public HostModulesTest {
 protected:
  void SetUp() override {
    HostModulesTest::SetUp();
    cuda.hostCudaSet("IMAGES", "none");
    cuda.hostCudaSet("TOGETHER", "1");
  }
  void TearDown() override {
    cuda.hostCudaSet("TOGETHER", "");
    cuda.hostCudaSet("IMAGES", "");
    HostModulesTest::TearDown();
  }
  // A text with a function, shared memory of the launch, and a definition, whose names all texts use.
  static std::string TextOf(int value) {
    const std::string number = std::to_string(value);
    return "#define NUMBER " + number + "\n__device__ int Number() { return NUMBER; }\n" +
           "extern \"C\" __global__ void number(int* x) { extern __shared__ int " + (value % 2 == 0 ? "a" : "b") +
           "[]; " + (value % 2 == 0 ? "int b = 0; a[0] = b;" : "int a = 0; b[0] = a;") + " *x = Number(); }";
  }
  int Number(CuFunction function) {
    CuAddress x = Device(sizeof(int));
    EXPECT_EQ(Launch(function, a, 1, 1, {&x}, 16), kCuSuccess);
    const int number = Read<int>(x, 1)[0];
    EXPECT_EQ(cuda.cuMemFree_v2(x), kCuSuccess);
    return number;
  }
};

TEST_F(WaitingKernelsTest, AreMadeInOneCall) {
  const long before = cuda.hostCudaCompilations();
  std::vector<CuFunction> functions;
  for (int i = 70; i < 75; ++i) functions.push_back(Kernel(TextOf(i), "number"));
  EXPECT_NE(Kernel(TextOf(70), "number"), functions[0]) << "a module of its own";
  EXPECT_EQ(cuda.hostCudaCompilations(), before);
  for (int i = 70; i < 75; ++i) EXPECT_EQ(Number(functions[static_cast<size_t>(i - 70)]), i);
  EXPECT_EQ(cuda.hostCudaCompilations(), before + 1);
  EXPECT_EQ(Number(Kernel(TextOf(72), "number")), 72);
  EXPECT_EQ(cuda.hostCudaCompilations(), before + 1) << "it is known";
}

TEST_F(WaitingKernelsTest, OnesThatAreWrongFailAlone) {
  const CuFunction first = Kernel(TextOf(80), "number");
  const CuFunction wrong = Kernel("extern \"C\" __global__ void number(int* x) { *x = nothing; }", "number");
  const CuFunction last = Kernel(TextOf(81), "number");
  CuAddress x = Device(sizeof(int));
  EXPECT_EQ(Launch(wrong, a, 1, 1, {&x}), kCuInvalidImage);
  EXPECT_EQ(cuda.cuMemFree_v2(x), kCuSuccess);
  EXPECT_EQ(Number(first), 80);
  EXPECT_EQ(Number(last), 81);

  std::string cubin;
  ASSERT_EQ(Compile(TextOf(82), Options("-arch=sm_90"), &cubin, nullptr), kNvrtcSuccess);
  CuModule module = nullptr;
  CuFunction function = nullptr;
  ASSERT_EQ(cuda.cuModuleLoadData(&module, cubin.data()), kCuSuccess);
  EXPECT_EQ(cuda.cuModuleGetFunction(&function, module, "numbe"), kCuNotFound);
}

TEST_F(HostModulesTest, RefusesWhatIsNoImageOrForAnotherDevice) {
  CuModule module = nullptr;
  EXPECT_EQ(cuda.cuModuleLoadData(&module, "no image"), kCuInvalidImage);
  EXPECT_EQ(cuda.cuModuleLoadData(&module, ""), kCuInvalidImage);
  std::string cubin;
  ASSERT_EQ(Compile(kScale, Options("-arch=sm_80"), &cubin, nullptr), kNvrtcSuccess);
  EXPECT_EQ(cuda.cuModuleLoadData(&module, cubin.data()), kCuNoBinaryForGpu);
}

// The driver compiles PTX, for its architecture and all later ones.
TEST_F(HostModulesTest, TextIsForLaterDevicesToo) {
  NvrtcProgram program = nullptr;
  for (const int architecture : {80, 90, 100}) {
    ASSERT_EQ(cuda.nvrtcCreateProgram(&program, kScale, "test.cu", 0, nullptr, nullptr), kNvrtcSuccess);
    const std::string option = "-arch=compute_" + std::to_string(architecture);
    const std::vector<const char*> options = Options(option.c_str());
    ASSERT_EQ(cuda.nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data()), kNvrtcSuccess);
    size_t bytes = 0;
    ASSERT_EQ(cuda.nvrtcGetPTXSize(program, &bytes), kNvrtcSuccess);
    std::string ptx(bytes, 0);
    ASSERT_EQ(cuda.nvrtcGetPTX(program, ptx.data()), kNvrtcSuccess);
    EXPECT_EQ(cuda.nvrtcDestroyProgram(&program), kNvrtcSuccess);
    CuModule module = nullptr;
    EXPECT_EQ(cuda.cuModuleLoadData(&module, ptx.data()), architecture <= 90 ? kCuSuccess : kCuNoBinaryForGpu);
    if (module != nullptr) {
      EXPECT_EQ(cuda.cuModuleUnload(module), kCuSuccess);
    }
  }
}

TEST_F(HostModulesTest, FunctionsGoWithTheirModule) {
  std::string cubin;
  ASSERT_EQ(Compile(kScale, Options("-arch=sm_90"), &cubin, nullptr), kNvrtcSuccess);
  CuModule module = nullptr;
  CuFunction function = nullptr, same = nullptr;
  ASSERT_EQ(cuda.cuModuleLoadData(&module, cubin.data()), kCuSuccess);
  EXPECT_EQ(cuda.cuModuleGetFunction(&function, module, "other"), kCuNotFound);
  ASSERT_EQ(cuda.cuModuleGetFunction(&function, module, "scale"), kCuSuccess);
  ASSERT_EQ(cuda.cuModuleGetFunction(&same, module, "scale"), kCuSuccess);
  EXPECT_EQ(function, same);
  EXPECT_EQ(cuda.cuModuleUnload(module), kCuSuccess);
  EXPECT_EQ(cuda.cuModuleUnload(module), kCuInvalidHandle);
  EXPECT_EQ(Launch(function, a, 1, 1, {}), kCuInvalidHandle);
}

TEST_F(HostModulesTest, RefusesLaunchesThatNoDeviceTakes) {
  const CuFunction turn = Kernel(kReverse, "turn");
  CuAddress x = Device(2048);
  EXPECT_EQ(Launch(turn, a, 0, 256, {&x}), kCuInvalidValue);
  EXPECT_EQ(Launch(turn, a, 1, 0, {&x}), kCuInvalidValue);
  EXPECT_EQ(Launch(turn, a, 1, 1025, {&x}), kCuInvalidValue);
  EXPECT_EQ(Launch(turn, a, 1, 256, {nullptr}), kCuInvalidValue);
  EXPECT_EQ(Launch(turn, a, 1, 256, {&x}, 49 * 1024), kCuInvalidValue) << "nobody has asked for so much";
  EXPECT_EQ(cuda.cuFuncSetAttribute(turn, kCuFuncMaxDynamicSharedSizeBytes, 228 * 1024), kCuInvalidValue);
  EXPECT_EQ(cuda.cuFuncSetAttribute(turn, kCuFuncMaxDynamicSharedSizeBytes, 227 * 1024), kCuSuccess);
  int bytes = 0;
  EXPECT_EQ(cuda.cuFuncGetAttribute(&bytes, kCuFuncMaxDynamicSharedSizeBytes, turn), kCuSuccess);
  EXPECT_EQ(bytes, 227 * 1024);
  EXPECT_EQ(Launch(turn, a, 1, 256, {&x}, 227 * 1024), kCuSuccess);
  EXPECT_EQ(cuda.cuStreamSynchronize(a), kCuSuccess);
}

TEST_F(HostModulesTest, ArgumentsAreThoseOfTheCall) {
  const CuFunction put = Kernel(R"(
struct Pair { int first; double second; };
extern "C" __global__ void put(double* to, const double* optional, Pair pair, char c) {
  to[0] = pair.first + pair.second + c + (optional == nullptr ? 0.5 : optional[0]);
})",
                                "put");
  struct Pair {
    int first;
    double second;
  };
  CuAddress to = Device(16), at = to + 8, none = 0;
  Write<double>(to, {0, 100});
  Pair pair = {1, 20};
  char c = 4;
  cuda.hostCudaSet("DELAY_US", "5000");
  ASSERT_EQ(Launch(put, a, 1, 1, {&to, &none, &pair, &c}), kCuSuccess);
  pair = {1000, 1000};
  c = 100;
  EXPECT_EQ(Read<double>(to, 1).front(), 25.5);
  pair = {1, 20};
  c = 4;
  ASSERT_EQ(Launch(put, a, 1, 1, {&to, &at, &pair, &c}), kCuSuccess);
  EXPECT_EQ(Read<double>(to, 1).front(), 125);
}

TEST_F(HostModulesTest, PointersInMemoryAreTranslated) {
  const CuFunction add = Kernel(R"(
extern "C" __global__ void add(const unsigned long long* slots) {
  HostPointer<int>(__ldg(slots + 1))[threadIdx.x] = HostPointer<int>(slots[0])[threadIdx.x] + 1;
})",
                                "add");
  const CuAddress x = Device(16), y = Device(16);
  CuAddress slots = Device(16);
  Write<int>(x, {1, 2, 3, 4});
  Write<CuAddress>(slots, {x, y});
  ASSERT_EQ(Launch(add, a, 1, 4, {&slots}), kCuSuccess);
  EXPECT_EQ(Read<int>(y, 4), (std::vector<int>{2, 3, 4, 5}));
}

TEST_F(HostModulesTest, GridsAndBlocksHaveThreeDimensions) {
  const CuFunction mark = Kernel(R"(
extern "C" __global__ void mark(int* to) {
  const int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  to[block * 24 + thread] += 1 + thread + 100 * block;
})",
                                 "mark");
  constexpr size_t kN = 24 * 24;
  CuAddress to = Device(kN * 4);
  Write(to, std::vector<int>(kN));
  void* arguments[] = {&to};
  ASSERT_EQ(cuda.cuLaunchKernel(mark, 4, 3, 2, 2, 3, 4, 0, a, arguments, nullptr), kCuSuccess);
  std::vector<int> want(kN);
  for (int i = 0; i < static_cast<int>(kN); ++i) want[static_cast<size_t>(i)] = 1 + i % 24 + 100 * (i / 24);
  EXPECT_EQ(Read<int>(to, kN), want);
}

TEST_F(HostModulesTest, WarpsExchangeValues) {
  const CuFunction exchange = Kernel(R"(
extern "C" __global__ void exchange(int* to, int n) {
  const int t = threadIdx.x;
  to[t] = __shfl_xor_sync(0xffffffffu, t, 1);
  to[n + t] = __shfl_down_sync(0xffffffffu, t, 3);
  to[2 * n + t] = __shfl_up_sync(0xffffffffu, t, 3);
  to[3 * n + t] = __shfl_sync(0xffffffffu, t, 5);
  to[4 * n + t] = (int)__ballot_sync(0xffffffffu, t % 3 == 0);
  to[5 * n + t] = __any_sync(0xffffffffu, t == 40) + 2 * __all_sync(0xffffffffu, t < 40);
})",
                                     "exchange");
  int n = 64;
  CuAddress to = Device(6 * 64 * 4);
  ASSERT_EQ(Launch(exchange, a, 1, 64, {&to, &n}), kCuSuccess);
  const std::vector<int> got = Read<int>(to, 6 * 64);
  for (int t = 0; t < 64; ++t) {
    const auto at = [&](int row) { return got[static_cast<size_t>(row * 64 + t)]; };
    EXPECT_EQ(at(0), t ^ 1);
    EXPECT_EQ(at(1), t % 32 < 29 ? t + 3 : t);
    EXPECT_EQ(at(2), t % 32 >= 3 ? t - 3 : t);
    EXPECT_EQ(at(3), t / 32 * 32 + 5);
    EXPECT_EQ(at(4), static_cast<int>(t < 32 ? 0x49249249u : 0x92492492u));
    EXPECT_EQ(at(5), t < 32 ? 2 : 1);
  }
}

TEST_F(HostModulesTest, AtomicsAddUp) {
  const CuFunction count = Kernel(R"(
extern "C" __global__ void count(int* to, double* sum, unsigned long long* most, unsigned* bits) {
  atomicAdd(to, 2);
  atomicAdd(sum, 0.5);
  atomicMax(most, (unsigned long long)threadIdx.x + blockIdx.x * 100);
  atomicOr(bits, 1u << threadIdx.x % 4);
  if (threadIdx.x == 0 && blockIdx.x == 0) atomicCAS(to + 1, 7, 9);
})",
                                  "count");
  CuAddress to = Device(8), sum = Device(8), most = Device(8), bits = Device(4);
  Write<int>(to, {0, 7});
  Write<double>(sum, {0});
  Write<unsigned long long>(most, {0});
  Write<unsigned>(bits, {16});
  ASSERT_EQ(Launch(count, a, 3, 64, {&to, &sum, &most, &bits}), kCuSuccess);
  EXPECT_EQ(Read<int>(to, 2), (std::vector<int>{2 * 3 * 64, 9}));
  EXPECT_EQ(Read<double>(sum, 1).front(), 96);
  EXPECT_EQ(Read<unsigned long long>(most, 1).front(), 263u);
  EXPECT_EQ(Read<unsigned>(bits, 1).front(), 31u);
}

// A reduction of a block through shared memory that the launch sizes: the same whatever the order of the threads.
TEST_F(HostModulesTest, BlocksShareMemory) {
  const CuFunction sum = Kernel(R"(
extern "C" __global__ void __launch_bounds__(256) sum(const float* x, float* y) {
  extern __shared__ __align__(16) float parts[];
  parts[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
  }
  if (threadIdx.x == 0) y[blockIdx.x] = parts[0];
})",
                                "sum");
  std::vector<float> values(512);
  std::iota(values.begin(), values.end(), 1.0f);
  for (const char* order : {"forward", "reverse"}) {
    cuda.hostCudaSet("ORDER", order);
    CuAddress x = Device(512 * 4), y = Device(8);
    Write(x, values);
    ASSERT_EQ(Launch(sum, a, 2, 256, {&x, &y}, 256 * 4), kCuSuccess);
    EXPECT_EQ(Read<float>(y, 2), (std::vector<float>{256 * 257 / 2, 256 * 256 + 256 * 257 / 2})) << order;
  }
}

TEST_F(HostModulesTest, ProductsAndSumsAreNotContracted) {
  const CuFunction product = Kernel(R"(
extern "C" __global__ void product(const double* x, double* y) { y[0] = x[0] * x[1] + x[2]; y[1] = fma(x[0], x[1], x[2]); }
)",
                                    "product");
  const double x = 1 + 0x1p-30, rounded = x * x;
  CuAddress in = Device(24), out = Device(16);
  Write<double>(in, {x, x, -rounded});
  ASSERT_EQ(Launch(product, a, 1, 1, {&in, &out}), kCuSuccess);
  EXPECT_EQ(Read<double>(out, 2), (std::vector<double>{0, std::fma(x, x, -rounded)}));
}

}  // namespace
}  // namespace tensord::cuda
