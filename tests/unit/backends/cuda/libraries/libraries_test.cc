// Where NVIDIA's libraries are found, and the words if they are not: folders of links to the host CUDA device.

#include "backends/cuda/libraries/libraries.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cuda/libraries/library_build.h"
#include "backends/cuda/libraries/library_paths.h"
#include "backends/cuda/libraries/status.h"
#include "engine/base/refusal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/hostcuda/host_control.h"
#include "tests/testlib/reason_of.h"

namespace tensord::cuda {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class CudaLibrariesTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / ("cuda_libraries_" + std::to_string(getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_);
    void* const library = dlopen(TENSORD_HOST_CUDA, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    set_ = reinterpret_cast<decltype(set_)>(dlsym(library, "hostCudaSet"));
    fail_ = reinterpret_cast<decltype(fail_)>(dlsym(library, "hostCudaFail"));
  }
  void TearDown() override {
    for (const char* name : {"DRIVER_VERSION", "DEVICES"}) set_(name, "");
    fs::remove_all(root_);
  }

  // Makes a folder with links of these names.
  std::string Folder(const std::string& name, const std::vector<std::string>& files,
                     const char* target = TENSORD_HOST_CUDA) {
    const fs::path folder = root_ / name;
    fs::create_directories(folder);
    for (const std::string& file : files) fs::create_symlink(target, folder / file);
    return folder.string();
  }

  LibraryPaths Only(std::vector<std::string> folders) {
    return {.folders = std::move(folders),
            .asks_loader = false,
            .toolkit_folders = {},
            .driver_release_file = (root_ / "version").string()};
  }

  fs::path root_;
  void (*set_)(const char*, const char*) = nullptr;
  void (*fail_)(const char*, long, int) = nullptr;
};

TEST_F(CudaLibrariesTest, BuildsOfOneVersionAreToldApart) {
  std::vector<std::string> builds;
  for (const char* const name : {"a.so", "b.so"}) {
    const fs::path copy = root_ / name;
    fs::copy_file(TENSORD_HOST_CUDA, copy);
    fs::last_write_time(copy, fs::file_time_type::clock::now() - std::chrono::hours(builds.size()));
    void* const library = dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    builds.push_back(LibraryBuild(dlsym(library, "nvrtcVersion")));
    EXPECT_EQ(LibraryBuild(dlsym(library, "cuInit")), builds.back());
  }
  EXPECT_NE(builds[0], builds[1]);
  EXPECT_NE(builds[0], "");
  EXPECT_EQ(LibraryBuild(nullptr), "");
}

TEST_F(CudaLibrariesTest, NoDriver) {
  const absl::Status status = Libraries::Open(Only({Folder("none", {})})).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_EQ(DeviceIsNotThere(0, status).message(),
            "device cuda:0 is not there: libcuda.so.1 was not found; the driver is installed on the host, a container "
            "needs --gpus all");
  EXPECT_TRUE(absl::IsUnavailable(DeviceIsNotThere(0, status)));
}

// To open a pipe is to wait for somebody who writes into it.
TEST_F(CudaLibrariesTest, OnlyFilesAreOpened) {
  const std::string driver = Folder("driver", {"libcuda.so.1"});
  for (const char* name : {"libcuda.so.1", "libnvrtc.so.13"}) {
    SCOPED_TRACE(name);
    const std::string pipe = Folder(std::string("pipe") + name, {}), folder = Folder(std::string("folder") + name, {});
    ASSERT_EQ(mkfifo((pipe + "/" + name).c_str(), 0600), 0);
    fs::create_directories(fs::path(folder) / name);
    const auto libraries = Libraries::Open(Only({pipe, folder, driver}));
    ASSERT_TRUE(libraries.ok()) << libraries.status() << ": it goes on with the next folder";
    if (std::string(name) == "libcuda.so.1") {
      EXPECT_EQ(Libraries::Open(Only({pipe, folder})).status().message(),
                "libcuda.so.1 was not found (" + pipe + ": it is no file, " + folder +
                    ": it is no file); the driver is installed on the host, a container needs --gpus all");
    } else {
      EXPECT_THAT(std::string((*libraries)->nvrtc().status().message()),
                  HasSubstr(" was not found in: " + pipe + " (it is no file), " + folder + " (it is no file), "));
    }
  }
}

TEST_F(CudaLibrariesTest, SaysWhyTheDriverThatIsThereCannotBeOpened) {
  const std::string folder = Folder("damaged", {});
  std::ofstream(folder + "/libcuda.so.1") << "short";
  EXPECT_THAT(std::string(Libraries::Open(Only({folder})).status().message()),
              HasSubstr("libcuda.so.1 was not found (" + folder + ": " + folder + "/libcuda.so.1: file too short); "));
}

TEST_F(CudaLibrariesTest, TheDriverIsNotTakenFromAToolkit) {
  LibraryPaths paths = Only({});
  paths.toolkit_folders = {Folder("stubs", {"libcuda.so.1"})};
  EXPECT_TRUE(absl::IsUnavailable(Libraries::Open(paths).status()));
}

TEST_F(CudaLibrariesTest, NoDevice) {
  const std::string folder = Folder("driver", {"libcuda.so.1"});
  set_("DEVICES", "0");
  const absl::Status status = Libraries::Open(Only({folder})).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_EQ(status.message(),
            folder + "/libcuda.so.1 finds no device: CUDA_ERROR_NO_DEVICE; a container needs --gpus all");
}

TEST_F(CudaLibrariesTest, ADriverThatLacksAFunction) {
  const std::string folder = Folder("old", {"libcuda.so.1"}, TENSORD_EMPTY_LIBRARY);
  const absl::Status status = Libraries::Open(Only({folder})).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_EQ(status.message(), folder + "/libcuda.so.1 has no cuInit; install a driver of CUDA 12 or later");
}

TEST_F(CudaLibrariesTest, OpensWhatIsThereOnce) {
  const std::string folder = Folder("all", {"libcuda.so.1", "libnvrtc.so.13"});
  auto libraries = Libraries::Open(Only({folder}));
  ASSERT_TRUE(libraries.ok()) << libraries.status();
  EXPECT_EQ((*libraries)->driver_major(), 13);
  int count = 0;
  EXPECT_EQ((*libraries)->driver().cuDeviceGetCount(&count), kCuSuccess);
  EXPECT_EQ(count, 1);
  ASSERT_EQ((*libraries)->opened().size(), 1u) << "the others are opened when they are used";
  auto nvrtc = (*libraries)->nvrtc();
  ASSERT_TRUE(nvrtc.ok()) << nvrtc.status();
  EXPECT_EQ((*libraries)->nvrtc().value(), *nvrtc);
  const std::vector<LibraryInfo> opened = (*libraries)->opened();
  ASSERT_EQ(opened.size(), 2u);
  EXPECT_EQ(opened[0].name, "libcuda.so.1");
  EXPECT_EQ(opened[0].version, "13.0");
  EXPECT_EQ(opened[1].name, "libnvrtc.so.13");
  EXPECT_EQ(opened[1].version, "13.0");
  EXPECT_THAT(opened[1].path, HasSubstr(root_.string()));
}

TEST_F(CudaLibrariesTest, SaysWhereItLooked) {
  const std::string driver = Folder("driver", {"libcuda.so.1"}), empty = Folder("empty", {});
  const std::string toolkit = Folder("toolkit", {});
  std::ofstream(toolkit + "/libnvrtc.so.13") << "no library";
  LibraryPaths paths = Only({driver, empty});
  paths.toolkit_folders = {toolkit};
  auto libraries = Libraries::Open(paths);
  ASSERT_TRUE(libraries.ok()) << libraries.status();
  const absl::Status status = (*libraries)->nvrtc().status();
  EXPECT_EQ(ReasonOf(status), "UNSUPPORTED_ON_DEVICE");
  EXPECT_THAT(std::string(status.message()),
              testing::StartsWith("libnvrtc.so.13 was not found in: " + driver + ", " + empty + ", " + toolkit + " ("));
  EXPECT_THAT(std::string(status.message()), HasSubstr("file too short"));
  EXPECT_THAT(std::string(status.message()),
              testing::EndsWith("); set cuda.libraries, or pip install nvidia-cuda-nvrtc nvidia-cublas "
                                "nvidia-cusolver nvidia-cufft"));
  Folder("empty", {"libnvrtc.so.13"});
  EXPECT_EQ((*libraries)->nvrtc().status(), status) << "it is said once and for all";

  EXPECT_EQ((*libraries)->fft().status().message(),
            "libcufft.so.12 was not found in: " + driver + ", " + empty + ", " + toolkit +
                "; set cuda.libraries, or pip install nvidia-cuda-nvrtc nvidia-cublas nvidia-cusolver nvidia-cufft");
}

// As metrics and GetServerInfo ask while the first program of a server has a library opened.
TEST_F(CudaLibrariesTest, WhatIsOpenIsToldWhileAnotherIsBeingOpened) {
  const std::string folder = Folder("driver", {"libcuda.so.1"});
  LibraryPaths paths = Only({folder});
  paths.toolkit_folders = {Folder("toolkit", {"libnvrtc.so.13"}, TENSORD_SLOW_LIBRARY)};
  auto libraries = Libraries::Open(paths);
  ASSERT_TRUE(libraries.ok()) << libraries.status();
  int begun[2], go[2];
  ASSERT_EQ(pipe(begun), 0);
  ASSERT_EQ(pipe(go), 0);
  setenv("TENSORD_SLOW_LIBRARY", absl::StrCat(begun[1], ",", go[0]).c_str(), 1);
  std::thread opening([&] { EXPECT_FALSE((*libraries)->nvrtc().ok()) << "it has no functions"; });
  char byte = 0;
  EXPECT_EQ(read(begun[0], &byte, 1), 1);
  EXPECT_EQ((*libraries)->opened().size(), 1u);
  EXPECT_EQ(write(go[1], "x", 1), 1);
  EXPECT_EQ(read(begun[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y') << "who asks has waited until it was open";
  opening.join();
  unsetenv("TENSORD_SLOW_LIBRARY");
  for (const int end : {begun[0], begun[1], go[0], go[1]}) close(end);
}

TEST_F(CudaLibrariesTest, TheSettingComesBeforeTheToolkit) {
  const std::string first = Folder("first", {"libcuda.so.1", "libnvrtc.so.13"});
  LibraryPaths paths = Only({first});
  paths.toolkit_folders = {Folder("toolkit", {"libnvrtc.so.13"}, TENSORD_EMPTY_LIBRARY)};
  auto libraries = Libraries::Open(paths);
  ASSERT_TRUE(libraries.ok());
  EXPECT_TRUE((*libraries)->nvrtc().ok()) << (*libraries)->nvrtc().status();

  paths.folders = {Folder("second", {"libcuda.so.1"})};
  libraries = Libraries::Open(paths);
  ASSERT_TRUE(libraries.ok());
  EXPECT_THAT(std::string((*libraries)->nvrtc().status().message()),
              HasSubstr("libnvrtc.so.13 has no nvrtcVersion; install the newest libraries of CUDA 13"));
}

TEST_F(CudaLibrariesTest, ALibraryNewerThanTheDriver) {
  const std::string folder = Folder("newer", {"libcuda.so.1", "libcublasLt.so.13"});
  set_("DRIVER_VERSION", "12040");
  auto libraries = Libraries::Open(Only({folder}));
  ASSERT_TRUE(libraries.ok()) << libraries.status();
  EXPECT_EQ((*libraries)->driver_major(), 12);
  const absl::Status status = (*libraries)->blas_lt().status();
  EXPECT_EQ(ReasonOf(status), "UNSUPPORTED_ON_DEVICE");
  EXPECT_EQ(status.message(),
            "the driver (CUDA 12.4) is older than libcublasLt.so.13; install a newer driver, or CUDA 12's libraries");

  std::ofstream(root_ / "version") << "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22\n"
                                      "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n";
  libraries = Libraries::Open(Only({folder}));
  ASSERT_TRUE(libraries.ok());
  EXPECT_EQ((*libraries)->blas_lt().status().message(),
            "driver 550 (CUDA 12.4) is older than libcublasLt.so.13; install a newer driver, or CUDA 12's libraries");
}

TEST_F(CudaLibrariesTest, AnOlderLibraryServesAnOlderDriver) {
  const std::string folder = Folder("older", {"libcuda.so.1", "libnvrtc.so.13", "libnvrtc.so.12"});
  set_("DRIVER_VERSION", "12040");
  auto libraries = Libraries::Open(Only({folder}));
  ASSERT_TRUE(libraries.ok()) << libraries.status();
  ASSERT_TRUE((*libraries)->nvrtc().ok()) << (*libraries)->nvrtc().status();
  EXPECT_EQ((*libraries)->opened().back().name, "libnvrtc.so.12");
}

TEST_F(CudaLibrariesTest, LibrariesAreOfOneVersion) {
  const std::string folder = Folder("mixed", {"libcuda.so.1", "libnvrtc.so.12", "libcusolver.so.12"});
  auto libraries = Libraries::Open(Only({folder}));
  ASSERT_TRUE(libraries.ok()) << libraries.status();
  ASSERT_TRUE((*libraries)->nvrtc().ok()) << (*libraries)->nvrtc().status();
  const absl::Status status = (*libraries)->solver().status();
  EXPECT_EQ(ReasonOf(status), "UNSUPPORTED_ON_DEVICE");
  EXPECT_EQ(status.message(),
            "libcusolver.so.12 is of CUDA 13, but libnvrtc.so.12 is of CUDA 12; install all libraries of one version");
}

TEST_F(CudaLibrariesTest, FoldersOfPythonPackages) {
  const std::string packages = Folder("site-packages", {});
  for (const char* folder : {"nvidia/cublas/lib", "nvidia/cu13/lib", "nvidia/cufft/lib", "nvidia/cuda_nvcc/bin"}) {
    fs::create_directories(fs::path(packages) / folder);
  }
  EXPECT_EQ(PathsOf(packages).folders,
            (std::vector<std::string>{packages, packages + "/nvidia/cu13/lib", packages + "/nvidia/cublas/lib",
                                      packages + "/nvidia/cufft/lib"}));
  EXPECT_TRUE(PathsOf("").folders.empty());
  EXPECT_EQ(PathsOf("/not/there").folders, (std::vector<std::string>{"/not/there"}));
}

TEST_F(CudaLibrariesTest, ReleaseOfTheDriver) {
  EXPECT_EQ(DriverReleaseIn("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03  Release Build\n"),
            "580.159.03");
  EXPECT_EQ(DriverReleaseIn(""), "");
  EXPECT_EQ(DriverReleaseIn("no 12 numbers v1.2"), "");
}

TEST_F(CudaLibrariesTest, ErrorsAreStatuses) {
  auto libraries = Libraries::Open(Only({Folder("all", {"libcuda.so.1", "libnvrtc.so.13"})}));
  ASSERT_TRUE(libraries.ok()) << libraries.status();
  const Driver& driver = (*libraries)->driver();
  EXPECT_TRUE(StatusOf(driver, kCuSuccess, "cuInit").ok());
  const absl::Status full = StatusOf(driver, kCuOutOfMemory, "cuMemCreate");
  EXPECT_EQ(ReasonOf(full), "OUT_OF_MEMORY");
  EXPECT_THAT(std::string(full.message()), HasSubstr("cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY"));
  const absl::Status lost = StatusOf(driver, kCuIllegalAddress, "cuStreamSynchronize");
  EXPECT_EQ(ReasonOf(lost), "DEVICE_LOST");
  EXPECT_TRUE(absl::IsDataLoss(lost));
  EXPECT_THAT(std::string(lost.message()), HasSubstr("cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS"));
  EXPECT_EQ(StatusOf(driver, kCuInvalidValue, "cuMemMap").message(), "cuMemMap: CUDA_ERROR_INVALID_VALUE");
  EXPECT_TRUE(absl::IsInternal(StatusOf(driver, kCuInvalidValue, "cuMemMap")));
  EXPECT_EQ(StatusOf(driver, 98765, "cuMemMap").message(), "cuMemMap: CUresult 98765");
  EXPECT_TRUE(IsLost(kCuLaunchFailed));
  EXPECT_FALSE(IsLost(kCuOutOfMemory));

  const Nvrtc& nvrtc = **(*libraries)->nvrtc();
  EXPECT_EQ(StatusOfNvrtc(nvrtc, kNvrtcInvalidOption, "nvrtcCompileProgram").message(),
            "nvrtcCompileProgram: NVRTC_ERROR_INVALID_OPTION");
  EXPECT_EQ(ReasonOf(StatusOfNvrtc(nvrtc, kNvrtcOutOfMemory, "nvrtcCompileProgram")), "OUT_OF_MEMORY");
  EXPECT_EQ(ReasonOf(StatusOfBlas(kBlasAllocFailed, "cublasLtCreate")), "OUT_OF_MEMORY");
  EXPECT_EQ(StatusOfBlas(kBlasNotSupported, "cublasLtMatmul").message(), "cublasLtMatmul: cublasStatus_t 15");
  EXPECT_EQ(ReasonOf(StatusOfSolver(kSolverAllocFailed, "cusolverDnCreate")), "OUT_OF_MEMORY");
  EXPECT_EQ(StatusOfSolver(kSolverInvalidValue, "cusolverDnXpotrf").message(), "cusolverDnXpotrf: cusolverStatus_t 3");
  EXPECT_EQ(ReasonOf(StatusOfFft(kFftAllocFailed, "cufftCreate")), "OUT_OF_MEMORY");
  EXPECT_EQ(StatusOfFft(kFftInvalidPlan, "cufftXtExec").message(), "cufftXtExec: cufftResult 1");
  EXPECT_TRUE(StatusOfBlas(0, "x").ok() && StatusOfSolver(0, "x").ok() && StatusOfFft(0, "x").ok());
}

}  // namespace
}  // namespace tensord::cuda
