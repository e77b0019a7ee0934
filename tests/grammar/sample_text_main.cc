// Writes texts that JSON Schemas allow, with random choices. A line of the input is a schema, or
// "? TEXT", a text to be compared with the schema before it. For each schema, there is a line
// "text HEX" for each text that ended, with its bytes as hexadecimal digits, or one line "error
// SENTENCE"; for each compared text a line "allowed" or "refused", also after an error.
//
//     cria-sample-text SEED TEXTS < LINES

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/expressions.h"
#include "grammar/json_schema.h"

namespace cria::grammar {
namespace {

// After so many bytes, each one is on a short way to an end.
constexpr size_t kRandomBytes = 60;
constexpr size_t kMaxBytes = 4000;

class Sampler {
 public:
  Sampler(Expressions& expressions, uint64_t seed) : e_(expressions), random_(seed) {}

  std::optional<std::string> Sample(Node start) {
    std::string text;
    Node node = start;
    const size_t random_bytes = random_() % kRandomBytes;
    while (text.size() < kMaxBytes && e_.status()) {
      const bool ends = text.size() >= random_bytes;
      if (e_.MatchesEmpty(node) && (ends || random_() % 4 == 0)) return text;
      const size_t before = text.size();
      node = Step(node, ends, &text);
      // Nothing but the end is left.
      if (text.size() == before) break;
    }
    if (e_.status() && e_.MatchesEmpty(node)) return text;
    return std::nullopt;
  }

 private:
  // Appends a byte that is allowed; the one with the shortest rest if the text shall end.
  Node Step(Node node, bool ends, std::string* text) {
    struct Way {
      size_t byte_class;
      Node next;
    };
    std::vector<Way> ways;
    uint32_t least = Expressions::kNever;
    for (size_t i = 0; i < e_.num_classes(); ++i) {
      const Node next = e_.Derive(node, e_.ByteOfClass(i));
      if (next == Expressions::kNothing) continue;
      const uint32_t rest = e_.Rest(next);
      if (ends && rest < least) ways.clear();
      if (!ends || rest <= least) ways.push_back({i, next});
      least = std::min(least, rest);
    }
    if (ways.empty()) return node;
    const Way way = ways[random_() % ways.size()];
    std::vector<char> bytes;
    for (unsigned byte = 0; byte < 256; ++byte) {
      if (e_.classes()[byte] == way.byte_class) bytes.push_back(static_cast<char>(byte));
    }
    *text += bytes[random_() % bytes.size()];
    return way.next;
  }

  Expressions& e_;
  std::mt19937_64 random_;
};

class Texts {
 public:
  // Begins with another schema.
  void Read(const std::string& schema, uint64_t seed, int count) {
    expressions_.emplace(std::as_writable_bytes(std::span(memory_)));
    const Result<Node> node = ReadJsonSchema(*expressions_, schema);
    const Status status =
        node ? expressions_->Finish(*node) : Status(std::unexpected(node.error()));
    start_ = status ? *node : Expressions::kNothing;
    if (!status) return PrintError(status);
    Sampler sampler(*expressions_, seed);
    for (int i = 0; i < count; ++i) {
      const std::optional<std::string> text = sampler.Sample(start_);
      if (!expressions_->status()) return PrintError(expressions_->status());
      if (text) Print(*text);
    }
  }

  void Compare(std::string_view text) {
    Node node = start_;
    for (const char byte : text) {
      if (node != Expressions::kNothing) node = expressions_->Derive(node, byte);
    }
    std::printf("%s\n", expressions_->MatchesEmpty(node) ? "allowed" : "refused");
  }

 private:
  static void PrintError(const Status& status) {
    std::printf("error %s\n", status.error().message().c_str());
  }
  static void Print(std::string_view text) {
    std::printf("text ");
    for (const char byte : text) std::printf("%02x", static_cast<unsigned>(byte) & 0xFF);
    std::printf("\n");
  }

  std::vector<uint64_t> memory_ = std::vector<uint64_t>(size_t{64} << 17);  // 64 MiB
  std::optional<Expressions> expressions_;
  Node start_ = Expressions::kNothing;
};

}  // namespace
}  // namespace cria::grammar

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: cria-sample-text SEED TEXTS < LINES\n");
    return 2;
  }
  cria::grammar::Texts texts;
  uint64_t seed = std::strtoull(argv[1], nullptr, 10);
  for (std::string line; std::getline(std::cin, line);) {
    if (line.starts_with("? ")) {
      texts.Compare(std::string_view(line).substr(2));
    } else {
      texts.Read(line, seed++, std::atoi(argv[2]));
    }
  }
  return 0;
}
