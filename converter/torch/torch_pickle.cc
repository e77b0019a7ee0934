#include "converter/torch/torch_pickle.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <variant>

#include "core/format.h"
#include "core/quotable.h"

namespace cria {
namespace {

constexpr size_t kMaxPickleBytes = 4 << 20;
// About twenty values are made for a tensor.
constexpr size_t kMaxValues = size_t{1} << 18;
// torch uses numbers as keys. Every tensor has a copy of its storage's key.
constexpr size_t kMaxStorageKeyBytes = 64;
constexpr size_t kMaxDimensions = 8;
constexpr uint64_t kMaxElements = uint64_t{1} << 60;

// Values refer to each other by index, so that no function is recursive, even if they are nested
// deeply.
using Index = uint32_t;

enum class Global : uint8_t {
  kRebuildTensor,
  kRebuildParameter,
  kOrderedDict,
  kFloatStorage,
  kHalfStorage,
  kBFloat16Storage,
};
struct GlobalName {
  std::string_view name;
  Global global;
};
constexpr std::array kGlobals = {
    GlobalName{"torch._utils._rebuild_tensor_v2", Global::kRebuildTensor},
    GlobalName{"torch._utils._rebuild_parameter", Global::kRebuildParameter},
    GlobalName{"collections.OrderedDict", Global::kOrderedDict},
    GlobalName{"torch.FloatStorage", Global::kFloatStorage},
    GlobalName{"torch.HalfStorage", Global::kHalfStorage},
    GlobalName{"torch.BFloat16Storage", Global::kBFloat16Storage},
};

std::optional<ElementType> ElementTypeOf(Global global) {
  switch (global) {
    case Global::kFloatStorage:
      return ElementType::kF32;
    case Global::kHalfStorage:
      return ElementType::kF16;
    case Global::kBFloat16Storage:
      return ElementType::kBf16;
    default:
      return std::nullopt;
  }
}

struct None {};
struct Mark {};
struct Tuple {
  std::vector<Index> items;
};
struct Dict {
  std::vector<std::pair<Index, Index>> items;
};
struct Storage {
  ElementType type;
  std::string key;
  uint64_t elements;
};
using Value = std::variant<None, Mark, bool, int64_t, std::string, Tuple, Dict, Global, Storage,
                           PickledTensor>;

class Machine {
 public:
  Machine(std::string_view pickle, std::string_view where) : rest_(pickle), where_(where) {}

  // Reads the pickle to its end and returns the table.
  Result<std::vector<PickledTensor>> Run() {
    while (true) {
      CRIA_ASSIGN_OR_RETURN(const auto opcode, Take<uint8_t>());
      if (opcode == '.') return Finish();
      CRIA_RETURN_IF_ERROR(Step(opcode));
    }
  }

 private:
  std::unexpected<Error> Bad(std::string_view what,
                             ErrorCode code = ErrorCode::kInvalidFile) const {
    return Fail(code, Format("{}: its table of tensors {}", where_, what));
  }
  std::unexpected<Error> Damaged() const { return Bad("is damaged or not torch.save's"); }

  template <typename T>
  Result<T> Take() {
    T value;
    if (rest_.size() < sizeof value) return Damaged();
    rest_.copy(reinterpret_cast<char*>(&value), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  Result<std::string_view> TakeBytes(size_t bytes) {
    if (rest_.size() < bytes) return Damaged();
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  Result<std::string_view> TakeLine() {
    const size_t end = rest_.find('\n');
    if (end == std::string_view::npos) return Damaged();
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return line;
  }

  Status Push(Value value) {
    if (values_.size() == kMaxValues) {
      return Bad(Format("creates more than {} values", kMaxValues), ErrorCode::kUnsupported);
    }
    stack_.push_back(static_cast<Index>(values_.size()));
    values_.push_back(std::move(value));
    return {};
  }
  Result<Index> Pop() {
    if (stack_.empty()) return Damaged();
    const Index index = stack_.back();
    stack_.pop_back();
    return index;
  }
  template <typename T>
  Result<const T*> Get(Index index) const {
    if (const T* value = std::get_if<T>(&values_[index])) return value;
    return Damaged();
  }
  template <typename T>
  Result<const T*> PopA() {
    CRIA_ASSIGN_OR_RETURN(const Index index, Pop());
    return Get<T>(index);
  }
  // Removes and returns all values above the last mark, in order; also removes the mark.
  Result<std::vector<Index>> PopToMark() {
    for (size_t i = stack_.size(); i-- > 0;) {
      if (!std::holds_alternative<Mark>(values_[stack_[i]])) continue;
      std::vector<Index> items(stack_.begin() + static_cast<std::ptrdiff_t>(i) + 1, stack_.end());
      stack_.resize(i);
      return items;
    }
    return Damaged();
  }
  Status PushTupleToMark() {
    CRIA_ASSIGN_OR_RETURN(std::vector<Index> items, PopToMark());
    return Push(Tuple{std::move(items)});
  }

  Status PushTuple(size_t size) {
    if (stack_.size() < size) return Damaged();
    Tuple tuple{{stack_.end() - static_cast<std::ptrdiff_t>(size), stack_.end()}};
    stack_.resize(stack_.size() - size);
    return Push(std::move(tuple));
  }

  template <typename T>
  Status PushInteger() {
    CRIA_ASSIGN_OR_RETURN(const T value, Take<T>());
    return Push(int64_t{value});
  }

  template <typename T>
  Status Memoize() {
    CRIA_ASSIGN_OR_RETURN(const T key, Take<T>());
    if (stack_.empty()) return Damaged();
    memo_[key] = stack_.back();
    return {};
  }
  template <typename T>
  Status Recall() {
    CRIA_ASSIGN_OR_RETURN(const T key, Take<T>());
    const auto found = memo_.find(key);
    if (found == memo_.end()) return Damaged();
    stack_.push_back(found->second);
    return {};
  }

  // Opcodes are documented in Python's pickletools.
  Status Step(uint8_t opcode) {
    switch (opcode) {
      case 0x80:
        return CheckProtocol();
      case '(':
        return Push(Mark());
      case 'N':
        return Push(None());
      case 0x88:
        return Push(true);
      case 0x89:
        return Push(false);
      case 'J':
        return PushInteger<int32_t>();
      case 'K':
        return PushInteger<uint8_t>();
      case 'M':
        return PushInteger<uint16_t>();
      case 0x8a:
        return PushLong();
      case 'X':
        return PushText();
      case ')':
        return PushTuple(0);
      case 0x85:
        return PushTuple(1);
      case 0x86:
        return PushTuple(2);
      case 0x87:
        return PushTuple(3);
      case 't':
        return PushTupleToMark();
      case '}':
        return Push(Dict());
      case 's':
        return SetItem();
      case 'u':
        return SetItems();
      case 'q':
        return Memoize<uint8_t>();
      case 'r':
        return Memoize<uint32_t>();
      case 'h':
        return Recall<uint8_t>();
      case 'j':
        return Recall<uint32_t>();
      case 'c':
        return PushGlobal();
      case 'Q':
        return PushStorage();
      case 'R':
        return Call();
      case 'b':
        return Build();
      default:
        return Bad(Format("uses the pickle opcode 0x{:02x}, which tensors do not need; it was "
                          "not run",
                          opcode),
                   ErrorCode::kUnsupported);
    }
  }

  Status CheckProtocol() {
    CRIA_ASSIGN_OR_RETURN(const auto protocol, Take<uint8_t>());
    if (protocol == 2) return {};
    return Bad(Format("is a pickle of protocol {}; torch.save writes 2", protocol),
               ErrorCode::kUnsupported);
  }

  Status PushLong() {
    CRIA_ASSIGN_OR_RETURN(const auto bytes, Take<uint8_t>());
    if (bytes > sizeof(int64_t)) return Bad("has a number of more than 64 bits");
    CRIA_ASSIGN_OR_RETURN(const std::string_view digits, TakeBytes(bytes));
    int64_t value = bytes != 0 && static_cast<int8_t>(digits.back()) < 0 ? -1 : 0;
    std::memcpy(&value, digits.data(), digits.size());
    return Push(value);
  }

  Status PushText() {
    CRIA_ASSIGN_OR_RETURN(const auto bytes, Take<uint32_t>());
    CRIA_ASSIGN_OR_RETURN(const std::string_view text, TakeBytes(bytes));
    return Push(std::string(text));
  }

  // Adds keys and values, which alternate, to the dictionary below them on the stack.
  Status AddItems(std::span<const Index> items) {
    if (stack_.empty() || items.size() % 2 != 0) return Damaged();
    auto* dict = std::get_if<Dict>(&values_[stack_.back()]);
    if (dict == nullptr) return Damaged();
    for (size_t i = 0; i < items.size(); i += 2) dict->items.emplace_back(items[i], items[i + 1]);
    return {};
  }
  Status SetItem() {
    CRIA_ASSIGN_OR_RETURN(const Index value, Pop());
    CRIA_ASSIGN_OR_RETURN(const Index key, Pop());
    return AddItems(std::array{key, value});
  }
  Status SetItems() {
    CRIA_ASSIGN_OR_RETURN(const std::vector<Index> items, PopToMark());
    return AddItems(items);
  }

  Status PushGlobal() {
    CRIA_ASSIGN_OR_RETURN(const std::string_view module, TakeLine());
    CRIA_ASSIGN_OR_RETURN(const std::string_view member, TakeLine());
    const std::string name = Format("{}.{}", module, member);
    const auto* found = std::ranges::find(kGlobals, name, &GlobalName::name);
    if (found != kGlobals.end()) return Push(found->global);
    return Bad(Format("names {}, which tensors of f32, f16 and bf16 do not need; it was not "
                      "run",
                      Quotable(name)),
               ErrorCode::kUnsupported);
  }

  // ("storage", type, key, device, elements)
  Status PushStorage() {
    CRIA_ASSIGN_OR_RETURN(const Tuple* id, PopA<Tuple>());
    if (id->items.size() != 5) return Damaged();
    CRIA_ASSIGN_OR_RETURN(const Global* global, Get<Global>(id->items[1]));
    CRIA_ASSIGN_OR_RETURN(const std::string* key, Get<std::string>(id->items[2]));
    CRIA_ASSIGN_OR_RETURN(const int64_t* elements, Get<int64_t>(id->items[4]));
    const auto type = ElementTypeOf(*global);
    if (!type || *elements < 0 || key->size() > kMaxStorageKeyBytes) return Damaged();
    return Push(Storage{*type, *key, static_cast<uint64_t>(*elements)});
  }

  Status Call() {
    CRIA_ASSIGN_OR_RETURN(const Tuple* arguments, PopA<Tuple>());
    CRIA_ASSIGN_OR_RETURN(const Global* function, PopA<Global>());
    const std::vector<Index>& items = arguments->items;
    if (*function == Global::kOrderedDict && items.empty()) return Push(Dict());
    if (*function == Global::kRebuildTensor && items.size() >= 4) return RebuildTensor(items);
    if (*function == Global::kRebuildParameter && !items.empty()) {
      CRIA_RETURN_IF_ERROR(Get<PickledTensor>(items[0]));
      stack_.push_back(items[0]);
      return {};
    }
    return Damaged();
  }

  Result<std::vector<uint64_t>> Sizes(Index index) const {
    CRIA_ASSIGN_OR_RETURN(const Tuple* tuple, Get<Tuple>(index));
    if (tuple->items.size() > kMaxDimensions) return Damaged();
    std::vector<uint64_t> sizes;
    for (const Index item : tuple->items) {
      CRIA_ASSIGN_OR_RETURN(const int64_t* size, Get<int64_t>(item));
      if (*size < 0) return Damaged();
      sizes.push_back(static_cast<uint64_t>(*size));
    }
    return sizes;
  }

  // (storage, first element, sizes, strides, and arguments for training only)
  Status RebuildTensor(const std::vector<Index>& items) {
    CRIA_ASSIGN_OR_RETURN(const Storage* storage, Get<Storage>(items[0]));
    CRIA_ASSIGN_OR_RETURN(const int64_t* first, Get<int64_t>(items[1]));
    CRIA_ASSIGN_OR_RETURN(std::vector<uint64_t> shape, Sizes(items[2]));
    CRIA_ASSIGN_OR_RETURN(const std::vector<uint64_t> strides, Sizes(items[3]));
    if (strides.size() != shape.size() || *first < 0) return Damaged();
    uint64_t elements = 1;
    for (size_t i = shape.size(); i-- > 0;) {
      // The stride of a dimension of size 1 has no meaning.
      if (shape[i] > 1 && strides[i] != elements) {
        return Bad("has a tensor whose elements are not stored row by row",
                   ErrorCode::kUnsupported);
      }
      if (shape[i] == 0 || elements > kMaxElements / shape[i]) return Damaged();
      elements *= shape[i];
    }
    const auto offset = static_cast<uint64_t>(*first);
    if (offset > storage->elements || elements > storage->elements - offset) return Damaged();
    return Push(PickledTensor{.name = {},
                              .type = storage->type,
                              .shape = std::move(shape),
                              .storage = storage->key,
                              .storage_elements = storage->elements,
                              .first_element = offset});
  }

  // Sets attributes of a dictionary: torch's additional data of a model's state, which are ignored.
  Status Build() {
    CRIA_RETURN_IF_ERROR(Pop());
    if (stack_.empty()) return Damaged();
    return Get<Dict>(stack_.back()).transform([](const Dict*) {});
  }

  Result<std::vector<PickledTensor>> Finish() {
    CRIA_ASSIGN_OR_RETURN(const Dict* table, PopA<Dict>());
    std::vector<PickledTensor> tensors;
    std::set<std::string_view> names;
    for (const auto& [key, value] : table->items) {
      CRIA_ASSIGN_OR_RETURN(const std::string* name, Get<std::string>(key));
      if (!names.insert(*name).second) {
        return Bad(Format("has \"{}\" twice", Quotable(*name)));
      }
      const auto* tensor = std::get_if<PickledTensor>(&values_[value]);
      if (tensor == nullptr) {
        return Bad(Format("has \"{}\", which is not a tensor", Quotable(*name)),
                   ErrorCode::kUnsupported);
      }
      tensors.push_back(*tensor);
      tensors.back().name = *name;
    }
    return tensors;
  }

  std::string_view rest_;
  std::string_view where_;
  std::deque<Value> values_;  // The address of a value never changes.
  std::vector<Index> stack_;
  std::unordered_map<uint32_t, Index> memo_;
};

}  // namespace

Result<std::vector<PickledTensor>> ReadTorchPickle(std::string_view pickle,
                                                   std::string_view where) {
  if (pickle.size() > kMaxPickleBytes) {
    return Fail(ErrorCode::kUnsupported,
                Format("{}: its table of tensors has {} bytes, more than {}", where, pickle.size(),
                       kMaxPickleBytes));
  }
  return Machine(pickle, where).Run();
}

}  // namespace cria
