#include "tensord/npy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <complex>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string File(int version, const std::string& dictionary, const std::string& payload) {
  std::string file = absl::StrCat("\x93NUMPY", std::string(1, static_cast<char>(version)), std::string(1, '\0'));
  for (size_t byte = 0; byte < (version == 1 ? 2u : 4u); ++byte) {
    file.push_back(static_cast<char>(dictionary.size() >> (8 * byte)));
  }
  return absl::StrCat(file, dictionary, payload);
}

std::string Dictionary(const std::string& descriptor, const std::string& is_fortran, const std::string& shape) {
  return absl::StrCat("{'descr': '", descriptor, "', 'fortran_order': ", is_fortran, ", 'shape': ", shape, ", }\n");
}

std::string WhyNoArray(std::string contents) { return std::string(ParseNpy(std::move(contents)).status().message()); }

void ExpectRoundTrip(const HostTensor& tensor) {
  const std::string contents = FormatNpy(tensor);
  const absl::StatusOr<HostTensor> read = ParseNpy(contents);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->dtype(), tensor.dtype());
  EXPECT_EQ(read->shape(), tensor.shape());
  EXPECT_EQ(read->order(), tensor.order());
  EXPECT_EQ(std::string(read->bytes(), read->size_bytes()), std::string(tensor.bytes(), tensor.size_bytes()));
  EXPECT_EQ((contents.size() - tensor.size_bytes()) % 64, 0u) << "the payload is aligned as NumPy aligns it";
}

TEST(Npy, RoundTripsEveryDType) {
  ExpectRoundTrip(*HostTensor::FromVector(std::vector<bool>{true, false}, {2}));
  ExpectRoundTrip(*HostTensor::FromVector(std::vector<int32_t>{1, -2, 3}, {3, 1}));
  ExpectRoundTrip(*HostTensor::FromVector(std::vector<int64_t>{1, -2}, {1, 2}, MemoryOrder::kColumnMajor));
  ExpectRoundTrip(*HostTensor::FromVector(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3}, MemoryOrder::kColumnMajor));
  ExpectRoundTrip(HostTensor::Scalar(2.5));
  ExpectRoundTrip(*HostTensor::FromVector(std::vector<std::complex<float>>{{1, 2}}, {1, 1, 1}));
  ExpectRoundTrip(*HostTensor::FromVector(std::vector<std::complex<double>>{}, {0, 7}));
  ExpectRoundTrip(*HostTensor::FromVector(std::vector<Half>{Half::FromFloat(1.5f)}, {1}));
  ExpectRoundTrip(*HostTensor::FromVector(std::vector<BFloat16>{BFloat16::FromFloat(1.5f)}, {1}));
}

TEST(Npy, RoundTripsMostAxesAndRefusesMore) {
  ExpectRoundTrip(*HostTensor::FromVector(std::vector<bool>{true}, Shape(kMostAxes, 1)));
  const std::string ones = absl::StrJoin(std::vector<int>(50'000, 1), ", ");
  const auto hostile =
      ParseNpy(File(2, Dictionary("|b1", "False", absl::StrCat("(", ones, ")")), std::string(1, '\0')));
  EXPECT_EQ(hostile.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Npy, ReadsEveryVersionAndBothOrders) {
  const std::string payload("\x01\x00\x00\x00\x02\x00\x00\x00", 8);
  for (int version = 1; version <= 3; ++version) {
    const auto row_major = ParseNpy(File(version, Dictionary("<i4", "False", "(1, 2)"), payload));
    ASSERT_TRUE(row_major.ok()) << row_major.status();
    EXPECT_EQ(row_major->order(), MemoryOrder::kRowMajor);
    EXPECT_THAT(*row_major->Values<int32_t>(), ElementsAre(1, 2));
    const auto column_major = ParseNpy(File(version, Dictionary("<i4", "True", "(2,)"), payload));
    EXPECT_EQ(column_major->order(), MemoryOrder::kColumnMajor);
    EXPECT_THAT(column_major->shape(), ElementsAre(2));
  }
}

TEST(Npy, ReadsHeadersHoweverTheyAreWritten) {
  const std::string payload(8, '\0');
  EXPECT_TRUE(ParseNpy(File(1, "{\"shape\":(2,),\"fortran_order\":False,\"descr\":\"<f4\"}", payload)).ok());
  EXPECT_TRUE(
      ParseNpy(File(1, "  { 'shape' : ( 2L , ) , 'descr' : '<f4' , 'fortran_order' : False }   ", payload)).ok());
  EXPECT_TRUE(ParseNpy(File(1, Dictionary("<f8", "False", "()"), payload)).ok());
  EXPECT_EQ(ParseNpy(File(1, Dictionary("|V2", "False", "(4,)"), payload))->dtype(), DType::kBF16);
  EXPECT_EQ(ParseNpy(File(1, Dictionary("=f8", "False", "()"), payload))->dtype(), DType::kF64);
}

TEST(Npy, SaysWhichElementsItCannotTake) {
  EXPECT_THAT(WhyNoArray(File(1, Dictionary(">f4", "False", "(2,)"), std::string(8, '\0'))),
              HasSubstr("big-endian elements are not supported; convert with astype(\"<f4\"): >f4"));
  EXPECT_THAT(WhyNoArray(File(1, Dictionary("<u2", "False", "(4,)"), std::string(8, '\0'))),
              HasSubstr("no tensord dtype has these elements: descr <u2"));
  EXPECT_THAT(WhyNoArray(File(1, Dictionary("|O", "False", "(1,)"), std::string(8, '\0'))), HasSubstr("descr |O"));
  EXPECT_THAT(WhyNoArray(File(1, Dictionary("|b1", "False", "(1,)"), "\x02")), HasSubstr("neither 0 nor 1"));
  EXPECT_THAT(
      WhyNoArray(File(1, "{'descr': [('a', '<f8'), ('b', '<i4', (2,))], 'fortran_order': False, 'shape': (3,)}", "")),
      HasSubstr("records"));
}

TEST(Npy, RefusesLengthsThatDoNotFit) {
  for (const char* shape : {"(2,)", "(0,)", "(1, 1, 4)", "(9223372036854775807, 2)", "(4611686018427387904,)"}) {
    EXPECT_FALSE(ParseNpy(File(1, Dictionary("<f4", "False", shape), std::string(12, '\0'))).ok()) << shape;
  }
  EXPECT_TRUE(ParseNpy(File(1, Dictionary("<f4", "False", "(3,)"), std::string(12, '\0'))).ok());
}

TEST(Npy, RefusesHostileHeaders) {
  const std::string good = Dictionary("<f4", "False", "(3,)");
  const std::string payload(12, '\0');
  ASSERT_TRUE(ParseNpy(File(1, good, payload)).ok());
  for (const std::string& bad :
       {std::string(), std::string("{"), std::string("{}"), std::string("[]"), std::string(2000, '('),
        std::string("{'descr': '<f4', 'fortran_order': False}"),
        std::string("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}"),
        std::string("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'x': 1}"),
        std::string("{'descr': '<f4' 'fortran_order': False, 'shape': (3,)}"),
        std::string("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}"),
        std::string("{'descr': '<f4', 'fortran_order': 1, 'shape': (3,)}"),
        std::string("{'descr': '<f4', 'fortran_order': False, 'shape': (3"),
        std::string("{'descr': '<f4', 'fortran_order': False, 'shape': (,)}"),
        std::string("{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}"),
        std::string("{'descr': '<f4', 'fortran_order': False, 'shape': (3.0,)}"),
        std::string("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}"),
        std::string("{'descr': '<f4, 'fortran_order': False, 'shape': (3,)}"), good + "x"}) {
    EXPECT_EQ(ParseNpy(File(1, bad, payload)).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
  EXPECT_THAT(WhyNoArray("PK\x03\x04"), HasSubstr("not a .npy file"));
  EXPECT_THAT(WhyNoArray(File(4, good, payload)), HasSubstr("unknown .npy version: 4"));
  EXPECT_THAT(WhyNoArray(File(0, good, payload)), HasSubstr("unknown .npy version: 0"));
}

TEST(Npy, RefusesEveryTruncationAndSurvivesEveryChangedByte) {
  const std::string file = FormatNpy(*HostTensor::FromVector(std::vector<float>{1, 2, 3}, {3}));
  for (size_t size = 0; size < file.size(); ++size) EXPECT_FALSE(ParseNpy(file.substr(0, size)).ok()) << size;
  for (size_t at = 0; at < file.size() - 12; ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = file;
      changed[at] = static_cast<char>(value);
      const auto tensor = ParseNpy(changed);
      if (tensor.ok()) {
        EXPECT_EQ(tensor->size_bytes(), 12u);
      }
    }
  }
}

// Only as much is read as the header says, whether or not the file ends.
TEST(Npy, WhatNeverEndsIsRefusedAfterItsHeader) {
  EXPECT_THAT(std::string(ReadNpy("/dev/zero").status().message()), HasSubstr("magic number"));
  const std::string path = absl::StrCat(::testing::TempDir(), "/npy_endless_", getpid());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const auto read_after = [&](const std::string& begin, bool is_endless) {
    std::thread writer([&] {
      std::signal(SIGPIPE, SIG_IGN);
      const int pipe = open(path.c_str(), O_WRONLY | O_CLOEXEC);
      const std::string zeros(4096, '\0');
      ssize_t written = write(pipe, begin.data(), begin.size());
      while (is_endless && written > 0) written = write(pipe, zeros.data(), zeros.size());
      close(pipe);
    });
    absl::StatusOr<HostTensor> tensor = ReadNpy(path);
    writer.join();
    return tensor;
  };
  const std::string three = File(1, Dictionary("<f4", "False", "(3,)"), std::string(12, '\0'));
  EXPECT_TRUE(read_after(three, false).ok());
  EXPECT_THAT(std::string(read_after(three, true).status().message()),
              HasSubstr("more than 12 bytes after the header"));
  EXPECT_THAT(std::string(read_after("", true).status().message()), HasSubstr("magic number"));
  std::remove(path.c_str());
}

TEST(Npy, FilesAreNamedInErrors) {
  EXPECT_THAT(std::string(ReadNpy("/nowhere/x.npy").status().message()), HasSubstr("/nowhere/x.npy"));
  EXPECT_EQ(ReadNpy("/nowhere/x.npy").status().code(), absl::StatusCode::kNotFound);
  const std::string folder = ::testing::TempDir();
  EXPECT_FALSE(ReadNpy(folder).ok());
  EXPECT_FALSE(WriteNpy("/nowhere/x.npy", HostTensor::Scalar(1.0f)).ok());
  const std::string path = absl::StrCat(folder, "/npy_test.npy");
  ASSERT_TRUE(WriteNpy(path, HostTensor::Scalar(1.0f)).ok());
  ASSERT_TRUE(WriteNpy(path, HostTensor::Scalar(2.0f)).ok());
  EXPECT_THAT(*ReadNpy(path)->Values<float>(), ElementsAre(2.0f));
  std::remove(path.c_str());
}

}  // namespace
}  // namespace tensord::client
