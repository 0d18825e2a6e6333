// A tensor beyond 4 GiB, where the machine has memory for it: no offset or size on the way is one of 32 bits.
#include <sys/mman.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "tensord/client.h"
#include "tensord/messages.h"
#include "tests/e2e/server/host_cuda_device.h"
#include "tests/e2e/server/is_slow.h"
#include "tests/e2e/server/session_client.h"

namespace tensord {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;
constexpr int64_t kBytes = 4 * kGiB + (int64_t{3} << 20);

int64_t AvailableBytes() {
  std::ifstream info("/proc/meminfo");
  std::string name, unit;
  for (int64_t kib = 0; info >> name >> kib; std::getline(info, unit)) {
    if (name == "MemAvailable:") return kib * 1024;
  }
  return 0;
}

// Why it cannot be run here; empty: it can.
std::string Obstacle() {
  if (kIsSlow) return "under a sanitizer it takes too long";
  const int64_t available = AvailableBytes();
  if (available < 12 * kGiB) return "12 GiB of memory are wanted, and there are " + std::to_string(available);
  return "";
}

TEST(LargeTensorTest, PassesFourGibibytes) {
  if (HasHostCuda()) GTEST_SKIP() << "the host CUDA device has less memory";
  const std::string obstacle = Obstacle();
  if (!obstacle.empty()) GTEST_SKIP() << obstacle;
  void* const memory =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  madvise(memory, kBytes, MADV_HUGEPAGE);  // fewer faults
  // Pages that nobody writes to take none; these bytes alone tell places apart.
  const std::shared_ptr<char> bytes(static_cast<char*>(memory), [](char* begin) { munmap(begin, kBytes); });
  const int64_t places[] = {0, 4 * kGiB - 1, 4 * kGiB, kBytes - 1};
  for (const int64_t place : places) bytes.get()[place] = static_cast<char>(1 + place % 127);
  const auto tensor =
      client::HostTensor::FromBuffer(client::DType::kI32, {kBytes / 4}, client::MemoryOrder::kRowMajor, bytes, kBytes);
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  InProcessServer server({"limits.default_deadline_ms=600000"});
  SessionClient session(server);
  const auto client = client::Client::Connect({.target = server.target()});
  ASSERT_TRUE(client.ok());
  const absl::Status sent = (*client)->PutTensor(session.id(), "large", *tensor);
  ASSERT_TRUE(sent.ok()) << sent;

  v1::GetTensorRequest request;
  request.set_session(session.id());
  request.set_handle("large");
  request.set_offset(4 * kGiB - (1 << 20));
  grpc::ClientContext context;
  const auto stream = server.stub().GetTensor(&context, request);
  v1::GetTensorResponse message;
  ASSERT_TRUE(stream->Read(&message));
  EXPECT_EQ(message.header().shape(0), kBytes / 4);
  int64_t at = request.offset();
  while (stream->Read(&message)) {
    const std::string& data = message.chunk().data();
    ASSERT_EQ(message.chunk().offset(), at);
    ASSERT_EQ(std::memcmp(data.data(), bytes.get() + at, data.size()), 0) << "at " << at;
    at += static_cast<int64_t>(data.size());
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(at, kBytes);
}

}  // namespace
}  // namespace tensord
