// Speed of tokenizers: tokenizer_benchmark CHECKPOINT… [--benchmark_filter=…], each a folder or
// file that cria-convert takes; without weights is enough. A megabyte of each kind of text, of
// which most are runs that something in a tokenizer could take quadratic time for.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converter/open_checkpoint.h"
#include "converter/tokenizer/tokenizer_import.h"
#include "text/nfc.h"
#include "text/tokenizer.h"

namespace cria {
namespace {

constexpr size_t kTextBytes = size_t{1} << 20;

std::string Repeat(std::string_view part) {
  std::string text;
  while (text.size() + part.size() <= kTextBytes) text += part;
  return text;
}

std::string RandomLetters() {
  std::mt19937 random(1);
  std::string text(kTextBytes, ' ');
  for (char& letter : text) letter = static_cast<char>('a' + random() % 26);
  return text;
}

// Different ideographs without a space.
std::string RandomHan() {
  std::mt19937 random(2);
  std::string text;
  while (text.size() + 3 <= kTextBytes) {
    const auto code_point = static_cast<uint32_t>(0x4E00 + random() % 0x5000);
    text += static_cast<char>(0xE0 | (code_point >> 12));
    text += static_cast<char>(0x80 | ((code_point >> 6) & 0x3F));
    text += static_cast<char>(0x80 | (code_point & 0x3F));
  }
  return text;
}

struct Text {
  std::string name;
  std::string bytes;
};

std::vector<Text> Texts() {
  return {
      {"english", Repeat("The cria, which is a baby llama, isn't older than 12 months; by then it "
                         "weighs some 60 kg.\nIts mother hums to it. ")},
      {"russian", Repeat("Съешь же ещё этих мягких французских булок, да выпей чаю. ")},
      {"han", RandomHan()},
      {"thai", Repeat("เป็นมนุษย์สุดประเสริฐเลิศคุณค่า")},
      {"decomposed", Repeat("Voici un cafe\u0301 a\u0300 la cre\u0300me, monsieur. ")},
      {"jamo", Repeat("\u1112\u1161\u11AB\u1100\u1173\u11AF")},
      {"marks", Repeat("\u0301\u0323")},
      {"a", Repeat("a")},
      {"letters", RandomLetters()},
      {"spaces", Repeat(" ")},
      {"spaces_1", std::string(kTextBytes - 1, ' ') + '1'},
      {"lines", Repeat("\n")},
      {"digits", Repeat("0123456789")},
      {"bytes", Repeat("\xFF"
                       "a\xC3")},
  };
}

struct NamedTokenizer {
  OwnedVocabulary vocabulary;
  std::optional<Tokenizer> tokenizer;
};

Result<std::unique_ptr<NamedTokenizer>> Open(const char* path) {
  CRIA_ASSIGN_OR_RETURN(CheckpointVocabulary opened, OpenVocabulary(path));
  CRIA_ASSIGN_OR_RETURN(ImportedTokenizer imported,
                        ImportTokenizer(std::move(opened.tokenizer), std::nullopt));
  auto named = std::make_unique<NamedTokenizer>();
  named->vocabulary = std::move(imported.vocabulary);
  CRIA_ASSIGN_OR_RETURN(named->tokenizer, Tokenizer::Create(named->vocabulary.view()));
  return named;
}

void Encode(benchmark::State& state, const Tokenizer& tokenizer, const std::string& text) {
  size_t num_tokens = 0;
  for (auto _ : state) {
    const auto ids = tokenizer.Encode(text);
    if (!ids) return state.SkipWithError(ids.error().message().c_str());
    num_tokens = ids->size();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
  state.counters["tokens"] = static_cast<double>(num_tokens);
}

void Normalize(benchmark::State& state, const std::string& text) {
  for (auto _ : state) benchmark::DoNotOptimize(NormalizeToNfc(text));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
}

int Main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const std::vector<Text> texts = Texts();
  std::vector<std::unique_ptr<NamedTokenizer>> tokenizers;
  for (int i = 1; i < argc; ++i) {
    auto opened = Open(argv[i]);
    if (!opened) {
      std::fprintf(stderr, "%s\n", opened.error().message().c_str());
      return 1;
    }
    tokenizers.push_back(*std::move(opened));
    const std::string_view path = argv[i];
    const std::string name(path.substr(path.rfind('/') + 1));
    for (const Text& text : texts) {
      benchmark::RegisterBenchmark((name + "/" + text.name).c_str(), Encode,
                                   std::cref(*tokenizers.back()->tokenizer), std::cref(text.bytes))
          ->Unit(benchmark::kMillisecond);
    }
  }
  for (const Text& text : texts) {
    benchmark::RegisterBenchmark(("NormalizeToNfc/" + text.name).c_str(), Normalize,
                                 std::cref(text.bytes))
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace cria

int main(int argc, char** argv) { return cria::Main(argc, argv); }
