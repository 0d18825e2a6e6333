#ifndef TENSORD_TESTS_E2E_SERVER_SHARED_MEMORY_BROKER_SOCKET_H_
#define TENSORD_TESTS_E2E_SERVER_SHARED_MEMORY_BROKER_SOCKET_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "tensord/v1/shared_memory.pb.h"

namespace tensord {

// A connection to the socket that hands out shared memory, packet by packet.
class BrokerSocket {
 public:
  // A region as a client has it; unmapped with the object.
  class Region {
   public:
    Region() = default;
    Region(std::string id, int descriptor, int64_t size_bytes);
    Region(Region&& other) noexcept;
    Region& operator=(Region&&) = delete;
    ~Region();

    const std::string& id() const { return id_; }
    char* bytes() const { return bytes_; }
    int descriptor() const { return descriptor_; }
    int64_t size_bytes() const { return size_bytes_; }
    template <typename T>
    T* As(int64_t offset = 0) const {
      return reinterpret_cast<T*>(bytes_ + offset);
    }

   private:
    std::string id_;
    int descriptor_ = -1;
    char* bytes_ = nullptr;
    int64_t size_bytes_ = 0;
  };

  explicit BrokerSocket(const std::string& path);
  ~BrokerSocket() { Close(); }
  BrokerSocket(const BrokerSocket&) = delete;
  BrokerSocket& operator=(const BrokerSocket&) = delete;

  bool connected() const { return socket_ >= 0; }
  void Close();
  // Sends these bytes; the answer, and a descriptor that came with it, -1: none. An empty reply where the server hung
  // up.
  v1::SharedMemoryReply Ask(absl::string_view packet, int* descriptor);
  // The answer that comes unasked.
  v1::SharedMemoryReply Read(int* descriptor);
  // The reason of the refusal, or "OK".
  std::string Allocate(int64_t size_bytes, const std::string& authorization = "",
                       v1::SharedMemoryReply* reply = nullptr);
  std::string Free(const std::string& region);
  // A region that must be given.
  Region Take(int64_t size_bytes, const std::string& authorization = "");

 private:
  int socket_ = -1;
};

}  // namespace tensord

#endif  // TENSORD_TESTS_E2E_SERVER_SHARED_MEMORY_BROKER_SOCKET_H_
