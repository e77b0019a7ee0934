#include "llm/stored_prompts.h"

#include "llm/leaving_text.h"
#include "llm/scheduler.h"

namespace cria {

size_t StoredPrompts::Read(Seat& seat, std::span<const int32_t> tokens) {
  SequenceSlots::Holder& holder = seat.holder_;
  Status read;
  scheduler_.UseSlots(
      [&](SequenceSlots& slots) { read = slots.Restore(holder, tokens.size(), /*goes_on=*/true); });
  if (read) read = store_.Read(tokens, seat.sequence());
  size_t num_read = 0;
  scheduler_.UseSlots([&](SequenceSlots& slots) {
    // Errors are ignored: without a checkpoint, fewer texts can begin here, and making a sequence
    // empty does not fail.
    static_cast<void>(read ? slots.AppendRestored(holder, tokens, /*is_exact=*/true)
                           : slots.Restore(holder, 0, /*goes_on=*/true));
    num_read = SequenceSlots::Tokens(holder).size();
    num_tokens_ += num_read;
  });
  return num_read;
}

void StoredPrompts::WriteAll(std::chrono::steady_clock::time_point end) {
  bool has_text = true;
  while (has_text && std::chrono::steady_clock::now() < end) {
    has_text = WriteNext(/*chooses_longest=*/true);
  }
}

bool StoredPrompts::WriteNext(bool chooses_longest) {
  LeavingText::Text text;
  scheduler_.UseSlots([&](SequenceSlots& slots) {
    if (chooses_longest) slots.leaving().ChooseLongest();
    text = slots.leaving().Begin();
  });
  if (text.tokens.empty()) return false;
  store_.Write(text.tokens, text.sequence);
  scheduler_.UseSlots([](SequenceSlots& slots) { slots.leaving().End(); });
  return true;
}

}  // namespace cria
