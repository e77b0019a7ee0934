#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "converter/convert.h"
#include "cria/error.h"
#include "llm/sampler.h"
#include "llm/session.h"
#include "support/allocation_watch.h"

namespace cria {

// Prompts longer than two chunks; attention over more tokens than one thread takes at once (256);
// soon full.
constexpr size_t kContext = 272;
constexpr size_t kChunk = 128;
constexpr size_t kVocabulary = 1024;

struct SchemeCase {
  const char* name;
  ConvertOptions conversion;
};
const std::vector<SchemeCase>& SchemeCases();

// The path of a model of a scheme, which is converted once for all tests. It has biases, norms of
// heads, and layers of two kinds.
std::string ModelPath(const SchemeCase& scheme);

std::vector<int32_t> SomeTokens(size_t count, size_t first = 0);

// Runs `work`; the test fails if it allocates or fails.
template <typename Work>
void ExpectQuiet(const char* phase, const Work& work) {
  support::AllocationWatch watch(phase);
  const Status done = work();
  const std::string report = watch.Finish();
  EXPECT_EQ(report, "");
  EXPECT_TRUE(done) << phase << ": " << done.error().message();
}

// Reads a prompt and generates `count` tokens, as one request.
Status Answer(Session& session, Sampler& sampler, std::span<const int32_t> prompt, size_t count);

}  // namespace cria
