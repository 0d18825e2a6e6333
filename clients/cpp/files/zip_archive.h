#ifndef TENSORD_CLIENTS_CPP_FILES_ZIP_ARCHIVE_H_
#define TENSORD_CLIENTS_CPP_FILES_ZIP_ARCHIVE_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tensord::client {

// A ZIP archive that is read, of members that are stored as they are. Every size is checked against the file's before
// anything is allocated. Thread-compatible. INVALID_ARGUMENT for anything that is no such archive.
class ZipReader {
 public:
  struct Member {
    std::string name;
    uint16_t method = 0;  // 0: stored
    bool is_encrypted = false;
    uint32_t crc32 = 0;
    uint64_t stored_bytes = 0, size_bytes = 0, header_offset = 0;
  };

  // Most bytes of the directory at the end.
  static constexpr uint64_t kMostDirectoryBytes = uint64_t{64} << 20;

  static absl::StatusOr<ZipReader> Open(const std::string& path);
  ~ZipReader();
  ZipReader(ZipReader&& other) noexcept;
  ZipReader& operator=(ZipReader&&) = delete;

  const std::vector<Member>& members() const { return members_; }
  // UNIMPLEMENTED if the member is compressed or encrypted, DATA_LOSS if its checksum does not match.
  absl::StatusOr<std::string> Read(const Member& member) const;

 private:
  ZipReader(int descriptor, uint64_t size_bytes) : descriptor_(descriptor), size_bytes_(size_bytes) {}

  absl::StatusOr<std::string> ReadAt(uint64_t offset, uint64_t count) const;
  absl::Status ReadDirectory();

  int descriptor_;
  uint64_t size_bytes_;
  std::vector<Member> members_;
};

// A ZIP archive that is written, as pieces whose concatenation it is. All sizes have 64 bits. Thread-compatible.
class ZipPieces {
 public:
  // Adds a member whose contents are the pieces' concatenation; they are not copied and must outlive this.
  void Add(const std::string& name, const std::vector<absl::string_view>& contents);
  // Adds the directory. Returns all pieces, valid as long as this.
  std::vector<absl::string_view> Finish();

 private:
  void AddOwned(std::string piece);

  std::deque<std::string> owned_;
  std::vector<absl::string_view> pieces_;
  std::string directory_;
  uint64_t size_bytes_ = 0, members_ = 0;
};

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_FILES_ZIP_ARCHIVE_H_
