// Uploads whose clients send nothing, or no more.
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/lifecycle/added_bytes.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/e2e/server/mebibyte.h"
#include "tests/e2e/server/raw_stream.h"
#include "tests/testlib/tensor_chunk.h"

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

TEST(IdleUploadsTest, WhatThereIsNoRoomForIsRefused) {
  InProcessServer server({"limits.in_flight_bytes=100000"});
  const server::SessionPtr session = *server.parts().sessions->Open("default", absl::ZeroDuration());
  const server::AddedBytes others = *server::AddedBytes::Add(server.parts().gate.get(), 90'000, "others");
  RawStream upload(server.Dial(), kPutTensor);
  ASSERT_TRUE(upload.Write(HeaderOf(session->id(), "t", kMiB)));
  upload.Write(ChunkOf(0, std::string(20'000, 'x')).SerializeAsString());
  EXPECT_EQ(DetailOf(upload.Finish()).limit(), "in_flight_bytes");
  EXPECT_TRUE(WaitFor([&] { return server.parts().gate->snapshot().bytes == 90'000; }));
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
