#pragma once

#include <string_view>

#include "cria/cria.h"
#include "cria/error.h"

namespace cria::c_api {

// Calls `function(call)`, as Guarded does. Not a template, because handlers take many bytes.
cria_status GuardedCall(Status (*function)(const void* call), const void* call);

// Calls `call`, which returns a Status, and converts the result for a caller: the sentence of a
// failure becomes this thread's message. Exceptions become failures. Cria throws nothing,
// but operator new does if the heap is exhausted, and callbacks may. The folders below are written
// without exceptions: if one passes through them, what they had allocated is lost.
template <typename Call>
cria_status Guarded(const Call& call) {
  return GuardedCall([](const void* made) { return (*static_cast<const Call*>(made))(); }, &call);
}

Status FailNull(std::string_view name);

// Fails if an argument is null; the error names the argument.
template <typename T>
Status CheckNotNull(T* argument, std::string_view name) {
  return argument != nullptr ? Status() : FailNull(name);
}

}  // namespace cria::c_api
