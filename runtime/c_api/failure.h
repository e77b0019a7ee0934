#pragma once

#include <cxxabi.h>

#include <exception>
#include <new>
#include <string_view>

#include "cria/cria.h"
#include "cria/error.h"

namespace cria::c_api {

// The code of `status` for a caller. A failure's sentence becomes this thread's message.
cria_status Finish(const Status& status);

// The same of an exception, without taking memory.
cria_status FinishOutOfMemory();
cria_status FinishException(const char* what);

// What `call` returns, a Status, for a caller. Cria throws nothing, but operator new does where the
// heap ends, and so may a callback. The folders below do without exceptions and clean nothing up
// when one passes through: what they had taken is lost.
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
    throw;  // The end of a cancelled thread, which must not be held up.
#endif
  } catch (...) {
    return FinishException("it is no std::exception");
  }
}

Status FailNull(std::string_view name);

// Refuses a null argument by its name.
template <typename T>
Status CheckNotNull(T* argument, std::string_view name) {
  return argument != nullptr ? Status() : FailNull(name);
}

}  // namespace cria::c_api
