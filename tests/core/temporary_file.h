#pragma once

#include <unistd.h>

#include <cstdio>
#include <span>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "core/format.h"

namespace cria {

// A file for one test, which the destructor removes.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::span<const std::byte> contents = {}) {
    static int count = 0;
    path_ = Format("{}cria_{}_{}", testing::TempDir(), getpid(), count++);
    Write(contents);
  }
  explicit TemporaryFile(std::string_view contents)
      : TemporaryFile(std::as_bytes(std::span(contents))) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { std::remove(path_.c_str()); }

  const std::string& path() const { return path_; }

  // Replaces everything.
  void Write(std::span<const std::byte> contents) const {
    std::FILE* file = std::fopen(path_.c_str(), "wb");
    ASSERT_NE(file, nullptr) << path_;
    if (!contents.empty()) {
      EXPECT_EQ(std::fwrite(contents.data(), 1, contents.size(), file), contents.size());
    }
    ASSERT_EQ(std::fclose(file), 0);
  }

  void Truncate(size_t bytes) const {
    ASSERT_EQ(truncate(path_.c_str(), static_cast<off_t>(bytes)), 0);
  }

 private:
  std::string path_;
};

}  // namespace cria
