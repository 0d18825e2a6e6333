// PutTensor and GetTensor through memory that clients share with the server.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <future>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/fingerprint.h"
#include "gtest/gtest.h"
#include "tensord/client.h"
#include "tensord/error_detail.h"
#include "tensord/messages.h"
#include "tests/e2e/server/breaking_proxy.h"
#include "tests/e2e/server/session_client.h"
#include "tests/e2e/server/shared_memory/shared_memory_fixture.h"
#include "tests/testlib/peers/tensor_chunk.h"
#include "tests/testlib/tls/private_folder.h"
#include "tests/unit/clients/fake_server.h"

namespace tensord {
namespace {

using client::Client;
using client::HostTensor;
using Put = v1::PutTensorRequest;

std::string RandomBytes(int64_t size) {
  std::mt19937_64 random(static_cast<uint64_t>(size));
  std::string bytes(static_cast<size_t>(size), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

void Authorize(grpc::ClientContext* context, const std::string& token) {
  if (!token.empty()) context->AddMetadata("authorization", "Bearer " + token);
}

struct SharedDownload {
  std::string reason;
  v1::GetTensorResponse::Header header;
  std::string bytes;  // of chunks
};

class SharedTransferTest : public SharedMemoryFixture {
 protected:
  InProcessServer& Start(std::vector<std::string> settings = {}) {
    SharedMemoryFixture::Start(std::move(settings));
    session_ = *server_->parts().sessions->Open("default", absl::ZeroDuration());
    return *server_;
  }
  Put Header(const std::string& handle, v1::DType dtype, const std::vector<int64_t>& shape) {
    Put message;
    message.mutable_header()->set_session(session_->id());
    message.mutable_header()->set_handle(handle);
    message.mutable_header()->set_dtype(dtype);
    message.mutable_header()->mutable_shape()->Assign(shape.begin(), shape.end());
    return message;
  }
  // Returns a header of so many bytes.
  Put Bytes(const std::string& handle, int64_t size, const v1::SharedSpace& space) {
    Put message = Header(handle, v1::DTYPE_F16, {size / 2});
    *message.mutable_header()->mutable_shared() = space;
    return message;
  }
  // The reason of the refusal, or "OK".
  std::string Send(const std::vector<Put>& messages, const std::string& token = "") {
    grpc::ClientContext context;
    Authorize(&context, token);
    v1::PutTensorResponse response;
    const auto writer = server_->stub().PutTensor(&context, &response);
    for (const Put& message : messages) writer->Write(message);
    writer->WritesDone();
    return ReasonOf(writer->Finish());
  }
  v1::GetTensorRequest GetRequest(const std::string& handle) {
    v1::GetTensorRequest request;
    request.set_session(session_->id());
    request.set_handle(handle);
    return request;
  }
  SharedDownload Get(const v1::GetTensorRequest& request, const std::string& token = "") {
    SharedDownload download;
    grpc::ClientContext context;
    Authorize(&context, token);
    const auto reader = server_->stub().GetTensor(&context, request);
    v1::GetTensorResponse message;
    if (reader->Read(&message)) download.header = message.header();
    while (reader->Read(&message)) download.bytes += message.chunk().data();
    download.reason = ReasonOf(reader->Finish());
    return download;
  }
  SharedDownload GetInto(const std::string& handle, const v1::SharedSpace& space, const std::string& token = "") {
    v1::GetTensorRequest request = GetRequest(handle);
    *request.mutable_shared() = space;
    return Get(request, token);
  }
  // Returns the bytes that come in chunks.
  std::string BytesOf(const std::string& handle) { return Get(GetRequest(handle)).bytes; }

  server::SessionPtr session_;
};

TEST_F(SharedTransferTest, TheServerTellsOfIt) {
  Start();
  grpc::ClientContext context;
  v1::ServerInfo info;
  ASSERT_TRUE(server_->stub().GetServerInfo(&context, v1::GetServerInfoRequest(), &info).ok());
  EXPECT_TRUE(info.shared_memory().transfers());
}

// On one thread and on several, with a part that is no whole share, and empty.
TEST_F(SharedTransferTest, TensorsComeAndGoThere) {
  Start();
  BrokerSocket broker(path());
  for (const int64_t size : {int64_t{0}, int64_t{2}, kMiB, 9 * kMiB + 78}) {
    const BrokerSocket::Region region = broker.Take(2 * size + 256);
    const std::string bytes = RandomBytes(size);
    std::memcpy(region.bytes() + 64, bytes.data(), bytes.size());
    ASSERT_EQ(Send({Bytes("t", size, Space(region, 64, size))}), "OK");
    // The tensor is the server's own.
    std::fill_n(region.bytes(), region.size_bytes(), 'x');
    EXPECT_TRUE(BytesOf("t") == bytes);
    const int64_t place = (size + 191) / 64 * 64;
    const SharedDownload there = GetInto("t", Space(region, place, region.size_bytes() - place));
    ASSERT_EQ(there.reason, "OK");
    EXPECT_EQ(there.bytes, "");
    EXPECT_EQ(there.header.shared().region(), region.id());
    EXPECT_EQ(there.header.shared().offset(), place);
    EXPECT_EQ(there.header.shared().byte_count(), size);
    EXPECT_TRUE(std::string(region.bytes() + place, bytes.size()) == bytes);
    EXPECT_EQ(region.bytes()[place - 1], 'x');
    EXPECT_EQ(region.bytes()[place + size], 'x');
    session_->Delete({"t"});
  }
}

TEST_F(SharedTransferTest, EveryOrderAndDtypeIsAsInChunks) {
  Start();
  BrokerSocket broker(path());
  const BrokerSocket::Region region = broker.Take(4096);
  const struct {
    v1::DType dtype;
    std::string data;
  } cases[] = {{v1::DTYPE_BOOL, std::string("\0\1\1\0\1\0", 6)},
               {v1::DTYPE_F16, "abcdefghijkl"},
               {v1::DTYPE_I32, "abcdefghijklmnopqrstuvwx"},
               {v1::DTYPE_C128, RandomBytes(96)}};
  for (const auto& one : cases) {
    const int64_t size = static_cast<int64_t>(one.data.size());
    for (const auto sent : {v1::MEMORY_ORDER_ROW_MAJOR, v1::MEMORY_ORDER_COLUMN_MAJOR}) {
      Put by_memory = Header("memory", one.dtype, {2, 3}), by_chunk = Header("chunk", one.dtype, {2, 3});
      by_memory.mutable_header()->set_order(sent);
      by_chunk.mutable_header()->set_order(sent);
      std::memcpy(region.bytes() + 128, one.data.data(), one.data.size());
      *by_memory.mutable_header()->mutable_shared() = Space(region, 128, size);
      ASSERT_EQ(Send({by_memory}), "OK");
      ASSERT_EQ(Send({by_chunk, ChunkOf(0, one.data)}), "OK");
      for (const auto wanted :
           {v1::MEMORY_ORDER_UNSPECIFIED, v1::MEMORY_ORDER_ROW_MAJOR, v1::MEMORY_ORDER_COLUMN_MAJOR}) {
        v1::GetTensorRequest request = GetRequest("chunk");
        request.set_order(wanted);
        const SharedDownload in_chunks = Get(request);
        request.set_handle("memory");
        EXPECT_EQ(Get(request).bytes, in_chunks.bytes);
        *request.mutable_shared() = Space(region, 1024, size);
        SharedDownload there = Get(request);
        ASSERT_EQ(there.reason, "OK");
        EXPECT_EQ(std::string(region.bytes() + 1024, one.data.size()), in_chunks.bytes);
        there.header.clear_shared();
        there.header.set_version(in_chunks.header.version());  // two tensors
        EXPECT_EQ(there.header.SerializeAsString(), in_chunks.header.SerializeAsString());
      }
      session_->Delete({"memory", "chunk"});
    }
  }
}

TEST_F(SharedTransferTest, WhatIsRefusedLeavesNothing) {
  Start({"sessions.tenant_bytes=1048576"});
  BrokerSocket broker(path());
  const BrokerSocket::Region region = broker.Take(2 * kMiB);
  const int64_t all = region.size_bytes();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();
  const auto put = [&](int64_t size, int64_t offset, int64_t byte_count) {
    return Send({Bytes("t", size, Space(region, offset, byte_count))});
  };
  for (const int64_t offset : {int64_t{1}, int64_t{-64}, all, all - 63, kMost, kMost - 63, kLeast}) {
    EXPECT_EQ(put(64, offset, 64), "REGION_RANGE") << offset;
  }
  EXPECT_EQ(put(64, 0, kMost), "REGION_RANGE");
  EXPECT_EQ(put(64, 0, -1), "REGION_RANGE");
  EXPECT_EQ(put(64, 0, 63), "DATA_LENGTH_MISMATCH");
  EXPECT_EQ(put(64, 0, 65), "DATA_LENGTH_MISMATCH");
  EXPECT_EQ(put(64, 0, 0), "DATA_LENGTH_MISMATCH");
  EXPECT_EQ(put(kMiB + 2, 0, kMiB + 2), "LIMIT_EXCEEDED");
  Put unknown = Bytes("t", 64, Space(region, 0, 64));
  unknown.mutable_header()->mutable_shared()->set_region("another");
  EXPECT_EQ(Send({unknown}), "REGION_UNKNOWN");
  Put later = Bytes("t", 64, Space(region, 0, 64));
  later.mutable_header()
      ->mutable_shared()
      ->GetReflection()
      ->MutableUnknownFields(later.mutable_header()->mutable_shared())
      ->AddVarint(99, 1);
  EXPECT_EQ(Send({later}), "UNSUPPORTED_REQUEST");
  Put wrong = Header("t", v1::DTYPE_BOOL, {64});
  *wrong.mutable_header()->mutable_shared() = Space(region, 0, 64);
  region.bytes()[63] = 2;
  EXPECT_EQ(Send({wrong}), "DATA_INVALID");
  // All is there: no chunk may come.
  EXPECT_EQ(Send({Bytes("t", 64, Space(region, 0, 64)), ChunkOf(0, "x")}), "CHUNK_INVALID");
  EXPECT_EQ(Send({Bytes("t", 64, Space(region, 0, 64)), ChunkOf(64, "x")}), "DATA_LENGTH_MISMATCH");
  EXPECT_EQ(broker.Free(region.id()), "OK");
  EXPECT_EQ(put(64, 0, 64), "REGION_UNKNOWN");
  server_->WaitUntilIdle();
  EXPECT_EQ(session_->counts().handles, 0);
}

TEST_F(SharedTransferTest, PlacesToReadIntoAreChecked) {
  Start();
  BrokerSocket broker(path());
  const BrokerSocket::Region region = broker.Take(kMiB);
  const int64_t all = region.size_bytes();
  ASSERT_EQ(Send({Bytes("t", 4096, Space(region, 0, 4096))}), "OK");
  std::fill_n(region.bytes(), all, 'x');
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const auto get = [&](int64_t offset, int64_t byte_count) {
    return GetInto("t", Space(region, offset, byte_count)).reason;
  };
  EXPECT_EQ(get(0, 4095), "REGION_RANGE") << "too small";
  EXPECT_EQ(get(0, 0), "REGION_RANGE");
  EXPECT_EQ(get(0, -1), "REGION_RANGE");
  EXPECT_EQ(get(8, 4096), "REGION_RANGE");
  EXPECT_EQ(get(all - 4032, 4096), "REGION_RANGE");
  EXPECT_EQ(get(kMost - 63, 4096), "REGION_RANGE");
  EXPECT_EQ(get(0, kMost), "REGION_RANGE");
  v1::GetTensorRequest request = GetRequest("t");
  *request.mutable_shared() = Space(region, 0, 4096);
  request.set_offset(64);
  EXPECT_EQ(Get(request).reason, "CHUNK_INVALID");
  request = GetRequest("t");
  *request.mutable_shared() = Space(region, 0, 4096);
  request.mutable_shared()->set_region("another");
  EXPECT_EQ(Get(request).reason, "REGION_UNKNOWN");
  EXPECT_EQ(GetInto("none", Space(region, 0, 4096)).reason, "HANDLE_UNKNOWN");
  EXPECT_EQ(std::count(region.bytes(), region.bytes() + all, 'x'), all) << "nothing was written";
  EXPECT_EQ(get(all - 4096, 4096), "OK");
}

TEST_F(SharedTransferTest, AnotherTenantsRegionIsNone) {
  PrivateFolder secrets;
  const std::string file = secrets.Write("callers", "a execute " + Fingerprint::Of("token-a").ToHex() + "\nb execute " +
                                                        Fingerprint::Of("token-b").ToHex());
  InProcessServer& server = Start({"identity.file=" + file, "identity.trust_unix_sockets=false"});
  BrokerSocket broker(path());
  const BrokerSocket::Region region = broker.Take(kMiB, "Bearer token-a");
  for (const std::string tenant : {"a", "b"}) {
    session_ = *server.parts().sessions->Open(tenant, absl::ZeroDuration());
    Put in_chunks = Header("chunks", v1::DTYPE_F16, {32});
    ASSERT_EQ(Send({in_chunks, ChunkOf(0, std::string(64, 'c'))}, "token-" + tenant), "OK");
    const std::string expected = tenant == "a" ? "OK" : "REGION_UNKNOWN";
    EXPECT_EQ(Send({Bytes("t", 64, Space(region, 0, 64))}, "token-" + tenant), expected);
    EXPECT_EQ(GetInto("chunks", Space(region, 0, 64), "token-" + tenant).reason, expected);
  }
}

TEST_F(SharedTransferTest, AServerThatSharesNothingSaysSo) {
  server_ = std::make_unique<InProcessServer>();
  session_ = *server_->parts().sessions->Open("default", absl::ZeroDuration());
  EXPECT_EQ(Send({Bytes("t", 64, Space(BrokerSocket::Region(), 0, 64))}), "UNSUPPORTED_REQUEST");
  EXPECT_EQ(GetInto("t", Space(BrokerSocket::Region(), 0, 64)).reason, "UNSUPPORTED_REQUEST");
}

TEST_F(SharedTransferTest, WhatIsLargerThanAskedForIsTheHeaderAlone) {
  Start();
  const std::string bytes = RandomBytes(3 * kMiB);
  Put header = Header("t", v1::DTYPE_F16, {3, kMiB / 2});
  header.mutable_header()->set_order(v1::MEMORY_ORDER_ROW_MAJOR);
  ASSERT_EQ(Send({header, ChunkOf(0, bytes.substr(0, kMiB)), ChunkOf(kMiB, bytes.substr(kMiB, kMiB)),
                  ChunkOf(2 * kMiB, bytes.substr(2 * kMiB))}),
            "OK");
  v1::GetTensorRequest request = GetRequest("t");
  for (const int64_t most : {int64_t{1}, 3 * kMiB - 1, 3 * kMiB, int64_t{0}, int64_t{-1}}) {
    request.set_most_bytes(most);
    const SharedDownload got = Get(request);
    EXPECT_EQ(got.reason, "OK");
    EXPECT_EQ(got.header.shape(0) * got.header.shape(1), 3 * kMiB / 2);
    EXPECT_EQ(got.header.order(), v1::MEMORY_ORDER_ROW_MAJOR);
    EXPECT_TRUE(got.bytes == (most > 0 && most < 3 * kMiB ? "" : bytes));
  }
}

TEST_F(SharedTransferTest, WhatAnEarlierCallLeftIsWrittenOver) {
  Start();
  BrokerSocket broker(path());
  const BrokerSocket::Region region = broker.Take(4096);
  Put left = Header("t", v1::DTYPE_F16, {2048});
  left.mutable_header()->set_resumable(true);
  ASSERT_EQ(Send({left, ChunkOf(0, std::string(1000, 'a'))}), "OK");
  std::fill_n(region.bytes(), 4096, 'b');
  EXPECT_EQ(Send({Bytes("t", 4096, Space(region, 0, 4096))}), "OK");
  EXPECT_EQ(BytesOf("t"), std::string(4096, 'b'));
  EXPECT_EQ(Send({Bytes("t", 4096, Space(region, 0, 4096))}), "HANDLE_DUPLICATE");
}

TEST_F(SharedTransferTest, ADownloadThatWaitsKeepsItsRegion) {
  InProcessServer& server = Start();
  auto broker = std::make_unique<BrokerSocket>(path());
  const BrokerSocket::Region region = broker->Take(kMiB);
  v1::ExecuteRequest request = RequestOf(LargeSum(), {FloatTensor(std::vector<float>(16, 1.0f), {16})});
  request.set_session(session_->id());
  Keep(&request, "sum");
  BlockedExecutor blocked(server);
  v1::ExecuteResponse response;
  auto run = std::async(std::launch::async, [&] { return ReasonOf(Execute(server.stub(), request, &response)); });
  ASSERT_TRUE(WaitFor([&] { return server.executor().stats().queued > 0; }));
  auto download = std::async(std::launch::async, [&] { return GetInto("sum", Space(region, 64, 64)); });
  // The store has it, the call, and who asks here.
  ASSERT_TRUE(
      WaitFor([&] { return server.parts().regions->Find("default", region.id(), 0, 64)->region.use_count() == 3; }));
  broker.reset();
  EXPECT_TRUE(WaitFor([&] { return GetInto("sum", Space(region, 1, 64)).reason == "REGION_UNKNOWN"; }));
  blocked.Release();
  EXPECT_EQ(run.get(), "OK");
  EXPECT_EQ(download.get().reason, "OK");
  EXPECT_TRUE(WaitFor([&] { return server.parts().regions->stats().regions == 0; }));
}

TEST_F(SharedTransferTest, NumbersThatChangeWhileTheyAreCopiedHurtNobodyElse) {
  Start();
  BrokerSocket broker(path());
  const BrokerSocket::Region region = broker.Take(kMiB);
  std::fill_n(region.bytes(), kMiB, '\1');
  std::atomic<bool> stop{false};
  std::thread scribbler([&] {
    for (size_t at = 0; !stop; ++at) {
      __atomic_store_n(region.bytes() + at % kMiB, static_cast<char>(at % 3), __ATOMIC_RELAXED);
      if (at % 3 == 2) __atomic_store_n(region.bytes() + at % kMiB, '\1', __ATOMIC_RELAXED);
    }
  });
  for (int i = 0; i < 20; ++i) {
    Put header = Header("t", v1::DTYPE_BOOL, {kMiB});
    *header.mutable_header()->mutable_shared() = Space(region, 0, kMiB);
    const std::string reason = Send({header});
    if (reason == "DATA_INVALID") continue;
    ASSERT_EQ(reason, "OK");
    const std::string bytes = BytesOf("t");
    ASSERT_TRUE(std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == 0 || byte == 1; }));
    session_->Delete({"t"});
  }
  stop = true;
  scribbler.join();
}

// ---- The client ----

HostTensor RandomTensorOfBytes(int64_t bytes) {
  return *HostTensor::FromBytes(client::DType::kF16, {2, bytes / 4}, client::MemoryOrder::kRowMajor,
                                RandomBytes(bytes));
}

void ExpectSame(const absl::StatusOr<HostTensor>& got, const HostTensor& expected) {
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->dtype(), expected.dtype());
  EXPECT_EQ(got->shape(), expected.shape());
  EXPECT_EQ(got->order(), expected.order());
  ASSERT_EQ(got->size_bytes(), expected.size_bytes());
  EXPECT_EQ(std::memcmp(got->bytes(), expected.bytes(), expected.size_bytes()), 0);
}

TEST_F(SharedTransferTest, TheClientUsesItByItself) {
  InProcessServer& server = Start();
  auto client = Client::Connect({.target = server.target(), .shared_memory = true});
  ASSERT_TRUE(client.ok()) << client.status();
  const std::shared_ptr<client::SharedMemory>& memory = (*client)->shared_memory();
  ASSERT_NE(memory, nullptr);
  const HostTensor elsewhere = RandomTensorOfBytes(3 * kMiB);
  const auto block = memory->Allocate(elsewhere.size_bytes());
  ASSERT_TRUE(block.ok());
  std::memcpy(block->get(), elsewhere.bytes(), elsewhere.size_bytes());
  const auto there =
      HostTensor::FromBuffer(elsewhere.dtype(), elsewhere.shape(), elsewhere.order(), *block, elsewhere.size_bytes());
  ASSERT_TRUE((*client)->PutTensor(session_->id(), "there", *there).ok());
  EXPECT_EQ(server.parts().regions->stats().regions, 1) << "sent where it lies";
  ASSERT_TRUE((*client)->PutTensor(session_->id(), "elsewhere", elsewhere).ok());
  for (const std::string handle : {"there", "elsewhere"}) {
    const auto got = (*client)->GetTensor(session_->id(), handle);
    ExpectSame(got, elsewhere);
    EXPECT_TRUE(memory->Find(got->bytes(), got->size_bytes()).has_value());
    client::ExecuteOptions other;
    other.order = client::MemoryOrder::kColumnMajor;
    ExpectSame((*client)->GetTensor(session_->id(), handle, other),
               elsewhere.InOrder(client::MemoryOrder::kColumnMajor));
  }
  EXPECT_LE(server.parts().regions->stats().regions, 3) << "blocks are used again";
  for (const char* method : {"PutTensor", "GetTensor"}) {
    EXPECT_LT(server.Metric("tensord_rpc_received_bytes_total", method), 10000.0) << method;
    EXPECT_LT(server.Metric("tensord_rpc_sent_bytes_total", method), 10000.0) << method;
  }
}

TEST_F(SharedTransferTest, TheClientSendsWhatIsSmallAndWhatFindsNoMemory) {
  InProcessServer& server = Start({"shared_memory.region_bytes=1048576"});
  auto client = Client::Connect({.target = server.target(), .shared_memory = true});
  ASSERT_TRUE(client.ok());
  for (const int64_t size : {int64_t{0}, int64_t{4}, (int64_t{64} << 10) - 4, 3 * kMiB}) {
    const HostTensor tensor = RandomTensorOfBytes(size);
    ASSERT_TRUE((*client)->PutTensor(session_->id(), "t", tensor).ok());
    const auto got = (*client)->GetTensor(session_->id(), "t");
    ExpectSame(got, tensor);
    EXPECT_FALSE((*client)->shared_memory()->Find(got->bytes(), got->size_bytes()).has_value());
    session_->Delete({"t"});
  }
  EXPECT_EQ(server.parts().regions->stats().regions, 0);
}

TEST_F(SharedTransferTest, TheClientGoesOnInMessagesWhereRegionsAreGone) {
  InProcessServer& server = Start();
  const HostTensor tensor = RandomTensorOfBytes(kMiB);
  for (const bool upload : {true, false}) {
    auto client = Client::Connect({.target = server.target(), .shared_memory = true});
    ASSERT_TRUE(client.ok());
    client::SharedMemory& memory = *(*client)->shared_memory();
    {
      const auto block = memory.Allocate(kMiB);  // that is used for the next call
      ASSERT_TRUE(block.ok());
      server.parts().regions->Remove(memory.Find(block->get(), kMiB)->region);  // as a new server would not know it
    }
    if (upload) {
      ASSERT_TRUE((*client)->PutTensor(session_->id(), "t", tensor).ok());
      EXPECT_TRUE(memory.is_lost());
    }
    ExpectSame((*client)->GetTensor(session_->id(), "t"), tensor);
    EXPECT_TRUE(memory.is_lost());
  }
}

TEST_F(SharedTransferTest, TheClientTellsWhatTheServerRefuses) {
  InProcessServer& server = Start();
  auto client = Client::Connect({.target = server.target(), .shared_memory = true});
  ASSERT_TRUE(client.ok());
  const HostTensor tensor = RandomTensorOfBytes(kMiB);
  ASSERT_TRUE((*client)->PutTensor(session_->id(), "t", tensor).ok());
  const auto reason = [](const absl::Status& status) { return client::ReasonOf(status); };
  EXPECT_EQ(reason((*client)->PutTensor(session_->id(), "t", tensor)), "HANDLE_DUPLICATE");
  EXPECT_EQ(reason((*client)->PutTensor("none", "t", tensor)), "SESSION_UNKNOWN");
  EXPECT_EQ(reason((*client)->GetTensor(session_->id(), "none").status()), "HANDLE_UNKNOWN");
  EXPECT_FALSE((*client)->shared_memory()->is_lost());
}

// A server that has the memory of another one and `transfers` as it is given, knows nothing of places in it, and sees
// to it that no message has any unless it says so.
void ExpectMessages(const std::string& socket, bool transfers) {
  client::FakeServer old;
  old.info.mutable_shared_memory()->set_socket(socket);
  old.info.mutable_shared_memory()->set_transfers(transfers);
  v1::ErrorDetail unsupported;
  unsupported.set_reason("UNSUPPORTED_REQUEST");
  unsupported.set_node(std::string(130, 'n'));  // FakeServer writes lengths of two bytes
  const grpc::Status refusal =
      client::FakeServer::Refusal(grpc::StatusCode::UNIMPLEMENTED, "what is field 8", unsupported);
  int refused = 0;
  v1::GetTensorResponse header, chunk;
  old.put_tensor = [&](grpc::ServerContext*, grpc::ServerReader<Put>* reader, v1::PutTensorResponse* response) {
    Put message;
    reader->Read(&message);
    refused += message.header().has_shared();
    if (message.header().has_shared()) return refusal;
    header.mutable_header()->set_dtype(message.header().dtype());
    *header.mutable_header()->mutable_shape() = message.header().shape();
    header.mutable_header()->set_order(message.header().order());
    reader->Read(&message);
    *chunk.mutable_chunk()->mutable_data() = message.chunk().data();
    chunk.mutable_chunk()->set_crc32c(message.chunk().crc32c());
    response->set_byte_count(static_cast<int64_t>(message.chunk().data().size()));
    return grpc::Status::OK;
  };
  old.get_tensor = [&](const v1::GetTensorRequest& request, grpc::ServerWriter<v1::GetTensorResponse>* writer) {
    refused += request.most_bytes() > 0;
    if (request.most_bytes() > 0) return refusal;
    writer->Write(header);
    writer->Write(chunk);
    return grpc::Status::OK;
  };
  const auto client = Client::Connect({.target = old.target(), .shared_memory = true});
  ASSERT_TRUE(client.ok()) << client.status();
  ASSERT_NE((*client)->shared_memory(), nullptr);
  const HostTensor tensor = RandomTensorOfBytes(kMiB);
  const absl::Status put = (*client)->PutTensor("s", "t", tensor);
  EXPECT_TRUE(put.ok()) << put;
  ExpectSame((*client)->GetTensor("s", "t"), tensor);
  EXPECT_EQ(refused, transfers ? 2 : 0);
}

TEST_F(SharedTransferTest, OlderServersGetMessages) {
  Start();
  ExpectMessages(path(), /*transfers=*/false);
  // One that has taken the place of a newer one.
  ExpectMessages(path(), /*transfers=*/true);
}

TEST_F(SharedTransferTest, AnAnswerThatIsLostIsAskedForInMessages) {
  InProcessServer& server = Start();
  const HostTensor tensor = RandomTensorOfBytes(kMiB);
  const HostTensor other = *HostTensor::FromVector(std::vector<float>(1000, 3), {1000});
  const std::string proxy_path = server.socket_path() + "-proxy";
  BreakingProxy proxy(proxy_path, server.socket_path(), {});
  const auto client = Client::Connect({.target = "unix:" + proxy_path, .shared_memory = true});
  const auto direct = Client::Connect({.target = server.target()});
  ASSERT_TRUE(client.ok() && direct.ok());
  for (const bool is_replaced : {false, true}) {
    const std::string handle = is_replaced ? "replaced" : "kept";
    ASSERT_TRUE((*client)->GetServerInfo().ok());  // connected
    proxy.Mute();
    auto put = std::async(std::launch::async, [&] { return (*client)->PutTensor(session_->id(), handle, tensor); });
    ASSERT_TRUE(WaitFor([&] { return session_->Find(handle).ok(); }));
    EXPECT_GT(server.parts().regions->stats().regions, 0) << "it went through shared memory";
    if (is_replaced) {
      session_->Delete(std::vector<std::string>{handle});
      ASSERT_TRUE((*direct)->PutTensor(session_->id(), handle, other).ok());
    }
    proxy.Break();
    const absl::Status status = put.get();
    EXPECT_EQ(client::ReasonOf(status), is_replaced ? "HANDLE_DUPLICATE" : "") << status;
    EXPECT_EQ(status.ok(), !is_replaced) << status;
    ExpectSame((*direct)->GetTensor(session_->id(), handle), is_replaced ? other : tensor);
    if (!is_replaced) {
      const auto memory = (*client)->shared_memory();
      ASSERT_NE(memory, nullptr);
      EXPECT_FALSE(memory->is_lost());
    }
  }
}

// Wherever it breaks: before the request, before the answer, or between two calls.
TEST_F(SharedTransferTest, AConnectionThatBreaksCostsNoTensor) {
  InProcessServer& server = Start();
  const HostTensor tensor = RandomTensorOfBytes(kMiB);
  int by_memory = 0;
  for (int64_t budget = 400; budget < 4000; budget += 120) {
    const std::string proxy_path = server.socket_path() + "-proxy";
    BreakingProxy proxy(proxy_path, server.socket_path(), {budget});
    auto client = Client::Connect({.target = "unix:" + proxy_path, .shared_memory = true});
    ASSERT_TRUE(client.ok()) << client.status();
    const absl::Status put = (*client)->PutTensor(session_->id(), "t", tensor);
    ASSERT_TRUE(put.ok()) << budget << ": " << put;
    ExpectSame((*client)->GetTensor(session_->id(), "t"), tensor);
    by_memory += (*client)->shared_memory() != nullptr;
    session_->Delete({"t"});
  }
  EXPECT_GT(by_memory, 0);
}

}  // namespace
}  // namespace tensord
