// Uploads to, and downloads from, a device with memory of its own that keeps them waiting.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "backends/cpu/cpu_backend.h"
#include "engine/base/mutex.h"
#include "engine/base/stop_signal.h"
#include "gtest/gtest.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/e2e/server/mebibyte.h"
#include "tests/e2e/server/raw_stream.h"
#include "tests/e2e/server/session_client.h"
#include "tests/testlib/peers/tensor_chunk.h"
#include "tests/testlib/runs/veiled_backend.h"

namespace tensord {
namespace {

// Lets threads through while it is open. Who waits leaves as its stop signal says.
class Gate {
 public:
  absl::Status Pass() {
    MutexLock lock(&mutex_);
    ++waiting_;
    absl::Status status;
    while (!is_open_ && status.ok()) status = WaitUnlessStopped(&changed_, &mutex_);
    --waiting_;
    if (status.ok()) ++passed_;
    return status;
  }
  void Open() {
    MutexLock lock(&mutex_);
    is_open_ = true;
    changed_.SignalAll();
  }
  void Close() {
    MutexLock lock(&mutex_);
    is_open_ = false;
  }
  int64_t waiting() const {
    MutexLock lock(&mutex_);
    return waiting_;
  }
  int64_t passed() const {
    MutexLock lock(&mutex_);
    return passed_;
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  bool is_open_ ABSL_GUARDED_BY(mutex_) = true;
  int64_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t passed_ ABSL_GUARDED_BY(mutex_) = 0;
};

server::OtherBackends CudaBehind(Gate* gate) {
  server::OtherBackends others;
  others.cuda = [gate](int) -> absl::StatusOr<std::unique_ptr<Backend>> {
    return MakeVeiledBackend(MakeCpuBackend({.threads = 1}),
                             {.kind = "cuda", .before_transfer = [gate] { return gate->Pass(); }});
  };
  return others;
}

std::vector<std::string> CpuAndCuda(std::vector<std::string> more) {
  more.insert(more.end(), {"devices=cpu", "devices=cuda:0"});
  return more;
}

class DeviceTransferTest : public ::testing::Test {
 protected:
  explicit DeviceTransferTest(std::vector<std::string> settings = {})
      : server_(CpuAndCuda(std::move(settings)), CudaBehind(&gate_)),
        session_(*server_.parts().sessions->Open("default", absl::ZeroDuration())) {}
  ~DeviceTransferTest() override { gate_.Open(); }

  v1::PutTensorRequest HeaderOf(const std::string& handle, int64_t bytes) const {
    v1::PutTensorRequest message;
    message.mutable_header()->set_session(session_->id());
    message.mutable_header()->set_handle(handle);
    message.mutable_header()->set_dtype(v1::DTYPE_F16);
    message.mutable_header()->add_shape(bytes / 2);
    message.mutable_header()->set_device("cuda:0");
    return message;
  }
  std::unique_ptr<RawStream> Begin(const std::string& handle, int64_t bytes) {
    auto upload = std::make_unique<RawStream>(server_.Dial(), "tensord.v1.Compute/PutTensor");
    EXPECT_TRUE(upload->Write(HeaderOf(handle, bytes).SerializeAsString()));
    return upload;
  }
  bool WriteChunk(RawStream& upload, int64_t offset, const std::string& data) {
    return upload.Write(ChunkOf(offset, data).SerializeAsString());
  }
  grpc::Status End(RawStream& upload) {
    upload.WritesDone();
    std::string response;
    upload.Read(&response);
    return upload.Finish();
  }
  void Put(const std::string& handle, const std::string& data) {
    const std::unique_ptr<RawStream> upload = Begin(handle, static_cast<int64_t>(data.size()));
    EXPECT_TRUE(WriteChunk(*upload, 0, data));
    const grpc::Status status = End(*upload);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  v1::GetTensorRequest GetRequest(const std::string& handle) const {
    v1::GetTensorRequest request;
    request.set_session(session_->id());
    request.set_handle(handle);
    return request;
  }
  std::string BytesOf(const std::string& handle) {
    grpc::ClientContext context;
    const auto reader = server_.stub().GetTensor(&context, GetRequest(handle));
    v1::GetTensorResponse message;
    std::string bytes;
    while (reader->Read(&message)) bytes += message.chunk().data();
    const grpc::Status status = reader->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return bytes;
  }
  bool Waits(int64_t transfers = 1) {
    return WaitFor([&] { return gate_.waiting() >= transfers; });
  }
  bool HavePassed(int64_t transfers) {
    return WaitFor([&] { return gate_.passed() == transfers; });
  }
  bool IsIdle() {
    return WaitFor([&] {
      const auto inside = server_.parts().gate->snapshot();
      return inside.calls == 0 && inside.bytes == 0;
    });
  }

  Gate gate_;
  InProcessServer server_;
  const server::SessionPtr session_;
};

bool IsAnswered(v1::Compute::Stub& stub, const v1::ExecuteRequest& request) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Minutes(1)));
  v1::ExecuteResponse response;
  const grpc::Status status = stub.Execute(&context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return status.ok();
}

TEST_F(DeviceTransferTest, UploadsThatWaitKeepNobodyElseWaiting) {
  const std::vector<v1::Tensor> ones(2, FloatTensor(std::vector<float>(16, 1), {16}));
  const v1::ExecuteRequest small = WarmRequest(server_.stub(), SmallAdd(), ones);
  // More than gRPC has threads for reactions.
  const size_t uploads_count = std::max<size_t>(2, std::thread::hardware_concurrency() / 2) + 2;
  const std::string tiny(4'000, 'x'), large(100'000, 'y');
  const auto size = static_cast<int64_t>(tiny.size() + large.size());
  std::vector<std::unique_ptr<RawStream>> uploads;
  gate_.Close();
  for (size_t i = 0; i < uploads_count; ++i) uploads.push_back(Begin(absl::StrCat("t", i), size));
  ASSERT_TRUE(Waits());
  ASSERT_TRUE(IsAnswered(server_.stub(), small)) << "uploads wait for memory";
  gate_.Open();
  ASSERT_TRUE(HavePassed(static_cast<int64_t>(uploads_count)));

  gate_.Close();
  for (const auto& upload : uploads) ASSERT_TRUE(WriteChunk(*upload, 0, tiny));
  ASSERT_TRUE(Waits());
  ASSERT_TRUE(IsAnswered(server_.stub(), small)) << "chunks wait to be written";
  for (const auto& upload : uploads) {
    ASSERT_TRUE(WriteChunk(*upload, static_cast<int64_t>(tiny.size()), large));
  }
  ASSERT_TRUE(IsAnswered(server_.stub(), small));
  gate_.Open();
  for (size_t i = 0; i < uploads_count; ++i) {
    const grpc::Status status = End(*uploads[i]);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_TRUE(BytesOf(absl::StrCat("t", i)) == tiny + large);
  }
}

TEST_F(DeviceTransferTest, AnUploadThatIsCancelledLeavesTheDevice) {
  gate_.Close();
  {
    const std::unique_ptr<RawStream> upload = Begin("t", 8'000);
    ASSERT_TRUE(Waits());
  }
  EXPECT_TRUE(IsIdle()) << "it waits for memory";
  EXPECT_EQ(gate_.waiting(), 0);

  gate_.Open();
  std::unique_ptr<RawStream> upload = Begin("t", 8'000);
  ASSERT_TRUE(HavePassed(1));
  gate_.Close();
  ASSERT_TRUE(WriteChunk(*upload, 0, std::string(4'000, 'x')));
  ASSERT_TRUE(Waits());
  ASSERT_TRUE(WriteChunk(*upload, 4'000, std::string(4'000, 'x')));
  upload.reset();
  EXPECT_TRUE(IsIdle()) << "it waits to write";
  EXPECT_EQ(gate_.waiting(), 0);
  EXPECT_EQ(session_->counts().handles, 0);
}

// More of them than have a turn.
TEST_F(DeviceTransferTest, UploadsWhoseTurnHasNotComeLeaveToo) {
  const size_t uploads_count = std::max<size_t>(2, std::thread::hardware_concurrency() / 2) + 2;
  gate_.Close();
  std::vector<std::unique_ptr<RawStream>> uploads;
  for (size_t i = 0; i < uploads_count; ++i) uploads.push_back(Begin(absl::StrCat("t", i), 8'000));
  ASSERT_TRUE(Waits());
  ASSERT_TRUE(WaitFor([&] { return server_.parts().readers->stats().queued == 2; }));
  uploads.clear();
  EXPECT_TRUE(IsIdle());
  EXPECT_EQ(session_->counts().handles, 0);
}

TEST_F(DeviceTransferTest, ADownloadThatIsCancelledLeavesTheDevice) {
  Put("t", std::string(4'000, 'x'));
  gate_.Close();
  {
    grpc::ClientContext context;
    const auto reader = server_.stub().GetTensor(&context, GetRequest("t"));
    ASSERT_TRUE(Waits());
    context.TryCancel();
    reader->Finish();
  }
  EXPECT_TRUE(IsIdle());
  EXPECT_EQ(gate_.waiting(), 0);
}

TEST_F(DeviceTransferTest, AChunkIsWrittenAtOnceInHoweverManyPiecesItCame) {
  const std::string data(kMiB, 'x');
  const std::unique_ptr<RawStream> upload = Begin("t", 2 * kMiB);
  for (int64_t at = 0; at < 2 * kMiB; at += kMiB) ASSERT_TRUE(WriteChunk(*upload, at, data));
  EXPECT_TRUE(End(*upload).ok());
  EXPECT_EQ(gate_.passed(), 3) << "one is for its memory";
  EXPECT_TRUE(BytesOf("t") == data + data);
}

class DeviceTurnsTest : public DeviceTransferTest {
 protected:
  DeviceTurnsTest() : DeviceTransferTest({"receive.queue_length=1"}) {}
};

// What has been received would be lost.
TEST_F(DeviceTurnsTest, AnUploadThatHasBegunIsNotRefused) {
  std::vector<std::unique_ptr<RawStream>> uploads;
  for (const char* handle : {"a", "b", "c"}) {
    uploads.push_back(Begin(handle, 4'000));
    ASSERT_TRUE(HavePassed(static_cast<int64_t>(uploads.size())));
  }
  BlockedReaders blocked(server_);
  for (const auto& upload : uploads) ASSERT_TRUE(WriteChunk(*upload, 0, std::string(4'000, 'x')));
  ASSERT_TRUE(WaitFor([&] { return server_.parts().gate->snapshot().bytes >= 12'000; }));
  const std::unique_ptr<RawStream> refused = Begin("d", 4'000);
  EXPECT_EQ(DetailOf(refused->Finish()).reason(), "QUEUE_FULL");
  blocked.Release();
  for (const auto& upload : uploads) {
    const grpc::Status status = End(*upload);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
}

class DeviceDeadlineTest : public DeviceTransferTest {
 protected:
  DeviceDeadlineTest() : DeviceTransferTest({"limits.default_deadline_ms=50"}) {}
};

TEST_F(DeviceDeadlineTest, AnUploadLeavesTheDeviceThen) {
  gate_.Close();
  grpc::ClientContext context;  // without a deadline
  v1::PutTensorResponse response;
  const auto upload = server_.stub().PutTensor(&context, &response);
  upload->Write(HeaderOf("t", 4'000));
  const grpc::Status status = upload->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << status.error_message();
  EXPECT_TRUE(IsIdle());
  EXPECT_EQ(gate_.waiting(), 0);
  EXPECT_EQ(session_->counts().handles, 0);
}

}  // namespace
}  // namespace tensord
