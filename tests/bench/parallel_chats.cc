// How fast several threads complete texts with one model, and how long a token of theirs waits:
// parallel_chats MODEL NUM_THREADS TOKENS [prompt]. With `prompt`, one more thread reads a prompt
// of some hundred tokens meanwhile. The weights are packed into memory.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cria/cria.h"

namespace {

using Clock = std::chrono::steady_clock;

double Milliseconds(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

void Check(cria_status status) {
  if (status == CRIA_OK) return;
  std::fprintf(stderr, "%s\n", cria_error_message());
  std::exit(1);
}

// The times between the tokens of one text.
struct Watch {
  std::vector<double> gaps_ms;
  Clock::time_point last = {};

  static int Take(const cria_token*, void* data) {
    auto& watch = *static_cast<Watch*>(data);
    const auto now = Clock::now();
    if (watch.last != Clock::time_point()) {
      watch.gaps_ms.push_back(Milliseconds(now - watch.last));
    }
    watch.last = now;
    return 0;
  }
};

cria_result Complete(cria_model* model, const std::string& prompt, uint32_t num_tokens,
                     Watch& watch) {
  cria_generation_options options = CRIA_GENERATION_OPTIONS_INIT;
  options.temperature = 0.0f;
  options.max_tokens = num_tokens;
  cria_callbacks callbacks = CRIA_CALLBACKS_INIT;
  callbacks.on_token = Watch::Take;
  callbacks.data = &watch;
  cria_result result = CRIA_RESULT_INIT;
  Check(cria_complete_text(model, prompt.data(), prompt.size(), &options, &callbacks, &result));
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    std::fprintf(stderr, "usage: %s MODEL NUM_THREADS TOKENS [prompt]\n", argv[0]);
    return 2;
  }
  const auto num_threads = static_cast<size_t>(std::atoi(argv[2]));
  const auto num_tokens = static_cast<uint32_t>(std::atoi(argv[3]));
  const bool with_prompt = argc == 5;
  cria_model_options options = CRIA_MODEL_OPTIONS_INIT;
  options.path = argv[1];
  options.kv_type = CRIA_KV_INT8;
  options.num_sequences = static_cast<uint32_t>(num_threads + (with_prompt ? 1 : 0));
  cria_model* model = nullptr;
  Check(cria_model_load(&options, &model));
  Watch warming_up;
  Complete(model, "Hello", 3, warming_up);

  std::vector<Watch> watches(num_threads + 1);
  const auto begin = Clock::now();
  double seconds = 0.0;
  std::atomic<size_t> generated = 0;
  {
    std::vector<std::jthread> threads;
    if (with_prompt) {
      threads.emplace_back([&] {
        std::this_thread::sleep_for(std::chrono::seconds(1));
        std::string prompt;
        for (int i = 0; i < 150; ++i) prompt += "word " + std::to_string(i) + " ";
        const auto start = Clock::now();
        const cria_result result = Complete(model, prompt, 1, watches.back());
        std::printf("a prompt of %u tokens took %.0f ms\n", result.prompt_tokens,
                    Milliseconds(Clock::now() - start));
      });
    }
    std::vector<std::jthread> generating;
    generating.reserve(num_threads);
    for (size_t i = 0; i < num_threads; ++i) {
      generating.emplace_back([&, i] {
        const std::string prompt = "Text " + std::to_string(i);
        generated += Complete(model, prompt, num_tokens, watches[i]).generated_tokens;
      });
    }
    for (std::jthread& thread : generating) thread.join();
    seconds = Milliseconds(Clock::now() - begin) / 1000.0;
  }
  std::vector<double> gaps;
  for (const Watch& watch : watches) {
    gaps.insert(gaps.end(), watch.gaps_ms.begin(), watch.gaps_ms.end());
  }
  std::ranges::sort(gaps);
  if (gaps.empty()) return 0;
  const double median = gaps[gaps.size() / 2];
  std::printf("%zu threads: %.2f tokens/s, a token after %.1f ms, at most %.1f ms (%.2f times)\n",
              num_threads, static_cast<double>(generated) / seconds, median, gaps.back(),
              gaps.back() / median);
  cria_model_free(model);
  return 0;
}
