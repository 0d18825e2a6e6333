#include "tensord/npy.h"

#include <cstddef>
#include <deque>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "clients/cpp/files/file.h"
#include "clients/cpp/files/npy_header.h"
#include "clients/cpp/files/zip_archive.h"

namespace tensord::client {
namespace {

constexpr absl::string_view kSuffix = ".npy";
constexpr size_t kMostNameBytes = 65535 - kSuffix.size();

absl::Status At(absl::string_view place, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(place, ": ", status.message()));
}

}  // namespace

absl::StatusOr<std::vector<NamedTensor>> ReadNpz(const std::string& path) {
  const absl::StatusOr<ZipReader> archive = ZipReader::Open(path);
  if (!archive.ok()) {
    return absl::StrContains(archive.status().message(), path) ? archive.status() : At(path, archive.status());
  }
  std::vector<NamedTensor> tensors;
  for (const ZipReader::Member& member : archive->members()) {
    const std::string place = absl::StrCat(path, ", ", absl::Utf8SafeCHexEscape(member.name));  // bytes of the file
    if (!absl::EndsWith(member.name, kSuffix)) {
      return At(place, absl::InvalidArgumentError("the members of a .npz file are .npy files"));
    }
    absl::StatusOr<std::string> contents = archive->Read(member);
    if (!contents.ok()) return At(place, contents.status());
    absl::StatusOr<HostTensor> tensor = ParseNpy(*std::move(contents));
    if (!tensor.ok()) return At(place, tensor.status());
    tensors.push_back(
        {.name = member.name.substr(0, member.name.size() - kSuffix.size()), .tensor = *std::move(tensor)});
  }
  return tensors;
}

absl::Status WriteNpz(const std::string& path, absl::Span<const NamedTensor> tensors) {
  absl::flat_hash_set<std::string> names;
  std::deque<std::string> headers;
  ZipPieces archive;
  for (const NamedTensor& one : tensors) {
    if (one.name.empty() || one.name.size() > kMostNameBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("a name in a .npz file has 1 to ", kMostNameBytes, " bytes, not ", one.name.size()));
    }
    if (!names.insert(one.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("two tensors have one name: ", one.name));
    }
    const std::string& header = headers.emplace_back(FormatNpyHeader(one.tensor));
    archive.Add(absl::StrCat(one.name, kSuffix), {header, {one.tensor.bytes(), one.tensor.size_bytes()}});
  }
  return WriteFile(path, archive.Finish());
}

}  // namespace tensord::client
