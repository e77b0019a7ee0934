#include "cli/remedy.h"

#include <gtest/gtest.h>

#include "ops/kv_cache_view.h"

namespace cria::cli {
namespace {

Error WithRemedy(Remedy remedy) { return {ErrorCode::kOutOfMemory, "it failed", remedy}; }

TEST(SentenceTest, WithoutARemedyItIsTheLibrarysOwn) {
  EXPECT_EQ(Sentence(Error(ErrorCode::kIo, "it failed")), "it failed");
}

TEST(SentenceTest, NamesTheFlagThatHelps) {
  EXPECT_EQ(Sentence(WithRemedy(RemedyKind::kChooseThreads)),
            "it failed; choose another number with -t");
  EXPECT_EQ(Sentence(WithRemedy(RemedyKind::kPack)), "it failed; pack the model with cria pack");
}

TEST(SentenceTest, PrintsTheWholeCommandThatConverts) {
  Remedy remedy = RemedyKind::kConvertCheckpoint;
  remedy.checkpoint = "my models/x.gguf";
  EXPECT_EQ(Sentence(WithRemedy(remedy)),
            "it failed; convert it with: cria-convert 'my models/x.gguf' -o x.cria");
}

TEST(SentenceTest, OffersEveryContextThatFits) {
  Remedy remedy = RemedyKind::kFitMemory;
  EXPECT_EQ(Sentence(WithRemedy(remedy)),
            "it failed; no context would fit; --force runs it anyway");
  remedy.fitting_context_tokens[static_cast<size_t>(KvType::kF32)] = 512;
  remedy.fitting_context_tokens[static_cast<size_t>(KvType::kInt8)] = 2048;
  EXPECT_EQ(Sentence(WithRemedy(remedy)),
            "it failed; what would fit: -c 512 --kv f32 or -c 2048 --kv int8; --force runs it "
            "anyway");
}

}  // namespace
}  // namespace cria::cli
