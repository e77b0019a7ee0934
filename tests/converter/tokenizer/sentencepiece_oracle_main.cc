// Trains a SentencePiece model and encodes texts with it, to compare our reader and tokenizer with.
// It is a separate program, because the library has protobuf symbols of another version than the
// converter's.
//
// Arguments: training options as NAME=VALUE. stdin: texts, each as its size in bytes, a line feed,
// and the bytes. stdout: the model in the same form, then a line of ids for each text.

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <iostream>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

// Sentences of few words, so that a small vocabulary has long pieces.
std::vector<std::string> Sentences() {
  static constexpr std::string_view kWords[] = {
      "the",     "lama",   "lamas", "Hello", "ab",     "abab",   "don't",       "12",
      "3456",    "日本語", "日本",  "été",   "нет",    "a",      "bb",          "aab",
      "the",     "then",   "there", "😀",    ".",      "over",   "under",       "ground",
      "lapping", "...",    "_",     "Ω",     "\u00A0", "voyage", "underground", "overlap"};
  std::mt19937 random(6);
  std::vector<std::string> sentences;
  for (int i = 0; i < 600; ++i) {
    std::string sentence;
    const size_t num_words = 1 + random() % 12;
    for (size_t word = 0; word < num_words; ++word) {
      sentence += kWords[random() % std::size(kWords)];
      sentence.append(random() % 5 == 0 ? random() % 4 : 1, ' ');
    }
    sentences.push_back(sentence);
  }
  return sentences;
}

}  // namespace

int main(int argc, char** argv) {
  std::unordered_map<std::string, std::string> options;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const size_t equals = option.find('=');
    if (equals == std::string::npos) return 2;
    options[option.substr(0, equals)] = option.substr(equals + 1);
  }
  std::string model;
  auto status = sentencepiece::SentencePieceTrainer::Train(options, Sentences(), &model);
  sentencepiece::SentencePieceProcessor processor;
  if (status.ok()) status = processor.LoadFromSerializedProto(model);
  if (!status.ok()) {
    std::cerr << status.ToString() << '\n';
    return 1;
  }
  std::cout << model.size() << '\n' << model;
  size_t size = 0;
  while (std::cin >> size) {
    std::string text(size, '\0');
    std::cin.get();
    if (!std::cin.read(text.data(), static_cast<std::streamsize>(size))) return 2;
    for (const int id : processor.EncodeAsIds(text)) std::cout << id << ' ';
    std::cout << '\n';
  }
  return 0;
}
