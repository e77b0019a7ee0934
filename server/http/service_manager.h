#pragma once

#include <string_view>
#include <vector>

#include "server/http/listener.h"

namespace cria::server {

// What systemd and programs like it agree on with the processes that they start: sd_listen_fds(3)
// and sd_notify(3) describe it.

// The sockets that the manager made and passed on to this process; none if it was started
// otherwise. May be called once.
Result<std::vector<Listener>> TakePassedListeners();

// Tells the manager "READY=1" or "STOPPING=1". Does nothing if there is none that wants to know.
void TellServiceManager(std::string_view state);

}  // namespace cria::server
