// Saving and loading 2,000 tokens of the KV cache of Llama 3.2 1B, beside reading the same file as
// `cat` does: session_benchmark [--benchmark_filter=…]. The rest of the model is tiny.

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "llm/session_file.h"
#include "llm/tiny_engine.h"
#include "llm/turn.h"
#include "support/temporary_directory.h"

namespace cria {
namespace {

constexpr size_t kNumTokens = 2000;
constexpr size_t kContextTokens = 2048;

support::CheckpointSpec Spec() {
  support::CheckpointSpec spec = support::SpecGqa();
  spec.config.num_hidden_layers = 16;
  spec.config.num_attention_heads = 8;
  spec.config.num_key_value_heads = 8;
  spec.config.head_dim = 64;
  return spec;
}

void Check(const Status& status) {
  if (status) return;
  std::fprintf(stderr, "%s\n", status.error().message().c_str());
  std::exit(1);
}

struct Fixture {
  TinyModelFile model{Spec(), kContextTokens};
  support::TemporaryDirectory folder;
  std::string path = folder / "session";

  std::unique_ptr<TinyEngine> Load(KvType type) const {
    return std::make_unique<TinyEngine>(
        Unwrap(Engine::Load(model.path(), {.context_tokens = kContextTokens, .kv_type = type})));
  }
  void Save(TinyEngine& engine) const {
    Check(SaveSession(path, SessionContent::kText, {}, engine.session(), kNumTokens, engine));
  }
  // An engine whose session is the file's.
  std::unique_ptr<TinyEngine> LoadAndSave(KvType type) const {
    std::unique_ptr<TinyEngine> engine = Load(type);
    Check(Turn(engine->session()).Prefill(std::vector<int32_t>(kNumTokens, 7)));
    Save(*engine);
    return engine;
  }
};

void SaveFile(benchmark::State& state, const Fixture& fixture, KvType type) {
  const auto engine = fixture.LoadAndSave(type);
  for (auto _ : state) fixture.Save(*engine);
  state.SetBytesProcessed(state.iterations() *
                          static_cast<int64_t>(std::filesystem::file_size(fixture.path)));
}

// Each iteration loads into an engine whose KV cache was never touched, as at the start of a
// program.
void LoadFile(benchmark::State& state, const Fixture& fixture, KvType type) {
  fixture.LoadAndSave(type);
  for (auto _ : state) {
    state.PauseTiming();
    const auto engine = fixture.Load(type);
    state.ResumeTiming();
    const auto loaded =
        LoadSession(fixture.path, SessionContent::kText, *engine, engine->session());
    state.PauseTiming();
    Check(loaded.transform([](const LoadedSession&) {}));
    state.ResumeTiming();
  }
}

void Cat(benchmark::State& state, const Fixture& fixture, KvType type) {
  fixture.LoadAndSave(type);
  std::vector<char> buffer(size_t{128} << 10);
  for (auto _ : state) {
    const int descriptor = open(fixture.path.c_str(), O_RDONLY | O_CLOEXEC);
    while (read(descriptor, buffer.data(), buffer.size()) > 0) benchmark::ClobberMemory();
    close(descriptor);
  }
}

}  // namespace
}  // namespace cria

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const cria::Fixture fixture;
  const auto add = [&fixture](const char* name, auto* run, cria::KvType type) {
    benchmark::RegisterBenchmark(
        name + std::string("/") + std::string(cria::KvTypeName(type)),
        [&fixture, run, type](benchmark::State& state) { run(state, fixture, type); })
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  };
  for (const cria::KvType type : {cria::KvType::kF32, cria::KvType::kF16, cria::KvType::kInt8}) {
    add("cat", cria::Cat, type);
    add("load", cria::LoadFile, type);
    add("save", cria::SaveFile, type);
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
