#pragma once

// What Cria asks of the operating system. Declared here so that the runtime can call it;
// implemented in one folder of platforms/, which the programs link.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cria/error.h"

namespace cria::platform {

// A read-only view of part of a file, or a copy of it. The file must not be truncated while it
// lives: touching a page past the new end is a SIGBUS, which no library can turn into an error.
class FileMapping {
 public:
  FileMapping() = default;
  FileMapping(FileMapping&& other) noexcept { *this = std::move(other); }
  FileMapping& operator=(FileMapping&& other) noexcept;
  ~FileMapping();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  friend class File;
  void* base_ = nullptr;  // Where the mapping begins, on a page boundary at or before bytes_.
  size_t mapped_bytes_ = 0;
  std::span<const std::byte> bytes_;
};

// A file opened for reading, or a part of one.
class File {
 public:
  static Result<File> Open(const std::string& path);
  // The part of a file that the system has open already, such as an asset inside an Android
  // package: `bytes` from `offset`, or all from there. The descriptor is duplicated, and its
  // position neither used nor moved.
  static Result<File> OfDescriptor(int descriptor, uint64_t offset, std::optional<uint64_t> bytes);

  File(File&& other) noexcept { *this = std::move(other); }
  File& operator=(File&& other) noexcept;
  ~File();

  // Of a descriptor, a word that stands for it in messages.
  const std::string& path() const { return path_; }
  uint64_t size_bytes() const { return size_bytes_; }
  // Whether Map gives the file's own pages: not of a part that does not begin on 64 bytes. There,
  // it reads into private memory, so that what is aligned in the part is aligned in memory.
  bool is_mappable() const { return begin_ % kMappableAlignment == 0; }

  // Offsets count from the beginning of the part; ranges that do not lie inside it are errors.
  Status ReadAt(uint64_t offset, std::span<std::byte> destination) const;
  Result<FileMapping> Map(uint64_t offset, uint64_t bytes) const;

  // The same part of the same file, whatever has become of its name.
  Result<File> Duplicate() const;

 private:
  static constexpr uint64_t kMappableAlignment = 64;

  File() = default;
  int descriptor_ = -1;
  uint64_t begin_ = 0;  // Where the part begins in the file.
  uint64_t size_bytes_ = 0;
  std::string path_;
};

// Zeroed, private, page-aligned memory; its pages become resident when first touched.
class PageBlock {
 public:
  // Also kOutOfMemory: more than a program of 32 bits can have.
  static Result<PageBlock> Allocate(uint64_t bytes);

  PageBlock() = default;
  PageBlock(PageBlock&& other) noexcept { *this = std::move(other); }
  PageBlock& operator=(PageBlock&& other) noexcept;
  ~PageBlock();

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

// Figures of this process, in bytes; 0 where the system does not tell.
struct MemoryUsage {
  uint64_t private_bytes = 0;      // Anonymous pages that are resident.
  uint64_t file_mapped_bytes = 0;  // Pages of mapped files that are resident.
  uint64_t peak_resident_bytes = 0;
  uint64_t virtual_bytes = 0;  // Address space of all mappings, whether touched or not.
  uint64_t peak_virtual_bytes = 0;
  uint64_t major_faults = 0;
};
// Takes no memory from the heap.
MemoryUsage ReadMemoryUsage();

// What the system allows this process, in bytes; absent where nothing is set or the system does not
// tell.
struct MemoryLimits {
  // The least limit of the process's control group and of those above it that are visible. All
  // processes of a group share it, and what they leave is not told: a group is charged for file
  // pages too, which give way when memory is wanted, so that a limit less the charge says too
  // little.
  std::optional<uint64_t> cgroup_bytes;
  std::optional<uint64_t> address_space_bytes;  // RLIMIT_AS: compare with virtual_bytes.
};
MemoryLimits ReadMemoryLimits();

// What a thread made with default attributes reserves for its stack.
uint64_t ThreadStackBytes();

// Lets all threads share one heap, so that none reserves address space for a heap of its own (64 MB
// each with glibc on 64 bits; elsewhere there is nothing to do). Call it before threads start.
void UseOneHeap();

// One logical processor that this process may run on.
struct Processor {
  uint32_t core = 0;                    // Processors of one core share it.
  uint64_t max_frequency_hz = 0;        // 0 where the system does not tell.
  uint32_t microarchitecture_rank = 0;  // Larger is faster; equal for equal cores.
};

struct CpuTopology {
  std::string name;  // "Cortex-A76", or the brand's own words.
  std::vector<Processor> processors;
};
CpuTopology ReadCpuTopology();

// The instruction sets of this processor that kernels are chosen by, with spaces between: "sse4.1
// avx avx2 fma". Empty where the system does not tell.
std::string InstructionSets();

// How the processor is just now; absent where the system does not tell.
struct ProcessorState {
  std::optional<double> temperature_celsius;  // Of its hottest sensor.
  std::optional<uint64_t> frequency_hz;       // Of the fastest processor that is allowed.
};
ProcessorState ReadProcessorState();

// The folder for files that can be made again, with the program's name at its end
// (XDG_CACHE_HOME/cria or HOME/.cache/cria); empty where the system does not tell.
std::string CacheFolder();

}  // namespace cria::platform
