// PutTensor and GetTensor, between a client and the whole server.
#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/checksum/crc32c.h"
#include "proto/codec/reverse_order.h"
#include "proto/codec/type_codec.h"
#include "server/rpc/tensors/tensor_part.h"
#include "tensord/client.h"
#include "tensord/error_detail.h"
#include "tensord/messages.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/e2e/server/mebibyte.h"
#include "tests/e2e/server/raw_stream.h"
#include "tests/e2e/server/session_client.h"
#include "tests/testlib/peers/tensor_chunk.h"

namespace tensord {
namespace {

using ::testing::HasSubstr;
using Put = v1::PutTensorRequest;

std::string RandomBytes(size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

Put HeaderOf(const std::string& session, const std::string& handle, v1::DType dtype,
             const std::vector<int64_t>& shape) {
  Put message;
  message.mutable_header()->set_session(session);
  message.mutable_header()->set_handle(handle);
  message.mutable_header()->set_dtype(dtype);
  message.mutable_header()->mutable_shape()->Assign(shape.begin(), shape.end());
  return message;
}

// An upload as a call of its own, whose deadline is the server's or a time from now.
class Upload {
 public:
  explicit Upload(InProcessServer& server) : writer_(server.stub().PutTensor(&context_, &response_)) {}
  Upload(InProcessServer& server, absl::Duration deadline) {
    context_.set_deadline(absl::ToChronoTime(absl::Now() + deadline));
    writer_ = server.stub().PutTensor(&context_, &response_);
  }
  ~Upload() {
    if (!finished_) Cancel();
  }

  bool Send(const Put& message) { return writer_->Write(message); }
  // Chunks of [begin, end) of the tensor's bytes.
  bool SendBytes(const std::string& bytes, int64_t begin, int64_t end, int64_t chunk) {
    for (int64_t at = begin; at < end; at += chunk) {
      const size_t size = static_cast<size_t>(std::min(chunk, end - at));
      if (!Send(ChunkOf(at, bytes.substr(static_cast<size_t>(at), size)))) return false;
    }
    return true;
  }
  grpc::Status Finish() {
    finished_ = true;
    writer_->WritesDone();
    return writer_->Finish();
  }
  grpc::Status Cancel() {
    finished_ = true;
    context_.TryCancel();
    return writer_->Finish();
  }
  const v1::PutTensorResponse& response() const { return response_; }

 private:
  grpc::ClientContext context_;
  v1::PutTensorResponse response_;
  std::unique_ptr<grpc::ClientWriter<Put>> writer_;
  bool finished_ = false;
};

struct Download {
  grpc::Status status;
  v1::GetTensorResponse::Header header;
  int64_t begin = -1;  // of the first chunk
  std::string bytes;
};

Download Get(InProcessServer& server, const v1::GetTensorRequest& request) {
  Download download;
  grpc::ClientContext context;
  const auto reader = server.stub().GetTensor(&context, request);
  v1::GetTensorResponse message;
  if (reader->Read(&message)) {
    EXPECT_TRUE(message.has_header());
    download.header = message.header();
  }
  while (reader->Read(&message)) {
    const v1::GetTensorResponse::Chunk& chunk = message.chunk();
    if (download.begin < 0) download.begin = chunk.offset();
    EXPECT_EQ(chunk.offset(), download.begin + static_cast<int64_t>(download.bytes.size()));
    EXPECT_EQ(chunk.crc32c(), Crc32c(chunk.data()));
    EXPECT_LE(chunk.data().size(), static_cast<size_t>(server::kMaxChunkBytes));
    download.bytes += chunk.data();
  }
  download.status = reader->Finish();
  return download;
}

class TensorStreamTest : public ::testing::Test {
 protected:
  explicit TensorStreamTest(const std::vector<std::string>& settings = {})
      : server_(settings), session_(*server_.parts().sessions->Open("default", absl::ZeroDuration())) {}

  // Leaves nothing behind but what `names` handles.
  void ExpectHandles(int64_t handles) {
    server_.WaitUntilIdle();
    EXPECT_EQ(session_->counts().handles, handles);
    // The transport lets go of what it sent a little later.
    if (handles == 0) {
      EXPECT_TRUE(NothingIsLeft(server_));
    }
  }
  Put Header(const std::string& handle, v1::DType dtype, const std::vector<int64_t>& shape) {
    return HeaderOf(session_->id(), handle, dtype, shape);
  }
  // Returns a header of that many bytes.
  Put Bytes(const std::string& handle, int64_t size) { return Header(handle, v1::DTYPE_F16, {size / 2}); }
  Put ResumableBytes(const std::string& handle, int64_t size) {
    Put header = Bytes(handle, size);
    header.mutable_header()->set_resumable(true);
    return header;
  }
  void PutAll(const Put& header, const std::string& bytes, int64_t chunk = kMiB) {
    Upload upload(server_, absl::Minutes(5));  // a short one of the server is meant for others
    upload.Send(header);
    upload.SendBytes(bytes, 0, static_cast<int64_t>(bytes.size()), chunk);
    const grpc::Status status = upload.Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(upload.response().byte_count(), static_cast<int64_t>(bytes.size()));
    EXPECT_EQ(upload.response().handle(), header.header().handle());
  }
  v1::GetTensorRequest GetRequest(const std::string& handle) {
    v1::GetTensorRequest request;
    request.set_session(session_->id());
    request.set_handle(handle);
    return request;
  }
  std::string BytesOf(const std::string& handle) {
    const Download download = Get(server_, GetRequest(handle));
    EXPECT_TRUE(download.status.ok()) << download.status.error_message();
    return download.bytes;
  }
  // Sends messages until the call ends, which must be with that refusal.
  v1::ErrorDetail ExpectRefused(const std::vector<Put>& messages, grpc::StatusCode code, const std::string& reason) {
    Upload upload(server_);
    for (const Put& message : messages) upload.Send(message);
    const grpc::Status status = upload.Finish();
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    EXPECT_EQ(DetailOf(status).reason(), reason) << status.error_message();
    return DetailOf(status);
  }

  InProcessServer server_;
  const server::SessionPtr session_;
};

TEST_F(TensorStreamTest, EveryDTypeAndOrderComesBack) {
  const std::vector<std::vector<int64_t>> shapes = {{}, {0, 3}, {7}, {5, 7, 3}};
  for (int dtype = v1::DTYPE_BOOL; dtype <= v1::DTYPE_BF16; ++dtype) {
    for (const auto& shape : shapes) {
      for (const auto order : {v1::MEMORY_ORDER_COLUMN_MAJOR, v1::MEMORY_ORDER_ROW_MAJOR}) {
        const ConcreteType type = {*codec::DecodeDType(static_cast<v1::DType>(dtype)),
                                   Shape(shape.begin(), shape.end())};
        std::string bytes = RandomBytes(static_cast<size_t>(type.num_bytes()), static_cast<uint64_t>(dtype));
        if (dtype == v1::DTYPE_BOOL) {
          for (char& byte : bytes) byte = static_cast<char>(byte & 1);
        }
        Put header = Header("t", static_cast<v1::DType>(dtype), shape);
        header.mutable_header()->set_order(order);
        PutAll(header, bytes);

        v1::GetTensorRequest request = GetRequest("t");
        const Download same = Get(server_, request);
        EXPECT_TRUE(same.bytes == bytes);
        EXPECT_EQ(same.header.dtype(), dtype);
        EXPECT_EQ(same.header.order(), order);
        EXPECT_TRUE(std::equal(same.header.shape().begin(), same.header.shape().end(), shape.begin(), shape.end()));

        const bool was_row_major = order == v1::MEMORY_ORDER_ROW_MAJOR;
        request.set_order(was_row_major ? v1::MEMORY_ORDER_COLUMN_MAJOR : v1::MEMORY_ORDER_ROW_MAJOR);
        const Download other = Get(server_, request);
        Shape stored(shape.begin(), shape.end());
        if (was_row_major) std::reverse(stored.begin(), stored.end());
        std::string reversed(bytes.size(), '\0');
        codec::ReverseOrder(stored, SizeOf(type.dtype), bytes.data(), reversed.data());
        EXPECT_TRUE(other.bytes == reversed);
        EXPECT_EQ(other.header.order(), request.order());
        EXPECT_TRUE(session_->Delete({{"t"}}).empty());
      }
    }
  }
  ExpectHandles(0);
}

TEST_F(TensorStreamTest, ChunksOfManySizes) {
  for (const int64_t chunk : {int64_t{1}, int64_t{7}, int64_t{4096}, int64_t{65'537}, kMiB}) {
    const std::string bytes = RandomBytes(static_cast<size_t>(chunk < 100 ? 500 : 3 * kMiB + 4), 1);
    const std::string handle = "chunk" + std::to_string(chunk);
    PutAll(Bytes(handle, static_cast<int64_t>(bytes.size())), bytes, chunk);
    EXPECT_TRUE(BytesOf(handle) == bytes) << chunk;
  }
}

TEST_F(TensorStreamTest, RefusedUploadsLeaveNothing) {
  const std::string data = RandomBytes(1000, 2);
  const Put header = Bytes("t", 2000), first = ChunkOf(0, data);
  Put bad = ChunkOf(1000, data);
  bad.mutable_chunk()->set_crc32c(bad.chunk().crc32c() ^ 1);
  const auto invalid = grpc::StatusCode::INVALID_ARGUMENT;

  ExpectRefused({header, first, bad}, grpc::StatusCode::DATA_LOSS, "CHECKSUM_MISMATCH");
  ExpectHandles(0);
  ExpectRefused({header, ChunkOf(1, data)}, invalid, "CHUNK_INVALID");
  ExpectRefused({header, ChunkOf(-1, data)}, invalid, "CHUNK_INVALID");
  ExpectRefused({header, first, first}, invalid, "CHUNK_INVALID");
  ExpectRefused({header, first, ChunkOf(1001, data)}, invalid, "CHUNK_INVALID");
  ExpectRefused({header, first}, invalid, "DATA_LENGTH_MISMATCH");
  ExpectRefused({header}, invalid, "DATA_LENGTH_MISMATCH");
  ExpectRefused({header, first, ChunkOf(1000, data + "xy")}, invalid, "DATA_LENGTH_MISMATCH");
  ExpectRefused({Header("t", v1::DTYPE_BOOL, {3}), ChunkOf(0, std::string("\0\1\2", 3))}, invalid, "DATA_INVALID");
  ExpectRefused({}, invalid, "MALFORMED_MESSAGE");
  ExpectRefused({first}, invalid, "MALFORMED_MESSAGE");
  ExpectRefused({Put()}, invalid, "MALFORMED_MESSAGE");
  ExpectRefused({header, header}, invalid, "MALFORMED_MESSAGE");
  ExpectRefused({header, Put()}, invalid, "MALFORMED_MESSAGE");
  ExpectRefused({Header("t", v1::DTYPE_UNSPECIFIED, {3})}, invalid, "DTYPE_UNSUPPORTED");
  ExpectRefused({Header("t", v1::DTYPE_F32, {-1})}, invalid, "SHAPE_OVERFLOW");
  ExpectRefused({Header("", v1::DTYPE_F32, {3})}, invalid, "NAME_INVALID");
  ExpectRefused({HeaderOf("nobody", "t", v1::DTYPE_F32, {3})}, grpc::StatusCode::FAILED_PRECONDITION,
                "SESSION_UNKNOWN");
  ExpectHandles(0);

  // The handle is as good as new.
  PutAll(header, RandomBytes(2000, 3));
  ExpectRefused({header, first}, grpc::StatusCode::FAILED_PRECONDITION, "HANDLE_DUPLICATE");
  ExpectHandles(1);
}

TEST_F(TensorStreamTest, LimitsNameThemselves) {
  const v1::ErrorDetail chunk = ExpectRefused({Bytes("t", 4 * kMiB), ChunkOf(0, std::string(kMiB + 1, 'x'))},
                                              grpc::StatusCode::RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED");
  EXPECT_EQ(chunk.limit(), "chunk_bytes");
  EXPECT_EQ(chunk.limit_value(), kMiB);
  EXPECT_EQ(chunk.actual_value(), kMiB + 1);
  const v1::ErrorDetail tensor =
      ExpectRefused({Bytes("t", int64_t{20} << 30)}, grpc::StatusCode::RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED");
  EXPECT_EQ(tensor.limit(), "tensor_bytes");
  EXPECT_EQ(tensor.actual_value(), int64_t{20} << 30);
  ExpectHandles(0);
  v1::GetServerInfoRequest request;
  v1::ServerInfo info;
  grpc::ClientContext context;
  ASSERT_TRUE(server_.stub().GetServerInfo(&context, request, &info).ok());
  EXPECT_TRUE(std::any_of(info.limits().begin(), info.limits().end(), [](const v1::Limit& limit) {
    return limit.name() == "chunk_bytes" && limit.value() == kMiB;
  }));
}

TEST_F(TensorStreamTest, MessagesThatAreNone) {
  RawStream stream(server_.Dial(), "tensord.v1.Compute/PutTensor");
  stream.Write("\x0A\xFFgarbage");
  EXPECT_EQ(DetailOf(stream.Finish()).reason(), "MALFORMED_MESSAGE");
  RawStream unknown(server_.Dial(), "tensord.v1.Compute/PutTensor");
  unknown.Write("\x0A\x02\x50\x01");
  EXPECT_EQ(DetailOf(unknown.Finish()).reason(), "UNSUPPORTED_REQUEST");
  const Reply reply = CallRaw(server_.Dial(), "tensord.v1.Compute/GetTensor", "\x0A\xFFgarbage");
  EXPECT_EQ(DetailOf(reply.status).reason(), "MALFORMED_MESSAGE");
}

TEST_F(TensorStreamTest, AClientThatVanishesLeavesNothing) {
  const std::string bytes = RandomBytes(3 * kMiB, 4);
  Upload upload(server_);
  upload.Send(Bytes("t", 4 * kMiB));
  upload.SendBytes(bytes, 0, 3 * kMiB, kMiB);
  ASSERT_TRUE(WaitFor([&] { return session_->ArrivedBytes("t").value_or(0) == 3 * kMiB; }));
  ExpectRefused({Bytes("t", 4 * kMiB)}, grpc::StatusCode::FAILED_PRECONDITION, "HANDLE_INCOMPLETE");
  EXPECT_EQ(DetailOf(Get(server_, GetRequest("t")).status).reason(), "HANDLE_INCOMPLETE");
  upload.Cancel();
  ExpectHandles(0);
}

TEST_F(TensorStreamTest, ABrokenUploadGoesOn) {
  const std::string bytes = RandomBytes(4 * kMiB, 5);
  const Put header = ResumableBytes("t", 4 * kMiB);
  {
    Upload upload(server_);
    upload.Send(header);
    upload.SendBytes(bytes, 0, 2 * kMiB, kMiB / 2);
    ASSERT_TRUE(WaitFor([&] { return session_->ArrivedBytes("t").value_or(0) == 2 * kMiB; }));
    upload.Cancel();
  }
  ExpectHandles(1);
  {
    Upload asks(server_);
    asks.Send(header);
    ASSERT_TRUE(asks.Finish().ok());
    EXPECT_EQ(asks.response().byte_count(), 2 * kMiB);
  }
  ExpectRefused({header, ChunkOf(2 * kMiB + 1, "x")}, grpc::StatusCode::INVALID_ARGUMENT, "CHUNK_INVALID");
  ExpectRefused({ResumableBytes("t", 2 * kMiB)}, grpc::StatusCode::FAILED_PRECONDITION, "HANDLE_DUPLICATE");
  {
    // Bytes sent anew take the place of the old ones, and nothing behind them counts any more.
    Upload again(server_);
    again.Send(header);
    again.Send(ChunkOf(kMiB, std::string(100, 'x')));
    ASSERT_TRUE(again.Finish().ok());
    EXPECT_EQ(again.response().byte_count(), kMiB + 100);
  }
  {
    Put bad = ChunkOf(kMiB, bytes.substr(kMiB, kMiB));
    bad.mutable_chunk()->set_crc32c(bad.chunk().crc32c() ^ 1);
    ExpectRefused({header, bad}, grpc::StatusCode::DATA_LOSS, "CHECKSUM_MISMATCH");
    EXPECT_EQ(session_->ArrivedBytes("t").value_or(-1), kMiB) << "what came before it stays";
  }
  Upload rest(server_);
  rest.Send(header);
  rest.SendBytes(bytes, kMiB, 4 * kMiB, kMiB);
  ASSERT_TRUE(rest.Finish().ok());
  EXPECT_EQ(rest.response().byte_count(), 4 * kMiB);
  EXPECT_TRUE(BytesOf("t") == bytes);
}

TEST_F(TensorStreamTest, WhatAnotherUploadLeftIsNotGoneOnWith) {
  Put header = ResumableBytes("t", 2000);
  header.mutable_header()->set_upload_id(1);
  const auto arrived_after = [&](const std::string& bytes) {
    Upload upload(server_);
    upload.Send(header);
    if (!bytes.empty()) upload.Send(ChunkOf(0, bytes));
    EXPECT_TRUE(upload.Finish().ok());
    return upload.response().byte_count();
  };
  EXPECT_EQ(arrived_after(std::string(1000, 'x')), 1000);
  EXPECT_EQ(arrived_after(""), 1000);
  header.mutable_header()->set_upload_id(2);
  EXPECT_EQ(arrived_after(""), 0);
  ExpectRefused({header, ChunkOf(1000, "x")}, grpc::StatusCode::INVALID_ARGUMENT, "CHUNK_INVALID");
  EXPECT_EQ(arrived_after(std::string(2000, 'y')), 2000);
  EXPECT_EQ(BytesOf("t"), std::string(2000, 'y'));
}

TEST_F(TensorStreamTest, AnotherTensorUnderTheHandleHasAnotherVersion) {
  std::set<uint64_t> versions;
  for (int round = 0; round < 3; ++round) {
    PutAll(Bytes("t", 2), "ab");
    v1::GetTensorRequest request = GetRequest("t");
    const uint64_t version = Get(server_, request).header.version();
    EXPECT_NE(version, 0u);
    request.set_offset(1);
    request.set_order(v1::MEMORY_ORDER_ROW_MAJOR);
    EXPECT_EQ(Get(server_, request).header.version(), version);
    versions.insert(version);
    session_->Delete(std::vector<std::string>{"t"});
  }
  EXPECT_EQ(versions.size(), 3u);
}

TEST_F(TensorStreamTest, AnUploadThatIsNotResumableEndsAnUnfinishedOne) {
  {
    Upload upload(server_);
    upload.Send(ResumableBytes("t", 2000));
    upload.Send(ChunkOf(0, std::string(1000, 'x')));
    ASSERT_TRUE(upload.Finish().ok());
  }
  ExpectHandles(1);
  ExpectRefused({Bytes("t", 2000), ChunkOf(1000, "x")}, grpc::StatusCode::INVALID_ARGUMENT, "DATA_LENGTH_MISMATCH");
  ExpectHandles(0);
}

TEST_F(TensorStreamTest, DownloadsBeginWhereTheyAreToldTo) {
  const std::string bytes = RandomBytes(2 * kMiB + 10, 6);
  const int64_t size = static_cast<int64_t>(bytes.size());
  PutAll(Bytes("t", size), bytes);
  v1::GetTensorRequest request = GetRequest("t");
  for (const int64_t offset : {int64_t{0}, int64_t{1}, kMiB, kMiB + 3, size - 1, size}) {
    request.set_offset(offset);
    const Download download = Get(server_, request);
    EXPECT_TRUE(download.status.ok()) << download.status.error_message();
    EXPECT_TRUE(download.bytes == bytes.substr(static_cast<size_t>(offset))) << offset;
    EXPECT_EQ(download.begin, offset == size ? -1 : offset);
    EXPECT_EQ(download.header.shape(0), size / 2);
  }
  for (const int64_t offset : {int64_t{-1}, size + 1}) {
    request.set_offset(offset);
    EXPECT_EQ(DetailOf(Get(server_, request).status).reason(), "CHUNK_INVALID");
  }
}

TEST_F(TensorStreamTest, DownloadsOfNothing) {
  EXPECT_EQ(DetailOf(Get(server_, GetRequest("t")).status).reason(), "HANDLE_UNKNOWN");
  v1::GetTensorRequest request = GetRequest("t");
  request.set_session("nobody");
  EXPECT_EQ(DetailOf(Get(server_, request).status).reason(), "SESSION_UNKNOWN");
  PutAll(Bytes("t", 4), "abcd");
  request = GetRequest("t");
  request.set_order(static_cast<v1::MemoryOrder>(9));
  EXPECT_EQ(DetailOf(Get(server_, request).status).reason(), "ATTRIBUTE_INVALID");
}

TEST_F(TensorStreamTest, ADownloadEndsWhenItsClientCancels) {
  PutAll(Bytes("t", 32 * kMiB), RandomBytes(32 * kMiB, 7));
  {
    grpc::ClientContext context;
    const auto reader = server_.stub().GetTensor(&context, GetRequest("t"));
    v1::GetTensorResponse message;
    ASSERT_TRUE(reader->Read(&message));
    ASSERT_TRUE(reader->Read(&message));
    context.TryCancel();
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  server_.WaitUntilIdle();
  EXPECT_TRUE(session_->Delete({{"t"}}).empty());
  EXPECT_TRUE(NothingIsLeft(server_));
}

class ShortDeadlineTest : public TensorStreamTest {
 protected:
  ShortDeadlineTest() : TensorStreamTest({"limits.default_deadline_ms=50"}) {}
};

TEST_F(ShortDeadlineTest, ADownloadThatNobodyReadsEnds) {
  PutAll(Bytes("t", 32 * kMiB), RandomBytes(32 * kMiB, 9));
  grpc::ClientContext context;
  const auto reader = server_.stub().GetTensor(&context, GetRequest("t"));
  v1::GetTensorResponse message;
  EXPECT_TRUE(WaitFor([&] { return server_.Metric("tensord_rpc_handled_total", "DEADLINE_EXCEEDED") == 1; }));
  EXPECT_TRUE(session_->Delete({{"t"}}).empty());
  EXPECT_TRUE(NothingIsLeft(server_)) << "while the client still has its call";
  while (reader->Read(&message)) {
  }
  EXPECT_FALSE(reader->Finish().ok());
}

TEST_F(ShortDeadlineTest, ATensorThatIsNeverMadeIsNotWaitedForForEver) {
  server::HandleRequest makes;
  makes.keeps.push_back("t");
  absl::StatusOr<server::HandleClaim> claim = session_->Claim(std::move(makes));
  ASSERT_TRUE(claim.ok());
  const Download download = Get(server_, GetRequest("t"));
  EXPECT_EQ(download.status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(ReasonOf(download.status), "DEADLINE_EXCEEDED");
  server_.WaitUntilIdle();
  for (const server::Waiter& waiter : claim->Fail(absl::CancelledError(""))) waiter();  // nobody waits any more
}

TEST_F(TensorStreamTest, ACancelledDownloadDoesNotWaitForItsTensor) {
  server::HandleRequest makes;
  makes.keeps.push_back("t");
  absl::StatusOr<server::HandleClaim> claim = session_->Claim(std::move(makes));
  ASSERT_TRUE(claim.ok());
  grpc::ClientContext context;
  const auto reader = server_.stub().GetTensor(&context, GetRequest("t"));
  ASSERT_TRUE(WaitFor([&] { return server_.parts().gate->snapshot().calls == 1; }));
  context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  server_.WaitUntilIdle();
  for (const server::Waiter& waiter : claim->Fail(absl::CancelledError(""))) waiter();
}

TEST_F(TensorStreamTest, ADeletedTensorIsDownloadedToItsEnd) {
  const std::string bytes = RandomBytes(32 * kMiB, 8);
  PutAll(Bytes("t", 32 * kMiB), bytes);
  grpc::ClientContext context;
  const auto reader = server_.stub().GetTensor(&context, GetRequest("t"));
  v1::GetTensorResponse message;
  ASSERT_TRUE(reader->Read(&message));
  EXPECT_TRUE(session_->Delete({{"t"}}).empty());
  std::string read;
  while (reader->Read(&message)) read += message.chunk().data();
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_TRUE(read == bytes);
}

TEST_F(TensorStreamTest, ATensorThatIsBeingMadeIsWaitedFor) {
  server::HandleRequest makes;
  makes.keeps.push_back("t");
  absl::StatusOr<server::HandleClaim> claim = session_->Claim(std::move(makes));
  ASSERT_TRUE(claim.ok());
  Download download;
  std::thread reader([&] { download = Get(server_, GetRequest("t")); });
  ASSERT_TRUE(WaitFor([&] { return server_.parts().gate->snapshot().calls == 1; }));
  const server::ResidentType type = {.device = "cpu:0", .type = {DType::kF32, {2}}};
  absl::StatusOr<server::MemoryCharge> charge = session_->ledger()->Charge("default", "cpu:0", 8);
  ASSERT_TRUE(charge.ok());
  const auto bytes = std::make_shared<std::string>("abcdefgh");
  server::Waiters waiters;
  claim->Start();
  const absl::StatusOr<BufferPtr> buffer =
      (*server_.parts().executors->Find("cpu:0"))->backend()->Import(bytes->data(), 8, bytes);
  ASSERT_TRUE(buffer.ok());
  ASSERT_TRUE(
      claim->Fulfil({{type, std::make_shared<server::ResidentMemory>(*buffer, *std::move(charge))}}, &waiters).ok());
  for (const server::Waiter& waiter : waiters) waiter();
  reader.join();
  EXPECT_TRUE(download.status.ok()) << download.status.error_message();
  EXPECT_EQ(download.bytes, "abcdefgh");
}

TEST_F(TensorStreamTest, EveryChunkRenewsTheLease) {
  Upload upload(server_);
  upload.Send(Bytes("t", 20));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(WaitFor([&] { return session_->ArrivedBytes("t").value_or(-1) == 10 * i; }));
    const auto before = session_->expiry();
    upload.Send(ChunkOf(10 * i, std::string(10, 'x')));
    EXPECT_TRUE(WaitFor([&] { return session_->expiry() > before; }));
  }
  EXPECT_TRUE(upload.Finish().ok());
}

TEST_F(TensorStreamTest, TheClientLibraryMovesTensors) {
  const auto client = client::Client::Connect({.target = server_.target()});
  ASSERT_TRUE(client.ok()) << client.status();
  const auto put_and_get = [&](const client::HostTensor& tensor) {
    const absl::Status put = (*client)->PutTensor(session_->id(), "t", tensor);
    EXPECT_TRUE(put.ok()) << put;
    client::ExecuteOptions options;
    options.order = client::MemoryOrder::kColumnMajor;
    const auto got = (*client)->GetTensor(session_->id(), "t", options);
    EXPECT_TRUE(got.ok()) << got.status();
    EXPECT_TRUE(session_->Delete({{"t"}}).empty());
    return got;
  };
  std::vector<float> values(700'000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const auto large = client::HostTensor::FromVector(values, {700, 1000});
  const auto got = put_and_get(*large);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->shape(), large->shape());
  EXPECT_EQ(got->order(), client::MemoryOrder::kColumnMajor);
  EXPECT_TRUE(*got->InOrder(client::MemoryOrder::kRowMajor).Values<float>() == absl::MakeConstSpan(values));
  const auto scalar = put_and_get(client::HostTensor::Scalar(2.5));
  ASSERT_TRUE(scalar.ok());
  EXPECT_EQ((*scalar->Values<double>())[0], 2.5);
  const auto empty = put_and_get(*client::HostTensor::FromVector(std::vector<float>(), {0, 3}));
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(empty->element_count(), 0);

  const absl::Status refused = (*client)->PutTensor("nobody", "t", *large);
  EXPECT_EQ(client::GetErrorDetail(refused)->reason, "SESSION_UNKNOWN");
  const auto missing = (*client)->GetTensor(session_->id(), "t");
  EXPECT_EQ(client::GetErrorDetail(missing.status())->reason, "HANDLE_UNKNOWN");
}

TEST_F(TensorStreamTest, AnUploadEndsWithItsSession) {
  Upload upload(server_);
  upload.Send(Bytes("t", 20));
  ASSERT_TRUE(WaitFor([&] { return session_->ArrivedBytes("t").ok(); }));
  ASSERT_TRUE(server_.parts().sessions->Close("default", session_->id()).ok());
  upload.Send(ChunkOf(0, std::string(10, 'x')));
  EXPECT_EQ(DetailOf(upload.Finish()).reason(), "SESSION_UNKNOWN");
  ExpectHandles(0);
}

class SmallQuotaTest : public TensorStreamTest {
 protected:
  SmallQuotaTest() : TensorStreamTest({"sessions.tenant_bytes=10000"}) {}
};

TEST_F(SmallQuotaTest, TheQuotaIsChargedAtTheHeader) {
  Upload holds(server_);
  holds.Send(Bytes("half", 6000));
  ASSERT_TRUE(WaitFor([&] { return session_->ArrivedBytes("half").ok(); }));
  const v1::ErrorDetail detail =
      ExpectRefused({Bytes("t", 6000)}, grpc::StatusCode::RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED");
  EXPECT_EQ(detail.limit(), "sessions.tenant_bytes");
  EXPECT_EQ(detail.limit_value(), 10000);
  EXPECT_EQ(detail.actual_value(), 12000);
  holds.Cancel();
  ExpectHandles(0);
  PutAll(Bytes("t", 6000), RandomBytes(6000, 9));
}

}  // namespace
}  // namespace tensord
