#ifndef TENSORD_SERVER_SESSIONS_TENSOR_UPLOAD_H_
#define TENSORD_SERVER_SESSIONS_TENSOR_UPLOAD_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/exec/backend/backend.h"
#include "server/sessions/tensor_slot.h"

namespace tensord::server {

class Session;

// The only writer of a tensor that is being uploaded. Made by Session::StartUpload. Move-only; confined to its call. If
// it goes before Commit, the received bytes stay under the handle, for the next StartUpload to go on with, until the
// handle is deleted or the session ends.
//
//   upload.Write(upload.arrived(), data), upload.Advance(n), session->Renew(), …, upload.Commit()
class TensorUpload {
 public:
  TensorUpload() = default;
  TensorUpload(TensorUpload&& other) noexcept { *this = std::move(other); }
  TensorUpload& operator=(TensorUpload&& other) noexcept;
  ~TensorUpload() { Return(); }

  const std::string& handle() const { return handle_; }
  // Returns the place for the tensor's bytes, aligned to 64, if its device's memory is the host's; else null. The bytes
  // stay while this object exists, whatever becomes of the handle.
  char* bytes() const { return bytes_; }
  // Writes bytes of the tensor, from that one on, into the memory of any device. Refuses as the device does.
  absl::Status Write(int64_t offset, absl::string_view bytes) { return backend_->Write(buffer_.get(), offset, bytes); }
  int64_t size_bytes() const { return size_bytes_; }
  // Returns the number of bytes that have been written.
  int64_t arrived() const { return arrived_; }
  // Keeps only so many bytes from now on, at most those that have arrived.
  void Rewind(int64_t arrived);
  // Counts so many more bytes as written, behind the others; not more than are missing.
  void Advance(int64_t bytes);

  // Makes the tensor ready. HANDLE_INCOMPLETE if bytes are missing; HANDLE_UNKNOWN if the handle was deleted meanwhile,
  // SESSION_UNKNOWN if the session ended.
  absl::Status Commit();
  // Gives the upload up: the handle and its bytes are free again.
  void Drop();

 private:
  friend class Session;
  void SetMemory(std::shared_ptr<ResidentMemory> memory, std::shared_ptr<Buffer> buffer, Backend* backend);
  void Return();

  std::shared_ptr<Session> session_;
  std::string handle_;
  TensorSlotPtr slot_;  // null: over
  std::shared_ptr<ResidentMemory> memory_;
  std::shared_ptr<Buffer> buffer_;  // of the memory
  Backend* backend_ = nullptr;      // of its device
  char* bytes_ = nullptr;
  int64_t size_bytes_ = 0;
  int64_t arrived_ = 0;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_SESSIONS_TENSOR_UPLOAD_H_
