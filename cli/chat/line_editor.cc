#include "cli/chat/line_editor.h"

#include <histedit.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <utility>

#include "cli/chat/line_drawer.h"
#include "cli/chat/signal_watch.h"
#include "cli/chat/typed_history.h"
#include "cli/ends.h"
#include "cli/terminal/terminal.h"

namespace cria::cli {
namespace {

// A paste that is longer is cut: no model's context holds it.
constexpr size_t kMaxPastedCharacters = size_t{16} << 20;

// Between these, a terminal sends what is pasted (xterm's bracketed paste mode).
constexpr wchar_t kPasteBegin[] = L"\033[200~";
constexpr std::wstring_view kPasteEnd = L"\033[201~";
constexpr std::string_view kBracketPastes = "\033[?2004h";
constexpr std::string_view kDoNotBracketPastes = "\033[?2004l";

// Where the line is drawn: standard output may be a file or a pipe for the answers.
std::FILE* Screen() { return IsTerminal(stdout) ? stdout : stderr; }

void WriteToTerminal(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), Screen());
  std::fflush(Screen());
}

// Whether the terminal knows sequences such as kBracketPastes.
bool KnowsSequences() {
  const char* kind = std::getenv("TERM");
  return kind != nullptr && *kind != '\0' && std::string_view(kind) != "dumb";
}

// Where libedit draws, which does not know marks that belong to the character before them, and
// breaks rows where a terminal can insert characters. Only its bells reach the terminal.
std::FILE* OpenBell() {
  const cookie_io_functions_t functions = {
      .read = nullptr,
      .write = [](void*, const char* bytes, size_t count) -> ssize_t {
        constexpr char kBell = '\a';
        if (std::string_view(bytes, count).contains(kBell)) WriteToTerminal({&kBell, 1});
        return static_cast<ssize_t>(count);
      },
      .seek = nullptr,
      .close = nullptr};
  return fopencookie(nullptr, "w", functions);
}

std::wstring Widen(std::string_view text) {
  const std::string copy(text);
  std::wstring wide(copy.size(), L'\0');
  const size_t length = std::mbstowcs(wide.data(), copy.c_str(), wide.size());
  wide.resize(length == static_cast<size_t>(-1) ? 0 : length);
  return wide;
}

std::string Narrow(std::wstring_view text) {
  std::string narrow;
  std::mbstate_t state = {};
  char bytes[MB_LEN_MAX];
  for (const wchar_t character : text) {
    const size_t length = std::wcrtomb(bytes, character, &state);
    if (length != static_cast<size_t>(-1)) narrow.append(bytes, length);
  }
  return narrow;
}

}  // namespace

struct LineEditor::State {
  Completer complete;
  bool knows_sequences = KnowsSequences();
  std::FILE* bell = nullptr;  // Null if libedit draws.
  EditLine* editor = nullptr;
  LineDrawer drawer;
  TypedHistory history;
  std::wstring prompt;

  // While a line is read.
  std::optional<SignalWatch> signals;
  bool was_interrupted = false;
  bool had_text = false;  // When it was interrupted.
  std::mbstate_t decoding = {};
  std::string input;  // Bytes that were read and not yet taken.
  size_t taken = 0;

  static State& Of(EditLine* editor) {
    State* state = nullptr;
    el_wget(editor, EL_CLIENTDATA, &state);
    return *state;
  }

  void Bind(const wchar_t* keys, const wchar_t* function) const {
    el_wset(editor, EL_BIND, keys, function, nullptr);
  }
  void BindTerminalKeys() const;
  ScreenSize Size() const;
  void BeginEditing();
  void EndEditing() const;
  void Draw(size_t cursor);
  void FinishDrawing(std::wstring_view line);
  std::wstring_view Line() const;
  size_t Cursor() const;
  bool HandleSignals();
  int NextByte(char& byte);
  int NextCharacter(wchar_t& character);
  unsigned char InsertPasted();
  unsigned char Complete();
};

// Binds the sequences of xterm's keys. Those without a function beep: otherwise, their last
// characters would be inserted.
void LineEditor::State::BindTerminalKeys() const {
  constexpr const wchar_t* kNothing = L"ed-unassigned";
  wchar_t keys[12];
  for (int number = 1; number <= 34; ++number) {
    std::swprintf(keys, std::size(keys), L"\033[%d~", number);
    const bool is_home = number == 1 || number == 7;
    const bool is_end = number == 4 || number == 8;
    Bind(keys, is_home       ? L"ed-move-to-beg"
               : is_end      ? L"ed-move-to-end"
               : number == 3 ? L"ed-delete-next-char"
                             : kNothing);
  }
  for (const wchar_t key : {L'P', L'Q', L'R', L'S'}) {
    std::swprintf(keys, std::size(keys), L"\033O%lc", key);
    Bind(keys, kNothing);
  }
  Bind(L"\033[Z", kNothing);
  // Arrows, Home and End with Shift (2), Ctrl (5) and others.
  for (int modifier = 2; modifier <= 8; ++modifier) {
    for (const wchar_t key : {L'A', L'B', L'C', L'D', L'F', L'H'}) {
      std::swprintf(keys, std::size(keys), L"\033[1;%d%lc", modifier, key);
      Bind(keys, key == L'C' ? L"em-next-word" : key == L'D' ? L"ed-prev-word" : kNothing);
    }
  }
}

ScreenSize LineEditor::State::Size() const {
  ScreenSize size;
  el_wget(editor, EL_GETTC, "li", &size.rows);
  el_wget(editor, EL_GETTC, "co", &size.columns);
  return size;
}

void LineEditor::State::BeginEditing() {
  drawer.Begin();
  el_resize(editor);
  if (knows_sequences) WriteToTerminal(kBracketPastes);
}

void LineEditor::State::EndEditing() const {
  if (knows_sequences) WriteToTerminal(kDoNotBracketPastes);
}

std::wstring_view LineEditor::State::Line() const {
  const LineInfoW* line = el_wline(editor);
  return {line->buffer, line->lastchar};
}

size_t LineEditor::State::Cursor() const {
  const LineInfoW* line = el_wline(editor);
  return static_cast<size_t>(line->cursor - line->buffer);
}

// Shows the cursor before this character of the line.
void LineEditor::State::Draw(size_t cursor) {
  if (bell == nullptr) return;
  const std::wstring text = prompt + std::wstring(Line());
  const std::wstring keys = drawer.Draw(text, prompt.size() + cursor, Size());
  if (!keys.empty()) WriteToTerminal(Narrow(keys));
}

// Draws the whole line, and goes to the row after it.
void LineEditor::State::FinishDrawing(std::wstring_view line) {
  if (bell == nullptr) return WriteToTerminal("\n");
  WriteToTerminal(Narrow(drawer.Finish(prompt + std::wstring(line), Size())));
}

// Returns false if Ctrl-C ends the line.
bool LineEditor::State::HandleSignals() {
  if (signals->Take(SIGINT)) {
    had_text = !Line().empty();
    was_interrupted = true;
    constexpr const wchar_t* kShown = L"^C";
    if (bell == nullptr) WriteToTerminal(Narrow(kShown));
    FinishDrawing(std::wstring(Line()) + kShown);
    return false;
  }
  if (signals->Take(SIGTSTP)) {
    Draw(Line().size());
    el_wset(editor, EL_PREP_TERM, 0);
    EndEditing();
    signals->Suspend();
    signals->Take(SIGCONT);
    el_wset(editor, EL_PREP_TERM, 1);
    BeginEditing();
    WriteToTerminal("\n");
    el_wset(editor, EL_REFRESH);
  }
  if (signals->Take(SIGCONT)) {
    BeginEditing();
    el_wset(editor, EL_REFRESH);
  }
  if (signals->Take(SIGWINCH)) {
    el_resize(editor);
    WriteToTerminal(Narrow(drawer.Erase(Size().columns)));
    el_wset(editor, EL_REFRESH);
  }
  return true;
}

// Returns 1, 0 at the end of the input, or -1 if Ctrl-C or an error ends the line.
int LineEditor::State::NextByte(char& byte) {
  while (taken == input.size()) {
    Draw(Cursor());
    if (!signals->WaitForInput()) {
      if (!HandleSignals()) return -1;
      continue;
    }
    input.resize(4096);
    const ssize_t count = read(STDIN_FILENO, input.data(), input.size());
    input.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
    taken = 0;
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return static_cast<int>(count);
  }
  byte = input[taken++];
  return 1;
}

int LineEditor::State::NextCharacter(wchar_t& character) {
  for (;;) {
    char byte = 0;
    if (const int result = NextByte(byte); result != 1) return result;
    const size_t length = std::mbrtowc(&character, &byte, 1, &decoding);
    if (length == static_cast<size_t>(-1)) {
      decoding = {};  // A byte that is no part of a character is left out.
    } else if (length != static_cast<size_t>(-2)) {
      return 1;
    }
  }
}

unsigned char LineEditor::State::InsertPasted() {
  std::wstring text;
  wchar_t character = 0;
  while (!text.ends_with(kPasteEnd)) {
    if (NextCharacter(character) != 1) return CC_EOF;
    // Line ends come as from the Enter key.
    if (character == L'\n' && text.ends_with(L'\r')) text.pop_back();
    if (text.size() < kMaxPastedCharacters || character == kPasteEnd.back()) text += character;
  }
  text.resize(text.size() - kPasteEnd.size());
  std::ranges::replace(text, L'\r', L'\n');
  std::erase_if(text, [](wchar_t c) { return (c < L' ' && c != L'\n' && c != L'\t') || c == 127; });
  el_winsertstr(editor, text.c_str());
  return CC_REFRESH;
}

unsigned char LineEditor::State::Complete() {
  const std::string typed = Narrow(Line().substr(0, Cursor()));
  std::vector<std::string> words = complete(typed);
  if (words.empty()) return CC_REFRESH_BEEP;
  // What all words begin with.
  std::string common = words.front();
  for (const std::string& word : words) {
    common.resize(static_cast<size_t>(std::ranges::mismatch(common, word).in1 - common.begin()));
  }
  if (words.size() == 1) common += ' ';
  if (common.size() > typed.size()) {
    el_winsertstr(editor, Widen(std::string_view(common).substr(typed.size())).c_str());
    return CC_REFRESH;
  }
  FinishDrawing(Line());
  std::string list;
  for (const std::string& word : words) list += word + "  ";
  WriteToTerminal(list + '\n');
  el_wset(editor, EL_REFRESH);
  return CC_NORM;
}

LineEditor::LineEditor(Completer complete) : state_(std::make_unique<State>()) {
  state_->complete = std::move(complete);
  RestoreTerminalAtEnd(state_->knows_sequences ? kDoNotBracketPastes.data() : "");
  if (state_->knows_sequences) state_->bell = OpenBell();
  EditLine* const editor =
      el_init_fd("cria", stdin, state_->bell != nullptr ? state_->bell : Screen(), stderr,
                 STDIN_FILENO, fileno(Screen()), STDERR_FILENO);
  state_->editor = editor;
  el_wset(editor, EL_CLIENTDATA, state_.get());
  el_wset(
      editor, EL_PROMPT, +[](EditLine* line) -> wchar_t* { return State::Of(line).prompt.data(); });
  el_wset(editor, EL_EDITOR, L"emacs");
  el_wset(editor, EL_SIGNAL, 0);
  // Otherwise, Ctrl-C would drop what is written right after it but not shown yet.
  el_wset(editor, EL_SETTY, L"-d", L"+noflsh", nullptr);
  // While an answer is written, keys are neither shown in it nor lost: the next line has them.
  el_wset(editor, EL_SETTY, L"-x", L"-echo", L"-icanon", L"+noflsh", nullptr);
  el_wset(editor, EL_HIST, history_w, state_->history.get());
  el_wset(
      editor, EL_GETCFN, +[](EditLine* line, wchar_t* character) -> int {
        return State::Of(line).NextCharacter(*character);
      });
  el_wset(
      editor, EL_ADDFN, L"cria-paste", L"Insert what is pasted",
      +[](EditLine* line, wint_t) -> unsigned char { return State::Of(line).InsertPasted(); });
  el_wset(
      editor, EL_ADDFN, L"cria-complete", L"Complete a command",
      +[](EditLine* line, wint_t) -> unsigned char { return State::Of(line).Complete(); });
  el_wset(
      editor, EL_ADDFN, L"cria-new-line", L"Insert a line feed",
      +[](EditLine* line, wint_t) -> unsigned char {
        el_winsertstr(line, L"\n");
        return CC_REFRESH;
      });
  el_wset(
      editor, EL_ADDFN, L"cria-clear", L"Clear the screen",
      +[](EditLine* line, wint_t) -> unsigned char {
        WriteToTerminal("\033[H\033[2J");
        State::Of(line).drawer.Begin();
        return CC_REFRESH;
      });
  state_->BindTerminalKeys();
  if (state_->bell != nullptr) state_->Bind(L"^L", L"cria-clear");
  state_->Bind(kPasteBegin, L"cria-paste");
  state_->Bind(L"\t", L"cria-complete");
  state_->Bind(L"\033\r", L"cria-new-line");
  state_->Bind(L"\033\n", L"cria-new-line");
  state_->Bind(L"^R", L"em-inc-search-prev");
}

LineEditor::~LineEditor() {
  RestoreTerminalAtEnd(nullptr);
  el_end(state_->editor);
  if (state_->bell != nullptr) std::fclose(state_->bell);
}

Status LineEditor::KeepHistory(const std::string& path) { return state_->history.KeepIn(path); }

void LineEditor::AddToHistory(const std::string& entry) { state_->history.Add(Widen(entry)); }

LineEditor::Line LineEditor::Read(const std::string& prompt) {
  State& state = *state_;
  state.prompt = Widen(prompt);
  state.was_interrupted = false;
  state.decoding = {};
  state.signals.emplace();
  state.BeginEditing();
  int length = 0;
  const wchar_t* text = el_wgets(state.editor, &length);
  state.EndEditing();
  state.signals.reset();
  if (state.was_interrupted) {
    return {.end = state.had_text ? End::kInterrupt : End::kInterruptOnEmpty, .text = ""};
  }
  if (text == nullptr || length <= 0) {
    state.FinishDrawing(L"");
    return {};
  }
  std::wstring_view line(text, static_cast<size_t>(length));
  if (line.ends_with(L'\n')) line.remove_suffix(1);
  if (state.bell != nullptr) state.FinishDrawing(line);
  return {.end = End::kEnter, .text = Narrow(line)};
}

}  // namespace cria::cli
