#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "decode/test_kv_pages.h"

namespace cria {

inline constexpr size_t kPage = kKvPageTokens;

inline SequenceId Open(TestKvPages& pages) { return pages->Open().value(); }

// Opens a sequence of `tokens`.
inline SequenceId OpenWith(TestKvPages& pages, size_t tokens) {
  const SequenceId sequence = Open(pages);
  EXPECT_TRUE(pages->Extend(sequence, tokens));
  return sequence;
}

// The pages that a sequence holds in the layers of a group.
inline std::vector<uint32_t> TableOf(const TestKvPages& pages, SequenceId sequence,
                                     size_t group = 0) {
  const auto table = pages->Table(sequence, group).pages;
  const size_t first_block = pages->group(group).first_row(sequence) / kPage;
  return {table.begin() + static_cast<ptrdiff_t>(first_block), table.end()};
}

inline std::vector<PageMove> MovesOf(const TestKvPages& pages, const Status& done) {
  EXPECT_TRUE(done) << done.error().message();
  return {pages->moves().begin(), pages->moves().end()};
}

template <typename T>
void ExpectRefused(const Result<T>& result, ErrorCode code, const char* words) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), code);
  EXPECT_THAT(result.error().message(), testing::HasSubstr(words));
}

}  // namespace cria
