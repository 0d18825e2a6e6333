// Uploads whose clients send nothing, or no more.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/lifecycle/added_bytes.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/e2e/server/mebibyte.h"
#include "tests/e2e/server/raw_stream.h"
#include "tests/testlib/peers/tensor_chunk.h"

namespace tensord {
namespace {

constexpr char kPutTensor[] = "tensord.v1.Compute/PutTensor";

std::string HeaderOf(const std::string& session, const std::string& handle, int64_t bytes) {
  v1::PutTensorRequest message;
  message.mutable_header()->set_session(session);
  message.mutable_header()->set_handle(handle);
  message.mutable_header()->set_dtype(v1::DTYPE_F16);
  message.mutable_header()->add_shape(bytes / 2);
  return message.SerializeAsString();
}

TEST(IdleUploadsTest, HoldNoRoom) {
  constexpr int64_t kUploads = 20;
  InProcessServer server({"limits.in_flight_bytes=" + std::to_string(8 * kMiB)});
  const server::SessionPtr session = *server.parts().sessions->Open("default", absl::ZeroDuration());
  std::vector<std::unique_ptr<RawStream>> uploads;
  for (int64_t i = 0; i < kUploads; ++i) {
    uploads.push_back(std::make_unique<RawStream>(server.Dial(), kPutTensor));
    const std::string handle = "t" + std::to_string(i);
    if (i % 3 > 0) {
      EXPECT_TRUE(uploads.back()->Write(HeaderOf(session->id(), handle, 2 * kMiB)));
    }
    if (i % 3 > 1) {
      EXPECT_TRUE(uploads.back()->Write(ChunkOf(0, std::string(kMiB, 'x')).SerializeAsString()));
      EXPECT_TRUE(WaitFor([&] { return session->ArrivedBytes(handle).value_or(0) == kMiB; }));
    }
  }
  EXPECT_TRUE(WaitFor([&] {
    const auto inside = server.parts().gate->snapshot();
    return inside.calls == kUploads && inside.bytes == 0;
  }));
  v1::ExecuteResponse response;
  const grpc::Status status =
      Execute(server.stub(), RequestOf(DoubleGraph(), {FloatTensor(std::vector<float>(kMiB, 1), {kMiB})}), &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

// An upload of a tensor, for whose messages others leave little room.
class CrampedUploadTest : public ::testing::Test {
 protected:
  static constexpr int64_t kSize = 40'000, kChunk = 10'000;

  server::CallGate& gate() { return *server_.parts().gate; }
  // What came before leaves a moment after it has arrived.
  server::AddedBytes Others(int64_t bytes) {
    EXPECT_TRUE(WaitFor([&] { return gate().snapshot().bytes + bytes <= 100'000; }));
    return *server::AddedBytes::Add(&gate().bytes(), bytes, "others");
  }
  bool WriteChunk(RawStream& upload, int64_t offset) {
    return upload.Write(ChunkOf(offset, std::string(kChunk, 'x')).SerializeAsString());
  }
  bool HasArrived(int64_t bytes) {
    return WaitFor([&] { return session_->ArrivedBytes("t").value_or(0) == bytes; });
  }
  bool Waits(int64_t bytes) {
    return WaitFor([&] { return gate().snapshot().owed_bytes >= bytes; });
  }
  bool NothingIsLeft(int64_t bytes_of_others) {
    return WaitFor([&] {
      const auto inside = gate().snapshot();
      return inside.calls == 0 && inside.bytes == bytes_of_others && inside.owed_bytes == 0;
    });
  }

  InProcessServer server_{{"limits.in_flight_bytes=100000"}};
  const server::SessionPtr session_ = *server_.parts().sessions->Open("default", absl::ZeroDuration());
};

TEST_F(CrampedUploadTest, IsRefusedAtItsBeginning) {
  const server::AddedBytes others = Others(100'000);
  RawStream upload(server_.Dial(), kPutTensor);
  upload.Write(HeaderOf(session_->id(), "t", kSize));
  EXPECT_EQ(DetailOf(upload.Finish()).limit(), "in_flight_bytes");
  EXPECT_TRUE(NothingIsLeft(100'000));
}

// The received bytes would be lost, though there is room again soon.
TEST_F(CrampedUploadTest, WaitsOnceItHasBegun) {
  RawStream upload(server_.Dial(), kPutTensor);
  ASSERT_TRUE(upload.Write(HeaderOf(session_->id(), "t", kSize)));
  ASSERT_TRUE(WriteChunk(upload, 0));
  ASSERT_TRUE(HasArrived(kChunk));
  for (int64_t offset = kChunk; offset < kSize; offset += kChunk) {
    std::optional<server::AddedBytes> others = Others(95'000);
    ASSERT_TRUE(WriteChunk(upload, offset));
    ASSERT_TRUE(Waits(kChunk));
    EXPECT_TRUE(HasArrived(offset)) << "it has no room";
    others.reset();
    EXPECT_TRUE(HasArrived(offset + kChunk));
  }
  upload.WritesDone();
  std::string response;
  EXPECT_TRUE(upload.Read(&response));
  const grpc::Status status = upload.Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(NothingIsLeft(0));
}

TEST_F(CrampedUploadTest, AnEighthOfAllWaitsAtMost) {
  std::vector<std::unique_ptr<RawStream>> uploads;
  for (int i = 0; i < 2; ++i) {
    uploads.push_back(std::make_unique<RawStream>(server_.Dial(), kPutTensor));
    ASSERT_TRUE(uploads.back()->Write(HeaderOf(session_->id(), "t" + std::to_string(i), kSize)));
    ASSERT_TRUE(WaitFor([&] { return session_->ArrivedBytes("t" + std::to_string(i)).ok(); }));
  }
  const server::AddedBytes others = Others(95'000);
  ASSERT_TRUE(WriteChunk(*uploads[0], 0));
  ASSERT_TRUE(Waits(kChunk));
  WriteChunk(*uploads[1], 0);
  EXPECT_EQ(DetailOf(uploads[1]->Finish()).limit(), "in_flight_bytes");
  uploads.clear();  // which cancels the one that waits
  EXPECT_TRUE(NothingIsLeft(95'000));
}

TEST(IdleUploadsTest, EndAfterTheDefaultDeadline) {
  InProcessServer server({"limits.default_deadline_ms=50"});
  const server::SessionPtr session = *server.parts().sessions->Open("default", absl::ZeroDuration());
  for (const bool begins : {false, true}) {
    grpc::ClientContext context;  // without a deadline
    v1::PutTensorResponse response;
    const auto upload = server.stub().PutTensor(&context, &response);
    v1::PutTensorRequest header;
    ASSERT_TRUE(header.ParseFromString(HeaderOf(session->id(), "t", kMiB)));
    if (begins) upload->Write(header);
    EXPECT_EQ(upload->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  server.WaitUntilIdle();
  EXPECT_EQ(session->counts().handles, 0);
}

}  // namespace
}  // namespace tensord
