#include "clients/cpp/files/zip_archive.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"

// PKWARE's APPNOTE.TXT, 6.3: sections 4.3.7 (local header), 4.3.12 (directory), 4.3.14 to 4.3.16 (ends), 4.5.3 (sizes
// of 64 bits).
namespace tensord::client {
namespace {

constexpr uint32_t kLocalMark = 0x04034b50, kDirectoryMark = 0x02014b50, kEndMark = 0x06054b50;
constexpr uint32_t kWideEndMark = 0x06064b50, kLocatorMark = 0x07064b50;
constexpr size_t kLocalBytes = 30, kDirectoryBytes = 46, kEndBytes = 22, kWideEndBytes = 56, kLocatorBytes = 20;
constexpr size_t kMostComment = 65535;
constexpr uint16_t kWideExtra = 1, kWideVersion = 45, kUtf8 = 1 << 11, kEncrypted = 1;
constexpr uint16_t kSaturated16 = 0xffff;
constexpr uint32_t kSaturated32 = 0xffffffff;
constexpr uint16_t kFirstDate = 0x21;  // 1980-01-01: archives of the same tensors are the same

// Reads `kBytes` bytes, little-endian. The caller has checked the length.
template <size_t kBytes>
uint64_t Number(absl::string_view bytes, size_t at) {
  uint64_t value = 0;
  for (size_t i = 0; i < kBytes; ++i) value |= uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return value;
}

template <size_t kBytes>
void Append(uint64_t value, std::string* to) {
  for (size_t i = 0; i < kBytes; ++i) to->push_back(static_cast<char>(value >> (8 * i)));
}

// The checksum of ZIP and Ethernet, bits reversed: polynomial 0xedb88320.
uint32_t ExtendCrc32(uint32_t crc, absl::string_view bytes) {
  static constexpr auto kTable = [] {
    std::array<uint32_t, 256> table = {};
    for (uint32_t byte = 0; byte < 256; ++byte) {
      uint32_t value = byte;
      for (int bit = 0; bit < 8; ++bit) value = (value & 1) != 0 ? 0xedb88320u ^ (value >> 1) : value >> 1;
      table[byte] = value;
    }
    return table;
  }();
  crc = ~crc;
  for (const char byte : bytes) crc = kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

absl::Status NoArchive(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("not a ZIP archive, or a damaged one: ", why));
}

// Takes the sizes that did not fit into 32 bits from the entry's extra fields. False: they are not there.
bool WidenSizes(absl::string_view extra, ZipReader::Member* member) {
  const std::array<uint64_t*, 3> wide = {&member->size_bytes, &member->stored_bytes, &member->header_offset};
  if (std::none_of(wide.begin(), wide.end(), [](const uint64_t* size) { return *size == kSaturated32; })) return true;
  while (extra.size() >= 4) {
    const uint64_t id = Number<2>(extra, 0), length = Number<2>(extra, 2);
    extra.remove_prefix(4);
    if (length > extra.size()) return false;
    absl::string_view field = extra.substr(0, length);
    extra.remove_prefix(length);
    if (id != kWideExtra) continue;
    for (uint64_t* size : wide) {
      if (*size != kSaturated32) continue;
      if (field.size() < 8) return false;
      *size = Number<8>(field, 0);
      field.remove_prefix(8);
    }
    return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<ZipReader> ZipReader::Open(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  ZipReader reader(descriptor, 0);
  struct stat attributes;
  if (fstat(descriptor, &attributes) != 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  if (!S_ISREG(attributes.st_mode)) return absl::InvalidArgumentError("an archive is read from a regular file only");
  reader.size_bytes_ = static_cast<uint64_t>(attributes.st_size);
  const absl::Status read = reader.ReadDirectory();
  if (!read.ok()) return read;
  return reader;
}

ZipReader::ZipReader(ZipReader&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      size_bytes_(other.size_bytes_),
      members_(std::move(other.members_)) {}

ZipReader::~ZipReader() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::StatusOr<std::string> ZipReader::ReadAt(uint64_t offset, uint64_t count) const {
  if (offset > size_bytes_ || count > size_bytes_ - offset) return NoArchive("it ends too early");
  std::string bytes;
  try {
    bytes.resize(count);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat("there is not enough memory for ", count, " bytes"));
  }
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t got = pread(descriptor_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, "cannot read");
    if (got == 0) return NoArchive("it became shorter while it was read");
    done += static_cast<size_t>(got);
  }
  return bytes;
}

absl::Status ZipReader::ReadDirectory() {
  const uint64_t tail_bytes = std::min<uint64_t>(size_bytes_, kEndBytes + kMostComment + kLocatorBytes);
  const absl::StatusOr<std::string> tail = ReadAt(size_bytes_ - tail_bytes, tail_bytes);
  if (!tail.ok()) return tail.status();
  if (tail->size() < kEndBytes) return NoArchive("it is too short");
  size_t end = tail->size() - kEndBytes;
  while (Number<4>(*tail, end) != kEndMark || Number<2>(*tail, end + 20) != tail->size() - end - kEndBytes) {
    if (end-- == 0) return NoArchive("its end is missing");
  }
  uint64_t count = Number<2>(*tail, end + 10), bytes = Number<4>(*tail, end + 12), offset = Number<4>(*tail, end + 16);
  const bool has_locator = end >= kLocatorBytes && Number<4>(*tail, end - kLocatorBytes) == kLocatorMark;
  if (!has_locator && (bytes == kSaturated32 || offset == kSaturated32)) {
    return NoArchive("the place of its directory is missing");
  }
  // Without a locator an archive has just as many members.
  if (has_locator && (count == kSaturated16 || bytes == kSaturated32 || offset == kSaturated32)) {
    const absl::StatusOr<std::string> wide = ReadAt(Number<8>(*tail, end - kLocatorBytes + 8), kWideEndBytes);
    if (!wide.ok()) return wide.status();
    if (Number<4>(*wide, 0) != kWideEndMark) return NoArchive("the place of its directory is wrong");
    count = Number<8>(*wide, 32);
    bytes = Number<8>(*wide, 40);
    offset = Number<8>(*wide, 48);
  }
  if (bytes > kMostDirectoryBytes) return NoArchive(absl::StrCat("a directory of ", bytes, " bytes"));
  const absl::StatusOr<std::string> directory = ReadAt(offset, bytes);
  if (!directory.ok()) return directory.status();
  absl::string_view rest = *directory;
  uint64_t free_bytes = size_bytes_;
  for (uint64_t i = 0; i < count; ++i) {
    if (rest.size() < kDirectoryBytes || Number<4>(rest, 0) != kDirectoryMark) return NoArchive("a member is missing");
    Member member = {.method = static_cast<uint16_t>(Number<2>(rest, 10)),
                     .is_encrypted = (Number<2>(rest, 8) & kEncrypted) != 0,
                     .crc32 = static_cast<uint32_t>(Number<4>(rest, 16)),
                     .stored_bytes = Number<4>(rest, 20),
                     .size_bytes = Number<4>(rest, 24),
                     .header_offset = Number<4>(rest, 42)};
    const uint64_t name = Number<2>(rest, 28), extra = Number<2>(rest, 30), comment = Number<2>(rest, 32);
    rest.remove_prefix(kDirectoryBytes);
    if (rest.size() < name + extra + comment) return NoArchive("a member is cut off");
    member.name = std::string(rest.substr(0, name));
    if (!WidenSizes(rest.substr(name, extra), &member)) return NoArchive("the size of a member is missing");
    rest.remove_prefix(name + extra + comment);
    if (member.stored_bytes > free_bytes) return NoArchive("its members are larger than the file");
    free_bytes -= member.stored_bytes;
    members_.push_back(std::move(member));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ZipReader::Read(const Member& member) const {
  if (member.is_encrypted) return absl::UnimplementedError("the member is encrypted");
  if (member.method != 0) {
    return absl::UnimplementedError("the member is compressed; store it as it is, as numpy.savez does");
  }
  if (member.stored_bytes != member.size_bytes) return NoArchive("a stored member has two sizes");
  const absl::StatusOr<std::string> header = ReadAt(member.header_offset, kLocalBytes);
  if (!header.ok()) return header.status();
  if (Number<4>(*header, 0) != kLocalMark) return NoArchive("a member is not at its place");
  const uint64_t begin = member.header_offset + kLocalBytes + Number<2>(*header, 26) + Number<2>(*header, 28);
  absl::StatusOr<std::string> contents = ReadAt(begin, member.stored_bytes);
  if (contents.ok() && ExtendCrc32(0, *contents) != member.crc32) {
    return absl::DataLossError("the member is not what its checksum says");
  }
  return contents;
}

void ZipPieces::AddOwned(std::string piece) {
  size_bytes_ += piece.size();
  pieces_.push_back(owned_.emplace_back(std::move(piece)));
}

void ZipPieces::Add(const std::string& name, const std::vector<absl::string_view>& contents) {
  uint64_t size = 0;
  uint32_t crc = 0;
  for (const absl::string_view piece : contents) {
    size += piece.size();
    crc = ExtendCrc32(crc, piece);
  }
  const uint64_t offset = size_bytes_;
  // The fields that both headers have, up to the lengths of name and extra.
  const auto fields = [&](uint16_t extra_bytes) {
    std::string text;
    Append<2>(kWideVersion, &text);
    Append<2>(kUtf8, &text);
    Append<2>(0, &text);  // stored
    Append<2>(0, &text);  // midnight
    Append<2>(kFirstDate, &text);
    Append<4>(crc, &text);
    Append<4>(kSaturated32, &text);
    Append<4>(kSaturated32, &text);
    Append<2>(name.size(), &text);
    Append<2>(extra_bytes, &text);
    return text;
  };
  const auto wide = [&](bool has_offset) {
    std::string text;
    Append<2>(kWideExtra, &text);
    Append<2>(has_offset ? 24 : 16, &text);
    Append<8>(size, &text);
    Append<8>(size, &text);
    if (has_offset) Append<8>(offset, &text);
    return text;
  };
  std::string local;
  Append<4>(kLocalMark, &local);
  AddOwned(absl::StrCat(local, fields(20), name, wide(false)));
  pieces_.insert(pieces_.end(), contents.begin(), contents.end());
  size_bytes_ += size;

  Append<4>(kDirectoryMark, &directory_);
  Append<2>(kWideVersion, &directory_);
  absl::StrAppend(&directory_, fields(28));
  Append<8>(0, &directory_);  // no comment, first disk, kinds of file: none
  Append<2>(0, &directory_);
  Append<4>(kSaturated32, &directory_);  // the offset
  absl::StrAppend(&directory_, name, wide(true));
  ++members_;
}

std::vector<absl::string_view> ZipPieces::Finish() {
  const uint64_t offset = size_bytes_, bytes = directory_.size();
  AddOwned(std::move(directory_));
  std::string end;
  // NumPy knows an empty archive by the mark of the narrow end at its begin.
  if (members_ == 0) {
    Append<4>(kEndMark, &end);
    end.resize(kEndBytes, '\0');
    AddOwned(std::move(end));
    return pieces_;
  }
  const uint64_t wide_end = size_bytes_;
  Append<4>(kWideEndMark, &end);
  Append<8>(kWideEndBytes - 12, &end);
  Append<2>(kWideVersion, &end);
  Append<2>(kWideVersion, &end);
  Append<8>(0, &end);  // the only disk
  Append<8>(members_, &end);
  Append<8>(members_, &end);
  Append<8>(bytes, &end);
  Append<8>(offset, &end);
  Append<4>(kLocatorMark, &end);
  Append<4>(0, &end);
  Append<8>(wide_end, &end);
  Append<4>(1, &end);
  Append<4>(kEndMark, &end);
  Append<4>(0, &end);
  Append<2>(kSaturated16, &end);
  Append<2>(kSaturated16, &end);
  Append<4>(kSaturated32, &end);
  Append<4>(kSaturated32, &end);
  Append<2>(0, &end);
  AddOwned(std::move(end));
  return pieces_;
}

}  // namespace tensord::client
