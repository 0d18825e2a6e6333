#include "clients/cpp/connection/routing.h"

#include <openssl/evp.h>

#include <cstdint>
#include <memory>

#include "absl/random/random.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace tensord::client {
namespace {

constexpr size_t kRouteBytes = 16;

// A stream that computes the SHA-256 of the bytes written to it.
class Digest final : public google::protobuf::io::CopyingOutputStream {
 public:
  Digest() { EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr); }

  bool Write(const void* bytes, int size) override {
    return EVP_DigestUpdate(context_.get(), bytes, static_cast<size_t>(size)) == 1;
  }
  std::string Take() {
    unsigned char digest[EVP_MAX_MD_SIZE];
    EVP_DigestFinal_ex(context_.get(), digest, nullptr);
    return std::string(reinterpret_cast<const char*>(digest), kRouteBytes);
  }

 private:
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};

}  // namespace

std::string RouteOfProgram(const v1::Graph& graph, const v1::CompileOptions& options) {
  Digest digest;
  {
    google::protobuf::io::CopyingOutputStreamAdaptor stream(&digest);  // which need not hold all bytes of the graph
    graph.SerializeToZeroCopyStream(&stream);
    options.SerializeToZeroCopyStream(&stream);
  }
  return absl::BytesToHexString(digest.Take());
}

std::string NewSessionRoute() {
  absl::BitGen random;
  return absl::StrCat("session-", absl::Hex(absl::Uniform<uint64_t>(random), absl::kZeroPad16),
                      absl::Hex(absl::Uniform<uint64_t>(random), absl::kZeroPad16));
}

}  // namespace tensord::client
