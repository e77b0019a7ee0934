#pragma once

#include <cxxabi.h>

#include <exception>
#include <new>
#include <string_view>

#include "cria/cria.h"
#include "cria/error.h"

namespace cria::c_api {

// Converts `status` for a caller. The sentence of a failure becomes this thread's message.
cria_status Finish(const Status& status);

// The same for an exception; allocates nothing.
cria_status FinishOutOfMemory();
cria_status FinishException(const char* what);

// Calls `call`, which returns a Status, and converts the result for a caller. Cria throws nothing,
// but operator new does if the heap is exhausted, and callbacks may. The folders below are written
// without exceptions: if one passes through them, what they had allocated is lost.
template <typename Call>
cria_status Guarded(const Call& call) {
  try {
    return Finish(call());
  } catch (const std::bad_alloc&) {
    return FinishOutOfMemory();
  } catch (const std::exception& exception) {
    return FinishException(exception.what());
#ifdef __GLIBCXX__
  } catch (const abi::__forced_unwind&) {
    throw;  // A cancelled thread ends by this exception, which must not be caught.
#endif
  } catch (...) {
    return FinishException("it is not a std::exception");
  }
}

Status FailNull(std::string_view name);

// Fails if an argument is null; the error names the argument.
template <typename T>
Status CheckNotNull(T* argument, std::string_view name) {
  return argument != nullptr ? Status() : FailNull(name);
}

}  // namespace cria::c_api
